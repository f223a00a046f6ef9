"""Reads the JSON object a model was asked for out of its reply: strictly, and never by guessing.

A reply is data of a model that read hostile text, so a verdict is taken only from JSON that is
valid by its schema. Nothing is ever looked for in prose. What is put right is what can mean one
thing only: a byte order mark, a block of thought before the reply, a fence or prose around it,
a comma before a closing bracket, the case of an enum's word and white space around it.

Where prose surrounds several objects, the last valid one counts: models that argue end with
their verdict. Two rules keep an answer that the model quotes from being taken for its verdict:

* An object inside another is never looked at. A model that quotes ``{"verdict": ...}`` in a string
  and forgets to escape it has written one broken object, not a verdict.
* A later object that cannot be read, is cut off, or has all the keys of the one found but is not
  valid was the model's last word. Then there is no verdict.
"""

from __future__ import annotations

import functools
import importlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NoReturn, Protocol, cast

from assay.errors import InputError, ModelError
from assay.models.schema_dialect import in_words, schema_text, strict_schema
from assay.scoring.json_safe import Json

__all__ = ["in_words", "read_object", "strict_schema", "validator"]

_LONGEST_COMPLAINT = 300
_LONGEST_REPLY = 1_000_000
_MOST_OBJECTS = 1_000
_STEP = {"{": 1, "[": 1, "}": -1, "]": -1}

# Each is linear on any text: what follows a quote is consumed to its end or to the text's.
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
_STRING_OR_BRACKET = re.compile(_STRING + r"|[{}\[\]]", re.DOTALL)
_STRING_OR_LAST_COMMA = re.compile(_STRING + r"|,(?=\s*+[}\]])", re.DOTALL)
_OBJECT_START = re.compile(r'\{\s*+"')
_THOUGHT_START = re.compile(r"\s*+<think(?:ing)?>")
_THOUGHT_END = re.compile(r"</think(?:ing)?>")
_FENCED = re.compile(r"```[A-Za-z]*+\s([^`]*+(?:`{1,2}[^`]++)*+)```\Z")
_STRANGE_KEYS = re.compile(
    r"Additional properties are not allowed.*|.*(?:unexpected|not allowed).*", re.DOTALL
)
_PLAIN_PATH = re.compile(r"(?:\.[A-Za-z_]{1,30}|\[\d{1,6}\])*+")
_HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")
_SPACE = " \t\r\n\ufeff"


# --- Reading -------------------------------------------------------------------------------------


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
        data = _parse(text)
    except _NotJsonError:
        return _read_around(text, validate, shown)
    return _checked(data, validate(data))


def _read_around(text: str, validate: Callable[[Json], str], shown: Sequence[str]) -> Json:
    reply = _after_thought(text.strip(_SPACE))
    fenced = _FENCED.match(reply)
    reply = fenced.group(1).strip(_SPACE) if fenced else reply
    if not reply:
        raise _unreadable("it is empty")
    try:
        data = _parse_mended(reply)
    except _NotJsonError as error:
        return _last_object(reply, validate, shown, why=str(error))
    return _checked(data, validate(data))


def _after_thought(text: str) -> str:
    """What follows the block of thought; some servers cut off the tag that opens it."""
    end = None if text.startswith("{") else _THOUGHT_END.search(text)
    if end is None:
        if _THOUGHT_START.match(text):
            raise _unreadable("it ends before its thinking does")
        return text
    return text[end.end() :].strip(_SPACE)


def _last_object(
    text: str, validate: Callable[[Json], str], shown: Sequence[str], *, why: str
) -> Json:
    later: list[frozenset[str]] = []
    complaint = ""
    spans = _objects(text)
    if not spans:
        raise _unreadable(f"there is no JSON object in it: {why}")
    for span in reversed(spans):
        try:
            data = _parse_mended(span)
        except _NotJsonError as error:
            raise _unreadable(
                complaint or f"its last JSON object cannot be read: {error}"
            ) from None
        keys = frozenset(cast("dict[str, Json]", data))
        wrong = validate(data)
        if not wrong:
            if any(keys <= rival for rival in later):
                raise _unreadable(complaint)
            if any("".join(span.split()) in "".join(said.split()) for said in shown):
                raise _unreadable("its last JSON object only repeats what it was shown")
            return data
        complaint = complaint or wrong
        later.append(keys)
    raise _unreadable(complaint)


def _objects(text: str) -> list[str]:
    """The outermost objects of a text, by their brackets; strings are skipped whole."""
    spans: list[str] = []
    position = 0
    while start := _OBJECT_START.search(text, position):
        depth = 0
        for token in _STRING_OR_BRACKET.finditer(text, start.start()):
            depth += _STEP.get(token.group(), 0)
            if depth == 0 and token.group() in _STEP:
                position = token.end()
                break
        else:
            raise _unreadable("it ends before its JSON object does")
        spans.append(text[start.start() : position])
        if len(spans) > _MOST_OBJECTS:
            raise _unreadable(f"there are more than {_MOST_OBJECTS} JSON objects in it")
    return spans


def _checked(data: Json, complaint: str) -> Json:
    if complaint:
        raise _unreadable(complaint)
    return data


def _unreadable(complaint: str) -> ModelError:
    return ModelError(f"the reply cannot be used: {complaint}", kind="unreadable")


# --- Parsing -------------------------------------------------------------------------------------


class _NotJsonError(ValueError):
    """A text is not JSON, or JSON that means two things."""


def _parse(text: str) -> Json:
    try:
        data = cast("Json", _DECODER.decode(text))
        if not text.isascii() or _HALF_CHARACTER.search(text):
            # Half of a character cannot be stored, sent or compared: it is shown as such.
            whole = json.dumps(data, ensure_ascii=False).encode("utf-8", "replace")
            data = cast("Json", json.loads(whole))
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise _NotJsonError(f"{error.msg} at {where}") from None
    except (ValueError, RecursionError) as error:
        raise _NotJsonError(str(error)[:_LONGEST_COMPLAINT]) from None
    return data


def _parse_mended(text: str) -> Json:
    try:
        return _parse(text)
    except _NotJsonError:
        mended = _STRING_OR_LAST_COMMA.sub(_without_comma, text)
        if len(mended) == len(text):
            raise
        return _parse(mended)


def _without_comma(match: re.Match[str]) -> str:
    found = match.group()
    return "" if found == "," else found


def _once_each(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _NotJsonError("a key stands in it twice")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _NotJsonError("a number in it is too large")
    return number


def _no_number(name: str) -> NoReturn:
    raise _NotJsonError(f"{name} is no number of JSON")


# A line break inside a string, which small models write, can mean one thing only: not strict.
_DECODER = json.JSONDecoder(
    object_pairs_hook=_once_each, parse_float=_finite, parse_constant=_no_number, strict=False
)


# --- Checking ------------------------------------------------------------------------------------


class _Fault(Protocol):
    message: str
    instance_path: list[str | int]


class _Compiled(Protocol):
    def is_valid(self, instance: Json) -> bool: ...

    def iter_errors(self, instance: Json) -> Iterable[_Fault]: ...


class _Library(Protocol):
    def RegexOptions(self) -> object: ...  # noqa: N802 - the library's own name

    def validator_for(
        self,
        schema: Json,
        *,
        pattern_options: object,
        retriever: Callable[[str], Json],
        mask: str,
    ) -> _Compiled: ...


def validator(schema: Mapping[str, Json]) -> Callable[[Json], str]:
    """Make the check of a schema; made once, however often it is asked for.

    The check takes JSON and returns ``""``, or one sentence: where, what is wrong, and what is
    allowed. Of the reply it repeats names of keys only, so that what a model wrote is not put
    before it again as our words. Words of an enum that differ from the schema's only in case or
    in white space around them are put right in place.

    Args:
        schema: A JSON Schema. Patterns run in linear time; nothing is fetched.

    Raises:
        InputError: It is no JSON Schema.
    """
    return _validator(schema_text(schema))


@functools.lru_cache(maxsize=256)
def _validator(text: str) -> Callable[[Json], str]:
    library = cast("_Library", importlib.import_module("jsonschema_rs"))
    schema = cast("Json", json.loads(text))
    try:
        compiled = library.validator_for(
            schema,
            pattern_options=library.RegexOptions(),
            retriever=_fetch_nothing,
            mask="this value",
        )
    except ValueError as error:
        first = (str(error).strip().splitlines() or ["unknown reason"])[0]
        raise InputError(
            f"the schema of a reply is no good: {first}",
            hint="patterns may not look around; $ref may not leave the schema",
        ) from None

    def check(data: Json) -> str:
        try:
            if compiled.is_valid(data):
                return ""
            if _put_words_right(data, schema) and compiled.is_valid(data):
                return ""
            return _complaint(compiled, data)
        except (ValueError, RecursionError):  # the library's own limit
            return "it is nested too deep"

    return check


def _fetch_nothing(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is outside the schema, and nothing is fetched")


def _complaint(compiled: _Compiled, data: Json) -> str:
    fault = next(iter(compiled.iter_errors(data)), None)
    if fault is None:
        return "it is nested too deep"
    path = "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" for step in fault.instance_path
    )
    # The complaint goes back to the judge outside of every fence, and a reply's keys may be words
    # of what it was shown.
    what = _STRANGE_KEYS.sub("There are keys that were not asked for", fault.message)
    where = path.lstrip(".") if _PLAIN_PATH.fullmatch(path) else ""
    return f"{where or 'the JSON'}: {what}"[:_LONGEST_COMPLAINT]


def _put_words_right(data: Json, schema: Json) -> bool:
    """Write the words of enums as the schema does; whether any was written differently."""
    if not isinstance(schema, dict):
        return False
    changed = False
    properties = schema.get("properties")
    if isinstance(data, dict) and isinstance(properties, dict):
        for key in data.keys() & properties.keys():
            changed |= _put_right(data, key, properties[key])
    elif isinstance(data, list) and "items" in schema:
        for index in range(len(data)):
            changed |= _put_right(data, index, schema["items"])
    return changed


def _put_right(parent: dict[str, Json] | list[Json], key: str | int, schema: Json) -> bool:
    slots = cast("dict[str | int, Json]", parent)
    value = slots[key]
    words = schema.get("enum") if isinstance(schema, dict) else None
    if not isinstance(value, str) or not isinstance(words, list):
        return _put_words_right(value, schema)
    meant = [
        word
        for word in words
        if isinstance(word, str) and word.casefold() == value.strip().casefold()
    ]
    if len(meant) != 1 or meant[0] == value:
        return False
    slots[key] = meant[0]
    return True
