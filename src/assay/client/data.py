"""``client.datasets``, ``traces``, ``jobs``, ``scores``, ``runs`` and ``projects``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from assay.client.scope import Item, Rows, Scope, checked_calls, every, rows_of
from assay.errors import InputError
from assay.scoring.json_safe import Json
from assay.service import compare as comparing
from assay.service import data as operations
from assay.service import runs as run_operations
from assay.service import site
from assay.service import traces as trace_operations
from assay.service.data import Results
from assay.service.operation import Page
from assay.service.traces import TraceDetail

if TYPE_CHECKING:
    from assay.reports.comparing.shown import RunComparison
    from assay.reports.run_records import CellWindow, RunOverview
    from assay.reports.score_pairs import ScorePair
    from assay.reports.scores import ScoreTable
    from assay.store import (
        DatasetRecord,
        DatasetRow,
        JobRecord,
        ProjectRecord,
        RunRecord,
        ScoreRecord,
    )
    from assay.store.kept import Freed
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

    async def list(self, *, project: str | None = None) -> list[JobRecord]:
        """All jobs of a project, newest first."""
        return await every(
            lambda cursor: self._scope.call(operations.list_jobs, project, limit=200, cursor=cursor)
        )

    async def results(
        self, job: str, *, limit: int = 100, cursor: str = "", project: str | None = None
    ) -> Results:
        """A part of the scores of a job, in the order they were given, and the grader's card."""
        return await self._scope.call(
            operations.list_results, project, job, limit=limit, cursor=cursor or None
        )

    def follow(self, job: str, *, project: str | None = None) -> AsyncIterator[JobRecord]:
        """The job again and again as it gets on, until it has ended."""
        return self._scope.backend.follow(self._scope.project(project), job)

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


@checked_calls("runs")
class AsyncRuns:
    """Runs of cases, as `assay run` stored them."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def list(self, *, limit: int = 50) -> Sequence[RunRecord]:
        """The newest runs, newest first."""
        return (await self._scope.backend.call(run_operations.list_runs, "", limit=limit)).items

    async def overview(self, run: str) -> RunOverview:
        """All that a run comes down to: verdict, totals with intervals, agents, causes of errors.

        Args:
            run: Its id, the beginning of it, its label, or ``latest``.

        Raises:
            NotFoundError: There is none, or more than one.
        """
        return await self._scope.backend.call(run_operations.show_run_overview, "", run)

    async def cells(
        self,
        run: str,
        *,
        outcome: str = "",
        search: str = "",
        flagged: bool = False,
        limit: int = 100,
        offset: int = 0,
    ) -> CellWindow:
        """Some of the cells of a run, with how many there are.

        Args:
            run: Its id, the beginning of it, its label, or ``latest``.
            outcome: How they ended: ``pass``, ``fail``, ``error``, ``skipped``, ``scored``; several
                with commas between.
            search: Stands somewhere in the name of their case.
            flagged: Only those with signs of tampering.
            limit: Most of them.
            offset: How many are left out before them.

        Raises:
            NotFoundError: There is no such run, or more than one.
        """
        return await self._scope.backend.call(
            run_operations.window_cells,
            "",
            run,
            outcome=outcome,
            search=search,
            flagged=flagged,
            limit=limit,
            offset=offset,
        )

    async def delete(self, run: str, *, keep_files: bool = False) -> Freed:
        """Delete a run with its results, and the files of workspaces that no other run needs.

        Args:
            run: Its whole id.
            keep_files: Leave the files of workspaces.

        Raises:
            NotFoundError: There is none.
            ConflictError: A process is at work on it, or on runs that may need its files.
        """
        return await self._scope.backend.call(
            run_operations.delete_run, "", run, keep_files=keep_files
        )

    async def compare(
        self,
        before: str,
        after: str = "",
        *,
        harnesses: tuple[str | None, str | None] = (None, None),
        models: tuple[str | None, str | None] = (None, None),
    ) -> RunComparison:
        """Two runs, or two agents of one, paired by case and trial: what `assay compare` says.

        Args:
            before: A run: its id, its label, or `latest`.
            after: The other one; without it, agents of the first.
            harnesses: Only this harness, of the first side and of the second.
            models: Only this model, likewise.

        Raises:
            NotFoundError: There is no such run.
            InputError: They have no cell in common, or are the same.
        """
        return await self._scope.backend.call(
            comparing.compare_runs,
            "",
            before=before,
            after=after,
            before_harness=harnesses[0],
            after_harness=harnesses[1],
            before_model=models[0],
            after_model=models[1],
        )

    async def scores(self, run: str) -> ScoreTable:
        """How the scores of a run lie: a histogram for its rewards and for each of its graders.

        Raises:
            NotFoundError: There is no such run.
        """
        return await self._scope.backend.call(comparing.show_scores, "", run)

    async def score_pair(self, run: str, x: str, y: str) -> ScorePair:
        """Two graders of a run, cell by cell, or one beside what cells cost.

        Args:
            run: Its id, its label, or `latest`.
            x: A grader, by its key in `scores`; empty for the reward.
            y: Another one; or `seconds`, `cost_usd` or `tokens`.

        Raises:
            NotFoundError: There is no such run.
            InputError: No cell has such a score.
        """
        return await self._scope.backend.call(comparing.show_score_pair, "", run, x=x, y=y)


@checked_calls("projects")
class AsyncProjects:
    """Names under which graders, datasets and scores stand."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def list(self) -> Sequence[ProjectRecord]:
        """All projects, by key."""
        backend = self._scope.backend
        return await every(
            lambda cursor: backend.call(site.list_projects, "", limit=200, cursor=cursor)
        )

    async def limit(
        self,
        key: str,
        *,
        requests_per_minute: int | None = None,
        gradings_at_once: int | None = None,
    ) -> ProjectRecord:
        """Say how much of each server a project may have: both limits are set.

        Args:
            key: The project.
            requests_per_minute: None for as many as come.
            gradings_at_once: Of one sort, and jobs; None for its fair share.

        Raises:
            NotFoundError: There is none.
        """
        return await self._scope.backend.call(
            site.limit_project, key, requests_per_minute, gradings_at_once
        )

    async def create(self, key: str, *, name: str = "") -> ProjectRecord:
        """Make a project.

        Raises:
            ConflictError: There is one of that key.
        """
        return await self._scope.backend.call(site.create_project, "", key, name)


def _file_rows(file: str) -> Rows:
    """The rows of a file, read as they are needed, each checked as a row."""
    from assay.tasks.rows import read_rows

    if not Path(file).is_file():
        raise InputError(
            f"there is no file {file!r}", hint="give rows, or the path of a file of them"
        )
    return (row.fields for row in read_rows(file, graders=()))
