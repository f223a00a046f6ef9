"""Compare answers that are JSON: equal to a value, or valid by a schema."""

from __future__ import annotations

import functools
import importlib
import json
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol, cast

from assay.errors import InputError
from assay.text.extract import Pick, answer_text
from assay.text.json_text import ParsedJson, parse_json
from assay.text.numbers import check_finite
from assay.text.pattern import encodable

if TYPE_CHECKING:
    from assay.scoring.json_safe import Json

# --- Equal ---------------------------------------------------------------------------------------


def json_match(
    answer: object,
    expected: Json,
    *,
    strict: bool = False,
    tolerance: float = 0.0,
    partial: bool = False,
    pick: Pick | None = None,
    extract: str | None = None,
) -> float:
    """Compare the JSON in the answer with the expected value.

    Objects are equal whatever the order of their keys, lists in order; ``1`` equals ``1.0`` but
    not ``true``; strings are compared exactly.

    Args:
        answer: What the model said (see `parse_json` for where JSON is looked for).
        expected: The right value; a string is read as JSON text.
        strict: The whole answer (or extraction) must be JSON.
        tolerance: Greatest accepted difference between two numbers.
        partial: Score the share of the expected leaves that the answer has at the same place. A
            leaf is a string, number, bool, null or empty container; what the answer has beyond
            them counts as leaves that do not match.
        pick: Which value (fence, extraction) counts where there are several.
        extract: Where in the answer to look (see `extract_answer`).

    Returns:
        1.0 or 0.0, or a share where ``partial``; 0.0 where the answer holds no JSON.

    Raises:
        InputError: ``expected`` is not JSON, or an option is invalid.
    """
    wanted = expected_json(expected)
    slack = check_finite("tolerance", tolerance)
    parsed = json_of(answer, strict=strict, pick=pick, extract=extract)
    if not parsed.ok:
        return 0.0
    if not partial:
        return float(equal_json(parsed.value, wanted, slack))
    matching, leaves = _count(parsed.value, wanted, slack)
    return matching / leaves


def json_of(
    answer: object,
    *,
    strict: bool = False,
    pick: Pick | None = None,
    extract: str | None = None,
) -> ParsedJson:
    """The JSON of an answer that `json_match` and `json_schema` look at."""
    if extract is None:
        return parse_json(answer, strict=strict, pick=pick)
    text = answer_text(answer, extract, pick)
    if text is None:
        return ParsedJson(None, "nothing was extracted")
    return parse_json(text, strict=strict)


def expected_json(expected: object) -> Json:
    """What an author expects as plain JSON, no deeper than `parse_json` reads.

    Raises:
        InputError: If it is not JSON.
    """
    if isinstance(expected, str):
        parsed = parse_json(expected, strict=True)
        if not parsed.ok:
            raise InputError(
                f"expected is a text that is not JSON: {parsed.error}",
                hint="""write the value itself, or a JSON text such as '"Paris"'""",
            )
        return parsed.value
    try:
        text = json.dumps(expected, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"expected is not JSON: {error}") from None
    parsed = parse_json(text, strict=True)
    if not parsed.ok:
        raise InputError(f"expected is not JSON: {parsed.error}")
    return parsed.value


def equal_json(
    one: Json,
    other: Json,
    tolerance: float = 0.0,
    same_text: Callable[[str, str], bool] = operator.eq,
) -> bool:
    """Whether two values of JSON are equal; neither is read deeper than the other goes."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            equal_json(item, other[key], tolerance, same_text) for key, item in one.items()
        )
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(
            equal_json(*pair, tolerance, same_text) for pair in zip(one, other, strict=True)
        )
    if isinstance(one, str) and isinstance(other, str):
        return same_text(one, other)
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        # The difference of a large int and a float would be taken of floats.
        return one == other or (tolerance > 0 and _close(one, other, tolerance))
    return type(one) is type(other) and one == other


def _close(one: float, other: float, tolerance: float) -> bool:
    try:
        return abs(one - other) <= tolerance
    except OverflowError:  # an integer beyond the range of floats against a float
        return False


def differences(found: Json, expected: Json, tolerance: float = 0.0) -> Iterator[str]:
    """Where the JSON of an answer is not what `json_match` expects, a line for each place."""
    wanted = expected_json(expected)
    waiting: list[tuple[str, Json, Json]] = [("", found, wanted)]
    while waiting:
        place, one, other = waiting.pop()
        if isinstance(one, dict) and isinstance(other, dict):
            yield from (f"{place}.{key} is missing" for key in other if key not in one)
            yield from (f"{place}.{key} is not expected" for key in one if key not in other)
            both = [(f"{place}.{key}", one[key], other[key]) for key in other if key in one]
            waiting.extend(reversed(both))
        elif isinstance(one, list) and isinstance(other, list):
            if len(one) != len(other):
                yield f"{place or 'the list'} has {len(one)} items instead of {len(other)}"
            pairs = zip(one, other, strict=False)
            both = [(f"{place}[{n}]", mine, theirs) for n, (mine, theirs) in enumerate(pairs)]
            waiting.extend(reversed(both))
        elif not equal_json(one, other, tolerance):
            yield f"{place or 'the value'} is {json.dumps(one)} instead of {json.dumps(other)}"


def _count(one: Json, wanted: Json, tolerance: float) -> tuple[int, int]:
    """Return how many leaves match, and how many there are on either side."""
    if isinstance(wanted, dict) and wanted and isinstance(one, dict):
        pairs = [(one.get(key), wanted.get(key), key in one, key in wanted) for key in one | wanted]
    elif isinstance(wanted, list) and wanted and isinstance(one, list):
        longest = range(max(len(one), len(wanted)))
        pairs = [
            (_at(one, place), _at(wanted, place), place < len(one), place < len(wanted))
            for place in longest
        ]
    else:
        return int(equal_json(one, wanted, tolerance)), _leaves(wanted)
    matching = leaves = 0
    for mine, theirs, here, there in pairs:
        if here and there:
            matched, counted = _count(mine, theirs, tolerance)
            matching += matched
            leaves += counted
        else:
            leaves += _leaves(mine if here else theirs)
    return matching, leaves


def _at(items: list[Json], place: int) -> Json:
    return items[place] if place < len(items) else None


def _leaves(value: Json) -> int:
    if isinstance(value, dict):
        return sum(map(_leaves, value.values())) or 1
    if isinstance(value, list):
        return sum(map(_leaves, value)) or 1
    return 1


# --- Valid ---------------------------------------------------------------------------------------


_SECONDS = 5.0
_MOST_WORK = 10_000_000
_MOST_TOLD = 2_000_000
"""Less, since each alternative of a schema makes a fault of its own, and all are made at once."""
_PLAIN = frozenset(
    {"title", "description", "type", "const", "minimum", "maximum", "exclusiveMinimum"}
    | {"exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties"}
    | {"maxProperties", "required", "enum", "properties", "additionalProperties", "items"}
    | {"prefixItems", "allOf", "anyOf", "oneOf", "not"}
)
"""Keywords with which each part of a schema looks at each part of an answer once, at most."""


class _Fault(Protocol):
    message: str
    instance_path: list[str | int]


class _Validator(Protocol):
    def is_valid(self, instance: Json) -> bool: ...
    def iter_errors(self, instance: Json) -> Iterator[_Fault]: ...


class _JsonSchema(Protocol):
    def validator_for(self, schema: Json) -> _Validator: ...


def json_schema(
    answer: object,
    schema: Mapping[str, Json] | bool,  # noqa: FBT001 - a schema, not a switch
    *,
    strict: bool = False,
    pick: Pick | None = None,
    extract: str | None = None,
) -> float:
    """Whether the JSON in the answer is valid by a JSON Schema.

    Patterns run in linear time (so without look-around and back-references). Nothing is fetched:
    a ``$ref`` reaches this schema and the standard's own only. ``format`` is not checked unless
    the draft says so. Whatever may take long is left to a process that is killed after five seconds
    of computing; an answer that needs more is not valid.

    Args:
        answer: What the model said (see `parse_json` for where JSON is looked for).
        schema: The schema; ``$schema`` names its draft, 2020-12 by default.
        strict: The whole answer (or extraction) must be JSON.
        pick: Which value (fence, extraction) counts where there are several.
        extract: Where in the answer to look (see `extract_answer`).

    Returns:
        1.0 or 0.0; 0.0 where the answer holds no JSON.

    Raises:
        InputError: The schema is invalid or takes too long whatever the answer is, or an option is
            invalid.
        GraderError: The process could not be started.
    """
    if not isinstance(cast("object", schema), Mapping | bool):
        raise InputError(f"a schema is an object or a bool, not {schema!r}")
    try:
        text = json.dumps(schema if isinstance(schema, bool) else dict(schema), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"the schema is not JSON: {error}") from None
    parsed = json_of(answer, strict=strict, pick=pick, extract=extract)
    value = _written(parsed.value)
    if _is_quick(text, value):
        is_valid = _validator(text).is_valid(json.loads(value))
    else:
        from assay.text.killable import SCHEMAS

        is_valid = SCHEMAS.compare(text, value, _SECONDS)
    return float(parsed.ok and is_valid)


def schema_faults(found: Json, schema: Mapping[str, Json] | bool) -> Iterator[str]:  # noqa: FBT001 - a schema, not a switch
    """What keeps the JSON of an answer from being valid, a line for each fault."""
    text = json.dumps(schema if isinstance(schema, bool) else dict(schema))
    value = _written(found)
    if len(text) * len(value) > _MOST_TOLD or not _is_quick(text, value):
        yield "the value is not valid by the schema, in which it may take long to find out where"
        return
    for fault in _validator(text).iter_errors(json.loads(value)):
        place = "".join(f"[{k}]" if isinstance(k, int) else f".{k}" for k in fault.instance_path)
        yield f"{place or 'the value'}: {fault.message}"


def _written(value: Json) -> str:
    """A half character is one character to the validator, which speaks UTF-8."""
    return encodable(json.dumps(value, ensure_ascii=False))


def _is_quick(text: str, value: str) -> bool:
    """Whether validating a value cannot take long."""
    return len(text) * max(len(value), 1_000) <= _MOST_WORK and _is_plain(text)


@functools.lru_cache(maxsize=128)
def _is_plain(text: str) -> bool:
    """Whether the cost of a schema is no more than its length times the answer's."""

    def plain(schema: Json) -> bool:
        if not isinstance(schema, dict):
            return isinstance(schema, bool)
        return schema.keys() <= _PLAIN and all(
            all(map(plain, part.values() if isinstance(part, dict) else part))
            if name in ("properties", "allOf", "anyOf", "oneOf", "prefixItems")
            and isinstance(part, dict | list)
            else name not in ("items", "additionalProperties", "not") or plain(part)
            for name, part in schema.items()
        )

    return plain(json.loads(text))


@functools.lru_cache(maxsize=128)
def _validator(text: str) -> _Validator:
    library = cast("_JsonSchema", importlib.import_module("jsonschema_rs"))
    try:
        return library.validator_for(json.loads(text))
    except ValueError as error:
        raise InputError(f"schema is invalid: {str(error).partition(chr(10))[0]}") from None
