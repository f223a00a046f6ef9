"""Parts of lists: which part of one is wanted, how it is sorted, and where it goes on."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeAlias, TypeVar

from assay.errors import InputError, Location
from assay.frozen import frozen
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import decode_json
from assay.store.checks import valid_limit, valid_number

R = TypeVar("R")
T = TypeVar("T")

PAGE_BYTES = 4 << 20
"""What the rows of a page hold as they are stored, but for the last of them."""

Place: TypeAlias = "tuple[str | int, ...]"
"""Where in a list an item stands: what it is sorted by, or how many stand before what follows."""


@frozen
class Stretch:
    """Which part of a list is wanted.

    Attributes:
        limit: Most items, up to 1,000.
        offset: How many are left out before it.
        after: Where it begins: `next` of the part before. At the beginning by default.
    """

    limit: int = 50
    offset: int = 0
    after: str | None = None

    def __post_init__(self) -> None:
        valid_limit(self.limit)
        valid_number(self.offset, "offset")


FIRST = Stretch()
"""The beginning of a list."""


@frozen
class Page(Generic[T]):
    """Part of a list.

    Attributes:
        items: The part, in the list's order; fewer than asked for where they are large.
        total: How many the whole list has; None where nobody counted.
        next: Where the list goes on, as `after` of what is asked next; None at the end.
    """

    items: Sequence[T]
    total: int | None = None
    next: str | None = None

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def of(self, each: Callable[[T], R]) -> Page[R]:
        """The same part, with something else for each item."""
        return Page([each(one) for one in self.items], self.total, self.next)


@frozen
class Order:
    """How a list is sorted.

    Attributes:
        by: What by, in SQL.
        kinds: What these columns hold: a list goes on behind the last item that was seen, whatever
            came or went before it. Empty for columns that may be NULL, where places are counted.
        descending: Whether the highest comes first.
    """

    by: str
    kinds: tuple[type, ...] = ()
    descending: bool = False

    @property
    def sql(self) -> str:
        """The columns as ``ORDER BY`` takes them."""
        if not self.descending:
            return self.by
        return ", ".join(f"{column} DESC" for column in self.by.split(", "))

    @property
    def behind(self) -> str:
        """The condition of what comes behind a place."""
        marks = ", ".join("?" * len(self.kinds))
        return f"({self.by}) {'<' if self.descending else '>'} ({marks})"

    def place(self, after: str | None) -> Place | None:
        """The place that a list goes on behind; None for its beginning."""
        if after is None:
            return None
        kinds, found = self.kinds or (int,), _read(after)
        if not isinstance(found, list) or len(found) != len(kinds):
            raise _no_place()
        return tuple(_part(value, kind) for value, kind in zip(found, kinds, strict=True))


OLDEST = Order("seq", (int,))
NEWEST = Order("seq", (int,), descending=True)
COUNTED = Order("")
"""The order of a list that is at hand, whatever that is."""


def written(place: Sequence[str | int]) -> str:
    """A place for whoever carries it, to whom it says nothing."""
    text = json.dumps(place, separators=(",", ":"), ensure_ascii=False)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def page_of(found: Sequence[T], wanted: Stretch) -> Page[T]:
    """A part of a list that is at hand."""
    return part_of(found, wanted, list)


def part_of(
    found: Sequence[T], wanted: Stretch, read: Callable[[Sequence[T]], Sequence[R]]
) -> Page[R]:
    """The same, with what is read for those items: for the first ones, if it holds too much."""
    (seen,) = COUNTED.place(wanted.after) or (0,)
    start = int(seen) + wanted.offset
    items = read(found[start : start + wanted.limit])
    end = start + len(items)
    return Page(items, len(found), written([end]) if items and end < len(found) else None)


def every(part: Callable[[Stretch], Page[T]]) -> Iterator[T]:
    """All items of a list, read part by part."""
    return (item for page in parts(part, 200) for item in page)


def parts(part: Callable[[Stretch], Page[T]], limit: int) -> Iterator[Page[T]]:
    """All of a list in parts of so many items."""
    after: str | None = None
    while True:
        page = part(Stretch(limit, after=after))
        yield page
        if (after := page.next) is None:
            return


def _read(after: str) -> Json:
    try:
        raw = base64.b64decode(after + "=" * (-len(after) % 4), altchars=b"-_", validate=True)
        return decode_json(raw)
    except (ValueError, binascii.Error):
        raise _no_place() from None


def _part(value: Json, kind: type) -> str | int:
    if kind is int and isinstance(value, int) and not isinstance(value, bool):
        if 0 <= value < 1 << 62:
            return value
    elif kind is str and isinstance(value, str) and "\0" not in value:
        return value
    raise _no_place()


def _no_place() -> InputError:
    return InputError(
        "not a place of this list", location=Location(field="after"), hint="use `next` as it came"
    )
