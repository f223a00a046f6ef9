"""`FakeJudge`: a model on this machine that answers as it is told, over a real socket."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import itertools
import json
import re
import socket
import struct
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias, cast

from assay.errors import InputError, Location
from assay.scoring.json_safe import Json, plain
from assay.testing.asked import Asked, WireError, WireForm, models_body, read_request, tokens_of
from assay.testing.faults import (
    Fault,
    FaultPlan,
    Faults,
    HttpResponse,
    error_response,
    faulty_response,
    overflow,
    reply_response,
)
from assay.testing.heuristic import heuristic_verdict

if TYPE_CHECKING:
    from aiohttp import web

Answer: TypeAlias = "Sequence[object] | Callable[[Asked], object] | Recording | None"
"""Who answers: None for the heuristic judge, a script of texts, JSON and `Fault`s in order, a
function or coroutine function that gives text or JSON, or a recording."""

_PATHS: dict[str, WireForm] = {
    "/v1/chat/completions": "openai",
    "/v1/messages": "anthropic",
}
_KEPT_HEADERS = ("authorization", "x-api-key", "anthropic-version", "anthropic-beta")


class FakeJudge:
    """A model that answers as it is told: OpenAI's chat completions and Anthropic's messages.

    It listens on this machine, on a thread of its own, so that it serves tests with and without an
    event loop, and other processes::

        with FakeJudge(['{"verdict": "MET"}']) as fake:
            client = openai.OpenAI(base_url=fake.base_url, api_key="any")

    Args:
        answer: See `Answer`. A text is sent as it is, anything else as JSON. None is the heuristic
            judge: it grades by simple rules, and obeys any order that stands outside fences.
        faults: What goes wrong with which requests. A request that meets a fault takes nothing
            off a script, unless it was merely slow.
        record: Base URL of a real model, such as ``https://host/v1``: requests are sent on to it,
            with the keys that came with them, and its replies are kept in the recording.
        model: What the model is called. Every model asked for is answered.
        host: Where to listen: this machine only, unless it is told otherwise.
        port: 0 for a free one.
        seconds: Time that each reply takes.
        context_tokens: More than this, at four characters each, are refused as too long.
        seed: Random seed for faults with a probability.
        keep: How many of the newest requests `requests` holds.

    Raises:
        InputError: For an unknown fault, or a record URL without a recording.

    Attributes:
        count: How many were asked, those that met a fault included.
    """

    def __init__(
        self,
        answer: Answer = None,
        *,
        faults: Faults = None,
        record: str | None = None,
        model: str = "fake-judge",
        host: str = "127.0.0.1",
        port: int = 0,
        seconds: float = 0.0,
        context_tokens: int = 200_000,
        seed: int = 0,
        keep: int = 256,
    ) -> None:
        if record is not None and not isinstance(answer, Recording):
            raise InputError("record=URL needs answer=Recording(FILE), where replies are kept")
        if isinstance(answer, str):
            raise InputError("a script is a list of replies", hint=f"write [{answer[:20]!r}]")
        self.model_name = model
        self.count = 0
        self._answer = heuristic_verdict if answer is None else answer
        self._plan = FaultPlan(faults, seed=seed)
        self._record = record
        self._seconds = seconds
        self._context_tokens = context_tokens
        self._requests: deque[Asked] = deque(maxlen=keep)
        self._lock = threading.Lock()
        self._turns = itertools.count()
        self._replies = 0
        self._server = HttpServer(self._handle, host=host, port=port)

    def start(self) -> Self:
        """Listen.

        Raises:
            OSError: If it cannot.
        """
        self._server.start()
        return self

    def stop(self) -> None:
        """End: its port, its connections and its thread are gone when this returns."""
        self._server.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def root_url(self) -> str:
        """``http://127.0.0.1:PORT``: what Anthropic's client calls its base URL.

        Raises:
            InputError: If it was never started, so that there is no port.
        """
        if not self._server.port:
            raise InputError(
                "the fake judge was not started, so it has no address",
                hint="write `with FakeJudge() as fake:`, or call start()",
            )
        host = f"[{self._server.host}]" if ":" in self._server.host else self._server.host
        return f"http://{host}:{self._server.port}"

    @property
    def base_url(self) -> str:
        """``http://127.0.0.1:PORT/v1``: what OpenAI's client calls its base URL."""
        return f"{self.root_url}/v1"

    @property
    def model(self) -> str:
        """What to write as the ``model`` of a judge, to ask it in OpenAI's form."""
        return f"{self.base_url}#{self.model_name}"

    @property
    def anthropic_model(self) -> str:
        """What to write as the ``model`` of a judge, to ask it in Anthropic's form."""
        return f"anthropic+{self.root_url}#{self.model_name}"

    @property
    def requests(self) -> tuple[Asked, ...]:
        """What it was asked, oldest first; only the newest are kept."""
        with self._lock:
            return tuple(self._requests)

    def environment(self) -> dict[str, str]:
        """Variables that make other programs ask it: providers' base URLs, and keys to go by."""
        return {
            "OPENAI_BASE_URL": self.base_url,
            "OPENAI_API_KEY": "fake-key",
            "ANTHROPIC_BASE_URL": self.root_url,
            "ANTHROPIC_API_KEY": "fake-key",
        }

    def _handle(self, request: HttpRequest) -> HttpResponse | Awaitable[HttpResponse]:
        protocol = _PATHS.get(request.path)
        if request.method == "GET" and request.path == "/v1/models":
            return HttpResponse(body=json.dumps(models_body(self.model_name)).encode())
        if protocol is None or request.method != "POST":
            error = WireError(404, f"there is no {request.method} {request.path} here")
            return error_response("openai", error)
        try:
            body = cast("Json", json.loads(request.body))
        except ValueError:
            return error_response(protocol, WireError(400, "the body is not JSON"))
        try:
            asked = read_request(protocol, body, request.headers, index=self.count)
        except WireError as error:
            return error_response(protocol, error)
        with self._lock:
            self._requests.append(asked)
            self.count += 1
        try:
            return self._respond(asked, request)
        except WireError as error:
            return error_response(protocol, error)

    def _respond(
        self, asked: Asked, request: HttpRequest
    ) -> HttpResponse | Awaitable[HttpResponse]:
        fault = self._plan.next(asked)
        if fault is not None and fault.kind.isdecimal():
            return faulty_response(asked, fault, "")
        if tokens_of(asked.characters) > self._context_tokens:
            raise overflow(asked)
        answer = self._answer
        if isinstance(answer, Recording):
            return self._recorded(asked, request, answer, fault)
        if callable(answer):
            return self._told(asked, answer, fault)
        reply = self._scripted(answer, is_taken=fault is None or fault.kind == "slow")
        if isinstance(reply, Fault):
            return faulty_response(asked, reply, "")
        return self._finish(asked, reply, fault)

    def _finish(self, asked: Asked, reply: object, fault: Fault | None) -> HttpResponse:
        text = reply if isinstance(reply, str) else json.dumps(plain(reply), ensure_ascii=False)
        if fault is not None:
            return faulty_response(asked, fault, text)
        return reply_response(asked, text, seconds=self._seconds)

    def _scripted(self, script: Sequence[object], *, is_taken: bool) -> object:
        if self._replies >= len(script):
            if not is_taken:
                return ""
            raise WireError(400, f"the script has {len(script)} replies, and this is one more")
        reply = script[self._replies]
        self._replies += is_taken
        return reply

    def _told(
        self,
        asked: Asked,
        answer: Callable[[Asked], object],
        fault: Fault | None,
    ) -> HttpResponse | Awaitable[HttpResponse]:
        try:
            reply = answer(asked)
        except Exception as error:  # a test's own function may fail in any way: the caller is told
            raise _failed(error) from error
        if not inspect.isawaitable(reply):
            return self._finish(asked, reply, fault)
        return self._told_later(asked, cast("Awaitable[object]", reply), fault)

    async def _told_later(
        self, asked: Asked, reply: Awaitable[object], fault: Fault | None
    ) -> HttpResponse:
        try:
            return self._finish(asked, await reply, fault)
        except Exception as error:  # likewise
            return error_response(asked.protocol, _failed(error))

    def _recorded(
        self, asked: Asked, request: HttpRequest, recording: Recording, fault: Fault | None
    ) -> HttpResponse | Awaitable[HttpResponse]:
        if fault is not None:
            return faulty_response(asked, fault, "")
        kept = None if self._record else recording.reply(asked)
        if kept is not None:
            status, body = kept
            return HttpResponse(status, json.dumps(body).encode(), seconds=self._seconds)
        if self._record is None:
            raise WireError(404, f"{recording.path} has no reply to this request")
        return self._sent_on(asked, request, recording, self._record)

    async def _sent_on(
        self, asked: Asked, request: HttpRequest, recording: Recording, base_url: str
    ) -> HttpResponse:
        import aiohttp

        url = base_url.rstrip("/") + request.path.removeprefix("/v1")
        headers = {name: value for name, value in request.headers.items() if name in _KEPT_HEADERS}
        headers["content-type"] = "application/json"
        try:
            async with (
                aiohttp.ClientSession(trust_env=False) as session,
                session.post(
                    url, data=request.body, headers=headers, allow_redirects=False
                ) as response,
            ):
                status = response.status
                body = cast("Json", json.loads(await response.read()))
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            told = WireError(502, f"{base_url} did not answer: {type(error).__name__}")
            return error_response(asked.protocol, told)
        reply: Mapping[str, Json] = body if isinstance(body, dict) else {"body": body}
        if status == 200:
            recording.keep(asked, status, dict(reply))
        return HttpResponse(status, json.dumps(reply).encode())


def _failed(error: Exception) -> WireError:
    """The error that tells of an answer function's own; not one that is tried again."""
    return WireError(400, f"the answer function failed: {type(error).__name__}: {error}")


_FENCE_ID = re.compile(r'(</?untrusted (?:name="[^"\n]*" )?id=")[0-9A-Fa-f]{16}(">)')


def request_key(asked: Asked) -> str:
    """What a request is found by: SHA-256 of it, without its headers and the ids of its fences."""
    body = dict(asked.body)
    said = [[one.role, _FENCE_ID.sub(r"\1\2", one.text)] for one in asked.messages]
    body["messages"], body["system"] = cast("Json", said), _FENCE_ID.sub(r"\1\2", asked.system)
    written = json.dumps([asked.protocol, body], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(written.encode()).hexdigest()


class Recording:
    """A file of replies: JSON lines of a request's key, the status and the reply's body.

    The same request asked again gets the next of its replies, and the last one from then on.

    Args:
        path: The file. It is made with the first reply that is kept.

    Raises:
        InputError: For a file that is not a recording.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._replies: dict[str, list[tuple[int, dict[str, Json]]]] = {}
        self._given: dict[str, int] = {}
        self._lock = threading.Lock()
        if self.path.is_file():
            lines = self.path.read_text(encoding="utf-8").splitlines()
            for number, line in enumerate(lines, start=1):
                self._read(line, number)

    def __len__(self) -> int:
        return sum(map(len, self._replies.values()))

    def keep(self, asked: Asked, status: int, body: dict[str, Json]) -> None:
        """Add a reply, to the file as well."""
        key = request_key(asked)
        line: Json = {"key": key, "model": asked.model, "status": status, "body": body}
        with self._lock:
            self._replies.setdefault(key, []).append((status, body))
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

    def reply(self, asked: Asked) -> tuple[int, dict[str, Json]] | None:
        """The status and body kept for a request, or None."""
        key = request_key(asked)
        with self._lock:
            kept = self._replies.get(key)
            if not kept:
                return None
            turn = self._given.get(key, 0)
            self._given[key] = turn + 1
            return kept[min(turn, len(kept) - 1)]

    def _read(self, line: str, number: int) -> None:
        if not line.strip():
            return
        try:
            entry = cast("Json", json.loads(line))
        except ValueError:
            entry = None
        key = entry.get("key") if isinstance(entry, dict) else None
        status = entry.get("status") if isinstance(entry, dict) else None
        body = entry.get("body") if isinstance(entry, dict) else None
        if not isinstance(key, str) or not isinstance(status, int) or not isinstance(body, dict):
            raise InputError(
                f"line {number} of {self.path} is not a recorded reply",
                hint="each line is an object with key, status and body",
                location=Location(str(self.path), number),
            )
        self._replies.setdefault(key, []).append((status, body))


_SLOW_PIECES = 8
_GRACE_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request: the path without its query, and headers with lower-case names."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


Handler: TypeAlias = Callable[[HttpRequest], "HttpResponse | Awaitable[HttpResponse]"]


class HttpServer:
    """Serves a handler, on a daemon thread with an event loop of its own, until it is stopped.

    Args:
        handler: Called on that thread for each request; it may be a coroutine function.
        host: Where to listen.
        port: 0 for a free one.
    """

    def __init__(self, handler: Handler, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self.host = host
        self.port = port
        self._handler = handler
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: asyncio.Event | None = None

    def start(self) -> None:
        """Listen; `port` says where from then on.

        Raises:
            OSError: If it cannot listen there.
        """
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        listener = socket.create_server((self.host, self.port), family=family, backlog=1024)
        self.port = int(listener.getsockname()[1])
        is_ready = threading.Event()

        def serve() -> None:
            asyncio.run(self._serve(listener, is_ready))

        self._thread = threading.Thread(target=serve, name="assay-fake-judge", daemon=True)
        self._thread.start()
        is_ready.wait()

    def stop(self) -> None:
        """End every connection and the thread."""
        thread, loop, ended = self._thread, self._loop, self._ended
        if thread is None or loop is None or ended is None:
            return
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        self._thread = self._loop = self._ended = None

    async def _serve(self, listener: socket.socket, is_ready: threading.Event) -> None:
        from aiohttp import web

        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        served = web.Server(self._answer, access_log=None)
        server = await self._loop.create_server(served, sock=listener, backlog=1024)
        is_ready.set()
        await self._ended.wait()
        server.close()
        await served.shutdown(_GRACE_SECONDS)
        await asyncio.sleep(0)  # a round of the loop, in which connections are closed

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.content.read()  # `read()` of the request itself has a limit
        headers = {name.lower(): value for name, value in request.headers.items()}
        found = self._handler(HttpRequest(request.method, request.path, headers, body))
        return await self._send(request, await found if inspect.isawaitable(found) else found)

    async def _send(self, request: web.BaseRequest, found: HttpResponse) -> web.StreamResponse:
        from aiohttp import web

        headers = {**found.headers, "content-type": found.content_type}
        if found.manner == "whole":
            await asyncio.sleep(found.seconds)
            return web.Response(body=found.body, status=found.status, headers=headers)
        if found.manner == "never":
            assert self._ended is not None
            await self._ended.wait()
        sent = web.StreamResponse(status=found.status, headers=headers)
        sent.content_length = len(found.body)
        await sent.prepare(request)
        if found.manner == "half":
            await sent.write(found.body[: len(found.body) // 2])
            _reset(request)
            return sent
        size = max(1, -(-len(found.body) // _SLOW_PIECES))
        for start in range(0, len(found.body), size):
            await asyncio.sleep(found.seconds / _SLOW_PIECES)
            await sent.write(found.body[start : start + size])
        return sent


def _reset(request: web.BaseRequest) -> None:
    transport = request.transport
    if not isinstance(transport, asyncio.Transport):
        return
    held: socket.socket | None = transport.get_extra_info("socket")
    if held is not None:  # closing now is a reset, not an end
        held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
