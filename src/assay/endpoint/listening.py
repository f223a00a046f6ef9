"""The process that listens: connections that say nothing make room, and it ends when it is told to.

Requests are read by httptools and the loop is uvloop's, where they are installed: together they
are half of what a small request costs. Loaded when an app is served, not before.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import socket
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from importlib.util import find_spec
from types import FrameType
from typing import TYPE_CHECKING, Any, cast

import uvicorn
from starlette.requests import Request
from uvicorn.config import LOGGING_CONFIG

from assay.endpoint.problems import ProblemError
from assay.endpoint.routes import problem_response

if TYPE_CHECKING or find_spec("httptools"):
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as _Protocol
else:
    from uvicorn.protocols.http.h11_impl import H11Protocol as _Protocol

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_LOG = logging.getLogger("assay.endpoint")
_BACKLOG = 2048
_AT_ONCE = 100
"""Connections accepted before any other work is done; they need files, too."""
_JOINED_BYTES = 4_096
"""What is held back at most to be sent with what follows it."""
_HEAD_BYTES = 64 << 10
"""What the head of a request has at most, beside what comes in one piece with it."""
_AHEAD = 32
"""Requests that may be sent before the first of them is answered."""
_FILES = 200
"""Files that are kept for everything but connections."""
_LAST_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ListeningLimits:
    """Who is listened to, and for how long."""

    # Open at once. One more closes that which has been without a request longest.
    connections: int = 1_000
    # In which the head of a request must arrive.
    header_seconds: float = 10.0
    # How long a body may be waited for, beside the time that what has come of it takes at
    # `body_rate`; then the request is answered 408.
    body_seconds: float = 20.0
    body_rate: int = 8 << 10
    # In which some of what is sent must be read; else the connection ends.
    write_seconds: float = 60.0
    proxies: tuple[str, ...] = ()
    # In which requests under way must end when the process is told to. Then they are answered 503;
    # a few seconds later the process ends whatever it does.
    grace_seconds: float = 20.0


@dataclass(eq=False, slots=True)
class _Room:
    """Connections without a request, the longest waiting first."""

    limits: ListeningLimits
    most: int
    waiting: dict[_Connection, None] = field(default_factory=dict["_Connection", None])
    is_full: bool = False

    def is_left(self, taken: int) -> bool:
        """Whether there is room for the newest connection, perhaps in place of another one."""
        if taken <= self.most:
            self.is_full = False
            return True
        if not self.is_full:  # told once: it may be somebody's attack
            self.is_full = True
            _LOG.warning("%d connections are open, the most there may be", self.most)
        oldest = next(iter(self.waiting), None)
        if oldest is None:
            return False
        oldest.leave()
        return True


class _Joined:
    """A transport that sends the head of a reply and its body in one packet.

    What is written without a pause is sent at the end of it, or as soon as it is much.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held = bytearray()
        self.abort = transport.abort
        self.is_closing = transport.is_closing
        self.get_extra_info = transport.get_extra_info
        self.resume_reading = transport.resume_reading
        self.set_protocol = transport.set_protocol

    def write(self, data: bytes) -> None:
        """Send it soon."""
        if not data:
            return
        if not self._held:
            self._loop.call_soon(self._send)
        self._held += data
        if len(self._held) > _JOINED_BYTES:
            self._send()

    def close(self) -> None:
        """Send what is left, and close."""
        self._send()
        self._transport.close()

    def _send(self) -> None:
        if self._held:
            held, self._held = self._held, bytearray()
            self._transport.write(held)


class _Config(uvicorn.Config):
    """A configuration whose connections share a room."""

    room: _Room


class _Connection(_Protocol):
    """A connection that must send its request in time.

    What httptools does not bound is bounded here; h11 does so itself, and makes none of the calls.
    """

    _seen = 0
    _is_head = True
    _timer: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None

    @property
    def _room(self) -> _Room:
        return cast("_Config", self.config).room

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.transport = cast("asyncio.Transport", _Joined(transport, self.loop))
        if self._room.is_left(len(self.connections)):
            self._note()
        else:
            self.leave()

    def data_received(self, data: bytes) -> None:
        self._seen += len(data)  # before: where a request ends in it, nothing was seen of the next
        super().data_received(data)
        if self._is_head and self._seen > _HEAD_BYTES:
            self.leave()
        self._note()

    def on_message_begin(self) -> None:
        """A head begins."""
        self._is_head = True
        if len(self.pipeline) >= _AHEAD:
            raise ValueError("too many requests at once")
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """A line of the head: what comes behind the body is none."""
        if self._is_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head has ended."""
        assert self.parser is not None
        hosts = sum(name == b"host" for name, _ in self.headers)
        if hosts > 1 or (not hosts and self.parser.get_http_version() == "1.1"):
            raise ValueError("not one host")
        self._is_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request has ended; what comes next is the head of another."""
        super().on_message_complete()
        self._seen, self._is_head = 0, True

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._note(idle=True)  # the base closes it after a while

    def pause_writing(self) -> None:
        """Much is to be sent, and nobody reads it."""
        super().pause_writing()
        self._reading = self.loop.call_later(self._room.limits.write_seconds, self.leave)

    def resume_writing(self) -> None:
        """They read on."""
        super().resume_writing()
        self._stop_watching()

    def _stop_watching(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_watching()
        self._forget()
        super().connection_lost(exc)

    def leave(self) -> None:
        """Close without waiting for anything."""
        self._forget()
        self.connections.discard(self)
        self.transport.abort()

    def _note(self, *, idle: bool = False) -> None:
        """Whether a request is awaited now, and since when."""
        cycle = cast("Any", self.cycle)
        if cycle is not None and not cycle.response_complete:
            self._forget()
        elif not self.transport.is_closing():
            self._room.waiting.setdefault(self)
            if self._timer is None and not idle:
                self._timer = self.loop.call_later(self._room.limits.header_seconds, self.leave)

    def _forget(self) -> None:
        self._room.waiting.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class BoundedServer(uvicorn.Server):
    """Ends within a bounded time, whatever holds its threads."""

    def __init__(
        self, config: _Config, start: Callable[[], object], stop: Callable[[], object]
    ) -> None:
        super().__init__(config)
        self._start, self._stop = start, stop
        self._grace = config.room.limits.grace_seconds

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets)
        for opened in sockets or []:
            opened.listen(_BACKLOG)
        if not self.should_exit:
            self._start()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to end; told twice, end at once."""
        del sig, frame
        # The base would raise the signal again at the end; ending when told is not a fault.
        self._stop()
        self.force_exit = self.should_exit
        last = _LAST_SECONDS if self.force_exit else self._grace + _LAST_SECONDS
        watch = threading.Timer(last, os._exit, (0,))
        watch.daemon = True
        watch.start()
        self.should_exit = True


_ENDS = ProblemError(503, "the server ends; ask again", headers={"Retry-After": "5"})


def _in_time(receive: Receive, limits: ListeningLimits) -> Receive:
    """What comes in, as long as it comes: half a body would hold a connection, and who reads it.

    Only time that is spent waiting for the body counts, so that no honest sender pays for a server
    that is slow to read.
    """
    waited, seen, is_whole = 0.0, 0, False

    async def receive_in_time() -> Message:
        nonlocal waited, seen, is_whole
        if is_whole:  # what is awaited now is that the caller goes away
            return await receive()
        left = limits.body_seconds + seen / limits.body_rate - waited
        clock = asyncio.get_running_loop().time
        began = clock()
        if left <= 0:
            raise _late(seen)
        try:
            async with asyncio.timeout(left):
                message = await receive()
        except TimeoutError:
            raise _late(seen) from None
        waited += clock() - began
        seen += len(message.get("body", b""))
        is_whole = not message.get("more_body", False)
        return message

    return receive_in_time


def _late(seen: int) -> ProblemError:
    said = f"the rest of the body did not come in time; {seen} bytes of it did"
    return ProblemError(408, said, headers={"Connection": "close"})


class _Bounded:
    """Waits for no body for ever, and answers requests that are cut off at the end."""

    def __init__(self, app: ASGIApp, limits: ListeningLimits) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_begun = False
        if scope["type"] == "http":
            receive = _in_time(receive, self._limits)

        async def sent(message: Message) -> None:
            nonlocal is_begun
            is_begun = True
            await send(message)

        try:
            await self._app(scope, receive, sent)
        except (asyncio.CancelledError, ProblemError) as error:
            if is_begun or scope["type"] != "http":
                raise
            problem = error if isinstance(error, ProblemError) else _ENDS
            await problem_response(Request(scope), problem)(scope, receive, send)


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run something on the quickest loop that is installed."""
    new_loop = None
    if find_spec("uvloop"):
        from uvloop import new_event_loop as new_loop
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main)


def server_for(
    app: ASGIApp,
    limits: ListeningLimits,
    *,
    start: Callable[[], object],
    stop: Callable[[], object] = lambda: None,
    is_told: bool = False,
) -> BoundedServer:
    """What serves an app until the process is told to end.

    ``stop``: Called when the process is told to end, before requests are waited for; by a signal,
    so perhaps in the middle of anything.
    """
    config = _Config(
        _Bounded(app, limits),
        http=_Connection,
        ws="none",
        access_log=False,
        log_config=LOGGING_CONFIG if is_told else None,
        log_level="info" if is_told else "warning",
        server_header=False,
        proxy_headers=bool(limits.proxies),
        forwarded_allow_ips=list(limits.proxies),
        backlog=_AT_ONCE,
        timeout_graceful_shutdown=max(1, round(limits.grace_seconds)),
        timeout_keep_alive=30,
        h11_max_incomplete_event_size=64 << 10,
    )
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    most = limits.connections
    if files != resource.RLIM_INFINITY:
        most = max(1, min(most, files - _FILES))
    config.room = _Room(limits, most)
    return BoundedServer(config, start, stop)
