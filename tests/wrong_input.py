"""Wrong input for whatever has a JSON Schema: each place of a right document made wrong in turn."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias, cast

import jsonschema_rs

from assay.scoring.json_safe import Json

__all__ = ["Place", "mistakes", "nested", "taker"]

Place: TypeAlias = "tuple[str | int, ...]"

_VALUES: tuple[tuple[Json, ...], ...] = (
    *((None,), (True,), (-1, 0, 2, 0.5, 1e308), ("", "nonsense", "x" * 10_000)),
    *(([], [3]), ({}, {"nonsense": 3})),
)
"""Of every type, of every size."""


def mistakes(schema: Mapping[str, Json], right: Json) -> Iterator[tuple[Place, Json]]:
    """Documents with one mistake each, and the place where that is.

    A value of a wrong type, out of range, too long or too short stands where the schema knows
    another one; a name that it does not know stands beside those that it knows; and what it
    requires is not there.

    Args:
        schema: What a document may say.
        right: A document that it takes; the more there is in it, the more is made wrong.
    """
    root = {name: schema[name] for name in ("$defs", "components") if name in schema}
    for place, wrong in _wrong(schema, right, (), root):
        yield place, _with(right, place, wrong)


def taker(schema: Mapping[str, Json], root: Mapping[str, Json]) -> Callable[[object], bool]:
    """What says whether a schema takes a value: to read one costs more than to ask it often.

    Args:
        schema: A part of a document.
        root: What the whole of it defines, read where the part refers to it.
    """
    whole = {**root, **schema} if '"$ref"' in json.dumps(schema) else dict(schema)
    return jsonschema_rs.validator_for(whole).is_valid


def nested(levels: int) -> Json:
    """A list in a list in a list."""
    value: Json = 1
    for _ in range(levels):
        value = [value]
    return value


_GONE: Json = ["this is taken out"]


def _wrong(
    schema: Mapping[str, Json], right: Json, place: Place, root: Mapping[str, Json]
) -> Iterator[tuple[Place, Json]]:
    def refused(one: Mapping[str, Json]) -> Iterator[Json]:
        """Of a type that is wrong altogether one value stands for all."""
        takes = taker(one, root)
        for of_type in _VALUES:
            wrong = [value for value in of_type if not takes(value)]
            yield from wrong[:1] if len(wrong) == len(of_type) else wrong

    schema = _meant(schema, root)
    yield from ((place, value) for value in refused(schema))
    branches = cast("list[dict[str, Json]]", schema.get("anyOf") or schema.get("oneOf") or [schema])
    branch = _meant(next(one for one in branches if taker(one, root)(right)), root)
    if isinstance(right, list):
        items = cast("dict[str, Json]", branch.get("items", {}))
        for number, item in enumerate(right):
            yield from _wrong(items, item, (*place, number), root)
    if not isinstance(right, dict):
        return
    known = cast("dict[str, dict[str, Json]]", branch.get("properties", {}))
    others = branch.get("additionalProperties", True)
    if others is False:
        yield (*place, "nonsense"), 3
    for name in cast("list[str]", branch.get("required", [])):
        yield (*place, name), _GONE
    for name in {**known, **right}:
        inner = known.get(name, others if isinstance(others, dict) else {})
        if name in right:
            yield from _wrong(inner, right[name], (*place, name), root)
        else:
            yield from (((*place, name), one) for one in refused(inner))


def _meant(schema: Mapping[str, Json], root: Mapping[str, Json]) -> Mapping[str, Json]:
    """What a reference refers to."""
    found: Json = dict(root)
    for step in str(schema.get("$ref", "")).split("/")[1:]:
        found = cast("dict[str, Json]", found)[step]
    return cast("Mapping[str, Json]", found) if "$ref" in schema else schema


def _with(document: Json, place: Place, value: Json) -> Json:
    """A copy of a document with another value in one place."""
    if not place:
        return value
    first, *rest = place
    if isinstance(document, list) and isinstance(first, int):
        changed = _with(document[first], tuple(rest), value)
        return [*document[:first], changed, *document[first + 1 :]]
    found = cast("dict[str, Json]", document)
    if value is _GONE and not rest:
        return {name: one for name, one in found.items() if name != first}
    return {**found, str(first): _with(found.get(str(first)), tuple(rest), value)}
