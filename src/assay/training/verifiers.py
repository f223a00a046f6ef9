"""verifiers and prime-rl: a grader in a task's rewards (v1, 0.4) or in a rubric (0.2).

In a module ``my_reward``::

    from assay.training.verifiers import reward_function, rubric_function

    reward = reward_function("graders.yaml")  # v1: TaskConfig.rewards names "my_reward:reward"
    func = rubric_function("graders.yaml", group=True)  # 0.2: vf.Rubric(funcs=[func])

What cannot be graded raises an exception. v1 and prime-rl then drop the trace, as they should. A
rubric of 0.2 turns any exception into a 0, so its groups get the mean instead.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias, Unpack, cast

from assay.errors import InputError
from assay.scoring.json_safe import plain
from assay.training.chat import Text, submission_of
from assay.training.reward import Batch, Gradable, Reward, RewardOptions
from assay.training.trainers import module_of
from assay.types.submission import Submission

__all__ = ["reward_function", "rubric_function"]

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


def rubric_function(
    grader: Gradable,
    *,
    group: bool = False,
    **options: Unpack[RewardOptions],
) -> Callable[..., Awaitable[float | list[float]]]:
    """Make a reward function for a legacy ``Rubric``, which calls it with what its parameters name.

    Args:
        grader: As `assay.training.Reward` takes it.
        group: Whether it grades groups. What cannot be graded then gets the mean of its graded
            siblings, an advantage of 0; without a group it raises an exception, which the rubric
            turns into a 0. Either way the state's ``error`` is an ``InfraError`` with the reason.
        **options: Further ones of `assay.training.Reward`.
    """
    reward = Reward(grader, **options)

    async def graded(states: Sequence[dict[str, object]]) -> Batch:
        batch = await reward.grade([*map(_read, states)])
        for state, one in zip(states, batch.graded, strict=True):
            if one.score is None and state.get("error") is None:
                state["error"] = _fault()(f"{reward.name}: {one.error or one.reason}")
        return batch

    async def of_one(state: dict[str, object]) -> float:
        return (await graded([state])).filled("raise")[0]

    async def of_group(states: Sequence[dict[str, object]]) -> list[float]:
        return (await graded(states)).filled("group_mean")

    chosen = of_group if group else of_one
    chosen.__name__ = reward.name  # by which its logs know it, and merge those of one name
    return cast("Callable[..., Awaitable[float | list[float]]]", chosen)


def _read(state: Mapping[str, object]) -> Submission | InputError:
    if (error := state.get("error")) is not None and isinstance(error, _fault()):
        return InputError(f"the rollout failed, through no fault of the model: {error!r}")
    asked, said = cast("Text", state["prompt"]), cast("Text | None", state["completion"])
    return submission_of(asked, said, state.get("answer"), state.get("info"))


def _fault() -> type[Exception]:
    return module_of("verifiers", "verifiers").InfraError
