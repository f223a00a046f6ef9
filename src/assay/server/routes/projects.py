"""Projects, and who is asking."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from assay.server.access import EVERY_PROJECT
from assay.server.context import caller, context
from assay.server.documents import problem_responses
from assay.server.door import Door, needs
from assay.server.idempotency import Answer, Keep, carry_out
from assay.server.models.work import IdentityShown, ProjectBody, ProjectPage, ProjectShown
from assay.server.paging import cursor_text, page
from assay.server.problems import reply
from assay.server.routes.params import Cursor, Limit, Project
from assay.store.catalog_records import ProjectRecord
from assay.store.database import Database
from assay.store.projects import Projects

__all__ = ["router"]

router = APIRouter(prefix="/api/v1", route_class=Door, tags=["projects"])


@router.get("/me", response_model=IdentityShown, openapi_extra=needs("member"))
async def show_caller(request: Request) -> Response:
    """Who is asking, and what they may do."""
    who = caller(request)
    return reply({"id": who.id, "name": who.name, "role": who.role, "project": who.project})


@router.get("/projects", response_model=ProjectPage, openapi_extra=needs("member"))
async def list_projects(request: Request, *, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """The projects that the caller may see, by key."""
    after, own = cursor_text(cursor), caller(request).project
    found = await context(request).storage.run(lambda database: Projects(database).all())
    seen = [p for p in found if own in (EVERY_PROJECT, p.key) and p.key > after]
    return reply(page(seen[: limit + 1], limit, _key, ProjectRecord.to_dict))


@router.post(
    "/projects",
    status_code=201,
    response_model=ProjectShown,
    openapi_extra=needs("admin", repeatable=True),
    responses=problem_responses(409),
)
async def create_project(request: Request, body: ProjectBody) -> Response:
    """Make a project."""

    async def work(database: Database, keep: Keep) -> Answer:
        with database.writing():
            made = Projects(database).create(body.key, body.name)
            location = {"Location": f"/api/v1/projects/{made.key}"}
            return keep(Answer(made.to_dict(), 201, location))

    return await carry_out(request, EVERY_PROJECT, work)


@router.get(
    "/projects/{project}",
    response_model=ProjectShown,
    openapi_extra=needs("viewer"),
    responses=problem_responses(404),
)
async def show_project(request: Request, project: Project) -> Response:
    """One project."""
    found = await context(request).storage.run(lambda database: Projects(database).get(project))
    return reply(found.to_dict())


def _key(project: ProjectRecord) -> str:
    return project.key
