"""Bodies of replies, parsed so that what decides cannot be said twice."""

from __future__ import annotations

import json
from typing import cast

from assay.scoring.json_safe import Json

__all__ = ["TWICE", "parsed"]

TWICE: str = "a key stands in it twice"
"""What is wrong with a reply in which one does."""

_DECISIVE = ("choices", "content")


class _TwiceError(ValueError):
    """A key stands twice in an object."""


class _Twice(dict[str, Json]):
    """An object in which a key stood twice."""


def parsed(body: bytes) -> tuple[Json, str]:
    """Parse a body.

    Readers take the one value or the other where a key is given twice, so what decides (the reply
    itself and all that stands in ``choices`` or ``content``) may not have any.

    Returns:
        The JSON, None if it is none; and what is wrong with what it says, or ``""``.
    """
    try:
        return cast("Json", _DECODER.decode(body.decode())), ""
    except (ValueError, RecursionError):
        pass  # it is none, has another encoding, or has a key twice
    try:
        data = cast("Json", json.loads(body, object_pairs_hook=_marked))
    except (ValueError, RecursionError):
        return None, ""
    return data, TWICE if _is_doubled(data) else ""


def _once_each(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _TwiceError
    return found


def _marked(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else _Twice(found)


def _is_doubled(data: Json) -> bool:
    left: list[Json] = []
    if isinstance(data, dict):
        if isinstance(data, _Twice):
            return True
        left = [data[key] for key in _DECISIVE if key in data]
    while left:
        value = left.pop()
        if isinstance(value, _Twice):
            return True
        if isinstance(value, dict):
            left += value.values()
        elif isinstance(value, list):
            left += value
    return False


_DECODER = json.JSONDecoder(object_pairs_hook=_once_each)
