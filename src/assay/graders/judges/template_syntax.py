"""Read a Handlebars template into nodes: what it may say, and where it says what it may not.

The tags are looked over first, so that every complaint has its line; `dotpromptz_handlebars` then
settles white space, comments and nesting. What it does with values is not used: see `template`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias, cast

from assay.errors import InputError
from assay.graders.judges.template_tags import (
    MOST_NESTED,
    Tag,
    check_nesting,
    place_of,
    tags_of,
)

__all__ = ["MAX_TEMPLATE_BYTES", "Each", "Expression", "If", "Literally", "Lookup", "Node", "Path",
           "Put", "With", "parsed"]  # fmt: skip

MAX_TEMPLATE_BYTES = 65_536
"""Size of one template."""

_DEEPEST_CALL = 4


@dataclass(frozen=True, slots=True)
class Path:
    """``a.b``, ``../a``, ``@index``, ``this``.

    Attributes:
        up: How many scopes to go up.
        steps: Names from there; none for the scope itself.
        is_data: Whether it began with ``@``.
        text: As it was written.
    """

    up: int
    steps: tuple[str, ...]
    is_data: bool
    text: str


@dataclass(frozen=True, slots=True)
class Literally:
    """A text, a number or a truth value."""

    value: str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Lookup:
    """``lookup`` of a key in a list or a mapping."""

    of: Expression
    key: Expression


Expression: TypeAlias = "Path | Literally | Lookup"


@dataclass(frozen=True, slots=True)
class Put:
    """A value that is written."""

    line: int
    value: Expression


@dataclass(frozen=True, slots=True)
class If:
    """``#if`` and ``#unless``."""

    line: int
    value: Expression
    is_negated: bool
    takes_zero: bool
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Each:
    """``#each``; ``names`` are those of ``as |item key|``."""

    line: int
    value: Expression
    names: tuple[str, ...]
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class With:
    """``#with``."""

    line: int
    value: Expression
    names: tuple[str, ...]
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...]


Node: TypeAlias = "str | Put | If | Each | With"


@lru_cache(maxsize=32)
def parsed(template: str) -> tuple[Node, ...]:
    """The nodes of a template.

    Raises:
        InputError: For what is no template, or says what is not allowed; names the line.
    """
    size = len(template.encode("utf-8", "replace"))
    if size > MAX_TEMPLATE_BYTES:
        raise InputError(
            f"the template has {size:,} bytes; the limit is {MAX_TEMPLATE_BYTES:,}",
            hint="long material belongs into variables",
        )
    found = list(tags_of(template))
    check_nesting(found)
    written = _with_indices(template, found)
    # Of the package's parts this one alone is used, and it has no public name.
    from dotpromptz_handlebars._render import compile_template

    try:
        program = compile_template(written, max_depth=2 * MOST_NESTED + 2)
    except (ValueError, IndexError, RecursionError) as error:
        raise InputError(
            f"the template cannot be read: {error}", location=place_of(_last_line(found))
        ) from error
    lines = iter([tag for tag in found if tag.makes_node])
    return _nodes(cast("Sequence[object]", program), lines)


def _last_line(found: Sequence[Tag]) -> int:
    return found[-1].line if found else 1


_INDEX = re.compile(r"(?<=[\w\]])\.(\d+)(?=[.\s)~}/]|$)")
_QUOTED = re.compile(r"(\"[^\"]*\"|'[^']*')")


def _with_indices(template: str, found: Sequence[Tag]) -> str:
    """``list.0`` as ``list.[0]``, which is how the package wants it."""
    parts: list[str] = []
    place = 0
    for tag in found:
        if tag.kind == "comment":
            continue
        pieces = _QUOTED.split(template[tag.start : tag.end])
        pieces[::2] = [_INDEX.sub(r".[\1]", piece) for piece in pieces[::2]]
        parts += [template[place : tag.start], *pieces]
        place = tag.end
    return "".join([*parts, template[place:]])


def _nodes(program: Sequence[object], tags: Iterator[Tag]) -> tuple[Node, ...]:
    from dotpromptz_handlebars import Block, Mustache, Text

    nodes: list[Node] = []
    for node in program:
        if isinstance(node, Text):
            nodes.append(node.value)
        elif isinstance(node, Mustache):
            tag = _next(tags)
            nodes.append(Put(tag.line, _put(tag)))
        elif isinstance(node, Block):
            nodes.append(_block(node.body, node.inverse, _next(tags), tags))
        else:  # what was looked over makes no other
            raise InputError(f"the template has a {type(node).__name__}, which is not supported")
    return tuple(nodes)


def _next(tags: Iterator[Tag]) -> Tag:
    tag = next(tags, None)
    if tag is None:  # the two readings of the template do not agree
        raise InputError("the template cannot be read", hint="write it in a simpler way")
    return tag


def _block(
    body: Sequence[object], inverse: Sequence[object], tag: Tag, tags: Iterator[Tag]
) -> Node:
    text = tag.body[1:] if tag.kind == "open" else tag.body.removeprefix("else ").strip()
    words, options, names = _words(text, tag)
    name = words[0]
    if len(words) != 2:
        tag.refuse(f"#{name} takes one value", f"such as {{{{#{name} turns}}}}")
    value = _expression(words[1], tag, 0)
    takes_zero = options.pop("includeZero", "false") == "true" and name in ("if", "unless")
    if options:
        tag.refuse(f"#{name} takes no option {next(iter(options))!r:.40}")
    if names and name not in ("each", "with"):
        tag.refuse(f"#{name} names nothing: remove 'as |...|'")
    inside, otherwise = _nodes(body, tags), _nodes(inverse, tags)
    if name == "each":
        return Each(tag.line, value, names, inside, otherwise)
    if name == "with":
        return With(tag.line, value, names, inside, otherwise)
    return If(tag.line, value, name == "unless", takes_zero, inside, otherwise)


def _put(tag: Tag) -> Expression:
    words, options, names = _words(tag.body.removeprefix("&").strip(), tag)
    if options or names:
        tag.refuse(f"{{{{{tag.body[:40]}}}}} takes no options")
    if len(words) == 1:
        return _expression(words[0], tag, 0)
    return _call(words, tag, 0)


_NAMES = re.compile(r"\sas\s*\|([^|]*)\|\s*$")
_WORD = re.compile(r"\s*((?:\"[^\"]*\"|'[^']*'|\[[^\]]*\]|[^\s\"'()\[\]]|\()+)")
_OPTION = re.compile(r"([A-Za-z]\w*)=(.*)", re.DOTALL)


def _words(text: str, tag: Tag) -> tuple[list[str], dict[str, str], tuple[str, ...]]:
    """The words of a tag, its options, and the names that it gives."""
    names: tuple[str, ...] = ()
    if given := _NAMES.search(text):
        text, names = text[: given.start()], tuple(given[1].split())
    words, options = list[str](), dict[str, str]()
    for word in _split(text, tag):
        if option := _OPTION.fullmatch(word):
            options[option[1]] = option[2]
        else:
            words.append(word)
    if not words or len(names) > 2:
        tag.refuse(f"{{{{{tag.body[:40]}}}}} cannot be read")
    return words, options, names


_PIECE = re.compile(r"\s+|\"[^\"]*\"|'[^']*'|\[[^\]]*\]|[()]|[^\s\"'()\[\]]+")


def _split(text: str, tag: Tag) -> list[str]:
    """Words at white space, but not within quotes, brackets and parentheses."""
    words, current, depth, place = list[str](), "", 0, 0
    while place < len(text):
        piece = _PIECE.match(text, place)
        if piece is None:
            tag.refuse(f"{{{{{tag.body[:40]}}}}}: a quote or a bracket is not closed")
        place, said = piece.end(), piece[0]
        depth += (said == "(") - (said == ")")
        if depth < 0:
            break
        if said.isspace() and depth == 0:
            if current:
                words.append(current)
            current = ""
        else:
            current += said
    if depth != 0:
        tag.refuse(f"{{{{{tag.body[:40]}}}}}: parentheses do not match")
    return [*words, current] if current else words


_NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,15})?", re.ASCII)
_CONSTANTS = {"true": True, "false": False, "null": None, "undefined": None}


def _expression(word: str, tag: Tag, depth: int) -> Expression:
    if word[0] == "(" and word[-1] == ")":
        if depth >= _DEEPEST_CALL:
            tag.refuse(f"calls are nested more than {_DEEPEST_CALL} deep")
        return _call(_split(word[1:-1], tag), tag, depth + 1)
    if len(word) >= 2 and word[0] == word[-1] and word[0] in "\"'":
        return Literally(word[1:-1])
    if word in _CONSTANTS:
        return Literally(_CONSTANTS[word])
    if _NUMBER.fullmatch(word):
        return Literally(float(word) if "." in word else int(word))
    return _path(word, tag)


def _call(words: Sequence[str], tag: Tag, depth: int) -> Expression:
    if not words or words[0] != "lookup":
        name = words[0] if words else ""
        tag.refuse(f"there is no helper {name[:40]!r}", "the one helper is: lookup LIST KEY")
    if len(words) != 3:
        tag.refuse("lookup takes a list or a mapping, and a key")
    return Lookup(_expression(words[1], tag, depth), _expression(words[2], tag, depth))


_SEGMENT = re.compile(r"\[([^\]]*)\]|([^\s!\"#%&'()*+,./;<=>@\[\\\]^`{|}~]+)")
_UP = re.compile(r"\.\.(?:/|$)")


def _path(word: str, tag: Tag) -> Path:
    rest, up = word, 0
    is_data = rest.startswith("@")
    rest = rest.removeprefix("@")
    while begun := _UP.match(rest):
        rest, up = rest[begun.end() :], up + 1
    for own in ("./", "this.", "this/"):
        rest = rest.removeprefix(own)
    if rest in ("", ".", "this"):
        return Path(up, (), is_data, word)
    steps: list[str] = []
    place = 0
    while place < len(rest):
        found = _SEGMENT.match(rest, place)
        if found is None:
            tag.refuse(f"{word[:60]!r} is no name of a variable")
        if found[2] != "this":  # `a.this.b` is `a.b`; in brackets it is a key like any other
            steps.append(found[1] if found[2] is None else found[2])
        place = found.end()
        if place < len(rest):
            if rest[place] not in "./" or place + 1 == len(rest):
                tag.refuse(f"{word[:60]!r} is no name of a variable")
            place += 1
    return Path(up, tuple(steps), is_data, word)
