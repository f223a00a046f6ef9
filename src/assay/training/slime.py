"""slime and miles: a grader as ``--custom-rm-path``, with ``--group-rm`` or without (slime 0.3).

In a module ``my_reward``, for ``--custom-rm-path my_reward.reward``::

    from assay.training.slime import reward_function

    reward = reward_function("graders.yaml")

With ``--group-rm`` (and ``group=True``) what cannot be graded gets the mean of its graded siblings,
so that it moves nobody's advantage, and is taken out of the loss by ``remove_sample``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, Unpack, cast

from assay.training.chat import Text, submission_of
from assay.training.reward import Batch, Gradable, OnError, Reward, RewardOptions, require_on_error
from assay.types.submission import Submission

__all__ = ["Sample", "reward_function"]


class Sample(Protocol):
    """What is read of slime's ``Sample``, and the one field that is written."""

    prompt: Text
    response: str
    label: object
    metadata: object
    remove_sample: bool


def reward_function(
    grader: Gradable,
    *,
    group: bool = False,
    on_error: OnError | None = None,
    **options: Unpack[RewardOptions],
) -> Callable[..., Awaitable[float | list[float]]]:
    """Make slime's reward model of a grader: ``async fn(args, sample)``.

    Args:
        grader: As `assay.training.Reward` takes it.
        group: For ``--group-rm``: the function is given all samples of a prompt.
        on_error: What stands for a reward that there is not; by default the mean of the group, or
            an exception where there is none.
        **options: Further ones of `assay.training.Reward`.
    """
    reward, chosen = Reward(grader, **options), on_error or ("group_mean" if group else "raise")
    require_on_error(chosen)

    async def graded(samples: Sequence[Sample]) -> list[float]:
        batch: Batch = await reward.grade([_submission(sample) for sample in samples])
        rewards = batch.filled(chosen)
        for sample, known in zip(samples, batch.rewards, strict=True):
            if known is None:
                sample.remove_sample = True
        return rewards

    async def one(args: object, sample: Sample, **_: object) -> float:
        del args
        return (await graded([sample]))[0]

    async def many(args: object, samples: Sequence[Sample], **_: object) -> list[float]:
        del args
        return await graded(samples)

    return cast("Callable[..., Awaitable[float | list[float]]]", many if group else one)


def _submission(sample: Sample) -> Submission:
    return submission_of(sample.prompt, sample.response, sample.label, sample.metadata)
