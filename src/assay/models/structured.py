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
* An object that stands in what the model was shown is a quote; see `assay.models.quotes`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias, cast

from assay.errors import ModelError
from assay.models.checking import validator
from assay.models.quotes import stands_in
from assay.models.schema_dialect import in_words, strict_schema
from assay.models.strict_json import NotJsonError, parse, parse_mended
from assay.models.thoughts import Span, UnfinishedError, has_tag, objects, outside_thoughts
from assay.scoring.json_safe import Json

__all__ = ["in_words", "read_object", "strict_schema", "validator"]

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
