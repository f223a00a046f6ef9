"""A shard of a dataset: which rows of which file, and those rows."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from assay.errors import InputError
from assay.eval.batch import in_batches
from assay.eval.stretches import Stretch
from assay.graders.spec import GraderSpec
from assay.tasks.json_rows import MAX_LINE_BYTES, parse_line
from assay.tasks.row_files import Parts, Unit, place_of, renamed_line
from assay.tasks.rows import Row, parse_row
from assay.tasks.tables import Batch, Table, lines_of

__all__ = ["Shard", "Source", "read_row_of", "read_shard"]

_TOGETHER = 256
"""Rows that graders which compute are given together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file of a dataset.

    Attributes:
        path: Where it is.
        name: What people call it.
        before: Rows, or lines, of the files before it.
        unit: What numbers of its lines count.
        is_table: Whether it is Parquet or Arrow; else it is JSON lines.
        mapping: Fields of rows, each with the name that it has there.
    """

    path: str
    name: str
    before: int = 0
    unit: Unit = "line"
    is_table: bool = False
    mapping: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """Consecutive rows of a file, and the name of the part that they become.

    Attributes:
        number: Its place among the shards of the dataset, from 0 up.
        source: The file.
        stretch: The rows: of JSON lines in bytes, of a table in rows.
        part: The name of its file in ``parts/``.
        again: Whether its part is there already, and the errors in it are to be graded again.
        data: The bytes of the stretch, where whoever grades it cannot read the file.
        given_up: Rows that are errors without being graded, by their places in it, and why.
        twins: Numbers of rows that are left out, as an earlier one has their id.
    """

    number: int
    source: Source
    stretch: Stretch
    part: str
    again: bool = False
    data: bytes | None = None
    given_up: tuple[tuple[int, str], ...] = ()
    twins: tuple[int, ...] = ()


def read_row_of(
    line: bytes | InputError,
    number: int,
    source: Source,
    graders: tuple[GraderSpec, ...] = (),
) -> tuple[Row, bytes]:
    """A row of a file, and its text with the names that rows have.

    Args:
        line: Its text, or what is wrong with it.
        number: That of its line, or of the row, in the file.
        source: The file.
        graders: What it goes through.

    Raises:
        InputError: If it is malformed, naming file and place.
    """
    name, unit, number = source.name, source.unit, number + source.before
    parts: Parts = ((source.before, name, unit),) if source.before else ()
    try:
        if isinstance(line, InputError):
            raise line
        if source.mapping:
            line = renamed_line(parse_line(line), source.mapping, set())
    except InputError as error:
        where = place_of(name, number, unit, parts)
        raise InputError(error.message, location=where, hint=error.hint) from error
    row = parse_row(line, number, name, graders=graders, unit=unit, parts=parts)
    return row, line


def read_shard(
    shard: Shard, columns: Collection[str] = ()
) -> Iterator[tuple[Sequence[tuple[int, bytes | InputError]], Batch | None]]:
    """The rows of a shard, some at a time, and, of a table, their columns, or some of these."""
    source, stretch = shard.source, shard.stretch
    if source.is_table:
        table = Table(source.path, source.name)
        try:
            for start, batch in table.batches(stretch.start, stretch.size, columns):
                for offset in range(0, batch.num_rows, _TOGETHER):
                    some = batch.slice(offset, _TOGETHER)
                    lines = lines_of(some, source.mapping)
                    yield list(enumerate(lines, start + offset + 1)), some
        finally:
            table.close()
        return
    numbered = enumerate(_lines(shard), stretch.number)
    held = ((number, line) for number, line in numbered if not line.isspace())
    for some in in_batches(held, _TOGETHER):
        yield some, None


def _lines(shard: Shard) -> Iterator[bytes]:
    if shard.data is not None:
        yield from io.BytesIO(shard.data)
        return
    left = shard.stretch.size
    try:
        with Path(shard.source.path).open("rb") as handle:
            handle.seek(shard.stretch.start)
            while left and (line := handle.readline(min(left, MAX_LINE_BYTES + 1))):
                left -= len(line)
                yield line
    except OSError as error:
        raise InputError(f"cannot read {shard.source.name}: {error.strerror}") from error
