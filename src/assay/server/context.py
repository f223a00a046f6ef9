"""What the routes of one server share."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import cast

from starlette.requests import Request

from assay.server.access import Access
from assay.server.metrics import Metrics
from assay.server.settings import ServerSettings
from assay.server.storage import Storage
from assay.service.operation import Identity

__all__ = ["Context", "Turn", "address_of", "caller", "context"]


@dataclass(slots=True)
class Turn:
    """Equal requests, one of which is carried out.

    Attributes:
        lock: Held by that one.
        users: How many there are.
    """

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


@dataclass(frozen=True, slots=True)
class Context:
    """One server.

    Attributes:
        settings: What it was told.
        storage: Its database.
        access: Who may do what.
        metrics: What it counts.
        stopping: Set when it is to stop: streams end, no new job begins.
        wake: Set when there may be a job to do.
        turns: Requests with an idempotency key that are being carried out.
    """

    settings: ServerSettings
    storage: Storage
    access: Access
    metrics: Metrics
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    turns: dict[str, Turn] = field(default_factory=dict[str, Turn])


def context(request: Request) -> Context:
    """The server that a request came to."""
    return cast("Context", request.app.state.context)


def caller(request: Request) -> Identity:
    """Who sent a request that was let in."""
    return cast("Identity", request.state.identity)


def address_of(request: Request) -> str:
    """The address a request came from, for counting failures."""
    return request.client.host if request.client else "unknown"
