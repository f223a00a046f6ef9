"""Operations on stored datasets, scores and jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Literal, TypeAlias

from assay.errors import AssayError, InputError, Location, NotFoundError, nearest
from assay.frozen import frozen
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.scoring.results import finite_number
from assay.service.arguments import Before, time_before
from assay.service.graders import Calibration, calibration_of, version_to_run
from assay.service.operation import (
    Cursor,
    DatasetKey,
    Desk,
    Force,
    GraderKey,
    InProject,
    Limit,
    Section,
    Spec,
)
from assay.service.pages import Page, cursor_after, cursor_number, cursor_text, page
from assay.store.catalog import GraderVersion
from assay.store.datasets import DatasetRecord, DatasetRow, Datasets
from assay.store.jobs import JobRecord, Jobs, JobStatus
from assay.store.scores import ScoreRecord, Scores

ENDED = ("finished", "failed", "cancelled")
"""How a job ends."""

WrittenScore: TypeAlias = "Mapping[str, Json]"
"""A score from elsewhere: ``grader``, ``item`` and ``score``, with ``reason`` and ``details``."""

_SCORE_FIELDS = frozenset({"grader", "item", "score", "reason", "details"})
of_datasets = Section("/projects/{project}/datasets", tag="datasets")
of_scores = Section("/projects/{project}/scores", tag="scores")
of_jobs = Section("/projects/{project}/jobs", tag="jobs")

JOB_ID = Spec(
    alias="id",
    pattern=r"^[A-Za-z0-9-]{1,64}$",
    description="Id of the job.",
    example="20261121-090830-ab12cd34",
)
JobId = Annotated[str, JOB_ID]


@frozen
class ScorePage(Page[ScoreRecord]):
    """Scores, oldest first, and the calibration cards of what gave them.

    Attributes:
        calibrations: Of the graders of this page that were measured.
    """

    items: Sequence[ScoreRecord]
    next_cursor: str = ""
    calibrations: tuple[Calibration, ...] = ()


@frozen
class Results(Page[ScoreRecord]):
    """Part of a job's scores, and the card of the grader that gave them.

    Attributes:
        calibration: The card, also one that is stale; None where the grader has none.
    """

    items: Sequence[ScoreRecord]
    next_cursor: str = ""
    calibration: Calibration | None = None


@frozen
class StoredScores:
    """How many scores were stored."""

    stored: int


@frozen
class DeletedScores:
    """How many scores were deleted."""

    deleted: int


@of_datasets("GET")
def list_datasets(
    desk: Desk, *, limit: Limit = 50, cursor: Cursor = None, project: InProject = None
) -> Page[DatasetRecord]:
    """The datasets of a project, by key."""
    after, datasets = cursor_text(cursor), Datasets(desk.database)
    return page(
        lambda most: datasets.page(desk.project, limit=most, after=after),
        limit,
        lambda record: record.key,
    )


@of_datasets("GET", "/{key}")
def show_dataset(desk: Desk, key: DatasetKey, *, project: InProject = None) -> DatasetRecord:
    """One dataset."""
    return Datasets(desk.database).get(desk.project, key)


@of_datasets("GET", "/{key}/rows")
def list_rows(
    desk: Desk,
    key: DatasetKey,
    *,
    limit: Limit = 50,
    cursor: Cursor = None,
    project: InProject = None,
) -> Page[DatasetRow]:
    """The rows of a dataset, in their order; fewer than asked for where they are large."""
    after, datasets = cursor_number(cursor), Datasets(desk.database)
    total = datasets.get(desk.project, key).rows
    found = datasets.rows(desk.project, key, after=after, limit=limit)
    is_more = bool(found) and found[-1].number < total
    return Page(found, cursor_after(found[-1].number) if is_more else "")


@of_datasets("DELETE", "/{key}", repeatable=True)
def delete_dataset(
    desk: Desk, key: DatasetKey, *, force: Force = False, project: InProject = None
) -> None:
    """Delete a dataset."""
    Datasets(desk.database).delete(desk.project, key, force=force)


@of_scores("GET")
def list_scores(
    desk: Desk,
    *,
    grader: Annotated[
        str | None, Spec(max_length=100, description="`KEY`, or `KEY@NUMBER`.", example="four")
    ] = None,
    item: Annotated[str | None, Spec(max_length=500, description="Id of an item.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    project: InProject = None,
) -> ScorePage:
    """The scores of a project, oldest first."""
    after, scores = cursor_number(cursor), Scores(desk.database)
    found = page(
        lambda most: scores.page(desk.project, grader, item, after, most),
        limit,
        lambda score: score.seq,
    )
    return ScorePage(found.items, found.next_cursor, _calibrations(desk, found.items))


@of_scores("POST", status=201, repeatable=True)
def add_scores(
    desk: Desk,
    scores: Annotated[
        Sequence[WrittenScore],
        Spec(
            min_length=1,
            max_length=1_000,
            example=[{"grader": "human", "item": "1", "score": 0.5, "reason": "half right"}],
        ),
    ],
    source: Literal["user", "sdk"] = "user",
    *,
    project: InProject = None,
) -> StoredScores:
    """Store scores from elsewhere, for graders of the kind `custom`: all of them, or none."""
    with desk.database.writing():
        versions: dict[str, GraderVersion] = {}
        records = [
            _written_score(desk, versions, score, number, source)
            for number, score in enumerate(scores)
        ]
        Scores(desk.database).add(desk.project, records)
    return StoredScores(len(records))


@of_scores("DELETE", repeatable=True)
def delete_scores(
    desk: Desk,
    before: Before,
    *,
    grader: Annotated[
        str | None, Spec(max_length=100, description="Only those of this `KEY`, or `KEY@NUMBER`.")
    ] = None,
    project: InProject = None,
) -> DeletedScores:
    """Delete old scores that belong to no job; those of a job go with it."""
    return DeletedScores(Scores(desk.database).delete(desk.project, time_before(before), grader))


@of_jobs("GET")
def list_jobs(
    desk: Desk,
    *,
    status: Annotated[JobStatus | None, Spec(description="Only those of this status.")] = None,
    dataset: Annotated[
        str | None, Spec(max_length=64, description="Only those over this dataset.")
    ] = None,
    grader: Annotated[
        str | None, Spec(max_length=64, description="Only those with this grader.")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    project: InProject = None,
) -> Page[JobRecord]:
    """The jobs of a project, newest first."""
    after, jobs = cursor_text(cursor), Jobs(desk.database)
    return page(
        lambda most: jobs.page(
            desk.project, limit=most, after=after, status=status, dataset=dataset, grader=grader
        ),
        limit,
        lambda job: job.id,
    )


def _made(desk: Desk, job: JobRecord) -> dict[str, str]:
    return {"Location": f"/api/v1/projects/{desk.project}/jobs/{job.id}"}


@of_jobs("POST", status=202, repeatable=True, headers=_made)
def create_job(
    desk: Desk,
    grader: GraderKey,
    dataset: DatasetKey,
    version: Annotated[
        int | None, Spec(ge=1, le=2**31 - 1, description="The latest by default.")
    ] = None,
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


@of_jobs("GET", "/{id}/results")
def list_results(
    desk: Desk,
    job: JobId,
    *,
    limit: Limit = 50,
    cursor: Cursor = None,
    project: InProject = None,
) -> Results:
    """The scores of a job, in the order in which they were stored."""
    after, record = cursor_number(cursor), show_job.function(desk, job)
    found = page(
        lambda most: Jobs(desk.database).results(job, after, most), limit, lambda score: score.seq
    )
    version = desk.graders.version(record.grader, record.version)
    card = calibration_of(desk, version, (one.graded for one in found.items))
    return Results(found.items, found.next_cursor, card)


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


def _calibrations(desk: Desk, scores: Sequence[ScoreRecord]) -> tuple[Calibration, ...]:
    """The cards of the graders that gave scores, in the order of the first score of each."""
    given: dict[str, list[Graded]] = {}
    for score in scores:
        given.setdefault(score.graded.grader, []).append(score.graded)
    cards: list[Calibration] = []
    for grader, graded in given.items():
        key, _, number = grader.partition("@")
        with suppress(NotFoundError):  # scores outlive the grader that gave them
            version = desk.graders.version(key, int(number) if number else None)
            if card := calibration_of(desk, version, graded):
                cards.append(card)
    return tuple(cards)


def _written_score(
    desk: Desk,
    versions: dict[str, GraderVersion],
    score: WrittenScore,
    number: int,
    source: Literal["user", "sdk"],
) -> ScoreRecord:
    """A score that somebody gives in the name of a grader."""
    place = f"scores[{number}]"
    if unknown := sorted(set(score) - _SCORE_FIELDS):
        raise InputError(
            "unknown field",
            location=Location(field=f"{place}.{unknown[0]}"),
            hint=nearest(unknown[0], sorted(_SCORE_FIELDS)),
        )
    key, item, details = score.get("grader"), score.get("item"), score.get("details")
    if not isinstance(key, str) or not isinstance(item, str | int) or isinstance(item, bool):
        raise InputError(f"{place} needs a 'grader' and an 'item'")
    try:
        value = finite_number(score.get("score"), what="the score")
    except AssayError as error:
        field = Location(field=f"{place}.score")
        raise InputError(error.message, location=field, hint=error.hint) from error
    if key not in versions:
        versions[key] = desk.graders.version(key)
    version = versions[key]
    if version.kind != "custom":
        raise InputError(
            f"{version.key!r} is a {version.kind} grader: it gives its scores itself",
            location=Location(field=f"{place}.grader"),
            hint="use one of the kind 'custom'",
        )
    graded = Graded(
        id=str(item),
        status="scored",
        score=value,
        reason=str(score.get("reason") or ""),
        details=details if isinstance(details, dict) else {},
        grader=f"{version.key}@{version.number}",
        digest=version.digest,
    )
    return ScoreRecord(project=desk.project, item=str(item), source=source, graded=graded)
