"""Operations on jobs, and on what came of them: all of it in numbers, and any part of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Literal

from assay.errors import NotFoundError
from assay.reports.figures import score, score_interval
from assay.reports.histogram import Bar, histogram
from assay.reports.plain import one_line, plain
from assay.reports.summary import Cause, Causes
from assay.scoring.results import Assurance, Status
from assay.service.datasets import RowDetail, RowNumber, row_detail
from assay.service.graders import Calibration, VersionNumber, calibration_of, version_to_run
from assay.service.operation import (
    After,
    DatasetKey,
    Desk,
    GraderKey,
    InProject,
    Limit,
    Offset,
    Section,
    Spec,
    Whole,
)
from assay.statistics.intervals import Interval, mean_interval
from assay.store.datasets import Datasets
from assay.store.jobs import JobRecord, Jobs, JobStatus
from assay.store.pages import Page, Stretch
from assay.store.scores import ScoreRecord

ENDED = ("finished", "failed", "cancelled")
"""How a job ends."""

of_jobs = Section("/projects/{project}/jobs", tag="jobs")
_BARS = 10
_LINE = 300

JOB_ID = Spec(
    "Id of the job.",
    alias="id",
    pattern=r"^[A-Za-z0-9-]{1,64}$",
    example="20261121-090830-ab12cd34",
)
JobId = Annotated[str, JOB_ID]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSummary:
    """What came of a job so far.

    Attributes:
        job: The job.
        line: In words.
        scored: Rows that have a score.
        skipped: Rows that its grader does not apply to.
        errors: Rows that could not be graded.
        mean: Mean score of the scored rows, with its 95 % interval.
        bars: The scores as a histogram.
        causes: Why rows could not be graded, commonest first.
        calibration: The card of the grader; null where there is none.
        is_stored: Whether the dataset is still there, so that its rows can be read.
    """

    job: JobRecord
    line: str
    scored: int
    skipped: int
    errors: int
    mean: Interval
    bars: tuple[Bar, ...]
    causes: tuple[Cause, ...]
    calibration: Calibration | None
    is_stored: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultGlimpse:
    """What came of a row, on a line.

    Attributes:
        number: Number of the row.
        item: Its id.
        status: ``scored``, ``skipped`` or ``error``.
        score: Null unless it was scored.
        outcome: What happened, in one word.
        why: Why this score, why skipped, or what went wrong.
        flags: Signs of tampering, and what else people should look at.
        assurance: How far the score can be trusted.
        record: All that is stored of it; null unless it was asked for.
    """

    number: int
    item: str
    status: Status
    score: float | None
    outcome: str
    why: str
    flags: tuple[str, ...] = ()
    assurance: Assurance | None = None
    record: ScoreRecord | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultPage(Page[ResultGlimpse]):
    """Part of what came of a job's rows, and the card of the grader that gave it.

    Attributes:
        calibration: The card, also one that is stale; null where the grader has none.
    """

    calibration: Calibration | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultDetail:
    """What came of a row, and the row.

    Attributes:
        result: What came of it.
        details: The evidence, as JSON.
        row: The row; null where the dataset was deleted.
    """

    result: ScoreRecord
    details: str
    row: RowDetail | None


@of_jobs("GET")
def list_jobs(
    desk: Desk,
    *,
    status: Annotated[JobStatus | None, Spec("Only those of this status.")] = None,
    dataset: Annotated[str | None, Spec("Only those over this dataset.", max_length=64)] = None,
    grader: Annotated[str | None, Spec("Only those with this grader.", max_length=64)] = None,
    limit: Limit = 50,
    offset: Offset = 0,
    after: After = None,
    project: InProject = None,
) -> Page[JobRecord]:
    """The jobs of a project, newest first."""
    wanted = Stretch(limit, offset, after)
    return Jobs(desk.database).page(
        desk.project, wanted, status=status, dataset=dataset, grader=grader
    )


def _made(desk: Desk, job: JobRecord) -> dict[str, str]:
    return {"Location": f"/api/v1/projects/{desk.project}/jobs/{job.id}"}


@of_jobs("POST", status=202, repeatable=True, headers=_made)
def create_job(
    desk: Desk,
    grader: GraderKey,
    dataset: DatasetKey,
    version: VersionNumber = None,
    *,
    project: InProject = None,
) -> JobRecord:
    """Grade a dataset with one version of a grader, whatever happens to the server meanwhile."""
    with desk.database.writing():
        number = version_to_run(desk, grader, version).number
        return Jobs(desk.database).create(
            desk.project, grader=grader, dataset=dataset, version=number, by=desk.who.name
        )


@of_jobs("GET", "/{id}")
def show_job(desk: Desk, job: JobId, *, project: InProject = None) -> JobRecord:
    """One job."""
    found = Jobs(desk.database).get(job)
    if found.project != desk.project:
        raise NotFoundError(f"there is no job {job!r:.80} in project {desk.project!r}")
    return found


@of_jobs("POST", "/{id}/cancel", repeatable=True)
def cancel_job(desk: Desk, job: JobId, *, project: InProject = None) -> JobRecord:
    """End a job before its time; what was graded stays."""
    show_job.function(desk, job)
    return Jobs(desk.database).cancel(job)


@of_jobs("DELETE", "/{id}", repeatable=True)
def delete_job(desk: Desk, job: JobId, *, project: InProject = None) -> None:
    """Delete a job that has ended, with its scores."""
    show_job.function(desk, job)
    Jobs(desk.database).delete(job)


@of_jobs("GET", "/{id}/summary")
def show_job_summary(desk: Desk, job: JobId, *, project: InProject = None) -> JobSummary:
    """What came of a job so far, in numbers."""
    record = show_job.function(desk, job)
    tally = Jobs(desk.database).tally(job)
    mean, causes = _mean(tally.scores), Causes()
    for error in tally.errors:
        causes.add(one_line(error or "no cause was recorded", _LINE))
    return JobSummary(
        job=record,
        line=_line(record, mean, tally.counts.get("error", 0)),
        scored=tally.counts.get("scored", 0),
        skipped=tally.counts.get("skipped", 0),
        errors=tally.counts.get("error", 0),
        mean=mean,
        bars=histogram(tally.scores, _BARS),
        causes=causes.found()[:20],
        calibration=_card(desk, record, Jobs(desk.database).results(job, Stretch(1)).items),
        is_stored=Jobs(desk.database).has_rows(job),
    )


@of_jobs("GET", "/{id}/results")
def list_results(
    desk: Desk,
    job: JobId,
    *,
    status: Annotated[Status | None, Spec("Only those of this status.")] = None,
    order: Annotated[
        Literal["row", "score", "newest"], Spec("By row; lowest score first; or the newest first.")
    ] = "row",
    whole: Whole = False,
    limit: Limit = 50,
    offset: Offset = 0,
    after: After = None,
    project: InProject = None,
) -> ResultPage:
    """What came of the rows of a job, each on a line."""
    record = show_job.function(desk, job)
    wanted = Stretch(limit, offset, after)
    found = Jobs(desk.database).results(job, wanted, status=status, order=order)
    items = [_glimpse(one, whole=whole) for one in found]
    card = _card(desk, record, found.items)
    return ResultPage(items, found.total, found.next, calibration=card)


@of_jobs("GET", "/{id}/results/{number}")
def show_result(
    desk: Desk, job: JobId, number: RowNumber, *, project: InProject = None
) -> ResultDetail:
    """What came of one row of a job, and the row."""
    record = show_job.function(desk, job)
    result = Jobs(desk.database).result(job, number)
    row: RowDetail | None = None
    if Jobs(desk.database).has_rows(job):
        with suppress(NotFoundError):
            row = row_detail(Datasets(desk.database).row(desk.project, record.dataset, number))
    details = dict(result.graded.details)
    text = plain(json.dumps(details, indent=2, ensure_ascii=False)) if details else ""
    return ResultDetail(result=result, details=text, row=row)


def _mean(scores: Sequence[float]) -> Interval:
    is_unit = all(0.0 <= value <= 1.0 for value in scores)
    return mean_interval(scores, bounds=(0.0, 1.0) if is_unit else None)


def _line(job: JobRecord, mean: Interval, errors: int) -> str:
    words = {
        "queued": "Waits for a worker",
        "running": "Running",
        "finished": "Finished",
        "failed": "Failed",
        "cancelled": "Cancelled",
    }
    said = [f"{words[job.status]}: {job.done:,} of {job.total:,} rows"]
    if mean.mean is not None:
        interval = score_interval(mean)
        between = f" ({interval}, 95 %)" if interval else ""
        said.append(f"mean score {score(mean.mean)}{between} of {mean.n:,} scored")
    if errors:
        said.append(f"{errors:,} could not be graded")
    return "; ".join(said)


def _card(desk: Desk, job: JobRecord, given: Sequence[ScoreRecord]) -> Calibration | None:
    with suppress(NotFoundError):  # jobs outlive their graders
        version = desk.graders.version(job.grader, job.version)
        return calibration_of(desk, version, [one.graded for one in given])
    return None


def _glimpse(record: ScoreRecord, *, whole: bool) -> ResultGlimpse:
    graded = record.graded
    return ResultGlimpse(
        number=record.number or 0,
        item=one_line(record.item, 120),
        status=graded.status,
        score=graded.score,
        outcome=one_line(graded.outcome, 60),
        why=one_line(graded.error or graded.reason, _LINE),
        flags=tuple(one_line(flag, 120) for flag in graded.flags),
        assurance=graded.assurance,
        record=record if whole else None,
    )
