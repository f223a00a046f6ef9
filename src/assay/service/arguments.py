"""Arguments of operations, checked against what their parameters may be.

A client checks them before it asks, so that a store and a server refuse the same in the same words;
a server checks what strangers send by models that are made of the same parameters.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Mapping, Sized
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NoReturn, TypeAlias

from assay.errors import InputError, Location, nearest
from assay.service.operation import KEY_PATTERN, NO_NULL, Input, Operation, Spec
from assay.store.checks import valid_key

_SCALARS: dict[object, str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
}


Before: TypeAlias = Annotated[
    str,
    Spec(
        "A date, or a time of ISO 8601; in UTC if it names no zone.",
        max_length=40,
        example="2026-11-21",
    ),
]


def time_before(before: str) -> datetime:
    """The time that a `Before` names.

    Raises:
        InputError: If it names none.
    """
    try:
        when = datetime.fromisoformat(before)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InputError(
            f"{before!r:.60} is no time",
            location=Location(field="before"),
            hint="such as 2026-11-21 or 2026-11-21T09:08:30Z",
        ) from None


def check(operation: Operation[..., Any], given: Mapping[str, object]) -> None:
    """Check arguments of an operation."""
    sent = operation.sent(given)
    for one in operation.places:
        if one.name in sent:
            _check_type(one, sent[one.name])
            _check_limits(one, sent[one.name])


def _check_type(one: Input, value: object) -> None:
    options = typing.get_args(one.annotation) if _is_union(one.annotation) else (one.annotation,)
    words = [w for o in options if typing.get_origin(o) is Literal for w in typing.get_args(o)]
    kinds = [_SCALARS[option] for option in options if option in _SCALARS]
    if (value is None and type(None) in options) or value in words or not (words or kinds):
        return
    if words:
        _refuse(one, f"{value!r:.60} is unknown", nearest(str(value), words))
    is_number = isinstance(value, int) and not isinstance(value, bool) and float in options
    if type(value) not in options and not is_number:
        _refuse(one, f"must be {' or '.join(kinds)}, got {type(value).__name__}")


def _is_union(annotation: object) -> bool:
    return type(None) in typing.get_args(annotation)


def _check_limits(one: Input, value: object) -> None:
    spec = one.spec
    if isinstance(value, str) and spec.pattern and not re.fullmatch(spec.pattern, value):
        if spec.pattern == KEY_PATTERN:
            valid_key(value, spec.alias or one.name)
        if spec.pattern == NO_NULL:
            _refuse(one, "holds a null character")
        example = f"such as {spec.example}" if spec.example else ""
        _refuse(one, f"{value!r:.80} is none: {spec.description}".removesuffix(": "), example)
    if isinstance(value, Sized):
        if spec.max_length is not None and len(value) > spec.max_length:
            _refuse(one, f"has {len(value):,} {_parts(value)}", f"up to {spec.max_length:,}")
        if spec.min_length is not None and len(value) < spec.min_length:
            _refuse(one, f"needs {spec.min_length} {_parts(value)} or more")
    if isinstance(value, int | float) and not isinstance(value, bool):
        low, high = spec.ge, spec.le
        if not ((low is None or low <= value) and (high is None or value <= high)):
            _refuse(one, f"cannot be {value}", f"from {low:,} to {high:,}")


def _parts(value: Sized) -> str:
    return "characters" if isinstance(value, str) else "entries"


def _refuse(one: Input, message: str, hint: str = "") -> NoReturn:
    raise InputError(message, location=Location(field=one.name), hint=hint)
