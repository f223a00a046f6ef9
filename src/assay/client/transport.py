"""Requests to an assay server: one connection pool, bounded retries, typed refusals."""

from __future__ import annotations

import asyncio
import json
import random
import uuid
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from assay.client.errors import ServerError, UnreachableError, refusal
from assay.errors import InputError
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import NotJsonError, decode_json

if TYPE_CHECKING:
    import aiohttp

__all__ = ["Body", "Transport", "checked_url"]

_TRIES = 4
_FIRST_PAUSE = 0.25  # seconds, doubled with each try, with full jitter
_LONGEST_PAUSE = 20.0
_AGAIN = frozenset({429, 502, 503, 504})
_MOST_BYTES = 256 << 20

Body: TypeAlias = "Json | Callable[[], AsyncIterator[bytes]]"
"""JSON, or something that makes a stream of bytes anew for each try."""


def checked_url(base_url: str) -> str:
    """The address of a server, without a trailing slash.

    Raises:
        InputError: For what is not an http address, or one that carries a password.
    """
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(
            f"base_url {base_url!r} is not an http address", hint="such as http://127.0.0.1:8400"
        )
    if parts.username or parts.password:
        raise InputError("base_url must not hold a password", hint="give it as api_key")
    return base_url.rstrip("/")


class Transport:
    """Speaks to one server; belongs to one event loop.

    A request that may change something carries a key of its own, so that repeating it after a
    broken connection changes nothing twice.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None,
        *,
        timeout: float,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._base = checked_url(base_url)
        self._headers = {"User-Agent": f"assay/{_version()}"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._timeout = timeout
        self._pause = pause
        self._session: aiohttp.ClientSession | None = None

    async def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | int | None] | None = None,
        body: Body = None,
        headers: Mapping[str, str] | None = None,
    ) -> Json:
        """Send one request and return the JSON of its answer.

        Raises:
            InputError: The server says that what was asked for is wrong (`NotFoundError`,
                `ConflictError`, `LockedError` among them).
            AuthError: The key or its role does not allow it.
            ServerError: The server failed.
            UnreachableError: No answer came.
        """
        sent = dict(headers or {})
        if method == "POST":
            sent.setdefault("Idempotency-Key", uuid.uuid4().hex)
        for number in range(1, _TRIES + 1):
            status, problem, wait = await self._try(method, path, query, body, sent)
            if status < 400 and status:
                return problem
            if number == _TRIES or (status and status not in _AGAIN):
                raise self._failure(status, problem, path)
            await self._pause(min(wait, _LONGEST_PAUSE) if wait else _backoff(number))
        raise AssertionError("unreachable")  # pragma: no cover - the last try raises

    @asynccontextmanager
    async def events(self, path: str) -> AsyncGenerator[AsyncIterator[tuple[str, Json]]]:
        """Follow a stream of server-sent events as (event, data) pairs."""
        import aiohttp

        session = self._open()
        limits = aiohttp.ClientTimeout(total=None, sock_read=self._timeout)
        try:
            async with session.get(self._base + path, timeout=limits) as response:
                if response.status >= 400:
                    raise self._failure(response.status, await _json(response), path)
                yield _events(response.content)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._unreachable(error) from error

    async def close(self) -> None:
        """Give the connections back."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()
            self._finish()

    def _open(self) -> aiohttp.ClientSession:
        import aiohttp

        if self._session is None:
            self._session = session = aiohttp.ClientSession(headers=self._headers)
            self._finish = weakref.finalize(self, _let_go, session, asyncio.get_running_loop())
        return self._session

    async def _try(
        self,
        method: str,
        path: str,
        query: Mapping[str, str | int | None] | None,
        body: Body,
        headers: Mapping[str, str],
    ) -> tuple[int, Json, float]:
        """One try: the status (0 for no answer), the body or the fault, and how long to wait."""
        import aiohttp

        sent: dict[str, Any] = {"headers": dict(headers)}
        if callable(body):
            sent["data"] = body()
            sent["headers"]["Content-Type"] = "application/x-ndjson"
        elif body is not None:
            sent["data"] = _encoded(body)
            sent["headers"]["Content-Type"] = "application/json"
        wanted = {name: str(value) for name, value in (query or {}).items() if value is not None}
        try:
            async with self._open().request(
                method,
                self._base + path,
                params=wanted,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=self._timeout),
                **sent,
            ) as response:
                return response.status, await _json(response), _retry_after(response.headers)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return 0, str(self._unreachable(error)), 0.0

    def _unreachable(self, error: BaseException) -> UnreachableError:
        why = "it did not answer in time" if isinstance(error, TimeoutError) else str(error)
        return UnreachableError(
            f"the server at {self._base} cannot be reached: {why or type(error).__name__}",
            hint="is it running? start it with: assay serve",
        )

    def _failure(self, status: int, answer: Json, path: str) -> Exception:
        if not status:
            return UnreachableError(str(answer))
        if isinstance(answer, dict):
            return refusal(status, answer)
        return ServerError(
            f"the server at {self._base} answered {status} to {path}, not as assay does",
            status=status,
            hint="is base_url the address of an assay server?",
        )


def _let_go(session: aiohttp.ClientSession, loop: asyncio.AbstractEventLoop) -> None:
    """Close the connections of a client that was forgotten, wherever the collector found it."""
    if session.closed:
        return
    if loop.is_closed():
        # Nothing is left to wait for: the coroutine gets to its end in one go.
        closing = session.close()
        with suppress(StopIteration, RuntimeError):
            closing.send(None)
        closing.close()
    elif loop is _running_loop():
        _closing.add(task := loop.create_task(session.close()))
        task.add_done_callback(_closing.discard)
    else:
        asyncio.run_coroutine_threadsafe(session.close(), loop)


_closing: set[asyncio.Task[None]] = set()
"""Tasks are kept by nobody else."""


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _encoded(body: Json) -> bytes:
    try:
        return json.dumps(body, allow_nan=False).encode("ascii")
    except ValueError as error:
        raise InputError(f"cannot be sent as JSON: {error}", hint="NaN is not a score") from error


def _backoff(number: int) -> float:
    return random.uniform(0, _FIRST_PAUSE * 2**number)  # noqa: S311 - jitter, not a secret


def _retry_after(headers: Mapping[str, str]) -> float:
    text = headers.get("Retry-After", "")
    return float(text) if text.isdecimal() else 0.0


async def _json(response: aiohttp.ClientResponse) -> Json:
    content = bytearray()
    async for chunk in response.content.iter_any():
        content += chunk
        if len(content) > _MOST_BYTES:
            return "too long"
    if not content:
        return {}
    try:
        return decode_json(bytes(content))
    except NotJsonError:
        return content[:200].decode("utf-8", "replace")


async def _events(lines: aiohttp.StreamReader) -> AsyncIterator[tuple[str, Json]]:
    """Parse server-sent events (WHATWG HTML, section 9.2) as far as assay's server uses them."""
    event, data = "message", ""
    async for raw in lines:
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if not line:
            if data:
                yield event, decode_json(data)
            event, data = "message", ""
        elif line.startswith("event:"):
            event = line[6:].strip()
        elif line.startswith("data:"):
            data += line[5:].strip()


def _version() -> str:
    from assay.version import __version__

    return __version__
