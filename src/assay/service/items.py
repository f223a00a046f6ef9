"""Rows of a request as items to grade, each with an id of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from assay.errors import InputError, Location
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json

if TYPE_CHECKING:
    from assay.types.submission import Submission

_LONGEST_ID = 500


def read_items(rows: Sequence[Mapping[str, Json]], field: str) -> list[tuple[str, Submission]]:
    """Rows as items to grade, in their order.

    Args:
        rows: The rows.
        field: Name of the list, for messages.

    Raises:
        InputError: For a row that is malformed, or has the id of another.
    """
    items: list[tuple[str, Submission]] = []
    for name, item in _each(rows, field):
        if isinstance(item, InputError):
            raise item
        items.append((name, item))
    return items


def gradable(rows: Sequence[Mapping[str, Json]]) -> list[tuple[str, Submission | Graded]]:
    """The items of a request in their order; of one that no grader can be given, what came of it.

    Raises:
        InputError: If they are all malformed, or two have one id.
    """
    found = list(_each(rows, "items"))
    faults = [item for _, item in found if isinstance(item, InputError)]
    if faults and len(faults) == len(found):
        raise faults[0]
    return [
        (name, Graded.failed(name, str(item), outcome="bad_item"))
        if isinstance(item, InputError)
        else (name, item)
        for name, item in found
    ]


def _each(
    rows: Sequence[Mapping[str, Json]], field: str
) -> Iterator[tuple[str, Submission | InputError]]:
    """Each row's id, and what is to be graded or what is wrong with it."""
    from assay.tasks.rows import read_row

    seen: dict[str, int] = {}
    for number, data in enumerate(rows):
        place = Location(field=f"{field}[{number}]")
        at_id = Location(field=f"{place.field}.id")
        item: Submission | InputError
        is_row = isinstance(cast("object", data), Mapping)
        try:
            row = read_row(data, number + 1, place)
            name, item = row.id, row.submission
        except InputError as error:
            if error.location.field == at_id.field:
                raise
            # Other faults of an id are refused by the request's model.
            given = data.get("id") if is_row else None
            name, item = given if isinstance(given, str) and given else str(number + 1), error
        if name in seen:
            raise InputError(
                f"the id {name!r:.100} is also that of {field}[{seen[name]}]",
                location=at_id,
                hint="ids must differ",
            )
        if len(name) > _LONGEST_ID or "\0" in name:
            raise InputError(
                f"longer than {_LONGEST_ID} characters, or holds a null character", location=at_id
            )
        seen[name] = number
        yield name, item
