"""Who works on jobs: a few at a time, by turns of their projects, until the server stops.

How one is carried out, whose it is, and what is lost by a crash: see `assay.service.job_work`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from assay.errors import AssayError, ConflictError, NotFoundError, StoreError
from assay.eval.cluster.actors import DEPTH
from assay.registry.grading import Items
from assay.scoring.graded import Graded
from assay.server.cluster import REST_SECONDS, ClusterAwayError
from assay.server.concurrency import lane_of
from assay.server.context import Context
from assay.server.limits import ProjectSlots
from assay.service.job_work import JobWork
from assay.service.operation import Desk
from assay.store.catalog import GraderVersion
from assay.store.database import Database
from assay.store.jobs import JobRecord, Jobs, JobStatus

T = TypeVar("T")

_LAST_SECONDS = 2.0

_LOG = logging.getLogger("assay.server")


class JobWorkers:
    """Works on jobs, a few at a time, until the server stops.

    Args:
        server: The server.
    """

    def __init__(self, server: Context) -> None:
        self._server = server
        self._settings = server.settings
        self._turns = ProjectSlots(server.settings.job_slots, 0, server.allowances.at_once)
        self._looking = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin."""
        name = f"{os.uname().nodename}:{os.getpid()}:{secrets.token_hex(4)}"
        owners = [f"{name}:{n}" for n in range(self._settings.job_slots)]
        self._tasks = [asyncio.create_task(self._work(owner)) for owner in owners]

    async def stop(self) -> None:
        """Wait until the batches in flight are stored, but not for one that takes very long."""
        if not self._tasks:
            return
        left = self._server.stopping.left(self._settings.limits.grace_seconds)
        _, late = await asyncio.wait(self._tasks, timeout=max(left, 0.0))
        for task in late:
            task.cancel()
        await asyncio.wait(self._tasks, timeout=_LAST_SECONDS)

    async def _work(self, owner: str) -> None:
        """Look for jobs and carry them out, one at a time, until the server stops."""
        is_away, left = False, ""
        while not self._server.stopping.is_set():
            try:
                if left:  # the database failed while we had it
                    await self._server.storage.run(partial(_release, left, owner))
                    left = ""
                job = await self._next(owner)
                is_away = False
                if job is not None:
                    left = job.id
                    try:
                        await self._carry_out(job, owner)
                    finally:
                        self._turns.give_back(job.project)
                    left = ""
            except StoreError as error:
                if not is_away:
                    _LOG.error("jobs wait for the database: %s", error)
                is_away = True
                await self._pause()

    async def _next(self, owner: str) -> JobRecord | None:
        """The next job, of a project that may have one more; None at the end."""
        async with self._looking:
            while not self._server.stopping.is_set():
                claim = partial(self._claim, owner, self._turns.sated())
                if (job := await self._server.storage.run(claim)) is not None:
                    await self._server.allowances.find(job.project)  # its limits hold for jobs too
                    self._turns.take(job.project)
                    return job
                await self._pause()
        return None

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

    def _claim(self, owner: str, but_not: Sequence[str], database: Database) -> JobRecord | None:
        now = datetime.now(UTC)
        return Jobs(database).claim(owner, self._settings.lease_seconds, now, but_not=but_not)

    async def _carry_out(self, job: JobRecord, owner: str) -> None:
        """Grade what has no score yet; what cannot go on, and why, is written into the job."""
        work = _Work(self._server, job, owner)
        try:
            self._count(await work.carry_out(), "finished")
        except StoreError:
            raise  # the database is away: whoever has it again first goes on
        except ConflictError as error:
            _LOG.info("job %s ends here: %s", job.id, error)
        except AssayError as error:
            await self._fail(job, str(error))
        except Exception as error:  # the boundary: a job that breaks must not end the others
            _LOG.exception("job %s broke", job.id)
            await self._fail(job, f"an error of ours: {type(error).__name__}")
        if work.is_lost:
            _LOG.info("job %s was cancelled, or is another server's now", job.id)

    async def _fail(self, job: JobRecord, why: str) -> None:
        try:
            failed = await self._server.storage.run(
                lambda database: Jobs(database).finish(job.id, "failed", why)
            )
        except NotFoundError:
            _LOG.info("job %s was deleted while it was graded", job.id)
        else:
            self._count(failed, "failed")

    def _count(self, job: JobRecord | None, status: JobStatus) -> None:
        if job is not None and job.status == status:  # else it was cancelled meanwhile
            self._server.metrics.job(status, job.project)


def _release(job: str, owner: str, database: Database) -> None:
    Jobs(database).release(job, owner, failed=True)


class _Work(JobWork):
    """A job on a server, with its database's thread, its lanes and its cluster."""

    def __init__(self, server: Context, job: JobRecord, owner: str) -> None:
        settings, cluster = server.settings, server.cluster
        depth = 1 if cluster is None else DEPTH * cluster.cores
        super().__init__(job, owner, settings.lease_seconds, settings.job_batch, depth)
        self._server = server
        self._said = ""

    @property
    def is_closing(self) -> bool:
        return self._server.stopping.is_set()

    async def run(self, work: Callable[[Desk], T]) -> T:
        server, project = self._server, self.job.project
        return await server.storage.run(lambda database: work(server.desk(database, project)))

    async def turn(
        self, version: GraderVersion, work: Callable[[], Coroutine[Any, Any, None]]
    ) -> bool:
        server, project = self._server, self.job.project
        await server.allowances.find(project)
        try:
            await server.lanes.run(lane_of(version), project, work, is_refused=False)
        except ClusterAwayError as error:
            await self._say(str(error))
            with suppress(TimeoutError):
                await asyncio.wait_for(server.stopping.wait(), REST_SECONDS)
            return False
        await self._say("")
        return True

    async def grade(self, version: GraderVersion, items: Items) -> list[Graded]:
        return await self._server.grade_for_job(version, items)

    async def _say(self, message: str) -> None:
        """Write into the job what it waits for."""
        if message != self._said:
            if message:
                _LOG.warning("job %s %s", self.job.id, message)
            await self.run(lambda desk: Jobs(desk.database).note(self.job.id, self.owner, message))
            self._said = message
