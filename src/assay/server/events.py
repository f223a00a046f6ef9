"""The progress of a job as server-sent events."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Request, Response
from starlette.responses import StreamingResponse

from assay.errors import NotFoundError, StoreError
from assay.server.context import Context, caller, context
from assay.server.door import Door, needs
from assay.server.openapi import problem_responses
from assay.server.operations import Project
from assay.service.data import ENDED, show_job
from assay.service.operation import Desk
from assay.store.jobs import JobRecord, Jobs

__all__ = ["router"]

router = APIRouter(route_class=Door, tags=["jobs"])

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


@router.get(
    "/api/v1/projects/{project}/jobs/{id}/events",
    response_class=StreamingResponse,
    openapi_extra=needs("viewer"),
    responses={**_STREAM, **problem_responses(404)},
)
async def follow_job(
    request: Request,
    project: Project,
    id: Annotated[  # noqa: A002 - its name in the path
        str, Path(pattern=r"^[A-Za-z0-9-]{1,64}$", description="Id of the job.")
    ],
    *,
    last_event_id: Annotated[
        str | None, Header(max_length=100, description="Id of the event seen last.")
    ] = None,
) -> Response:
    """The job's progress as it happens."""
    server, who = context(request), caller(request)
    allowed = server.settings.permissions
    job = await server.storage.run(
        lambda database: show_job.function(Desk(database, project, who, allowed), id)
    )
    if job.status in ENDED and last_event_id == _event_id(job):
        return Response(status_code=204)  # tells a browser to stop asking

    async def stream() -> AsyncIterator[bytes]:
        try:
            async for event in _follow(server, job, last_event_id):
                yield event
        except (StoreError, NotFoundError):
            return  # the client asks again, and is told then

    return StreamingResponse(stream(), media_type="text/event-stream")


def _event_id(job: JobRecord) -> str:
    """The id of the event that tells a job's state: the same state has the same id."""
    return f"{job.status}-{job.done}"


async def _follow(server: Context, job: JobRecord, last: str | None) -> AsyncIterator[bytes]:
    """Tell the state of a job now, and whenever it changes, until it ends or the server stops."""
    told, spoken = last, time.monotonic()
    yield b"retry: 1000\n\n"
    while True:
        if _event_id(job) != told:
            told, spoken = _event_id(job), time.monotonic()
            yield _event(job)
        if job.status in ENDED or server.stopping.is_set():
            return
        if time.monotonic() - spoken >= server.settings.heartbeat_seconds:
            spoken = time.monotonic()
            yield b": alive\n\n"
        await _moment(server)
        job = await server.storage.run(lambda database: Jobs(database).get(job.id))  # noqa: B023 - awaited at once


async def _moment(server: Context) -> None:
    """Wait a moment, or for the server's end."""
    try:
        await asyncio.wait_for(server.stopping.wait(), server.settings.poll_seconds)
    except TimeoutError:
        return


def _event(job: JobRecord) -> bytes:
    name = "done" if job.status in ENDED else "progress"
    data = json.dumps(job.to_dict(), separators=(",", ":"))
    return f"id: {_event_id(job)}\nevent: {name}\ndata: {data}\n\n".encode("ascii")
