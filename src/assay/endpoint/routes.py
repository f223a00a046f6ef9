"""The routes of an endpoint, for the web framework. Loaded when an app is made, not before."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Final, TypeAlias, TypeVar, cast

from fastapi import APIRouter, FastAPI, Request, Response
from starlette.exceptions import HTTPException

from assay.endpoint.problems import MEDIA_TYPE, ProblemError, media_type, problem_body
from assay.endpoint.served import Access, Served
from assay.graders.endpoints.forms import FORMS, nemo_gym
from assay.graders.endpoints.forms.form import NotGradedError, WireForm
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import NotJsonError, decode_json
from assay.types.codec import ShapeError

T = TypeVar("T")

Find: TypeAlias = Callable[[Request], Awaitable[Served]]
"""Which grader a request is for; raises `ProblemError` where there is none."""

_Handler: TypeAlias = Callable[[Served, Json, int], Awaitable[Json]]
"""Is given the grader, the JSON of the request and how long it is."""

MAX_VALUES: Final = 250_000
"""Values in the JSON of a request: to say of each what is wrong with it takes long."""

_MAX_DEPTH = 100
_QUICK_BYTES = 64 << 10
"""What is longer is read in a thread, so that nobody else waits for it."""


def build_router(find: Find, access: Access, *, now: Callable[[], float] = time.time) -> APIRouter:
    """A router with the routes of all wire forms."""
    router = APIRouter()

    def add(method: str, path: str, handler: _Handler, request: Mapping[str, Json] | None) -> None:
        async def answer(asked: Request) -> Response:
            try:
                served = await find(asked)
                access.check_headers(asked.headers)
                raw = await _body(asked, served.max_bytes)
                access.check_body(asked.headers, raw, now())
                body = None
                if request is not None:
                    body = await _read(len(raw), lambda: _parsed(asked, raw))
                return _json(await handler(served, body, len(raw)))
            except ProblemError as error:
                return problem_response(asked, error)
            except ShapeError as error:
                first = error.problems[0]
                place = f"{first.field}: " if first.field else ""
                problem = ProblemError(422, f"{place}{first.message}", errors=error.problems)
            except NotGradedError as error:
                problem = ProblemError(500, error.message, errors=error.problems)
            return problem_response(asked, problem)

        extra = {"requestBody": _described(request)} if request is not None else None
        router.add_api_route(
            path,
            answer,
            methods=[method],
            name=path.strip("/").replace("/", "_"),
            summary=(handler.__doc__ or "").partition("\n")[0],
            openapi_extra=cast("dict[str, object] | None", extra),
            response_class=Response,
            responses=_responses("string" if handler is _reverify_mode else "object"),
        )

    for method, path, handler, request in _ROUTES:
        add(method, path, handler, request)
    return router


def build_app(router: APIRouter, served: Served) -> FastAPI:
    """An application of nothing but the routes; every refusal is problem+json."""
    app = FastAPI(
        title=served.name,
        version=served.version or "0",
        description=served.description,
        docs_url=None,  # pages that load scripts of others
        redoc_url=None,
    )
    app.include_router(router)

    async def refuse(asked: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        problem = ProblemError(status, f"{asked.method} {asked.url.path}: not served here")
        return problem_response(asked, problem)

    app.add_exception_handler(HTTPException, refuse)
    return app


def problem_response(asked: Request, error: ProblemError) -> Response:
    """A problem as a reply."""
    body = problem_body(error, asked.url.path)
    return _json(body, error.status, MEDIA_TYPE, error.headers)


def _json(
    data: Json,
    status: int = 200,
    media_type: str = "application/json",
    headers: Mapping[str, str] | None = None,
) -> Response:
    # Escaped to ASCII: half a character in an answer cannot be written otherwise.
    content = json.dumps(data, allow_nan=False).encode()
    return Response(content, status, media_type=media_type, headers=dict(headers or {}))


async def _read(size: int, work: Callable[[], T]) -> T:
    return work() if size <= _QUICK_BYTES else await asyncio.to_thread(work)


async def _body(asked: Request, most: int) -> bytes:
    """The body, counted while it comes in."""
    too_long = ProblemError(413, f"the body is longer than {most} bytes")
    length = asked.headers.get("content-length", "")
    if length.isdecimal() and int(length[:20]) > most:
        raise too_long
    if asked.headers.get("content-encoding", "identity").lower() != "identity":
        raise ProblemError(415, "the body must not be compressed (Content-Encoding)")
    parts: list[bytes] = []
    size = 0
    async for part in asked.stream():
        size += len(part)
        if size > most:
            raise too_long
        parts.append(part)
    return b"".join(parts)


def _parsed(asked: Request, raw: bytes) -> Json:
    # No web page can send this type elsewhere without being asked first.
    kind = media_type(asked.headers)
    if kind != "application/json" and not kind.endswith("+json"):
        raise ProblemError(415, "the body must be application/json")
    try:
        return decode_json(raw, max_depth=_MAX_DEPTH, max_values=MAX_VALUES)
    except NotJsonError as error:
        raise ProblemError(400, f"the body is not JSON: {error}") from None


def _described(schema: Mapping[str, Json]) -> dict[str, object]:
    return {"required": True, "content": {"application/json": {"schema": dict(schema)}}}


_PROBLEM = {"content": {MEDIA_TYPE: {"schema": {"type": "object"}}}}


def _responses(answer: str) -> dict[int | str, dict[str, object]]:
    """What a route may answer: JSON of a type, or a problem."""
    statuses = (400, 401, 403, 404, 408, 413, 415, 422, 500)
    said = {"application/json": {"schema": {"type": answer}}}
    return {
        200: {"description": "OK", "content": said},
        **{status: {"description": HTTPStatus(status).phrase, **_PROBLEM} for status in statuses},
    }


def _handler(form: WireForm) -> _Handler:
    """What grades the items of requests in a form."""

    async def handle(served: Served, body: Json, size: int) -> Json:
        asked = await _read(size, lambda: form.decode_request(body, served))
        if len(asked) > served.max_batch:
            said = f"{len(asked)} items in one request; at most {served.max_batch}"
            raise ProblemError(413, f"{said} are graded at once")
        return form.encode_answer(body, await served.grade(asked), served)

    handle.__doc__ = form.title
    return handle


async def _info(served: Served, body: Json, size: int) -> Json:
    """What this grader is."""
    return {
        **cast("dict[str, Json]", await _adaptive_info(served, body, size)),
        "max_batch": served.max_batch,
        "score_range": None if served.score_range is None else list(served.score_range),
        "metadata_schema": dict(served.metadata_schema),
        "protocol": "assay/1",
    }


async def _adaptive_info(served: Served, body: Json, size: int) -> Json:
    """What this grader is, for Adaptive."""
    del body, size
    return {"name": served.name, "version": served.version, "description": served.description}


async def _metadata_schema(served: Served, body: Json, size: int) -> Json:
    """JSON Schema of the metadata."""
    del body, size
    return dict(served.metadata_schema) or {"type": "object"}


async def _session(served: Served, body: Json, size: int) -> Json:
    """Nothing to prepare and nothing to close, for NeMo Gym."""
    del served, size
    return nemo_gym.session(body)


async def _reverify_mode(served: Served, body: Json, size: int) -> Json:
    """Whether rollouts can be graded again, for NeMo Gym: they can, by what is sent alone."""
    del served, body, size
    return "stateless"


async def _aggregate(served: Served, body: Json, size: int) -> Json:
    """Figures over verified rollouts, for NeMo Gym."""
    del served
    return await _read(size, lambda: nemo_gym.aggregate(body))


_ROUTES: tuple[tuple[str, str, _Handler, Mapping[str, Json] | None], ...] = (
    ("GET", "/v1/info", _info, None),
    ("GET", "/info", _adaptive_info, None),
    ("GET", "/metadata_schema", _metadata_schema, None),
    *(
        ("POST", each.route, _handler(each), each.schema)
        for each in {one.route: one for form in FORMS.values() for one in form.each()}.values()
    ),
    ("POST", "/seed_session", _session, {"type": "object"}),
    ("POST", "/close_session", _session, {"type": "object"}),
    ("GET", "/reverify_mode", _reverify_mode, None),
    ("POST", "/aggregate_metrics", _aggregate, nemo_gym.AGGREGATE_REQUEST),
)
