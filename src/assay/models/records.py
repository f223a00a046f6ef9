"""A recorded reply as bytes of a file, and what such bytes have to be to be believed."""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict
from typing import Any, cast, get_args

from assay.conversation.messages import Reply, ReplyUsage, Rung
from assay.conversation.schemas import validator
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import NotJsonError, decode_json

MAX_BYTES = 64 * 1024 * 1024
"""Most bytes of one reply's JSON: several times what a transport lets through."""

STORABLE = ("stop", "tool")
"""How a reply has to have ended to be kept."""

_WORTH_COMPRESSING = 2_048  # most verdicts are shorter, and zlib costs more than it saves
_COUNTS = ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens")
_KEPT = ("text", "data", "finish", "model", "fingerprint", "rung", "dropped", "repairs")
_COUNT: dict[str, Json] = {"type": ["integer", "null"], "minimum": 0, "maximum": 2**53 - 1}
_SCHEMA: dict[str, Json] = {
    "type": "object",
    "required": ["text", "finish", "model", "usage", "fingerprint", "rung", "dropped", "seconds"],
    "properties": {
        "text": {"type": "string"},
        "finish": {"enum": list(STORABLE)},
        "model": {"type": "string"},
        "usage": {"type": "object", "properties": dict.fromkeys(_COUNTS, _COUNT)},
        "fingerprint": {"type": "string"},
        "rung": {"enum": list(get_args(Rung))},
        "dropped": {"type": "array", "items": {"type": "string"}},
        "repairs": _COUNT,
        "seconds": {"type": "number", "minimum": 0},
        "cost_usd": {"type": ["number", "null"], "minimum": 0},
    },
}


class RecordError(ValueError):
    """What is stored is not a reply, or a reply cannot be stored; the message says why."""


def pack(reply: Reply) -> bytes:
    """Everything of a reply that a hit brings back, and what it took and cost, as bytes.

    Raises:
        RecordError: It is not JSON.
    """
    usage = asdict(reply.usage)
    record = {
        **{name: getattr(reply, name) for name in _KEPT},
        "usage": {name: usage[name] for name in _COUNTS},
        "seconds": reply.seconds,
        "cost_usd": reply.cost_usd,
    }
    try:
        text = json.dumps(record, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise RecordError(f"it is not JSON: {error}") from None
    value = text.encode("ascii")
    return value if len(value) < _WORTH_COMPRESSING else zlib.compress(value, 1)


def unpack(value: bytes, *, digest: str) -> Reply:
    """The hit that a record stands for: it costs nothing and took no time, but once it did.

    Raises:
        RecordError: It is damaged, or a field is missing or of the wrong kind.
    """
    record = _parsed(value)
    if complaint := validator(_SCHEMA)(record):
        raise RecordError(complaint)
    known = cast("dict[str, Any]", record)
    cost = known.get("cost_usd")
    kept: dict[str, Any] = {name: known.get(name) for name in _KEPT}
    kept |= {"dropped": tuple(known["dropped"]), "repairs": known.get("repairs") or 0}
    return Reply(
        **kept,
        usage=ReplyUsage(**{name: known["usage"].get(name) for name in _COUNTS}),
        cost_usd=0.0,
        is_hit=True,
        asked_usd=None if cost is None else float(cost),
        asked_seconds=float(known["seconds"]),
        digest=digest,
    )


def _parsed(value: bytes) -> Json:
    """The JSON in bytes of the file; never more than `MAX_BYTES` of it, and no number infinite."""
    try:
        if value[:1] != b"{":
            stream = zlib.decompressobj()
            value = stream.decompress(value, MAX_BYTES)
            if not stream.eof:
                raise RecordError("it is cut off or too large")
        return decode_json(value)
    except zlib.error:
        raise RecordError("it is not compressed as it should be") from None
    except NotJsonError as error:
        raise RecordError(f"it is not JSON: {error}") from None
