"""Server-sent events: written, and read from bytes that are cut anywhere."""

from __future__ import annotations

import itertools
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TypeVar

from assay.conversation.protocols.shapes import MOST_DEPTH
from assay.conversation.wire import said_error
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import NotJsonError, decode_json

_LINE_END = re.compile(rb"\r\n|\n|\r")

Cut = TypeVar("Cut", str, list[Json])


def event(data: Mapping[str, Json], name: str = "") -> bytes:
    """One event, with its name where the protocol gives it one."""
    # In ASCII, in which also half a surrogate pair can be written.
    written = json.dumps(data, separators=(",", ":"))
    return (
        f"event: {name}\ndata: {written}\n\n".encode() if name else f"data: {written}\n\n".encode()
    )


def spread(whole: Cut, pieces: int) -> list[Cut]:
    """A text or list in so many pieces of about the same length, some of which may be empty."""
    ends = [len(whole) * at // pieces for at in range(pieces + 1)] if pieces else []
    return [whole[start:end] for start, end in itertools.pairwise(ends)]


def cut(whole: str, pieces: int) -> list[str]:
    """A text in so many pieces of about the same length; fewer where it is shorter."""
    return spread(whole, min(pieces, len(whole)))


class EventStream(ABC):
    """A streamed reply in the course of being read: bytes into events, whatever they mean.

    What is not JSON, or ambiguous JSON, is no event of the reply, which then never comes whole.

    Attributes:
        wants_usage: See `Conversation`.
        is_broken: Whether something came that is no event.
        open_bytes: How much came of an event that is not whole.
    """

    def __init__(self) -> None:
        self.wants_usage = True
        self._held: list[bytes] = []
        self._lines: list[bytes] = []
        self._data: list[str] = []
        self._whole: list[bytes] = []
        self._ending: list[bytes] = []
        self._error: Json = None
        self.is_broken = False
        self.open_bytes = 0

    def feed(self, received: bytes) -> bytes:
        """Take in bytes, which may end anywhere.

        Returns:
            The events that became whole, as they came: without errors, without remarks, and without
            those by which the reply ends.
        """
        self.open_bytes += len(received)
        if b"\n" not in received and b"\r" not in received:
            if self._held and self._held[-1].endswith(b"\r"):
                received = self._held.pop() + received
            else:
                self._held.append(received)
                return b""
        whole = b"".join((*self._held, received))
        # The "\n" that belongs to it may be still to come.
        late = b"\r" if whole.endswith(b"\r") else b""
        *lines, rest = _LINE_END.split(whole[: len(whole) - len(late)])
        self._held = [rest + late] if rest or late else []
        for line in lines:
            self._line(line)
        whole, self._whole = b"".join(self._whole), []
        return whole

    def ending(self) -> bytes:
        """The events that tell that the reply is whole, which `feed` does not give."""
        return b"".join(self._ending)

    def error(self) -> Json:
        """The error that the server sent instead of the rest; None for none."""
        return self._error

    @property
    def is_ending(self) -> bool:
        """Whether what comes now tells how the reply ended."""
        return self.body() is not None

    @property
    def is_over(self) -> bool:
        """Whether nothing more can come."""
        return self.is_ending

    @abstractmethod
    def body(self) -> dict[str, Json] | None:
        """The reply as if it had come whole; None if it has not come to its end."""

    @abstractmethod
    def partial(self) -> dict[str, Json]:
        """The reply as far as it came, as if it had come whole."""

    @abstractmethod
    def take(self, data: dict[str, Json]) -> None:
        """Take in one event."""

    def finish(self) -> None:  # noqa: B027 - most streams end by an event
        """Take in the word that ends some streams."""

    def is_wanted(self, data: Mapping[str, Json]) -> bool:
        """Whether who asked for the reply wants to see an event."""
        del data
        return True

    def fail(self, error: Json) -> None:
        """Note the first error."""
        self._error = self._error or error

    def _line(self, line: bytes) -> None:
        if not line:
            if self._data and not self.is_over and self._event("\n".join(self._data)):
                known = self._ending if self.is_ending else self._whole
                known.append(b"\n".join((*self._lines, b"", b"")))
            self._data, self._lines, self.open_bytes = [], [], 0
            return
        field, _, value = line.partition(b":")
        if not field:
            return  # a remark
        self._lines.append(line)
        if field == b"data":
            try:
                self._data.append(value.removeprefix(b" ").decode())
            except UnicodeDecodeError:
                self.is_broken = True

    def _event(self, data: str) -> bool:
        """Take in the data of an event; whether it may be shown."""
        if data.strip() == "[DONE]":
            self.finish()
            return not self.is_broken
        try:
            decoded = decode_json(data, max_depth=MOST_DEPTH)
        except NotJsonError:
            decoded = None
        if not isinstance(decoded, dict):
            self.is_broken = True
            return False
        if told := said_error(decoded):
            self.fail(told)
        self.take(decoded)
        return not self.is_broken and not self._error and self.is_wanted(decoded)


def place_of(data: Mapping[str, Json], name: str = "index") -> int:
    """The number under a name; 0 where there is none."""
    number = data.get(name)
    return number if type(number) is int else 0


class Pieces:
    """Texts that arrive piece by piece: joined when they are asked for, not with each piece."""

    def __init__(self) -> None:
        self._found: dict[tuple[int | str, ...], list[str]] = {}

    def add(self, *place: int | str, text: str) -> None:
        """More of the text at a place."""
        self._found.setdefault(place, []).append(text)

    def drop(self, *place: int | str) -> None:
        """Forget the text at a place, which came whole."""
        self._found.pop(place, None)

    def names(self) -> list[str]:
        """The places that are one name."""
        return [str(place[0]) for place in self._found]

    def get(self, *place: int | str) -> str | None:
        """The text at a place as far as it came; None if nothing did."""
        found = self._found.get(place)
        if found is None:
            return None
        found[:] = ["".join(found)]
        return found[0]
