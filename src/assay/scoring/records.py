"""Records that are shown, as JSON: what the API answers, ``--json`` prints and HTML files hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, cast

from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json, plain

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def as_json(value: object, leaf: Callable[[object], Json] = plain) -> Json:
    """A record that is shown as plain JSON, with a key for every field.

    Args:
        value: The record.
        leaf: Writes what is neither a record nor a sequence.
    """
    if isinstance(value, Graded):
        return value.to_dict()
    if hasattr(type(value), "__dataclass_fields__"):
        names = _names(cast("type[DataclassInstance]", type(value)))
        return {name: as_json(getattr(value, name), leaf) for name in names}
    if isinstance(value, list | tuple):
        return [as_json(item, leaf) for item in cast("Sequence[object]", value)]
    return leaf(value)


@cache
def _names(record: type[DataclassInstance]) -> tuple[str, ...]:
    return tuple(one.name for one in fields(record))
