"""JSON that means one thing: no key twice, no NaN, no infinite number, no half of a character."""

from __future__ import annotations

import json
import math
import re
from typing import NoReturn, cast

from assay.scoring.json_safe import Json

__all__ = ["STRING", "NotJsonError", "parse", "parse_mended"]

_LONGEST_COMPLAINT = 300

STRING: str = r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
"""Pattern of a string; linear: what follows a quote is consumed to its end or the text's."""

_STRING_OR_LAST_COMMA = re.compile(STRING + r"|,(?=\s*+[}\]])", re.DOTALL)
_HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")


class NotJsonError(ValueError):
    """A text is not JSON, or JSON that means two things."""


def parse(text: str) -> Json:
    """Parse JSON.

    Raises:
        NotJsonError: It is none; says where.
    """
    try:
        data = cast("Json", _DECODER.decode(text))
        if not text.isascii() or _HALF_CHARACTER.search(text):
            # Half of a character cannot be stored, sent or compared: it is shown as such.
            whole = json.dumps(data, ensure_ascii=False).encode("utf-8", "replace")
            data = cast("Json", json.loads(whole))
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise NotJsonError(f"{error.msg} at {where}") from None
    except (ValueError, RecursionError) as error:
        raise NotJsonError(str(error)[:_LONGEST_COMPLAINT]) from None
    return data


def parse_mended(text: str) -> Json:
    """Parse JSON; a comma before a closing bracket is left out.

    Raises:
        NotJsonError: It is none.
    """
    try:
        return parse(text)
    except NotJsonError:
        mended = _STRING_OR_LAST_COMMA.sub(_without_comma, text)
        if len(mended) == len(text):
            raise
        return parse(mended)


def _without_comma(match: re.Match[str]) -> str:
    found = match.group()
    return "" if found == "," else found


def _once_each(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise NotJsonError("a key stands in it twice")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise NotJsonError("a number in it is too large")
    return number


def _no_number(name: str) -> NoReturn:
    raise NotJsonError(f"{name} is no number of JSON")


# A line break inside a string, which small models write, can mean one thing only: not strict.
_DECODER = json.JSONDecoder(
    object_pairs_hook=_once_each, parse_float=_finite, parse_constant=_no_number, strict=False
)
