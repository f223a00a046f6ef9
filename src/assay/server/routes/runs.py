"""Runs of cases: what `assay run` stored, to be read."""

from __future__ import annotations

import dataclasses
from typing import Annotated, cast

from fastapi import APIRouter, Path, Query, Request, Response

from assay.errors import InputError, NotFoundError
from assay.scoring.json_safe import Json, plain
from assay.server.context import context
from assay.server.documents import problem_responses
from assay.server.door import Door, needs
from assay.server.models.runs import CellPage, DetailShown, RunPage, RunShown
from assay.server.paging import cursor_cell, page
from assay.server.problems import reply
from assay.server.routes.params import Cursor, Limit
from assay.store import CellRecord, RunRecord, Store
from assay.store.database import Database
from assay.store.decisions import Decisions, decided

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/runs", route_class=Door, tags=["runs"])

_Run = Annotated[
    str,
    Path(
        min_length=1,
        max_length=200,
        description="Its id, the beginning of it, its label, or `latest`.",
        examples=["latest"],
    ),
]
_Name = Annotated[str, Query(max_length=500)]


@router.get("", response_model=RunPage, openapi_extra=needs("viewer", project="default"))
async def list_runs(request: Request, *, limit: Limit = 50) -> Response:
    """The newest runs, newest first."""
    found = await context(request).storage.run(lambda database: Store(database).runs(limit))
    return reply({"items": [_shown(run) for run in found], "next_cursor": None})


@router.get(
    "/{run}",
    response_model=RunShown,
    openapi_extra=needs("viewer", project="default"),
    responses=problem_responses(404),
)
async def show_run(request: Request, run: _Run) -> Response:
    """One run."""
    found = await context(request).storage.run(lambda database: _named(Store(database), run))
    return reply(_shown(found))


@router.get(
    "/{run}/cells",
    response_model=CellPage,
    openapi_extra=needs("viewer", project="default"),
    responses=problem_responses(404),
)
async def list_cells(
    request: Request,
    run: _Run,
    *,
    failures: Annotated[bool, Query(description="Only what failed or broke.")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """The newest result of every cell, by case, harness, model and trial."""
    after = cursor_cell(cursor)

    def find(database: Database) -> list[CellRecord]:
        store = Store(database)
        cells = store.cells(_named(store, run).id, only_failures=failures)
        cells = decided(cells, Decisions(database).all)
        found: list[CellRecord] = []
        for cell in cells:
            if after is None or cell.key > after:
                found.append(cell)
                if len(found) > limit:
                    break
        return found

    found = await context(request).storage.run(find)
    return reply(page(found, limit, _place, _shown))


@router.get(
    "/{run}/cells/detail",
    response_model=DetailShown,
    openapi_extra=needs("viewer", project="default"),
    responses=problem_responses(404),
)
async def show_cell(
    request: Request,
    run: _Run,
    *,
    case: _Name,
    harness: _Name = "",
    model: _Name = "",
    trial: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
) -> Response:
    """A cell with all of its detail: the answer, the trace, the score tree."""

    def find(database: Database) -> dict[str, Json]:
        store = Store(database)
        run_id = _named(store, run).id
        key = (case, harness, model, trial)
        history = store.history(run_id, key)
        if not history:
            raise NotFoundError(f"run {run_id} has no cell {key}", hint="list its cells")
        return {"cell": _shown(history[-1]), "detail": store.detail(run_id, key)}

    return reply(await context(request).storage.run(find))


def _named(store: Store, ref: str) -> RunRecord:
    try:
        return store.run(ref)
    except InputError as error:  # its message says where the store is, which is nobody's business
        message = f"no run, or more than one, is meant by {ref!r:.80}"
        raise NotFoundError(message, hint=error.hint) from error


def _shown(record: RunRecord | CellRecord) -> dict[str, Json]:
    names = [field.name for field in dataclasses.fields(record)]
    return {name: plain(cast("object", getattr(record, name))) for name in names}


def _place(cell: CellRecord) -> object:
    return cell.key
