"""Carrying out a job: what has no score yet is graded, and stored as it comes.

A job belongs to the worker that holds its lease, and to nobody once the lease has run out: a worker
that could not renew it stops. Scores are stored a batch at a time or, where graders wait for models
that cost money, row by row; whoever takes the job over grades only what has no score yet.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import takewhile
from typing import Any, TypeAlias, TypeVar

from assay.errors import StoreError
from assay.graders.driver import in_batches, run_batches
from assay.registry.definitions import definition_of
from assay.registry.grading import Items, grade_rows, grade_version
from assay.scoring.graded import Graded
from assay.service.graders import version_to_run
from assay.service.operation import Desk
from assay.store.catalog import GraderVersion
from assay.store.datasets import DatasetRow, Datasets
from assay.store.jobs import JobRecord, Jobs
from assay.store.pages import Page, Stretch
from assay.store.scores import ScoreRecord

T = TypeVar("T")

_STRETCH = 8
"""How many batches of rows are read at once where they are graded one by one."""
_PAGE_ROWS = 1_000
_MOST_ROWS = 8 * _PAGE_ROWS

Outcomes: TypeAlias = "list[tuple[int, ScoreRecord]]"
"""Number and outcome of rows, as `Jobs.add_scores` takes them."""


def waits(version: GraderVersion) -> bool:
    """Whether a version mostly waits for somebody else, such as a model."""
    return any(spec.kind.grader.waits for spec in definition_of(version).specs)


@dataclass
class JobWork(ABC):
    """One job, in the hands of a worker that has claimed it.

    Attributes:
        job: The job.
        owner: The worker.
        lease_seconds: How long it is the worker's without a sign of life.
        batch: Rows under way at a time; what is lost, and graded again, after a crash.
        depth: How many batches are under way at least.
    """

    job: JobRecord
    owner: str
    lease_seconds: float
    batch: int = 64
    depth: int = 1
    is_lost: bool = field(default=False, init=False)

    @abstractmethod
    async def run(self, work: Callable[[Desk], T]) -> T:
        """Do something at a desk of the job's project."""

    @property
    def is_closing(self) -> bool:
        """Whether no more may be begun; what is under way ends, and the rest is left."""
        return False

    async def turn(
        self, version: GraderVersion, work: Callable[[], Coroutine[Any, Any, None]]
    ) -> bool:
        """Grade for seconds, when it is the project's turn.

        Returns:
            Whether it was done; if not, it is to be tried again, and some of it may be stored.
        """
        del version
        await work()
        return True

    async def grade(self, version: GraderVersion, items: Items) -> list[Graded]:
        """Grade some rows, within a turn."""
        permissions = await self.run(lambda desk: desk.permissions)
        return await grade_version(version, items, permissions)

    async def carry_out(self) -> JobRecord | None:
        """Grade what has no score yet.

        Returns:
            The job, which is finished; None where it is not: it was cancelled or is another
            worker's now, or the place closes.
        """
        grading = asyncio.create_task(self._grade())
        keeping = asyncio.create_task(self._keep(grading))
        try:
            return await grading
        except asyncio.CancelledError:
            if self.is_lost:
                return None
            raise
        finally:
            keeping.cancel()
            with suppress(asyncio.CancelledError):
                await keeping

    async def _ask(self, ask: Callable[[Jobs], T]) -> T:
        return await self.run(lambda desk: ask(Jobs(desk.database)))

    async def _keep(self, grading: asyncio.Task[JobRecord | None]) -> None:
        """Renew the lease for as long as it is ours, and end the grading when it is not."""
        seconds, clock = self.lease_seconds, asyncio.get_running_loop().time
        ends = clock() + seconds
        while True:
            await asyncio.sleep(min(seconds / 6, 2.0))
            asked = clock()
            try:
                async with asyncio.timeout_at(ends):
                    held = await self._ask(
                        lambda jobs: jobs.renew(self.job.id, self.owner, seconds, datetime.now(UTC))
                    )
                ends = asked + seconds
            except StoreError:
                held = clock() < ends  # the next batch finds out, too
            except TimeoutError:
                held = False
            if not held:
                self.is_lost = True
                grading.cancel()
                return

    async def _grade(self) -> JobRecord | None:
        job = self.job
        version = await self.run(lambda desk: version_to_run(desk, job.grader, job.version))
        graded = await self._graded()
        # Rows that wait for somebody else are graded each on its own, many at once.
        is_waiting = waits(version)
        size, at_once = (1, max(self.batch, self.depth)) if is_waiting else (self.batch, self.depth)
        limit = self.batch * (_STRETCH if is_waiting else 1)
        if self.depth > 1:
            limit = max(limit, min(2 * size * at_once, _MOST_ROWS))
        after = 0
        while not self.is_closing:
            rows = await self._rows(after, limit)
            if not rows:
                return await self._ask(lambda jobs: jobs.finish(job.id, "finished"))
            if todo := [row for row in rows if row.number not in graded]:
                stretch = partial(self._stretch, version, in_batches(todo, size), at_once)
                if not await self.turn(version, stretch):
                    graded = await self._graded()
                    continue
            after = rows[-1].number
        await self._ask(lambda jobs: jobs.release(job.id, self.owner))
        return None

    async def _graded(self) -> set[int]:
        return await self._ask(lambda jobs: jobs.graded_rows(self.job.id))

    async def _rows(self, after: int, limit: int) -> list[DatasetRow]:
        def page(desk: Desk) -> Page[DatasetRow]:
            first, most = found[-1].number if found else after, min(limit - len(found), _PAGE_ROWS)
            rows = Datasets(desk.database)
            return rows.rows(self.job.project, self.job.dataset, Stretch(most, first))

        found: list[DatasetRow] = []
        while len(found) < limit and (rows := await self.run(page)):
            found += rows
            if len(rows) < _PAGE_ROWS:  # they are large, and enough for now
                break
        return found

    async def _stretch(
        self, version: GraderVersion, batches: Iterable[Sequence[DatasetRow]], at_once: int
    ) -> None:
        """Grade batches of rows, and store what came of each in one transaction as it ends."""

        async def grade(rows: Sequence[DatasetRow]) -> Outcomes:
            return await grade_rows(version, rows, partial(self.grade, version))

        async def keep(_: Sequence[DatasetRow], scores: Outcomes) -> None:
            try:
                await self._ask(lambda jobs: jobs.add_scores(self.job.id, scores))
            except StoreError:
                await self._ask(lambda jobs: jobs.add_scores(self.job.id, scores))  # perhaps paid

        # Told to stop it begins no more; those under way were asked, and are paid for.
        rest = takewhile(lambda _: not self.is_closing, batches)
        await run_batches(rest, grade, keep, at_once=at_once)
