"""Reference answers and other values of tables, as JSON, or told that they are none."""

from __future__ import annotations

import math
from datetime import date, time
from decimal import Decimal

from assay.errors import InputError
from assay.scoring.json_safe import Json, plain


def is_missing(value: object) -> bool:
    """Whether it is what tables have for nothing: None, NaN, and pandas' own."""
    if isinstance(value, float):
        return math.isnan(value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def reference_of(expected: object) -> Json:
    """A reference answer as JSON, exactly; what is missing is none.

    Raises:
        InputError: For what is not JSON: no answer would be like what stands for it.
    """
    return None if is_missing(expected) else plain(expected, _refused)


def _refused(value: object) -> Json:
    if isinstance(value, date | time) and not is_missing(value):
        return value.isoformat()
    if isinstance(value, Decimal) and value.is_finite():
        return str(value)
    shown = repr(value) if isinstance(value, float) else f"of the type {type(value).__name__}"
    raise InputError(
        f"a reference answer is {shown}, which no grader can read",
        hint="give text, a number, or a list or dict of these",
    )
