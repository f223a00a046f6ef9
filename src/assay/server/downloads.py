"""Datasets as they go out: a file of JSON lines, read part by part."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from starlette.responses import StreamingResponse

from assay.server.context import Context, context
from assay.server.door import Door, needs
from assay.server.openapi import problem_responses
from assay.server.operations import Project
from assay.server.problems import in_pieces
from assay.service.operation import KEY_PATTERN
from assay.store.datasets import Datasets

router = APIRouter(route_class=Door, tags=["datasets"])

_JSONL = "application/x-ndjson"
_FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "One row as a JSON object on each line.",
        "content": {
            _JSONL: {
                "schema": {"type": "string"},
                "example": '{"answer": "4", "expected": "4"}\n',
            }
        },
    }
}


@router.get(
    "/api/v1/projects/{project}/datasets/{key}/file",
    response_class=StreamingResponse,
    openapi_extra=needs("viewer"),
    responses={**_FILE, **problem_responses(404, 429)},
)
async def download_dataset(
    request: Request,
    project: Project,
    key: Annotated[
        str, Path(pattern=KEY_PATTERN, description="Key of the dataset.", examples=["arithmetic"])
    ],
) -> Response:
    """All rows as a file, which a browser saves."""
    server = context(request)
    await server.storage.run(lambda database: Datasets(database).get(project, key))
    headers = {"Content-Disposition": f'attachment; filename="{key}.jsonl"'}
    return server.downloads.reply(project, _lines(server, project, key), _JSONL, headers)


async def _lines(server: Context, project: str, key: str) -> AsyncIterator[bytes]:
    """The rows, part by part, so that others have their turn at the database.

    A dataset that goes meanwhile is an error: the file breaks off instead of ending early.
    """
    number = 0
    while True:
        number, text = await server.storage.run(
            lambda database, after=number: Datasets(database).lines(project, key, after=after)
        )
        if not text:
            return
        for piece in in_pieces([text]):
            yield piece
        del text  # while the next part is read
