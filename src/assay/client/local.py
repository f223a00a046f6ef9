"""The operations on a store of one's own, without a server."""

from __future__ import annotations

import os
import weakref
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from assay.client.backend import Details, Page, Rows
from assay.client.calibration import Calibration, Grades, Results
from assay.errors import AssayError, InputError, Location, NotFoundError, StoreError
from assay.eval.batch import run_batches
from assay.registry import Registry
from assay.registry.stored_rows import grade_rows
from assay.registry.written import written_score
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.scoring.results import finite_number
from assay.store import (
    Catalog,
    Database,
    DatasetRecord,
    DatasetRow,
    Datasets,
    GraderRecord,
    GraderVersion,
    JobRecord,
    Jobs,
    ProjectRecord,
    Projects,
    RunRecord,
    ScoreRecord,
    Scores,
    Store,
)
from assay.tasks.rows import read_row
from assay.types.codec import from_json
from assay.types.submission import Submission

if TYPE_CHECKING:
    from assay.graders.functions import ValidationReport
    from assay.registry import Definition

__all__ = ["LocalBackend"]

T = TypeVar("T")

_BATCH = 256
_LEASE_SECONDS = 120.0
_SCORE_FIELDS = frozenset({"grader", "item", "score", "reason", "details"})


class LocalBackend:
    """A store; it belongs to the thread that uses it first.

    Args:
        location: A directory, or a ``postgresql://`` address.
    """

    def __init__(self, location: str) -> None:
        self._database = database = Database.open(location)
        self._finish = weakref.finalize(self, _let_go, database)

    async def create_grader(
        self, project: str, key: str, definition: Definition, details: Details
    ) -> GraderRecord:
        """Store a grader."""
        Projects(self._database).ensure(project)
        return await self._registry(project).create(
            key,
            definition,
            name=details.name,
            description=details.description,
            feedback_key=details.feedback_key,
            note=details.note,
            samples=_items(details.samples),
        )

    async def update_grader(
        self,
        project: str,
        key: str,
        definition: Definition,
        *,
        note: str,
        expected: int | None,
        samples: Sequence[Mapping[str, Json]],
    ) -> GraderRecord:
        """Store a new version."""
        return await self._registry(project).update(
            key, definition, note=note, expected=expected, samples=_items(samples)
        )

    async def describe_grader(
        self, project: str, key: str, changes: Mapping[str, str]
    ) -> GraderRecord:
        """Change what people read."""
        return self._registry(project).describe(key, **changes)

    async def validate(
        self, project: str, definition: Definition, samples: Sequence[Mapping[str, Json]]
    ) -> ValidationReport:
        """Check a grader and store nothing."""
        return await self._registry(project).validate(definition, _items(samples))

    async def grader(self, project: str, key: str) -> GraderRecord:
        """A grader."""
        return self._registry(project).get(key)

    async def graders(
        self, project: str, *, limit: int, cursor: str, kind: str | None, query: str
    ) -> Page[GraderRecord]:
        """A part of the graders."""
        found = self._registry(project).page(limit=limit, after=cursor, kind=kind, query=query)
        return _page(found, limit, lambda record: record.key)

    async def version(self, project: str, key: str, number: int) -> GraderVersion:
        """One version of a grader."""
        return self._registry(project).version(key, number)

    async def versions(
        self, project: str, key: str, *, limit: int, cursor: str
    ) -> Page[GraderVersion]:
        """A part of the versions."""
        after = _number(cursor) if cursor else None
        found = self._registry(project).versions(key, limit=limit, after=after)
        return _page(found, limit, lambda version: version.number)

    async def lock_grader(self, project: str, key: str, *, locked: bool) -> GraderRecord:
        """Lock or unlock."""
        return self._registry(project).lock(key, locked=locked)

    async def delete_grader(self, project: str, key: str, *, force: bool) -> None:
        """Delete a grader."""
        self._registry(project).delete(key, force=force)

    async def diff(self, project: str, key: str, older: int | None, newer: int | None) -> str:
        """What changed."""
        return self._registry(project).diff(key, older, newer)

    async def export(self, project: str, keys: Sequence[str]) -> dict[str, str]:
        """Graders as files."""
        return self._registry(project).files(keys or None)

    async def import_(
        self, project: str, files: Mapping[str, str], *, update: bool
    ) -> Sequence[GraderRecord]:
        """Files as graders."""
        Projects(self._database).ensure(project)
        done = await self._registry(project).import_files(files, update=update)
        return [one.record for one in done]

    async def grade(
        self, project: str, key: str, items: Sequence[Mapping[str, Json]], version: int | None
    ) -> Grades:
        """Grade items."""
        registry, read = self._registry(project), _items(items)
        found = registry.version(key, version)
        graded = await registry.grade_with(found, read)
        return Grades(graded, self._calibration(found, graded))

    async def calibration(self, project: str, key: str, version: int | None) -> Calibration | None:
        """The card of a version."""
        registry = self._registry(project)
        registry.get(key)  # first: a version outlives its grader
        return self._calibration(registry.version(key, version))

    async def create_dataset(self, project: str, key: str, name: str, rows: Rows) -> DatasetRecord:
        """Store a dataset."""
        Projects(self._database).ensure(project)
        return Datasets(self._database).create(project, key, name, _readable(rows))

    async def dataset(self, project: str, key: str) -> DatasetRecord:
        """A dataset."""
        return Datasets(self._database).get(project, key)

    async def datasets(self, project: str, *, limit: int, cursor: str) -> Page[DatasetRecord]:
        """A part of the datasets."""
        found = Datasets(self._database).page(project, limit=limit, after=cursor)
        return _page(found, limit, lambda record: record.key)

    async def dataset_rows(
        self, project: str, key: str, *, limit: int, cursor: str
    ) -> Page[DatasetRow]:
        """A part of the rows."""
        found = Datasets(self._database).rows(project, key, after=_number(cursor), limit=limit)
        return _page(found, limit, lambda row: row.number)

    async def delete_dataset(self, project: str, key: str, *, force: bool) -> None:
        """Delete a dataset."""
        Datasets(self._database).delete(project, key, force=force)

    async def create_job(
        self, project: str, grader: str, dataset: str, version: int | None
    ) -> JobRecord:
        """Grade a dataset, now; interrupted, it is finished by the next job of this store."""
        jobs = Jobs(self._database)
        job = jobs.create(project, grader=grader, dataset=dataset, version=version)
        owner = f"local:{os.getpid()}"
        while True:
            claimed = jobs.claim(owner, _LEASE_SECONDS, datetime.now(UTC))
            if claimed is None:
                return jobs.get(job.id)
            await self._carry_out(claimed, owner)

    async def job(self, project: str, job: str) -> JobRecord:
        """A job."""
        found = Jobs(self._database).get(job)
        if found.project != project:
            raise NotFoundError(f"there is no job {job!r:.80} in project {project!r}")
        return found

    async def jobs(self, project: str, *, limit: int, cursor: str) -> Page[JobRecord]:
        """A part of the jobs."""
        found = Jobs(self._database).page(project, limit=limit, after=cursor)
        return _page(found, limit, lambda record: record.id)

    async def cancel_job(self, project: str, job: str) -> JobRecord:
        """Stop a job."""
        await self.job(project, job)
        return Jobs(self._database).cancel(job)

    async def results(self, project: str, job: str, *, limit: int, cursor: str) -> Results:
        """A part of a job's scores."""
        record = await self.job(project, job)
        found = Jobs(self._database).results(job, _number(cursor), limit)
        version = self._registry(project).version(record.grader, record.version)
        page = _page(found, limit, lambda score: score.seq)
        card = self._calibration(version, [score.graded for score in found])
        return Results(page.items, page.next_cursor, card)

    async def follow(self, project: str, job: str) -> AsyncIterator[JobRecord]:
        """The job; without a server it has ended when `create_job` returned."""
        yield await self.job(project, job)

    async def add_scores(self, project: str, scores: Sequence[Mapping[str, Json]]) -> int:
        """Write scores."""
        catalog = Catalog(self._database)
        records = [_score(catalog, project, score, n) for n, score in enumerate(scores)]
        Scores(self._database).add(project, records)
        return len(records)

    async def scores(
        self, project: str, *, grader: str | None, item: str | None, limit: int, cursor: str
    ) -> Page[ScoreRecord]:
        """A part of the scores."""
        found = Scores(self._database).page(
            project, grader=grader, item=item, after=_number(cursor), limit=limit
        )
        return _page(found, limit, lambda record: record.seq)

    async def projects(self) -> Sequence[ProjectRecord]:
        """All projects."""
        return Projects(self._database).all()

    async def create_project(self, key: str, name: str) -> ProjectRecord:
        """Make a project."""
        return Projects(self._database).create(key, name)

    async def runs(self, limit: int) -> Sequence[RunRecord]:
        """The newest runs."""
        return Store(self._database).runs(limit)

    async def close(self) -> None:
        """Give the database back."""
        self._finish.detach()
        self._database.close()

    def _calibration(
        self, version: GraderVersion, graded: Sequence[Graded] = ()
    ) -> Calibration | None:
        from assay.reports.standing import stored_standing

        found = stored_standing(self._database, version, [one.digest for one in graded])
        return None if found is None else from_json(Calibration, found.to_dict())

    def _registry(self, project: str) -> Registry:
        # Who works on the store itself runs code of the project's own, as with `assay run`.
        return Registry(
            self._database, project, _user(), allow_custom_code=True, allow_internal=True
        )

    def _pages(self, job: JobRecord) -> Iterator[Sequence[DatasetRow]]:
        after = 0
        while rows := Datasets(self._database).rows(
            job.project, job.dataset, after=after, limit=_BATCH
        ):
            after = rows[-1].number
            yield rows

    async def _carry_out(self, job: JobRecord, owner: str) -> None:
        jobs, registry = Jobs(self._database), self._registry(job.project)
        try:
            version = registry.version(job.grader, job.version)
            graded = jobs.graded_rows(job.id)

            async def grade(rows: Sequence[DatasetRow]) -> list[tuple[int, ScoreRecord]]:
                todo = [row for row in rows if row.number not in graded]
                return await grade_rows(
                    version, todo, lambda items: registry.grade_with(version, items)
                )

            def keep(_: Sequence[DatasetRow], scores: list[tuple[int, ScoreRecord]]) -> None:
                jobs.add_scores(job.id, scores)
                jobs.renew(job.id, owner, _LEASE_SECONDS, datetime.now(UTC))

            await run_batches(self._pages(job), grade, keep, at_once=1)
            jobs.finish(job.id, "finished")
        except InputError as error:
            jobs.finish(job.id, "failed", str(error))
        except BaseException:
            jobs.release(job.id, owner)
            raise


def _let_go(database: Database) -> None:
    """Close the database of a client that was forgotten."""
    with suppress(StoreError):  # another thread's, where the collector happened to run
        database.close()


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user that has no name
        return str(os.getuid())


def _items(rows: Sequence[Mapping[str, Json]]) -> list[tuple[str, Submission]]:
    read = [
        read_row(row, number, Location(field=f"items[{number - 1}]"))
        for number, row in enumerate(rows, 1)
    ]
    return [(row.id, row.submission) for row in read]


def _readable(rows: Rows) -> Iterator[Mapping[str, Json]]:
    """The rows, each known to be one that can be graded."""
    for number, row in enumerate(rows, 1):
        read_row(row, number, Location(line=number))
        yield row


def _page(found: Sequence[T], limit: int, place: Callable[[T], str | int]) -> Page[T]:
    return Page(found, str(place(found[-1])) if len(found) == limit else "")


def _number(cursor: str) -> int:
    if cursor and not cursor.isdecimal():
        raise InputError("the cursor is not one of this list", hint="use next_cursor as it came")
    return int(cursor or 0)


def _score(catalog: Catalog, project: str, score: Mapping[str, Json], number: int) -> ScoreRecord:
    if unknown := sorted(set(score) - _SCORE_FIELDS):
        raise InputError(f"scores[{number}] has no field {unknown[0]!r}")
    key, item = score.get("grader"), score.get("item")
    if not isinstance(key, str) or not isinstance(item, str | int) or isinstance(item, bool):
        raise InputError(f"scores[{number}] needs a 'grader' and an 'item'")
    version = catalog.get(project, key).latest
    details = score.get("details")
    try:
        value = finite_number(score.get("score"), what=f"scores[{number}].score")
    except AssayError as error:
        raise InputError(error.message, hint=error.hint) from error
    return written_score(
        version,
        str(item),
        value,
        place=f"scores[{number}]",
        source="sdk",
        reason=str(score.get("reason") or ""),
        details=details if isinstance(details, dict) else {},
    )
