"""`Grade`: the structured result of one run, as it travels over the wire.

The frame is ``{"score": 0.7, "done": true, "isError": false, "content": ..., "info": {...},
"subscores": [...]}``: an `EvaluationResult` whose reward is called ``score``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from assay.scoring.json_safe import Json
from assay.scoring.results import EvaluationResult, SubScore

__all__ = ["Grade"]


@dataclass(frozen=True, slots=True)
class Grade:
    """The grade of one run.

    Attributes:
        reward: The frame's score; None where there is none (an error, or nothing applied).
        done: Whether the task is complete.
        content: Human-readable grade content.
        info: Extra metadata.
        is_error: Whether grading failed, or has not happened.
        raw: The full original frame.
        subscores: The score tree, if the frame had one.
    """

    reward: float | None = None
    done: bool = True
    content: str | None = None
    info: Mapping[str, Json] = field(default_factory=dict[str, Json])
    is_error: bool = False
    raw: Mapping[str, Json] = field(default_factory=dict[str, Json], compare=False)
    subscores: Sequence[SubScore] = ()

    @classmethod
    def from_dict(cls, frame: Mapping[str, Json]) -> Grade:
        """Parse a grade frame.

        Raises:
            ScoreError: If ``score`` is missing, a bool, not a number or not finite, or a subscore
                is malformed.
        """
        return cls._of(EvaluationResult.from_dict(frame), raw=frame)

    @classmethod
    def from_result(cls, result: EvaluationResult) -> Grade:
        """The grade of an evaluation result."""
        return cls._of(result, raw=_frame(result))

    @classmethod
    def ungraded(cls, reason: str = "not graded") -> Grade:
        """A grade that says that there is none."""
        return cls(is_error=True, content=reason)

    @classmethod
    def _of(cls, result: EvaluationResult, *, raw: Mapping[str, Json]) -> Grade:
        return cls(
            reward=result.reward,
            done=result.done,
            content=result.content,
            info=result.info,
            is_error=result.isError,
            raw=raw,
            subscores=tuple(result.subscores or ()),
        )

    @property
    def result(self) -> EvaluationResult:
        """This grade as an `EvaluationResult`."""
        return EvaluationResult(
            reward=self.reward,
            done=self.done,
            content=self.content,
            info=self.info,
            isError=self.is_error,
            subscores=self.subscores or None,
        )

    def to_dict(self) -> dict[str, Json]:
        """The grade as a frame that `from_dict` reads back."""
        return dict(self.raw) if self.raw else _frame(self.result)


def _frame(result: EvaluationResult) -> dict[str, Json]:
    frame = result.to_dict()
    frame["score"] = frame.pop("reward")
    return frame
