"""Graders as files: carry them away, and bring them in."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from assay.registry.files import read_grader_files
from assay.scoring.json_safe import Json
from assay.server.context import caller, context
from assay.server.documents import problem_responses
from assay.server.door import Door, needs
from assay.server.grading import registry_of
from assay.server.idempotency import Answer, Keep, carry_out
from assay.server.models.graders import FilesShown, ImportBody, ImportShown
from assay.server.policy import require_allowed
from assay.server.problems import reply
from assay.server.routes.params import Project
from assay.store.database import Database

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/projects/{project}/graders", route_class=Door, tags=["graders"])


@router.get(
    "/export",
    response_model=FilesShown,
    openapi_extra=needs("viewer"),
    responses=problem_responses(404),
)
async def export_graders(
    request: Request,
    project: Project,
    *,
    keys: Annotated[
        str | None,
        Query(max_length=20_000, description="Keys with commas between; all by default."),
    ] = None,
) -> Response:
    """Graders as files for git: `KEY.yaml`, and a function's source beside it."""
    wanted = None if keys is None else [key for key in keys.split(",") if key]
    server = context(request)
    files = await server.storage.run(
        lambda database: registry_of(database, project, server).files(wanted)
    )
    return reply({"files": files})


@router.post(
    "/import",
    response_model=ImportShown,
    openapi_extra=needs("editor", repeatable=True),
    responses=problem_responses(404, 409, 423, 503),
)
async def import_graders(request: Request, project: Project, body: ImportBody) -> Response:
    """Store the graders of some files: all of them, or none."""
    server, by = context(request), caller(request).name
    for file in read_grader_files(body.files):
        require_allowed(file.definition.kind, file.definition.to_dict(), server.settings)

    async def work(database: Database, keep: Keep) -> Answer:
        registry = registry_of(database, project, server, by)
        imported = await registry.import_files(body.files, update=body.update)
        items: list[Json] = [one.record.to_dict() for one in imported]
        return keep(Answer({"items": items}))

    return await carry_out(request, project, work)
