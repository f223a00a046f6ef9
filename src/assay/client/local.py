"""The operations on a store of one's own, without a server."""

from __future__ import annotations

import os
import weakref
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TypeVar

from assay.client.scope import Rows
from assay.errors import InputError, Location, StoreError
from assay.scoring.json_safe import Json
from assay.service.graders import create_grader, import_graders
from assay.service.job_work import JobWork
from assay.service.jobs import show_job
from assay.service.local import ask, local_desk
from assay.service.operation import Desk, Operation
from assay.service.scores import add_scores
from assay.store import Database, DatasetRecord, Datasets, JobRecord, Jobs, Projects
from assay.tasks.rows import read_row

T = TypeVar("T")

_LEASE_SECONDS = 120.0


class LocalBackend:
    """A store; it belongs to the thread that uses it first.

    Args:
        location: A directory, or a ``postgresql://`` address.
    """

    def __init__(self, location: str) -> None:
        self._database = database = Database.open(location)
        self._finish = weakref.finalize(self, _let_go, database)

    async def call(
        self, operation: Operation[..., T], project: str, given: Mapping[str, object]
    ) -> T:
        """Carry out an operation."""
        if operation in (create_grader, import_graders):
            Projects(self._database).ensure(project)
        if operation is add_scores:
            given = {"source": "sdk", **given}
        return await ask(operation, self._desk(project), **given)

    async def create_dataset(self, project: str, key: str, name: str, rows: Rows) -> DatasetRecord:
        """Store a dataset."""
        Projects(self._database).ensure(project)
        made = Datasets(self._database).create(project, key, name, _readable(rows))
        self._desk(project).note("create_dataset", {"key": key, "name": name})
        return made

    async def begin(self, job: JobRecord) -> JobRecord:
        """Carry a job out, now; interrupted, it is finished by the next job of this store."""
        jobs, owner = Jobs(self._database), f"local:{os.getpid()}"
        while True:
            claimed = jobs.claim(owner, _LEASE_SECONDS, datetime.now(UTC))
            if claimed is None:
                return jobs.get(job.id)
            await self._carry_out(claimed, owner)

    async def follow(self, project: str, job: str) -> AsyncIterator[JobRecord]:
        """The job; without a server it has ended when it was made."""
        yield await self.call(show_job, project, {"job": job})

    async def close(self) -> None:
        """Give the database back."""
        self._finish.detach()
        self._database.close()

    def _desk(self, project: str) -> Desk:
        return local_desk(self._database, project)

    async def _carry_out(self, job: JobRecord, owner: str) -> None:
        jobs = Jobs(self._database)
        try:
            await _JobHere(self._desk(job.project), job, owner).carry_out()
        except InputError as error:
            jobs.finish(job.id, "failed", str(error))
        except BaseException:
            jobs.release(job.id, owner)
            raise


class _JobHere(JobWork):
    """A job that whoever made it carries out, in the thread that has the database."""

    def __init__(self, desk: Desk, job: JobRecord, owner: str) -> None:
        super().__init__(job, owner, _LEASE_SECONDS)
        self._desk = desk

    async def run(self, work: Callable[[Desk], T]) -> T:
        return work(self._desk)


def _let_go(database: Database) -> None:
    """Close the database of a client that was forgotten."""
    with suppress(StoreError):  # another thread's, where the collector happened to run
        database.close()


def _readable(rows: Rows) -> Iterator[Mapping[str, Json]]:
    """The rows, each known to be one that can be graded."""
    for number, row in enumerate(rows, 1):
        read_row(row, number, Location(line=number))
        yield row
