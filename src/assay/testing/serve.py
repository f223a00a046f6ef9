"""A small HTTP/1.1 server on a thread of its own, which can also answer badly on purpose.

It knows no model. It is written on sockets, not on a web framework, because its faults are what a
framework prevents (half a body, a reset), and because benchmarks take it as the floor.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias
from urllib.parse import unquote

__all__ = ["Handler", "HttpRequest", "HttpResponse", "HttpServer"]

_MAX_HEAD = 65_536
_MAX_BODY = 64 * 1024 * 1024
_SLOW_PIECES = 8
_REASONS = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    402: "Payment Required",
    403: "Forbidden",
    404: "Not Found",
    408: "Request Timeout",
    413: "Content Too Large",
    429: "Too Many Requests",
    500: "Internal Server Error",
    502: "Bad Gateway",
    503: "Service Unavailable",
    529: "Overloaded",
}


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request: the path without its query, and headers with lower-case names."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """One response, and how it is sent.

    Attributes:
        status: The HTTP status.
        body: What is sent.
        headers: More headers; the length is added.
        content_type: Of the body.
        manner: ``whole``; ``half`` and then a reset of the connection; ``slow``, in pieces over
            ``seconds``; or ``never``.
        seconds: To wait before a whole one; or what a slow one takes.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    content_type: str = "application/json"
    manner: Literal["whole", "half", "slow", "never"] = "whole"
    seconds: float = 0.0


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
        self._is_alone = asyncio.Event()
        self._connections: set[_Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def is_serving(self) -> bool:
        """Whether it is between `start` and `stop`."""
        return self._thread is not None

    def start(self) -> None:
        """Listen; `port` says where from then on.

        Raises:
            OSError: If it cannot listen there.
        """
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        listener = socket.create_server((self.host, self.port), family=family, backlog=1024)
        listener.setblocking(False)
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
        self._loop = loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._is_alone = asyncio.Event()
        self._is_alone.set()
        server = await loop.create_server(lambda: _Connection(self), sock=listener, backlog=1024)
        is_ready.set()
        try:
            await self._ended.wait()
        finally:
            server.close()
            for connection in tuple(self._connections):
                connection.abort()
            for task in tuple(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._is_alone.wait()

    def handle(self, request: HttpRequest) -> HttpResponse | Awaitable[HttpResponse]:
        """Answer one request."""
        return self._handler(request)

    def joined(self, connection: _Connection) -> None:
        """Note a connection that was opened."""
        self._connections.add(connection)
        self._is_alone.clear()

    def left(self, connection: _Connection) -> None:
        """Note a connection that is gone."""
        self._connections.discard(connection)
        if not self._connections:
            self._is_alone.set()

    def follow(self, task: asyncio.Task[None]) -> None:
        """Keep a task until it is done, and end it when the server is stopped."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Connection(asyncio.Protocol):
    """One client: its requests are answered one after the other."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._is_busy = False
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.joined(self)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._server.left(self)
        if self._task is not None:
            self._task.cancel()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._received += data
        self._proceed()

    def _proceed(self) -> None:
        while not self._is_busy and self._transport is not None:
            try:
                request = _take_request(self._received)
            except _BadRequestError as bad:
                self._send(HttpResponse(bad.status, b"{}"), is_last=True)
                return
            if request is None:
                return
            self._answer(request)

    def _answer(self, request: HttpRequest) -> None:
        is_last = request.headers.get("connection", "").lower() == "close"
        found = self._server.handle(request)
        if isinstance(found, HttpResponse) and found.manner == "whole" and not found.seconds:
            self._send(found, is_last=is_last)
            return
        self._is_busy = True
        self._task = asyncio.get_running_loop().create_task(
            self._answer_later(found, is_last=is_last)
        )
        self._server.follow(self._task)

    async def _answer_later(
        self, found: HttpResponse | Awaitable[HttpResponse], *, is_last: bool
    ) -> None:
        response = found if isinstance(found, HttpResponse) else await found
        if response.manner == "never":
            return  # busy for ever: the client has to give up
        if response.manner == "slow":
            await self._send_slowly(response)
        elif response.manner == "half":
            self._send_half(response)
        else:
            await asyncio.sleep(response.seconds)
            self._send(response, is_last=is_last)
        self._is_busy, self._task = False, None
        self._proceed()

    def _send(self, response: HttpResponse, *, is_last: bool) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        self._transport.write(_head(response) + response.body)
        if is_last:
            self._transport.close()
            self._is_busy = True

    async def _send_slowly(self, response: HttpResponse) -> None:
        if self._transport is None:
            return
        self._transport.write(_head(response))
        size = max(1, -(-len(response.body) // _SLOW_PIECES))
        for start in range(0, len(response.body), size):
            await asyncio.sleep(response.seconds / _SLOW_PIECES)
            self._transport.write(response.body[start : start + size])

    def _send_half(self, response: HttpResponse) -> None:
        if self._transport is None:
            return
        self._transport.write(_head(response) + response.body[: len(response.body) // 2])
        held: socket.socket | None = self._transport.get_extra_info("socket")
        if held is not None:  # closing now is a reset, not an end
            held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()


class _BadRequestError(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def _take_request(received: bytearray) -> HttpRequest | None:
    """Take the first request off what was received; None if it is not whole yet."""
    end = received.find(b"\r\n\r\n")
    if end < 0:
        if len(received) > _MAX_HEAD:
            raise _BadRequestError(413)
        return None
    first, *lines = received[:end].decode("latin-1").split("\r\n")
    headers = {
        name.strip().lower(): value.strip()
        for name, colon, value in (line.partition(":") for line in lines)
        if colon
    }
    start = end + 4
    if headers.get("transfer-encoding", "").lower() == "chunked":
        whole = _unchunked(received, start)
        if whole is None:
            return None
        body, start = whole
    else:
        size = headers.get("content-length", "0")
        if not (size.isascii() and size.isdecimal()):
            raise _BadRequestError(400)
        if int(size) > _MAX_BODY:
            raise _BadRequestError(413)
        if len(received) < start + int(size):
            return None
        body = bytes(received[start : start + int(size)])
        start += int(size)
    method, _, rest = first.partition(" ")
    path = rest.partition(" ")[0].partition("?")[0]
    del received[:start]
    return HttpRequest(method, unquote(path), headers, body)


def _unchunked(received: bytearray, at: int) -> tuple[bytes, int] | None:
    """A body in chunks and where it ends; None if it is not whole yet."""
    body = bytearray()
    while True:
        end = received.find(b"\r\n", at)
        if end < 0:
            return None
        try:
            size = int(bytes(received[at:end]).partition(b";")[0], 16)
        except ValueError:
            raise _BadRequestError(400) from None
        at = end + 2
        if size < 0 or len(body) + size > _MAX_BODY:
            raise _BadRequestError(413)
        if len(received) < at + size + 2:
            return None
        body += received[at : at + size]
        at += size + 2
        if not size:  # without trailers, the line after the last chunk is empty
            return bytes(body), at


def _head(response: HttpResponse) -> bytes:
    more = "".join(f"{name}: {value}\r\n" for name, value in response.headers.items())
    return (
        f"HTTP/1.1 {response.status} {_REASONS.get(response.status, 'Status')}\r\n"
        f"content-type: {response.content_type}\r\n"
        f"content-length: {len(response.body)}\r\n{more}\r\n"
    ).encode("latin-1")
