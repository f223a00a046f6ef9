"""slime and miles: a grader as ``--custom-rm-path``, with ``--group-rm`` or without (slime 0.3).

In a module ``my_reward``, for ``--custom-rm-path my_reward.reward``::

    from assay.training.slime import reward_function

    reward = reward_function("graders.yaml")

With ``--group-rm`` a sample that cannot be graded gets the mean of its graded siblings, which
leaves their mean as it is, and ``remove_sample`` takes it out of the loss.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, Unpack

from assay.errors import InputError
from assay.training.chat import Text, submission_of
from assay.training.reward import Gradable, OnError, Reward, RewardOptions, require_on_error
from assay.types.submission import Submission


class SlimeSample(Protocol):
    """The fields of slime's ``Sample`` that are read, and `remove_sample`, which is written."""

    prompt: Text
    response: str | None
    label: object
    metadata: object
    remove_sample: bool


def reward_function(
    grader: Gradable, *, on_error: OnError | None = None, **options: Unpack[RewardOptions]
) -> Callable[..., Awaitable[float | list[float]]]:
    """Make slime's reward model of a grader: ``async fn(args, sample)``, also for lists of samples.

    slime hands over lists with ``--group-rm``, and for a rollout that consists of several samples.

    Args:
        grader: As `assay.training.Reward` takes it.
        on_error: What stands for a missing reward; by default the mean of the list, or an
            exception for a single sample.
        **options: Further ones of `assay.training.Reward`.
    """
    reward = Reward(grader, **options)
    if on_error is not None:
        require_on_error(on_error)

    async def graded(
        args: object, asked: SlimeSample | Sequence[SlimeSample], **_: object
    ) -> float | list[float]:
        del args
        several = isinstance(asked, Sequence)
        samples = asked if several else [asked]
        batch = await reward.grade([_submission(sample) for sample in samples])
        rewards = batch.filled(on_error or ("group_mean" if several else "raise"))
        for sample, known in zip(samples, batch.rewards, strict=True):
            if known is None:
                sample.remove_sample = True
        return rewards if several else rewards[0]

    return graded


def _submission(sample: SlimeSample) -> Submission | InputError:
    return submission_of(sample.prompt, sample.response, sample.label, sample.metadata)
