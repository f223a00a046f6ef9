"""`Trace`: the trajectory of one rollout, and the unit of training data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Literal, TypeVar, cast

from assay.scoring.json_safe import Json
from assay.types.codec import from_json, to_json
from assay.types.steps import AgentStep, AnyStep, Step, SubagentStep, ToolStep

__all__ = ["StopReason", "Trace", "TraceStatus"]

TraceStatus = Literal["completed", "error", "cancelled"]
StopReason = Literal["done", "max_steps", "length", "timeout", "malformed_tool_call"]

R = TypeVar("R")
S = TypeVar("S", bound=Step)


@dataclass(slots=True, kw_only=True)
class Trace:
    """An ordered collection of steps plus the run's summary.

    It grows while an agent works, and only the run that owns it appends.

    Attributes:
        steps: The trajectory, oldest first.
        status: How the run ended; None while it is running.
        stop_reason: Why the agent stopped, where known.
        content: The final answer, which is what is graded.
        extra: Anything a harness wants to keep.
        trace_id: Keys the trajectory.
    """

    steps: list[Step | AgentStep | ToolStep | SubagentStep] = field(default_factory=list[AnyStep])
    status: TraceStatus | None = None
    stop_reason: StopReason | None = None
    content: str | None = None
    extra: dict[str, Json] = field(default_factory=dict[str, Json])
    trace_id: str | None = None

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[AnyStep]:
        return iter(self.steps)

    def record(self, step: S) -> S:
        """Append a step, numbered from 1 and stamped with its end.

        Returns:
            The step as it was stored.
        """
        ended = step.ended_at or datetime.now(UTC).isoformat(timespec="milliseconds")
        numbered = replace(step, step_id=len(self.steps) + 1, ended_at=ended)
        self.steps.append(cast("AnyStep", numbered))
        return numbered

    def final(self, get: Callable[[AnyStep], R | None]) -> R | None:
        """The newest non-None answer of ``get`` over the steps, or None."""
        return next((found for s in reversed(self.steps) if (found := get(s)) is not None), None)

    def collect(self, get: Callable[[AnyStep], R | None]) -> list[R]:
        """Every non-None answer of ``get``, in step order."""
        return [found for step in self.steps if (found := get(step)) is not None]

    @property
    def error(self) -> str | None:
        """The newest error of any step."""
        return self.final(lambda step: step.error)

    @property
    def is_error(self) -> bool:
        """Whether the run ended in an error."""
        return self.status == "error"

    @property
    def is_truncated(self) -> bool:
        """Whether the agent was stopped before it was done."""
        return self.stop_reason in ("max_steps", "length", "timeout")

    def to_dict(self) -> dict[str, Json]:
        """The trace as plain JSON, losslessly."""
        return cast("dict[str, Json]", to_json(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Json]) -> Trace:
        """Read back what `to_dict` wrote.

        Raises:
            ShapeError: With every problem found.
        """
        return from_json(cls, dict(data))


# `SubagentStep` and `Trace` contain each other; annotations are resolved in the steps' module.
SubagentStep.__init__.__globals__.setdefault("Trace", Trace)
