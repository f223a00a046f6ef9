"""`Database`: one connection, to a SQLite file or a PostgreSQL server, with transactions."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

from assay.errors import InputError, StoreError
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json, plain

if TYPE_CHECKING:
    from assay.store.postgres import PostgresEngine
    from assay.store.sqlite import SqliteEngine

_SCHEMES = ("postgresql://", "postgres://")
_DEFAULT_HOME = ".assay"


def moment(at: datetime) -> str:
    """A time as it is stored: ISO 8601 in UTC, to the millisecond: texts sort like times."""
    if at.utcoffset() is None:
        raise InputError(f"the time {at} has no zone", hint="use datetime.now(UTC)")
    at = at.astimezone(UTC).replace(tzinfo=None)
    return f"{at.isoformat(timespec='milliseconds')}Z"


class Database:
    """One connection to the database; made by `Database.open`, closed by ``with``.

    It belongs to the thread and the process that opened it; others open their own. Several may
    write to one database at once.

    Attributes:
        home: The directory of what is kept as files, such as snapshots.
        clock: Tells the time of what is stored.
    """

    def __init__(self, engine: Engine, home: str, location: str) -> None:
        self.home = home
        self._location = location
        self.clock: Callable[[], datetime] = lambda: datetime.now(UTC)
        self._engine = engine
        self._process = os.getpid()
        self._thread = threading.get_ident()
        self._is_writing = False

    @classmethod
    def open(cls, location: str | os.PathLike[str], *, home: str = "") -> Database:
        """Open a database; its tables are made where there are none.

        Args:
            location: A directory, usually ``.assay``, for a SQLite file in it; or
                ``postgresql://user:password@host:port/database``. There the password may also come
                from the environment variable ``PGPASSWORD``.
            home: Where files are kept beside a PostgreSQL database; ``.assay`` where not given.

        Raises:
            InputError: For a location that is neither.
            MissingExtraError: For PostgreSQL, where its driver is not installed.
            StoreError: If the directory cannot be used (not a directory, read-only, full, on a
                network file system), the server cannot be reached or refuses, or the database is
                damaged, foreign, or of an older or newer assay.
        """
        place = os.fspath(location)
        if place.startswith(_SCHEMES):
            from assay.store.postgres import PostgresEngine

            return cls(PostgresEngine.open(place), home or _DEFAULT_HOME, place)
        if "://" in place:
            raise InputError(
                f"a store cannot be at {place.partition('://')[0]}://...",
                hint="give a directory, or postgresql://user@host/database",
            )
        from assay.store.sqlite import SqliteEngine

        return cls(SqliteEngine.open(Path(place)), place, place)

    def another(self) -> Database:
        """One more connection to the same database, for the thread that asks for it."""
        return Database.open(self._location, home=self.home)

    @property
    def place(self) -> str:
        """The file or the server's address, as messages name it: without a password."""
        return self._engine.place

    @property
    def is_shared(self) -> bool:
        """Whether other machines may write to it."""
        return "://" in self.place

    def now(self) -> str:
        """The time of what is stored now; see `moment`."""
        return moment(self.clock())

    def close(self) -> None:
        """Give the database back; nothing can be read or written afterwards."""
        if os.getpid() == self._process:  # what a fork closes, its parent loses: locks, the session
            self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def check(self) -> None:
        """Look through a SQLite file for damage, which takes a second for each gigabyte or so."""
        self._require_owner()
        self._engine.check()

    def rows(self, sql: str, *values: Scalar) -> list[Row]:
        """Read."""
        self._require_owner()
        return self._engine.query(sql, values)

    def rows_within(self, most_bytes: int, query: Query, *values: Scalar) -> list[Row]:
        """Read only as many rows as hold so many bytes, but at least one where there is one."""
        self._require_owner()
        return self._engine.query_within(most_bytes, query, values)

    def value(self, sql: str, *values: Scalar) -> Any:  # noqa: ANN401 - the schema says what it is
        """The first value of the first row that is read; None without one."""
        rows = self.rows(sql, *values)
        return rows[0][0] if rows else None

    @property
    def is_writing(self) -> bool:
        """Whether this is inside a `writing` block, in which others may have to wait."""
        return self._is_writing

    @contextmanager
    def writing(self) -> Generator[None]:
        """Everything in the block lands together, or nothing does; a block inside one joins it.

        SQLite lets one write at a time. PostgreSQL does not: there a block begins by changing the
        row that it is about, which makes others that want to do the same wait.
        """
        self._require_owner()
        if self._is_writing:
            yield
            return
        self._engine.begin()
        self._is_writing = True
        try:
            yield
            self._engine.commit()
        except BaseException:
            self._engine.roll_back()
            raise
        finally:
            self._is_writing = False

    def change(self, sql: str, *values: Scalar) -> int:
        """Run a statement inside a `writing` block; the number of rows that it changed."""
        self._require_writing()
        return self._engine.change(sql, values)

    def insert_many(
        self, table: str, columns: tuple[str, ...], rows: Sequence[Sequence[Scalar]]
    ) -> None:
        """Insert rows inside a `writing` block."""
        self._require_writing()
        self._engine.insert_many(table, columns, rows)

    def insert_numbered(
        self, table: str, columns: tuple[str, ...], rows: Sequence[Sequence[Scalar]]
    ) -> Sequence[int]:
        """Insert rows as `insert_many` does; their ``seq``, in the same order."""
        self._require_writing()
        return self._engine.insert_numbered(table, columns, rows)

    def _require_writing(self) -> None:
        if not self._is_writing:
            raise StoreError(f"the store {self.place} was misused: a write outside a transaction")

    def _require_owner(self) -> None:
        if os.getpid() != self._process:
            raise StoreError(
                f"the store {self.place} was opened by another process",
                hint="open it again after a fork: a connection does not survive one",
            )
        if threading.get_ident() != self._thread:
            raise StoreError(
                f"the store {self.place} was misused: it was opened by another thread",
                hint="open one Store per thread, and do not use it once it is closed",
            )


class Record:
    """What a table keeps, as a frozen dataclass."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Json]:
        """The record as plain JSON, with a key for every field."""
        written: dict[str, Json] = {}
        for name in _names(type(self)):
            value: object = getattr(self, name)
            inner = isinstance(value, Record | Graded)
            written[name] = value.to_dict() if inner else plain(value)
        return written


@cache
def _names(record: type[Record]) -> tuple[str, ...]:
    """The names of its fields, which are many rows'."""
    return tuple(entry.name for entry in fields(record))  # pyright: ignore[reportArgumentType] - subclasses are dataclasses


Scalar: TypeAlias = "str | int | float | bytes | None"
"""What a column holds. Truth values are stored as the integers 0 and 1."""

Row: TypeAlias = "tuple[Any, ...]"
"""A row as it is read; the schema says what stands in each column."""


class Query(NamedTuple):
    """Some rows in an order, in SQL.

    Attributes:
        columns: What is read of each.
        source: Where from, with conditions: ``FROM ...``.
        order: What they are sorted by.
        wide: Those of the columns that may be long.
    """

    columns: str
    source: str
    order: str
    wide: Sequence[str]


def size_of(row: Row) -> int:
    """Bytes of the texts of a row."""
    texts = (value for value in row if isinstance(value, str))
    return sum(len(text) if text.isascii() else len(text.encode()) for text in texts)


SCHEMA = 8
"""The number of what stands in ``schema.sql``; whoever changes a table there counts on."""

SCHEMA_FILE = Path(__file__).with_name("schema.sql")

_MOVE = (
    "choose another store; to take runs along, `assay runs export` them with the assay that wrote "
    "it, and `assay runs import` them"
)


Engine: TypeAlias = "SqliteEngine | PostgresEngine"
"""One connection to one kind of database; all kinds have the same methods.

SQL is plain and the same for all; a value's place is marked ``?``, and neither that sign nor
``%`` stands anywhere else. What goes wrong is a `StoreError` that says what to do.
"""


def is_new(version: int, place: str) -> bool:
    """Whether a database of that version has no tables yet: such a one is 0."""
    if version not in (0, SCHEMA):
        age, hint = (
            ("a newer", "upgrade assay, or choose another store")
            if version > SCHEMA
            else ("an older", _MOVE)
        )
        raise StoreError(
            f"{place} was written by {age} assay (schema {version}, this one reads {SCHEMA})",
            hint=hint,
        )
    return version == 0


@lru_cache(maxsize=256)
def inserting(table: str, columns: tuple[str, ...]) -> str:
    """The statement that inserts one row."""
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
