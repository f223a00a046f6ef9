"""Bodies as JSON that means the same to everybody: no NaN, no endless nesting, no huge numbers."""

from __future__ import annotations

import json
import math
from typing import cast

from assay.scoring.json_safe import Json
from assay.server.problems import Fault, ProblemError

__all__ = ["parse", "parse_line"]


class _NotJson:
    """Stands where a number was that is none, to find out where that is."""


class _NotANumberError(ValueError):
    """What was read holds a number that is none."""


class _TwiceError(ValueError):
    """A key stands twice in one object; holds the key."""


def parse(body: bytes, *, max_depth: int) -> Json:
    """Read a body.

    Raises:
        ProblemError: 400, with the place and the mend.
    """
    return _parse(body, max_depth, "")


def parse_line(line: bytes, number: int, *, max_depth: int) -> dict[str, Json]:
    """Read a line of a dataset, which must be an object.

    Raises:
        ProblemError: 400, with the number of the line.
    """
    where = f"line {number}"
    data = _parse(line, max_depth, where)
    if isinstance(data, dict):
        return data
    raise _refusal(where, "a row must be a JSON object", 'such as {"answer": "4"}')


def _parse(body: bytes, max_depth: int, where: str) -> Json:
    deep = f"nested deeper than {max_depth} levels"
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _refusal(where, f"not JSON: byte {error.start} is not UTF-8", "send UTF-8") from None
    try:
        data = cast(
            "Json",
            json.loads(
                text, parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_unique
            ),
        )
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        message = f"not JSON: {error.msg}, character {error.pos}"
        raise _refusal(where, message, "" if where else place) from None
    except RecursionError:
        raise _refusal(where, deep) from None
    except _TwiceError as error:
        message = f"the key {str(error)!r:.100} stands twice in one object"
        raise _refusal(where, message, "readers would differ on which one counts") from None
    except _NotANumberError:
        field = _place_of_no_number(text)
        place = ": ".join(part for part in (where, field) if part)
        message = "NaN and infinities are not JSON"
        raise _refusal(place, message, "send null, or a finite number") from None
    except ValueError:
        raise _refusal(where, "a number has too many digits", "send it as text") from None
    if _is_deeper(data, max_depth):
        raise _refusal(where, deep)
    return data


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    whole = dict(pairs)
    if len(whole) != len(pairs):
        seen: set[str] = set()
        raise _TwiceError(next(key for key, _ in pairs if key in seen or seen.add(key)))
    return whole


def _refuse(name: str) -> Json:
    raise _NotANumberError(name)


def _finite(text: str) -> float:
    number = float(text)
    if math.isfinite(number):
        return number
    raise _NotANumberError(text)


def _is_deeper(data: Json, most: int) -> bool:
    """Walk level by level: recursion is what deep data attacks."""
    level = [data]
    for _ in range(most + 1):
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


def _refusal(place: str, message: str, hint: str = "") -> ProblemError:
    detail = f"{place or 'the body'}: {message}" + (f" ({hint})" if hint else "")
    return ProblemError(400, detail, faults=[Fault(place, message, hint)])


def _place_of_no_number(text: str) -> str:
    """Read again, with a mark where the number is, to say where that is."""
    return _find(
        json.loads(
            text,
            parse_constant=lambda _: _NotJson(),
            parse_float=lambda text: float(text) if math.isfinite(float(text)) else _NotJson(),
        )
    )


def _find(data: object) -> str:
    queue: list[tuple[str, object]] = [("", data)]
    while queue:
        place, value = queue.pop()
        if isinstance(value, _NotJson):
            return place
        if isinstance(value, dict):
            entries = cast("dict[str, object]", value)
            queue.extend((f"{place}.{k}" if place else k, v) for k, v in entries.items())
        elif isinstance(value, list):
            queue.extend((f"{place}[{n}]", v) for n, v in enumerate(cast("list[object]", value)))
    return ""
