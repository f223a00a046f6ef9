"""A dataset before its first row is graded: its files in shards, and one look through all of them.

Files are read where they are, if somebody can begin in the middle of them: JSON lines, Parquet and
Arrow. Others become JSON lines. The look, by as many processes as are worth it, finds the first
malformed row and ids that stand twice, before anything is paid for; and how many rows are labelled.
"""

from __future__ import annotations

import asyncio
from array import array
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TypeAlias, cast

from assay.cores import cores
from assay.errors import InputError, nearest
from assay.eval.batch import Processes, run_batches
from assay.eval.rows.repeated_ids import Twins, hashes_of, kept_hashes, twins_of
from assay.eval.rows.shards import (
    RowStretch,
    Shard,
    ShardSource,
    Version,
    glance_of,
    read_row_of,
    read_shard,
    survey,
    version_of,
)
from assay.frozen import frozen
from assay.tasks.json_rows import parse_line
from assay.tasks.row_files import MOST_NAMES, RowReading, no_field, opened, renamed
from assay.tasks.row_sets import files_of
from assay.tasks.rows import OWN_FIELDS, as_json_lines
from assay.tasks.tables import ColumnFile

OURS = "/proc/self/"
"""Where files of this process alone are."""

_FEW = 10_000
"""Rows that are looked at in this process."""
_TOLD = 6
"""Malformed rows of a shard that are told one by one, where they are left out."""
_FIELDS = 1_000
"""Names of fields that are remembered, for a label that no row has."""
_Surveyed: TypeAlias = "tuple[ShardSource, tuple[RowStretch, ...], Version]"


@frozen(kw_only=True)
class Dataset:
    """What is known of the rows of a dataset before they are graded.

    Attributes:
        name: What people call it.
        reading: How its rows are read.
        label: Field that people labelled; None for none.
        sources: Its files, in their order.
        shards: All rows, in their order.
        versions: The files as they are, by their paths.
        has_traces: Whether any row says what was done for its answer.
        left_out: Malformed rows, and those with the id of an earlier one, which are left out.
        first_left_out: What is wrong with the first of them.
    """

    name: str
    reading: RowReading
    label: str | None
    sources: tuple[ShardSource, ...]
    shards: tuple[Shard, ...]
    versions: Mapping[str, Version]
    has_traces: bool
    left_out: int
    first_left_out: str

    @property
    def rows(self) -> int:
        """Rows that are graded."""
        return sum(shard.rows for shard in self.shards)

    @property
    def may_skip(self) -> bool:
        """Whether malformed rows are left out, rather than ending all."""
        return self.reading.on_bad_row is not None


@contextmanager
def read_through(
    data: str,
    *,
    reading: RowReading,
    label: str | None,
    size: tuple[int, int],
    left_out: tuple[int, str] = (0, ""),
) -> Generator[Dataset]:
    """Cut a dataset into shards, and read all its rows; what it unpacked is there until the end.

    Args:
        data: Its path, of whatever form; see `assay.tasks.row_files.opened`.
        reading: How rows are read; with ``on_bad_row``, malformed ones are left out.
        label: Field that people labelled; None for none.
        size: Bytes and rows that a shard has at most.
        left_out: How many rows were left out where it was made of something else, and what is wrong
            with the first.

    Raises:
        InputError: For what cannot be read, a malformed row, an id that stands twice, a label that
            no row has; or a dataset without rows.
        StoreError: If what has to be kept meanwhile finds no room on the disk.
    """
    skipped = _LeftOut(reading.on_bad_row, *left_out)
    may_skip = reading.on_bad_row is not None
    if may_skip:
        reading = replace(reading, on_bad_row=skipped)
    name = reading.name or data
    with ExitStack() as stack:
        found = _surveyed(data, reading, label, size, stack)
        sources = [source for source, _, _ in found]
        _require_mapped(name, sources, reading)
        listed = _shards(found)
        if not listed:
            raise _no_rows(name, skipped)
        look = _Look(label, may_skip)
        seen, twins = _looked(listed, look, skipped)
        shards = tuple(
            replace(
                shard,
                rows=shard.rows - seen.malformed[shard.number] - len(twins.get(shard.number, ())),
                twins=twins.get(shard.number, ()),
            )
            for shard in listed
        )
        if not any(shard.rows for shard in shards):
            raise _no_rows(name, skipped)
        if label is not None and not seen.labelled:
            raise _unlabelled(name, listed, label)
        yield Dataset(
            name=name,
            reading=reading,
            label=label,
            sources=tuple(sources),
            shards=shards,
            versions={source.path: version for source, _, version in found},
            has_traces=seen.has_traces,
            left_out=skipped.count,
            first_left_out=skipped.first,
        )


@dataclass(slots=True)
class _LeftOut:
    """Counts what is left out, and tells of it."""

    tell: Callable[[InputError], None] | None
    count: int = 0
    first: str = ""

    def __call__(self, error: InputError) -> None:
        self.count += 1
        self.first = self.first or str(error)
        if self.tell is not None:
            self.tell(error)


def _no_rows(name: str, left_out: _LeftOut) -> InputError:
    if left_out.count:
        return InputError(f"no row of {name} is well-formed: {left_out.first}")
    return InputError(f"{name} has no rows")


# ---- files -------------------------------------------------------------------------------------


def _surveyed(
    data: str, reading: RowReading, label: str | None, size: tuple[int, int], stack: ExitStack
) -> list[_Surveyed]:
    """The files of a dataset as whoever grades reads them."""
    found: list[_Surveyed] = []
    before = 0
    for file in files_of(data) or [data]:
        with opened(file, replace(reading, mapping={}, on_bad_row=None)) as rows:
            name, unit, is_plain = rows.name, rows.unit, rows.is_plain
        path = file if file.startswith(OURS) else str(Path(file).absolute())
        mapping, is_table = reading.mapping, False
        if unit == "row" and not is_plain:
            is_table = Path(path).is_file()
        if not (is_plain or is_table):
            # Packed, an array, a table of text: nobody can begin in the middle of it.
            made = as_json_lines(file, label=label, reading=reading)
            (path, unit), mapping = stack.enter_context(made), dict[str, str]()
        source = ShardSource(
            path=path, name=name, before=before, unit=unit, is_table=is_table, mapping=mapping
        )
        stretches, version, last = _stretches(source, *size)
        found.append((source, stretches, version))
        before += last  # by which the rows of the next file are counted on
    return found


def _stretches(
    source: ShardSource, size: int, rows: int
) -> tuple[tuple[RowStretch, ...], Version, int]:
    if not source.is_table:
        return survey(source.path, source.name, rows=rows, size=size)
    with closing(ColumnFile(source.path, source.name, source.pictures)) as table:
        total = table.count()
    found = tuple(
        RowStretch(start + 1, start, min(rows, total - start), min(rows, total - start))
        for start in range(0, total, rows)
    )
    return found, version_of(source.path, source.name), total


def _shards(found: Sequence[_Surveyed]) -> list[Shard]:
    every = ((source, stretch) for source, stretches, _ in found for stretch in stretches)
    return [
        Shard(number=number, source=source, stretch=stretch, rows=stretch.rows)
        for number, (source, stretch) in enumerate(every)
    ]


def _require_mapped(name: str, sources: Sequence[ShardSource], reading: RowReading) -> None:
    """Refuse names of fields that no row has; most often, the first row has them.

    Of files that became JSON lines, the names were checked there.
    """
    wanted, found = set(reading.mapping.values()), set[str]()
    if not all(one.mapping for one in sources):
        return
    others: dict[str, None] = {}
    for source in sources:
        as_named = replace(
            reading, name=source.name, mapping={}, on_bad_row=None, pictures=source.pictures
        )
        with opened(source.path, as_named) as rows:
            for _, line in rows.lines:
                with suppress(InputError):  # which is told where rows are looked at
                    if isinstance(line, bytes):
                        row = parse_line(line)
                        others.update(dict.fromkeys(islice(row, MOST_NAMES - len(others))))
                        renamed(row, reading.mapping, found)
                if wanted <= found:
                    return
    raise no_field(min(wanted - found), name, others)


# ---- rows --------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Seen:
    """What was found in a shard, or in all of them.

    Attributes:
        hashes: Those of the ids of its rows.
        labelled: Rows with a label.
        has_traces: Whether any row has a trace.
        malformed: By the numbers of shards, how many of their rows are malformed.
        told: What is wrong with the first of those of a shard.
        fault: What ends all: a malformed row, or a shard that cannot be read.
    """

    hashes: array[int] = field(default_factory=lambda: array("Q"))
    labelled: int = 0
    has_traces: bool = False
    malformed: Counter[int] = field(default_factory=Counter[int])
    told: list[InputError] = field(default_factory=list[InputError])
    fault: InputError | None = None


@dataclass(frozen=True, slots=True)
class _Look:
    """Looks through a shard, in this process or in another."""

    label: str | None
    may_skip: bool

    def __call__(self, shard: Shard) -> _Seen:
        seen, ids = _Seen(), list[str]()
        try:
            ids.extend(self._ids(shard, seen))
        except InputError as error:
            seen.fault = error
        seen.hashes = hashes_of(ids)
        return seen

    def _ids(self, shard: Shard, seen: _Seen) -> Iterator[str]:
        source, label = shard.source, self.label
        for number, line in (one for lines, _ in read_shard(shard) for one in lines):
            try:
                row = glance_of(line, number, source, label=label)
            except InputError as error:
                if not self.may_skip:
                    raise
                seen.malformed[shard.number] += 1
                if len(seen.told) < _TOLD:
                    seen.told.append(error)
                continue
            seen.labelled += row.is_labelled
            seen.has_traces = seen.has_traces or row.has_trace
            yield row.id


def _looked(shards: Sequence[Shard], look: _Look, left_out: _LeftOut) -> tuple[_Seen, Twins]:
    """What was found in all shards, and rows with the id of an earlier one."""
    whole = _Seen()
    told, faults = dict[int, list[InputError]](), dict[int, InputError]()
    with kept_hashes() as hashes:

        def keep(shard: Shard, done: object) -> None:
            seen = cast("_Seen", done)
            hashes.add(seen.hashes)
            whole.labelled += seen.labelled
            whole.has_traces = whole.has_traces or seen.has_traces
            whole.malformed.update(seen.malformed)
            told[shard.number] = seen.told
            if seen.fault is not None:
                faults[shard.number] = seen.fault

        _each_of(shards, look, keep)
        twice = hashes.twice()
    if faults:  # the first of them ends all, unless an id that stands twice does before it
        last = min(faults)
        earlier = [shard for shard in shards if shard.number <= last]
        if not look.may_skip:
            twins_of(earlier if twice else earlier[-1:], twice, look.label, leave_out=None)
        raise faults[last]
    for number, count in sorted(whole.malformed.items()):
        for place in range(count):  # each is counted, whether it is told or not
            left_out(told[number][min(place, len(told[number]) - 1)])
    leave_out = left_out if look.may_skip else None
    return whole, twins_of(shards if twice else (), twice, look.label, leave_out=leave_out)


def _each_of(
    shards: Sequence[Shard], work: Callable[[Shard], object], keep: Callable[[Shard, object], None]
) -> None:
    """Do something with every shard, by as many processes as are worth it."""
    if sum(shard.rows for shard in shards) <= _FEW:
        for one in shards:
            keep(one, work(one))
        return
    with Processes(work, count := min(cores(), len(shards))) as pool:
        asyncio.run(run_batches(shards, pool, keep, at_once=count))


def _unlabelled(name: str, shards: Sequence[Shard], label: str) -> InputError:
    """What is wrong with a dataset none of whose rows has a label."""
    if label in OWN_FIELDS:
        return InputError(
            f"{label!r} cannot be the label: graders read it",
            hint="label the rows in a field of its own",
        )
    fields: set[str] = set()
    for shard in shards:
        for number, line in (one for lines, _ in read_shard(shard) for one in lines):
            with suppress(InputError):  # of a row that is left out
                if len(fields) < _FIELDS:
                    row, _ = read_row_of(line, number, shard.source)
                    fields.update(row.submission.metadata)
    if label in fields:
        return InputError(
            f"no row of {name} is labelled: {label!r} is null wherever it is",
            hint="label the rows: true, false or a number",
        )
    return InputError(
        f"no row of {name} has a field {label!r}",
        hint=nearest(label, sorted(fields)) if fields else "label the rows first",
    )
