"""How far a command that grades row by row has come, and what that has cost."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self

from assay.cli.judging import cost_so_far
from assay.reports.figures import duration
from assay.scoring.graded import Graded

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["JudgementProgress"]


class JudgementProgress:
    """A line for each tenth, and on a terminal one that is written over; with the cost so far.

    Args:
        console: Where to.
        planned: Judgements to come.
    """

    def __init__(self, console: Console, planned: int) -> None:
        self._console = console
        self._planned = planned
        self._done = self._errors = self._tenths = 0
        self._started = time.monotonic()
        self._is_live = console.is_terminal and not console.is_dumb_terminal

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_live:
            self._overwrite("")

    def done(self, graded: Graded) -> None:
        """Count an outcome."""
        self._done += 1
        self._errors += graded.status == "error"
        tenths = 10 * self._done // max(1, self._planned)
        if not self._is_live and tenths == self._tenths:
            return
        self._tenths = tenths
        took = time.monotonic() - self._started
        left = took / self._done * (self._planned - self._done)
        said = [f"{self._done:,} of {self._planned:,} judgements", f"{self._errors:,} errors"]
        if left and self._done > 1:
            said.append(f"about {duration(left)} left")
        text = ", ".join([*said, *filter(None, [cost_so_far()])])
        if self._is_live:
            self._overwrite(text[: max(0, self._console.width - 1)])
        else:
            self._console.print(text, markup=False, soft_wrap=True)

    def _overwrite(self, text: str) -> None:
        """Write over the line; rich itself takes control characters out."""
        self._console.file.write(f"\r\x1b[K{text}")
        self._console.file.flush()
