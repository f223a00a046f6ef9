"""Server-sent events: what a job, a run or the list of runs is now, told whenever it changes.

Also what other processes carry out is told: whoever asks is answered out of the store.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias
from zlib import crc32

from fastapi import APIRouter, Header, Path, Request, Response
from starlette.responses import StreamingResponse

from assay.errors import NotFoundError, StoreError
from assay.scoring.json_safe import Json
from assay.scoring.records import as_json
from assay.server.admission import is_still_known
from assay.server.context import Context, caller, context
from assay.server.document import problem_responses
from assay.server.operations import Project, desk_of
from assay.server.routes import GuardedRoute, needs
from assay.service.jobs import ENDED, show_job
from assay.service.runs import run_rows, show_run
from assay.store.database import Database
from assay.store.jobs import JobRecord
from assay.store.kept_files import RunState, run_state
from assay.store.pages import Stretch
from assay.store.runs import Store
from assay.store.windows import Windows

router = APIRouter(route_class=GuardedRoute)

_STREAM = "text/event-stream"
_REST = 8
"""How many times as long as a look took it rests: the database has others to serve."""
_MOST_CHANGED = 50
_DEFAULT = "default"
_TEXT = {"type": "string"}
_EVENT = {
    "type": "object",
    "description": "An event; its data is JSON.",
    "properties": {"id": _TEXT, "event": _TEXT, "data": _TEXT},
}
_SEEN: dict[int | str, dict[str, Any]] = {
    204: {"description": "The client has seen the end already."}
}
_Last = Annotated[str | None, Header(max_length=100, description="Id of the event seen last.")]


@dataclass(frozen=True, slots=True)
class ToldState:
    """A state as it is told.

    Attributes:
        id: The same state has the same id.
        name: What the event is called.
        data: The state.
        is_last: Whether nothing comes after it.
    """

    id: str
    name: str
    data: Json
    is_last: bool = False


Find: TypeAlias = Callable[[Database], ToldState]
"""Finds a state as it is now."""


def _described(description: str, example: str) -> dict[int | str, dict[str, Any]]:
    """The ``responses`` of a route that answers with events."""
    content = {_STREAM: {"schema": _EVENT, "example": example}}
    return {200: {"description": description, "content": content}}


@router.get(
    "/api/v1/projects/{project}/jobs/{id}/events",
    tags=["jobs"],
    response_class=StreamingResponse,
    openapi_extra=needs("viewer"),
    responses={
        **_described(
            "Events `progress` and, at the end, `done`, each with the job as its data.",
            'id: running-64\nevent: progress\ndata: {"status":"running"}\n\n',
        ),
        **_SEEN,
        **problem_responses(404),
    },
)
async def follow_job(
    request: Request,
    project: Project,
    id: Annotated[  # noqa: A002 - its name in the path
        str, Path(pattern=r"^[A-Za-z0-9-]{1,64}$", description="Id of the job.")
    ],
    *,
    last_event_id: _Last = None,
) -> Response:
    """The job's progress as it happens."""

    def find(database: Database) -> ToldState:
        return _of_job(show_job.function(desk_of(request, database, project), id))

    return await _followed(request, find, last_event_id)


@router.get(
    "/api/v1/runs/{run}/events",
    tags=["runs"],
    response_class=StreamingResponse,
    openapi_extra=needs("viewer", project=_DEFAULT),
    responses={
        **_described(
            "Events `progress` and, when the run has ended, `done`, each with the run as a list of "
            "runs shows it; `gone` if it was deleted.",
            'id: running-7-0\nevent: progress\ndata: {"id":"20261121-090830-ab12","total":3}\n\n',
        ),
        **_SEEN,
        **problem_responses(404),
    },
)
async def follow_run(
    request: Request,
    run: Annotated[
        str, Path(min_length=1, max_length=200, description="Its id, or what it is called.")
    ],
    *,
    last_event_id: _Last = None,
) -> Response:
    """A run's progress as it happens."""
    watch = _OfRun(request, run)
    return await _followed(request, watch.find, last_event_id)


@router.get(
    "/api/v1/run-events",
    tags=["runs"],
    response_class=StreamingResponse,
    openapi_extra=needs("viewer", project=_DEFAULT),
    responses=_described(
        "Events `runs`: the runs that had results since the event before, or were begun or ended.",
        'id: 7-1-0\nevent: runs\ndata: {"items":[],"total":1}\n\n',
    ),
)
async def follow_runs(request: Request, *, last_event_id: _Last = None) -> Response:
    """The list of runs as it changes."""
    watch = _OfAll(request)
    return await _followed(request, watch.find, last_event_id)


def _of_job(job: JobRecord) -> ToldState:
    has_ended = job.status in ENDED
    name = "done" if has_ended else "progress"
    waits = f"-waits-{crc32(job.message.encode()):x}" if job.message and not has_ended else ""
    return ToldState(f"{job.status}-{job.done}{waits}", name, job.to_dict(), is_last=has_ended)


class _OfRun:
    """Looks at one run; counts its cells again only where results came."""

    def __init__(self, request: Request, called: str) -> None:
        self._request, self._called = request, called
        self._run = ""
        self._seen: tuple[int, RunState] | None = None
        self._told: ToldState | None = None

    def find(self, database: Database) -> ToldState:
        """Look at it; first it is found by what people call it."""
        desk = desk_of(self._request, database, _DEFAULT)
        try:
            run = show_run.function(desk, self._run or self._called)
        except NotFoundError:
            if not self._run:
                raise
            run = None
        if run is None or self._run not in ("", run.id):
            return ToldState("gone", "gone", {"id": self._run}, is_last=True)
        self._run = run.id
        now = (Windows(database).last(), run_state(Store(database), run))
        if self._told is None or now != self._seen:
            (row,) = run_rows(desk, [run])
            self._seen, last = now, now[0]
            name = "done" if run.finished else "progress"
            number = f"{row.state}-{row.total}-{last}"
            self._told = ToldState(number, name, as_json(row), is_last=run.finished)
        return self._told


class _OfAll:
    """Looks at the list; tells only the runs that changed."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._seen = -1
        self._known: dict[str, bool] = {}
        self._told: ToldState | None = None

    def find(self, database: Database) -> ToldState:
        """What changed since the look before; at first nothing is told but how many there are."""
        desk = desk_of(self._request, database, _DEFAULT)
        store, windows = Store(database), Windows(database)
        runs = store.runs(Stretch(_MOST_CHANGED))
        last, total = windows.last(), runs.total
        newest = {run.id: run for run in runs}
        known = {run.id: run.finished for run in newest.values()}
        if self._told is not None and (last, known) == (self._seen, self._known):
            return self._told
        changed = set[str]()
        if self._told is not None:
            changed |= windows.touched(self._seen) if last > self._seen else set[str]()
            changed |= {run for run, ended in known.items() if self._known.get(run) is not ended}
        rows = run_rows(desk, [newest[run] for run in known if run in changed])
        open_runs = sum(not ended for ended in known.values())
        self._seen, self._known = last, known
        data: Json = {"items": [as_json(row) for row in rows], "total": total}
        self._told = ToldState(f"{last}-{total}-{open_runs}", "runs", data)
        return self._told


async def _followed(request: Request, find: Find, last: str | None) -> Response:
    """Tell a state now, and whenever it changes, until its end, the server's or the key's.

    Args:
        request: What was asked.
        find: Finds the state, a few times a second.
        last: The id that the client was told last: that state is not told again.
    """
    server = context(request)
    first = await server.storage.run(find)
    if first.is_last and first.id == last:
        return Response(status_code=204)  # tells a browser to stop asking
    events = _stream(request, first, find, last)
    return server.streams.reply(caller(request).id, events, _STREAM)


async def _stream(
    request: Request, state: ToldState, find: Find, last: str | None
) -> AsyncIterator[bytes]:
    server = context(request)
    told, spoken, took = last, time.monotonic(), 0.0
    yield b"retry: 1000\n\n"
    while True:
        if state.id != told:
            told, spoken = state.id, time.monotonic()
            yield _written(state)
        if state.is_last or server.stopping.is_set():
            return
        if time.monotonic() - spoken >= server.settings.heartbeat_seconds:
            spoken = time.monotonic()
            yield b": alive\n\n"
        await _moment(server, max(server.settings.poll_seconds, _REST * took))
        try:
            began = time.monotonic()
            state = await server.storage.run(find)
            took = time.monotonic() - began
            if not await is_still_known(request):
                return
        except (StoreError, NotFoundError):
            return  # the client asks again, and is told then


async def _moment(server: Context, seconds: float) -> None:
    """Wait a moment, or for the server's end."""
    try:
        await asyncio.wait_for(server.stopping.wait(), seconds)
    except TimeoutError:
        return


def _written(state: ToldState) -> bytes:
    data = json.dumps(state.data, separators=(",", ":"))
    return f"id: {state.id}\nevent: {state.name}\ndata: {data}\n\n".encode("ascii")
