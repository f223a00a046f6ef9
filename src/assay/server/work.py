"""Jobs: stored datasets that are graded in the background, and go on after any stop.

A job belongs to the server that holds its lease, and to nobody once the lease has run out: a server
that could not renew it stops. Scores are stored a batch at a time or, where graders wait for models
that cost money, as they come; whoever takes the job over grades only what has no score yet.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Literal

from assay.errors import AssayError, ConflictError, StoreError
from assay.registry import definition_from
from assay.registry.stored_rows import grade_rows
from assay.server.context import Context
from assay.server.grading import grade_items, registry_of, version_of
from assay.server.problems import ProblemError
from assay.server.row_by_row import Outcomes, RowByRow
from assay.store.catalog import GraderVersion
from assay.store.database import Database
from assay.store.datasets import DatasetRow, Datasets
from assay.store.jobs import JobRecord, Jobs

__all__ = ["Workers"]

_PATIENCE_SECONDS = 20.0
_STORE_SECONDS = 0.5
"""How often scores are stored that come one by one."""
_STRETCH = 8
"""How many batches of rows are read at once where they are graded one by one."""

_LOG = logging.getLogger("assay.server")


class Workers:
    """Works on jobs, a few at a time, until the server stops.

    Args:
        server: The server.
    """

    def __init__(self, server: Context) -> None:
        self._server = server
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin."""
        name = f"{os.uname().nodename}:{os.getpid()}:{secrets.token_hex(4)}"
        slots = range(self._server.settings.job_slots)
        self._tasks = [
            asyncio.create_task(_Worker(self._server, f"{name}:{n}").work()) for n in slots
        ]

    async def stop(self) -> None:
        """Wait until the batches in flight are stored, but not for one that takes very long."""
        if not self._tasks:
            return
        _, late = await asyncio.wait(self._tasks, timeout=_PATIENCE_SECONDS)
        for task in late:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class _Worker:
    """Works on one job at a time.

    Args:
        server: The server.
        owner: Names the worker; no other one has the name.
    """

    def __init__(self, server: Context, owner: str) -> None:
        self._server = server
        self._settings = server.settings
        self._owner = owner
        self._left = ""

    async def work(self) -> None:
        """Look for jobs and carry them out until the server stops."""
        is_away = False
        while not self._server.stopping.is_set():
            try:
                job = await self._server.storage.run(self._claim)
                is_away = False
                if job is not None:
                    self._left = job.id
                    await self._carry_out(job)
                    self._left = ""
                    continue
            except StoreError as error:
                if not is_away:
                    _LOG.error("jobs wait for the database: %s", error)
                is_away = True
            await self._pause()

    async def _pause(self) -> None:
        """Wait for a new job, for the server's end, or a moment."""
        events = (self._server.wake, self._server.stopping)
        waits = [asyncio.create_task(event.wait()) for event in events]
        await asyncio.wait(
            waits, timeout=self._settings.poll_seconds, return_when=asyncio.FIRST_COMPLETED
        )
        for wait in waits:
            wait.cancel()
        self._server.wake.clear()

    def _claim(self, database: Database) -> JobRecord | None:
        now = datetime.now(UTC)
        if self._left:  # the database went away while we had it
            Jobs(database).release(self._left, self._owner)
            self._left = ""
        return Jobs(database).claim(self._owner, self._settings.lease_seconds, now)

    async def _carry_out(self, job: JobRecord) -> None:
        """Grade what has no score yet; what cannot go on, and why, is written into the job."""
        grading = asyncio.create_task(self._grade(job))
        keeping = asyncio.create_task(self._keep(job.id, grading))
        try:
            await grading
        except asyncio.CancelledError:
            _LOG.info("job %s was cancelled, or is another server's now", job.id)
        except StoreError:
            raise  # the database is away: whoever has it again first goes on
        except ConflictError as error:
            _LOG.info("job %s ends here: %s", job.id, error)
        except (AssayError, ProblemError) as error:
            detail = error.detail if isinstance(error, ProblemError) else str(error)
            await self._finish(job.id, "failed", detail)
        except Exception as error:  # the boundary: a job that breaks must not end the others
            _LOG.exception("job %s broke", job.id)
            await self._finish(job.id, "failed", f"an error of ours: {type(error).__name__}")
        finally:
            keeping.cancel()
            with suppress(asyncio.CancelledError):
                await keeping

    async def _keep(self, job: str, grading: asyncio.Task[None]) -> None:
        """Renew the lease for as long as it is ours, and end the grading when it is not."""
        seconds, clock = self._settings.lease_seconds, asyncio.get_running_loop().time
        ends = clock() + seconds
        while True:
            await asyncio.sleep(min(seconds / 6, 2.0))
            asked = clock()
            try:
                async with asyncio.timeout_at(ends):
                    held = await self._server.storage.run(
                        lambda database: Jobs(database).renew(
                            job, self._owner, seconds, datetime.now(UTC)
                        )
                    )
                ends = asked + seconds
            except StoreError:
                held = clock() < ends  # the next batch finds out, too
            except TimeoutError:
                held = False
            if not held:
                grading.cancel()
                return

    async def _grade(self, job: JobRecord) -> None:
        storage, stopping = self._server.storage, self._server.stopping

        def begin(database: Database) -> tuple[GraderVersion, set[int]]:
            version = version_of(database, job.project, job.grader, job.version, self._server)
            return version, Jobs(database).graded_rows(job.id)

        version, graded = await storage.run(begin)
        grade, limit = self._batch, self._settings.job_batch
        if _waits(version):
            grade, limit = self._row_by_row, limit * _STRETCH
        after = 0
        while not stopping.is_set():
            rows = await self._rows(job, after, limit)
            if not rows:
                await self._finish(job.id, "finished")
                return
            after = rows[-1].number
            todo = [row for row in rows if row.number not in graded]
            if todo:
                await grade(job, version, todo)
        await storage.run(lambda database: Jobs(database).release(job.id, self._owner))

    async def _rows(self, job: JobRecord, after: int, limit: int) -> list[DatasetRow]:
        return await self._server.storage.run(
            lambda database: Datasets(database).rows(
                job.project, job.dataset, after=after, limit=limit
            )
        )

    async def _batch(
        self, job: JobRecord, version: GraderVersion, rows: Sequence[DatasetRow]
    ) -> None:
        """Grade some rows and store what came of all of them in one transaction."""

        async def work(database: Database) -> None:
            scores = await grade_rows(
                version, rows, lambda items: grade_items(database, version, items, self._server)
            )
            Jobs(database).add_scores(job.id, scores)

        await self._server.storage.follow(work)

    async def _row_by_row(
        self, job: JobRecord, version: GraderVersion, rows: Sequence[DatasetRow]
    ) -> None:
        """Grade rows each on its own, and store what has come of them every moment."""
        registry = await self._server.storage.run(
            lambda database: registry_of(database, version.project, self._server)
        )

        async def grade(row: DatasetRow) -> Outcomes:
            return await grade_rows(
                version, [row], lambda items: registry.grade_with(version, items)
            )

        at_work = RowByRow(rows, grade, self._settings.job_batch)
        working = asyncio.create_task(at_work.run())
        since = time.perf_counter()
        done: Outcomes = []  # and not yet stored: what could not be stored is tried once more

        async def store() -> None:
            nonlocal since
            done.extend(at_work.taken())
            if scores := list(done):
                await self._server.storage.run(
                    lambda database: Jobs(database).add_scores(job.id, scores)
                )
                done.clear()
                graded = [score.graded for _, score in scores]
                seconds, since = time.perf_counter() - since, time.perf_counter()
                self._server.metrics.graded(version.kind, graded, seconds)

        try:
            while not working.done():
                await asyncio.wait({working}, timeout=_STORE_SECONDS)
                if self._server.stopping.is_set():
                    at_work.end()  # those under way were asked, and are paid for
                await store()
            await store()  # rows that ended while others were being stored
        except BaseException:
            at_work.stop()
            with suppress(ConflictError, StoreError):
                await store()
            raise
        finally:
            working.add_done_callback(_look_at)
        await working

    async def _finish(
        self, job: str, status: Literal["finished", "failed"], message: str = ""
    ) -> None:
        await self._server.storage.run(lambda database: Jobs(database).finish(job, status, message))
        self._server.metrics.job(status)


def _waits(version: GraderVersion) -> bool:
    """Whether a grader mostly waits for somebody else, such as a model."""
    specs = definition_from(version.kind, version.definition).specs()
    return any(spec.kind.grader.waits for spec in specs)


def _look_at(ended: asyncio.Task[None]) -> None:
    """Take note of an error that nobody waits for any more."""
    if not ended.cancelled():
        ended.exception()
