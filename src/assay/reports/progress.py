"""Progress of any piece of work."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Self

from assay.reports.figures import count, duration
from assay.reports.outcome import WORDS, Ended, counted, ended
from assay.reports.page import STYLES, Line, Part, TextPage
from assay.reports.plain import one_line
from assay.scoring.graded import Graded
from assay.store.records import CellKey, CellRecord

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress as RichProgress
    from rich.progress import Task, TaskID


class Progress:
    """Is told of each cell as it ends.

    On a terminal it is a bar that is redrawn in place and gone at the end; elsewhere it writes a
    plain line whenever another 10 % have ended.
    """

    def __init__(
        self,
        page: TextPage,
        total: int,
        *,
        before: int = 0,
        things: str = "cells",
        note: Callable[[], str] = str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._page = page
        self._total = max(0, total)
        self._before = before
        self._things = things
        self._note = note
        self._clock = clock
        self._start = self._latest = clock()
        self._running: dict[CellKey, None] = {}
        self._ended: Counter[Ended] = Counter()
        self._printed = self._tenths()
        self._bar: RichProgress | None = None
        self._task: TaskID

    def __enter__(self) -> Self:
        if self._page.is_live:
            self._draw()
        return self

    def __exit__(self, *raised: object) -> None:
        """Leave the page as it was, whatever happened."""
        if self._bar is not None:
            self._bar.stop()

    def _draw(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, RenderableColumn
        from rich.progress import Progress as RichProgress
        from rich.text import Text

        shown = self

        class Said(RenderableColumn):
            """Asked at every redrawing: what there is to say changes also while no cell ends."""

            def render(self, task: Task) -> RenderableType:
                del task
                return Text.assemble(*shown.beside())

        self._bar = RichProgress(
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            Said(),
            console=self._page.console,
            transient=True,
            get_time=self._clock,
        )
        self._task = self._bar.add_task("", total=self._total or None, completed=self._before)
        self._bar.start()

    def add(self, states: Iterable[Ended]) -> None:
        """Count what has ended, and show it."""
        self._ended.update(states)
        self._latest = self._clock()
        done, total = self.done, self._total
        if self._bar is not None:
            self._bar.update(self._task, completed=done)
            return
        if (tenths := self._tenths()) <= self._printed:
            return
        self._printed = tenths
        share = count(total or done, self._things.removesuffix("s"))
        if total:
            share = f"{100 * done // total:>3} %  {done:,} of {share}"
        self._page.line(f"{share}  ", *self.parts(), self.said())

    def begin(self, key: CellKey) -> None:
        """Note that a cell began, to say what is under way until it has ended."""
        self._running[key] = None

    def running(self) -> str:
        """What is under way: that which began first, and how many more."""
        if not self._running:
            return ""
        *names, _ = next(iter(self._running))
        more = f" and {len(self._running) - 1} more" if len(self._running) > 1 else ""
        return one_line(" · ".join(filter(None, names)), 48) + more

    def _tenths(self) -> int:
        # Of an unknown total, every hundredth cell stands for a tenth.
        return 10 * self.done // self._total if self._total else self.done // 100

    def cell(self, cell: CellRecord) -> None:
        """Count one cell."""
        self._running.pop(cell.key, None)
        self.add([ended(cell)])

    def graded(self, graded: Graded) -> None:
        """Count an outcome that no threshold was applied to."""
        self.add([graded.status])

    @property
    def done(self) -> int:
        """What has ended, also before."""
        return self._before + self._ended.total()

    def time_left(self) -> str:
        """The time left if the rest goes as before; empty where that cannot be said.

        Where everything failed so far, the rest is not hoped to go as before. Between two ends it
        only runs down, and what takes longer than all that was left is not guessed at any more.
        """
        now = self._ended.total()
        if now <= self._ended["error"] or self.done >= self._total:
            return ""
        elapsed = self._latest - self._start
        left = elapsed / now * (self._total - self.done) - (self._clock() - self._latest)
        return f"about {duration(left)} left" if left >= 0.05 else ""

    def parts(self) -> list[Part]:
        """How many ended in which way, now; passed and failed ones also where there are none."""
        has_scores = bool(self._ended["scored"])
        parts: list[Part] = [(f"{self._before:,} before", "dim")] if self._before else []
        for state in WORDS:
            number = self._ended[state]
            if number or (state in ("pass", "fail") and not has_scores):
                style = STYLES[state] if number else "dim"
                parts += ["  " if parts else "", (counted(state, number), style)]
        return parts

    def said(self) -> str:
        """The time left and the note."""
        said = (self.time_left(), self._note(), self.running())
        return "".join(f"  {word}" for word in said if word)

    def beside(self) -> Line:
        """What stands beside the bar; nothing until there is something to say."""
        (line,) = self._page.text(*(self.parts() if self._ended else []), self.said())
        return line
