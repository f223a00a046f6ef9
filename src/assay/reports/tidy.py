"""A copy of stored values that any JSON reader takes: finite, bounded in depth, valid Unicode."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import cast

from assay.scoring.json_safe import Json

__all__ = ["tidy"]

_MAX_DEPTH = 64
_MAX_BITS = 1024


def tidy(value: object, *, depth: int = 0) -> Json:  # noqa: PLR0911 - one return per kind
    """Copy a value to plain JSON without shortening it.

    NaN and the infinities become null, lone surrogates ``?``, integers too large for most readers
    and anything that is no JSON a short text that says so.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, int):
        bits = value.bit_length()
        return int(value) if bits <= _MAX_BITS else f"<integer of {bits} bits>"
    if isinstance(value, float):
        return float(value) if isfinite(value) else None
    if depth >= _MAX_DEPTH:
        return "<too deep>"
    if isinstance(value, Mapping):
        entries = cast("Mapping[object, object]", value)
        return {
            str(key).encode("utf-8", "replace").decode("utf-8"): tidy(item, depth=depth + 1)
            for key, item in entries.items()
        }
    if isinstance(value, list | tuple):
        return [tidy(item, depth=depth + 1) for item in cast("list[object]", value)]
    return f"<{type(value).__name__}>"
