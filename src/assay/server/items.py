"""Rows of a request as items to grade."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from starlette.requests import Request

from assay.errors import InputError
from assay.scoring.json_safe import Json
from assay.server.problems import Fault, ProblemError
from assay.tasks.rows import read_row
from assay.types.submission import Submission

__all__ = ["MAX_ID", "Item", "items_of"]

Item = tuple[str, Submission]

MAX_ID = 500
"""Longest id of an item."""


async def items_of(request: Request, field: str) -> list[Item]:
    """The rows in a list of the body, which the body's model has checked, in their order.

    Args:
        request: The request.
        field: Name of the list.

    Raises:
        ProblemError: 422 for a row that is malformed, or has the id of another.
    """
    body = cast("dict[str, Json]", await request.json())
    rows = cast("Sequence[dict[str, Json]]", body.get(field) or [])
    items: list[Item] = []
    seen: dict[str, int] = {}
    for number, data in enumerate(rows):
        place = f"{field}[{number}]"
        try:
            row = read_row(data, number + 1)
        except InputError as error:
            raise _refusal(place, error.message, error.hint) from error
        if row.id in seen:
            message = f"the id {row.id!r:.100} is also that of {field}[{seen[row.id]}]"
            raise _refusal(f"{place}.id", message, "ids must differ")
        seen[row.id] = number
        items.append((row.id, row.submission))
    return items


def _refusal(place: str, message: str, hint: str) -> ProblemError:
    detail = f"{place}: {message} ({hint})" if hint else f"{place}: {message}"
    return ProblemError(422, detail, faults=[Fault(place, message, hint)])
