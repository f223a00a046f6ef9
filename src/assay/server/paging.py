"""Cursors: where a list goes on, in a form that says nothing to whoever carries it."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from typing import TypeVar

from assay.scoring.json_safe import Json
from assay.scoring.strict_json import decode_json
from assay.server.problems import Fault, ProblemError
from assay.store import CellKey

__all__ = ["MAX_LIMIT", "cursor_cell", "cursor_number", "cursor_text", "page"]

MAX_LIMIT = 200
"""Most items of one page."""

T = TypeVar("T")


def page(
    found: Sequence[T], limit: int, place: Callable[[T], object], show: Callable[[T], object]
) -> dict[str, object]:
    """A page of a list.

    Args:
        found: The items asked for and, where the list goes on, one more.
        limit: How many were asked for.
        place: What the next page begins after, of an item.
        show: An item as plain JSON.
    """
    shown = found[:limit]
    more = len(found) > limit
    cursor = _write(place(shown[-1])) if more and shown else None
    return {"items": [show(item) for item in shown], "next_cursor": cursor}


def cursor_text(cursor: str | None) -> str:
    """The name that a page begins after; empty for the first one.

    Raises:
        ProblemError: 422 for what is no cursor of ours.
    """
    value = _read(cursor) if cursor else ""
    if isinstance(value, str):
        return value
    raise _no_cursor()


def cursor_number(cursor: str | None) -> int:
    """The number that a page begins after; 0 for the first one.

    Raises:
        ProblemError: 422 for what is no cursor of ours.
    """
    value = _read(cursor) if cursor else 0
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62:
        return value
    raise _no_cursor()


def cursor_cell(cursor: str | None) -> CellKey | None:
    """The cell that a page begins after; None for the first one.

    Raises:
        ProblemError: 422 for what is no cursor of ours.
    """
    value = _read(cursor) if cursor else None
    if value is None:
        return None
    match value:
        case [str(case), str(harness), str(model), int(trial)]:
            return case, harness, model, trial
        case _:
            raise _no_cursor()


def _write(place: object) -> str:
    text = json.dumps(place, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _read(cursor: str) -> Json:
    padded = cursor + "=" * (-len(cursor) % 4)
    try:
        raw = base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True)
        value = decode_json(raw)
    except (ValueError, binascii.Error):
        raise _no_cursor() from None
    if isinstance(value, str) and (len(value) > 200 or not value.isascii() or "\0" in value):
        raise _no_cursor()
    return value


def _no_cursor() -> ProblemError:
    return ProblemError(
        422,
        "the cursor is not one of this list",
        faults=[Fault("cursor", "not a cursor of this list", "use `next_cursor` as it came")],
    )
