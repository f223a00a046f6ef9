"""A reply as it is stored and exported: JSON, checked field by field when it is read.

A recording may come from elsewhere, so nothing in it is believed to have its form. (That it says
what the model said cannot be checked: replay recordings of people you trust.)
"""

from __future__ import annotations

import json
import math
import zlib
from typing import cast, get_args

from assay.models.messages import Finish, Reply, Rung, Usage
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import NotJsonError, decode_json

__all__ = ["RecordError", "pack", "reply_of", "to_json", "unpack"]

MAX_BYTES = 64 * 1024 * 1024
"""Most bytes of one reply's JSON: several times what a transport lets through."""

_STORABLE = ("stop", "tool")
_WORTH_COMPRESSING = 2_048  # most verdicts are shorter, and zlib costs more than it saves


class RecordError(ValueError):
    """What is stored is not a reply; the message says which field is wrong."""


def to_json(reply: Reply) -> dict[str, Json]:
    """Everything of a reply that a hit brings back, and what it took and cost."""
    usage = reply.usage
    return {
        "text": reply.text,
        "data": reply.data,
        "finish": reply.finish,
        "model": reply.model,
        "usage": {
            "input_tokens": usage.input_tokens,
            "cached_tokens": usage.cached_tokens,
            "output_tokens": usage.output_tokens,
            "reasoning_tokens": usage.reasoning_tokens,
        },
        "fingerprint": reply.fingerprint,
        "rung": reply.rung,
        "dropped": list(reply.dropped),
        "repairs": reply.repairs,
        "seconds": reply.seconds,
        "cost_usd": reply.cost_usd,
    }


def reply_of(record: Json, *, digest: str) -> Reply:
    """The hit that a record stands for: it costs nothing and took no time.

    Raises:
        RecordError: A field is missing or of the wrong kind.
    """
    if not isinstance(record, dict):
        raise RecordError("it is not an object")
    dropped = record.get("dropped")
    if not isinstance(dropped, list) or not all(isinstance(name, str) for name in dropped):
        raise RecordError("'dropped' is not a list of names")
    _number(record, "seconds")
    if record.get("cost_usd") is not None:
        _number(record, "cost_usd")
    return Reply(
        text=_text(record, "text"),
        data=record.get("data"),
        finish=cast("Finish", _one_of(record, "finish", _STORABLE)),
        model=_text(record, "model"),
        usage=_usage(record.get("usage")),
        fingerprint=_text(record, "fingerprint"),
        rung=cast("Rung", _one_of(record, "rung", get_args(Rung))),
        dropped=tuple(cast("list[str]", dropped)),
        repairs=_count(record, "repairs") or 0,
        cost_usd=0.0,
        is_hit=True,
        digest=digest,
    )


def pack(record: dict[str, Json]) -> bytes:
    """A record as bytes of the store.

    Raises:
        RecordError: It is not JSON.
    """
    try:
        text = json.dumps(record, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise RecordError(f"it is not JSON: {error}") from None
    value = text.encode("ascii")
    return value if len(value) < _WORTH_COMPRESSING else zlib.compress(value, 1)


def unpack(value: bytes) -> Json:
    """The record in bytes of the store; never more than `MAX_BYTES` of it.

    Raises:
        RecordError: They are damaged.
    """
    if value[:1] == b"{":
        return parse(value)
    stream = zlib.decompressobj()
    try:
        text = stream.decompress(value, MAX_BYTES)
        if not stream.eof:
            raise RecordError("it is cut off or too large")
        return parse(text)
    except zlib.error:
        raise RecordError("it is not compressed as it should be") from None


def parse(text: str | bytes) -> Json:
    """Parse JSON whose numbers are finite.

    Raises:
        RecordError: It is not that.
    """
    try:
        return decode_json(text)
    except NotJsonError as error:
        raise RecordError(f"it is not JSON: {error}") from None


def _text(record: dict[str, Json], key: str) -> str:
    value = record.get(key)
    if not isinstance(value, str):
        raise RecordError(f"'{key}' is not a text")
    return value


def _one_of(record: dict[str, Json], key: str, words: tuple[str, ...]) -> str:
    value = _text(record, key)
    if value not in words:
        raise RecordError(f"'{key}' is not one of {', '.join(words)}")
    return value


def _number(record: dict[str, Json], key: str) -> float:
    value = record.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RecordError(f"'{key}' is not a number")
    if not (0 <= value < math.inf):
        raise RecordError(f"'{key}' is not a number from 0")
    return value


def _count(record: dict[str, Json], key: str) -> int | None:
    value = record.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
        raise RecordError(f"'{key}' is not a count")
    return value


def _usage(value: Json) -> Usage:
    if not isinstance(value, dict):
        raise RecordError("'usage' is not an object")
    return Usage(
        input_tokens=_count(value, "input_tokens"),
        cached_tokens=_count(value, "cached_tokens"),
        output_tokens=_count(value, "output_tokens"),
        reasoning_tokens=_count(value, "reasoning_tokens"),
    )
