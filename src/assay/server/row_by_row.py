"""Rows that are graded each on its own, by graders that wait for somebody else, such as a model."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from typing import TypeAlias

from assay.eval.batch import run_batches
from assay.store.datasets import DatasetRow
from assay.store.scores import ScoreRecord

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
        self._working: asyncio.Task[None] | None = None

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
        self._loop = asyncio.get_running_loop()
        self._working = asyncio.create_task(
            run_batches(self._rest(), self._grade, self._keep, at_once=self._at_once)
        )
        with suppress(asyncio.CancelledError):
            await self._working

    def _rest(self) -> Iterator[DatasetRow]:
        with suppress(IndexError):  # none is left, also where another thread has just cleared them
            while True:
                yield self._rows.popleft()

    def _keep(self, row: DatasetRow, outcomes: Outcomes) -> None:
        del row
        self._done.extend(outcomes)
