"""`Shape`: a reply's schema, made ready once: its check, its words, its encoded forms."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from assay.errors import InputError
from assay.models.messages import Rung
from assay.models.structured import in_words, strict_schema, validator
from assay.scoring.json_safe import Json, plain

__all__ = ["Shape", "shape_of"]

_MOST_KEPT = 512
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


@dataclass(slots=True)
class Shape:
    """A schema, made ready.

    Attributes:
        validate: Says what is wrong with JSON, or "".
        words: The schema in words, for the prompt.
        plain: The schema as it came, encoded.
        strict: The schema in the strict dialect, encoded; empty if it cannot be said in it.
        fields: The encoded fields of a request, kept by the wires.
    """

    validate: Callable[[Json], str]
    words: str
    plain: str
    strict: str
    fields: dict[tuple[str, Rung, str, str], str] = field(
        default_factory=dict[tuple[str, Rung, str, str], str]
    )


_BY_TEXT: dict[str, Shape] = {}
_BY_OBJECT: dict[int, tuple[Mapping[str, Json], Shape]] = {}


def shape_of(schema: Mapping[str, Json]) -> Shape:
    """The shape of a schema.

    The same object is known again without being looked at: a schema may not change once used.

    Raises:
        InputError: If it is no JSON Schema.
    """
    known = _BY_OBJECT.get(id(schema))
    if known is not None and known[0] is schema:
        return known[1]
    encoded = json.dumps(plain(schema), ensure_ascii=False, separators=(",", ":"))
    shape = _BY_TEXT.get(encoded)
    if shape is None:
        shape = _make(schema, encoded)
        _keep(_BY_TEXT, encoded, shape)
    _keep(_BY_OBJECT, id(schema), (schema, shape))
    return shape


def _make(schema: Mapping[str, Json], encoded: str) -> Shape:
    validate = validator(schema)
    try:
        strict = json.dumps(strict_schema(schema), ensure_ascii=False, separators=(",", ":"))
    except InputError:
        strict = ""  # asked for in another way, and checked here as any reply is
    return Shape(validate, in_words(schema), encoded, strict)


def _keep(kept: dict[_Key, _Value], key: _Key, value: _Value) -> None:
    if len(kept) >= _MOST_KEPT:
        kept.clear()  # a program with more schemas than this makes them anew each time
    kept[key] = value
