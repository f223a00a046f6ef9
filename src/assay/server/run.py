"""Run the application as a process: a socket, a line that says where, and a quiet end."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType

import uvicorn

from assay.errors import InputError
from assay.server.app import context_of, create_app
from assay.server.settings import ServerSettings

__all__ = ["Listening", "is_loopback", "listen", "run"]

_GRACE_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Listening:
    """A server that is about to answer.

    Attributes:
        url: Where.
        link: The secret of the one-time link; empty where there is none.
    """

    url: str
    link: str


class _Server(uvicorn.Server):
    """Tells the application of its end first, so that streams let go of their connections."""

    def __init__(self, config: uvicorn.Config, stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._stop = stop

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        del sig, frame
        # The base would raise the signal again at the end; ending when told is not a fault.
        self._stop()
        self.force_exit = self.should_exit
        self.should_exit = True


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def listen(host: str, port: int) -> socket.socket:
    """Open the port.

    Raises:
        InputError: If it cannot be had.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        opened = socket.socket(family, socket.SOCK_STREAM)
    except (OSError, UnicodeError, OverflowError) as error:
        raise InputError(f"cannot listen on {host!r}: {error}") from error
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
    except (OSError, OverflowError) as error:
        opened.close()
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"cannot listen on {host}:{port}: {reason}", hint="choose another --port, or 0"
        ) from error
    return opened


def run(
    settings: ServerSettings,
    opened: socket.socket,
    host: str,
    announce: Callable[[Listening], None],
) -> None:
    """Serve until the process is told to end; batches in flight are stored before it does."""
    app = create_app(settings)
    server = context_of(app)
    config = uvicorn.Config(
        app,
        access_log=False,
        log_config=None,
        server_header=False,
        lifespan="on",
        timeout_graceful_shutdown=_GRACE_SECONDS,
        timeout_keep_alive=30,
        h11_max_incomplete_event_size=64 << 10,
    )
    shown = f"[{host}]" if ":" in host and not host.startswith("[") else host
    port = opened.getsockname()[1]

    async def serve() -> None:
        loop = asyncio.get_running_loop()

        def stop() -> None:
            loop.call_soon_threadsafe(server.stopping.set)

        link = server.access.new_link() if settings.is_local else ""
        opened.listen(2048)
        announce(Listening(f"http://{shown}:{port}", link))
        await _Server(config, stop).serve(sockets=[opened])

    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    asyncio.run(serve())
