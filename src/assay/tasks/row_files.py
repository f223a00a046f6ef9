"""Files of rows as people have them, as JSONL lines: JSONL, JSON arrays, tables, also packed.

One row is in memory at a time, whatever the file is. What cannot be a row is named by line and
column, where the format has them, or by its number. A dataset may have several files, which are
read one after another: their rows are counted through, and named by their own file.
"""

from __future__ import annotations

import json
import os
import stat
from bisect import bisect_left
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from typing import IO, Literal, TypeAlias

from assay.errors import InputError, Location, nearest
from assay.scoring.json_safe import Json
from assay.tasks.formats import Format, format_of
from assay.tasks.json_rows import array_items, json_lines, parse_line
from assay.tasks.packed import unpacked
from assay.tasks.row_sets import HUB, files_of, hub_batches
from assay.tasks.tables import Batch, Table, kind_of_table, lines_of
from assay.tasks.text_tables import is_moved, table_rows

__all__ = [
    "AS_IT_IS",
    "ROOM",
    "Parts",
    "Reading",
    "RowFile",
    "Unit",
    "no_field",
    "opened",
    "place_of",
    "renamed",
    "renamed_line",
    "unnamed",
]

Unit = Literal["line", "item", "row"]
Parts: TypeAlias = "Sequence[tuple[int, str, Unit]]"
"""The files of a dataset: for each how many lines are before it, its name, what numbers count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How rows are read where they are not JSONL with the names of rows.

    Attributes:
        format: By default what the name ends in, or else what the file begins with.
        mapping: Fields of rows, each with the name that it has in the file.
        name: What people call the file; by default its path.
        labels: Columns of tables whose cells may be true, false or numbers; others are text.
        unit: What the lines of JSONL stand for, where the file was made of another one.
        on_bad_row: Told of each malformed row, which is left out then; by default the first one
            ends the reading.
    """

    format: Format = ""
    mapping: Mapping[str, str] = field(default_factory=dict[str, str])
    name: str = ""
    labels: tuple[str, ...] = ()
    unit: Unit = "line"
    on_bad_row: Callable[[InputError], None] | None = None


AS_IT_IS = Reading()
"""As the file's name and first bytes say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFile:
    """An open file of rows.

    Attributes:
        name: What people call it.
        is_plain: Whether its lines are rows as they are.
        unit: What `lines` counts.
        lines: The rows as JSON, each with its number; or what is wrong with one. Read once.
        parts: The files that have been opened, of a dataset that has several.
    """

    name: str
    is_plain: bool
    unit: Unit
    lines: Iterator[tuple[int, bytes | InputError]]
    parts: Parts = ()

    def place(self, number: int) -> Location:
        """Where a row is."""
        return place_of(self.name, number, self.unit, self.parts)


def place_of(file: str, number: int, unit: Unit = "line", parts: Parts = ()) -> Location:
    """Where a row of a file is: an array's items may stand in one line, so they are counted."""
    if parts:
        at = bisect_left(parts, number, key=itemgetter(0)) - 1
        before, file, unit = parts[max(0, at)]
        number -= before
    if unit == "line":
        return Location(file=file, line=number)
    return Location(file=file, field=f"{unit} {number}")


@contextmanager
def opened(file: str, reading: Reading = AS_IT_IS) -> Generator[RowFile]:
    """Open a file of rows and find out what it is.

    Raises:
        InputError: If it cannot be read.
    """
    if file.startswith(HUB):
        lines: Iterator[tuple[int, bytes | InputError]]
        lines = _rows_of_batches(_counted(hub_batches(file)), reading.mapping)
        if reading.mapping:
            lines = _mapped(lines, file, reading.mapping)
        yield RowFile(name=file, is_plain=False, unit="row", lines=lines)
        return
    if (several := files_of(file)) is not None:
        name = reading.name or file
        with closing(_Several(several, reading)) as rows:
            yield RowFile(name=name, is_plain=False, unit="row", lines=rows, parts=rows.parts)
        return
    name = reading.name or file
    _refuse_pipe(file)
    try:
        handle = Path(file).open("rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror}") from error
    with handle:
        try:
            magic = handle.peek(8)[:8]
        except OSError as error:
            raise InputError(f"cannot read {name}: {error.strerror}") from error
        source, inner = unpacked(handle, magic[:4], name)
        form = reading.format or format_of(inner, source)
        unit: Unit = "item" if form == "json" else reading.unit
        if form == "jsonl":
            lines = json_lines(source)
        elif form == "json":
            lines = array_items(source, name)
        elif form in ("csv", "tsv"):
            comma = "," if form == "csv" else "\t"
            mapping, labels = reading.mapping, reading.labels
            lines = table_rows(source, name, comma, mapping=mapping, labels=labels)
        else:
            if source is not handle:
                raise InputError(
                    f"{name} is packed {form}",
                    hint="unpack it: such a file compresses its columns itself",
                )
            lines, unit = _rows_of_table(file, name, magic, reading.mapping), "row"
        if reading.mapping and form not in ("csv", "tsv"):
            lines = _mapped(lines, name, reading.mapping)
        yield RowFile(
            name=name,
            is_plain=form == "jsonl" and source is handle and not reading.mapping,
            unit=unit,
            lines=lines,
        )


def _refuse_pipe(file: str) -> None:
    """Rows are read more than once, which a pipe cannot be; opening one may wait for ever."""
    with suppress(OSError):
        mode = os.stat(file).st_mode  # noqa: PTH116 - cheaper
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISCHR(mode):
            raise InputError(
                f"{file} is not a regular file",
                hint="write the rows to a file first, or give - for standard input",
            )


class _Several(Iterator[tuple[int, "bytes | InputError"]]):
    """The rows of several files, counted through."""

    def __init__(self, files: Iterable[str], reading: Reading) -> None:
        self.parts: list[tuple[int, str, Unit]] = []
        self._rows = self._read(files, replace(reading, name=""))

    def __next__(self) -> tuple[int, bytes | InputError]:
        return next(self._rows)

    def close(self) -> None:
        """Close the file that is being read."""
        self._rows.close()

    def _read(
        self, files: Iterable[str], reading: Reading
    ) -> Generator[tuple[int, bytes | InputError]]:
        last = 0
        for file in files:
            before = last
            with opened(file, reading) as found:
                self.parts.append((before, found.name, found.unit))
                for number, line in found.lines:
                    last = before + number
                    yield last, line


ROOM = "another directory with room for it: TMPDIR"
"""What helps where `unnamed` cannot hold what is written."""


@contextmanager
def unnamed() -> Generator[tuple[IO[bytes], str]]:
    """A file without a name, and the path by which this process and its forks can read it.

    However they end, nothing is left of it.
    """
    import tempfile

    with tempfile.TemporaryFile() as file:
        yield file, f"/proc/self/fd/{file.fileno()}"


def _mapped(
    lines: Iterable[tuple[int, bytes | InputError]], name: str, mapping: Mapping[str, str]
) -> Iterator[tuple[int, bytes | InputError]]:
    """Rows whose fields have the names that rows have."""
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


# ---- tables of columns -------------------------------------------------------------------------


def _rows_of_table(
    file: str, name: str, magic: bytes, mapping: Mapping[str, str]
) -> Iterator[tuple[int, bytes | InputError]]:
    """The rows of Parquet or Arrow."""
    if kind_of_table(magic) is None:
        raise InputError(f"{name} is neither Parquet nor Arrow, as it begins with {magic[:8]!r}")
    with closing(Table(file, name)) as table:
        yield from _rows_of_batches(table.batches(), mapping)


def _rows_of_batches(
    batches: Iterable[tuple[int, Batch]], mapping: Mapping[str, str]
) -> Iterator[tuple[int, bytes | InputError]]:
    for start, batch in batches:
        yield from enumerate(lines_of(batch, mapping), start + 1)


def _counted(batches: Iterable[Batch]) -> Iterator[tuple[int, Batch]]:
    """Batches, each with how many rows are before it."""
    before = 0
    for batch in batches:
        yield before, batch
        before += batch.num_rows
