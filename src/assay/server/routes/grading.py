"""Grade items with a stored grader."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from assay.scoring.json_safe import Json
from assay.server.context import context
from assay.server.documents import problem_responses
from assay.server.door import Door, needs
from assay.server.grading import calibration, grade_items, version_of
from assay.server.idempotency import Answer, Keep, carry_out
from assay.server.items import items_of
from assay.server.models.graders import GradeBody, GradedPage
from assay.server.routes.params import GraderKey, Project
from assay.store.catalog_records import ScoreRecord
from assay.store.database import Database
from assay.store.scores import Scores

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/projects/{project}/graders", route_class=Door, tags=["grading"])


@router.post(
    "/{key}/grade",
    response_model=GradedPage,
    openapi_extra=needs("editor", repeatable=True),
    responses=problem_responses(404, 409, 503),
)
async def grade(request: Request, project: Project, key: GraderKey, body: GradeBody) -> Response:
    """Grade items. Their scores are stored before they are acknowledged, unless `record` is false.

    Items that cannot be graded are errors among the results; the others are graded.
    """
    items = await items_of(request, "items")
    server = context(request)

    async def work(database: Database, keep: Keep) -> Answer:
        version = version_of(database, project, key, body.version, server)
        graded = await grade_items(database, version, items, server)
        results: list[Json] = [one.to_dict() for one in graded]
        answer = Answer(
            {
                "results": results,
                "grader": f"{version.key}@{version.number}",
                "digest": version.digest,
                "calibration": calibration(database, version, graded),
            }
        )
        if not body.record:
            return answer
        scores = [ScoreRecord(project=project, item=one.id, graded=one) for one in graded]
        with database.writing():
            Scores(database).add(project, scores)
            return keep(answer)

    return await carry_out(request, project, work)
