"""`Jobs`: datasets that are graded in the background, by workers that may die at any moment.

A worker claims a job for a while, and renews its claim while it lives. When it dies, the claim runs
out, another worker takes over and grades the rows that have no score yet. Should both be at work,
each row still has one score: the first.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeAlias

from assay.errors import ConflictError, InputError, Location, NotFoundError
from assay.frozen import frozen
from assay.scoring.results import Status
from assay.store.catalog import Catalog
from assay.store.checks import plain, valid_number, valid_text
from assay.store.database import Database, Record, Scalar, moment
from assay.store.datasets import Datasets
from assay.store.pages import FIRST, NEWEST, Order, Page, Stretch
from assay.store.projects import Projects
from assay.store.scores import ScoreRecord, ScoreRows, error_of, score_row
from assay.store.table import Table, Where, among

_ACTIVE = ("queued", "running")
_MOST_CLAIMS = 5
"""How many workers may take a job one after the other without a single score: more, and it is the
job that kills them."""


JobStatus: TypeAlias = Literal["queued", "running", "finished", "failed", "cancelled"]


@frozen(kw_only=True)
class JobRecord(Record):
    """A dataset that is graded with one version of a grader.

    Attributes:
        id: Sortable and unique, such as ``20261121-090830-ab12cd34``.
        project: Key of the project.
        grader: Key of the grader.
        version: Number of its version.
        dataset: Key of the dataset.
        status: ``queued``, ``running``, or how it ended.
        total: Rows to grade.
        done: Rows that have a score, a skip or an error.
        errors: Rows among them that could not be graded.
        message: Why it failed, or what it waits for.
        created_at: ISO 8601, UTC.
        updated_at: When anything of it changed last.
        created_by: Who asked for it.
    """

    id: str
    project: str
    grader: str
    version: int
    dataset: str
    status: JobStatus
    total: int = 0
    done: int = 0
    errors: int = 0
    message: str = ""
    created_at: str = ""
    updated_at: str = ""
    created_by: str = ""


@frozen(kw_only=True)
class JobTally:
    """What came of a job's rows.

    Attributes:
        counts: How many ended in which way.
        scores: Every score.
        errors: Why rows could not be graded: the first ones.
    """

    counts: Mapping[Status, int]
    scores: Sequence[float]
    errors: Sequence[str]


_MOST_CAUSES_READ = 10_000
_ORDERS = {
    "row": Order("number", (int,)),
    "score": Order("CASE WHEN score IS NULL THEN 1 ELSE 0 END, score, number"),
    "newest": NEWEST,
}


class Jobs:
    """The jobs of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        columns = {"grader": "grader_key", "dataset": "dataset_key"}
        self._table = Table(database, "job", JobRecord, **columns)
        self._scores = ScoreRows(database)

    def create(
        self, project: str, *, grader: str, dataset: str, version: int | None = None, by: str = ""
    ) -> JobRecord:
        """Queue a job, with the newest version of the grader where none is said."""
        created_by = valid_text(by, "by", most=200)
        with self._database.writing():
            self._hold(project, grader, dataset)
            newest = Catalog(self._database).get(project, grader).latest
            if version is not None and version != newest.number:
                Catalog(self._database).version(project, grader, version)
            total = Datasets(self._database).get(project, dataset).rows
            now = self._database.clock()
            job = f"{now.astimezone(UTC):%Y%m%d-%H%M%S}-{os.urandom(4).hex()}"
            self._database.change(
                "INSERT INTO job (id, project, grader, grader_key, version, dataset, dataset_key, "
                "status, total, created_at, updated_at, created_by) "
                "SELECT ?, g.project, g.seq, g.key, ?, d.seq, d.key, 'queued', ?, ?, ?, ? "
                "FROM grader g JOIN dataset d ON d.project = g.project "
                "WHERE g.project = ? AND g.key = ? AND g.deleted_at = '' "
                "AND d.key = ? AND d.deleted_at = ''",
                *(job, newest.number if version is None else version, total),
                *(moment(now), moment(now), created_by, project, grader, dataset),
            )
            return self.get(job)

    def get(self, job: str) -> JobRecord:
        """One job."""
        found = self._table.find({"id": job})
        if found is None:
            raise NotFoundError(f"there is no job {job!r:.80}")
        return found

    def page(
        self,
        project: str,
        wanted: Stretch = FIRST,
        *,
        status: JobStatus | None = None,
        dataset: str | None = None,
        grader: str | None = None,
    ) -> Page[JobRecord]:
        """Jobs of a project, newest first.

        The dataset and the grader are those that have these keys now: a job of a deleted one is not
        among them.
        """
        where: dict[str, Scalar | tuple[Scalar, ...]] = {"project": project, "status": status}
        for table, key in (("grader", grader), ("dataset", dataset)):
            if key is not None:
                live = f"SELECT seq FROM {table} WHERE project = ? AND key = ? AND deleted_at = ''"
                where[f"{table} = ({live})"] = (project, key)
        Projects(self._database).get(project)
        return self._table.page(where, NEWEST, wanted)

    def waiting(self) -> dict[str, int]:
        """How many jobs of each project have not ended; nothing of projects without any."""
        rows = self._database.rows(
            "SELECT project, count(*) FROM job WHERE status IN ('queued', 'running') "
            "GROUP BY project"
        )
        return dict(rows)

    def claim(
        self, owner: str, lease_seconds: float, now: datetime, *, but_not: Sequence[str] = ()
    ) -> JobRecord | None:
        """Take the oldest job that waits, or whose worker has not been heard of.

        A job that five workers took without storing a score fails: it would kill the next one, too.

        Args:
            owner: Names the worker; no other one may have the name.
            lease_seconds: For how long others leave the job alone.
            now: The time, which all workers should agree on.
            but_not: Projects whose jobs wait.

        Returns:
            The job, which is now running, or None if nothing is to be done.
        """
        time, until = moment(now), moment(now + timedelta(seconds=lease_seconds))
        owner = valid_text(owner, "owner", most=200)
        # A lease much longer than anybody's was given by a clock that is fast: nobody renews it.
        late = moment(now + timedelta(seconds=lease_seconds + _MOST_LEASE_SECONDS))
        others = f"AND project NOT IN ({', '.join('?' * len(but_not))}) " if but_not else ""
        waiting = (
            "SELECT id, status, lease_until, claims FROM job WHERE status IN ('queued', 'running') "
            f"AND (status = 'queued' OR lease_until < ? OR lease_until > ?) {others}"
            "ORDER BY seq LIMIT 1"
        )
        values = (time, late, *map(plain, but_not))
        if not self._database.rows(waiting, *values):  # without a lock: workers ask all the time
            return None
        with self._database.writing():
            while found := self._database.rows(waiting, *values):
                job, status, lease, claims = found[0]
                poisonous = claims >= _MOST_CLAIMS
                claimed = self._database.change(
                    "UPDATE job SET status = ?, message = ?, owner = ?, lease_until = ?, "
                    "claims = claims + 1, updated_at = ? "
                    "WHERE id = ? AND status = ? AND lease_until = ?",  # as it was seen
                    *("failed" if poisonous else "running", _GIVEN_UP if poisonous else ""),
                    *(owner, until, time, job, status, lease),
                )
                if claimed and not poisonous:
                    return self.get(job)
        return None

    def renew(self, job: str, owner: str, lease_seconds: float, now: datetime) -> bool:
        """Keep a claim.

        Returns:
            Whether it is still held; otherwise the job was cancelled, or another worker has it.
        """
        until = moment(now + timedelta(seconds=lease_seconds))
        with self._database.writing():
            renewed = self._table.update(_held(job, owner), lease_until=until)
        return bool(renewed)

    def note(self, job: str, owner: str, message: str) -> bool:
        """Say what a job waits for that is running; "" for nothing.

        Returns:
            Whether the claim is still held; otherwise nothing is said.
        """
        with self._database.writing():
            noted = self._table.update(
                _held(job, owner), message=message[:_MAX_MESSAGE], updated_at=self._database.now()
            )
        return bool(noted)

    def release(self, job: str, owner: str, *, failed: bool = False) -> bool:
        """Give a claim back, so that another worker need not wait until it runs out.

        Args:
            job: Id of the job.
            owner: Who has it.
            failed: Whether the store failed meanwhile: it may do so for the next worker, too, and
                the claim counts as one of a worker that died.

        Returns:
            Whether it was held.
        """
        with self._database.writing():
            released = self._database.change(
                "UPDATE job SET status = 'queued', owner = '', lease_until = '', "
                "claims = claims * ?, updated_at = ? "
                "WHERE id = ? AND owner = ? AND status = 'running'",
                *(int(failed), self._database.now(), plain(job), plain(owner)),
            )
        return bool(released)

    def add_scores(self, job: str, scores: Sequence[tuple[int, ScoreRecord]]) -> JobRecord:
        """Append what came of rows, and count it: all of it, or nothing.

        A row that has a score already keeps it, so that a batch may be sent twice.

        Args:
            job: Id of the job.
            scores: Number of a row, and its outcome.

        Returns:
            The job as it is then.

        Raises:
            ConflictError: For a new score of a job that has ended.
            InputError: For a row that the job does not have, or an item's id that is too long.
        """
        now = self._database.now()
        with self._database.writing():
            record = self._claimed(job, now)
            rows = self._new_rows(record, scores, now)
            if not rows:
                return record
            if record.status not in _ACTIVE:
                raise ConflictError(f"job {job} is {record.status}: nothing can be added to it")
            self._scores.insert_many(rows)
            errors = sum(row["status"] == "error" for row in rows)
            self._database.change(
                "UPDATE job SET done = done + ?, errors = errors + ?, claims = 0, updated_at = ? "
                "WHERE id = ?",
                *(len(rows), errors, now, job),
            )
            return self.get(job)

    def graded_rows(self, job: str) -> set[int]:
        """Numbers of the rows that have a score, a skip or an error."""
        self.get(job)
        return set(self._scores.column("number", {"job": job}))

    def finish(
        self, job: str, status: Literal["finished", "failed"], message: str = ""
    ) -> JobRecord:
        """Record how a job ended. One that ended already stays as it is."""
        with self._database.writing():
            record = self._claimed(job, None)
            if record.status not in _ACTIVE:
                return record
            if status == "finished" and record.done < record.total:
                missing = record.total - record.done
                rows = "1 row is" if missing == 1 else f"{missing} rows are"
                raise ConflictError(f"job {job} is not finished: {rows} missing")
            return self._end(job, status, message)

    def cancel(self, job: str) -> JobRecord:
        """End a job before its time. What is graded stays; cancelling twice is fine."""
        with self._database.writing():
            record = self._claimed(job, None)
            if record.status == "cancelled":
                return record
            if record.status not in _ACTIVE:
                raise ConflictError(f"job {job} is {record.status}: it cannot be cancelled")
            return self._end(job, "cancelled", "")

    def delete(self, job: str) -> None:
        """Remove a job that has ended, with its scores."""
        with self._database.writing():
            record = self._claimed(job, None)
            if record.status in _ACTIVE:
                raise ConflictError(f"job {job} is {record.status}", hint="cancel it first")
            self._scores.delete({"job": record.id})
            self._table.delete({"id": record.id})

    def counts(self, job: str) -> dict[Status, int]:
        """How many rows of a job ended in which way."""
        self.get(job)
        counted = self._database.rows(
            "SELECT status, count(*) FROM score WHERE job = ? GROUP BY status", job
        )
        return dict(counted)

    def has_rows(self, job: str) -> bool:
        """Whether the dataset of a job is still there."""
        return bool(
            self._database.rows(
                "SELECT 1 FROM job j JOIN dataset d ON d.seq = j.dataset "
                "WHERE j.id = ? AND d.deleted_at = ''",
                plain(job),
            )
        )

    def tally(self, job: str) -> JobTally:
        """What came of a job's rows so far."""
        counts = self.counts(job)
        errors = self._database.rows(
            "SELECT evidence FROM score WHERE job = ? AND status = 'error' ORDER BY seq LIMIT ?",
            *(job, _MOST_CAUSES_READ),
        )
        return JobTally(
            counts=counts,
            scores=self._scores.column("score", {"job": job, "score IS NOT NULL": ()}),
            errors=[error_of(evidence) for (evidence,) in errors],
        )

    def results(
        self,
        job: str,
        wanted: Stretch = FIRST,
        *,
        status: Status | None = None,
        order: Literal["row", "score", "newest"] = "row",
    ) -> Page[ScoreRecord]:
        """What came of the rows of a job: by row, by score, or the newest first."""
        self.get(job)
        where: Where = {"job": job, "status": status}
        return self._scores.page(where, _ORDERS[order], wanted)

    def result(self, job: str, number: int) -> ScoreRecord:
        """What came of one row."""
        self.get(job)
        found = self._scores.find({"job": job, "number": valid_number(number, "number")})
        if found is None:
            raise NotFoundError(f"row {number} of job {job!r:.80} has no result")
        return found

    def scored(self, job: str) -> dict[int, float | None]:
        """The scores of a job by the numbers of their rows; None for what was not scored."""
        rows = self._database.rows("SELECT number, score FROM score WHERE job = ?", plain(job))
        return dict(rows)

    def _hold(self, project: str, grader: str, dataset: str) -> None:
        """Make others wait who would delete what a job is about to use."""
        for table, key in (("grader", grader), ("dataset", dataset)):
            self._database.change(
                f"UPDATE {table} SET deleted_at = '' "
                "WHERE project = ? AND key = ? AND deleted_at = ''",
                *(plain(project), plain(key)),
            )

    def _claimed(self, job: str, now: str | None) -> JobRecord:
        """The job, with others that want to change it waiting until we are done."""
        self._database.change(
            "UPDATE job SET updated_at = coalesce(?, updated_at) WHERE id = ?", now, plain(job)
        )
        return self.get(job)

    def _end(self, job: str, status: str, message: str) -> JobRecord:
        ended: dict[str, Scalar] = {"status": status, "message": message[:_MAX_MESSAGE]}
        now = self._database.now()
        self._table.update({"id": job}, **ended, owner="", lease_until="", updated_at=now)
        return self.get(job)

    def _new_rows(
        self, record: JobRecord, scores: Sequence[tuple[int, ScoreRecord]], now: str
    ) -> list[dict[str, Scalar]]:
        wanted = dict(reversed(scores))  # of two outcomes of one row, the first counts
        for number in wanted:
            if not 1 <= number <= record.total:
                raise InputError(
                    f"job {record.id} has no row {number}, it has {record.total}",
                    location=Location(field="number"),
                )
        known = set(self._scores.column("number", {"job": record.id, **among("number", wanted)}))
        return [
            score_row(score, record.project, now, job=record.id, number=number)
            for number, score in sorted(wanted.items(), key=lambda entry: entry[0])
            if number not in known
        ]


def _held(job: str, owner: str) -> Where:
    return {"id": job, "owner": owner, "status": "running"}


_MOST_LEASE_SECONDS = 60.0
_MAX_MESSAGE = 4_096
_GIVEN_UP = f"{_MOST_CLAIMS} workers took it, and none stored a score before it died"
