"""Reads the JSON object a model was asked for out of its reply: strictly, and never by guessing.

A reply is data of a model that read hostile text, so a verdict is taken only from JSON that is
valid by its schema. Nothing is ever looked for in prose. What is put right is what can mean one
thing only: a byte order mark, a block of thought, a fence or prose around the object, a comma
before a closing bracket, and what `validator` puts right.

An object that is the whole reply, thoughts and a fence aside, is the reply. Where prose surrounds
objects, the last valid one counts, and prose behind it is not read. These rules keep an answer that
the model quotes, or a thought, from being taken for its verdict:

* An object inside another is never looked at. A model that quotes ``{"verdict": ...}`` in a string
  and forgets to escape it has written one broken object, not a verdict.
* An object in a thought counts for nothing, wherever the thought stands.
* A later object that cannot be read, is cut off, or has all the keys of the one found but is not
  valid was the model's last word. Then there is no verdict.
* An object that stands in what the model was shown is a quote. A model does not quote to the
  letter, so only letters, digits and braces are compared, and of those what they stand for.

A thought is what stands between ``<think>`` and ``</think>``, or the like of other models. Servers
cut off either: all before an end without a beginning is a thought, and all behind a beginning
without an end. So of text that a thought may reach into nothing is ever taken for the reply.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias, cast

from assay.errors import ModelError
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import NotJsonError, decode_json

_STRING: str = r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
"""Pattern of a string; linear: what follows a quote is consumed to its end or the text's."""

_LONGEST_REPLY = 1_000_000
_FENCED = re.compile(r"```[A-Za-z]*+\s([^`]*+(?:`{1,2}[^`]++)*+)```\Z")
_OBJECT_START = re.compile(r'\{\s*+"')
_SPACE = " \t\r\n\ufeff"

Validate: TypeAlias = Callable[[Json], str]


def read_object(text: str, validate: Callable[[Json], str], shown: Sequence[str] = ()) -> Json:
    """Read the JSON that a reply consists of, or that is the last in it.

    Args:
        text: The reply.
        validate: Says what is wrong with the JSON, or ``""``; see `validator`.
        shown: What the model was shown. An object among other words that stands there too is a
            quote, and no reply: an answer may hold a ready verdict.

    Returns:
        The JSON, with nothing in it that UTF-8 cannot write.

    Raises:
        ModelError: Of kind ``unreadable``; says what is wrong. Never anything else.
    """
    if len(text) > _LONGEST_REPLY:
        raise _unreadable(f"it is longer than {_LONGEST_REPLY:,} characters")
    try:
        # A reply in a schema mode is JSON and nothing else: one pass, in C.
        data = parse(text)
    except NotJsonError:
        return _read_around(_unfenced(text), validate, shown)
    return _checked(data, validate(data))


def _read_around(reply: str, validate: Validate, shown: Sequence[str]) -> Json:
    if not reply:
        raise _unreadable("it is empty")
    try:
        data = parse_mended(reply)
    except NotJsonError as error:
        why = str(error)
    else:
        return _checked(data, validate(data))
    if _OBJECT_START.match(reply):  # nothing was cut off before it
        return _not_quoted(_last(_around_tags(reply), validate, why), shown)
    try:
        return _behind_thoughts(reply, validate, shown, why)
    except ModelError:
        # A tag inside an object ends no thought: such an object counts, if nothing else does.
        if not has_tag(reply):
            raise
        try:
            word = _last(_around_tags(reply), validate, why)
        except ModelError:
            word = _Word("", None)
        if not has_tag(word.written):
            raise
    return _not_quoted(word, shown)


def _behind_thoughts(reply: str, validate: Validate, shown: Sequence[str], why: str) -> Json:
    parts, is_open = outside_thoughts(reply)
    texts = [text for begin, end in parts if (text := _unfenced(reply[begin:end]))]
    if not texts:
        raise _unreadable("it ends before its thinking does" if is_open else "it is empty")
    if len(texts) == 1 and texts[0] != reply:
        try:
            data = parse_mended(texts[0])
        except NotJsonError as error:
            why = str(error)
        else:
            return _checked(data, validate(data))
    found = [text[begin:end] for text in texts for begin, end in _objects(text)]
    if not found and is_open:
        if parts[0] == (0, 0):
            raise _unreadable("it ends before its thinking does")
        found = [reply[begin:end] for begin, end in _objects(reply)]  # it spoke of a tag
    return _not_quoted(_last(found, validate, why), shown)


def _around_tags(reply: str) -> list[str]:
    """The objects outside thoughts, where no tag in an object is one."""
    spans = _objects(reply)
    parts, _ = outside_thoughts(reply, spans, is_whole=bool(_OBJECT_START.match(reply)))
    return [
        reply[begin:end]
        for begin, end in spans
        if any(first <= begin and end <= last for first, last in parts)
    ]


class _Word(NamedTuple):
    """An object: as it was written, and what it says."""

    written: str
    data: Json


def _last(found: Sequence[str], validate: Validate, why: str) -> _Word:
    """The last valid object, if nothing behind it takes its word back."""
    if not found:
        raise _unreadable(f"there is no JSON object in it: {why}")
    word: _Word | None = None
    later: list[frozenset[str]] = []
    complaint = ""
    for written in reversed(found):
        try:
            data = parse_mended(written)
        except NotJsonError as error:
            raise _unreadable(
                complaint or f"its last JSON object cannot be read: {error}"
            ) from None
        wrong = validate(data)
        if wrong:
            complaint = complaint or wrong
            later.append(frozenset(cast("dict[str, Json]", data)))
        else:
            word = _Word(written, data)
            break
    if word is None or any(keys >= cast("dict[str, Json]", word.data).keys() for keys in later):
        raise _unreadable(complaint)
    return word


def _not_quoted(word: _Word, shown: Sequence[str]) -> Json:
    if stands_in(word.written, word.data, shown):
        raise _unreadable("its last JSON object only repeats what it was shown")
    return word.data


def _objects(text: str) -> list[Span]:
    try:
        return objects(text)
    except UnfinishedError as error:
        raise _unreadable(str(error)) from None


def _unfenced(text: str) -> str:
    bare = text.strip(_SPACE)
    fenced = _FENCED.match(bare)
    return fenced.group(1).strip(_SPACE) if fenced else bare


def _checked(data: Json, complaint: str) -> Json:
    if complaint:
        raise _unreadable(complaint)
    return data


def _unreadable(complaint: str) -> ModelError:
    return ModelError(f"the reply cannot be used: {complaint}", kind="unreadable")


Span: TypeAlias = tuple[int, int]
"""A part of a text: where it begins, and where it has ended."""

_MOST_OBJECTS = 1_000
_STEP = {"{": 1, "[": 1, "}": -1, "]": -1}
_STRING_OR_BRACKET = re.compile(_STRING + r"|[{}\[\]]", re.DOTALL)
_TAG = re.compile(
    r"(?:[<\u25c1]|\[(?=/?think]))(?P<ends>/?)(?:seed:)?"
    r"(?:th(?:ink(?:ing)?|oughts?)|reasoning|reflection|scratchpad|analysis)\s*+[]>\u25b7]"
    r"|<\|(?:begin_of_thought|channel\|>analysis<\|message|(?P<over>end(?:_of_thought)?))\|>",
    re.IGNORECASE,
)


class UnfinishedError(ValueError):
    """A text whose objects cannot be told: one does not end, or there are too many."""


def has_tag(text: str) -> bool:
    """Whether a thought begins or ends in a text."""
    return _TAG.search(text) is not None


def outside_thoughts(
    text: str, opaque: Sequence[Span] = (), *, is_whole: bool = False
) -> tuple[list[Span], bool]:
    """The parts of a text that lie outside its thoughts.

    Returns:
        The parts, and whether the last thought does not end.
    """
    parts: list[Span] = []
    begin, is_open, passed = 0, False, 0
    for tag in _TAG.finditer(text):
        while passed < len(opaque) and opaque[passed][1] <= tag.start():
            passed += 1
        if passed < len(opaque) and opaque[passed][0] < tag.start():
            continue
        if tag["ends"] or tag["over"]:
            if not is_open:
                if is_whole:
                    continue
                parts.clear()
            begin, is_open = tag.end(), False
        elif not is_open:
            parts.append((begin, tag.start()))
            is_open = True
    if not is_open:
        parts.append((begin, len(text)))
    return parts, is_open


def objects(text: str, begin: int = 0, end: int | None = None) -> list[Span]:
    """The outermost objects of a part of a text, by their brackets; strings are skipped whole.

    Raises:
        UnfinishedError: One does not end, or there are more than a thousand.
    """
    end = len(text) if end is None else end
    spans: list[Span] = []
    while start := _OBJECT_START.search(text, begin, end):
        depth = 0
        for token in _STRING_OR_BRACKET.finditer(text, start.start(), end):
            depth += _STEP.get(token.group(), 0)
            if depth == 0 and token.group() in _STEP:
                begin = token.end()
                break
        else:
            raise UnfinishedError("it ends before its JSON object does")
        spans.append((start.start(), begin))
        if len(spans) > _MOST_OBJECTS:
            raise UnfinishedError(f"there are more than {_MOST_OBJECTS} JSON objects in it")
    return spans


_BACKSLASHES = re.compile(r"\\{2,}")
_CHARACTER = re.compile(r"\\u(?:([0-9a-fA-F]{4})|\{0*+([0-9a-fA-F]{1,6})\})")
_ENTITY = re.compile(
    r"&(?:amp;)*+(?:#0*+(\d{1,7})|#[xX]0*+([0-9a-fA-F]{1,6})|lt|gt|quot|apos|nbsp);|&(?:amp;)++"
)
_CONTROL = re.compile(r"\\[nrtbf]")
# Two letters of Hangul that are blank; the others that render as nothing come down to them. Braces
# stay: they say where an object ends, and words alone are not JSON.
_LEFT_OUT = re.compile("(?:[^\\w{}]|[_\u115f\u1160])+")


def stands_in(written: str, data: Json, shown: Iterable[str]) -> bool:
    r"""Whether a JSON object stands in any of the texts."""
    said = _forms(written) | _forms(json.dumps(data, ensure_ascii=False))
    said.discard("")
    return any(one in form for text in shown for form in _forms(text) for one in said)


def _forms(text: str) -> set[str]:
    r"""The letters, digits and braces of a text.

    A ``\n`` may be a line break, or a backslash and a letter: both are tried.
    """
    if "\\" not in text and "&" not in text:
        return {_letters(text)}
    text = _CHARACTER.sub(_of_hex, _BACKSLASHES.sub(r"\\", text))
    text = _ENTITY.sub(_of_entity, text)
    return {_letters(text), _letters(_CONTROL.sub("", text))}


def _of_hex(found: re.Match[str]) -> str:
    return _chr(int(found[1] or found[2], 16))


def _of_entity(found: re.Match[str]) -> str:
    if found[1]:
        return _chr(int(found[1]))
    return _chr(int(found[2], 16)) if found[2] else " "


def _chr(number: int) -> str:
    return chr(number) if number < 0x110000 else " "


def _letters(text: str) -> str:
    if text.isascii():
        return _LEFT_OUT.sub("", text.lower())
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.translate({ord(each): _letter(each) for each in set(text)})


def _letter(character: str) -> str:
    """What a character stands for: accents aside, whatever its width, case and style."""
    return _LEFT_OUT.sub("", unicodedata.normalize("NFKD", character).casefold())


_STRING_OR_LAST_COMMA = re.compile(_STRING + r"|,(?=\s*+[}\]])", re.DOTALL)
_HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")


def parse(text: str) -> Json:
    """Parse JSON.

    Raises:
        NotJsonError: It is not JSON; says where.
    """
    try:
        # Small models write line breaks into strings, which can mean one thing only.
        data = decode_json(text, line_breaks=True)
    except NotJsonError as error:
        if error.line:
            where = f"line {error.line}, column {error.column}"
            raise NotJsonError(f"{error} at {where}", "syntax") from None
        raise
    if not text.isascii() or _HALF_CHARACTER.search(text):
        # Half of a character cannot be stored, sent or compared: it is shown as such.
        whole = json.dumps(data, ensure_ascii=False).encode("utf-8", "replace")
        try:
            data = cast("Json", json.loads(whole))
        except RecursionError:
            raise NotJsonError("it is nested too deeply", "depth") from None
    return data


def parse_mended(text: str) -> Json:
    """Parse JSON; a comma before a closing bracket is left out.

    Raises:
        NotJsonError: It is none.
    """
    try:
        return parse(text)
    except NotJsonError:
        repaired = _STRING_OR_LAST_COMMA.sub(_without_comma, text)
        if len(repaired) == len(text):
            raise
        return parse(repaired)


def _without_comma(match: re.Match[str]) -> str:
    found = match.group()
    return "" if found == "," else found
