"""An HTTP server on a thread of its own, for models that tests ask."""

from __future__ import annotations

import asyncio
import inspect
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from assay.sockets import accepted
from assay.testing.faults import HttpResponse

if TYPE_CHECKING:
    from aiohttp import web

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
        listener.setblocking(False)
        with listener:
            accepting = asyncio.create_task(_accept(listener, served))
            is_ready.set()
            await self._ended.wait()
            accepting.cancel()
            await asyncio.wait({accepting})
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


async def _accept(listener: socket.socket, served: web.Server) -> NoReturn:
    loop = asyncio.get_running_loop()
    while True:
        await loop.connect_accepted_socket(served, await accepted(listener))


def _reset(request: web.BaseRequest) -> None:
    transport = request.transport
    if not isinstance(transport, asyncio.Transport):
        return
    held: socket.socket | None = transport.get_extra_info("socket")
    if held is not None:  # closing now is a reset, not an end
        held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
