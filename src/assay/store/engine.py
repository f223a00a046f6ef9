"""What every database must be able to do: the seam between our SQL and SQLite or PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

from assay.errors import StoreError

__all__ = ["Engine", "Row", "Scalar", "pending_migrations"]

Scalar: TypeAlias = "str | int | float | bytes | None"
"""What a column holds. Truth values are stored as the integers 0 and 1."""

Row: TypeAlias = "tuple[Scalar, ...]"

_MIGRATIONS = Path(__file__).parent / "migrations"


class Engine(Protocol):
    """One connection to one kind of database.

    SQL is plain and the same for all; a value's place is marked ``?``, and neither that sign nor
    ``%`` stands anywhere else. What goes wrong is a `StoreError` that says what to do.
    """

    @property
    def place(self) -> str:
        """The database as messages name it, without a password."""
        ...

    def query(self, sql: str, values: Sequence[Scalar]) -> list[Row]:
        """The rows that a statement selects."""
        ...

    def change(self, sql: str, values: Sequence[Scalar]) -> int:
        """Run a statement inside a transaction; the number of rows that it changed."""
        ...

    def insert(self, sql: str, values: Sequence[Scalar]) -> int:
        """Insert one row inside a transaction; its ``seq``."""
        ...

    def insert_many(self, sql: str, rows: Sequence[Sequence[Scalar]]) -> None:
        """Insert rows inside a transaction; ``sql`` ends before the word VALUES."""
        ...

    def insert_numbered(self, sql: str, rows: Sequence[Sequence[Scalar]]) -> Sequence[int]:
        """Insert rows as `insert_many` does; their ``seq``, in the same order."""
        ...

    def begin(self) -> None:
        """Start a transaction."""
        ...

    def commit(self) -> None:
        """Make everything since `begin` last."""
        ...

    def roll_back(self) -> None:
        """Forget everything since `begin`; nothing happens where nothing was begun."""
        ...

    def close(self) -> None:
        """Give the connection back."""
        ...


def pending_migrations(version: int, *, dialect: str, place: str) -> list[tuple[int, str]]:
    """The migrations above a version, each as its number and SQL, in order.

    A file ``NNNN_name.sql`` serves every dialect that has no ``NNNN_name.DIALECT.sql`` beside it.

    Raises:
        StoreError: If the database is of a newer version than any migration.
    """
    files: dict[int, Path] = {}
    for file in sorted(_MIGRATIONS.glob("[0-9]*.sql"), key=lambda file: file.name.count(".")):
        if file.name.count(".") == 1 or file.name.endswith(f".{dialect}.sql"):
            files[int(file.name[:4])] = file  # a dialect's own comes later, and replaces
    if version > max(files):
        raise StoreError(
            f"{place} was written by a newer assay (schema {version}, this one knows {max(files)})",
            hint="upgrade assay, or choose another store",
        )
    return [(n, files[n].read_text(encoding="utf-8")) for n in sorted(files) if n > version]
