"""Lists in pages, and the cursors by which they go on."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from assay.errors import InputError, Location
from assay.frozen import frozen
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import decode_json
from assay.store.checks import valid_limit

__all__ = ["Page", "cursor_after", "cursor_cell", "cursor_number", "cursor_text", "page"]

T = TypeVar("T")

_MOST_READ = 1_000  # rows that the store reads at once


@frozen
class Page(Generic[T]):
    """Part of a list.

    Attributes:
        items: The part, in the list's order.
        next_cursor: Where the next part begins; empty after the last.
    """

    items: Sequence[T]
    next_cursor: str = ""


def page(find: Callable[[int], Sequence[T]], limit: int, place: Callable[[T], object]) -> Page[T]:
    """A page of a list.

    Args:
        find: Finds so many items, at most.
        limit: How many are wanted.
        place: What the next page begins after, of an item.
    """
    found = find(min(valid_limit(limit) + 1, _MOST_READ))
    is_more = len(found) > limit or len(found) == _MOST_READ
    shown = found[:limit]
    return Page(shown, cursor_after(place(shown[-1])) if is_more and shown else "")


def cursor_text(cursor: str | None) -> str:
    """The name that a page begins after; empty for the first one."""
    value = _read(cursor) if cursor else ""
    if isinstance(value, str):
        return value
    raise _no_cursor()


def cursor_number(cursor: str | None) -> int:
    """The number that a page begins after; 0 for the first one."""
    value = _read(cursor) if cursor else 0
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62:
        return value
    raise _no_cursor()


def cursor_cell(cursor: str | None) -> tuple[str, str, str, int] | None:
    """The cell that a page begins after; None for the first one."""
    value = _read(cursor) if cursor else None
    if value is None:
        return None
    match value:
        case [str(case), str(harness), str(model), int(trial)]:
            return case, harness, model, trial
        case _:
            raise _no_cursor()


def cursor_after(place: object) -> str:
    """The cursor of what comes after a place; it says nothing to whoever carries it."""
    text = json.dumps(place, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _read(cursor: str) -> Json:
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        value = decode_json(raw)
    except (ValueError, binascii.Error):
        raise _no_cursor() from None
    if isinstance(value, str) and (len(value) > 200 or not value.isascii() or "\0" in value):
        raise _no_cursor()
    return value


def _no_cursor() -> InputError:
    return InputError(
        "not a cursor of this list",
        location=Location(field="cursor"),
        hint="use `next_cursor` as it came",
    )
