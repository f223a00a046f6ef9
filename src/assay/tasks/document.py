"""Read a YAML or JSON document into plain JSON that remembers where everything stands.

A document is data from anyone, so the reader builds null, booleans, numbers, text, lists and
mappings and nothing else. It works on the parser's events, one at a time, and stops at the first
that would pass a limit: a deeply nested or self-multiplying document costs no more than a plain
one. Scalars follow YAML 1.2: ``no`` and ``on`` are text, and so are dates and ``12:30``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from assay.errors import InputError, Location
from assay.scoring.json_safe import Json
from assay.tasks.yaml_events import Builder, Place, StopReadingError
from assay.types import codec
from assay.types.codec import Problem

if TYPE_CHECKING:
    import yaml


MAX_BYTES = 4 * 1024 * 1024
"""Size of a document file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that is wrong, and where.

    Attributes:
        location: File, line, column and field.
        message: What is wrong there.
        hint: How to fix it, or empty.
    """

    location: Location
    message: str
    hint: str = ""

    def __str__(self) -> str:
        text = f"{self.message} ({self.hint})" if self.hint else self.message
        place = str(self.location)
        # One line per fault, whatever a hostile key or value contains.
        return _printable(f"{place}: {text}" if place else text)


class DocumentError(InputError):
    """One or more documents are wrong; its text has one line per fault.

    Attributes:
        faults: Every fault, in the order of the files and of the lines in each.
    """

    def __init__(self, faults: Sequence[Fault]) -> None:
        first = faults[0]
        super().__init__(first.message, location=first.location, hint=first.hint)
        self.faults = tuple(faults)

    def __str__(self) -> str:
        return "\n".join(str(fault) for fault in self.faults)

    def __reduce__(self) -> tuple[object, ...]:
        return DocumentError, (self.faults,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A parsed document.

    Attributes:
        file: Its path as the user gave it.
        data: What it says.
        keys: Path to the place where the key of that mapping entry stands.
        values: Path to the place where that value stands.
    """

    file: str
    data: Json
    keys: Mapping[codec.Path, Place] = field(default_factory=dict[codec.Path, Place])
    values: Mapping[codec.Path, Place] = field(default_factory=dict[codec.Path, Place])

    def locate(self, problem: Problem) -> Location:
        """Where a problem stands; for something that is missing, where it should have been."""
        path = problem.path
        place = None if problem.at_key else self.values.get(path)
        while place is None and path:
            place = self.keys.get(path) or self.values.get(path)
            path = path[:-1]
        line, column = place or self.values.get((), (1, 1))
        return Location(file=self.file, line=line, column=column, field=problem.field)


def problems_to_error(problems: Sequence[Problem], document: Document) -> DocumentError:
    """Say where in a document each problem stands, in the order of its lines."""
    faults = [Fault(location=document.locate(p), message=p.message, hint=p.hint) for p in problems]
    faults.sort(key=lambda fault: (fault.location.line or 0, fault.location.column or 0))
    return DocumentError(faults)


def read_document(file: str, problems: list[Problem] | None = None) -> Document:
    """Read a YAML or JSON file.

    Args:
        file: The file.
        problems: If given, what does not stop the reading (such as a repeated key) is added to
            these instead of raised, for a caller who goes on to find more.
    """
    try:
        with Path(file).open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise _fault(file, f"cannot be read: {error.strerror or error}") from error
    if len(content) > MAX_BYTES:
        raise _fault(file, f"is larger than {MAX_BYTES} bytes", hint="move data to other files")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _fault(file, "is not UTF-8 text", (line, 1), hint="save it as UTF-8") from error
    return parse_document(text, file=file, problems=problems)


def parse_document(text: str, *, file: str = "", problems: list[Problem] | None = None) -> Document:
    """Parse the text of a YAML or JSON document."""
    import yaml

    if len(text) > MAX_BYTES:
        raise _fault(file, f"is longer than {MAX_BYTES} characters")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    # JSON writes characters beyond U+FFFF as two escapes, which YAML has no notion of.
    joined = _SURROGATES.sub(_join_surrogates, text) if "\\u" in text else text
    builder = Builder(yaml.parse(joined, Loader=loader))
    try:
        data = builder.document()
    except yaml.YAMLError as error:
        raise _syntax_fault(file, error, text) from error
    except StopReadingError as stop:
        where = Document(file=file, data=None, keys=builder.keys, values=builder.values)
        raise problems_to_error([Problem(stop.path, stop.message)], where) from stop
    document = Document(file=file, data=data, keys=builder.keys, values=builder.values)
    if problems is not None:
        problems.extend(builder.problems)
    elif builder.problems:
        raise problems_to_error(builder.problems, document)
    return document


_SURROGATES = re.compile(r"\\\\|\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")


def _join_surrogates(match: re.Match[str]) -> str:
    if match[1] is None:
        return match[0]
    return chr(0x10000 + ((int(match[1], 16) - 0xD800) << 10) + (int(match[2], 16) - 0xDC00))


def _fault(file: str, message: str, place: Place | None = None, *, hint: str = "") -> DocumentError:
    line, column = place or (None, None)
    location = Location(file=file, line=line, column=column)
    return DocumentError([Fault(location=location, message=message, hint=hint)])


def _syntax_fault(file: str, error: yaml.YAMLError, text: str) -> DocumentError:
    mark = cast("yaml.Mark | None", getattr(error, "problem_mark", None))
    what = cast("str | None", getattr(error, "problem", None)) or "it cannot be parsed"
    if mark is not None:
        return _fault(file, f"not valid YAML: {what}", (mark.line + 1, mark.column + 1))
    # The parser names no line for a character that no document may hold, so look for it.
    control = re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe]", text)
    if control is None:
        return _fault(file, f"not valid YAML: {what}")
    line = text.count("\n", 0, control.start()) + 1
    column = control.start() - text.rfind("\n", 0, control.start())
    name = f"U+{ord(control[0]):04X}"
    return _fault(file, f"holds the control character {name}", (line, column), hint="remove it")


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
