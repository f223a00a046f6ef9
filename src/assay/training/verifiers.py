"""verifiers and prime-rl: a grader in a task's rewards (v1, 0.4).

In a module ``my_reward``::

    from assay.training.verifiers import reward_function

    reward = reward_function("graders.yaml")  # v1: TaskConfig.rewards names "my_reward:reward"

What cannot be graded raises an exception: both then drop the trace, as they should.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias, Unpack, cast

from assay.scoring.json_safe import plain
from assay.training.chat import submission_of
from assay.training.reward import Gradable, Reward, RewardOptions

Scored: TypeAlias = "Callable[..., Awaitable[float]]"


def reward_function(grader: Gradable, **options: Unpack[RewardOptions]) -> Scored:
    """Make a reward of verifiers v1: ``async fn(task, trace) -> float``.

    The expected answer is the task's ``answer`` or ``expected``; all of its data is the metadata.

    Args:
        grader: As `assay.training.Reward` takes it.
        **options: Further ones of `assay.training.Reward`.
    """
    reward = Reward(grader, **options)

    async def assay_reward(task: object, trace: object) -> float:
        data = getattr(task, "data", task)
        dumped = getattr(data, "model_dump", None)
        fields = plain(dumped(mode="json") if callable(dumped) else data)
        metadata = fields if isinstance(fields, dict) else {}
        said = cast("list[object]", getattr(trace, "messages", None) or [])
        messages: list[dict[str, object]] = [
            {name: getattr(one, name, None) for name in ("role", "content")} for one in said
        ]
        truth = metadata.get("answer", metadata.get("expected"))
        submission = submission_of([], messages, truth, metadata)
        return (await reward.grade([submission])).filled("raise")[0]

    return assay_reward
