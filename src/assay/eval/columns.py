"""The columns of a table of rows: what those of JSON rows hold, and which ones grading adds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from assay.errors import InputError
from assay.scoring.json_safe import Json

Column: TypeAlias = tuple[str, str]
"""The name of a column, and what it holds: text, bool, int, long, float or json."""

GRADE, SCORE = "grade_", "grade_score_"
"""What the names of columns begin with that hold a grade, and the scores in it."""

GRADE_TYPES = {
    "id": "string",
    "status": "string",
    "reward": "float64",
    "passed": "bool_",
    "error": "string",
    "flags": "list",
    "reason": "string",
    "assurance": "string",
    "not_graded": "string",
}
"""What of a grade has a column, and of which type that is to Arrow."""

_MOST_COLUMNS = 10_000
_SAFE_INTEGER, _LARGEST_INTEGER = 2**53, 2**63 - 1


def column_kinds(row: Mapping[str, Json], known: dict[str, str]) -> None:
    """Note which columns a row has and what they hold; null says nothing about that."""
    for name, value in row.items():
        known[name] = _both(known.get(name, ""), _kind(value))


def add_kinds(known: dict[str, str], others: Mapping[str, str]) -> None:
    """Add what was noted about other rows."""
    for name, kind in others.items():
        known[name] = _both(known.get(name, ""), kind)


def columns_of(known: Mapping[str, str]) -> tuple[Column, ...]:
    """The columns of rows: those that rows usually begin with, then the others by name.

    Raises:
        InputError: If there are too many: data used as field names would fill the memory.
    """
    if len(known) > _MOST_COLUMNS:
        raise InputError(
            f"the rows have {len(known):,} different fields, and a table has at most "
            f"{_MOST_COLUMNS:,} columns",
            hint="write JSON lines, or keep data out of the names of fields",
        )
    first = ("id", "question", "messages", "answer", "expected")
    names = [*(one for one in first if one in known), *sorted(known.keys() - set(first))]
    return tuple((name, known[name] or "text") for name in names if not is_grades(name))


def is_grades(name: str) -> bool:
    """Whether grading writes such a column; those of an earlier grading are replaced.

    Capitals do not count, as many readers ignore them and take the first of two columns.
    """
    name = name.casefold()
    return name.startswith(GRADE) and (name.startswith(SCORE) or name[len(GRADE) :] in GRADE_TYPES)


def _kind(value: Json) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        size = abs(value)
        return "int" if size <= _SAFE_INTEGER else "long" if size <= _LARGEST_INTEGER else "json"
    if isinstance(value, float):
        return "float"
    return "text" if isinstance(value, str) else "json"


def _both(one: str, other: str) -> str:
    """The kind of a column that holds values of both kinds; no value is lost."""
    if one == other or not other:
        return one
    if not one:
        return other
    both = {one, other}
    if both == {"int", "long"}:
        return "long"
    return "float" if both == {"int", "float"} else "json"
