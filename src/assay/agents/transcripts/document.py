"""Read JSON that nobody vouches for: bounded, never failing on a value, saying what it left out."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence

from assay.scoring.json_safe import Json
from assay.scoring.strict_json import NotJsonError, decode_json

MOST_BYTES = 64 << 20
"""Characters that a transcript may have."""
MOST_LINE = 16 << 20
"""Characters of one line; a longer one is not read."""

_MOST_DOCUMENT = 32 << 20  # 60 MiB of empty lists took 3 GB
_MOST_NOTES = 50
_MOST_DEPTH = 32
_MOST_RESULT = 100_000
_MOST_COUNT = 10**15


class Notes:
    """What a reader did not understand, each once with how often, and what is missing."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}
        self._others = 0
        self.missing = ""
        self.untold = ""
        self.refused: list[str] = []

    def add(self, what: str) -> None:
        """Something was left out, and nothing depends on it."""
        what = what if len(what) <= 200 else f"{what[:200]}..."
        if what in self._seen or len(self._seen) < _MOST_NOTES:
            self._seen[what] = self._seen.get(what, 0) + 1
        else:
            self._others += 1

    def lack(self, why: str) -> None:
        """A part of the trace is missing, or may be."""
        self.add(why)
        self.missing = self.missing or why

    def leave_out(self, what: str) -> None:
        """The harness tells no run of this; the submission has no say in it."""
        self.add(what)
        self.untold = self.untold or what

    def refuse(self, quantity: str, why: str) -> None:
        """What is told of a quantity, such as tokens, is none."""
        self.add(why)
        self.refused += [] if quantity in self.refused else [quantity]

    def refuse_gaps(self, told: Mapping[str, Sequence[float | None]], lines: str) -> None:
        """Refuse what only some lines tell: the others may be of the submission."""
        for quantity, each in told.items():
            if None in each and len(set(each)) > 1:
                self.refuse(quantity, f"not every {lines} tells {quantity}")

    def copy(self) -> Notes:
        """The same, for one of several runs in a file: what is noted there is not the others'."""
        other = Notes()
        other._seen, other._others, other.missing = dict(self._seen), self._others, self.missing
        other.untold, other.refused = self.untold, list(self.refused)
        return other

    def to_list(self) -> list[Json]:
        """For ``trace.extra``."""
        listed: list[Json] = [
            what if times == 1 else f"{what} ({times} times)" for what, times in self._seen.items()
        ]
        return [*listed, f"{self._others} more"] if self._others else listed


def parse(text: str, notes: Notes) -> tuple[list[Json] | None, Iterator[Json]]:
    """The values of one JSON document, or of a file with one to a line.

    Returns:
        For one document the list that holds it (or is it), else None; and the values in turn.
    """
    text = text.removeprefix("\ufeff").strip()
    if text[:1] in ("[", "{") and len(text) <= _MOST_DOCUMENT:
        with contextlib.suppress(NotJsonError):
            cleaned = clean(decode_json(text, nan=True), notes)
            values: list[Json] = cleaned if isinstance(cleaned, list) else [cleaned]
            return values, iter(values)
    return None, _lines(text, notes)


def _lines(text: str, notes: Notes) -> Iterator[Json]:
    # Only a line feed ends a line: a text inside JSON may hold any other separator of Unicode's.
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        line = text[start:end].strip() if end - start <= MOST_LINE else None
        start = end + 1
        if line is None:
            notes.lack(f"a line of more than {MOST_LINE} characters was not read")
        elif line[:1] in ("{", "["):
            try:
                value = decode_json(line, nan=True)
            except NotJsonError as error:
                twice = error.kind == "repeated key"
                notes.lack(f"a line was not read: {error}" if twice else "a line is broken JSON")
            else:
                yield clean(value, notes)
        elif line:
            notes.add("a line is not JSON")


def clean(value: Json, notes: Notes, depth: int = 0) -> Json:
    """A copy that can be stored anywhere: of bounded depth, finite, without lone surrogates."""
    if isinstance(value, str):
        return _encodable(value)
    if isinstance(value, float) and not math.isfinite(value):
        notes.add("a number is not finite")
        return str(value)  # no amount, but not the same as untold
    if not isinstance(value, dict | list):
        return value
    if depth >= _MOST_DEPTH:
        notes.lack("a value is nested too deeply and was left out")
        return None
    if isinstance(value, list):
        return [clean(item, notes, depth + 1) for item in value]
    return {_encodable(key): clean(item, notes, depth + 1) for key, item in value.items()}


def _encodable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def mapping(value: Json) -> Mapping[str, Json]:
    """The value if it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def listing(value: Json) -> list[Json]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def text_of(value: Json) -> str | None:
    """The value if it is text, else None."""
    return value if isinstance(value, str) else None


def count(value: Json, notes: Notes, what: str) -> int | None:
    """The value if it can be a count, else None and a note."""
    if value is None:
        return None
    number = int(value) if isinstance(value, float) and value.is_integer() else value
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= _MOST_COUNT:
        notes.refuse("tokens", f"{what} is not a count: {str(value)[:40]}")
        return None
    return number


def total_of(counts: Sequence[int | None]) -> int | None:
    """The sum of counts; None for none of them, or where one is not known."""
    known = [one for one in counts if one is not None]
    return sum(known) if known and len(known) == len(counts) else None


def amount(value: Json, notes: Notes, what: str, quantity: str = "cost_usd") -> float | None:
    """The value if it can be an amount of something, else None and a note."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 10**15:
        notes.refuse(quantity, f"{what} is not an amount: {str(value)[:40]}")
        return None
    return float(value)


def texts_of(content: Json) -> str | None:
    """The text of a message: as it is, or its texts and text blocks joined; None where none is."""
    if isinstance(content, str):
        return content
    parts = [mapping(one).get("text", one) for one in listing(content)]
    texts = [part for part in parts if isinstance(part, str)]
    return "\n".join(texts) if texts else None


def shortened(content: Json) -> Json:
    """What a tool answered, bounded: long texts keep both ends, and binary parts their kind."""
    if isinstance(content, list):
        blocks = [mapping(block) for block in content]
        if all(isinstance(block.get("text"), str) for block in blocks):
            return shortened("\n".join(str(block["text"]) for block in blocks))
        return [
            {"type": block.get("type"), "text": shortened(block.get("text"))} for block in blocks
        ]
    if isinstance(content, dict):
        return shortened(json.dumps(content, ensure_ascii=False))
    if isinstance(content, str) and len(content) > _MOST_RESULT:
        half = _MOST_RESULT // 2
        cut = len(content) - 2 * half
        return f"{content[:half]}\n... [{cut} characters cut] ...\n{content[-half:]}"
    return content
