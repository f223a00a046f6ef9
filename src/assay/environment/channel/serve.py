"""Serving an environment: one port, where the first byte tells TCP from WebSocket."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, cast

from assay.cores import cores
from assay.environment.channel.frames import TcpWire, accepted_websocket
from assay.environment.channel.front import Front
from assay.environment.channel.openenv_door import OpenEnvDoor
from assay.environment.channel.sessions import ChannelLimits
from assay.environment.channel.workers import Workers
from assay.errors import InputError
from assay.frozen import frozen
from assay.scoring.json_safe import Json
from assay.sockets import is_loopback, listen

if TYPE_CHECKING:
    from aiohttp import web

_CHUNK = 1 << 16
_BACKLOG = 1024
_MOST_HEAD = 16 << 10


@frozen(kw_only=True)
class ServedEnvironment:
    """Where an environment is served."""

    host: str
    port: int
    manifest: dict[str, Json]
    dial: Callable[[int, bytes], Awaitable[object]]

    @property
    def url(self) -> str:
        """For newline-delimited TCP."""
        return f"tcp://{self._place}"

    @property
    def websocket(self) -> str:
        """For WebSocket."""
        return f"ws://{self._place}"

    @property
    def openenv(self) -> str:
        """For OpenEnv's clients, where they are served."""
        return f"http://{self._place}"

    @property
    def _place(self) -> str:
        host = f"[{self.host}]" if ":" in self.host and not self.host.startswith("[") else self.host
        return f"{host}:{self.port}"


@asynccontextmanager
async def serve(
    file: str,
    *,
    name: str = "",
    host: str = "127.0.0.1",
    port: int = 0,
    workers: int = 0,
    token: str = "",
    limits: ChannelLimits | None = None,
    audit: Callable[[dict[str, Json]], object] | None = None,
    listens: bool = True,
    openenv: bool = False,
) -> AsyncGenerator[ServedEnvironment]:
    """Serve the environment of a Python file, until the context is left.

    ``token``: The secret that clients must know; needed off loopback.
    """
    if not token and not is_loopback(host):
        raise InputError(
            f"others can reach {host}, and nothing would keep them out",
            hint="give a token that clients must know: --token-env NAME",
        )
    with listen(host, port) if listens else nullcontext() as listener:
        front = Front(
            Workers(file, name, workers or cores()),
            limits=limits,
            token=token,
            audit=audit,
        )
        await front.start()
        doors = _Doors(front, openenv=openenv)
        loop = asyncio.get_running_loop()
        server = None
        if listener is not None:
            server = await loop.create_server(
                lambda: _Sniffing(doors), sock=listener, backlog=_BACKLOG
            )

        async def dial(to: int, word: bytes) -> None:
            opened, _ = await loop.create_connection(lambda: _Sniffing(doors), "127.0.0.1", to)
            opened.write(word)

        try:
            yield ServedEnvironment(
                host=host,
                port=0 if listener is None else cast("int", listener.getsockname()[1]),
                manifest=dict(front.manifest),
                dial=dial,
            )
        finally:
            if server is not None:
                server.close()
            await front.stop()
            await doors.close()


def audit_to(path: str) -> Callable[[dict[str, Json]], object]:
    """An audit that is appended to a file, a JSON object a line."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error

    def write(line: dict[str, Json]) -> None:
        os.write(descriptor, (json.dumps(line, ensure_ascii=False) + "\n").encode())

    return write


class _Doors:
    """Takes connections, of either kind."""

    def __init__(self, front: Front, *, openenv: bool) -> None:
        from aiohttp import web

        self.limits = front.limits
        self.silent: dict[_Sniffing, None] = {}  # the oldest first
        self._front = front
        self._open: set[asyncio.Task[None]] = set()
        self._openenv = OpenEnvDoor(front) if openenv else None
        self._methods = (b"G", b"P") if openenv else (b"G",)
        self._web = web.Server(
            self._http,
            access_log=None,
            logger=logging.Logger("assay.channel.web", logging.CRITICAL + 1),  # noqa: LOG001
        )

    def protocol_for(self, first: bytes) -> asyncio.Protocol:
        """Who speaks, by the first bytes: JSON begins with a brace, and HTTP with GET or POST."""
        if self.is_http(first):
            return cast("asyncio.Protocol", self._web())
        return asyncio.StreamReaderProtocol(asyncio.StreamReader(_CHUNK), self._lines)

    def is_http(self, first: bytes) -> bool:
        """Whether it is a request that somebody here answers."""
        return first.startswith(self._methods)

    async def close(self) -> None:
        """Break off what is left."""
        for sniffing in list(self.silent):
            sniffing.abort()
        await self._web.shutdown(0.1)
        for task in list(self._open):
            task.cancel()
        if self._open:
            await asyncio.wait(self._open)
        await asyncio.sleep(0)  # what was broken off is closed in the next round

    async def _lines(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        wire = TcpWire(reader, writer, held=self._front.held, send_seconds=self.limits.frame)
        with suppress(OSError, asyncio.CancelledError):
            await self._front.connection(wire, _peer(writer.get_extra_info("peername")))
        writer.transport.abort()

    async def _http(self, request: web.BaseRequest) -> web.StreamResponse:
        if "Origin" in request.headers:  # else any page that is open in a browser here could speak
            return _refusal(403, "browsers are not served")
        if self._openenv is not None and request.path == "/health":
            return self._openenv.health()
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        is_trusted = scheme.lower() == "bearer" and self._front.knows(token.strip())
        if self._front.needs_token and not is_trusted:
            return _refusal(401, "this server wants a token")
        peer = _peer(request.transport and request.transport.get_extra_info("peername"))
        # A proxy may serve the channel's own WebSocket under any other path.
        if self._openenv is not None and (
            request.path == "/ws" or "Upgrade" not in request.headers
        ):
            return await self._openenv.answer(request, peer)
        return await self._websocket(request, peer)

    async def _websocket(self, request: web.BaseRequest, peer: str) -> web.StreamResponse:
        accepted = await accepted_websocket(request, self._front.limits.frame)
        if accepted is None:
            return _refusal(426, "speak WebSocket, or lines of JSON over TCP")
        opened, wire = accepted
        await self._front.connection(wire, peer, is_trusted=True)
        return opened


def _refusal(status: int, text: str) -> web.Response:
    from aiohttp import web

    response = web.Response(status=status, text=f"{text}\n")
    response.force_close()
    return response


class _Sniffing(asyncio.Protocol):
    """A connection of which it is not known yet what it speaks.

    The head of an HTTP request is waited for here, since aiohttp has no limit for that.
    """

    def __init__(self, doors: _Doors) -> None:
        self._doors = doors
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._said = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        limits = self._doors.limits
        self._timer = asyncio.get_running_loop().call_later(limits.hello, self.abort)
        silent = self._doors.silent
        if len(silent) >= limits.strangers:
            next(iter(silent)).abort()
        silent[self] = None

    def data_received(self, data: bytes) -> None:
        self._said += data
        if self._doors.is_http(self._said) and b"\r\n\r\n" not in self._said:
            if len(self._said) > _MOST_HEAD:
                self.abort()
            return
        self._forget()
        transport = self._transport
        assert transport is not None
        protocol = self._doors.protocol_for(self._said)
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        protocol.data_received(self._said)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._forget()

    def abort(self) -> None:
        """Hang up."""
        self._forget()
        if self._transport is not None:
            self._transport.abort()

    def _forget(self) -> None:
        self._doors.silent.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()


def _peer(address: object) -> str:
    if isinstance(address, tuple):
        parts = cast("tuple[object, ...]", address)
        return f"{parts[0]}:{parts[1]}"
    return str(address or "")
