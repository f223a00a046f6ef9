"""What passes a gateway, entry by entry, as it is kept.

Each entry is written before it has an effect: a request before it is sent on, a reply before the
agent is given it. So whatever ends, by whatever signal, all that had passed by then is there.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, TypeAlias, cast

from assay.conversation.protocols import Protocol, codec_of
from assay.conversation.turns import AssistantTurn, Turn
from assay.errors import StoreError
from assay.frozen import frozen
from assay.scoring.strict_json import decode_json
from assay.types.codec import from_json, json_level

REDACTED = "(the gateway's token)"
"""Stands where a token was said: traces are kept, exported and shown to others."""

_TOKEN = re.compile(rb"\bcell-[\w-]{32}")
"""Of any gateway: a reply that was under way when all was killed may say it piece by piece."""


@frozen(kw_only=True)
class Begun:
    """The first entry of a journal.

    Attributes:
        of: What it is the journal of, in its keeper's own words.
        at: ISO 8601, UTC.
    """

    TAG: ClassVar[str] = "begun"

    of: str
    at: str


@frozen(kw_only=True)
class AskedEvent:
    """A request.

    Attributes:
        number: Of the request, from 1.
        at: ISO 8601, UTC.
        line: The conversation that it goes on with, from 0.
        kept: How many turns of that it keeps; fewer than there were is a history rewritten.
        turns: The turns that it adds.
        tools: Names of the tools that may be called.
        protocol: How it was said; empty for an agent in this process.
        model: The model that it names, whatever model it is sent to.
    """

    TAG: ClassVar[str] = "asked"

    number: int
    at: str
    line: int
    kept: int
    turns: tuple[Turn, ...]
    tools: tuple[str, ...] = ()
    protocol: str = ""
    model: str = ""


@frozen(kw_only=True)
class Heard:
    """Events of a reply, as they came and before the agent has them; `Answered` is all of them.

    Attributes:
        number: The request's.
        events: They, in its protocol.
    """

    TAG: ClassVar[str] = "heard"

    number: int
    events: str


@frozen(kw_only=True)
class Answered:
    """The reply to a request.

    Attributes:
        number: The request's.
        at: ISO 8601, UTC.
        reply: What the model said.
        cost_usd: Paid for it; None where the price is not known.
        seconds: It took.
    """

    TAG: ClassVar[str] = "answered"

    number: int
    at: str
    reply: AssistantTurn
    cost_usd: float | None = None
    seconds: float = 0.0


@frozen(kw_only=True)
class Refused:
    """A request that got no reply.

    Attributes:
        number: The request's; 0 for one that could not be read.
        at: ISO 8601, UTC.
        why: In words.
        cause: ``limit``: past what the agent may ask; ``agent``: its own fault; ``model``: the
            model's server, or the way to it.
    """

    TAG: ClassVar[str] = "refused"

    number: int
    at: str
    why: str
    cause: str


Entry: TypeAlias = "Begun | AskedEvent | Heard | Answered | Refused"


@frozen
class _Line:
    """One JSON line of a journal."""

    entry: Entry


_ENCODER = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, separators=(",", ":"), default=json_level
)


def encoded(entry: Entry) -> bytes:
    """The line of an entry."""
    written = _ENCODER.encode({"entry": entry})
    return f"{written}\n".encode("utf-8", "replace")


def decoded(line: bytes) -> Entry:
    """The entry of a line.

    Raises:
        ValueError: If it has none.
    """
    return from_json(_Line, decode_json(line)).entry


def append(journal: Path, line: bytes) -> None:
    """Write the line of an entry down, or nothing of it.

    Raises:
        StoreError: If it cannot be written.
    """
    try:
        with journal.open("ab", buffering=0) as file:
            begin, left = file.tell(), memoryview(line)
            try:
                while left:
                    left = left[file.write(left) :]
            except OSError:
                file.truncate(begin)  # what follows, once there is room again, is a line of its own
                raise
    except OSError as error:
        raise StoreError(f"cannot record what passes a gateway: {error}") from error


def broken_off(reply: AssistantTurn) -> AssistantTurn:
    """A reply of which no more came."""
    return replace(reply, stop="length", stopped="broken off")


def readable_entries(file: str | Path) -> tuple[list[Entry], str]:
    """The entries of a journal as far as it is whole, and where it is not; empty if it is.

    A last line that was cut off does not count. A reply that was under way when all was killed is
    an entry, as far as it had come.
    """
    entries: list[Entry] = []
    heard: dict[int, list[str]] = {}
    broken = ""
    lines = Path(file).read_bytes().split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            entry = decoded(line)
        except ValueError:
            if number < len(lines):
                broken = f"{file}:{number}: not an entry of a gateway's journal"
            break
        if isinstance(entry, Heard):
            heard.setdefault(entry.number, []).append(entry.events)
            continue
        if isinstance(entry, Answered):
            heard.pop(entry.number, None)
        entries.append(entry)
    asked = [one for one in entries if isinstance(one, AskedEvent) and one.number in heard]
    entries += [known for one in asked for known in _as_heard(one, heard[one.number])]
    return entries, broken


def _as_heard(asked: AskedEvent, events: list[str]) -> list[Answered]:
    codec = codec_of(cast("Protocol", asked.protocol))
    stream = codec.read_stream()
    stream.feed("".join(events).encode())
    reply = codec.read_reply(stream.partial())
    if reply is None:
        return []
    entry = Answered(number=asked.number, at=asked.at, reply=broken_off(reply))
    line, tokens = _TOKEN.subn(REDACTED.encode(), encoded(entry))
    return [cast("Answered", decoded(line)) if tokens else entry]
