"""`Table`: rows of a table as records, so that columns, values and conditions are written once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Any, Generic, TypeAlias, TypeVar, cast

from assay.scoring.json_safe import Json
from assay.store.checks import encode_json, plain, read_json, valid_limit, valid_number
from assay.store.database import Database, Row, Scalar

R = TypeVar("R")

Where: TypeAlias = "Mapping[str, Scalar | Sequence[Scalar]]"
"""What rows must be like: a column is equal to a value, or to one of a list; ``"seq >"`` compares.
A text with ``?`` in it, and one with a tuple of values, is a condition as it stands. In a list of
rows, None leaves a condition out."""

LIVE: Where = {"deleted_at = ''": ()}
"""Not deleted. It stands in the SQL as it is, else no index of what is not deleted is used."""


class Table(Generic[R]):
    """The rows of a table; each is a record, whose fields are columns.

    A field that is a mapping is kept as JSON, and one that is a bool as 0 or 1. Names of tables and
    columns are put into SQL, values are bound: names come from this package alone.

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
        self._database = database
        self._name = name
        self._record = record
        self._layout = _layout(record, tuple(columns.items()))
        self._reads = {**_reads(record), **(reads or {})}
        self.columns = ", ".join(self._layout.values())

    def rows(
        self,
        columns: str,
        where: Where,
        *,
        order: str = "",
        limit: int | None = None,
        offset: int = 0,
    ) -> list[Row]:
        """Some columns of the rows that are so, in an order."""
        said, values = conditions(where)
        sql = f"SELECT {columns} FROM {self._name}{said}"
        sql += f" ORDER BY {order}" if order else ""
        if limit is not None:
            sql += " LIMIT ? OFFSET ?"
            values += [limit, offset]
        return self._database.rows(sql, *values)

    def select(
        self, where: Where, *, order: str = "", limit: int | None = None, offset: int = 0
    ) -> list[R]:
        """The rows that are so, in an order."""
        found = self.rows(self.columns, where, order=order, limit=limit, offset=offset)
        return [self.read(row) for row in found]

    def page(self, where: Where, *, order: str, limit: int, offset: int = 0) -> list[R]:
        """A page of the rows that are so.

        Raises:
            InputError: Unless it has 1 to 1,000, or for an impossible offset.
        """
        limit, offset = valid_limit(limit), valid_number(offset, "offset")
        return self.select(where, order=order, limit=limit, offset=offset)

    def find(self, where: Where, *, order: str = "") -> R | None:
        """The first row that is so, if there is one."""
        found = self.select(_whole(where), order=order, limit=1)
        return found[0] if found else None

    def column(self, name: str, where: Where) -> list[Any]:
        """The values of one column in the rows that are so."""
        return [value for (value,) in self.rows(name, _whole(where))]

    def count(self, where: Where) -> int:
        """How many rows are so."""
        return self.rows("count(*)", where)[0][0]

    def read(self, row: Row) -> R:
        """The record behind the values of `columns`."""
        said = dict(zip(self._layout, row, strict=True))
        for field, read in self._reads.items():
            said[field] = read(said[field])
        return self._record(**said)

    def written(self, record: R, *but: str) -> dict[str, Scalar]:
        """The values of a record by column, but for its ``seq``, and some fields."""
        return {
            column: _written(getattr(record, field))
            for field, column in self._layout.items()
            if field != "seq" and field not in but
        }

    def insert(self, values: Mapping[str, Scalar]) -> int:
        """Append a row inside a transaction; its ``seq``."""
        return self._database.insert(self._inserting(values), *values.values())

    def insert_new(self, values: Mapping[str, Scalar], *, unless: str) -> bool:
        """Append a row unless there is one of the same, such as ``"(key)"``; whether it was."""
        sql = f"{self._inserting(values)} ON CONFLICT {unless} DO NOTHING"
        return bool(self._database.change(sql, *values.values()))

    def insert_many(self, records: Sequence[R]) -> None:
        """Append rows inside a transaction."""
        rows = [self.written(record) for record in records]
        if rows:
            sql = f"INSERT INTO {self._name} ({', '.join(rows[0])})"
            self._database.insert_many(sql, [tuple(row.values()) for row in rows])

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

    def _inserting(self, values: Mapping[str, Scalar]) -> str:
        places = ", ".join("?" * len(values))
        return f"INSERT INTO {self._name} ({', '.join(values)}) VALUES ({places})"


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
    return (f" WHERE {' AND '.join(said)}" if said else ""), [_written(value) for value in values]


def _whole(where: Where) -> Where:
    """The same, where no condition may be left out."""
    for name, value in where.items():
        if value is None:
            raise TypeError(f"nothing is said of {name!r}")
    return where


def _written(value: Scalar | Mapping[str, Json]) -> Scalar:
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, Mapping):
        return encode_json(value)
    return int(value) if isinstance(value, bool) else value


@cache
def _layout(record: type, renamed: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """The columns of a record by field."""
    said = dict(renamed)
    return {entry.name: said.get(entry.name, entry.name) for entry in fields(record)}


@cache
def _reads(record: type) -> Mapping[str, Callable[[Any], object]]:
    """How the values of some fields are read."""
    kinds = {"bool": bool, "Mapping": read_json, "dict": read_json}
    found = {entry.name: kinds.get(str(entry.type).partition("[")[0]) for entry in fields(record)}
    return {name: read for name, read in found.items() if read is not None}
