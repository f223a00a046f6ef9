"""The tags of a Handlebars template: where they stand, and which are not allowed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NoReturn, TypeAlias

from assay.errors import InputError, Location

__all__ = ["BLOCKS", "MOST_NESTED", "Tag", "check_nesting", "place_of", "tags_of"]

BLOCKS = ("if", "unless", "each", "with")
"""Names of the blocks that there are."""

MOST_NESTED = 20
"""How deep blocks may be nested; an ``else`` is one deeper."""

_LONGEST_TAG = 500


def place_of(line: int) -> Location:
    """A line of a template, which has no file."""
    return Location(field=f"line {line}" if line else "")


_Kind: TypeAlias = Literal["comment", "open", "else", "else_if", "close", "put"]


@dataclass(frozen=True, slots=True)
class Tag:
    """One tag.

    Attributes:
        line: Line that it begins in, from 1.
        start: Where it begins.
        end: Where it ends.
        body: What stands between the braces, without ``~``.
        kind: What it does.
    """

    line: int
    start: int
    end: int
    body: str
    kind: _Kind

    @property
    def makes_node(self) -> bool:
        """Whether it stands for a node of its own."""
        return self.kind in ("open", "else_if", "put")

    def refuse(self, message: str, hint: str = "") -> NoReturn:
        """Say what is wrong with it.

        Raises:
            InputError: With its line.
        """
        raise InputError(message, location=place_of(self.line), hint=hint)


_OPEN, _CLOSE = re.compile(r"\{\{"), re.compile(r"\}\}")
_LONG_COMMENT = re.compile(r"\{\{~?!--")
_LONG_COMMENT_END = re.compile(r"--~?\}\}")
_TRIPLE = re.compile(r"\{\{(?:~\{|\{)")
_TRIPLE_END = re.compile(r"\}~?\}\}")


def tags_of(template: str) -> Iterator[Tag]:
    """The tags of a template, in order; those behind one backslash are text.

    Raises:
        InputError: For a tag that is not closed or not supported, with its line.
    """
    place, line, counted = 0, 1, 0
    while (start := template.find("{{", place)) >= 0:
        line += template.count("\n", counted, start)
        counted = start
        slashes = 0
        while start - slashes > place and template[start - slashes - 1] == "\\":
            slashes += 1
        if slashes == 1:
            place = start + 2  # \{{ is text
            continue
        tag = _tag(template, start, line)
        yield tag
        place = tag.end


def _tag(template: str, start: int, line: int) -> Tag:
    where = place_of(line)
    if template.startswith("{{{{", start):
        raise InputError("raw blocks are not supported", location=where, hint="write \\{{")
    if begun := _LONG_COMMENT.match(template, start):
        ended = _LONG_COMMENT_END.search(template, begun.end())
    elif begun := _TRIPLE.match(template, start):
        ended = _TRIPLE_END.search(template, begun.end())
    else:
        begun = _OPEN.match(template, start)
        ended = _CLOSE.search(template, start + 2)
    if begun is None or ended is None:
        raise InputError("a tag is not closed", location=where, hint="end it with }}")
    body = template[begun.end() : ended.start()].strip("~").strip()
    if template.startswith("!", begun.end()) or begun[0].endswith("!--") or body.startswith("!"):
        return Tag(line, start, ended.end(), body, "comment")
    if len(body) > _LONGEST_TAG:
        raise InputError(f"a tag of more than {_LONGEST_TAG} characters", location=where)
    return Tag(line, start, ended.end(), body, _kind(body, where))


def _kind(body: str, where: Location) -> _Kind:
    if not body:
        raise InputError("a tag is empty", location=where, hint="name a variable, or remove it")
    if body.startswith((">", "#>", "*", "#*")):
        raise InputError(
            f"{{{{{body[:40]}}}}}: partials, inline partials and decorators are not supported",
            location=where,
            hint="write the text here",
        )
    if body == "^" or body.startswith("^"):
        hint = "write {{else}}, or {{#unless NAME}}"
        raise InputError(f"{{{{{body[:40]}}}}} is not supported", location=where, hint=hint)
    if body.startswith("#"):
        name = body[1:].split(None, 1)[0] if body[1:].strip() else ""
        if body[1:2].isspace() or name not in BLOCKS:
            raise InputError(
                f"there is no block {name[:40]!r}",
                location=where,
                hint="there are #if, #unless, #each and #with",
            )
        return "open"
    if body.startswith("/"):
        return "close"
    if body == "else":
        return "else"
    if body.startswith("else "):
        if body.split()[1] not in ("if", "unless") or len(body.split()) < 3:
            raise InputError(f"{{{{{body[:40]}}}}} is not supported", location=where,
                             hint="write {{else if NAME}}, or {{else}}")  # fmt: skip
        return "else_if"
    return "put"


def check_nesting(found: Sequence[Tag]) -> None:
    """Refuse blocks that are not closed, close nothing, or are nested too deeply.

    Raises:
        InputError: With the line.
    """
    waiting: list[tuple[Tag, str]] = []
    ended: list[bool] = []
    depth: list[int] = []
    for tag in found:
        if tag.kind == "open":
            waiting.append((tag, tag.body[1:].split()[0]))
            ended.append(False)
            depth.append(1)
        elif tag.kind in ("else", "else_if"):
            if not waiting:
                tag.refuse(f"{{{{{tag.body[:40]}}}}} outside of a block")
            if ended[-1]:
                tag.refuse("a block has one {{else}}, and it is its last")
            ended[-1] = tag.kind == "else"
            depth[-1] += 1
        elif tag.kind == "close":
            name = tag.body[1:].strip()
            if not waiting or waiting[-1][1] != name:
                inside = f"; {{{{#{waiting[-1][1]}}}}} is open" if waiting else ""
                tag.refuse(f"{{{{/{name[:40]}}}}} closes nothing{inside}")
            waiting.pop()
            ended.pop()
            depth.pop()
        if sum(depth) > MOST_NESTED:
            tag.refuse(f"blocks are nested more than {MOST_NESTED} deep")
    if waiting:
        tag, name = waiting[-1]
        tag.refuse(f"{{{{#{name}}}}} is not closed", f"end it with {{{{/{name}}}}}")
