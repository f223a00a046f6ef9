"""Columns as files hold them, Parquet and Arrow, read as rows: a batch of them in memory at a time.

What a column holds becomes the JSON that a row of JSONL would have: text, numbers, true and false,
lists, objects, null. Dates and times are text in ISO 8601, decimals text with all their digits.
Bytes are no text, so that a column of them is refused; NaN and infinities are no numbers.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, time
from decimal import Decimal
from importlib import import_module
from math import isfinite
from typing import Any, Literal, TypeAlias

from assay.errors import InputError, Location, MissingExtraError
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import NotJsonError, decode_json
from assay.types.picture import Picture

TableKind = Literal["parquet", "arrow"]
TABLE_NAMES = (".parquet", ".arrow", ".feather")
"""How files of columns are called."""

AS_JSON = frozenset({"messages", "metadata"})
"""Columns whose text is JSON: nothing else could stand there."""

_ROWS = 1_024
"""Rows of a batch: what is in memory at a time, beside a column of a row group of Parquet."""
_BYTES = 32 << 20
"""Of a batch whose rows are so long that fewer of them would fill the memory."""
_SPREAD = 64 << 20
"""The same where a file holds a long text once, and says that rows have it."""


Batch: TypeAlias = Any
"""A ``pyarrow.RecordBatch``: pyarrow has no types."""


def arrow(module: str = "pyarrow") -> Any:  # noqa: ANN401 - it has no types
    """A module of pyarrow.

    Raises:
        MissingExtraError: If it is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError("reading and writing Parquet and Arrow", extra="data") from error


def load_arrow() -> None:
    """Import all of pyarrow that is used: once, in the process that others are forked from.

    Where pandas is installed, the first array imports it, which takes a second.
    """
    arrow("pyarrow.parquet")
    arrow("pyarrow.ipc")
    arrow("pyarrow.types")
    arrow().array([""])


def kind_of_table(magic: bytes) -> TableKind | None:
    """What kind of table begins with these (at least six) bytes."""
    if magic.startswith(b"PAR1"):
        return "parquet"
    # A stream begins with a mark and the length of its schema.
    is_arrow = magic.startswith((b"ARROW1", b"\xff\xff\xff\xff"))
    return "arrow" if is_arrow else None


class ColumnFile:
    """A file of columns.

    Args:
        path: Where it is.
        name: What people call it.
        pictures: The column that may have bytes, beside ``image`` and ``images``.

    Raises:
        InputError: If it cannot be read, or has a column that no row can have.
        MissingExtraError: If pyarrow is not installed.
    """

    def __init__(self, path: str, name: str, pictures: str = "images") -> None:
        self._path, self._name = path, name
        with _told(name):
            # Not mapped: a mapped file that somebody cuts off meanwhile kills who reads it.
            self._source: Any = arrow().OSFile(path)
            magic = bytes(self._source.read(8))
            self._source.seek(0)
            self._is_parquet = magic.startswith(b"PAR1")
            self._file = self._open(is_file=magic.startswith(b"ARROW1"))
        check_columns(self.schema, name, pictures)

    def _open(self, *, is_file: bool) -> Any:  # noqa: ANN401 - see `arrow`
        if self._is_parquet:
            return arrow("pyarrow.parquet").ParquetFile(self._source)
        ipc = arrow("pyarrow.ipc")
        return ipc.open_file(self._source) if is_file else ipc.open_stream(self._source)

    def close(self) -> None:
        """Close it."""
        self._source.close()

    @property
    def schema(self) -> Any:  # noqa: ANN401 - see `arrow`
        """Its ``pyarrow.Schema``."""
        return self._file.schema_arrow if self._is_parquet else self._file.schema

    def count(self) -> int:
        """How many rows it has; the file is at its end then, if it is a stream."""
        with _told(self._name):
            if self._is_parquet:
                return int(self._file.metadata.num_rows)
            return sum(batch.num_rows for batch in self._stored())

    def batches(
        self, start: int = 0, size: int | None = None, columns: Collection[str] = ()
    ) -> Iterator[tuple[int, Batch]]:
        """Its rows, or some of them, each batch with the place of its first row, from 0 up.

        With `columns` they have what is there of these alone, or inside of them.
        """
        roots = {one.partition(".")[0] for one in columns}.union(columns)
        names: list[str] = self.schema.names
        # Without any column, how many rows there are would be lost.
        wanted = ([one for one in names if one in roots] or names[:1]) if columns else None
        place, end = 0, None if size is None else start + size
        for batch in self._from(start, wanted):
            if isinstance(batch, int):
                place = batch
                continue
            if not self._is_parquet and place + batch.num_rows > start:
                # Where things are in memory is as the file says, which may be anywhere.
                with _told(self._name):
                    batch.validate(full=True)
            longest = sum(map(_longest, batch.columns))
            rows = max(1, min(_ROWS, _SPREAD // (1 + longest)))
            for offset in range(0, batch.num_rows, rows):
                first, last = place + offset, place + min(offset + rows, batch.num_rows)
                first, last = max(first, start), last if end is None else min(last, end)
                if first < last:
                    yield first, batch.slice(first - place, last - first)
            place += batch.num_rows
            if end is not None and place >= end:
                return

    def _from(self, start: int, columns: list[str] | None) -> Iterator[Batch | int]:
        """What holds the row at `start` and all after it; before it the place of its first row."""
        with _told(self._name):
            if not self._is_parquet:
                for batch in self._stored():
                    yield batch if columns is None else batch.select(columns)
                return
            place = 0
            for group in range(self._file.metadata.num_row_groups):
                rows = int(self._file.metadata.row_group(group).num_rows)
                if place + rows > start:
                    yield place
                    yield from self._file.iter_batches(
                        batch_size=self._fitting(group, columns),
                        row_groups=[group],
                        columns=columns,
                    )
                place += rows

    def _fitting(self, group: int, columns: list[str] | None) -> int:
        """How many rows of a row group fit into the memory."""
        found = self._file.metadata.row_group(group)
        average = 1 + int(found.total_byte_size) // max(1, int(found.num_rows))
        chunks = (found.column(number) for number in range(found.num_columns))
        shared: list[str] = [
            one.path_in_schema
            for one in chunks
            if one.has_dictionary_page
            and one.physical_type == "BYTE_ARRAY"
            and (
                columns is None
                or f"{one.path_in_schema}.".startswith(tuple(f"{name}." for name in columns))
            )
        ]
        longest = 0
        if shared:  # texts that a few bytes repeat: of one row, with all that the others may have
            file = arrow("pyarrow.parquet").ParquetFile(
                self._source, metadata=self._file.metadata, read_dictionary=shared
            )
            for batch in file.iter_batches(batch_size=1, row_groups=[group], columns=shared):
                longest = sum(map(_longest, batch.columns))
                break
        return max(1, min(_ROWS, _BYTES // average, _SPREAD // (1 + longest)))

    def _stored(self) -> Iterator[Batch]:
        file = self._file
        if not hasattr(file, "num_record_batches"):
            yield from file
            return
        for number in range(file.num_record_batches):
            yield file.get_batch(number)


def _longest(column: Any) -> int:  # noqa: ANN401 - see `arrow`
    """How many bytes the longest text has that any row may have of a dictionary."""
    types = arrow("pyarrow.types")
    if types.is_dictionary(column.type):
        texts = column.dictionary
        if types.is_string(texts.type) or types.is_large_string(texts.type):
            compute = arrow("pyarrow.compute")
            return int(compute.max(compute.binary_length(texts)).as_py() or 0)
        return int(texts.nbytes) // max(1, len(texts))
    if types.is_struct(column.type):
        return sum(map(_longest, column.flatten()))
    if any(is_one(column.type) for is_one in (types.is_list, types.is_large_list, types.is_map)):
        return _longest(column.values)
    return 0


@contextmanager
def _told(name: str) -> Generator[None]:
    """Say of a fault in a file which file it is."""
    damaged = arrow().ArrowException  # asked for now: a reading that is given up imports nothing
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot read {name}: {_first_line(error)}") from error
    except damaged as error:
        raise InputError(
            f"{name} is damaged or not a table: {_first_line(error)}",
            hint="is it complete? A truncated copy has no footer",
        ) from error


def _first_line(error: BaseException) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text.strip().partition("\n")[0][:200]


def check_columns(
    schema: Any,  # noqa: ANN401 - see `arrow`
    name: str,
    pictures: str = "images",
) -> None:
    """See that rows can have all columns of a table.

    Args:
        schema: Its ``pyarrow.Schema``.
        name: What people call it.
        pictures: The column that may have bytes, beside ``image`` and ``images``.

    Raises:
        InputError: For one of bytes, durations or anything else that JSON has no word for.
    """
    _check_names(schema.names, "", name)
    for field in schema:
        _check_type(field.name, field.type, name, pictures)


def _check_names(names: Sequence[str], inside: str, file: str) -> None:
    """Refuse two columns of one name: of the two, only one could be graded."""
    twins = [one for one, times in Counter(names).items() if times > 1]
    if twins:
        raise InputError(
            f"two columns are called {inside + twins[0]!r:.100}",
            location=Location(file=file),
            hint="rename one",
        )


def _check_type(
    column: str,
    given: Any,  # noqa: ANN401 - see `arrow`
    name: str,
    pictures: str,
) -> None:
    """Refuse what no row can hold, wherever in a column it stands."""
    types = arrow("pyarrow.types")
    if _holds_pictures(column, given, pictures):
        return
    if types.is_dictionary(given):
        _check_type(column, given.value_type, name, pictures)
    elif types.is_nested(given):
        if types.is_struct(given):
            _check_names([one.name for one in given], f"{column}.", name)
        for number in range(given.num_fields):
            inner = given.field(number)
            _check_type(f"{column}.{inner.name}", inner.type, name, pictures)
    elif (
        (is_bare := _is_bytes(given) and "." not in column)
        or _is_bytes(given)
        or types.is_fixed_size_binary(given)
        or types.is_duration(given)
        or types.is_interval(given)
        or isinstance(given, arrow().BaseExtensionType)  # which may run code of its own
        or str(given).startswith("binary_view")
    ):
        raise InputError(
            f"the column {column!r:.100} holds {given}, which no row can have",
            location=Location(file=name),
            hint="write the table without it, or as text"
            + (f"; of pictures: --map images={column:.100}" if is_bare else ""),
        )


def _holds_pictures(column: str, given: Any, pictures: str) -> bool:  # noqa: ANN401 - see `arrow`
    """Whether a column has bytes as datasets have pictures: ``{bytes, path}``, or bare."""
    types = arrow("pyarrow.types")
    if types.is_list(given) or types.is_large_list(given):
        given = given.value_type
    if types.is_struct(given):
        inner = {one.name: one.type for one in map(given.field, range(given.num_fields))}
        return set(inner) == {"bytes", "path"} and _is_bytes(inner["bytes"])
    return column in ("image", "images", pictures) and _is_bytes(given)


def _is_bytes(given: Any) -> bool:  # noqa: ANN401 - see `arrow`
    types = arrow("pyarrow.types")
    return types.is_binary(given) or types.is_large_binary(given)


def lines_of(batch: Batch, names: Mapping[str, str]) -> list[bytes | InputError]:
    """The rows of a batch as JSON; or what is wrong with one.

    Args:
        batch: Some rows.
        names: Names of rows' fields, each with that of its column, where they differ.
    """
    text = {names.get(one, one) for one in AS_JSON}
    batch = _without_nanoseconds(batch)
    try:
        rows = batch.to_pylist()
    except Exception as error:  # a date that Python has not, bytes that are no text: whose row's?
        if batch.num_rows > 1:
            return [
                line for at in range(batch.num_rows) for line in lines_of(batch.slice(at, 1), names)
            ]
        return [InputError(f"{_unreadable(batch)} that cannot be read: {_first_line(error)}")]
    return [_line(row, text) for row in rows]


def _unreadable(batch: Batch) -> str:
    for name in batch.schema.names:
        try:
            batch.column(name).to_pylist()
        except Exception:  # the boundary, as above
            return f"the column {name!r:.100} holds something"
    return "a column holds something"


def _without_nanoseconds(batch: Batch) -> Batch:
    """A batch whose times Python can hold: those of nanoseconds, to the microsecond."""
    types = arrow("pyarrow.types")
    for number, field in enumerate(batch.schema):
        if types.is_timestamp(field.type) and field.type.unit == "ns":
            smaller = arrow().timestamp("us", field.type.tz)
        elif types.is_time64(field.type) and field.type.unit == "ns":
            smaller = arrow().time64("us")
        else:
            continue
        column = batch.column(number).cast(smaller, safe=False)
        batch = batch.set_column(number, field.name, column)
    return batch


def _line(row: dict[str, object], text: set[str]) -> bytes | InputError:
    for column in text & row.keys():
        if isinstance(value := row[column], str):
            try:
                row[column] = decode_json(value)
            except NotJsonError as error:
                return InputError(f"the column {column!r} must hold JSON, and here {error}")
    try:
        return _ENCODER.encode(row).encode("utf-8", "surrogatepass")
    except (ValueError, TypeError) as error:
        column = next((name for name, value in row.items() if not _is_plain(value)), "")
        what = "NaN or an infinity" if isinstance(error, ValueError) else str(error)
        return InputError(f"the column {column!r:.100} holds {what}, which no row can have")


def _other(value: object) -> Json:
    if isinstance(value, Decimal) and value.is_finite():
        return str(value)
    if isinstance(value, date | time):  # a datetime is a date, and so is that of pandas
        return value.isoformat()
    if isinstance(value, bytes):
        try:
            return Picture(value).url
        except InputError as error:
            raise TypeError(f"bytes of which, as a picture, {error.message}") from None
    raise TypeError(f"a {type(value).__name__}")


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_other)


def _is_plain(value: object) -> bool:
    if isinstance(value, float):
        return isfinite(value)
    try:
        _ENCODER.encode(value)
    except (ValueError, TypeError):
        return False
    return True
