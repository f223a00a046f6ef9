"""What holds for every request: whom it names, how large it is, its headers, its line in the log.

Plain ASGI, because it stands before every request and must see what streams through it.
"""

from __future__ import annotations

import asyncio
import logging
import random
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar, cast

from starlette.datastructures import Headers

from assay.endpoint.problems import ProblemError
from assay.server.admission import refuse_strangers
from assay.server.problems import problem_reply
from assay.types.codec import Problem

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from assay.server.context import ServerSettings
    from assay.server.metrics import Metrics

T = TypeVar("T")

_LOG = logging.getLogger("assay.access")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_UPLOAD = re.compile(r"/api/v1/projects/[^/]+/datasets/[^/]+\Z")
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cache-control", b"no-store"),
)
"""In a reply that does not say otherwise."""


class Middleware:
    """Lets requests through to ``app`` that name this server and are not too large.

    Args:
        app: What answers them.
        settings: Names and limits.
        metrics: Counts every request.
    """

    def __init__(self, app: ASGIApp, settings: ServerSettings, metrics: Metrics) -> None:
        self._app = app
        self._settings = settings
        self._metrics = metrics
        self._hosts = frozenset({"localhost", *(host.lower() for host in settings.hosts)})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection's request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        passage = _Passage(send, _request_id(headers), scope)
        started = time.perf_counter()
        try:
            limit = self._check(scope, headers)
            await self._app(scope, _counted(receive, limit), passage.send)
        except ProblemError as problem:
            if passage.status:
                raise
            await problem_reply(problem, scope["path"], headers)(scope, receive, passage.send)
        except asyncio.CancelledError:  # the server ends, and says so outside
            passage.status = passage.status or 503
            raise
        finally:
            self._note(scope, passage, time.perf_counter() - started)

    def _check(self, scope: Scope, headers: Headers) -> int:
        """Refuse what may not pass."""
        refuse_strangers(scope["method"], headers, self._hosts)
        limit = self._limit(scope)
        length = headers.get("content-length")
        if length is not None and not (length.isascii() and length.isdecimal()):
            raise ProblemError(400, "Content-Length is not a number")
        if length is not None and (len(length) > 18 or int(length) > limit):
            raise _too_large(limit)
        return limit

    def _limit(self, scope: Scope) -> int:
        if scope["method"] == "POST" and _UPLOAD.search(scope["path"]):
            return self._settings.max_dataset_bytes
        return self._settings.max_body_bytes

    def _note(self, scope: Scope, passage: _Passage, seconds: float) -> None:
        """One line for each request: no query, no header, nothing that could hold a secret."""
        status = passage.status or 500
        route = cast("object", scope.get("route"))
        path = str(getattr(route, "path", "unmatched"))
        method = scope["method"] if scope["method"].isalpha() and len(scope["method"]) < 8 else "?"
        project = _state(scope, "project", "")
        self._metrics.request(method, path, status, seconds, project)
        if _LOG.isEnabledFor(logging.INFO):
            shown = scope["path"].encode("unicode_escape").decode("ascii")
            _LOG.info("%s %.200s %d %.1f ms %s", method, shown, status, seconds * 1e3, passage.id)


def _state(scope: Scope, name: str, otherwise: T) -> T:
    """What was found out about who asks, if it came so far."""
    return cast("Mapping[str, T]", scope.get("state", {})).get(name, otherwise)


def _request_id(headers: Headers) -> str:
    """By which a reply and its line in the log are told apart: the caller's word, or ours."""
    given = headers.get("x-request-id", "")
    return given if _REQUEST_ID.fullmatch(given) else f"{random.getrandbits(64):016x}"


class _Passage:
    """What goes out: with our headers, and its status remembered."""

    def __init__(self, send: Send, request: str, scope: Scope) -> None:
        self._send = send
        self._scope = scope
        self.id = request
        self.status = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers: list[tuple[bytes, bytes]] = list(message.get("headers", ()))
            own = {name for name, _ in headers}
            headers += [(name, value) for name, value in _HEADERS if name not in own]
            headers.append((b"x-request-id", self.id.encode()))
            allowance = _state(self._scope, "allowance", dict[str, str]())
            headers += [(name.lower().encode(), text.encode()) for name, text in allowance.items()]
            message["headers"] = headers
        await self._send(message)


def _counted(receive: Receive, limit: int) -> Receive:
    """What comes in, up to a limit: a length that was not announced is found out."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:
            raise _too_large(limit)
        return message

    return counted


def _too_large(limit: int) -> ProblemError:
    return ProblemError(
        413,
        f"the body is larger than {limit} bytes",
        errors=[Problem(("",), "too large", "split it")],
    )
