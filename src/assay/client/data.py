"""``client.datasets``, ``traces``, ``jobs`` and ``scores``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from datetime import datetime
from pathlib import Path

from assay.client.asking import M_co, Part, ask, ask_all, by_hand, like, steps_like
from assay.client.scope import Item, Rows, rows_of
from assay.errors import InputError
from assay.service import datasets, jobs, scores, traces
from assay.store import DatasetRecord, JobRecord


class DatasetsPart(Part[M_co]):
    """Rows that are stored once and graded as often as one likes."""

    called = "datasets"

    get = ask(datasets.show_dataset)
    list = ask_all(datasets.list_datasets)
    rows = ask(datasets.list_rows)
    delete = ask(datasets.delete_dataset)

    @by_hand
    async def create(
        self, key: str, rows: Iterable[Item] | str, *, name: str = "", project: str | None = None
    ) -> DatasetRecord:
        """Store a dataset.

        Args:
            key: What it is called.
            rows: The rows, or the path of a file of them.
            name: For people.
            project: The project; the client's by default.

        Raises:
            ConflictError: The key is taken.
            InputError: A row is malformed, named by its number; nothing is stored.
        """
        where = self._scope.project(project)
        given = _file_rows(rows) if isinstance(rows, str) else rows_of(rows)
        return await self._scope.backend.create_dataset(where, key, name, given)


class TracesPart(Part[M_co]):
    """What tracers sent to a server, until datasets are made of it."""

    called = "traces"

    list = ask_all(traces.list_traces)
    get = ask(traces.show_trace)
    collect = ask(traces.collect_traces)
    delete = ask(traces.delete_trace)

    @by_hand
    async def delete_older(self, before: datetime, *, project: str | None = None) -> int:
        """Delete the traces to which nothing was added since; how many there were."""
        when = before.isoformat()
        return (await self._scope.call(traces.delete_traces, when, project=project)).deleted


class JobsPart(Part[M_co]):
    """Gradings of whole datasets; they survive a restart of what runs them."""

    called = "jobs"

    get = ask(jobs.show_job)
    list = ask_all(jobs.list_jobs)
    summary = ask(jobs.show_job_summary)
    results = ask(jobs.list_results)
    cancel = ask(jobs.cancel_job)
    delete = ask(jobs.delete_job)

    @like(jobs.create_job)
    async def create(self, **given: object) -> JobRecord:
        """Grade a dataset with a grader, pinned to a version (the newest by default).

        On a server the job waits its turn there; without one it is run before this returns.
        """
        return await self._scope.backend.begin(await self.ask(jobs.create_job, given))

    @steps_like(jobs.show_job)
    async def follow(self, job: str, *, project: str | None = None) -> AsyncIterator[JobRecord]:
        """The job again and again as it gets on, until it has ended."""
        async for step in self._scope.backend.follow(self._scope.project(project), job):
            yield step

    @by_hand
    async def wait(self, job: str, *, project: str | None = None) -> JobRecord:
        """Wait until a job has ended, and return it."""
        found: JobRecord | None = None
        async for step in self._scope.backend.follow(self._scope.project(project), job):
            found = step
        return found or await self._scope.call(jobs.show_job, job, project=project)


class ScoresPart(Part[M_co]):
    """What graders gave, and what people or programs write in."""

    called = "scores"

    add = ask(scores.add_scores, lambda found: found.stored)
    list = ask(scores.list_scores)
    delete = ask(scores.delete_scores, lambda found: found.deleted)


def _file_rows(file: str) -> Rows:
    """The rows of a file, read as they are needed, each checked as a row."""
    from assay.tasks.rows import read_rows

    if not Path(file).is_file():
        raise InputError(
            f"there is no file {file!r}", hint="give rows, or the path of a file of them"
        )
    return (row.fields for row in read_rows(file))
