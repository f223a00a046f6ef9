"""Real servers for the tests of endpoints: proper ones, and one that does everything wrong."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from http.client import responses
from typing import TYPE_CHECKING, cast

from assay.scoring.json_safe import Json

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = [
    "Asked",
    "FaultServer",
    "Reply",
    "answering",
    "drip",
    "faulty",
    "graded",
    "hang",
    "raw",
    "reset",
    "serving",
]


@contextlib.contextmanager
def serving(app: FastAPI) -> Generator[str]:
    """Serve an app on a free port of this machine, in a thread; gives its URL."""
    import uvicorn

    config = uvicorn.Config(app, log_level="error", access_log=False, ws="none", lifespan="off")
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            server.force_exit = True
            thread.join(timeout=60)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Json:
        return cast("Json", json.loads(self.body))

    @property
    def items(self) -> list[dict[str, Json]]:
        """The items of assay's own form."""
        return cast("dict[str, list[dict[str, Json]]]", self.json)["items"]


Reply = Callable[[socket.socket, Asked, threading.Event], None]
"""Answers on a connection; the event says that the test is over."""


@dataclass
class FaultServer:
    """A server of raw sockets that answers as it is told.

    Attributes:
        replies: One for each request, in their order; the last one is used again and again.
        url: Where it is.
        asked: Every request, in the order they came.
    """

    replies: Sequence[Reply]
    url: str = ""
    asked: list[Asked] = field(default_factory=list[Asked])
    over: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def handle(self, connection: socket.socket) -> None:
        connection.settimeout(20)
        with connection, contextlib.suppress(OSError):
            asked = _read(connection)
            if asked is None:
                return
            with self.lock:
                reply = self.replies[min(len(self.asked), len(self.replies) - 1)]
                self.asked.append(asked)
            reply(connection, asked, self.over)


@contextlib.contextmanager
def faulty(*replies: Reply) -> Generator[FaultServer]:
    """Run a `FaultServer`."""
    server = FaultServer(replies)
    threads: list[threading.Thread] = []

    def start(connection: socket.socket) -> None:
        thread = threading.Thread(target=server.handle, args=(connection,), daemon=True)
        thread.start()
        threads.append(thread)

    def accept(listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            start(connection)

    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        server.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        accepting = threading.Thread(target=accept, args=(listener,), daemon=True)
        accepting.start()
        try:
            yield server
        finally:
            server.over.set()
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            accepting.join(timeout=60)
            for thread in threads:
                thread.join(timeout=60)


def _read(connection: socket.socket) -> Asked | None:
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65_536)
        if not part:
            return None
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", "0")):
        body += connection.recv(65_536)
    return Asked(method, path, headers, body)


def raw(
    body: bytes | str,
    status: int = 200,
    *,
    kind: str = "application/json",
    length: int | None = None,
    **headers: str,
) -> Reply:
    """Answer with exactly these bytes; header names are written with ``_``."""
    content = body.encode() if isinstance(body, str) else body
    lines = [
        f"HTTP/1.1 {status} {responses.get(status, 'X')}",
        f"Content-Type: {kind}",
        "Connection: close",
    ]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    lines.append(f"Content-Length: {len(content) if length is None else length}")
    message = "\r\n".join(lines).encode() + b"\r\n\r\n" + content

    def reply(connection: socket.socket, asked: Asked, over: threading.Event) -> None:
        connection.sendall(message)

    return reply


def answering(make: Callable[[Asked], Json]) -> Reply:
    """Answer with JSON made of the request; NaN and infinities are written as Python does."""

    def reply(connection: socket.socket, asked: Asked, over: threading.Event) -> None:
        raw(json.dumps(make(asked)))(connection, asked, over)

    return reply


def _all_good(asked: Asked) -> Json:
    return {"results": [{"id": item["id"], "score": 0.5} for item in asked.items]}


graded = answering(_all_good)
"""Answer as it should be: half for everyone."""


def hang(connection: socket.socket, asked: Asked, over: threading.Event) -> None:
    """Say nothing until the test is over."""
    over.wait(20)


def reset(connection: socket.socket, asked: Asked, over: threading.Event) -> None:
    """Break the connection before any reply."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def drip(connection: socket.socket, asked: Asked, over: threading.Event) -> None:
    """Send a reply byte by byte, for ever."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
    while not over.wait(0.02):
        connection.sendall(b" ")
