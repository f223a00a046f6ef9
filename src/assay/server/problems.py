"""What goes wrong, as ``application/problem+json``: one shape for every refusal and failure."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, cast

from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse

from assay.endpoint.problems import MEDIA_TYPE, ProblemError, problem_body
from assay.errors import (
    AssayError,
    ConflictError,
    DamagedError,
    InputError,
    LockedError,
    MissingExtraError,
    NotFoundError,
    SandboxError,
    StoreError,
)
from assay.registry.policy import ForbiddenError
from assay.scoring.json_safe import Json
from assay.tasks.document import DocumentError
from assay.types.codec import Problem, ShapeError

if TYPE_CHECKING:
    from starlette.requests import Request

_LOG = logging.getLogger("assay.server")
_RETRY_SECONDS = 5
_PIECE_BYTES = 64 << 10
"""What is handed over at once, and so what a client that reads nothing costs."""


class SlowStoreError(StoreError):
    """The database did not answer in time; what was asked of it may still be done."""


def reply(
    data: object,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    *,
    media_type: str = "application/json",
) -> Response:
    """A reply with JSON in ASCII: what people submitted may hold half characters.

    A list is written item by item, and others have their turn between the pieces.

    Raises:
        ValueError: For a number that JSON cannot hold; nothing of ours may let one through.
    """
    whole = cast("dict[str, object]", data) if isinstance(data, dict) else {}
    items = whole.get("items")
    if isinstance(items, list) and items:
        texts = _listed(whole, cast("list[object]", items))
    else:
        texts = iter((_encode(data),))
    pieces = in_pieces(texts)
    first, second = next(pieces), next(pieces, None)
    if second is None:
        return Response(first, status, dict(headers or {}), media_type)
    rest = _one_by_one(chain((first, second), pieces))
    return StreamingResponse(rest, status, dict(headers or {}), media_type)


_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


def _listed(data: dict[str, object], items: list[object]) -> Iterator[str]:
    """The JSON of an object with a list of items, each of which may be large."""
    before, after = _encode({**data, "items": [0]}).split('"items":[0]', 1)
    yield f'{before}"items":[{_encode(items[0])}'
    for item in items[1:]:
        yield f",{_encode(item)}"
    yield f"]{after}"


def in_pieces(texts: Iterable[str]) -> Iterator[bytes]:
    """Texts one after the other, in pieces of at most `_PIECE_BYTES`; at least one."""
    held = bytearray()
    for text in texts:
        held += text.encode()
        if len(held) > _PIECE_BYTES:
            whole = memoryview(bytes(held))
            starts = range(0, len(whole), _PIECE_BYTES)
            yield from (bytes(whole[start : start + _PIECE_BYTES]) for start in starts[:-1])
            held = bytearray(whole[starts[-1] :])
    yield bytes(held)


async def _one_by_one(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
        await asyncio.sleep(0)


def problem_reply(problem: ProblemError, path: str) -> Response:
    """The reply that tells a problem: to exporters of traces in their form, wherever it arose."""
    if path.endswith(TRACES):
        return otlp_refusal(problem)
    body = problem_body(problem, path)
    return reply(body, problem.status, problem.headers, media_type=MEDIA_TYPE)


TRACES = "/v1/traces"
"""How the addresses end to which OTLP/HTTP sends traces."""
PROTOBUF = "application/x-protobuf"

_LONGEST = 1_000
# Codes of gRPC's Status: unauthenticated, permission denied, not found, exhausted, …
_INVALID, _INTERNAL = 3, 13
_CODES = {401: 16, 403: 7, 404: 5, 429: 8, 500: _INTERNAL, 503: 14}


def otlp_refusal(problem: ProblemError, *, is_protobuf: bool = False) -> Response:
    """A refusal as OTLP says it: a Status, in the encoding of the request."""
    # What can be mended is 400 to an exporter, whatever is wrong with it.
    status = 400 if problem.status == 422 else problem.status
    code, message = _CODES.get(status, _INVALID), problem.message[:_LONGEST]
    if not is_protobuf:
        return reply({"code": code, "message": message}, status, problem.headers)
    from assay.agents.transcripts.otlp_protobuf import encode

    return Response(encode((1, code), (2, message)), status, dict(problem.headers), PROTOBUF)


def problem_of(error: Exception, request: Request) -> ProblemError:
    """What an exception is to whoever sent the request.

    What is nobody's fault but ours is logged with a number, and the reply gives only the number.
    """
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, HTTPException):
        if error.status_code == 404:  # by the router alone: what is missing in the store says what
            said = "nothing is served at this address (/api/v1/openapi.json has every one)"
            return ProblemError(404, said, headers=error.headers)
        return ProblemError(error.status_code, error.detail, headers=error.headers)
    if isinstance(error, AssayError):
        return _of_ours(error, request)
    return _internal(error, request)


def _of_ours(error: AssayError, request: Request) -> ProblemError:
    if isinstance(error, InputError):
        return _of_input(error)
    if isinstance(error, StoreError | SandboxError | MissingExtraError):
        _LOG.error("%s %s: %s", request.method, request.url.path, error)
        detail = str(error)
        if isinstance(error, SlowStoreError):
            detail = "the database does not answer; it may keep this request later"
        elif isinstance(error, DamagedError):
            return ProblemError(503, "the database is damaged; who runs this server must mend it")
        elif isinstance(error, StoreError):
            detail = "the database cannot be used now; nothing of this request was kept"
        return ProblemError(503, detail, headers={"Retry-After": str(_RETRY_SECONDS)})
    return _internal(error, request)


def _of_input(error: InputError) -> ProblemError:
    status = 422
    kinds = ((NotFoundError, 404), (LockedError, 423), (ConflictError, 409), (ForbiddenError, 403))
    for kind, code in kinds:
        if isinstance(error, kind):
            status = code
            break
    if isinstance(error, ShapeError):
        errors: Sequence[Problem] = error.problems
    elif isinstance(error, DocumentError):
        errors = [Problem((str(one.location),), one.message, one.hint) for one in error.faults]
    else:
        errors = [Problem((error.location.field,), error.message, error.hint)]
    report = getattr(error, "report", None)
    more: dict[str, Json] = {}
    if report is not None and hasattr(report, "to_dict"):
        more["report"] = cast("Json", report.to_dict())
        more["grader"] = str(getattr(error, "key", ""))
    place = f"{error.location.field}: " if error.location.field else ""
    detail = place + (f"{error.message} ({error.hint})" if error.hint else error.message)
    return ProblemError(status, detail, errors=errors, more=more)


def _internal(error: Exception, request: Request) -> ProblemError:
    number = secrets.token_hex(4)
    _LOG.error("%s %s failed (%s)", request.method, request.url.path, number, exc_info=error)
    return ProblemError(500, f"an error of ours, number {number} in the server's log")
