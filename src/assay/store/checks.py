"""What may be stored: keys, texts, JSON and page sizes, refused where they enter."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import cast

from assay.errors import InputError, Location, StoreError
from assay.scoring.json_safe import Json

_KEY = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_MAX_LIMIT = 1_000
_MAX_DEPTH = 100
_LARGEST = 2**63 - 1


def as_mapping(value: object) -> dict[str, Json]:
    """For `json.dumps`: any mapping is written like a dictionary."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Json]", value))
    raise TypeError(f"a {type(value).__name__} is not JSON")


def plain(text: str) -> str:
    """The text with unpaired surrogates, which no database can hold, as question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


_COMPACT = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=as_mapping)
_UNICODE = json.JSONEncoder(
    separators=(",", ":"), allow_nan=False, default=as_mapping, ensure_ascii=False
)

encode_json = _COMPACT.encode
"""Write JSON in ASCII, so that any text comes back as it was; NaN and circles are refused."""


def valid_key(key: str, field: str = "key") -> str:
    """A key, as it is.

    Raises:
        InputError: Unless it is 1 to 64 lowercase letters, digits, ``.``, ``_`` and ``-``, the
            first a letter or a digit.
    """
    if not _KEY.fullmatch(key):
        raise InputError(
            f"{key!r:.80} cannot be a {field}",
            location=Location(field=field),
            hint="use 1 to 64 of a-z, 0-9, '.', '_' and '-'; the first a letter or a digit",
        )
    return key


def valid_text(text: str, field: str, *, most: int) -> str:
    """A text that a column can hold: unpaired surrogates become ``?``."""
    if len(text) > most:
        raise InputError(
            f"{field!r} has {len(text)} characters; the most is {most}",
            location=Location(field=field),
            hint="shorten it",
        )
    return plain(text)


def valid_limit(limit: int) -> int:
    """The size of a page, as it is.

    Raises:
        InputError: Unless it is from 1 to 1,000.
    """
    if isinstance(limit, bool) or not 1 <= limit <= _MAX_LIMIT:
        raise InputError(
            f"a page has 1 to {_MAX_LIMIT} entries, not {limit}", location=Location(field="limit")
        )
    return limit


def valid_number(number: int, field: str) -> int:
    """A number that a column can hold, as it is."""
    if isinstance(number, bool) or not 0 <= number <= _LARGEST:
        raise InputError(
            f"{field!r} cannot be {number!r:.40}", location=Location(field=field), hint="from 0 up"
        )
    return number


def json_text(value: Mapping[str, Json], what: str, *, most: int) -> str:
    """Write a mapping as JSON that any database holds and any later process can read.

    Unpaired surrogates come back as they were: a text that has one is written in ASCII.

    Raises:
        InputError: If it is not JSON (NaN and infinities are not), larger, or nested deeper than
            100 levels.
    """
    try:
        text = _UNICODE.encode(value)
        if plain(text) != text:
            text = encode_json(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{what} is not JSON: {error}") from error
    size = len(text) if text.isascii() else len(text.encode())
    if size > most:
        raise InputError(f"{what} has {size} bytes; the most is {most}", hint="make it smaller")
    if is_sprawling(text, value):
        raise InputError(f"{what} is nested deeper than {_MAX_DEPTH} levels")
    return text


def read_json(text: str) -> dict[str, Json]:
    """Read back what `json_text` wrote."""
    try:
        return cast("dict[str, Json]", json.loads(text))
    except ValueError as error:
        raise StoreError(f"the store is damaged: {text[:40]!r} is not JSON") from error


def is_sprawling(text: str, value: object) -> bool:
    """Whether a value is nested so deep that its readers could run out of stack."""
    if text.count("[") + text.count("{") <= _MAX_DEPTH:
        return False
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [inner for outer in level for inner in _inside(outer)]
    return bool(level)


def _inside(value: object) -> Iterator[object]:
    if isinstance(value, Mapping):
        yield from cast("Mapping[object, object]", value).values()
    elif isinstance(value, list | tuple):
        yield from cast("list[object]", value)
