"""The reader of JSON of users and strangers: what could mean two things is refused.

A key that stands twice in one object means the first value to some readers and the last to others:
whoever writes it chooses what each of them sees. NaN and numbers that overflow are not JSON, and
nesting is what deep data attacks a reader with.
"""

from __future__ import annotations

import json
import math
import re
import sys
from decimal import Decimal
from typing import Final, Literal, NoReturn, cast

from assay.errors import InputError, Location
from assay.scoring.json_safe import Json

Kind = Literal["syntax", "encoding", "repeated key", "number", "digits", "depth", "values"]

_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


class NotJsonError(ValueError):
    """A text is not JSON, or JSON that readers take differently.

    ``path``: Where a value is that is not a number, such as ``rows[2].score``; or the key that
    stands twice.
    """

    def __init__(self, message: str, kind: Kind, *, offset: int = 0, path: str = "") -> None:
        super().__init__(message)
        self.kind: Final[Kind] = kind
        self.line = self.column = 0
        self.offset = offset
        self.path = path


def decode_json(
    text: str | bytes,
    *,
    nan: bool = False,
    max_depth: int | None = None,
    max_values: int | None = None,
    line_breaks: bool = False,
) -> Json:
    """Decode one JSON value.

    ``max_depth``: How many lists and objects may stand inside each other; by default as many as the
    interpreter bears.
    ``max_values``: How many values there may be in all; more are refused before they are read.
    """
    decoder = _WITH_NAN if nan else _WITH_LINE_BREAKS if line_breaks else _STRICT
    try:
        if isinstance(text, bytes):
            text = text.decode(json_encoding(text), "surrogatepass")
        if max_values is not None:
            _check_values(text, max_values)
        data = _whole(decoder, text)
    except NotJsonError as error:
        if error.kind == "number":
            error.path = _path_of_number(cast("str", text))
        raise
    except RecursionError:
        raise _too_deep(max_depth) from None
    except json.JSONDecodeError as error:
        wrong = NotJsonError(error.msg, "syntax", offset=error.pos)
        wrong.line, wrong.column = error.lineno, error.colno
        raise wrong from None
    except UnicodeDecodeError as error:
        raise NotJsonError(str(error), "encoding", offset=error.start) from None
    except ValueError:  # the interpreter's own words would tell a user to change its settings
        most = sys.get_int_max_str_digits()
        raise NotJsonError(f"a number has more than {most:,} digits", "digits") from None
    if (
        max_depth is not None
        and text.count("{") + text.count("[") > max_depth  # else it cannot be
        and _is_deeper(data, max_depth)
    ):
        raise _too_deep(max_depth)
    return data


def read_json(
    text: str | bytes, where: Location | None = None, *, wrong: str = "not JSON", nan: bool = False
) -> Json:
    """Read one JSON value of a user, as `decode_json` does."""
    try:
        return decode_json(text, nan=nan)
    except NotJsonError as error:
        if error.kind == "repeated key":
            raise InputError(str(error), location=where, hint="keep one of them") from None
        if error.kind == "digits":
            raise InputError(str(error), location=where, hint="write it as text") from None
        place = f": line {error.line} column {error.column}" if error.line else ""
        raise InputError(f"{wrong}: {error}{place}", location=where) from None


def json_encoding(text: bytes) -> str:
    """The encoding of a JSON text, of those that JSON knows."""
    if text[:1] == b"{" and text[1:2] not in (b"\0", b""):  # no other encoding begins like this
        return "utf-8"
    return json.detect_encoding(text)


def _whole(decoder: json.JSONDecoder, text: str) -> Json:
    """What `JSONDecoder.decode` gives, without its two searches where no space is around it."""
    if text[:1] in ("{", "["):
        data, end = cast("tuple[Json, int]", decoder.raw_decode(text))
        if end == len(text) or text[end:] == "\n":
            return data
    return cast("Json", decoder.decode(text))


def _unique_keys(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    whole = dict(pairs)
    if len(whole) != len(pairs):
        seen: set[str] = set()
        key = next(key for key, _ in pairs if key in seen or seen.add(key))
        message = f"the key {key!r:.100} stands twice in one object"
        raise NotJsonError(message, "repeated key", path=key)
    return whole


def _refuse_constant(name: str) -> NoReturn:
    raise NotJsonError(f"{name} is not a JSON number", "number")


_EXACT, _LONG = 2**53, 10**21
"""From the first on, a float cannot hold each whole number; those beyond the second are long."""


def _finite(digits: str) -> float:
    """A float, or a whole number that a float would round as the int that it is."""
    number = float(digits)
    if not math.isfinite(number):
        raise NotJsonError(f"{digits[:20]} is too large a number", "number")
    if _EXACT <= abs(number) < _LONG:
        plain, _, power = digits.lower().partition("e")
        # Before any power of ten but 0 stands a float as it is printed, which is rounded already.
        if not power.strip("+-0") and (exact := Decimal(plain)) == int(exact) != number:
            return int(exact)
    return number


# Made once: `json.loads` makes one for each call that asks for anything, which takes longer than
# to read a short row.
_STRICT = json.JSONDecoder(
    object_pairs_hook=_unique_keys, parse_float=_finite, parse_constant=_refuse_constant
)
_WITH_LINE_BREAKS = json.JSONDecoder(
    object_pairs_hook=_unique_keys,
    parse_float=_finite,
    parse_constant=_refuse_constant,
    strict=False,
)
_WITH_NAN = json.JSONDecoder(object_pairs_hook=_unique_keys)


def _too_deep(most: int | None) -> NotJsonError:
    how = "too deeply" if most is None else f"deeper than {most} levels"
    return NotJsonError(f"it is nested {how}", "depth")


def _is_deeper(data: Json, most: int) -> bool:
    """Walk level by level: recursion is what deep data attacks."""
    level = [data]
    for _ in range(most):
        below: list[Json] = []
        for value in level:
            if isinstance(value, dict):
                below.extend(v for v in value.values() if isinstance(v, dict | list))
            elif isinstance(value, list):
                below.extend(v for v in value if isinstance(v, dict | list))
        if not below:
            return False
        level = below
    return True


def _check_values(text: str, most: int) -> None:
    def separators(text: str) -> int:
        return text.count(",") + text.count("[") + text.count("{")

    if separators(text) >= most and separators(_STRING.sub("", text)) >= most:
        raise NotJsonError(f"it holds more than {most:,} values", "values")


class _NotANumber:
    """Stands where a value is that is not a number, to find out where that is."""


def _path_of_number(text: str) -> str:
    """Read again, with a mark where the number is, to say where that is."""
    mark = _NotANumber()
    try:
        data: object = json.loads(
            text,
            parse_constant=lambda _: mark,
            parse_float=lambda digits: mark if math.isinf(float(digits)) else 0.0,
        )
    except (ValueError, RecursionError):  # it is wrong in more than one place
        return ""
    queue: list[tuple[str, object]] = [("", data)]
    while queue:
        path, value = queue.pop()
        if value is mark:
            return path
        if isinstance(value, dict):
            entries = cast("dict[str, object]", value)
            queue.extend((f"{path}.{k}" if path else k, v) for k, v in entries.items())
        elif isinstance(value, list):
            queue.extend((f"{path}[{n}]", v) for n, v in enumerate(cast("list[object]", value)))
    return ""
