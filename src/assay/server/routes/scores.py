"""Stored scores: those that graders gave, and those that come from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from assay.errors import NotFoundError
from assay.registry import Registry
from assay.registry.written import written_score
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.server.context import context
from assay.server.documents import problem_responses
from assay.server.door import Door, needs
from assay.server.grading import calibration, registry_of
from assay.server.idempotency import Answer, Keep, carry_out
from assay.server.models.work import ScorePage, ScoresBody, ScoresShown
from assay.server.paging import cursor_number, page
from assay.server.problems import reply
from assay.server.routes.params import Cursor, Limit, Project
from assay.store.catalog_records import ScoreRecord
from assay.store.database import Database
from assay.store.scores import Scores

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/projects/{project}/scores", route_class=Door, tags=["scores"])


@router.get(
    "", response_model=ScorePage, openapi_extra=needs("viewer"), responses=problem_responses(404)
)
async def list_scores(
    request: Request,
    project: Project,
    *,
    grader: Annotated[
        str | None, Query(max_length=100, description="`KEY`, or `KEY@NUMBER`.", examples=["four"])
    ] = None,
    item: Annotated[str | None, Query(max_length=500, description="Id of an item.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """The scores of a project, oldest first."""
    after, server = cursor_number(cursor), context(request)

    def find(database: Database) -> tuple[list[ScoreRecord], list[Json]]:
        found = Scores(database).page(project, grader, item, after, limit + 1)
        registry = registry_of(database, project, server)
        return found, _calibrations(database, registry, found[:limit])

    found, cards = await server.storage.run(find)
    shown = page(found, limit, _seq, ScoreRecord.to_dict)
    return reply({**shown, "calibrations": cards})


@router.post(
    "",
    status_code=201,
    response_model=ScoresShown,
    openapi_extra=needs("editor", repeatable=True),
    responses=problem_responses(404, 409),
)
async def add_scores(request: Request, project: Project, body: ScoresBody) -> Response:
    """Store scores from elsewhere, for graders of the kind `custom`: all of them, or none."""

    async def work(database: Database, keep: Keep) -> Answer:
        registry = Registry(database, project)
        with database.writing():
            versions = {
                key: registry.version(key) for key in sorted({s.grader for s in body.scores})
            }
            records = [
                written_score(
                    versions[score.grader],
                    score.item,
                    score.score,
                    place=f"scores[{number}]",
                    source=body.source,
                    reason=score.reason,
                    details=score.details,
                )
                for number, score in enumerate(body.scores)
            ]
            Scores(database).add(project, records)
            return keep(Answer({"stored": len(records)}, 201))

    return await carry_out(request, project, work)


def _calibrations(
    database: Database, registry: Registry, scores: Sequence[ScoreRecord]
) -> list[Json]:
    """The cards of the graders that gave scores, in the order of the first score of each."""
    given: dict[str, list[Graded]] = {}
    for score in scores:
        given.setdefault(score.graded.grader, []).append(score.graded)
    cards: list[Json] = []
    for grader, graded in given.items():
        key, _, number = grader.partition("@")
        with suppress(NotFoundError):  # scores outlive the grader that gave them
            version = registry.version(key, int(number) if number else None)
            if card := calibration(database, version, graded):
                cards.append(card)
    return cards


def _seq(record: ScoreRecord) -> int:
    return record.seq
