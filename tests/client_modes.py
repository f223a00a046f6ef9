"""A client in both of its modes: on a real server, and on a store of its own."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn

from assay.client import Client
from assay.server.app import create_app
from assay.server.context import ServerSettings
from assay.service.site import new_key
from assay.sockets import listen
from assay.store import ApiKeys, Database, KeyRole

__all__ = ["MODES", "Server", "client_of", "running"]

MODES = ("store", "server")


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answers.

    Attributes:
        url: Where.
        location: Its store.
    """

    url: str
    location: str

    def key(self, role: KeyRole = "admin", project: str = "*") -> str:
        """A new API key."""
        made = new_key()
        with Database.open(self.location) as database:
            ApiKeys(database).create(role, role, project, made.hashed, made.prefix)
        return made.token


@contextmanager
def running(location: str, *, internal: bool = False) -> Generator[Server]:
    """Run a server in a thread, on a port that the system chooses.

    Args:
        location: Its store.
        internal: Whether its graders may call addresses of its own network.
    """
    settings = ServerSettings(
        location=location, poll_seconds=0.02, allow_internal_endpoints=internal
    )
    app = create_app(settings)
    listening = listen("127.0.0.1", 0)
    listening.listen()  # who connects before the server takes over waits, and is not refused
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield Server(f"http://127.0.0.1:{listening.getsockname()[1]}", location)
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


@contextmanager
def client_of(mode: str, location: str, *, internal: bool = False) -> Generator[Client]:
    """A client in one of the modes, on a store at a location."""
    if mode == "store":
        with Client(store=location) as client:
            yield client
        return
    with (
        running(location, internal=internal) as server,
        Client(server.url, server.key()) as client,
    ):
        yield client
