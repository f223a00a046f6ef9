"""Files of rows as people have them, as JSONL lines: JSONL, JSON arrays, tables, also packed.

One row is in memory at a time, whatever the file is. What cannot be a row is named by line and
column, where the format has them, or by its number. A dataset may have several files, which are
read one after another: their rows are counted through, and named by their own file.
"""

from __future__ import annotations

import codecs
import io
import json
import re
from bisect import bisect_left
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import IO, Literal, NoReturn, TypeAlias, cast

from assay.errors import InputError, Location, nearest
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import NotJsonError, decode_json, json_encoding
from assay.tasks.packed import name_inside, unpacked
from assay.tasks.row_sets import HUB, TABLE_NAMES, files_of, hub_batches
from assay.tasks.tables import AS_JSON, Batch, Table, kind_of_table, lines_of

__all__ = [
    "AS_IT_IS",
    "FORMATS",
    "MAX_LINE_BYTES",
    "Format",
    "Parts",
    "Reading",
    "RowFile",
    "Unit",
    "has_rows",
    "opened",
    "parse_line",
    "place_of",
    "renamed",
    "renamed_line",
]

FORMATS = ("jsonl", "json", "csv", "tsv", "parquet", "arrow")
Format = Literal["", "jsonl", "json", "csv", "tsv", "parquet", "arrow"]
Unit = Literal["line", "item", "row"]
Parts: TypeAlias = "Sequence[tuple[int, str, Unit]]"
"""The files of a dataset: for each how many lines are before it, its name, what numbers count."""

MAX_LINE_BYTES = 64 << 20
"""Longest row of a dataset; a longer one is refused rather than filling the memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How rows are read where they are not JSONL with the names of rows.

    Attributes:
        format: By default what the name ends in, or else what the file begins with.
        mapping: Fields of rows, each with the name that it has in the file.
        name: What people call the file; by default its path.
        labels: Columns of tables whose cells may be true, false or numbers; others are text.
        unit: What the lines of JSONL stand for, where the file was made of another one.
        parts: The files that the lines of JSONL stand for, where it was made of several.
        on_bad_row: Told of each malformed row, which is left out then; by default the first one
            ends the reading.
    """

    format: Format = ""
    mapping: Mapping[str, str] = field(default_factory=dict[str, str])
    name: str = ""
    labels: tuple[str, ...] = ()
    unit: Unit = "line"
    parts: Parts = ()
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
        form = reading.format or _format_of(inner, source)
        unit: Unit = "item" if form == "json" else reading.unit
        if form == "jsonl":
            lines = _lines(source)
        elif form == "json":
            lines = _items(_Text(source, name))
        elif form in ("csv", "tsv"):
            lines = _table(source, name, reading, "," if form == "csv" else "\t")
        else:
            if source is not handle:
                raise InputError(f"{name} is packed {form}", hint="unpack it: it packs its columns")
            lines, unit = _rows_of_table(file, name, magic, reading.mapping), "row"
        if reading.mapping and form not in ("csv", "tsv"):
            lines = _mapped(lines, name, reading.mapping)
        yield RowFile(
            name=name,
            is_plain=form == "jsonl" and source is handle and not reading.mapping,
            unit=unit,
            lines=lines,
            parts=reading.parts,
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


def has_rows(file: str) -> bool:
    """Whether a file holds rows by its name, packed or not."""
    return name_inside(file.lower()).endswith((".jsonl", ".csv", ".tsv", *TABLE_NAMES))


def _format_of(name: str, source: io.BufferedReader) -> Format:
    ending = Path(name).suffix.lower()
    if ending in (".csv", ".tsv"):
        return "csv" if ending == ".csv" else "tsv"
    head = source.peek(64)[:64]
    if ending in TABLE_NAMES or kind_of_table(head):
        return kind_of_table(head) or ("parquet" if ending == ".parquet" else "arrow")
    text = head.decode(json_encoding(head), "replace") if head else ""
    return "json" if text.lstrip("\ufeff \t\r\n").startswith("[") else "jsonl"


# ---- lines of JSON -----------------------------------------------------------------------------


def _lines(source: io.BufferedReader) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(iter(partial(source.readline, MAX_LINE_BYTES + 1), b""), 1):
        if not line.isspace():
            yield number, line


def parse_line(line: bytes) -> dict[str, Json]:
    """Read the JSON of one row.

    Raises:
        InputError: If it is none, with the column where that is known.
    """
    if len(line) > MAX_LINE_BYTES:
        raise InputError(f"the row is longer than {MAX_LINE_BYTES:,} bytes")
    try:
        data = decode_json(line)
    except NotJsonError as error:
        raise _not_json(error, line) from None
    if not isinstance(data, dict):
        raise InputError("a row must be a JSON object")
    return data


def _not_json(error: NotJsonError, line: bytes) -> InputError:
    message, hint, column = f"not a JSON object: {_said(str(error))}", "", None
    if error.kind == "repeated key":
        message, hint = str(error), "keep one of them"
    elif error.kind == "digits":
        message, hint = str(error), "write it as text"
    elif error.kind == "encoding":
        if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            message, column = "UTF-16, not UTF-8", 1
        else:
            message, column = "not UTF-8", len(line[: error.offset].decode("utf-8", "replace")) + 1
        hint = "save the file as UTF-8"
    elif error.kind == "syntax":
        end = len(line.decode(errors="replace").rstrip())
        column = min(error.offset, end) + 1
        if error.offset == 0 and line[:1] != b"{":
            hint = "a row is one JSON object on one line; a table is called .csv or .tsv"
        elif error.offset >= end:
            hint = "a row is one object on one line; rows of several lines stand in an array: [...]"
    return InputError(message, location=Location(column=column), hint=hint)


def _said(message: str) -> str:
    """What a decoder says, without the "at" before a place that it does not say."""
    return message.removesuffix(" starting at").removesuffix(" at")


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
        if len(others) < _NAMES:
            others.update(row)
    missing = next((one for one in mapping.values() if one not in found), None)
    if rows and missing is not None:
        raise _no_field(missing, name, sorted(others))


_NAMES = 1_000
"""Names of fields that are remembered, for one that no row has."""


def _no_field(missing: str, name: str, others: list[str]) -> InputError:
    return InputError(
        f"--map: no row of {name} has a field {missing!r:.100}", hint=nearest(missing, others)
    )


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
    taken = {theirs for theirs in mapping.values() if theirs in row}
    made = {key: value for key, value in row.items() if key not in taken}
    for ours, theirs in mapping.items():
        is_there, value = (True, row[theirs]) if theirs in row else _inside(row, theirs)
        if not is_there:
            continue
        found.add(theirs)
        if made.get(ours) is not None:
            raise InputError(
                f"there is {ours!r:.100} and {theirs!r:.100}, which --map would make it",
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


# ---- arrays ------------------------------------------------------------------------------------

_SPACE = re.compile(r"[ \t\n\r]*")
_SLACK = 16
"""A fault so near to the end of what was read may be the end alone."""
# Only finds where a value ends: what it means is read strictly, later.
_LENIENT = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)


class _Text:
    """The text of a file, as far as it is needed, and where in it we are."""

    CHUNK = 1 << 16

    def __init__(self, source: io.BufferedReader, name: str) -> None:
        self._source, self._name = source, name
        self._decoder: codecs.IncrementalDecoder | None = None
        self._line = self._column = 1  # of the buffer's first character
        self.buffer = ""
        self.at = 0
        self.has_ended = False

    def more(self, size: int = CHUNK) -> None:
        """Read on, and forget what was passed."""
        passed = self.buffer[: self.at]
        self._line, self._column = self._after(passed)
        self.buffer, self.at = self.buffer[self.at :], 0
        data = self._source.read(size)
        if self._decoder is None:
            encoding = "utf-8-sig" if data[:1] in (b"[", b"\xef") else json_encoding(data)
            self._decoder = codecs.getincrementaldecoder(encoding)()
        try:
            self.buffer += self._decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode(error.encoding, "replace")
            self.buffer += before
            self.fail("not UTF-8", len(self.buffer), "save the file as UTF-8")
        self.has_ended = not data

    def _after(self, passed: str) -> tuple[int, int]:
        breaks = passed.count("\n")
        column = len(passed) - passed.rfind("\n") if breaks else self._column + len(passed)
        return self._line + breaks, column

    def fail(self, message: str, at: int, hint: str = "") -> NoReturn:
        """Say what is wrong, and where."""
        line, column = self._after(self.buffer[:at])
        raise InputError(message, location=Location(self._name, line, column), hint=hint)

    def next(self) -> str:
        """The next character that is no space, or nothing at the end; it is not passed."""
        while True:
            self.at = cast("re.Match[str]", _SPACE.match(self.buffer, self.at)).end()
            if self.at < len(self.buffer):
                return self.buffer[self.at]
            if self.has_ended:
                return ""
            self.more()

    def value(self) -> str:
        """The text of the value that begins here; it is passed."""
        while True:
            fault = None
            try:
                _, end = cast("tuple[object, int]", _LENIENT.raw_decode(self.buffer, self.at))
                if end < len(self.buffer) or self.has_ended:
                    text, self.at = self.buffer[self.at : end], end
                    return text
            except RecursionError:
                self.fail("it is nested too deeply", self.at)
            except json.JSONDecodeError as error:
                fault = error
                is_cut = error.msg.startswith("Unterminated") or (
                    error.pos >= len(self.buffer) - _SLACK
                )
                if self.has_ended or not is_cut:
                    self.fail(f"not JSON: {_said(error.msg)}", error.pos)
            held = len(self.buffer) - self.at
            if held > MAX_LINE_BYTES:
                self.fail(f"the row is longer than {MAX_LINE_BYTES:,} bytes", self.at)
            self.more(max(self.CHUNK, held))  # so that a long row is not read again too often
            if self.has_ended and fault is not None and fault.msg.startswith("Unterminated"):
                self.fail(f"not JSON: {_said(fault.msg)}", self.at)


def _items(text: _Text) -> Iterator[tuple[int, bytes]]:
    """The items of an array."""
    number, may_end = 0, True
    if text.next() != "[":
        text.fail("not a JSON array", text.at, "--format json reads an array of objects: [...]")
    text.at += 1
    while True:
        if may_end and text.next() == "]":
            break
        if not text.next():
            text.fail("not JSON: the array has no end", text.at)
        value, number, may_end = text.value(), number + 1, True
        # No string of JSON holds a line break, so these are spaces.
        line = value.replace("\n", " ").replace("\r", " ")
        yield number, line.encode("utf-8", "surrogatepass")
        if text.next() == ",":
            text.at += 1
            may_end = False
        elif text.next() != "]":
            text.fail("not JSON: expecting ',' or ']' after an item", text.at)
    text.at += 1
    if text.next():
        text.fail("not JSON: there is more after the array", text.at)


# ---- tables ------------------------------------------------------------------------------------


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


class _TableLines:
    """The lines of a table as text, for `csv`; counts them, and refuses what is no text."""

    def __init__(self, source: io.BufferedReader, name: str) -> None:
        self._source, self._name = source, name
        self.number = 0
        self.row_begins = 1
        self._held = 0

    def begin_row(self) -> None:
        self.row_begins, self._held = self.number + 1, 0

    def __iter__(self) -> Iterator[str]:
        encoding = "utf-8-sig"
        for line in iter(partial(self._source.readline, MAX_LINE_BYTES + 1), b""):
            self.number += 1
            self._held += len(line)
            if self._held > MAX_LINE_BYTES:
                raise InputError(
                    f"the row is longer than {MAX_LINE_BYTES:,} bytes",
                    location=Location(self._name, self.row_begins),
                    hint="is a quote opened that is never closed?",
                )
            at = line.find(b"\0")
            try:
                text = line.decode(encoding)
            except UnicodeDecodeError as error:
                self._refuse("not UTF-8", line[: error.start], "save the file as UTF-8")
            if at >= 0:
                self._refuse("a NUL is no text", line[:at], "save the file as UTF-8")
            encoding = "utf-8"
            yield text

    def _refuse(self, message: str, before: bytes, hint: str) -> NoReturn:
        column = len(before.decode(errors="replace")) + 1
        raise InputError(message, location=Location(self._name, self.number, column), hint=hint)


def _table(
    source: io.BufferedReader, name: str, reading: Reading, delimiter: str
) -> Iterator[tuple[int, bytes | InputError]]:
    """The rows of a table whose first row names the columns."""
    import csv

    # A setting of the whole process, and of the module's own making: the default would refuse
    # answers of more than 131,072 characters.
    csv.field_size_limit(max(MAX_LINE_BYTES, csv.field_size_limit()))
    lines = _TableLines(source, name)
    rows = csv.reader(iter(lines), delimiter=delimiter, strict=True)
    columns: list[str] = []
    while True:
        lines.begin_row()
        try:
            cells = next(rows, None)
        except csv.Error as error:
            raise InputError(
                f"not a row of a table: {error}",
                location=Location(name, lines.row_begins),
                hint='a cell with a quote in it is written "like ""this"""',
            ) from None
        if cells is None:
            return
        if not cells:
            continue
        if not columns:
            columns = _columns(cells, name, reading.mapping)
        elif len(cells) != len(columns):
            yield (
                lines.row_begins,
                InputError(f"the row has {len(cells)} cells, and the header {len(columns)}"),
            )
        else:
            yield lines.row_begins, _cells(columns, cells, reading.labels)


_OTHER_COMMAS = "its columns are separated by ';': save it with commas, or with tabs as a .tsv"


def _columns(header: list[str], name: str, mapping: Mapping[str, str]) -> list[str]:
    """What the columns are to us; what has no name is left out."""
    where = Location(name, 1)
    for theirs in mapping.values():
        if theirs not in header:
            raise InputError(
                f"--map: there is no column {theirs!r:.100}",
                location=where,
                hint=nearest(theirs, header),
            )
    ours = {theirs: one for one, theirs in mapping.items()}
    columns = [ours.get(one, one) for one in header]
    for place, one in enumerate(columns):
        if one and one in columns[:place]:
            raise InputError(f"two columns are {one!r:.100}", location=where, hint="rename one")
    if not {"answer", "messages"} & set(columns):
        from assay.tasks.rows import nearest_field

        raise InputError(
            "the first row names the columns, and 'answer' is not among them",
            location=where,
            hint=_OTHER_COMMAS if len(header) == 1 and ";" in header[0] else nearest_field(columns),
        )
    return columns


def _cells(columns: list[str], cells: list[str], labels: tuple[str, ...]) -> bytes | InputError:
    """A row of cells as JSON: text, but where a column can hold nothing but JSON, or labels."""
    row: dict[str, Json] = {}
    for column, cell in zip(columns, cells, strict=True):
        if not column or (not cell and column != "answer"):
            continue
        if column in AS_JSON:
            try:
                row[column] = decode_json(cell)
            except NotJsonError as error:
                return InputError(f"the column {column!r} holds JSON, and here {error}")
        else:
            row[column] = _label(cell) if column in labels else cell
    return json.dumps(row, ensure_ascii=False).encode()


def _label(cell: str) -> Json:
    """What somebody said of an answer, as far as it is true, false or a number."""
    if (word := cell.strip().lower()) in ("true", "false"):
        return word == "true"
    try:
        said = decode_json(cell)
    except NotJsonError:
        return cell
    return said if isinstance(said, int | float) else cell
