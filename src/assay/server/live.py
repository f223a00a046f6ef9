"""Server-sent events: what something is now, told at once and whenever it changes."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import StreamingResponse

from assay.errors import NotFoundError, StoreError
from assay.scoring.json_safe import Json
from assay.server.context import Context, caller, context
from assay.server.door import is_still_known

_STREAM = "text/event-stream"
_REST = 8
"""How many times as long as a look took it rests: the database has others to serve."""
_TEXT = {"type": "string"}
_EVENT = {
    "type": "object",
    "description": "An event; its data is JSON.",
    "properties": {"id": _TEXT, "event": _TEXT, "data": _TEXT},
}


@dataclass(frozen=True, slots=True)
class Told:
    """A state as it is told.

    Attributes:
        id: The same state has the same id.
        name: What the event is called.
        data: The state.
        is_last: Whether nothing comes after it.
    """

    id: str
    name: str
    data: Json
    is_last: bool = False


def described(description: str, example: str) -> dict[int | str, dict[str, Any]]:
    """The ``responses`` of a route that answers with events."""
    content = {_STREAM: {"schema": _EVENT, "example": example}}
    return {200: {"description": description, "content": content}}


def streamed(
    request: Request,
    first: Told,
    look: Callable[[], Awaitable[Told]],
    last: str | None,
) -> StreamingResponse:
    """Tell a state now, and whenever it changes, until its end, the server's or the key's.

    Args:
        request: What was asked.
        first: The state as it was found.
        look: Finds it again, a few times a second.
        last: The id that the client was told last: that state is not told again.
    """
    events = _stream(request, first, look, last)
    return context(request).streams.reply(caller(request).id, events, _STREAM)


async def _stream(
    request: Request, state: Told, look: Callable[[], Awaitable[Told]], last: str | None
) -> AsyncIterator[bytes]:
    server = context(request)
    told, spoken, took = last, time.monotonic(), 0.0
    yield b"retry: 1000\n\n"
    while True:
        if state.id != told:
            told, spoken = state.id, time.monotonic()
            yield _written(state)
        if state.is_last or server.stopping.is_set():
            return
        if time.monotonic() - spoken >= server.settings.heartbeat_seconds:
            spoken = time.monotonic()
            yield b": alive\n\n"
        await _moment(server, max(server.settings.poll_seconds, _REST * took))
        try:
            began = time.monotonic()
            state = await look()
            took = time.monotonic() - began
            if not await is_still_known(request):
                return
        except (StoreError, NotFoundError):
            return  # the client asks again, and is told then


async def _moment(server: Context, seconds: float) -> None:
    """Wait a moment, or for the server's end."""
    try:
        await asyncio.wait_for(server.stopping.wait(), seconds)
    except TimeoutError:
        return


def _written(state: Told) -> bytes:
    data = json.dumps(state.data, separators=(",", ":"))
    return f"id: {state.id}\nevent: {state.name}\ndata: {data}\n\n".encode("ascii")
