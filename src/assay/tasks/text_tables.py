"""Rows of CSV and TSV as JSON: their cells are text."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import NoReturn

from assay.errors import InputError, Location, nearest
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import NotJsonError, decode_json
from assay.tasks.json_rows import MAX_LINE_BYTES
from assay.tasks.tables import AS_JSON

_GROUP = "group"


def is_moved(ours: str, theirs: str) -> bool:
    """Whether a field that is mapped loses its own name; what names a group may be a prompt, too.

    An id that names a group is of several rows, and so no row's id.
    """
    return ours != _GROUP or theirs in (_GROUP, "id")


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


def table_rows(
    source: io.BufferedReader,
    name: str,
    delimiter: str,
    *,
    mapping: Mapping[str, str],
    labels: tuple[str, ...],
) -> Iterator[tuple[int, bytes | InputError]]:
    """The rows of a table whose first row names the columns.

    Args:
        source: Its bytes.
        name: What people call it.
        delimiter: What stands between cells.
        mapping: Fields of rows, each with the name of its column.
        labels: Columns whose cells may be true, false or numbers.

    Raises:
        InputError: If it is no such table.
    """
    import csv

    # A setting of the whole process, and of the module's own making: the default would refuse
    # answers of more than 131,072 characters.
    csv.field_size_limit(max(MAX_LINE_BYTES, csv.field_size_limit()))
    lines = _TableLines(source, name)
    rows = csv.reader(iter(lines), delimiter=delimiter, strict=True)
    columns: list[str] = []
    width, copied = 0, None
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
            columns = _columns(cells, name, mapping)
            width = len(cells)
            copied = cells.index(mapping[_GROUP]) if len(columns) > width else None
        elif len(cells) != width:
            yield (
                lines.row_begins,
                InputError(f"the row has {len(cells)} cells, and the header {width}"),
            )
        else:
            if copied is not None:
                cells.append(cells[copied])
            yield lines.row_begins, _cells(columns, cells, labels)


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
    ours = {theirs: one for one, theirs in mapping.items() if is_moved(one, theirs)}
    columns = [ours.get(one, one) for one in header]
    if not is_moved(_GROUP, mapping.get(_GROUP, _GROUP)):
        columns.append(_GROUP)
    for place, one in enumerate(columns):
        if one and one in columns[:place]:
            raise InputError(
                f"two columns are called {one!r:.100}", location=where, hint="rename one"
            )
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
                return InputError(f"the column {column!r} must hold JSON, and here {error}")
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
