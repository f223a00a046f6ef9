"""What the rows of a function come to, and how that is shown while they come.

A function has scores and no threshold, so no row of it passes or fails.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Self

from assay.reports.figures import count, duration
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["FunctionProgress", "Totals"]

_SHOWN = 20


@dataclass(slots=True)
class Totals:
    """What the rows came to, counted as they come.

    Attributes:
        rows: All of them.
        scored: Those that have a score.
        errors: Those that could not be graded.
        skipped: Those that the function does not apply to.
        flagged: Those that somebody should look at.
        beyond: Those with a score outside of [0, 1].
        example: The first such score; None where there is none.
        first: The first few.
        odd: The first few others that have a flag or no score.
    """

    rows: int = 0
    scored: int = 0
    errors: int = 0
    skipped: int = 0
    flagged: int = 0
    beyond: int = 0
    example: float | None = None
    first: list[Graded] = field(default_factory=list[Graded])
    odd: list[Graded] = field(default_factory=list[Graded])
    _sum: float = 0.0

    def add(self, graded: Graded) -> None:
        """Count a row."""
        self.rows += 1
        self.scored += graded.status == "scored"
        self.errors += graded.status == "error"
        self.skipped += graded.status == "skipped"
        self.flagged += bool(graded.flags)
        self._sum += graded.score or 0.0
        if graded.score is not None and not 0.0 <= graded.score <= 1.0:
            self.beyond += 1
            self.example = graded.score if self.example is None else self.example
        if len(self.first) < _SHOWN:
            self.first.append(graded)
        elif (graded.flags or graded.status != "scored") and len(self.odd) < _SHOWN:
            self.odd.append(graded)

    @property
    def mean(self) -> float | None:
        """The mean score of what was scored."""
        return self._sum / self.scored if self.scored else None

    @property
    def doubt(self) -> str:
        """What is odd about the scores where no range is declared; "" if nothing is."""
        if self.example is None:
            return ""
        many = f"{self.beyond:,} of {count(self.scored, 'score')}"
        lie = "lies" if self.beyond == 1 else "lie"
        return (
            f"{many} {lie} outside of [0, 1], such as {self.example:g}, and no range is declared: "
            "write --range LOW,HIGH, so that the worst score is known"
        )

    @property
    def counts(self) -> str:
        """The counts in words."""
        return f"{self.scored:,} scored, {self.errors:,} errors, {self.flagged:,} flagged"

    def to_dict(self) -> dict[str, Json]:
        """The counts and the mean as plain JSON."""
        return {
            "rows": self.rows,
            "scored": self.scored,
            "errors": self.errors,
            "skipped": self.skipped,
            "flagged": self.flagged,
            "mean": self.mean,
        }


class FunctionProgress:
    """A bar on a terminal, one plain line per 10 % elsewhere; used as a context manager.

    Args:
        console: Where to; standard error, so that standard output holds the result only.
        planned: Rows that there are.
        totals: What the rows came to; those that it has counted already were not graded now.
        clock: Seconds from any start, rising.
    """

    def __init__(
        self,
        console: Console,
        planned: int,
        totals: Totals,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        self._console = console
        self._planned = planned
        self._totals = totals
        self._clock = clock
        self._start = clock()
        self._before = totals.rows
        self._tenths = 10 * totals.rows // max(1, planned)
        self._is_live = console.is_terminal and not console.is_dumb_terminal
        self._bar = Progress(
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.description}", markup=False),
            console=console,
            transient=True,
            get_time=clock,
        )
        self._task = self._bar.add_task("", total=planned, completed=totals.rows)

    def __enter__(self) -> Self:
        if self._is_live:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the bar away, whatever happened."""
        if self._is_live:
            self._bar.stop()

    def show(self) -> None:
        """Show what the totals are now."""
        done = self._totals.rows
        text = f"{self._totals.counts}{self._left()}"
        if self._is_live:
            self._bar.update(self._task, completed=done, description=text)
            return
        tenths = 10 * done // max(1, self._planned)
        if tenths > self._tenths:
            self._tenths = tenths
            share = f"{100 * done // self._planned:>3} %  {done:,} of {self._planned:,} rows"
            self._console.print(f"{share}  {text}", markup=False, soft_wrap=True)

    def _left(self) -> str:
        """The time left if the rest goes as before; empty where that cannot be said."""
        done, left = self._totals.rows - self._before, self._planned - self._totals.rows
        if done <= 0 or left <= 0:
            return ""
        return f"  about {duration((self._clock() - self._start) / done * left)} left"
