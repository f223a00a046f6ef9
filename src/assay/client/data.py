"""``client.datasets``, ``traces``, ``jobs`` and ``scores``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from assay.client.scope import Item, Rows, Scope, checked_calls, every, rows_of
from assay.errors import InputError
from assay.scoring.json_safe import Json
from assay.service import data as operations
from assay.service import results as result_operations
from assay.service import rows as row_operations
from assay.service import traces as trace_operations
from assay.service.data import Results
from assay.service.pages import Page
from assay.service.traces import TraceDetail

if TYPE_CHECKING:
    from assay.scoring.results import Status
    from assay.service.results import JobsCompared, JobSummary, ResultDetail, ResultWindow
    from assay.service.rows import RowDetail, RowsRead, RowWindow
    from assay.store import DatasetRecord, DatasetRow, JobRecord, ScoreRecord
    from assay.store.datasets import DatasetUse
    from assay.store.jobs import JobStatus
    from assay.store.traces import TraceRecord


@checked_calls("datasets")
class AsyncDatasets:
    """Rows that are stored once and graded as often as one likes."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def create(
        self,
        key: str,
        rows: Iterable[Item] | str,
        *,
        name: str = "",
        project: str | None = None,
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

    async def get(self, key: str, *, project: str | None = None) -> DatasetRecord:
        """A dataset's record.

        Raises:
            NotFoundError: There is none.
        """
        return await self._scope.call(operations.show_dataset, project, key)

    async def list(self, *, project: str | None = None) -> list[DatasetRecord]:
        """All datasets of a project, by key."""
        return await every(
            lambda cursor: self._scope.call(
                operations.list_datasets, project, limit=200, cursor=cursor
            )
        )

    async def rows(
        self, key: str, *, limit: int = 100, cursor: str = "", project: str | None = None
    ) -> Page[DatasetRow]:
        """A part of its rows, in order."""
        return await self._scope.call(
            operations.list_rows, project, key, limit=limit, cursor=cursor or None
        )

    async def window(
        self, key: str, *, offset: int = 0, limit: int = 50, project: str | None = None
    ) -> RowWindow:
        """Rows from any place on, each on a line as graders are given it, and how many there are.

        Args:
            key: The dataset.
            offset: How many are left out before them.
            limit: Most of them, up to 100.
            project: The project; the client's by default.
        """
        return await self._scope.call(
            row_operations.show_rows, project, key, offset=offset, limit=limit
        )

    async def row(self, key: str, number: int, *, project: str | None = None) -> RowDetail:
        """One row, by its number from 1: as graders are given it, and as it came.

        Raises:
            NotFoundError: There is none.
        """
        return await self._scope.call(row_operations.show_row, project, key, number)

    async def use(self, key: str, *, project: str | None = None) -> DatasetUse:
        """What depends on a dataset: what would be cancelled with it, and what stays.

        Raises:
            NotFoundError: There is none.
        """
        return await self._scope.call(row_operations.show_dataset_use, project, key)

    async def preview(self, lines: str, *, mapping: Mapping[str, str] | None = None) -> RowsRead:
        """How the first lines of a file would be read as rows; nothing is stored.

        Args:
            lines: Lines of JSON, the first 50 of which are read.
            mapping: Our names of fields, each with the one that the rows have.
        """
        names = None if mapping is None else dict(mapping)
        return await self._scope.backend.call(row_operations.read_lines, "", lines, names)

    async def delete(self, key: str, *, force: bool = False, project: str | None = None) -> None:
        """Delete a dataset.

        Raises:
            NotFoundError: There is none.
            ConflictError: A job uses it, and ``force`` was not given.
        """
        await self._scope.call(operations.delete_dataset, project, key, force=force)


@checked_calls("traces")
class AsyncTraces:
    """What tracers sent to a server, until datasets are made of it."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def list(self, *, project: str | None = None) -> list[TraceRecord]:
        """All traces of a project, newest first."""
        return await every(
            lambda cursor: self._scope.call(
                trace_operations.list_traces, project, limit=200, cursor=cursor
            )
        )

    async def get(self, trace: str, *, project: str | None = None) -> TraceDetail:
        """A trace as far as it has come, and the row that it would be.

        Raises:
            NotFoundError: There is none.
        """
        return await self._scope.call(trace_operations.show_trace, project, trace)

    async def collect(
        self,
        key: str,
        *,
        name: str = "",
        unfinished: bool = False,
        clear: bool = False,
        project: str | None = None,
    ) -> DatasetRecord:
        """Make a dataset of them, a row for each that is whole and has any ``gen_ai.*``.

        Args:
            key: What the dataset is called.
            name: For people.
            unfinished: Also those whose outermost span has not come.
            clear: Delete the traces that are now in it.
            project: The project; the client's by default.

        Raises:
            ConflictError: The key is taken.
            InputError: There is no such trace.
        """
        return await self._scope.call(
            trace_operations.collect_traces,
            project,
            key,
            name,
            unfinished=unfinished,
            clear=clear,
        )

    async def delete(self, trace: str, *, project: str | None = None) -> None:
        """Delete a trace.

        Raises:
            NotFoundError: There is none.
        """
        await self._scope.call(trace_operations.delete_trace, project, trace)

    async def delete_older(self, before: datetime, *, project: str | None = None) -> int:
        """Delete the traces to which nothing was added since; how many there were."""
        done = await self._scope.call(trace_operations.delete_traces, project, before.isoformat())
        return done.deleted


@checked_calls("jobs")
class AsyncJobs:
    """Gradings of whole datasets; they survive a restart of what runs them."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def create(
        self, grader: str, dataset: str, *, version: int | None = None, project: str | None = None
    ) -> JobRecord:
        """Grade a dataset with a grader, pinned to a version (the newest by default).

        On a server the job waits its turn there; without one it is run before this returns.
        """
        made = await self._scope.call(operations.create_job, project, grader, dataset, version)
        return await self._scope.backend.begin(made)

    async def delete(self, job: str, *, project: str | None = None) -> None:
        """Delete a job that has ended, with its scores.

        Raises:
            NotFoundError: There is none.
            ConflictError: It has not ended.
        """
        await self._scope.call(operations.delete_job, project, job)

    async def get(self, job: str, *, project: str | None = None) -> JobRecord:
        """How far a job is.

        Raises:
            NotFoundError: There is none.
        """
        return await self._scope.call(operations.show_job, project, job)

    async def list(
        self,
        *,
        status: JobStatus | None = None,
        dataset: str | None = None,
        grader: str | None = None,
        project: str | None = None,
    ) -> list[JobRecord]:
        """All jobs of a project, newest first.

        Args:
            status: Only those of this status.
            dataset: Only those over this dataset.
            grader: Only those with this grader.
            project: The project; the client's by default.
        """
        return await every(
            lambda cursor: self._scope.call(
                operations.list_jobs,
                project,
                status=status,
                dataset=dataset,
                grader=grader,
                limit=200,
                cursor=cursor,
            )
        )

    async def summary(self, job: str, *, project: str | None = None) -> JobSummary:
        """What came of a job so far: its mean with an interval, a histogram, causes of errors.

        Raises:
            NotFoundError: There is none.
        """
        return await self._scope.call(result_operations.show_job_summary, project, job)

    async def window(
        self,
        job: str,
        *,
        status: Status | None = None,
        order: Literal["row", "score", "newest"] = "row",
        offset: int = 0,
        limit: int = 50,
        project: str | None = None,
    ) -> ResultWindow:
        """Results of a job from any place on, each on a line, and how many there are.

        Args:
            job: The job.
            status: Only those of this status.
            order: By row; the lowest score first; or the newest first.
            offset: How many are left out before them.
            limit: Most of them, up to 100.
            project: The project; the client's by default.
        """
        return await self._scope.call(
            result_operations.show_results,
            project,
            job,
            status=status,
            order=order,
            offset=offset,
            limit=limit,
        )

    async def result(self, job: str, number: int, *, project: str | None = None) -> ResultDetail:
        """What came of one row of a job, by its number from 1, with the evidence and the row.

        Raises:
            NotFoundError: There is none.
        """
        return await self._scope.call(result_operations.show_result, project, job, number)

    async def compare(self, job: str, other: str, *, project: str | None = None) -> JobsCompared:
        """A job and another one of the same dataset, paired row by row.

        Raises:
            NotFoundError: One of them does not exist.
            ConflictError: They graded other rows.
        """
        return await self._scope.call(result_operations.compare_jobs, project, job, other=other)

    async def results(
        self, job: str, *, limit: int = 100, cursor: str = "", project: str | None = None
    ) -> Results:
        """A part of the scores of a job, in the order they were given, and the grader's card."""
        return await self._scope.call(
            operations.list_results, project, job, limit=limit, cursor=cursor or None
        )

    async def follow(self, job: str, *, project: str | None = None) -> AsyncIterator[JobRecord]:
        """The job again and again as it gets on, until it has ended."""
        async for step in self._scope.backend.follow(self._scope.project(project), job):
            yield step

    async def wait(self, job: str, *, project: str | None = None) -> JobRecord:
        """Wait until a job has ended, and return it."""
        seen = [step async for step in self.follow(job, project=project)]
        return seen[-1] if seen else await self.get(job, project=project)

    async def cancel(self, job: str, *, project: str | None = None) -> JobRecord:
        """Stop a job; the scores it gave stay."""
        return await self._scope.call(operations.cancel_job, project, job)


@checked_calls("scores")
class AsyncScores:
    """What graders gave, and what people or programs write in."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def add(self, scores: Sequence[Mapping[str, Json]], *, project: str | None = None) -> int:
        """Write scores for custom graders.

        Args:
            scores: ``{"grader", "item", "score"}`` each, with ``reason`` and ``details`` if wanted.
            project: The project; the client's by default.

        Returns:
            How many were written: all, or none.
        """
        return (await self._scope.call(operations.add_scores, project, scores)).stored

    async def list(
        self,
        *,
        grader: str | None = None,
        item: str | None = None,
        limit: int = 100,
        cursor: str = "",
        project: str | None = None,
    ) -> Page[ScoreRecord]:
        """A part of the scores, oldest first."""
        found = await self._scope.call(
            operations.list_scores,
            project,
            grader=grader,
            item=item,
            limit=limit,
            cursor=cursor or None,
        )
        return Page(found.items, found.next_cursor)


def _file_rows(file: str) -> Rows:
    """The rows of a file, read as they are needed, each checked as a row."""
    from assay.tasks.rows import read_rows

    if not Path(file).is_file():
        raise InputError(
            f"there is no file {file!r}", hint="give rows, or the path of a file of them"
        )
    return (row.fields for row in read_rows(file, graders=()))
