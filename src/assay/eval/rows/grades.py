"""`RowGrade`, what came of a row, as a flat record for files; and `RowTally`, the sum of many."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import sqrt
from sys import float_info
from typing import cast

from assay.eval.records import reaches_threshold, shortened, status_of, uncovered
from assay.frozen import frozen
from assay.scoring.combine import unique_names
from assay.scoring.json_safe import Json
from assay.scoring.results import EvaluationResult, SubScore
from assay.shown import Ended
from assay.statistics.intervals import Interval, spread_interval
from assay.store.records import NOT_GRADED, CellStatus
from assay.types.codec import from_json


def score_names(labels: Iterable[str]) -> tuple[str, ...]:
    """What the scores of graders are called in a result; of two with one name, ``x-1``, ``x-2``."""
    return tuple(one.name for one in unique_names([SubScore(label, 0.0) for label in labels]))


@frozen(kw_only=True)
class RowGrade:
    """What came of a row, or of several alike; where there is no number, there is None.

    Attributes:
        status: ``graded``, ``error`` (could not be graded) or ``skipped`` (nothing applied).
        reward: In [0, 1] where graded.
        passed: Whether it reached the threshold, where graded.
        error: Why it could not be graded.
        flags: Signs of tampering.
        reason: A line that explains the reward.
        assurance: How far it can be trusted.
        not_graded: What of the weight was skipped where there is a reward all the same, as JSON
            that `CellRecord.notes` has, too; None for nothing.
        scores: The score that each grader gave, in their order.
    """

    status: CellStatus
    reward: float | None = None
    passed: bool | None = None
    error: str | None = None
    flags: tuple[str, ...] = ()
    reason: str | None = None
    assurance: str | None = None
    not_graded: str | None = None
    scores: tuple[float | None, ...] = ()

    @classmethod
    def of(cls, result: EvaluationResult, *, threshold: float, graders: int) -> RowGrade:
        """From the result of so many graders."""
        nodes = (result.subscores or ())[:graders]
        scores = tuple([node.value for node in nodes]) or (None,) * graders
        reward, content, flags = result.reward, result.content or "", tuple(result.flags)
        if result.isError:
            error = shortened(content or "not graded")
            return cls(status="error", error=error, flags=flags, scores=scores)
        reason = content or "; ".join([node.reason for node in nodes if node.reason])
        return cls(
            status=status_of(result),
            reward=reward,
            passed=None if reward is None else reaches_threshold(reward, threshold),
            flags=flags,
            reason=shortened(reason) or None,
            assurance=result.assurance,
            not_graded=_noted(uncovered(result)),
            scores=scores,
        )

    def to_dict(self, names: Sequence[str]) -> dict[str, Json]:
        """As plain JSON, scores by the names of their graders; ``not_graded`` if anything was."""
        skipped = {} if self.not_graded is None else {NOT_GRADED: json.loads(self.not_graded)}
        written = {name: getattr(self, name) for name in _KINDS}
        return {**written, **skipped, "scores": dict(zip(names, self.scores, strict=True))}

    @classmethod
    def from_dict(cls, data: Mapping[str, Json]) -> RowGrade:
        """Read back what `to_dict` made.

        Raises:
            KeyError, TypeError, ValueError: If it did not.
        """
        given = {name: data[name] for name in _KINDS}
        scores = data["scores"]
        if not isinstance(scores, dict):
            raise TypeError(f"'scores' is {scores!r:.60}")
        for name, kinds in _KINDS.items():
            if not isinstance(given[name], kinds):
                raise TypeError(f"{name!r} is {given[name]!r:.60}")
        numbers = {"reward": given["reward"], **{f"scores.{k}": v for k, v in scores.items()}}
        for name, number in numbers.items():
            if number is None:
                continue
            if isinstance(number, bool) or not isinstance(number, float | int):
                raise TypeError(f"{name!r} is {number!r:.60}")
            if not abs(number) <= float_info.max:
                raise ValueError(f"{name!r} is {number!r:.60}")
        skipped = data.get(NOT_GRADED)
        if isinstance(skipped, str):  # as tables have it
            skipped = cast("Json", json.loads(skipped))
        given |= {
            "flags": tuple(cast("list[Json]", given["flags"])),
            NOT_GRADED: _noted({NOT_GRADED: skipped}),
        }
        return cast("Callable[..., RowGrade]", cls)(**given, scores=tuple(scores.values()))


_NONE = type(None)
_KINDS: Mapping[str, tuple[type, ...]] = {
    "status": (str,),
    "reward": (float, int, _NONE),
    "passed": (bool, _NONE),
    "error": (str, _NONE),
    "flags": (list, tuple),
    "reason": (str, _NONE),
    "assurance": (str, _NONE),
}
"""What is written of each grade, in this order, and what it is read from."""


def _noted(notes: Mapping[str, Json]) -> str | None:
    """What the notes of a cell say was not graded, as `RowGrade` has it."""
    skipped = notes.get(NOT_GRADED)
    return None if skipped is None else json.dumps(skipped)


_MOST_CAUSES = 100
_CAUSE = 200
_MOST_GRADERS = 20
_COUNTS = ("passed", "failed", "scored", "errors", "skipped", "flagged")


@dataclass(slots=True, kw_only=True)
class RowTally:
    """How rows ended; those of all parts together are the sum of the parts'.

    Attributes:
        passed: Graded, and the reward reached the threshold.
        failed: Graded, and it did not.
        scored: Graded where any score passes: they count as passed.
        errors: Could not be graded.
        skipped: Nothing applied.
        flagged: With a sign of tampering.
        partly: Graded, but for some of the weight, which was skipped.
        share: The largest share of a row's weight that was.
        skipped_graders: Graders that were skipped in such rows, and why.
        skipped_why: Why a whole row was skipped, as the first such one says.
        total: The sum of the rewards.
        squares: The sum of their squares.
        least: The smallest; None of none.
        most: The largest; None of none.
        causes: Why rows could not be graded, and how many for that reason.
    """

    passed: int = 0
    failed: int = 0
    scored: int = 0
    errors: int = 0
    skipped: int = 0
    flagged: int = 0
    partly: int = 0
    share: float = 0.0
    skipped_graders: dict[str, str] = field(default_factory=dict[str, str])
    skipped_why: str = ""
    total: float = 0.0
    squares: float = 0.0
    least: float | None = None
    most: float | None = None
    causes: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def graded(self) -> int:
        """Rows with a reward."""
        return self.passed + self.failed

    @property
    def rows(self) -> int:
        """Rows with any outcome."""
        return self.graded + self.errors + self.skipped

    def add(self, grade: RowGrade, *, threshold: float) -> None:
        """Count a row, which needed that reward to pass."""
        self.flagged += bool(grade.flags)
        if grade.not_graded is not None:
            noted = json.loads(grade.not_graded)
            self._skip(1, float(noted["share"]), cast("dict[str, str]", noted["graders"]))
        if grade.reward is not None:
            self.passed += bool(grade.passed)
            self.failed += not grade.passed
            self.scored += threshold <= 0.0
            self.total += grade.reward
            self.squares += grade.reward * grade.reward
            self._reach(grade.reward, grade.reward)
        elif grade.status == "error":
            self.errors += 1
            self._count((grade.error or "")[:_CAUSE], 1)
        else:
            self.skipped += 1
            self.skipped_why = self.skipped_why or (grade.reason or "")[:_CAUSE]

    def _skip(self, rows: int, share: float, graders: Mapping[str, str]) -> None:
        self.partly += rows
        self.share = max(self.share, share)
        for name, why in graders.items():
            if len(self.skipped_graders) < _MOST_GRADERS:
                self.skipped_graders.setdefault(name, why)

    def _count(self, cause: str, times: int) -> None:
        is_new = cause not in self.causes and len(self.causes) >= _MOST_CAUSES
        cause = "others" if is_new else cause
        self.causes[cause] = self.causes.get(cause, 0) + times

    def _reach(self, least: float | None, most: float | None) -> None:
        if least is not None and (self.least is None or least < self.least):
            self.least = least
        if most is not None and (self.most is None or most > self.most):
            self.most = most

    def include(self, other: RowTally) -> None:
        """Add the rows of another tally, which come after those of this one."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self._skip(other.partly, other.share, other.skipped_graders)
        self.skipped_why = self.skipped_why or other.skipped_why
        self.total += other.total
        self.squares += other.squares
        self._reach(other.least, other.most)
        for cause, times in other.causes.items():
            self._count(cause, times)

    def commonest_causes(self) -> list[tuple[str, int]]:
        """Why rows could not be graded, and how many for that reason, most of them first."""
        return Counter(self.causes).most_common()

    def ended(self) -> Counter[Ended]:
        """How many ended in which way, as that is shown."""
        passed = self.passed - self.scored
        counts: dict[Ended, int] = {"pass": passed, "scored": self.scored, "fail": self.failed}
        return Counter({**counts, "error": self.errors, "skipped": self.skipped})

    def mean(self) -> Interval:
        """The mean reward with its 95 % interval; of nothing graded, None."""
        n = self.graded
        if self.least is None or self.most is None:
            return Interval(None, None, None, 0)
        mean = min(max(self.total / n, self.least), self.most)
        sd = sqrt(max(0.0, self.squares - n * mean * mean) / (n - 1)) if n > 1 else 0.0
        return spread_interval(mean, sd, n, least=self.least, most=self.most)

    def to_dict(self) -> dict[str, Json]:
        """As plain JSON, with all that `from_dict` needs."""
        return {"rows": self.rows, **{name: getattr(self, name) for name in _TALLIED}}

    @classmethod
    def from_dict(cls, data: Mapping[str, Json]) -> RowTally:
        """Read back what `to_dict` made.

        Raises:
            KeyError, ShapeError: If it did not.
        """
        return from_json(cls, {name: data[name] for name in _TALLIED})


_TALLIED = tuple(one.name for one in fields(RowTally))
