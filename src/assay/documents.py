"""Read a YAML or JSON document into plain JSON that remembers where everything stands.

A document is data from anyone, so the reader builds null, booleans, numbers, text, lists and
mappings and nothing else. It works on the parser's events, one at a time, and stops at the first
that would pass a limit: a deeply nested or self-multiplying document costs no more than a plain
one. Scalars follow YAML 1.2: ``no`` and ``on`` are text, and so are dates and ``12:30``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from assay.errors import InputError, Location
from assay.frozen import frozen
from assay.scoring.json_safe import Json
from assay.types import codec
from assay.types.codec import Problem

if TYPE_CHECKING:
    import yaml


MAX_DEPTH = 64
"""How deep lists and mappings may be nested."""

MAX_VALUES = 200_000
"""Values of a document, every use of an anchor counted."""

MAX_TEXT = 16 * 1024 * 1024
"""Characters of text of a document, every use of an anchor counted."""

Place: TypeAlias = tuple[int, int]
"""1-based line and column."""


class StopReadingError(Exception):
    """A limit was passed, so that nothing after this is worth reading."""

    def __init__(self, path: codec.Path, message: str) -> None:
        super().__init__(message)
        self.path = path
        self.message = message


@frozen
class _Anchored:
    """What an alias stands for, and what using it costs."""

    value: Json
    values: int
    text: int
    depth: int


class Builder:
    """One reading: takes events, counts what is built, and notes where it stands.

    Attributes:
        keys: Path to the place of each key.
        values: Path to the place of each value.
        problems: What is wrong but did not stop the reading.
    """

    def __init__(self, events: Iterator[yaml.Event]) -> None:
        self._events = events
        self._anchors: dict[str, _Anchored] = {}
        self._count = 0
        self._text = 0
        self._deepest = 0
        self.keys: dict[codec.Path, Place] = {}
        self.values: dict[codec.Path, Place] = {}
        self.problems: list[Problem] = []

    def document(self) -> Json:
        """Take every event and return the one document, adding to ``problems`` on the way."""
        import yaml

        data: Json = None
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise StopReadingError((), "holds more than one document")
                data = self._node(next(self._events), ())
        if not documents:
            self.problems.append(Problem((), "is empty"))
        return data

    def _node(self, event: yaml.Event, path: codec.Path) -> Json:
        import yaml

        self.values[path] = _place(event)
        if len(path) > MAX_DEPTH:
            raise StopReadingError(path[:3], f"is nested more than {MAX_DEPTH} deep")
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, path)
        self._spend(path, values=1)
        start = (self._count, self._text)
        outer, self._deepest = self._deepest, len(path)
        node = cast("yaml.NodeEvent", event)
        self._refuse_tag(node, path)
        if isinstance(node, yaml.MappingStartEvent):
            value: Json = self._mapping(path)
        elif isinstance(node, yaml.SequenceStartEvent):
            value = self._list(path)
        else:
            value = self._scalar(cast("yaml.ScalarEvent", node), path)
        if node.anchor is not None:
            self._anchors[node.anchor] = _Anchored(
                value, self._count - start[0] + 1, self._text - start[1], self._deepest - len(path)
            )
        self._deepest = max(outer, self._deepest)
        return value

    def _alias(self, event: yaml.AliasEvent, path: codec.Path) -> Json:
        name = cast("str", event.anchor)
        anchored = self._anchors.get(name)
        if anchored is None:
            message = f"*{name} refers to an anchor that is not defined yet, or that contains it"
            self.problems.append(Problem(path, message))
            return None
        if len(path) + anchored.depth > MAX_DEPTH:
            raise StopReadingError(path[:3], f"is nested more than {MAX_DEPTH} deep")
        self._deepest = max(self._deepest, len(path) + anchored.depth)
        self._spend(path, values=anchored.values, text=anchored.text)
        return anchored.value

    def _mapping(self, path: codec.Path) -> dict[str, Json]:
        import yaml

        own: dict[str, Json] = {}
        merged: dict[str, Json] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if _is_merge(event):
                self._merge(merged, path)
                continue
            key = self._key(event, path)
            key_path = value_path = (*path, key)
            if key in own:
                message = f"the key {key!r} is already used in line {self.keys[key_path][0]}"
                self.problems.append(Problem(key_path, message, at_key=True))
                value_path = (*key_path, "again")  # what the first one says keeps its place
            self.keys[key_path] = _place(event)
            own[key] = self._node(next(self._events), value_path)
        return {**merged, **own} if merged else own

    def _key(self, event: yaml.Event, path: codec.Path) -> str:
        import yaml

        here = (*path, "?")
        if isinstance(event, yaml.ScalarEvent):
            before = len(self.problems)
            key = self._scalar(event, here)
            if isinstance(key, str):
                return key
            if len(self.problems) == before:
                hint = f'write "{event.value}" in quotes'
                self.keys[here] = _place(event)
                self.problems.append(Problem(here, "a key must be text", hint, at_key=True))
            return event.value
        self.values[here] = _place(event)
        raise StopReadingError(here, "a key must be text, not a list, a mapping or an alias")

    def _merge(self, merged: dict[str, Json], path: codec.Path) -> None:
        here = (*path, "<<")
        value = self._node(next(self._events), here)
        for source in value if isinstance(value, list) else [value]:
            if not isinstance(source, dict):
                self.problems.append(Problem(here, "'<<' takes a mapping or a list of mappings"))
                return
            for key, item in source.items():
                merged.setdefault(key, item)

    def _list(self, path: codec.Path) -> list[Json]:
        import yaml

        items: list[Json] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(event, (*path, len(items))))
        return items

    def _scalar(self, event: yaml.ScalarEvent, path: codec.Path) -> Json:
        text = event.value
        self._spend(path, text=len(text))
        if event.style or event.tag is not None or not event.implicit[0]:
            value: Json = text
        else:
            value = self._plain(text, path)
        if isinstance(value, str) and not value.isascii() and _SURROGATE.search(value):
            self.problems.append(Problem(path, "holds half of a surrogate pair, which is not text"))
        return value

    def _plain(self, text: str, path: codec.Path) -> Json:
        if text in _WORDS:
            return _WORDS[text]
        if _NUMBER.fullmatch(text) is None:
            if _NOT_FINITE.fullmatch(text):
                message = f"{text} is not a number that can be used"
                self.problems.append(Problem(path, message, "quote it if it is text"))
            return text
        if len(text) > _MAX_DIGITS:
            self.problems.append(Problem(path, f"a number of {len(text)} digits", "quote it"))
            return None
        if _INTEGER.fullmatch(text):
            return int(text.lower(), 0) if text[1:2] in "xo" else int(text)
        number = float(text)
        if number - number != 0:
            self.problems.append(Problem(path, f"{text} is too large for a number", "quote it"))
        return number

    def _refuse_tag(self, event: yaml.NodeEvent, path: codec.Path) -> None:
        tag = cast("str | None", getattr(event, "tag", None))
        if tag not in (None, "!", _STR_TAG):
            name = tag.replace("tag:yaml.org,2002:", "!!")
            self.problems.append(Problem(path, f"the tag {name} is not allowed", "plain data only"))

    def _spend(self, path: codec.Path, *, values: int = 0, text: int = 0) -> None:
        self._count += values
        self._text += text
        if self._count > MAX_VALUES:
            raise StopReadingError(path, f"the document expands to more than {MAX_VALUES} values")
        if self._text > MAX_TEXT:
            raise StopReadingError(path, f"the document expands to more than {MAX_TEXT} letters")


_STR_TAG = "tag:yaml.org,2002:str"
_MAX_DIGITS = 400
_WORDS: dict[str, Json] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_NUMBER = re.compile(
    r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|0o[0-7]+|0x[0-9a-fA-F]+"
)
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)|NaN|-?Infinity")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def _is_merge(event: yaml.Event) -> bool:
    import yaml

    return isinstance(event, yaml.ScalarEvent) and event.value == "<<" and not event.style


def _place(event: yaml.Event) -> Place:
    mark = cast("yaml.Mark", event.start_mark)
    return (mark.line + 1, mark.column + 1)


MAX_BYTES = 4 * 1024 * 1024
"""Size of a document file."""


@frozen(kw_only=True)
class DocumentFault:
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

    def __init__(self, faults: Sequence[DocumentFault]) -> None:
        first = faults[0]
        super().__init__(first.message, location=first.location, hint=first.hint)
        self.faults = tuple(faults)

    def __str__(self) -> str:
        return "\n".join(str(fault) for fault in self.faults)


@frozen(kw_only=True)
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
    faults = [
        DocumentFault(location=document.locate(p), message=p.message, hint=p.hint) for p in problems
    ]
    faults.sort(key=lambda fault: (fault.location.line or 0, fault.location.column or 0))
    return DocumentError(faults)


def read_document(file: str, problems: list[Problem] | None = None) -> Document:
    """Read a YAML or JSON file.

    Args:
        file: The file.
        problems: If given, what does not stop the reading (such as a repeated key) is added to
            these instead of raised, for a caller who goes on to find more.
    """
    return parse_document(read_text(file), file=file, problems=problems)


def read_text(file: str, most: int = MAX_BYTES) -> str:
    """Read a file of text that has so many bytes at most, by default those of a document."""
    try:
        with Path(file).open("rb") as stream:
            content = stream.read(most + 1)
    except (OSError, ValueError) as error:
        raise unreadable(file, error) from error
    if len(content) > most:
        raise _fault(file, f"is larger than {most} bytes", hint="move data to other files")
    return decoded(content, file)


def decoded(content: bytes, file: str, line: int = 1) -> str:
    """What stands in a file from a line on, as text."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = line + content.count(b"\n", 0, error.start), 1
        raise _fault(file, "is not UTF-8 text", place, hint="save it as UTF-8") from error


def unreadable(file: str, error: OSError | ValueError) -> DocumentError:
    """The error of a file that cannot be opened."""
    why = error.strerror if isinstance(error, OSError) else None
    return _fault(file, f"cannot be read: {why or error}")


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
    return DocumentError([DocumentFault(location=location, message=message, hint=hint)])


def _syntax_fault(file: str, error: yaml.YAMLError, text: str) -> DocumentError:
    mark = cast("yaml.Mark | None", getattr(error, "problem_mark", None))
    what = cast("str | None", getattr(error, "problem", None)) or "it cannot be parsed"
    if mark is not None:
        line = "".join(text.split("\n")[mark.line : mark.line + 1])
        hint = "a tab: YAML is indented with spaces" if line[mark.column :][:1] == "\t" else ""
        return _fault(file, f"not valid YAML: {what}", (mark.line + 1, mark.column + 1), hint=hint)
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
