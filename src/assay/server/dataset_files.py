"""Datasets as files of JSON lines: checked as they come in and kept whole, or read part by part.

A client that sends slowly must not hold up the database: the lines are put into a file first, and
stored in one transaction when all of them are there and right.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import IO, Annotated, NoReturn, cast

from fastapi import APIRouter, Path, Query, Request, Response
from starlette.responses import StreamingResponse

from assay.endpoint.problems import ProblemError
from assay.errors import InputError, StoreError
from assay.scoring.json_safe import Json
from assay.server.bodies import parse_line, refusal
from assay.server.context import Context, ServerSettings, context
from assay.server.document import problem_responses
from assay.server.operations import Project, desk_of, log_changes
from assay.server.repeats import Keep, StoredReply, carry_out
from assay.server.replies import in_pieces
from assay.server.routes import GuardedRoute, needs, require_type
from assay.service.operation import KEY_PATTERN
from assay.store.changes import ChangeRecord
from assay.store.database import Database
from assay.store.datasets import DatasetRecord, Datasets
from assay.store.projects import Projects
from assay.tasks.row_files import renamed
from assay.tasks.rows import read_row
from assay.types.codec import Problem

router = APIRouter(route_class=GuardedRoute, tags=["datasets"])

_MAX_ID = 500
_JSONL = "application/x-ndjson"
_TYPES = (_JSONL, "application/jsonl", "application/jsonlines")
_LINES: dict[str, Json] = {
    "description": "One row as a JSON object on each line.",
    "content": {
        _JSONL: {
            "schema": {"type": "string"},
            "example": '{"answer": "4", "expected": "4"}\n{"answer": "5", "expected": "4"}\n',
        }
    },
}
_Key = Annotated[
    str, Path(pattern=KEY_PATTERN, description="Key of the dataset.", examples=["arithmetic"])
]
_SHOWN = {"application/json": {"schema": {"$ref": "#/components/schemas/DatasetRecord"}}}

MAX_FAULTS = 20
"""Wrong lines that are told at once; with that many nothing more is read."""


class _StoppedError(Exception):
    """Nothing that follows matters."""


class Upload:
    """A dataset on its way in.

    Args:
        spool: The file that holds the lines meanwhile.
        settings: The limits.
        mapping: Our names of fields, each with the one in the rows.

    Attributes:
        rows: Lines so far that hold a row.
    """

    def __init__(
        self, spool: IO[bytes], settings: ServerSettings, mapping: Mapping[str, str] | None = None
    ) -> None:
        self.rows = 0
        self._spool = spool
        self._settings = settings
        self._mapping = mapping or {}
        self._line = 0
        self._rest = bytearray()
        self._hash = hashlib.sha256()
        self._wrong: list[ProblemError] = []

    @property
    def digest(self) -> str:
        """SHA-256 of all bytes that came."""
        return self._hash.hexdigest()

    async def take(self, chunks: AsyncIterator[bytes]) -> None:
        """Take everything in.

        Raises:
            ProblemError: For lines that are not rows, the first `MAX_FAULTS` of them; for a line
                that is too long, for too many rows, and for none.
            StoreError: If the file cannot be written.
        """
        try:
            async for chunk in chunks:
                self._hash.update(chunk)
                self._feed(chunk)
            if self._rest:
                self._take_line(bytes(self._rest))
        except _StoppedError:
            pass
        if self._wrong:
            raise _all_of(self._wrong)
        if not self.rows:
            none = Problem(("rows",), "a dataset needs at least one row")
            raise ProblemError(422, none.message, errors=[none])

    def _feed(self, chunk: bytes) -> None:
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            self._rest += chunk[start:end]
            line = bytes(self._rest)
            self._rest.clear()
            self._take_line(line)
            start = end + 1
        self._rest += chunk[start:]
        if len(self._rest) > self._settings.max_line_bytes:
            self._stop(self._too_long(self._line + 1))

    def _take_line(self, line: bytes) -> None:
        self._line += 1
        number = self._line
        if not line.strip():
            return
        if len(line) > self._settings.max_line_bytes:
            self._stop(self._too_long(number))
        self.rows += 1
        if self.rows > self._settings.max_rows:
            most = self._settings.max_rows
            self._stop(_refusal(number, f"more than {most} rows", "split it", 413))
        try:
            row = self._read(line, number)
            if self._mapping:
                line = json.dumps(row).encode()
        except ProblemError as problem:
            self._wrong.append(problem)
            if len(self._wrong) == MAX_FAULTS:
                raise _StoppedError from problem
        if self._wrong:
            return  # nothing will be stored
        try:
            self._spool.write(line + b"\n")
        except OSError as error:
            raise StoreError(f"an upload could not be kept: {error.strerror}") from error

    def _stop(self, problem: ProblemError) -> NoReturn:
        """Read no further."""
        self._wrong.append(problem)
        raise _StoppedError from problem

    def _read(self, line: bytes, number: int) -> dict[str, Json]:
        """The row that a line holds, under our names, if it can be graded."""
        data = parse_line(line, number, max_depth=self._settings.max_depth)
        try:
            if self._mapping:
                data = renamed(data, self._mapping, set())
            row = read_row(data, self.rows)
        except InputError as error:
            raise _refusal(number, error.message, error.hint) from error
        if len(row.id) > _MAX_ID or "\0" in row.id:
            raise _refusal(number, f"the id is longer than {_MAX_ID} or holds a zero character")
        return data

    def _too_long(self, number: int) -> ProblemError:
        most = self._settings.max_line_bytes
        return _refusal(number, f"longer than {most} bytes", "shorten the row", 413)

    def stored(self) -> Iterator[dict[str, Json]]:
        """The rows, read back."""
        self._spool.seek(0)
        for line in self._spool:
            yield cast("dict[str, Json]", json.loads(line))


@router.post(
    "/api/v1/projects/{project}/datasets/{key}",
    status_code=201,
    response_class=Response,
    openapi_extra=needs("editor", repeatable=True, requestBody={"required": True, **_LINES}),
    responses={
        201: {"description": "Successful Response", "content": _SHOWN},
        **problem_responses(400, 404, 409, 413, 415),
    },
)
async def create_dataset(
    request: Request,
    project: Project,
    key: _Key,
    *,
    name: Annotated[
        str, Query(max_length=200, pattern=r"^[^\x00]*$", description="For people.")
    ] = "",
    renames: Annotated[
        list[str],
        Query(
            alias="map",
            max_length=20,
            description="What the rows call a field of ours, as `OURS=THEIRS`; may be repeated.",
            examples=[["answer=output"]],
        ),
    ] = [],  # noqa: B006 - never changed
) -> Response:
    """Store a dataset. Every line is checked first; one that is wrong, and nothing is stored."""
    require_type(request, *_TYPES)
    server = context(request)
    await server.storage.run(lambda database: Projects(database).get(project))
    with tempfile.TemporaryFile() as spool:
        upload = Upload(spool, server.settings, _mapping(renames))
        await upload.take(request.stream())

        changes: list[ChangeRecord] = []

        async def work(keep: Keep | None) -> StoredReply:
            location = server.settings.location
            made = await asyncio.to_thread(_store, location, project, key, name, upload)
            said = {"key": key, "name": name}
            changes.append(
                await server.storage.run(
                    lambda database: desk_of(request, database, project).note(
                        "create_dataset", said
                    )
                )
            )
            place = f"/api/v1/projects/{project}/datasets/{made.key}"
            answer = StoredReply(made.to_dict(), 201, {"Location": place})
            if keep is not None:
                await server.storage.run(lambda database: keep(database, answer))
            return answer

        found = await carry_out(request, project, work, digest=upload.digest)
    log_changes(changes, found)
    return found


def _mapping(renames: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in renames:
        ours, _, theirs = one.partition("=")
        if not ours or not theirs or ours in found:
            fault = Problem(("map",), f"{one!r:.100} renames nothing", "such as answer=output")
            raise ProblemError(422, fault.message, errors=[fault])
        found[ours] = theirs
    return found


def _store(location: str, project: str, key: str, name: str, upload: Upload) -> DatasetRecord:
    """Store what came in, with a connection of its own. Blocks."""
    database = Database.open(location)
    try:
        return Datasets(database).create(project, key, name, upload.stored())
    finally:
        with suppress(StoreError):
            database.close()


def _all_of(problems: Sequence[ProblemError]) -> ProblemError:
    """The first problem, with what is wrong in the other lines."""
    first = problems[0]
    if len(problems) == 1:
        return first
    faults = [fault for problem in problems for fault in problem.errors]
    detail = f"{first.message} (and {len(problems) - 1} more)"
    return ProblemError(first.status, detail, errors=faults)


def _refusal(number: int, message: str, hint: str = "", status: int = 422) -> ProblemError:
    return refusal(f"line {number}", message, hint, status)


@router.get(
    "/api/v1/projects/{project}/datasets/{key}/file",
    response_class=StreamingResponse,
    openapi_extra=needs("viewer"),
    responses={200: _LINES, **problem_responses(404, 429)},
)
async def download_dataset(request: Request, project: Project, key: _Key) -> Response:
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
        for piece in in_pieces([text.encode()]):
            yield piece
        del text  # while the next part is read
