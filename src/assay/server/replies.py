"""Replies as JSON, which may be large: they are written in pieces."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

from pydantic_core import to_json
from starlette.responses import Response

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

_PIECE_BYTES = 64 << 10
"""What is handed over at once, and so what a client that reads nothing costs."""


def reply(
    data: object,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    *,
    media_type: str = "application/json",
) -> Response:
    """A reply with JSON.

    A list is written item by item, and others have their turn between the pieces.

    Raises:
        ValueError: For a number that JSON cannot hold; nothing of ours may let one through.
    """
    whole = cast("dict[str, object]", data) if isinstance(data, dict) else {}
    items = whole.get("items")
    if isinstance(items, list) and items:
        texts = _listed(whole, cast("list[object]", items))
    else:
        texts = iter((_encode(data),))
    pieces = in_pieces(texts)
    first, second = next(pieces), next(pieces, None)
    if second is None:
        return Response(first, status, headers, media_type)
    return _InPieces(chain((first, second), pieces), status, headers, media_type)


class _InPieces(Response):
    """A reply that is sent piece by piece; it costs less than one that watches for its client."""

    def __init__(
        self,
        pieces: Iterator[bytes],
        status: int,
        headers: Mapping[str, str] | None,
        media_type: str,
    ) -> None:
        self.status_code, self.media_type, self.background = status, media_type, None
        self.init_headers(headers)  # without a body, and so without a length
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        del scope, receive
        start = {"status": self.status_code, "headers": self.raw_headers}
        await send({"type": "http.response.start", **start})
        for piece in self._pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": b""})


_careful = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


def _encode(data: Any) -> bytes:  # noqa: ANN401 - whatever is JSON
    """JSON, in ASCII where it must be: what people submitted may hold half characters."""
    try:
        written = to_json(data)
    except ValueError:  # half a character, or nested deeper than it reads
        return _careful(data).encode()
    if b"NaN" in written or b"Infinity" in written:  # in a text, or a number that JSON has not
        return _careful(data).encode()
    return written


def _listed(data: dict[str, object], items: list[object]) -> Iterator[bytes]:
    """The JSON of an object with a list of items, each of which may be large."""
    before, after = _encode({**data, "items": [0]}).split(b'"items":[0]', 1)
    yield before + b'"items":[' + _encode(items[0])
    for item in items[1:]:
        yield b"," + _encode(item)
    yield b"]" + after


def in_pieces(texts: Iterable[bytes]) -> Iterator[bytes]:
    """Texts one after the other, in pieces of at most `_PIECE_BYTES`; at least one."""
    held = bytearray()
    for text in texts:
        held += text
        if len(held) > _PIECE_BYTES:
            whole = memoryview(bytes(held))
            starts = range(0, len(whole), _PIECE_BYTES)
            yield from (bytes(whole[start : start + _PIECE_BYTES]) for start in starts[:-1])
            held = bytearray(whole[starts[-1] :])
    yield bytes(held)
