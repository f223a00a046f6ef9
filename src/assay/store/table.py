"""`Table`: rows of a table as records, so that columns, values and conditions are written once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Any, Generic, TypeAlias, TypeVar, cast

from assay.scoring.json_safe import Json
from assay.store.checks import encode_json, plain, read_json
from assay.store.database import Database, Query, Row, Scalar, inserting, size_of
from assay.store.pages import PAGE_BYTES, Order, Page, Stretch, written

R = TypeVar("R")
T = TypeVar("T")

Where: TypeAlias = "Mapping[str, Scalar | Sequence[Scalar]]"
"""What rows must be like: a column is equal to a value, or to one of a list; ``"seq >"`` compares.
A text with ``?`` in it, and one with a tuple of values, is a condition as it stands. In a list of
rows, None leaves a condition out."""

LIVE: Where = {"deleted_at = ''": ()}
"""Not deleted. It stands in the SQL as it is, else no index of what is not deleted is used."""


class Rows:
    """Rows of a table, or of a query in parentheses.

    Names of tables and columns are put into SQL, values are bound: names come from this package
    alone.

    Args:
        database: Where they are.
        source: Name of the table, or the query.
        bound: Values of the places in the query.
        wide: Names of columns that may be long.
    """

    def __init__(
        self,
        database: Database,
        source: str,
        bound: Sequence[Scalar] = (),
        wide: Sequence[str] = (),
    ) -> None:
        self._database = database
        self._name = source
        self._bound = bound
        self._wide = wide

    def rows(
        self,
        columns: str,
        where: Where,
        *,
        group: str = "",
        order: str = "",
        limit: int | None = None,
        offset: int = 0,
    ) -> list[Row]:
        """Some columns of the rows that are so, in an order."""
        said, values = conditions(where)
        sql = f"SELECT {columns} FROM {self._name}{said}"
        sql += f" GROUP BY {group}" if group else ""
        sql += f" ORDER BY {order}" if order else ""
        if limit is not None:
            sql += " LIMIT ? OFFSET ?"
            values += [limit, offset]
        return self._database.rows(sql, *self._bound, *values)

    def within(
        self, columns: str, where: Where, order: str, *, limit: int, offset: int = 0
    ) -> list[Row]:
        """The same, but no more of them than hold `PAGE_BYTES`."""
        said, values = conditions(where)
        query = Query(columns, f"FROM {self._name}{said}", order, self._wide)
        return self._database.rows_within(PAGE_BYTES, query, *self._bound, *values, limit, offset)

    def part(
        self,
        columns: str,
        where: Where,
        order: Order,
        wanted: Stretch,
        read: Callable[[list[Row]], Sequence[T]],
        *,
        counted: bool = True,
    ) -> Page[T]:
        """A part of the list of the rows that are so.

        Args:
            columns: What is read of each.
            where: What they must be like.
            order: What they are sorted by.
            wanted: Which part.
            read: Makes items of rows: of the first ones, if those hold too much.
            counted: Whether to count the list, where it begins.
        """
        place, many = order.place(wanted.after), len(order.kinds)
        seen = int(place[0]) if place and not many else 0
        there: Where = {**where, order.behind: place} if place and many else where
        shown = f"{order.by}, {columns}" if many else columns
        offset = wanted.offset + seen
        rows = self.within(shown, there, order.sql, limit=wanted.limit + 1, offset=offset)
        items = read([row[many:] for row in rows[: wanted.limit]])
        count = len(items)
        is_more = count < len(rows)
        if rows and not is_more and sum(map(size_of, rows)) >= PAGE_BYTES:
            is_more = bool(self.rows("1", there, order=order.sql, limit=1, offset=offset + count))
        total = self.rows("count(*)", where)[0][0] if counted and not place else None
        if not (is_more and count):
            return Page(items, total)
        return Page(items, total, written(rows[count - 1][:many] or (offset + count,)))

    def column(self, name: str, where: Where) -> list[Any]:
        """The values of one column in the rows that are so."""
        return [value for (value,) in self.rows(name, _whole(where))]

    def count(self, where: Where) -> int:
        """How many rows are so."""
        return self.rows("count(*)", where)[0][0]


class Table(Rows, Generic[R]):
    """The rows of a table; each is a record, whose fields are columns.

    A field that is a mapping is kept as JSON, and one that is a bool as 0 or 1.

    Args:
        database: Where the table is.
        name: Its name.
        record: What a row is read as: a dataclass.
        reads: How the values of fields are read that are no plain JSON.
        columns: Names of columns that are called otherwise than their field.
    """

    def __init__(
        self,
        database: Database,
        name: str,
        record: type[R],
        reads: Mapping[str, Callable[[Any], object]] | None = None,
        /,
        **columns: str,
    ) -> None:
        super().__init__(database, name)
        self._record = record
        layout = _layout(record, tuple(columns.items()))
        self._columns, self._reads, self.columns, self._wide = layout
        if reads:
            self._reads = {**self._reads, **reads}

    def select(
        self, where: Where, *, order: str = "", limit: int | None = None, offset: int = 0
    ) -> list[R]:
        """The rows that are so, in an order."""
        found = self.rows(self.columns, where, order=order, limit=limit, offset=offset)
        return [self.read(row) for row in found]

    def page(self, where: Where, order: Order, wanted: Stretch, *, counted: bool = True) -> Page[R]:
        """A part of the list of the rows that are so; see `part`."""

        def read(rows: list[Row]) -> list[R]:
            return [self.read(row) for row in rows]

        return self.part(self.columns, where, order, wanted, read, counted=counted)

    def find(self, where: Where, *, order: str = "") -> R | None:
        """The first row that is so, if there is one."""
        found = self.select(_whole(where), order=order, limit=1)
        return found[0] if found else None

    def read(self, row: Row) -> R:
        """The record behind the values of `columns`."""
        said = dict(zip(self._columns, row, strict=True))
        for field, read in self._reads.items():
            said[field] = read(said[field])
        return self._record(**said)

    def written(self, record: R, *but: str) -> dict[str, Scalar]:
        """The values of a record by column, but for its ``seq``, and some fields."""
        return {
            column: _written(getattr(record, field))
            for field, column in self._columns.items()
            if field != "seq" and field not in but
        }

    def insert(self, values: Mapping[str, Scalar]) -> None:
        """Append a row inside a transaction."""
        self._database.change(inserting(self._name, tuple(values)), *values.values())

    def insert_new(self, values: Mapping[str, Scalar], *, unless: str) -> bool:
        """Append a row unless there is one of the same, such as ``"(key)"``; whether it was."""
        sql = f"{inserting(self._name, tuple(values))} ON CONFLICT {unless} DO NOTHING"
        return bool(self._database.change(sql, *values.values()))

    def insert_many(self, rows: Sequence[Mapping[str, Scalar]]) -> None:
        """Append rows of the same columns inside a transaction."""
        if rows:
            values = [tuple(row.values()) for row in rows]
            self._database.insert_many(self._name, tuple(rows[0]), values)

    def update(self, where: Where, **values: Scalar) -> int:
        """Change columns of the rows that are so; how many there were."""
        sql, bound = conditions(_whole(where))
        sets = ", ".join(f"{column} = ?" for column in values)
        said = map(_written, values.values())
        return self._database.change(f"UPDATE {self._name} SET {sets}{sql}", *said, *bound)

    def delete(self, where: Where) -> int:
        """Remove the rows that are so; how many there were."""
        sql, values = conditions(_whole(where))
        return self._database.change(f"DELETE FROM {self._name}{sql}", *values)


def conditions(where: Where) -> tuple[str, list[Scalar]]:
    """The WHERE of a statement, and what is bound in it."""
    said, values = list[str](), list[Scalar]()
    for name, value in where.items():
        if isinstance(value, tuple):
            said.append(name)
            values += value
        elif isinstance(value, list):
            said.append(f"{name} IN ({', '.join('?' * len(value)) or 'NULL'})")
            values += value
        elif value is not None:
            said.append(name if "?" in name else f"{name} ?" if " " in name else f"{name} = ?")
            values.append(cast("Scalar", value))
    where_said = f" WHERE {' AND '.join(said)}" if said else ""
    return where_said, [_written(value) for value in values]


def among(name: str, numbers: Iterable[int]) -> Where:
    """A column is one of some numbers: they may be more than can be bound."""
    said = ", ".join(f"{number:d}" for number in numbers)  # whole numbers, and nothing else
    return {f"{name} IN ({said or 'NULL'})": ()}


def _whole(where: Where) -> Where:
    """The same, where no condition may be left out."""
    for name, value in where.items():
        if value is None:
            raise TypeError(f"nothing is said of {name!r}")
    return where


def _written(value: Scalar | Mapping[str, Json]) -> Scalar:
    kind = type(value)
    if kind is str:
        return plain(cast("str", value))
    if kind is bool:
        return int(cast("bool", value))
    return encode_json(value) if isinstance(value, Mapping) else value


@cache
def _layout(
    record: type, renamed: tuple[tuple[str, str], ...]
) -> tuple[Mapping[str, str], Mapping[str, Callable[[Any], object]], str, Sequence[str]]:
    """The columns of a record by field, how the values of some fields are read, and a selection.

    Also which columns may be long.
    """
    said = dict(renamed)
    columns = {entry.name: said.get(entry.name, entry.name) for entry in fields(record)}
    kinds = {"bool": bool, "Mapping": read_json, "dict": read_json}
    found = {entry.name: kinds.get(str(entry.type).partition("[")[0]) for entry in fields(record)}
    reads = {name: read for name, read in found.items() if read is not None}
    wide = [columns[name].rpartition(".")[2] for name, read in reads.items() if read is read_json]
    return columns, reads, ", ".join(columns.values()), wide
