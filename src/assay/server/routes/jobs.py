"""Jobs: a stored dataset, graded in the background."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from starlette.responses import StreamingResponse

from assay.errors import NotFoundError, StoreError
from assay.scoring.json_safe import Json
from assay.server.context import caller, context
from assay.server.documents import problem_responses
from assay.server.door import Door, needs
from assay.server.events import ENDED, event_id, follow
from assay.server.grading import calibration, registry_of, version_of
from assay.server.idempotency import Answer, Keep, carry_out
from assay.server.models.work import JobBody, JobPage, JobShown, JobStatus, ResultPage
from assay.server.paging import cursor_number, cursor_text, page
from assay.server.problems import reply
from assay.server.routes.params import Cursor, JobId, Limit, Project
from assay.store.catalog_records import JobRecord, ScoreRecord
from assay.store.database import Database
from assay.store.jobs import Jobs

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/projects/{project}/jobs", route_class=Door, tags=["jobs"])

_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events `progress` and, at the end, `done`, each with the job as its data.",
        "content": {
            "text/event-stream": {
                "schema": {"type": "string"},
                "example": 'id: running-64\nevent: progress\ndata: {"status":"running"}\n\n',
            }
        },
    },
    204: {"description": "The client has seen the end already."},
}


@router.get("", response_model=JobPage, openapi_extra=needs("viewer"))
async def list_jobs(
    request: Request,
    project: Project,
    *,
    status: Annotated[JobStatus | None, Query(description="Only those of this status.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """The jobs of a project, newest first."""
    after = cursor_text(cursor)
    found = await context(request).storage.run(
        lambda database: Jobs(database).page(project, limit=limit + 1, after=after, status=status)
    )
    return reply(page(found, limit, _id, JobRecord.to_dict))


@router.post(
    "",
    status_code=202,
    response_model=JobShown,
    openapi_extra=needs("editor", repeatable=True),
    responses=problem_responses(404, 409),
)
async def create_job(request: Request, project: Project, body: JobBody) -> Response:
    """Grade a dataset with one version of a grader, whatever happens to the server meanwhile."""
    server, by = context(request), caller(request).name

    async def work(database: Database, keep: Keep) -> Answer:
        with database.writing():
            version = version_of(database, project, body.grader, body.version, server)
            job = Jobs(database).create(
                project,
                grader=body.grader,
                dataset=body.dataset,
                version=version.number,
                by=by,
            )
            place = f"/api/v1/projects/{project}/jobs/{job.id}"
            return keep(Answer(job.to_dict(), 202, {"Location": place}))

    answer = await carry_out(request, project, work)
    server.wake.set()
    return answer


@router.get(
    "/{id}",
    response_model=JobShown,
    openapi_extra=needs("viewer"),
    responses=problem_responses(404),
)
async def show_job(request: Request, project: Project, id: JobId) -> Response:  # noqa: A002 - its name in the path
    """One job."""
    found = await context(request).storage.run(lambda database: _get(database, project, id))
    return reply(found.to_dict())


@router.get(
    "/{id}/results",
    response_model=ResultPage,
    openapi_extra=needs("viewer"),
    responses=problem_responses(404),
)
async def list_results(
    request: Request,
    project: Project,
    id: JobId,  # noqa: A002 - its name in the path
    *,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """The scores of a job, in the order in which they were stored."""
    after, server = cursor_number(cursor), context(request)

    def find(database: Database) -> tuple[list[ScoreRecord], dict[str, Json] | None]:
        job = _get(database, project, id)
        found = Jobs(database).results(id, after, limit + 1)
        version = registry_of(database, project, server).version(job.grader, job.version)
        return found, calibration(database, version, (one.graded for one in found[:limit]))

    found, card = await server.storage.run(find)
    shown = page(found, limit, _seq, ScoreRecord.to_dict)
    return reply({**shown, "calibration": card})


@router.get(
    "/{id}/events",
    response_class=StreamingResponse,
    openapi_extra=needs("viewer"),
    responses={**_STREAM, **problem_responses(404)},
)
async def follow_job(
    request: Request,
    project: Project,
    id: JobId,  # noqa: A002 - its name in the path
    *,
    last_event_id: Annotated[
        str | None, Header(max_length=100, description="Id of the event seen last.")
    ] = None,
) -> Response:
    """The job's progress as it happens."""
    server = context(request)
    job = await server.storage.run(lambda database: _get(database, project, id))
    if job.status in ENDED and last_event_id == event_id(job):
        return Response(status_code=204)  # tells a browser to stop asking

    async def stream() -> AsyncIterator[bytes]:
        try:
            async for event in follow(server, job, last_event_id):
                yield event
        except (StoreError, NotFoundError):
            return  # the client asks again, and is told then

    return StreamingResponse(stream(), media_type="text/event-stream")


@router.post(
    "/{id}/cancel",
    response_model=JobShown,
    openapi_extra=needs("editor"),
    responses=problem_responses(404, 409),
)
async def cancel_job(request: Request, project: Project, id: JobId) -> Response:  # noqa: A002 - its name in the path
    """End a job before its time; what was graded stays."""

    def cancel(database: Database) -> JobRecord:
        _get(database, project, id)
        return Jobs(database).cancel(id)

    found = await context(request).storage.run(cancel)
    return reply(found.to_dict())


def _get(database: Database, project: str, job: str) -> JobRecord:
    found = Jobs(database).get(job)
    if found.project != project:
        raise NotFoundError(f"there is no job {job!r:.80}")
    return found


def _id(job: JobRecord) -> str:
    return job.id


def _seq(score: ScoreRecord) -> int:
    return score.seq
