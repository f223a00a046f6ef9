"""`Graded`, the outcome of one item as files, servers and clients exchange it; `Grade`, of one run.

The frame of a `Grade` is ``{"score": 0.7, "done": true, "isError": false, "content": ..., "info":
{...}, "subscores": [...]}``: an `EvaluationResult` whose reward is called ``score``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import cast

from assay.errors import ScoreError
from assay.frozen import frozen
from assay.scoring.json_safe import Json, PlainJson, plain
from assay.scoring.results import (
    RESULT_KEYS,
    Assurance,
    EvaluationResult,
    Status,
    SubScore,
    assurance_from,
    finite_number,
)

_STATUSES = ("scored", "skipped", "error")


@frozen(kw_only=True)
class Graded:
    """What came of grading one item with one grader.

    Attributes:
        id: The item's id, as the caller gave it.
        status: ``scored``, ``skipped`` (does not apply) or ``error`` (could not be graded).
        score: Finite where ``status`` is ``scored``, else None. In [0, 1] unless the grader
            declares another range.
        outcome: What happened in one word: ``ok``, ``error``, ``bad_return``, ``cpu_timeout``,
            ``wall_timeout``, ``memory``, ``crash``, ``sandbox_error``, ``unreachable`` ...
        reason: One line for people: why this score, why skipped.
        error: What went wrong where ``status`` is ``error``, else empty.
        flags: What people should look at: signs of tampering, a submission that ran out of time.
        details: Evidence as plain JSON: output, times, sub-scores, verdicts.
        grader: The grader and its version, such as ``exact-match@3``, where it is stored.
        digest: Digest of what gave the score.
        assurance: How far the score can be trusted; None where nothing says.

    Raises:
        ScoreError: For a score that is not finite, one where there must be none, and an unknown
            assurance.
    """

    id: str
    status: Status
    score: float | None = None
    outcome: str = "ok"
    reason: str = ""
    error: str = ""
    flags: tuple[str, ...] = ()
    details: Mapping[str, Json] = field(default_factory=dict[str, Json])
    grader: str = ""
    digest: str = ""
    assurance: Assurance | None = None

    def __post_init__(self) -> None:
        assurance_from(self.assurance)
        if self.status not in _STATUSES:
            raise ScoreError(f"status of item {self.id!r} is {self.status!r}")
        if self.status == "scored":
            score = finite_number(self.score, what=f"the score of item {self.id!r}")
            object.__setattr__(self, "score", score)
        elif self.score is not None:
            raise ScoreError(f"item {self.id!r} is {self.status} and cannot have a score")

    @classmethod
    def failed(cls, item: str, error: str, *, outcome: str = "error") -> Graded:
        """An item that could not be graded."""
        return cls(id=item, status="error", outcome=outcome, error=error)

    @classmethod
    def of(cls, item: str, node: SubScore) -> Graded:
        """The outcome that a score node stands for."""
        is_error = node.status == "error"
        metadata = dict(node.metadata or {})
        digest = metadata.pop("_digest", "")
        outcome = metadata.pop("_outcome", "error" if is_error else "ok")
        children = [cast("Json", child.to_dict()) for child in node.children or ()]
        details = {**metadata, "subscores": children} if children else metadata
        return cls(
            id=item,
            status=node.status,
            score=node.value,
            outcome=str(outcome),
            reason="" if is_error else node.reason,
            error=(node.reason or "could not be graded") if is_error else "",
            flags=tuple(node.flags),
            details=details,
            digest=str(digest),
            assurance=node.weakest_assurance if node.status == "scored" else None,
        )

    @classmethod
    def of_result(
        cls, item: str, result: EvaluationResult, details: Mapping[str, Json] | None = None
    ) -> Graded:
        """The outcome that a combined result stands for.

        Args:
            item: The item's id.
            result: The result; its nodes are kept as ``subscores`` among the details.
            details: What is kept beside them, as plain JSON.
        """
        is_error = result.status == "error"
        said = result.content or ""
        nodes = [cast("Json", node.to_dict()) for node in result.subscores or ()]
        return cls(
            id=item,
            status=result.status,
            score=result.reward,
            outcome="error" if is_error else "ok",
            reason="" if is_error else said,
            error=(said or "could not be graded") if is_error else "",
            flags=result.flags,
            details=PlainJson(subscores=nodes, **(details or {})),
            assurance=result.assurance,
        )

    def called(self, item: str) -> Graded:
        """The same outcome, of another item."""
        return self._but(item, self.grader, self.digest)

    def by(self, grader: str, digest: str) -> Graded:
        """The same outcome, with the grader that gave it."""
        return self._but(self.id, grader, digest)

    def _but(self, item: str, grader: str, digest: str) -> Graded:
        return Graded(  # written out: `replace` and `copy` take three times as long
            id=item,
            status=self.status,
            score=self.score,
            outcome=self.outcome,
            reason=self.reason,
            error=self.error,
            flags=self.flags,
            details=self.details,
            grader=grader,
            digest=digest,
            assurance=self.assurance,
        )

    def to_dict(self) -> dict[str, Json]:
        """The outcome as plain JSON."""
        return {
            "id": self.id,
            "status": self.status,
            "score": self.score,
            "outcome": self.outcome,
            "reason": self.reason,
            "error": self.error or None,
            "flags": list(self.flags),
            "assurance": self.assurance,
            "details": plain(self.details),
            "grader": self.grader,
            "digest": self.digest,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Json]) -> Graded:
        """Read back what `to_dict` wrote.

        Raises:
            ScoreError: For a malformed outcome.
        """
        status, score = data.get("status"), data.get("score")
        flags, details = data.get("flags"), data.get("details")
        return cls(
            id=str(data.get("id") or ""),
            status=cast("Status", status),
            score=None if score is None else finite_number(score, what="score"),
            outcome=str(data.get("outcome") or "ok"),
            reason=str(data.get("reason") or ""),
            error=str(data.get("error") or ""),
            flags=tuple(map(str, flags)) if isinstance(flags, list) else (),
            details=details if isinstance(details, dict) else {},
            grader=str(data.get("grader") or ""),
            digest=str(data.get("digest") or ""),
            assurance=assurance_from(data.get("assurance")),
        )


@frozen
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
        """Parse a grade frame; what it says beyond a result is kept in ``raw`` alone.

        Raises:
            ScoreError: If ``score`` is missing, a bool, not a number or not finite, a subscore is
                malformed, or ``isError`` is misspelt.
        """
        for key in frame:
            if key != "isError" and key.replace("_", "").lower().startswith("iser"):
                # Passed over, it would make a reward of what has none.
                raise ScoreError(f"unknown key {key!r} in a grade", hint="did you mean 'isError'?")
        said = {key: value for key, value in frame.items() if key in RESULT_KEYS}
        return cls._of(EvaluationResult.from_dict(said), raw=frame)

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
