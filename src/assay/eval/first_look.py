"""One look through a dataset before its first row is graded, by as many processes as are worth it.

It finds which columns a table of its rows has, its first malformed row, and ids that stand twice.
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar, cast

from assay.cores import cores
from assay.errors import InputError
from assay.eval.batch import Processes, run_batches
from assay.eval.parts import Column, add_kinds, column_kinds, columns_of
from assay.eval.shard_rows import Shard, Source, read_row_of, read_shard
from assay.eval.twins import (
    Twins,
    hashes_of,
    identified,
    identity_of,
    kept_hashes,
    twins_of,
)
from assay.scoring.json_safe import Json
from assay.tasks.json_rows import parse_line
from assay.tasks.row_files import renamed

__all__ = ["each_of", "look_through"]

_FEW = 10_000
"""Rows that are looked at in this process."""
T = TypeVar("T")


def look_through(
    shards: Sequence[Shard], *, for_table: bool, has_to_be_sound: bool, may_have_twins: bool
) -> tuple[tuple[Column, ...] | None, Twins]:
    """Read all rows once, and again those alone whose id may stand twice.

    Args:
        shards: The whole dataset, in its order.
        for_table: Whether the rows are JSON, and become a table.
        has_to_be_sound: Whether a malformed row ends it; else such rows are told of where they are
            graded.
        may_have_twins: Whether an id may stand twice.

    Returns:
        The columns of the table, as all rows together need them, and rows with the id of another.

    Raises:
        InputError: For too many columns, a malformed row, or an id that stands twice.
        StoreError: If ids find no room on the disk.
    """
    kinds: dict[str, str] = {}
    faults: dict[int, InputError] = {}
    with kept_hashes() as hashes:

        def keep(shard: Shard, done: object) -> None:
            seen = cast("_Seen", done)
            add_kinds(kinds, seen.kinds)
            hashes.add(seen.hashes)
            if seen.fault is not None:
                faults[shard.number] = seen.fault

        rows = sum(shard.stretch.rows for shard in shards)
        each_of(shards, _Look(for_table, has_to_be_sound), keep, rows=rows)
        columns = columns_of(kinds) if for_table else None
        if faults:
            raise faults[min(faults)]
        twice = hashes.twice()
    return columns, twins_of(shards, twice, may_have=may_have_twins)


def each_of(
    items: Sequence[T], work: Callable[[T], object], keep: Callable[[T, object], None], *, rows: int
) -> None:
    """Do something with every piece of a dataset, by as many processes as are worth it.

    Args:
        items: The pieces.
        work: What is done, in this process or in forks of it.
        keep: Told what came of each, in the order in which they end.
        rows: How many all of them have.
    """
    if rows <= _FEW:
        for one in items:
            keep(one, work(one))
        return
    with Processes(work, count := min(cores(), len(items))) as pool:
        asyncio.run(run_batches(items, pool, keep, at_once=count))


@dataclass(slots=True)
class _Seen:
    """What was found in a shard.

    Attributes:
        hashes: Those of the ids of its rows.
        kinds: What the columns of its rows hold.
        fault: What is wrong with its first malformed row, or why it cannot be read.
    """

    hashes: array[int] = field(default_factory=lambda: array("Q"))
    kinds: dict[str, str] = field(default_factory=dict[str, str])
    fault: InputError | None = None


@dataclass(frozen=True, slots=True)
class _Look:
    """Looks through a shard; of a table, at no more columns than needed."""

    for_table: bool
    has_to_be_sound: bool

    def __call__(self, shard: Shard) -> _Seen:
        seen, identities = _Seen(), list[bytes]()
        columns = () if self.has_to_be_sound else {"id", *shard.source.mapping.values()}
        try:
            for lines, _ in read_shard(shard, columns):
                if self.for_table or self.has_to_be_sound:
                    identities += self._read(lines, shard.source, seen)
                else:
                    identities += [one for _, one, _ in identified(lines, shard.source)]
        except InputError as error:
            seen.fault = seen.fault or error
        seen.hashes = hashes_of(identities)
        return seen

    def _read(
        self, lines: Sequence[tuple[int, bytes | InputError]], source: Source, seen: _Seen
    ) -> Iterator[bytes]:
        """The ids of rows, as far as these are well-formed."""
        for number, line in lines:
            fields: Mapping[str, Json] | None = None
            if self.has_to_be_sound and seen.fault is None:
                try:
                    fields = read_row_of(line, number, source)[0].fields
                except InputError as error:
                    seen.fault = error
            if fields is None and self.for_table and isinstance(line, bytes):
                with suppress(InputError):  # whose columns count until it is told
                    fields = renamed(parse_line(line), source.mapping, set())
            if fields is None:
                continue
            if self.for_table:
                column_kinds(fields, seen.kinds)
            yield identity_of(fields.get("id"), number, source)
