"""Replies as JSON, which may be large: they are written in pieces."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from itertools import chain
from typing import cast

from starlette.responses import Response, StreamingResponse

_PIECE_BYTES = 64 << 10
"""What is handed over at once, and so what a client that reads nothing costs."""


def reply(
    data: object,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    *,
    media_type: str = "application/json",
) -> Response:
    """A reply with JSON in ASCII: what people submitted may hold half characters.

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
        return Response(first, status, dict(headers or {}), media_type)
    rest = _one_by_one(chain((first, second), pieces))
    return StreamingResponse(rest, status, dict(headers or {}), media_type)


_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


def _listed(data: dict[str, object], items: list[object]) -> Iterator[str]:
    """The JSON of an object with a list of items, each of which may be large."""
    before, after = _encode({**data, "items": [0]}).split('"items":[0]', 1)
    yield f'{before}"items":[{_encode(items[0])}'
    for item in items[1:]:
        yield f",{_encode(item)}"
    yield f"]{after}"


def in_pieces(texts: Iterable[str]) -> Iterator[bytes]:
    """Texts one after the other, in pieces of at most `_PIECE_BYTES`; at least one."""
    held = bytearray()
    for text in texts:
        held += text.encode()
        if len(held) > _PIECE_BYTES:
            whole = memoryview(bytes(held))
            starts = range(0, len(whole), _PIECE_BYTES)
            yield from (bytes(whole[start : start + _PIECE_BYTES]) for start in starts[:-1])
            held = bytearray(whole[starts[-1] :])
    yield bytes(held)


async def _one_by_one(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
        await asyncio.sleep(0)
