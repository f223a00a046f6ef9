"""Stored datasets."""

from __future__ import annotations

import asyncio
import tempfile
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from assay.scoring.json_safe import Json
from assay.server.context import context
from assay.server.documents import problem_responses
from assay.server.door import Door, needs
from assay.server.idempotency import Answer, Keep, carry_out
from assay.server.models.work import DatasetPage, DatasetShown, RowPage
from assay.server.paging import cursor_number, cursor_text, page
from assay.server.problems import Fault, ProblemError, reply
from assay.server.routes.params import Cursor, DatasetKey, Force, Limit, Project
from assay.server.uploads import Upload, store_upload
from assay.store.catalog_records import DatasetRecord, DatasetRow
from assay.store.database import Database
from assay.store.datasets import Datasets
from assay.store.projects import Projects

__all__ = ["router"]

router = APIRouter(
    prefix="/api/v1/projects/{project}/datasets", route_class=Door, tags=["datasets"]
)

_JSONL = "application/x-ndjson"
_TYPES = (_JSONL, "application/jsonl", "application/jsonlines")
_BODY: dict[str, Json] = {
    "required": True,
    "description": "One row as a JSON object on each line.",
    "content": {
        _JSONL: {
            "schema": {"type": "string"},
            "examples": {
                "rows": {
                    "value": '{"answer": "4", "expected": "4"}\n{"answer": "5", "expected": "4"}\n'
                }
            },
        }
    },
}


@router.get("", response_model=DatasetPage, openapi_extra=needs("viewer"))
async def list_datasets(
    request: Request, project: Project, *, limit: Limit = 50, cursor: Cursor = None
) -> Response:
    """The datasets of a project, by key."""
    after = cursor_text(cursor)
    found = await context(request).storage.run(
        lambda database: Datasets(database).page(project, limit=limit + 1, after=after)
    )
    return reply(page(found, limit, _key, DatasetRecord.to_dict))


@router.post(
    "/{key}",
    status_code=201,
    response_model=DatasetShown,
    openapi_extra=needs("editor", repeatable=True, requestBody=_BODY),
    responses=problem_responses(400, 404, 409, 413, 415),
)
async def create_dataset(
    request: Request,
    project: Project,
    key: DatasetKey,
    *,
    name: Annotated[
        str, Query(max_length=200, pattern=r"^[^\x00]*$", description="For people.")
    ] = "",
) -> Response:
    """Store a dataset. Every line is checked first; one that is wrong, and nothing is stored."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given not in _TYPES:
        fault = Fault("Content-Type", f"{given!r:.100}", f"send {_JSONL}")
        raise ProblemError(415, f"the body must be {_JSONL}", faults=[fault])
    server = context(request)
    await server.storage.run(lambda database: Projects(database).get(project))
    with tempfile.TemporaryFile() as spool:
        upload = Upload(spool, server.settings)
        await upload.take(request.stream())

        async def work(_: Database, keep: Keep) -> Answer:
            location = server.settings.location
            made = await asyncio.to_thread(store_upload, location, project, key, name, upload)
            place = f"/api/v1/projects/{project}/datasets/{made.key}"
            return keep(Answer(made.to_dict(), 201, {"Location": place}))

        return await carry_out(request, project, work, digest=upload.digest)


@router.get(
    "/{key}",
    response_model=DatasetShown,
    openapi_extra=needs("viewer"),
    responses=problem_responses(404),
)
async def show_dataset(request: Request, project: Project, key: DatasetKey) -> Response:
    """One dataset."""
    found = await context(request).storage.run(
        lambda database: Datasets(database).get(project, key)
    )
    return reply(found.to_dict())


@router.get(
    "/{key}/rows",
    response_model=RowPage,
    openapi_extra=needs("viewer"),
    responses=problem_responses(404),
)
async def list_rows(
    request: Request,
    project: Project,
    key: DatasetKey,
    *,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """The rows of a dataset, in their order."""
    after = cursor_number(cursor)
    found = await context(request).storage.run(
        lambda database: Datasets(database).rows(project, key, after=after, limit=limit + 1)
    )
    return reply(page(found, limit, _number, DatasetRow.to_dict))


@router.delete(
    "/{key}",
    status_code=204,
    response_class=Response,
    openapi_extra=needs("editor"),
    responses=problem_responses(404, 409),
)
async def delete_dataset(
    request: Request,
    project: Project,
    key: DatasetKey,
    *,
    force: Force = False,
) -> Response:
    """Delete a dataset."""
    await context(request).storage.run(
        lambda database: Datasets(database).delete(project, key, force=force)
    )
    return Response(status_code=204)


def _key(record: DatasetRecord) -> str:
    return record.key


def _number(row: DatasetRow) -> int:
    return row.number
