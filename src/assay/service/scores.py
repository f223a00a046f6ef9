"""Operations on stored scores: what graders gave, and what people and programs write in."""

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
from assay.service.graders import Calibration, calibration_of
from assay.service.operation import After, Desk, InProject, Limit, Offset, Section, Spec
from assay.store.catalog import GraderVersion
from assay.store.pages import Page, Stretch
from assay.store.scores import ScoreRecord, Scores

WrittenScore: TypeAlias = "Mapping[str, Json]"
"""A score from elsewhere: ``grader``, ``item`` and ``score``, with ``reason`` and ``details``."""

_SCORE_FIELDS = frozenset({"grader", "item", "score", "reason", "details"})
of_scores = Section("/projects/{project}/scores", tag="scores")


@frozen
class ScorePage(Page[ScoreRecord]):
    """Scores, oldest first, and the calibration cards of what gave them.

    Attributes:
        calibrations: Of the graders of this page that were measured.
    """

    calibrations: tuple[Calibration, ...] = ()


@frozen
class StoredScores:
    """How many scores were stored."""

    stored: int


@frozen
class DeletedScores:
    """How many scores were deleted."""

    deleted: int


@of_scores("GET")
def list_scores(
    desk: Desk,
    *,
    grader: Annotated[
        str | None, Spec("`KEY`, or `KEY@NUMBER`.", max_length=100, example="four")
    ] = None,
    item: Annotated[str | None, Spec("Id of an item.", max_length=500)] = None,
    limit: Limit = 50,
    offset: Offset = 0,
    after: After = None,
    project: InProject = None,
) -> ScorePage:
    """The scores of a project, oldest first."""
    wanted = Stretch(limit, offset, after)
    found = Scores(desk.database).page(desk.project, grader, item, wanted)
    cards = _calibrations(desk, found.items)
    return ScorePage(found.items, found.total, found.next, cards)


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
        str | None, Spec("Only those of this `KEY`, or `KEY@NUMBER`.", max_length=100)
    ] = None,
    project: InProject = None,
) -> DeletedScores:
    """Delete old scores that belong to no job; those of a job go with it."""
    return DeletedScores(Scores(desk.database).delete(desk.project, time_before(before), grader))


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
