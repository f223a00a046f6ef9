"""Read a Handlebars template into a tree: what it may say, and where it says what it may not.

The tags are found first, then the white space around them is settled, then blocks are nested, at
most twenty deep.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NoReturn, TypeAlias

from assay.errors import InputError, Location

MAX_TEMPLATE_BYTES = 65_536
"""Size of one template."""

_BLOCKS = ("if", "unless", "each", "with")
_MOST_NESTED = 20  # an `else` is one deeper than its block
_DEEPEST_CALL = 4
_LONGEST_TAG = 500


@dataclass(frozen=True, slots=True)
class Path:
    """``a.b``, ``../a``, ``@index``, ``this``."""

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
class BlockNode:
    """``#if``, ``#unless``, ``#each`` or ``#with``."""

    line: int
    name: str
    value: Expression
    names: tuple[str, ...]
    takes_zero: bool
    body: tuple[Node, ...]
    # What stands behind ``else``.
    otherwise: tuple[Node, ...]


Node: TypeAlias = "str | Put | BlockNode"


def place_of(line: int) -> Location:
    """A line of a template, which has no file."""
    return Location(field=f"line {line}" if line else "")


@lru_cache(maxsize=32)
def parse(template: str) -> tuple[Node, ...]:
    """Read a template."""
    size = len(template.encode("utf-8", "replace"))
    if size > MAX_TEMPLATE_BYTES:
        raise InputError(
            f"the template has {size:,} bytes; the limit is {MAX_TEMPLATE_BYTES:,}",
            hint="long material belongs in variables",
        )
    texts, tags = _split(template)
    _trim(texts, tags)
    pairs = zip([None, *tags], texts, strict=True)
    nodes, ending = _nodes((token for pair in pairs for token in pair if token), 0)
    if ending is not None:
        _refuse_end(ending)
    return nodes


# Tags


@dataclass(frozen=True, slots=True)
class _Tag:
    """One tag; ``body`` is what stands between the braces, without ``~``."""

    line: int
    end: int
    body: str
    kind: Literal["comment", "open", "else", "else_if", "close", "put"]
    strips_before: bool
    strips_after: bool

    @property
    def shown(self) -> str:
        return f"{{{{{self.body[:40]}}}}}"

    def refuse(self, message: str, hint: str = "") -> NoReturn:
        raise InputError(message, location=place_of(self.line), hint=hint)


def tags_in(text: str) -> Iterator[tuple[str, int, int]]:
    """Each ``{{...}}`` of a text without comments and escapes, in order."""
    place = 0
    while (start := text.find("{{", place)) >= 0:
        end = text.find("}}", start)
        if end < 0:
            raise InputError(f"'{{{{' at character {start + 1} is never closed by '}}}}'")
        place = end + 2
        yield text[start + 2 : end].strip(), start, place


def _split(template: str) -> tuple[list[str | None], list[_Tag]]:
    """The tags, and the text before each and behind the last; None where there is nothing.

    A backslash before a tag makes it text; of several, one is taken away and the tag stays a tag.
    """
    texts, tags = list[str | None](), list[_Tag]()
    place, line, counted, text = 0, 1, 0, ""
    while (start := template.find("{{", place)) >= 0:
        line += template.count("\n", counted, start)
        counted = start
        slashes = 0
        while start - slashes > place and template[start - slashes - 1] == "\\":
            slashes += 1
        text += template[place : start - 1] if slashes else template[place:start]
        if slashes == 1:
            text += "{{"
            place = start + 2
            continue
        tag = _read_tag(template, start, line)
        texts.append(text or None)
        tags.append(tag)
        place, text = tag.end, ""
    text += template[place:]
    return [*texts, text or None], tags


_OPEN, _CLOSE = re.compile(r"\{\{~?"), re.compile(r"~?\}\}")
_LONG_COMMENT = re.compile(r"\{\{~?!--")
_LONG_COMMENT_END = re.compile(r"--~?\}\}")
_TRIPLE = re.compile(r"\{\{~?\{")
_TRIPLE_END = re.compile(r"\}~?\}\}")


def _read_tag(template: str, start: int, line: int) -> _Tag:
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
    body = template[begun.end() : ended.start()].strip()
    strips = "~" in begun[0], "~" in ended[0]
    if begun[0].endswith("!--") or body.startswith("!"):
        return _Tag(line, ended.end(), body, "comment", *strips)
    if len(body) > _LONGEST_TAG:
        raise InputError(f"a tag of more than {_LONGEST_TAG} characters", location=where)
    tag = _Tag(line, ended.end(), body, _kind(body), *strips)
    _check_supported(tag)
    return tag


def _kind(body: str) -> Literal["open", "else", "else_if", "close", "put"]:
    if body.startswith("#"):
        return "open"
    if body.startswith("/"):
        return "close"
    if body.split(None, 1)[:1] == ["else"]:
        return "else" if body == "else" else "else_if"
    return "put"


def _check_supported(tag: _Tag) -> None:
    body = tag.body
    if not body:
        tag.refuse("a tag is empty", "name a variable, or remove it")
    if body.startswith((">", "#>", "*", "#*")):
        message = f"{tag.shown}: partials, inline partials and decorators are not supported"
        tag.refuse(message, "write the text here")
    if body.startswith("^"):
        tag.refuse(f"{tag.shown} is not supported", "write {{else}}, or {{#unless NAME}}")
    words = body.split()
    if tag.kind == "open" and words[0][1:] not in _BLOCKS:
        name = words[1] if words[0] == "#" and words[1:] else words[0][1:]
        tag.refuse(f"unknown block {name[:40]!r}", "there are #if, #unless, #each and #with")
    if tag.kind == "else_if" and (len(words) < 3 or words[1] not in ("if", "unless")):
        tag.refuse(f"{tag.shown} is not supported", "write {{else if NAME}}, or {{else}}")


# White space


def _trim(texts: list[str | None], tags: Sequence[_Tag]) -> None:
    """Take away white space that ``~`` asks for, and lines that hold nothing but one tag."""
    for place, tag in enumerate(tags):
        before, after = texts[place], texts[place + 1]
        if tag.strips_before and before is not None:
            texts[place] = before.rstrip()
        if tag.strips_after and after is not None:
            texts[place + 1] = after.lstrip()
    # Decided for all before any is trimmed: the end of one tag's line begins that of the next.
    alone = [(place, end) for place, tag in enumerate(tags)
             if tag.kind != "put" and (end := _rest_of_line(texts, place)) is not None]  # fmt: skip
    for place, end in alone:
        before, after = texts[place] or "", texts[place + 1]
        texts[place] = before[: before.rfind("\n") + 1]
        texts[place + 1] = None if after is None else after[end:]


_LINE_END = re.compile(r"[ \t]*(?:\r?\n|\Z)")


def _rest_of_line(texts: Sequence[str | None], place: int) -> int | None:
    """Characters from a tag to the end of its line, if it stands on that line alone."""
    before, after = texts[place] or "", texts[place + 1]
    newline = before.rfind("\n")
    if before[newline + 1 :].strip(" \t") or (newline < 0 and place > 0):
        return None
    if after is None:
        return 0 if place + 2 == len(texts) else None
    found = _LINE_END.match(after)
    return None if found is None else found.end()


# The tree


def _nodes(tokens: Iterator[str | _Tag], depth: int) -> tuple[tuple[Node, ...], _Tag | None]:
    """What stands up to a tag that ends it: an ``else``, or the end of a block."""
    found: list[Node] = []
    for token in tokens:
        if isinstance(token, str):
            found.append(token)
        elif token.kind == "put":
            found.append(Put(token.line, _put(token)))
        elif token.kind == "open":
            block, ending = _block(token, token.body[1:], tokens, depth + 1)
            if ending is None:
                token.refuse(
                    f"{{{{#{block.name}}}}} is not closed", f"end it with {{{{/{block.name}}}}}"
                )
            if _closed(ending) != block.name:
                _refuse_end(ending, f"; {{{{#{block.name}}}}} is open")
            found.append(block)
        elif token.kind != "comment":
            return tuple(found), token
    return tuple(found), None


def _block(
    tag: _Tag, text: str, tokens: Iterator[str | _Tag], depth: int
) -> tuple[BlockNode, _Tag | None]:
    """A block that a tag opens, and the tag that ends it, which also ends its ``else if``."""
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
    _check_depth(tag, depth)
    body, ending = _nodes(tokens, depth)
    otherwise: tuple[Node, ...] = ()
    if ending is not None and ending.kind == "else":
        _check_depth(ending, depth + 1)
        otherwise, ending = _nodes(tokens, depth + 1)
        if ending is not None and ending.kind != "close":
            ending.refuse("a block has one {{else}}, and it is its last")
    elif ending is not None and ending.kind == "else_if":
        chained, ending = _block(ending, ending.body.removeprefix("else"), tokens, depth + 1)
        otherwise = (chained,)
    return BlockNode(tag.line, name, value, names, takes_zero, body, otherwise), ending


def _check_depth(tag: _Tag, depth: int) -> None:
    if depth > _MOST_NESTED:
        tag.refuse(f"blocks are nested more than {_MOST_NESTED} deep")


def _closed(tag: _Tag) -> str:
    return tag.body[1:].strip()


def _refuse_end(tag: _Tag, inside: str = "") -> NoReturn:
    """Refuse a tag that ends nothing."""
    if tag.kind != "close":
        tag.refuse(f"{tag.shown} outside of a block")
    tag.refuse(f"{{{{/{_closed(tag)[:40]}}}}} closes nothing{inside}")


def _put(tag: _Tag) -> Expression:
    words, options, names = _words(tag.body.removeprefix("&").strip(), tag)
    if options or names:
        tag.refuse(f"{tag.shown} takes no options")
    return _expression(words[0], tag, 0) if len(words) == 1 else _call(words, tag, 0)


_NAMES = re.compile(r"\sas\s*\|([^|]*)\|\s*$")
_OPTION = re.compile(r"([A-Za-z]\w*)=(.*)", re.DOTALL)


def _words(text: str, tag: _Tag) -> tuple[list[str], dict[str, str], tuple[str, ...]]:
    """The words of a tag, its options, and the names that it gives."""
    names: tuple[str, ...] = ()
    if given := _NAMES.search(text):
        text, names = text[: given.start()], tuple(given[1].split())
    words, options = list[str](), dict[str, str]()
    for word in _split_words(text, tag):
        if option := _OPTION.fullmatch(word):
            options[option[1]] = option[2]
        else:
            words.append(word)
    if not words or len(names) > 2:
        tag.refuse(f"{tag.shown} cannot be read")
    return words, options, names


_PIECE = re.compile(r"\s+|\"[^\"]*\"|'[^']*'|\[[^\]]*\]|[()]|[^\s\"'()\[\]]+")


def _split_words(text: str, tag: _Tag) -> list[str]:
    """Words at white space, but not within quotes, brackets and parentheses."""
    words, current, depth, place = list[str](), "", 0, 0
    while place < len(text):
        piece = _PIECE.match(text, place)
        if piece is None:
            tag.refuse(f"{tag.shown}: a quote or a bracket is not closed")
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
        tag.refuse(f"{tag.shown}: parentheses do not match")
    return [*words, current] if current else words


_NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,15})?", re.ASCII)
_CONSTANTS = {"true": True, "false": False, "null": None, "undefined": None}


def _expression(word: str, tag: _Tag, depth: int) -> Expression:
    if word[0] == "(" and word[-1] == ")":
        if depth >= _DEEPEST_CALL:
            tag.refuse(f"calls are nested more than {_DEEPEST_CALL} deep")
        return _call(_split_words(word[1:-1], tag), tag, depth + 1)
    if len(word) >= 2 and word[0] == word[-1] and word[0] in "\"'":
        return Literally(word[1:-1])
    if word in _CONSTANTS:
        return Literally(_CONSTANTS[word])
    if _NUMBER.fullmatch(word):
        return Literally(float(word) if "." in word else int(word))
    return _path(word, tag)


def _call(words: Sequence[str], tag: _Tag, depth: int) -> Expression:
    if not words or words[0] != "lookup":
        name = words[0] if words else ""
        tag.refuse(f"unknown helper {name[:40]!r}", "the one helper is: lookup LIST KEY")
    if len(words) != 3:
        tag.refuse("lookup takes a list or a mapping, and a key")
    return Lookup(_expression(words[1], tag, depth), _expression(words[2], tag, depth))


_SEGMENT = re.compile(r"\[([^\]]*)\]|([^\s!\"#%&'()*+,./;<=>@\[\\\]^`{|}~]+)")
_SEGMENTS = re.compile(rf"(?:{_SEGMENT.pattern})(?:[./](?:{_SEGMENT.pattern}))*")
_UP = re.compile(r"\.\.(?:/|$)")
_NUMBERED = re.compile(r"@|@?\d+(?:[./].*)?")


def _path(word: str, tag: _Tag) -> Path:
    if _NUMBERED.fullmatch(word):
        tag.refuse(f"{word[:60]!r} is not the name of a variable")
    rest, up = word, 0
    is_data = rest.startswith("@")
    rest = rest.removeprefix("@")
    while begun := _UP.match(rest):
        rest, up = rest[begun.end() :], up + 1
    for own in ("./", "this.", "this/"):
        rest = rest.removeprefix(own)
    if rest in ("", ".", "this"):
        return Path(up, (), is_data, word)
    if not _SEGMENTS.fullmatch(rest):
        tag.refuse(f"{word[:60]!r} is not the name of a variable")
    # `a.this.b` is `a.b`; in brackets it is a key like any other.
    found = (one for one in _SEGMENT.finditer(rest) if one[2] != "this")
    steps = tuple(one[1] if one[2] is None else one[2] for one in found)
    return Path(up, steps, is_data, word)
