"""`Definition`: what every kind of stored grader has in common, and the checks that they share."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import ClassVar, cast

from assay.graders.spec import GraderSpec
from assay.scoring.json_safe import Json
from assay.types import codec
from assay.types.codec import Problem, ShapeError

__all__ = [
    "MAX_DEFINITION_BYTES",
    "MAX_TEXT_BYTES",
    "Definition",
    "blank",
    "not_plain",
    "range_problems",
    "refuse",
    "renamed",
    "secret_problems",
]

MAX_DEFINITION_BYTES = 1 << 20
"""Size of a whole definition as JSON."""

MAX_TEXT_BYTES = 65_536
"""Size of one text of a definition: a criterion, a template."""

_MAX_DEPTH = 64
_MOST = 1 << 256


class Definition:
    """A grader as it is stored: the base of the classes of this module.

    Attributes:
        kind: What a file and the web call it.
    """

    __slots__ = ()
    kind: ClassVar[str]

    def to_dict(self) -> dict[str, Json]:
        """The definition as plain JSON; what has its default is left out."""
        return cast("dict[str, Json]", codec.to_json(self))

    def specs(self) -> tuple[GraderSpec, ...]:
        """The declared graders that do the grading; none where this version has none."""
        return ()

    def digest(self) -> str:
        """What exactly gives its scores: the definition, and the code of assay that grades by it.

        Returns:
            64 hexadecimal digits. A custom grader's own code is not part of it: it is not stored.
        """
        from assay.graders.digest import framed, grader_digest

        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        code = [grader_digest(spec).encode() for spec in self.specs()]
        whole = hashlib.sha256(b"assay definition 1\0")
        whole.update(framed(self.kind.encode(), text.encode(), *code))
        return whole.hexdigest()


def renamed(data: Json, old: str, new: str) -> Json:
    """A mapping with one key under another name, where it has it."""
    if not isinstance(data, dict) or old not in data or new in data:
        return data
    return {new if key == old else key: item for key, item in data.items()}


def refuse(problems: Sequence[Problem]) -> None:
    """Raise what is wrong, if anything is."""
    if problems:
        raise ShapeError(problems)


def blank(name: str, text: str) -> list[Problem]:
    """A text that says nothing."""
    return [] if text.strip() else [Problem((name,), f"{name!r} is empty")]


def range_problems(given: tuple[float, ...] | None) -> list[Problem]:
    """An invalid range of scores."""
    if given is None:
        return []
    if len(given) != 2 or not all(map(math.isfinite, given)) or given[0] >= given[1]:
        hint = "the lowest and the highest score, such as [0, 1]"
        return [Problem(("range",), "must be two finite numbers, the lower first", hint)]
    return []


_SECRET_NAME = re.compile(r"ASSAY_SECRET_[A-Z0-9_]{1,100}")


def secret_problems(name: str) -> Iterator[Problem]:
    """A secret that is not named by a variable meant for it."""
    if name and not _SECRET_NAME.fullmatch(name):
        # Whoever may store a grader chooses the name and where the secret is sent: any other
        # variable of a server's would be theirs for the asking.
        message = "must be the name of a variable that begins with ASSAY_SECRET_"
        hint = "capital letters, digits and _; put the secret itself into that variable"
        yield Problem(("secret_env",), message, hint)


def not_plain(data: Json) -> str:
    """Why data cannot be stored and shown as it is; empty if it can.

    Walks without recursion, for what is nested too deeply is to be found by it.
    """
    size = 0
    waiting: list[tuple[Json, int]] = [(data, 0)]
    while waiting:
        value, depth = waiting.pop()
        size += 2 * len(value) if isinstance(value, dict | list) else 2
        if depth > _MAX_DEPTH:
            return f"nested more than {_MAX_DEPTH} levels deep"
        if isinstance(value, str):
            try:
                size += len(value.encode())
            except UnicodeEncodeError:
                return "holds half a character (a lone surrogate)"
        elif isinstance(value, float) and not math.isfinite(value):
            return f"holds {value}, which JSON has no number for"
        elif isinstance(value, int) and abs(value) >= _MOST:
            return f"holds a whole number of {value.bit_length()} bits"
        if size > MAX_DEFINITION_BYTES:
            return f"larger than {MAX_DEFINITION_BYTES} bytes"
        if isinstance(value, dict):
            waiting += [(item, depth + 1) for pair in value.items() for item in pair]
        elif isinstance(value, list):
            waiting += [(item, depth + 1) for item in value]
    return ""
