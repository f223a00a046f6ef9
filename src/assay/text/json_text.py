"""Read JSON that stands in an answer: bare, in a code fence, or amid prose."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.scoring.strict_json import NotJsonError, decode_json
from assay.text.extract import Pick, after_thought, check_pick, choose
from assay.text.normal_form import as_text

if TYPE_CHECKING:
    from assay.scoring.json_safe import Json

MAX_DEPTH = 200
"""Lists and objects inside each other; JSON nested deeper is refused."""

_TRIED_SPANS = 16
_FENCE = re.compile(r"^[ \t]{0,3}```[ \t]*([\w+-]{0,20})[ \t]*$", re.MULTILINE)
_BRACKET = re.compile(r"[\[\]{}]")
# A string that is never closed takes the rest: each retried from its own quote is quadratic.
_STRING = r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)'
_BRACKET_OUTSIDE_STRINGS = re.compile(rf"{_STRING}|([\[\]{{}}])", re.DOTALL)
_COMMENT = re.compile(rf"({_STRING})|(?://|#)[^\n]*|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)", re.DOTALL)
_LAST_COMMA = re.compile(rf"({_STRING})|,(?=\s*+[\]}}])", re.DOTALL)
_CLOSES = {"]": "[", "}": "{"}


@dataclass(frozen=True, slots=True)
class ParsedJson:
    """What became of a text read as JSON.

    Attributes:
        value: The JSON; None (also JSON's ``null``) where there is an error.
        error: Why the text is not JSON, or an empty string.
    """

    value: Json
    error: str = ""

    @property
    def ok(self) -> bool:
        """Whether the text was JSON."""
        return not self.error


def parse_json(text: object, *, strict: bool = False, pick: Pick | None = None) -> ParsedJson:
    """Read the JSON in a text; never raises because of what the text says.

    Looks at the whole text; if that is not JSON, at its code fences (those marked ``json``, else
    those without a mark); if there are none, at the object or list in its prose.

    Forgiven, unless ``strict``: commas before a closing bracket, comments, and line breaks in
    strings. Refused: duplicate keys, ``NaN`` and ``Infinity`` (also ``1e999``), integers of more
    digits than Python reads (4,300), and more than `MAX_DEPTH` levels.

    Args:
        text: What the model said.
        strict: The whole text must be JSON.
        pick: Which fence or object counts where there are several: the last by default; ``only``:
            none, unless all are equal.

    Raises:
        InputError: ``pick`` is invalid.
    """
    check_pick(pick)
    answer = as_text(text)
    whole = _read(answer) if strict else _mended(answer)
    if strict or whole.ok:
        return whole
    answer = after_thought(answer)
    fences = _fences(answer)
    if fences:
        read = [_mended(fence) for fence in (fences if pick else fences[-1:])]
        return choose(read, pick or "last", key=_canonical) or ParsedJson(
            None, "the answer holds several code fences that differ"
        )
    found = _in_prose(answer, pick or "last")
    return found or ParsedJson(None, whole.error)


def _canonical(parsed: ParsedJson) -> str:
    return parsed.error or json.dumps(parsed.value, sort_keys=True)


def _mended(text: str) -> ParsedJson:
    """What is read, or else what is without comments and commas that nothing follows."""
    read = _read(text)
    if read.ok or not text.lstrip().startswith(("{", "[")):
        return read
    bare = _COMMENT.sub(lambda part: part[1] or " ", text)
    mended = _read(_LAST_COMMA.sub(lambda part: part[1] or "", bare), line_breaks=True)
    return mended if mended.ok else read


def _read(text: str, *, line_breaks: bool = False) -> ParsedJson:
    text = text.strip().removeprefix("\ufeff")
    if not text:
        return ParsedJson(None, "the answer is empty")
    try:
        return ParsedJson(decode_json(text, max_depth=MAX_DEPTH, line_breaks=line_breaks))
    except NotJsonError as error:
        if error.kind == "syntax":
            where = f"line {error.line}, column {error.column}"
            return ParsedJson(None, f"not JSON: {error} at {where}")
        return ParsedJson(None, f"not JSON that can be read: {error}")


def _fences(text: str) -> list[str]:
    """Return the insides of code fences: of those marked json, or else of those not marked."""
    marked: list[str] = []
    unmarked: list[str] = []
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opened is None:
            opened = fence
        elif not fence[1]:
            inside = text[opened.end() : fence.start()]
            if opened[1].lower().startswith("json"):
                marked.append(inside)
            elif not opened[1]:
                unmarked.append(inside)
            opened = None
        else:
            opened = fence
    return marked or unmarked


def _in_prose(text: str, pick: Pick) -> ParsedJson | None:
    """Read an object or list that stands in prose.

    Brackets are matched twice, without and with regard to quotation marks: prose quotes loosely,
    and strings of JSON may hold brackets.
    """
    for brackets in (_BRACKET, _BRACKET_OUTSIDE_STRINGS):
        spans = list(_balanced(text, brackets))
        tried = spans[:_TRIED_SPANS] if pick == "first" else spans[-_TRIED_SPANS:]
        every = (_mended(span) for span in tried)
        read = [parsed for parsed in every if parsed.ok]
        if any(isinstance(parsed.value, dict) for parsed in read):
            read = [parsed for parsed in read if not _is_citation(parsed.value)]
        if read:
            return choose(read, pick, key=_canonical) or ParsedJson(
                None, "the answer holds several values that differ"
            )
    return None


def _is_citation(value: Json) -> bool:
    """Whether it may be the number of a source, as in *see [1]*."""
    return isinstance(value, list) and len(value) == 1 and type(value[0]) is int


def _balanced(text: str, brackets: re.Pattern[str]) -> Iterator[str]:
    """Yield the outermost pairs of brackets, in order; a pair that does not fit starts afresh."""
    stack: list[str] = []
    start = 0
    for match in brackets.finditer(text):
        bracket = match[match.lastindex or 0]
        if bracket in "[{":
            if not stack:
                start = match.start()
            stack.append(bracket)
        elif bracket in "]}" and stack:
            if stack.pop() != _CLOSES[bracket]:
                stack.clear()
            elif not stack:
                yield text[start : match.end()]
