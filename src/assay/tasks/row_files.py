"""Files of rows as people have them, as JSONL lines: JSONL, JSON arrays, tables, also packed.

One row is in memory at a time, whatever the file is. What cannot be a row is named by line and
column, where the format has them, or by its number.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import stat
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal, TypeAlias

from assay.errors import InputError, Location, nearest
from assay.scoring.json_safe import Json
from assay.scratch import scratch
from assay.tasks.formats import TABLES, Format, format_of
from assay.tasks.json_rows import array_items, json_lines, parse_line
from assay.tasks.packed import unpacked
from assay.tasks.pictures import IMAGES, with_files
from assay.tasks.row_sets import HUB, hub_batches
from assay.tasks.tables import Batch, ColumnFile, kind_of_table, lines_of
from assay.tasks.text_tables import is_moved, table_rows

Unit = Literal["line", "item", "row"]
Lines: TypeAlias = "Iterator[tuple[int, bytes | InputError]]"
"""Rows as JSON, each with its number; or what is wrong with one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowReading:
    """How rows are read where they do not have the names of rows.

    Attributes:
        mapping: Fields of rows, each with the name that it has in the file.
        name: What people call the file; by default its path.
        labels: Columns of tables whose cells may be true, false or numbers; others are text.
        on_bad_row: Told of each malformed row, which is left out then; by default the first one
            ends the reading.
        pictures: The column of a table that may have bytes; by default what the mapping says.
    """

    mapping: Mapping[str, str] = field(default_factory=dict[str, str])
    name: str = ""
    labels: tuple[str, ...] = ()
    on_bad_row: Callable[[InputError], None] | None = None
    pictures: str = ""


AS_IT_IS = RowReading()
"""As the file's name and first bytes say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFile:
    """An open file of rows.

    Attributes:
        name: What people call it.
        is_plain: Whether its lines are rows as they are.
        unit: What `lines` counts.
        lines: Its rows. Read once.
    """

    name: str
    is_plain: bool
    unit: Unit
    lines: Lines


def place_of(file: str, number: int, unit: Unit = "line") -> Location:
    """Where a row of a file is: an array's items may stand in one line, so they are counted."""
    if unit == "line":
        return Location(file=file, line=number)
    return Location(file=file, field=f"{unit} {number}")


@dataclass(frozen=True, slots=True)
class _Opened:
    """What a reader is given of a file: its path, what people call it, what it holds unpacked."""

    file: str
    name: str
    source: io.BufferedReader
    reading: RowReading

    def table_of_text(self, comma: str) -> Lines:
        reading = self.reading
        return table_rows(
            self.source, self.name, comma, mapping=reading.mapping, labels=reading.labels
        )

    def table_of_columns(self) -> Iterator[tuple[int, Batch]]:
        if kind_of_table(magic := self.source.peek(8)[:8]) is None:
            raise InputError(
                f"{self.name} is neither Parquet nor Arrow, as it begins with {magic!r}"
            )
        pictures = self.reading.pictures or self.reading.mapping.get(IMAGES, IMAGES)
        with closing(ColumnFile(self.file, self.name, pictures)) as table:
            yield from table.batches()


_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

_READERS: Mapping[Format, tuple[Unit, Callable[[_Opened], Lines]]] = {
    "jsonl": ("line", lambda one: json_lines(one.source)),
    "json": ("item", lambda one: array_items(one.source, one.name)),
    "csv": ("line", lambda one: one.table_of_text(",")),
    "tsv": ("line", lambda one: one.table_of_text("\t")),
    **dict.fromkeys(
        ("parquet", "arrow"),
        ("row", lambda one: _rows_of_batches(one.table_of_columns(), one.reading.mapping)),
    ),
}
"""What is read of each format, and what its rows are counted by."""


@contextmanager
def opened(file: str, reading: RowReading = AS_IT_IS) -> Generator[RowFile]:
    """Open a file of rows and find out what it is; of a dataset that has several, one of them.

    Raises:
        InputError: If it cannot be read.
    """
    if file.startswith(HUB):
        lines = _rows_of_batches(hub_batches(file), reading.mapping)
        lines = _mapped(lines, file, reading.mapping)
        yield RowFile(name=file, is_plain=False, unit="row", lines=lines)
        return
    name = reading.name or file
    _refuse_pipe(file)
    with ExitStack() as stack:
        try:
            handle = stack.enter_context(Path(file).open("rb"))
            magic = handle.peek(4)[:4]
        except OSError as error:
            raise InputError(f"cannot read {name}: {error.strerror}") from error
        source, inner = unpacked(handle, magic, name)
        form = format_of(inner, source)
        if source is not handle and form in TABLES:
            raise InputError(
                f"{name} is packed {form}",
                hint="unpack it: such a file compresses its columns itself",
            )
        if form in ("jsonl", "json") and source.peek(2)[:2] in _UTF_16:
            # Whole: what is left out row by row would leave the rest to be read as something else.
            raise InputError(
                "UTF-16, not UTF-8", location=Location(name, 1, 1), hint="save the file as UTF-8"
            )
        unit, reader = _READERS[form]
        lines = reader(_Opened(file, name, source, reading))
        if form not in ("csv", "tsv"):  # whose header says it of all rows
            lines = _mapped(lines, name, reading.mapping)
        lines = with_files(lines, file)
        is_plain = form == "jsonl" and source is handle and not reading.mapping
        yield RowFile(name=name, is_plain=is_plain, unit=unit, lines=lines)


def _refuse_pipe(file: str) -> None:
    """Rows are read more than once, which a pipe cannot be; opening one may wait for ever."""
    with suppress(OSError):
        mode = os.stat(file).st_mode  # noqa: PTH116 - cheaper
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISCHR(mode):
            raise InputError(
                f"{file} is not a regular file",
                hint="write the rows to a file first, or give - for standard input",
            )


ROOM = "another directory with room for it: TMPDIR"
"""What helps where `unnamed` cannot hold what is written."""


@contextmanager
def unnamed() -> Generator[tuple[IO[bytes], str]]:
    """A file without a name, and the path by which this process and its forks can read it.

    However they end, nothing is left of it.
    """
    import tempfile

    if not Path("/proc/self/fd").is_dir():  # no Linux: a name, which goes with its directory
        with scratch("assay-rows-") as place, Path(place, "rows").open("w+b") as file:
            yield file, file.name
        return
    with tempfile.TemporaryFile() as file:
        yield file, f"/proc/self/fd/{file.fileno()}"


def _mapped(lines: Lines, name: str, mapping: Mapping[str, str]) -> Lines:
    """Rows whose fields have the names that rows have."""
    if not mapping:
        yield from lines
        return
    found: set[str] = set()
    others: set[str] = set()
    rows = 0
    for number, line in lines:
        rows += 1
        if isinstance(line, InputError):
            yield number, line
            continue
        try:
            row = parse_line(line)
            yield number, renamed_line(row, mapping, found)
        except InputError as error:
            yield number, error
            continue
        if len(others) < MOST_NAMES:
            others.update(row)
    missing = next((one for one in mapping.values() if one not in found), None)
    if rows and missing is not None:
        raise no_field(missing, name, others)


MOST_NAMES = 1_000
"""Names of fields that are remembered, for one that no row has."""


def no_field(missing: str, name: str, others: Iterable[str]) -> InputError:
    """What is wrong with a mapping from a name that none of some rows has, but others."""
    hint = nearest(missing, sorted(others))
    return InputError(f"--map: no row of {name} has a field {missing!r:.100}", hint=hint)


def renamed_line(row: Mapping[str, Json], mapping: Mapping[str, str], found: set[str]) -> bytes:
    """A row with our names as a line of JSON; see `renamed`."""
    ours = renamed(row, mapping, found)
    return json.dumps(ours, ensure_ascii=False).encode("utf-8", "surrogatepass")


def renamed(
    row: Mapping[str, Json], mapping: Mapping[str, str], found: set[str]
) -> dict[str, Json]:
    """A row with our names; what is mapped from inside an object stays there, too.

    Args:
        row: The row.
        mapping: Our names, each with the one in the row.
        found: Is given the names that are there.

    Raises:
        InputError: For a row that has both names.
    """
    taken = {theirs for ours, theirs in mapping.items() if theirs in row and is_moved(ours, theirs)}
    made = {key: value for key, value in row.items() if key not in taken}
    for ours, theirs in mapping.items():
        is_there, value = (True, row[theirs]) if theirs in row else _inside(row, theirs)
        if not is_there:
            continue
        found.add(theirs)
        if ours != theirs and made.get(ours) is not None:
            raise InputError(
                f"the row has {ours!r:.100}, and --map would rename {theirs!r:.100} to that",
                hint="leave one of them out",
            )
        made[ours] = value
    return made


def _inside(row: Mapping[str, Json], path: str) -> tuple[bool, Json]:
    value: Json = dict(row)
    for key in path.split("."):
        if not isinstance(value, dict) or key not in value:
            return False, None
        value = value[key]
    return True, value


def _rows_of_batches(batches: Iterable[tuple[int, Batch]], mapping: Mapping[str, str]) -> Lines:
    for start, batch in batches:
        yield from enumerate(lines_of(batch, mapping), start + 1)
