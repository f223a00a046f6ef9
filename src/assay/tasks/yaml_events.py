"""Build plain JSON from the events of a YAML parser, and note where everything stands.

Events are taken one at a time and counted, and reading stops at the first that would pass a limit:
a deeply nested or self-multiplying document costs no more than a plain one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, cast

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


@dataclass(frozen=True, slots=True)
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
