"""Types that people declare, made ready to be said to a model and to be parsed."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, cast

from assay.errors import InputError

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError


def type_adapter(annotation: object, *, what: str, finite: bool = False) -> TypeAdapter[object]:
    """The pydantic adapter of a type.

    Args:
        annotation: The type.
        what: What it is of, for the error.
        finite: Whether NaN and infinities are refused, as far as nothing inside says otherwise;
            for a type that is no class of its own fields, such as a function.

    Raises:
        InputError: For a type that pydantic cannot handle.
    """
    import pydantic

    config = pydantic.ConfigDict(allow_inf_nan=False) if finite else None
    try:
        return pydantic.TypeAdapter(cast("type[object]", annotation), config=config)
    except (pydantic.PydanticUserError, pydantic.errors.PydanticSchemaGenerationError) as error:
        raise InputError(f"{what}: {annotation!r} is not a type that can be parsed") from error


def problem_of(error: ValidationError) -> str:
    """The first thing that is wrong, in a line: where, and what; nothing of the value itself."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg']}" if place else first["msg"]


def is_finite(value: object) -> bool:
    """Whether no NaN and no infinity stands in it: ``min(1.0, nan)`` is full marks."""
    waiting: list[Any] = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, float):
            if not math.isfinite(one):
                return False
        elif isinstance(one, dict):
            waiting += (*one.keys(), *one.values())
        elif isinstance(one, list | tuple | set | frozenset):
            waiting += one
        elif is_dataclass(one) and not isinstance(one, type):
            waiting += (getattr(one, field.name, None) for field in fields(one))
        elif hasattr(cast("type", type(one)), "model_fields"):
            waiting += vars(one).values()
            waiting += (getattr(one, "model_extra", None) or {}).values()
    return True
