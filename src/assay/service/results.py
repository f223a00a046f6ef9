"""Operations on what came of jobs: all of it in numbers, and any part of it."""

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
from assay.scoring.intervals import Interval, mean_interval
from assay.scoring.results import Assurance, Status
from assay.service.data import JobId, of_jobs, show_job
from assay.service.graders import Calibration, calibration_of
from assay.service.operation import Desk, InProject, Offset, Spec
from assay.service.rows import RowDetail, RowNumber, Window, row_detail
from assay.store.datasets import Datasets
from assay.store.jobs import JobRecord, Jobs
from assay.store.scores import ScoreRecord

_BARS = 10
_LINE = 300


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
    """

    number: int
    item: str
    status: Status
    score: float | None
    outcome: str
    why: str
    flags: tuple[str, ...] = ()
    assurance: Assurance | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultWindow:
    """Results of a job from a place on.

    Attributes:
        results: Them.
        total: How many there are of the chosen status.
    """

    results: tuple[ResultGlimpse, ...]
    total: int


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
        calibration=_card(desk, record),
        is_stored=_is_stored(desk, record),
    )


@of_jobs("GET", "/{id}/results/window")
def show_results(
    desk: Desk,
    job: JobId,
    *,
    status: Annotated[Status | None, Spec(description="Only those of this status.")] = None,
    order: Annotated[
        Literal["row", "score", "newest"],
        Spec(description="By row; lowest score first; or the newest first."),
    ] = "row",
    offset: Offset = 0,
    limit: Window = 50,
    project: InProject = None,
) -> ResultWindow:
    """The results of a job from any place on, each on a line."""
    show_job.function(desk, job)
    jobs = Jobs(desk.database)
    counts = jobs.counts(job)
    found = jobs.window(job, offset=offset, limit=limit, status=status, order=order)
    return ResultWindow(
        results=tuple(_glimpse(number, record) for number, record in found),
        total=sum(counts.values()) if status is None else counts.get(status, 0),
    )


@of_jobs("GET", "/{id}/results/{number}")
def show_result(
    desk: Desk, job: JobId, number: RowNumber, *, project: InProject = None
) -> ResultDetail:
    """What came of one row of a job, and the row."""
    record = show_job.function(desk, job)
    result = Jobs(desk.database).result(job, number)
    row: RowDetail | None = None
    if _is_stored(desk, record):
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


def _card(desk: Desk, job: JobRecord) -> Calibration | None:
    with suppress(NotFoundError):  # jobs outlive their graders
        version = desk.graders.version(job.grader, job.version)
        graded = [record.graded for _, record in Jobs(desk.database).window(job.id, limit=1)]
        return calibration_of(desk, version, graded)
    return None


def _is_stored(desk: Desk, job: JobRecord) -> bool:
    return Jobs(desk.database).has_rows(job.id)


def _glimpse(number: int, record: ScoreRecord) -> ResultGlimpse:
    graded = record.graded
    return ResultGlimpse(
        number=number,
        item=one_line(record.item, 120),
        status=graded.status,
        score=graded.score,
        outcome=one_line(graded.outcome, 60),
        why=one_line(graded.error or graded.reason, _LINE),
        flags=tuple(one_line(flag, 120) for flag in graded.flags),
        assurance=graded.assurance,
    )
