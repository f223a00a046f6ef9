"""A number with what it rests on: how many observations, and how many had to be left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.errors import ScoreError
from assay.scoring.intervals import Interval

__all__ = ["Measured", "check_same_length", "ratio"]


@dataclass(frozen=True, slots=True)
class Measured:
    """A statistic, its interval if it has one, and what was left out of it.

    Attributes:
        estimate: The value (`Interval.mean`, None where nothing could be measured), its ends where
            a formula gives them, and the number of observations it rests on. Statistics whose
            ends are None get them from `assay.scoring.bootstrap`.
        excluded: Observations left out because something of them was None. They are no class and
            no zero: show them beside the value.
    """

    estimate: Interval
    excluded: int = 0

    @property
    def value(self) -> float | None:
        """The statistic itself; None where it was not measured."""
        return self.estimate.mean

    @property
    def n(self) -> int:
        """How many observations it rests on."""
        return self.estimate.n

    @property
    def coverage(self) -> float | None:
        """Share of the observations that could be used; None for no observations."""
        return ratio(self.n, self.n + self.excluded)


def ratio(part: float, whole: float) -> float | None:
    """``part / whole``, and None where the whole is 0: that was not measured."""
    return part / whole if whole else None


def check_same_length(**columns: Sequence[object] | None) -> None:
    """Check that columns describe the same observations; a column of None is not there.

    Raises:
        ScoreError: For different lengths, naming each.
    """
    lengths = {name: len(column) for name, column in columns.items() if column is not None}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{length} {name}" for name, length in lengths.items())
        raise ScoreError(f"different lengths: {told}", hint="one of each for every observation")
