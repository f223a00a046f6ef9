"""Rows that are graded each on its own, by graders that wait for somebody else, such as a model."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeAlias

from assay.graders.judges.panel import together
from assay.store.catalog_records import DatasetRow, ScoreRecord

__all__ = ["Outcomes", "RowByRow"]

Outcomes: TypeAlias = "list[tuple[int, ScoreRecord]]"
"""Number and outcome of rows, as `Jobs.add_scores` takes them."""


class RowByRow:
    """Grades rows, a few at once, and hands over what is done while the others are under way.

    It works on a loop and a thread of its own, so that a grader that computes after all holds up
    nobody's request.

    Args:
        rows: The rows.
        grade: Grades one; it is called in that thread.
        at_once: How many are under way at a time.
    """

    def __init__(
        self,
        rows: Sequence[DatasetRow],
        grade: Callable[[DatasetRow], Awaitable[Outcomes]],
        at_once: int,
    ) -> None:
        self._rows = deque(rows)
        self._grade = grade
        self._at_once = at_once
        self._done: deque[tuple[int, ScoreRecord]] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._working: asyncio.Task[list[None]] | None = None

    async def run(self) -> None:
        """Work until all rows are graded, or those under way after `end`.

        Raises:
            AssayError: The first that a row brought; no further row is begun then.
        """
        await asyncio.to_thread(lambda: asyncio.run(self._work()))

    def taken(self) -> Outcomes:
        """What was done since this was asked last."""
        return [self._done.popleft() for _ in range(len(self._done))]

    def end(self) -> None:
        """Begin no further row."""
        self._rows.clear()

    def stop(self) -> None:
        """Begin no further row, and give up those under way."""
        self.end()
        if self._loop is not None and self._working is not None:
            with suppress(RuntimeError):  # its loop has ended meanwhile
                self._loop.call_soon_threadsafe(self._working.cancel)

    async def _work(self) -> None:
        count = min(self._at_once, len(self._rows))
        calls = [self._one_by_one() for _ in range(count)]
        self._working = asyncio.create_task(together(calls))
        self._loop = asyncio.get_running_loop()
        with suppress(asyncio.CancelledError):
            await self._working

    async def _one_by_one(self) -> None:
        while (row := self._next()) is not None:
            try:
                self._done.extend(await self._grade(row))
            except BaseException:
                self.end()
                raise

    def _next(self) -> DatasetRow | None:
        try:
            return self._rows.popleft()
        except IndexError:  # also where another thread has just cleared it
            return None
