"""Inspect: graders as a scorer, in a task and for logs (written for 0.3.285).

    from assay.plugins.inspect import scorer

    Task(dataset=..., solver=generate(), scorer=scorer("graders.yaml"))

A sample is graded as if it stood in a log: its messages are the trace, its output the answer, its
target what is expected. What could not be graded is unscored: Inspect counts it, and leaves it out
of every metric.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Protocol, TypeAlias, Unpack

from assay.agents.transcripts.rows import row_of_sample
from assay.errors import InputError, reason_of
from assay.plugins.outcomes import explanation_of
from assay.scoring.json_safe import Json, plain
from assay.training.reward import Gradable, Reward, RewardOptions
from assay.training.trainers import module_of

Scorer: TypeAlias = "Callable[..., Awaitable[object]]"


class _Dumped(Protocol):
    def model_dump(self, *, mode: str) -> Json: ...


class _Output(_Dumped, Protocol):
    completion: str


class _State(Protocol):
    """Of Inspect's ``TaskState``, what is read."""

    sample_id: int | str
    input: str | Sequence[_Dumped]
    messages: Sequence[_Dumped]
    output: _Output
    metadata: dict[str, object]


def scorer(grader: Gradable, **options: Unpack[RewardOptions]) -> Scorer:
    """Make a scorer, whose value is the reward; ``inspect score`` calls it ``assay/assay``.

    Args:
        grader: As `assay.training.Reward` takes it; graders of traces, too.
        **options: Further ones of `assay.training.Reward`.
    """
    return _registered()(grader, **options)


@lru_cache(maxsize=1)
def _registered() -> Callable[..., Scorer]:
    """The same as an object of Inspect's registry, which finds it again by what a log says."""
    types = module_of("inspect-ai", "inspect_ai.scorer")

    def made(grader: Gradable, **options: Unpack[RewardOptions]) -> Scorer:
        reward = Reward(grader, traced=True, **options)

        async def score(state: _State, target: Iterable[str]) -> object:
            (graded,) = (await reward.grade([_row(state, list(target))])).graded
            told = {
                "answer": state.output.completion,
                "explanation": explanation_of(reward.name, graded),
                "metadata": graded.to_dict(),
            }
            if graded.score is not None:
                return types.Score(value=graded.score, **told)
            reason = "scoring_failed" if graded.status == "error" else "skipped"
            return types.Score.unscored(reason=reason, **told)

        return score

    metrics = [types.mean(), types.stderr()]
    return types.scorer(metrics=metrics, name="assay")(made)


def _row(state: _State, target: list[str]) -> dict[str, Json] | InputError:
    asked = state.input
    try:
        sample: dict[str, Json] = {
            "id": str(state.sample_id),
            "input": asked if isinstance(asked, str) else _dumped(asked),
            "target": target[0] if len(target) == 1 else [*target],
            "messages": _dumped(state.messages),
            "output": state.output.model_dump(mode="json"),
            "metadata": plain(state.metadata),
        }
        return row_of_sample(sample)
    except InputError as error:
        return error
    except Exception as error:  # the boundary: a sample's metadata may be anything
        return InputError(f"it cannot be read: {reason_of(error)}")


def _dumped(messages: Iterable[_Dumped]) -> list[Json]:
    return [message.model_dump(mode="json") for message in messages]


with suppress(InputError):  # Inspect loads this to learn of the scorer; others may not have it
    _registered()
