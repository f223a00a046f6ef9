"""Progress of a run: a live line on a terminal, one plain line per 10 % elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from assay.reports.figures import duration
from assay.reports.outcome import GLYPHS, Outcome, outcome
from assay.reports.page import STYLES, Page, Part
from assay.store.records import CellRecord

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress as RichProgress
    from rich.progress import Task, TaskID
    from rich.text import Text

__all__ = ["LinesProgress", "LiveProgress", "Progress", "progress"]


class Progress(Protocol):
    """Is told of each cell as it ends; used as a context manager."""

    def __enter__(self) -> Self:
        """Begin to show."""
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the console as it was."""
        ...

    def cell(self, cell: CellRecord) -> None:
        """Count one cell that has ended."""
        ...


def _nothing() -> str:
    return ""


def progress(
    console: Console,
    total: int,
    *,
    note: Callable[[], str] = _nothing,
    clock: Callable[[], float] = time.monotonic,
) -> Progress:
    """Progress that suits the console.

    Args:
        console: Where to; standard error, so that standard output holds the result only.
        total: Cells to come; 0 if that is not known.
        note: What else to say at every step, such as what it has cost so far.
        clock: Seconds from any start, rising.
    """
    live = console.is_terminal and not console.is_dumb_terminal
    return (LiveProgress if live else LinesProgress)(console, total, note=note, clock=clock)


class _Counts:
    """How many cells ended, how, and when the last will."""

    def __init__(self, total: int, clock: Callable[[], float]) -> None:
        self.total = max(0, total)
        self._clock = clock
        self._start = clock()
        self.ended: dict[Outcome, int] = {"pass": 0, "fail": 0, "error": 0, "skipped": 0}

    def add(self, cell: CellRecord) -> None:
        self.ended[outcome(cell)] += 1

    @property
    def done(self) -> int:
        return sum(self.ended.values())

    @property
    def left(self) -> str:
        """The time left if the rest goes as before; empty where that cannot be said.

        Where everything failed so far, the rest is not hoped to go as before.
        """
        if self.done <= self.ended["error"] or self.done >= self.total:
            return ""
        elapsed = self._clock() - self._start
        return f"about {duration(elapsed / self.done * (self.total - self.done))} left"

    def parts(self) -> list[Part]:
        """Passed, failed and, where there are any, errors and skipped cells."""
        words: dict[Outcome, str] = {
            "pass": "passed",
            "fail": "failed",
            "error": "not graded",
            "skipped": "skipped",
        }
        parts: list[Part] = []
        for state, word in words.items():
            number = self.ended[state]
            if number or state in ("pass", "fail"):
                text = f"{GLYPHS[state]} {number:,} {word}"
                parts += ["  " if parts else "", (text, STYLES[state] if number else "dim")]
        return parts


class LinesProgress:
    """Plain lines: one whenever another 10 % of the cells have ended."""

    def __init__(
        self,
        console: Console,
        total: int,
        *,
        note: Callable[[], str] = _nothing,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._page = Page(console)
        self._counts = _Counts(total, clock)
        self._note = note
        self._printed = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing to restore."""

    def cell(self, cell: CellRecord) -> None:
        """Count one cell; write a line if another tenth is full."""
        self._counts.add(cell)
        done, total = self._counts.done, self._counts.total
        # Of an unknown total, every hundredth cell stands for a tenth.
        tenths = 10 * done // total if total else done // 100
        if tenths <= self._printed:
            return
        self._printed = tenths
        share = (
            f"{100 * done // total:>3} %  {done:,} of {total:,} cells"
            if total
            else f"{done:,} cells"
        )
        said = _joined(self._counts.left, self._note())
        self._page.line(f"{share}  ", *self._counts.parts(), said)


class LiveProgress:
    """A bar that is redrawn in place and gone at the end."""

    def __init__(
        self,
        console: Console,
        total: int,
        *,
        note: Callable[[], str] = _nothing,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, RenderableColumn
        from rich.progress import Progress as RichProgress

        self._page = Page(console)
        self._counts = _Counts(total, clock)
        self._note = note
        bar = self

        class Said(RenderableColumn):
            """Asked at every redrawing: what there is to say changes also while no cell ends."""

            def render(self, task: Task) -> RenderableType:
                del task
                return bar.said()

        self._bar: RichProgress = RichProgress(
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            Said(),
            console=console,
            transient=True,
            get_time=clock,
        )
        self._task: TaskID = self._bar.add_task("", total=total or None)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the bar away, whatever happened."""
        self._bar.stop()

    def cell(self, cell: CellRecord) -> None:
        """Count one cell and redraw."""
        self._counts.add(cell)
        self._bar.update(self._task, advance=1)

    def said(self) -> Text:
        """What stands beside the bar; nothing until there is something to say."""
        parts = self._counts.parts() if self._counts.done else []
        return self._page.text(*parts, _joined(self._counts.left, self._note()))


def _joined(*words: str) -> str:
    return "".join(f"  {word}" for word in words if word)
