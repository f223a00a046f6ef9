"""A dataset in shards: which rows of which file, whether they are the same still, and they."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeAlias

from assay.errors import InputError
from assay.eval.batch import in_batches
from assay.tasks.json_rows import MAX_LINE_BYTES, parse_line
from assay.tasks.pictures import IMAGES, may_have_pictures, with_files
from assay.tasks.row_files import Unit, place_of, renamed_line
from assay.tasks.rows import Glance, Row, glance_at, parse_row
from assay.tasks.tables import Batch, ColumnFile, lines_of

Lines: TypeAlias = "Sequence[tuple[int, bytes | InputError]]"
"""Rows with their numbers in their file: the text of each, or what is wrong with it."""

_TOGETHER = 256
"""Rows that graders which compute are given together."""
_PICTURED = 256 << 10
"""Bytes that the pictures of a row are taken to have, where a line may name files."""
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardSource:
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

    @property
    def pictures(self) -> str:
        """What ``images`` is called there."""
        return self.mapping.get(IMAGES, IMAGES)


@dataclass(frozen=True, slots=True)
class RowStretch:
    """Consecutive rows of a file.

    Attributes:
        number: That of the first line, or row of a table.
        start: Where in the file that line begins, in bytes; of a table, the rows before it.
        size: How long all of them are, in bytes; of a table, in rows.
        rows: How many of them are rows; other lines are blank.
    """

    number: int
    start: int
    size: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """Consecutive rows of a file, which are graded and kept together.

    Attributes:
        number: Its place among the shards of the dataset, from 0 up.
        source: The file.
        stretch: Where in it they are.
        rows: How many of them are well-formed, and have no twin before them.
        twins: Numbers of rows that are left out, as an earlier one has their id.
        part: The name of the file that they become, in a directory of parts.
        again: Whether that is there already, and the errors in it are to be graded again.
        lines: The rows themselves, where they are not all of the stretch, or where whoever grades
            them cannot read the file.
        given_up: Rows that are errors without being graded, by their places in it, and why.
    """

    number: int
    source: ShardSource
    stretch: RowStretch
    rows: int
    twins: tuple[int, ...] = ()
    part: str = ""
    again: bool = False
    lines: Lines | None = None
    given_up: tuple[tuple[int, str], ...] = ()


# ---- files -------------------------------------------------------------------------------------


@dataclass(slots=True)
class Version:
    """A file as it was read; more may be appended to it.

    Attributes:
        file: Its path.
        stamp: What changes when it is written.
        size: How many bytes were read.
        digest: Theirs.
    """

    file: str
    stamp: tuple[int, ...]
    size: int
    digest: str

    def holds(self) -> bool:
        """Whether the bytes that were read are still there."""
        try:
            with Path(self.file).open("rb") as handle:
                stamp = _stamp(handle.fileno())
                if stamp != self.stamp:
                    digest, left = hashlib.blake2b(digest_size=32), self.size
                    while left and (chunk := handle.read(min(left, _CHUNK))):
                        digest.update(chunk)
                        left -= len(chunk)
                    if digest.hexdigest() != self.digest:
                        return False
                    self.stamp = stamp
        except OSError:
            return False
        return True


def version_of(file: str, name: str) -> Version:
    """The version of any file.

    Raises:
        InputError: If it cannot be read.
    """
    try:
        with Path(file).open("rb") as handle:
            stamp = _stamp(handle.fileno())
            digest = hashlib.file_digest(handle, partial(hashlib.blake2b, digest_size=32))
            return Version(file, stamp, handle.tell(), digest.hexdigest())
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror}") from error


def _stamp(descriptor: int) -> tuple[int, ...]:
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def survey(
    file: str, name: str, *, rows: int, size: int
) -> tuple[tuple[RowStretch, ...], Version, int]:
    """A file of JSON lines in stretches, its version, and the number of its last row; none is read.

    Args:
        file: Its path.
        name: What people call it.
        rows: How many each stretch has at most.
        size: Bytes after which one ends, too. A line that may name a picture counts for a large
            one: it is held with its rows.

    Raises:
        InputError: If it cannot be read.
    """
    stretches: list[RowStretch] = []
    digest = hashlib.blake2b(digest_size=32)
    place = length = weight = held = last = 0
    first = number = 1
    try:
        with Path(file).open("rb") as handle:
            stamp = _stamp(handle.fileno())
            for number, line in enumerate(
                iter(partial(handle.readline, MAX_LINE_BYTES + 1), b""), 1
            ):
                digest.update(line)
                length += len(line)
                weight += len(line) + (_PICTURED if may_have_pictures(line) else 0)
                if not line.isspace():
                    held, last = held + 1, number
                if held == rows or weight >= size:
                    stretches.append(RowStretch(first, place, length, held))
                    place, length, weight, held, first = place + length, 0, 0, 0, number + 1
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror}") from error
    if held:
        stretches.append(RowStretch(first, place, length, held))
    return tuple(stretches), Version(file, stamp, place + length, digest.hexdigest()), last


# ---- rows --------------------------------------------------------------------------------------


def read_row_of(
    line: bytes | InputError,
    number: int,
    source: ShardSource,
    *,
    label: str | None = None,
) -> tuple[Row, bytes]:
    """A row of a file, and its text with the names that rows have.

    Args:
        line: Its text, or what is wrong with it.
        number: That of its line, or of the row, in the file.
        source: The file.
        label: Field that people labelled; None for none.

    Raises:
        InputError: If it is malformed, naming file and place.
    """
    text = _as_named(line, number, source)
    before, unit = source.before, source.unit
    return parse_row(text, number, source.name, label=label, unit=unit, before=before), text


def glance_of(
    line: bytes | InputError, number: int, source: ShardSource, *, label: str | None = None
) -> Glance:
    """What a look at a row of a file tells; takes and raises what `read_row_of` does."""
    line, before, unit = _as_named(line, number, source), source.before, source.unit
    return glance_at(line, number, source.name, label=label, unit=unit, before=before)


def _as_named(line: bytes | InputError, number: int, source: ShardSource) -> bytes:
    """The text of a row with the names that rows have."""
    try:
        if isinstance(line, InputError):
            raise line
        if not source.mapping:
            return line
        return renamed_line(parse_line(line), source.mapping, set())
    except InputError as error:
        where = place_of(source.name, number, source.unit)
        raise InputError(error.message, location=where, hint=error.hint) from error


def read_shard(shard: Shard) -> Iterator[tuple[Lines, Batch | None]]:
    """The rows of a shard, some at a time, and, of a table, their columns."""
    source, stretch = shard.source, shard.stretch
    field = source.pictures
    if source.is_table and shard.lines is None:
        table = ColumnFile(source.path, source.name, field)
        try:
            for start, batch in table.batches(stretch.start, stretch.size):
                for offset in range(0, batch.num_rows, _TOGETHER):
                    some = batch.slice(offset, _TOGETHER)
                    lines = enumerate(lines_of(some, source.mapping), start + offset + 1)
                    yield list(with_files(lines, source.path, field)), some
        finally:
            table.close()
        return
    lines = with_files(_lines(shard), source.path, field) if shard.lines is None else shard.lines
    for some in in_batches(lines, _TOGETHER):
        yield some, None


def _lines(shard: Shard) -> Iterator[tuple[int, bytes]]:
    left = shard.stretch.size
    try:
        with Path(shard.source.path).open("rb") as handle:
            handle.seek(shard.stretch.start)
            lines = iter(partial(handle.readline, MAX_LINE_BYTES + 1), b"")
            for number, line in enumerate(lines, shard.stretch.number):
                if not line.isspace():
                    yield number, line
                left -= len(line)
                if left <= 0:
                    return
    except OSError as error:
        raise InputError(f"cannot read {shard.source.name}: {error.strerror}") from error
