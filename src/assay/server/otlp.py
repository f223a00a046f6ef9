"""Traces as OTLP/HTTP sends them: any OpenTelemetry exporter may be pointed at this server."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict

from assay.agents.transcripts.otlp import sent_spans
from assay.agents.transcripts.otlp_protobuf import decode_request, encode
from assay.endpoint.problems import ProblemError
from assay.errors import InputError
from assay.scoring.json_safe import Json
from assay.server.admission import spend
from assay.server.bodies import parse
from assay.server.context import ServerSettings, caller, context
from assay.server.operations import Project, desk_of, log_changes
from assay.server.problems import PROTOBUF, TRACES
from assay.server.replies import reply
from assay.server.routes import QUICK_BYTES, GuardedRoute, needs, require_type
from assay.service.operation import EVERY_PROJECT
from assay.service.traces import new_spans, receive
from assay.store.changes import ChangeRecord
from assay.store.database import Database
from assay.store.traces import NewSpan, Received
from assay.types.codec import Problem

_JSON = "application/json"
_DEFAULT = "default"
_ENCODINGS: Mapping[str, int] = {"gzip": 31, "deflate": 47}  # as zlib's `wbits`
_LONGEST = 1_000


class OtlpStatusShown(BaseModel):
    """Why a request of OTLP was refused."""

    model_config = ConfigDict(extra="forbid")

    code: int
    message: str


class OtlpReplyShown(BaseModel):
    """What came of a request of OTLP: `partialSuccess` where spans were not kept."""

    model_config = ConfigDict(extra="forbid")

    partialSuccess: dict[str, str] | None = None  # noqa: N815 - OTLP's own name


router = APIRouter(
    route_class=GuardedRoute,
    tags=["traces"],
    responses={
        200: {"model": OtlpReplyShown, "description": "Kept, or what was not."},
        **{
            status: {"model": OtlpStatusShown, "description": HTTPStatus(status).phrase}
            for status in (400, 401, 403, 404, 413, 415, 421, 429, 500, 503)
        },
    },
)
_SPAN: Json = {
    "traceId": "5b8efff798038103d269b633813fc60c",
    "spanId": "eee19b7ec3c1b174",
    "name": "chat m",
}
_SENT: Json = {"resourceSpans": [{"scopeSpans": [{"spans": [_SPAN]}]}]}
_BODY: dict[str, Json] = {
    "required": True,
    "description": "An ExportTraceServiceRequest; also in protobuf, as `application/x-protobuf`, "
    "and packed with gzip.",
    "content": {
        _JSON: {
            "schema": {"type": "object", "properties": {"resourceSpans": {"type": "array"}}},
            "examples": {"span": {"value": _SENT}},
        }
    },
}


@router.post(
    TRACES, response_class=Response, openapi_extra=needs("editor", project="own", requestBody=_BODY)
)
async def receive_traces(request: Request) -> Response:
    """Keep the spans of a request of OTLP/HTTP, in the project of the key, or in `default`."""
    who = caller(request)
    if who.project != EVERY_PROJECT:
        return await _receive(request, who.project)
    if who.role != "admin":  # as in `admit`, which did not know which project is meant
        await spend(request, _DEFAULT)
    return await _receive(request, _DEFAULT)


@router.post(
    f"/api/v1/projects/{{project}}/otlp{TRACES}",
    response_class=Response,
    openapi_extra=needs("editor", requestBody=_BODY),
)
async def receive_project_traces(request: Request, project: Project) -> Response:
    """Keep the spans of a request of OTLP/HTTP, in a project."""
    return await _receive(request, project)


async def _receive(request: Request, project: str) -> Response:
    server = context(request)
    hint = ": set OTEL_EXPORTER_OTLP_PROTOCOL=http/json or http/protobuf"
    form = require_type(request, _JSON, PROTOBUF, hint=hint)
    packed = request.headers.get("content-encoding", "").strip().lower()
    body = await request.body()
    work = partial(_read, body, packed, form, server.settings)
    is_short = len(body) <= QUICK_BYTES and not packed
    spans, lost = work() if is_short else await asyncio.to_thread(work)

    def keep(database: Database) -> tuple[Received, list[ChangeRecord]]:
        return receive(desk_of(request, database, project), spans, server.settings.traces)

    received, changes = await server.storage.run(keep)
    for why in lost.why:
        received.refuse(why, 0)
    received.refused += lost.refused
    server.metrics.spans(received, project)
    answer = _answer(received, form)
    log_changes(changes, answer)
    return answer


def _answer(received: Received, form: str) -> Response:
    rejected = received.refused + received.rewritten
    why = "; ".join(received.why)[:_LONGEST]
    if form == _JSON:
        told: Json = {"rejectedSpans": str(rejected), "errorMessage": why}
        return reply({"partialSuccess": told} if rejected else {})
    partial_success = encode((1, rejected), (2, why))
    return Response(encode((1, partial_success)), media_type=PROTOBUF)


def _read(
    body: bytes, packed: str, form: str, settings: ServerSettings
) -> tuple[list[NewSpan], Received]:
    """The spans of a body."""
    if packed and packed != "identity":
        body = _unpacked(body, packed, settings.max_body_bytes)
    most: dict[str, Any] = {"max_depth": settings.max_depth, "max_values": settings.max_values}
    request = parse(body, **most) if form == _JSON else decode_request(body, **most)
    return new_spans(sent_spans(request), settings.traces)


def _unpacked(body: bytes, packed: str, most: int) -> bytes:
    """A body as it was, up to a limit: a small one may unpack to any size."""
    if packed not in _ENCODINGS:
        fault = Problem(("Content-Encoding",), f"{packed!r:.100}", "send gzip, or none")
        raise ProblemError(415, "the body may be packed with gzip", errors=[fault])
    unpacking = zlib.decompressobj(_ENCODINGS[packed])
    try:
        found = unpacking.decompress(body, most + 1)
    except zlib.error as error:
        raise InputError(f"the body is not {packed}: {error}") from None
    if len(found) > most:
        raise ProblemError(413, f"the body unpacks to more than {most} bytes")
    if not unpacking.eof or unpacking.unused_data:
        raise InputError(f"the body is not {packed}: it ends too early, or too late")
    return found
