"""Runs as they go on, as server-sent events, also those that other processes carry out."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Request, Response
from starlette.responses import StreamingResponse

from assay.errors import NotFoundError
from assay.scoring.json_safe import Json
from assay.server.context import Context, caller, context
from assay.server.door import Door, needs
from assay.server.live import Told, described, streamed
from assay.server.openapi import problem_responses
from assay.service.operation import Desk, Identity, as_json
from assay.service.runs import run_rows, show_run
from assay.store.database import Database
from assay.store.kept import RunState, run_state
from assay.store.pages import Stretch
from assay.store.runs import Store
from assay.store.windows import Windows

router = APIRouter(route_class=Door, tags=["runs"])

_MOST_CHANGED = 50
_DEFAULT = "default"
_Last = Annotated[str | None, Header(max_length=100, description="Id of the event seen last.")]
_OF_RUN: dict[int | str, dict[str, Any]] = {
    **described(
        "Events `progress` and, when the run has ended, `done`, each with the run as a list of "
        "runs shows it; `gone` if it was deleted.",
        'id: running-7-0\\nevent: progress\\ndata: {"id":"20261121-090830-ab12","total":3}\\n\\n',
    ),
    204: {"description": "The client has seen the end already."},
}
_OF_ALL = described(
    "Events `runs`: the runs that had results since the event before, or were begun or ended.",
    'id: 7-1-0\\nevent: runs\\ndata: {"items":[],"total":1}\\n\\n',
)


@router.get(
    "/api/v1/runs/{run}/events",
    response_class=StreamingResponse,
    openapi_extra=needs("viewer", project=_DEFAULT),
    responses={**_OF_RUN, **problem_responses(404)},
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
    server, who = context(request), caller(request)
    watch = _OfRun(server, who)
    first = await server.storage.run(lambda database: watch.begin(database, run))
    if first.is_last and first.id == last_event_id:
        return Response(status_code=204)  # tells a browser to stop asking
    return streamed(request, first, watch.look, last_event_id)


@router.get(
    "/api/v1/run-events",
    response_class=StreamingResponse,
    openapi_extra=needs("viewer", project=_DEFAULT),
    responses=_OF_ALL,
)
async def follow_runs(request: Request, *, last_event_id: _Last = None) -> Response:
    """The list of runs as it changes."""
    server = context(request)
    watch = _OfAll(server, caller(request))
    first = await server.storage.run(watch.find)
    return streamed(request, first, watch.look, last_event_id)


class _OfRun:
    """Looks at one run; counts its cells again only where results came."""

    def __init__(self, server: Context, who: Identity) -> None:
        self._server, self._who = server, who
        self._run = ""
        self._seen: tuple[int, RunState] | None = None
        self._told: Told | None = None

    def begin(self, database: Database, run: str) -> Told:
        """Find the run by what people call it."""
        self._run = show_run.function(_desk(self._server, database, self._who), run).id
        return self._find(database)

    async def look(self) -> Told:
        """Look again."""
        return await self._server.storage.run(self._find)

    def _find(self, database: Database) -> Told:
        desk = _desk(self._server, database, self._who)
        try:
            run = show_run.function(desk, self._run)
        except NotFoundError:
            return Told("gone", "gone", {"id": self._run}, is_last=True)
        if run.id != self._run:
            return Told("gone", "gone", {"id": self._run}, is_last=True)
        now = (Windows(database).last(), run_state(Store(database), run))
        if self._told is None or now != self._seen:
            (row,) = run_rows(desk, [run])
            self._seen, last = now, now[0]
            name = "done" if run.finished else "progress"
            number = f"{row.state}-{row.total}-{last}"
            self._told = Told(number, name, as_json(row), is_last=run.finished)
        return self._told


class _OfAll:
    """Looks at the list; tells only the runs that changed."""

    def __init__(self, server: Context, who: Identity) -> None:
        self._server, self._who = server, who
        self._seen = -1
        self._known: dict[str, bool] = {}
        self._told: Told | None = None

    async def look(self) -> Told:
        """Look again."""
        return await self._server.storage.run(self.find)

    def find(self, database: Database) -> Told:
        """What changed since the look before; at first nothing is told but how many there are."""
        desk = _desk(self._server, database, self._who)
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
        self._told = Told(f"{last}-{total}-{open_runs}", "runs", data)
        return self._told


def _desk(server: Context, database: Database, who: Identity) -> Desk:
    return server.desk(database, _DEFAULT, who)
