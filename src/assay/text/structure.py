"""Compare answers that are JSON: equal to a value, or valid by a schema."""

from __future__ import annotations

import functools
import importlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NoReturn, Protocol, cast

from assay.errors import InputError
from assay.text.extract import Pick, answer_text
from assay.text.json_text import ParsedJson, parse_json
from assay.text.numbers import check_finite
from assay.text.pattern import encodable

if TYPE_CHECKING:
    from assay.scoring.json_safe import Json

__all__ = ["differences", "json_match", "json_of", "json_schema", "schema_faults"]


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
    wanted = _expected(expected)
    slack = check_finite("tolerance", tolerance)
    parsed = json_of(answer, strict=strict, pick=pick, extract=extract)
    if not parsed.ok:
        return 0.0
    if not partial:
        return float(_equal(parsed.value, wanted, slack))
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


def _expected(expected: object) -> Json:
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


def _equal(one: Json, other: Json, tolerance: float) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            _equal(item, other[key], tolerance) for key, item in one.items()
        )
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(
            _equal(*pair, tolerance) for pair in zip(one, other, strict=True)
        )
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one == other or _close(one, other, tolerance)
    return type(one) is type(other) and one == other


def _close(one: float, other: float, tolerance: float) -> bool:
    try:
        return abs(one - other) <= tolerance
    except OverflowError:  # an integer beyond the range of floats against a float
        return False


def differences(found: Json, expected: Json, tolerance: float = 0.0) -> Iterator[str]:
    """Where the JSON of an answer is not what `json_match` expects, a line for each place."""
    wanted = _expected(expected)
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
        elif not _equal(one, other, tolerance):
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
        return int(_equal(one, wanted, tolerance)), _leaves(wanted)
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


class _Fault(Protocol):
    message: str
    instance_path: list[str | int]


class _Validator(Protocol):
    def is_valid(self, instance: Json) -> bool: ...
    def iter_errors(self, instance: Json) -> Iterator[_Fault]: ...


class _JsonSchema(Protocol):
    def RegexOptions(self) -> object: ...  # noqa: N802 - the library's own name

    def validator_for(
        self, schema: Json, *, pattern_options: object, retriever: Callable[[str], Json]
    ) -> _Validator: ...


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
    the draft says so.

    Args:
        answer: What the model said (see `parse_json` for where JSON is looked for).
        schema: The schema; ``$schema`` names its draft, 2020-12 by default.
        strict: The whole answer (or extraction) must be JSON.
        pick: Which value (fence, extraction) counts where there are several.
        extract: Where in the answer to look (see `extract_answer`).

    Returns:
        1.0 or 0.0; 0.0 where the answer holds no JSON.

    Raises:
        InputError: The schema is invalid, or an option is.
    """
    if not isinstance(cast("object", schema), Mapping | bool):
        raise InputError(f"a schema is an object or a bool, not {schema!r}")
    try:
        text = json.dumps(schema if isinstance(schema, bool) else dict(schema), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"the schema is not JSON: {error}") from None
    validator = _validator(text)
    parsed = json_of(answer, strict=strict, pick=pick, extract=extract)
    return float(parsed.ok and validator.is_valid(_whole(parsed.value)))


def schema_faults(found: Json, schema: Mapping[str, Json] | bool) -> Iterator[str]:  # noqa: FBT001 - a schema, not a switch
    """What keeps the JSON of an answer from being valid, a line for each fault."""
    validator = _validator(json.dumps(schema if isinstance(schema, bool) else dict(schema)))
    for fault in validator.iter_errors(_whole(found)):
        place = "".join(f"[{k}]" if isinstance(k, int) else f".{k}" for k in fault.instance_path)
        yield f"{place or 'the value'}: {fault.message}"


def _whole(value: Json) -> Json:
    """A half character is one character to the validator, which speaks UTF-8."""
    return json.loads(encodable(json.dumps(value, ensure_ascii=False)))


@functools.lru_cache(maxsize=128)
def _validator(text: str) -> _Validator:
    library = cast("_JsonSchema", importlib.import_module("jsonschema_rs"))
    schema: Json = json.loads(text)
    try:
        return library.validator_for(
            schema, pattern_options=library.RegexOptions(), retriever=_fetch_nothing
        )
    except ValueError as error:
        first = str(error).strip().splitlines()
        raise InputError(
            f"the JSON Schema is invalid: {first[0] if first else 'unknown reason'}",
            hint="patterns may not look around; $ref may not leave the schema",
        ) from None


def _fetch_nothing(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is outside the schema, and nothing is fetched")
