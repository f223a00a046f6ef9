"""`Recorder`: keeps what passes a gateway.

An agent sends its whole conversation each time. What of it is new is kept, and told apart by its
*line*: an agent may hold several conversations (with a helper, for a title), and rewrite one.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from assay.conversation.protocols.translating import TurnBuilder
from assay.conversation.turns import AssistantTurn, Call, Conversation, Image, Turn
from assay.gateway.journal import (
    REDACTED,
    Answered,
    AskedEvent,
    Begun,
    Entry,
    Heard,
    Refused,
    append,
    decoded,
    encoded,
)
from assay.gateway.trace import Recorded, recorded
from assay.scoring.json_safe import Json

_MOST_BYTES = 256 << 20
_ENTRY_BYTES = 1_000  # what an entry takes in memory, whatever it says
_LOOKED_AT = 100
"""Lines that begin alike, of which the last are gone on with: an agent can begin any number."""


class _Said:
    """A turn, to be compared: digested only where an agent writes it down in another way."""

    __slots__ = ("_digest", "turn")

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self._digest = ""

    @property
    def digest(self) -> str:
        self._digest = self._digest or _digest(self.turn)
        return self._digest

    def says(self, other: _Said) -> bool:
        """Whether they say the same: an agent that writes all down as before costs no digests."""
        one, two = self.turn, other.turn
        return one == two or _bare(one) == _bare(two) or self.digest == other.digest


@dataclass(slots=True)
class _Known:
    """A conversation as far as it is known: its standing instructions, and its turns."""

    system: str
    turns: list[_Said]


@dataclass(slots=True)
class Recorder:
    """Keeps what passes.

    Attributes:
        journal: File that each entry is appended to; None to keep them in memory alone.
        of: What the file's first entry says that it is the journal of.
        secret: What is not kept, such as the token of a gateway; `REDACTED` stands in its place.
        entries: All that passed.
        told: Called with each entry once it is kept.
        size: Bytes that they take, about.
    """

    journal: Path | None = None
    of: str = ""
    secret: str = ""
    entries: list[Entry] = field(default_factory=list["Entry"])
    told: Callable[[Entry], None] | None = None
    size: int = field(default=0, init=False)
    _lines: list[_Known] = field(default_factory=list[_Known], init=False)
    _beginning: defaultdict[str, list[int]] = field(
        default_factory=lambda: defaultdict[str, list[int]](list), init=False
    )
    _line_of: dict[int, int] = field(default_factory=dict[int, int], init=False)
    _line_by_reply: dict[str, int] = field(default_factory=dict[str, int], init=False)
    _number: int = field(default=0, init=False)
    _heard_bytes: int = field(default=0, init=False)

    @property
    def is_full(self) -> bool:
        """Whether no more can be kept: what an agent says ends somewhere, and so does a disk."""
        return self.size >= _MOST_BYTES

    def asked(self, conversation: Conversation, protocol: str) -> int:
        """Keep a request; its number.

        Raises:
            StoreError: If it cannot be written down.
        """
        if not self._number:
            self._keep(Begun(of=self.of, at=now()))
        self._number += 1
        turns = merged(conversation.turns)
        followed = self._line_by_reply.get(conversation.follows)
        if followed is None:
            line, kept = self._place(conversation.system, turns)
            added = turns[kept:]
        else:  # what was said before is told by naming the reply
            known = self._lines[followed].turns
            line, kept, added = followed, len(known), turns
            known += map(_Said, turns)
        self._line_of[self._number] = line
        self._keep(
            AskedEvent(
                number=self._number,
                at=now(),
                line=line,
                kept=kept,
                turns=added,
                tools=tuple(tool.name for tool in conversation.tools),
                protocol=protocol,
                model=conversation.model,
            )
        )
        return self._number

    def heard(self, number: int, events: bytes) -> None:
        """Keep events of a reply in the file, until the whole reply is kept.

        Raises:
            StoreError: If they cannot be written down.
        """
        if self.journal is None or self._heard_bytes >= _MOST_BYTES:
            return
        told = events.decode("utf-8", "replace")
        told = told.replace(self.secret, REDACTED) if self.secret else told
        line = encoded(Heard(number=number, events=told))
        self._heard_bytes += len(line)
        append(self.journal, line)

    def answered(
        self, number: int, reply: AssistantTurn, *, cost_usd: float | None, seconds: float
    ) -> Answered:
        """Keep a reply.

        Raises:
            StoreError: If it cannot be written down.
        """
        line = self._line_of[number]
        turns = self._lines[line].turns
        turns.append(_Said(reply.turn))
        if len(turns) == 1:  # it had begun with nothing
            self._beginning[turns[0].digest].append(line)
        if reply.id:
            self._line_by_reply[reply.id] = line
        entry = Answered(number=number, at=now(), reply=reply, cost_usd=cost_usd, seconds=seconds)
        self._keep(entry)
        return entry

    def refused(self, number: int, why: str, cause: str) -> None:
        """Keep that a request got no reply."""
        self._keep(Refused(number=number, at=now(), why=why, cause=cause))

    def recorded(self) -> Recorded:
        """What passed so far, as a trace."""
        return recorded(self.entries)

    def _place(self, system: str, turns: Sequence[Turn]) -> tuple[int, int]:
        """The line that a request goes on with, and how many of its turns stand."""
        given = [_Said(turn) for turn in turns]
        if given and self._lines and self._lines[-1].turns:  # it is the last one most often
            begun = self._lines[-1].turns[0]
            given[0] = begun if begun.turn == given[0].turn else given[0]
        best, kept = -1, 0
        beginning = self._beginning[given[0].digest if given else ""]
        for number in beginning[-_LOOKED_AT:]:
            known = self._lines[number]
            same = _in_common(known.turns, given)
            # Before the model has said anything, another conversation may begin in the same words.
            is_it = same > 0 and (same > 1 or known.system == system)
            if is_it and same > kept:
                best, kept = number, same
        if best < 0:
            beginning.append(len(self._lines))
            self._lines.append(_Known(system, given))
            return len(self._lines) - 1, 0
        # What stands stays as it was recorded: whatever an agent pads it with is held nowhere.
        self._lines[best].turns[kept:] = given[kept:]
        return best, kept

    def _keep(self, entry: Entry) -> None:
        line, secret = encoded(entry), self.secret.encode()
        if secret and secret in line:
            line = line.replace(secret, REDACTED.encode())
            entry = decoded(line)
        self.entries.append(entry)
        self.size += len(line) + _ENTRY_BYTES
        if self.journal is not None:
            append(self.journal, line)
        if self.told is not None:
            self.told(entry)


def merged(turns: Iterable[Turn]) -> tuple[Turn, ...]:
    """Turns in which nobody speaks twice in a row, without standing instructions."""
    joined = TurnBuilder("user", "assistant")
    for turn in turns:
        if turn.speaker != "system":
            joined.add(turn.speaker, turn.parts)
    return joined.made()


def _in_common(known: Sequence[_Said], given: Sequence[_Said]) -> int:
    count = 0
    for one, other in zip(known, given, strict=False):
        if one is not other and not one.says(other):
            break
        count += 1
    return count


def _bare(turn: Turn) -> tuple[object, ...]:
    """What of a turn its digest is made of."""
    calls = [(call.name, call.arguments) for call in turn.calls]
    results = [result.text for result in turn.results]
    images = [part.url for part in turn.parts if isinstance(part, Image)]
    return turn.speaker, turn.text, calls, results, images


def _digest(turn: Turn) -> str:
    """What a turn says, whichever way an agent writes it down again: without ids and thoughts."""
    said: list[Json] = [turn.speaker, " ".join(turn.text.split())]
    said += [list[Json]([call.name, _plain(call)]) for call in turn.calls]
    said += [result.text.strip() for result in turn.results]
    said += [part.url for part in turn.parts if isinstance(part, Image)]
    return hashlib.sha256(repr(said).encode("utf-8", "replace")).hexdigest()


def _plain(call: Call) -> str:
    given = call.given
    return call.arguments.strip() if given is None else json.dumps(given, sort_keys=True)


def now() -> str:
    """This moment, as ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
