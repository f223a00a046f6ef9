"""verl: a grader as ``custom_reward_function`` (written for verl 0.9.1).

In the file that ``reward.custom_reward_function.path`` names::

    from assay.training.verl import reward_function

    compute_score = reward_function("graders.yaml")

verl asks for one sample at a time and accepts no None. What cannot be graded, even after all
``attempts``, raises an exception: verl 0.9 leaves the sample out of its group, and older versions
end the training. With ``on_error="zero"`` it is a 0 beside ``graded: 0.0``, which counts in its
group.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias, Unpack, cast

from assay.errors import InputError
from assay.scoring.json_safe import plain
from assay.training.chat import read_or_why
from assay.training.reward import Gradable, OnError, Reward, RewardOptions, require_on_error
from assay.types.references import reference_of
from assay.types.submission import Submission

ComputeScore: TypeAlias = "Callable[..., Awaitable[dict[str, float]]]"
"""``async compute_score(data_source, solution_str, ground_truth, extra_info=None, **kwargs)``."""


def reward_function(
    grader: Gradable,
    *,
    on_error: OnError = "raise",
    **options: Unpack[RewardOptions],
) -> ComputeScore:
    """Make verl's ``compute_score`` of a grader.

    Args:
        grader: As `assay.training.Reward` takes it.
        on_error: What stands for a missing reward: ``raise`` or ``zero``. verl hands over one
            sample at a time, so there is no ``group_mean``.
        **options: Further ones of `assay.training.Reward`.

    Returns:
        An ``async def`` that returns ``score``, ``graded`` (1 or 0), ``flagged`` and ``seconds``,
        the same keys for every sample, as verl requires.

    Raises:
        InputError: For ``group_mean``, or if there is no such grader.
    """
    require_on_error(on_error)
    if on_error == "group_mean":
        raise InputError(
            "verl hands over single samples, not groups", hint="on_error='raise' or 'zero'"
        )
    reward = Reward(grader, **options)

    async def compute_score(
        data_source: str = "",
        solution_str: str = "",
        ground_truth: object = None,
        extra_info: Mapping[str, object] | None = None,
        **_: object,
    ) -> dict[str, float]:
        batch = await reward.grade([_read(data_source, solution_str, ground_truth, extra_info)])
        (score,) = batch.filled(on_error)
        (graded,), (seconds,) = batch.graded, batch.seconds
        return {
            "score": score,
            "graded": float(graded.score is not None),
            "flagged": float(bool(graded.flags)),
            "seconds": seconds or 0.0,
        }

    return cast("ComputeScore", compute_score)


@read_or_why
def _read(source: str, said: str, truth: object, extra: Mapping[str, object] | None) -> Submission:
    known = plain(dict(extra or {}))
    metadata = known if isinstance(known, dict) else {}
    question = metadata.get("question")
    return Submission(
        answer=said,
        expected=reference_of(truth),
        question=question if isinstance(question, str) else None,
        metadata={**metadata, "data_source": source},
    )
