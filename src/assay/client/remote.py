"""The operations over HTTP: requests, and what is read of replies, follow from the table."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import math
import uuid
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast
from urllib.parse import quote, urlsplit

from assay.client.errors import AuthError, ServerError, UnreachableError, refusal
from assay.client.scope import Rows
from assay.errors import InputError
from assay.models.pace import Timing, asked_pause
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import NotJsonError, decode_json
from assay.scoring.validation import ValidationReport
from assay.service.jobs import ENDED
from assay.service.operation import Operation
from assay.store import DatasetRecord, JobRecord
from assay.store.checks import json_text
from assay.store.datasets import MAX_ROW_BYTES
from assay.types import codec
from assay.types.codec import ShapeError
from assay.version import __version__

if TYPE_CHECKING:
    import aiohttp

T = TypeVar("T")

_SPOOLED = 64 << 20
_FOLLOW_TRIES = 8


class RemoteBackend:
    """An assay server.

    Args:
        base_url: Its address.
        api_key: The key, or None where the server asks for none.
        timeout: Seconds until a request is given up.
        patience: Seconds in which a server that is busy or away is asked again.
    """

    def __init__(
        self, base_url: str, api_key: str | None, *, timeout: float, patience: float | None = None
    ) -> None:
        self._http = Transport(base_url, api_key, timeout=timeout, patience=patience)

    async def call(
        self, operation: Operation[..., T], project: str, given: Mapping[str, object]
    ) -> T:
        """Ask the server for an operation."""
        path = operation.path.replace("{project}", quote(project, safe=""))
        query: dict[str, str | int | None] = {}
        body: dict[str, Json] | None = None
        headers: dict[str, str] = {}
        sent = operation.sent(given)
        for one in operation.places:
            value = sent.get(one.name, one.default)
            if one.place == "path":
                path = path.replace(f"{{{one.sent_as}}}", quote(str(value), safe=""))
            elif one.place == "if-match":
                headers["If-Match"] = "*" if value is None else f'"{sent["grader_key"]}@{value}"'
            elif one.place == "body":
                body = body or {}
                if value != one.default:
                    body[one.name] = _sent(value)
            elif value != one.default:
                query[one.sent_as] = "true" if value is True else cast("str", value)
        answer = await self._http.send(
            operation.method, path, query=query, body=body, headers=headers
        )
        return cast(
            "T", None if operation.output is type(None) else _read(operation.output, answer)
        )

    async def create_dataset(self, project: str, key: str, name: str, rows: Rows) -> DatasetRecord:
        """Store a dataset: it is spooled here first, so that it can be sent again."""
        import tempfile

        with tempfile.SpooledTemporaryFile(max_size=_SPOOLED) as spool:
            await asyncio.to_thread(_spool, rows, spool.write)

            async def lines() -> AsyncIterator[bytes]:
                spool.seek(0)
                while chunk := await asyncio.to_thread(spool.read, 1 << 20):
                    yield chunk

            answer = await self._http.send(
                "POST", _path(project, "datasets", key), query={"name": name or None}, body=lines
            )
        return _read(DatasetRecord, answer)

    async def begin(self, job: JobRecord) -> JobRecord:
        """Nothing: the server works on the job."""
        return job

    async def follow(self, project: str, job: str) -> AsyncIterator[JobRecord]:
        """The job as it gets on; a broken stream is taken up again."""
        broken = 0
        while True:
            try:
                async with self._http.events(_path(project, "jobs", job, "events")) as events:
                    async for _, data in events:
                        broken = 0
                        record: JobRecord = _read(JobRecord, data)
                        yield record
                        if record.status in ENDED:
                            return
            except UnreachableError:
                broken += 1
                if broken == _FOLLOW_TRIES:
                    raise
                await asyncio.sleep(0.25 * broken)

    async def close(self) -> None:
        """Give the connections back."""
        await self._http.close()


def _path(project: str, *parts: str) -> str:
    return "/api/v1/projects/" + "/".join(quote(part, safe="") for part in (project, *parts))


def _sent(value: object) -> Json:
    """A parameter in a body: what rows hold is left as it is, so that no NaN gets through."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Json]", value))
    if isinstance(value, list | tuple):
        return [_sent(item) for item in cast("Sequence[object]", value)]
    return cast("Json", value)


def _read(kind: Any, data: Json) -> Any:  # noqa: ANN401 - any type
    """Read an output, passing over fields that a newer server adds."""
    try:
        return codec.from_json(kind, data, _READING)
    except ShapeError as error:
        raise ServerError(f"the answer is not that of an assay server: {error}") from error


_READING = codec.Reading(
    passes_over=True, forms={Graded: Graded.from_dict, ValidationReport: ValidationReport.from_dict}
)


def _spool(rows: Iterable[Mapping[str, Json]], write: Callable[[bytes], object]) -> None:
    for number, row in enumerate(rows, 1):
        write(json_text(row, f"row {number}", most=MAX_ROW_BYTES).encode() + b"\n")


# Requests: one connection pool, bounded retries, typed refusals

_TRIES = 4
_LONGEST_PAUSE, _PATIENT_PAUSE = 20.0, 60.0
_LOG = logging.getLogger("assay.client")
_AGAIN = frozenset({408, 429, 502, 503, 504})
_CONNECT_SECONDS = 10.0
_TELL_SECONDS = 60.0
_MOST_BYTES = 256 << 20

Body: TypeAlias = "Json | Callable[[], AsyncIterator[bytes]]"
"""JSON, or something that makes a stream of bytes anew for each try."""


def checked_url(base_url: str) -> str:
    """The address of a server, without a trailing slash or the path of its API.

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
    return base_url.rstrip("/").removesuffix("/api/v1")


class Transport:
    """Speaks to one server; belongs to one event loop.

    A request that may change something carries a key of its own, so that repeating it after a
    broken connection changes nothing twice.

    Args:
        base_url: Its address.
        api_key: The key, or None where the server asks for none.
        timeout: Seconds until a try is given up.
        patience: Seconds in which a server that is busy or away is asked again; by default it is
            asked four times.
        timing: Clock and chance.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None,
        *,
        timeout: float,
        patience: float | None = None,
        timing: Timing | None = None,
    ) -> None:
        self._base = checked_url(base_url)
        if api_key and not (api_key.isascii() and api_key.isprintable()):
            raise InputError(
                "api_key must be one line of printable ASCII",
                hint="a key that was read from a file may end with its newline: strip it",
            )
        self._headers = {"User-Agent": f"assay/{__version__}"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._timeout = timeout
        self._patience = patience
        self._told = -math.inf
        self._timing = timing or Timing()
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
        if method != "GET":
            sent.setdefault("Idempotency-Key", uuid.uuid4().hex)
        clock = self._timing.clock
        ends = None if self._patience is None else clock() + self._patience
        for number in count(1):
            seconds = self._timeout if ends is None else min(self._timeout, max(ends - clock(), 1))
            status, answer, wait = await self._try(method, path, query, body, sent, seconds=seconds)
            if 200 <= status < 300:
                return answer
            pause = self._pause(number, wait)
            is_last = number == _TRIES if ends is None else clock() + pause >= ends
            if is_last or (status and status not in _AGAIN):
                raise self._failure(status, answer, path)
            if ends is not None and status != 429:  # 429 is how a busy server keeps its order
                self._tell(status, ends)
            await self._timing.sleep(pause)
        raise AssertionError("unreachable")  # pragma: no cover - the last try raises

    def _tell(self, status: int, ends: float) -> None:
        """Log that a server is waited for: who trains sees a step that takes long."""
        if self._timing.clock() - self._told < _TELL_SECONDS:
            return
        self._told = self._timing.clock()
        what = f"answers {status}" if status else "cannot be reached"
        left = ends - self._told
        _LOG.warning("the server at %s %s; asking for %.0f seconds more", self._base, what, left)

    def _pause(self, number: int, wait: float) -> float:
        """Seconds until the next try; many who were sent away together do not come back so."""
        if not wait:
            return self._timing.backoff(number)
        asked = min(wait, _LONGEST_PAUSE if self._patience is None else _PATIENT_PAUSE)
        return asked + self._timing.uniform(0.0, asked / 4)

    @asynccontextmanager
    async def events(self, path: str) -> AsyncGenerator[AsyncIterator[tuple[str, Json]]]:
        """Follow a stream of server-sent events as (event, data) pairs."""
        import aiohttp

        session = self._open()
        limits = aiohttp.ClientTimeout(total=None, sock_read=self._timeout)
        try:
            async with session.get(self._base + path, timeout=limits) as response:
                if response.status >= 400:
                    raise self._failure(response.status, await _json_of(response), path)
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
        *,
        seconds: float,
    ) -> tuple[int, Json, float]:
        """One try: the status (0 for no answer), the body or the fault, and how long to wait."""
        import aiohttp

        sent: dict[str, Any] = {"headers": dict(headers)}
        if callable(body):
            sent["data"] = body()
            sent["headers"]["Content-Type"] = "application/x-ndjson"
        elif body is not None:
            sent["data"] = io.BytesIO(_encoded(body))  # sent bit by bit, so that others get on
            sent["headers"]["Content-Type"] = "application/json"
        wanted = {name: str(value) for name, value in (query or {}).items() if value is not None}
        try:
            # Not `total`: if it runs out as the caller is cancelled, aiohttp loses that.
            async with (
                asyncio.timeout(seconds),
                self._open().request(
                    method,
                    self._base + path,
                    params=wanted,
                    allow_redirects=False,
                    timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
                    **sent,
                ) as response,
            ):
                return (
                    response.status,
                    await _json_of(response),
                    asked_pause(response.headers, self._timing.now()) or 0.0,
                )
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
        if isinstance(answer, dict) and status >= 400:
            return refusal(status, answer)
        if status in (401, 403):  # a proxy before the server says it in its own words
            return AuthError(f"the server at {self._base} answered {status}", status=status)
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
    except (TypeError, ValueError, RecursionError) as error:
        hint = "NaN is not a score" if isinstance(error, ValueError) else ""
        raise InputError(f"cannot be sent as JSON: {error}", hint=hint) from error


async def _json_of(response: aiohttp.ClientResponse) -> Json:
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
        if response.content_type == "application/json" and content.rstrip()[-1:] not in b"}]":
            import aiohttp

            raise aiohttp.ClientPayloadError("the answer breaks off") from None
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
