"""SQLite: how the file is opened, and what its failures mean to people."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from assay.errors import DamagedError, StoreError
from assay.store.database import SCHEMA, SCHEMA_FILE, Query, Row, Scalar, inserting, is_new, size_of

if TYPE_CHECKING:
    import sqlite3


_APPLICATION_ID = 1634955641
"""Marks a SQLite file as ours ("assy" read as a number); set with its tables."""

_PASSABLE = 0o711
_BUSY_SECONDS = 30.0
"""How long a write waits for another process. Long, because a slow disk's checkpoint must not cost
a result that an agent worked an hour for."""

_CHECKPOINT_PAGES = 8_192
"""Pages of 4 kB after which what was written is moved into the file, which waits for the disk."""

_MOUNTS = Path("/proc/self/mountinfo")
_NETWORK = frozenset(
    {
        "afs", "beegfs", "ceph", "cifs", "fuse.glusterfs", "fuse.sshfs", "gpfs", "lustre",
        "ncpfs", "nfs", "nfs4", "smb3", "smbfs",
    }
)  # fmt: skip

_MEANINGS = {
    "SQLITE_BUSY": ("is locked by another process", "end the process that holds it, then resume"),
    "SQLITE_CANTOPEN": ("cannot be opened", "it must be a file in a directory you may write to"),
    "SQLITE_CONSTRAINT": ("refused what was to be stored", ""),
    "SQLITE_CORRUPT": ("is damaged", "move it away, or save what is left with sqlite3 .recover"),
    "SQLITE_FULL": ("cannot grow: the disk is full", "free some space, then resume the run"),
    "SQLITE_IOERR": ("could not be read or written", "check the disk and its free space"),
    "SQLITE_NOTADB": ("is not a database", "move the file away, or choose another store"),
    "SQLITE_PERM": ("may not be written", "check who owns it, or choose another store"),
    "SQLITE_READONLY": ("is read-only", "check who owns it, or choose another store"),
    "SQLITE_TOOBIG": ("cannot hold a value that large", "shorten the trace or the answer"),
}
_DAMAGED = frozenset({"SQLITE_CORRUPT", "SQLITE_NOTADB"})


class SqliteEngine:
    """A connection to one SQLite file; see `assay.store.database.Engine`.

    Attributes:
        place: Path of the file.
    """

    def __init__(self, place: str, connection: sqlite3.Connection) -> None:
        self.place = place
        self._connection = connection
        self._faults = _faults(place)

    @classmethod
    def open(cls, home: Path) -> SqliteEngine:
        """Open the database in a directory; both are made where they are not there."""
        import sqlite3

        database = home / "assay.db"
        with _file_faults(home):
            # Others may pass, as sandboxes do to what is built there, but see and read nothing.
            home.mkdir(_PASSABLE, parents=True, exist_ok=True)
            ignore = home / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n", encoding="utf-8")
            _refuse_network(home)
        with _faults(str(database)), _set_up_alone(home):
            _make_file(database)
            connection = sqlite3.connect(database, timeout=_BUSY_SECONDS, isolation_level=None)
            try:
                _prepare(connection, str(database))
            except BaseException:
                connection.close()
                raise
        return cls(str(database), connection)

    def query(self, sql: str, values: Sequence[Scalar]) -> list[Row]:
        """The rows that a statement selects."""
        with self._faults:
            return self._connection.execute(sql, values).fetchall()

    def check(self) -> None:
        """Look for damage: every page, but not every text in it."""
        ((found,),) = self.query("PRAGMA quick_check(1)", ())
        if found != "ok":
            what, hint = _MEANINGS["SQLITE_CORRUPT"]
            raise DamagedError(f"the store {self.place} {what}: {found}", hint=hint)

    def query_within(self, most_bytes: int, query: Query, values: Sequence[Scalar]) -> list[Row]:
        """The first rows that a query selects, as long as there are few bytes of them."""
        rows: list[Row] = []
        sql = f"SELECT {query.columns} {query.source} ORDER BY {query.order} LIMIT ? OFFSET ?"
        with self._faults, closing(self._connection.execute(sql, values)) as cursor:
            for row in cursor:
                rows.append(row)
                most_bytes -= size_of(row)
                if most_bytes <= 0:
                    break
        return rows

    def change(self, sql: str, values: Sequence[Scalar]) -> int:
        """Run a statement; the number of rows that it changed."""
        with self._faults:
            return self._connection.execute(sql, values).rowcount

    def insert_many(
        self, table: str, columns: tuple[str, ...], rows: Sequence[Sequence[Scalar]]
    ) -> None:
        """Insert rows."""
        with self._faults:
            self._connection.executemany(inserting(table, columns), rows)

    def insert_numbered(
        self, table: str, columns: tuple[str, ...], rows: Sequence[Sequence[Scalar]]
    ) -> Sequence[int]:
        """Insert rows; their ``seq``: within one transaction, SQLite numbers them one by one."""
        self.insert_many(table, columns, rows)
        ((last,),) = self.query("SELECT last_insert_rowid()", ())
        last = cast("int", last)
        return range(last - len(rows) + 1, last + 1)

    def begin(self) -> None:
        """Start a transaction, with its lock: SQLite cannot wait for one asked for half-way."""
        with self._faults:
            self._connection.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Make everything since `begin` last."""
        with self._faults:
            self._connection.execute("COMMIT")

    def roll_back(self) -> None:
        """Forget everything since `begin`; some failures, such as a full disk, have done so."""
        with self._faults:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def close(self) -> None:
        """Give the file back."""
        with self._faults:
            self._connection.close()


def _make_file(database: Path) -> None:
    """Make the file where there is none, for nobody else to read."""
    place = database.resolve()  # where a link leads, SQLite would make one for everybody
    try:
        os.close(os.open(place, os.O_CREAT | os.O_EXCL, 0o600))
    except OSError:  # there is one, or SQLite will say why there can be none
        if place.is_file() and not place.stat().st_size:
            raise StoreError(
                f"the store {database} is empty: something has cut it off",
                hint="put a copy in its place; or remove it, to begin anew",
            ) from None


class _faults:  # noqa: N801 - a function made a class: it stands around every statement
    """Turn what SQLite raises into a `StoreError` that says what to do."""

    def __init__(self, place: str) -> None:
        self._place = place

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> None:
        if error is not None:
            self._tell(error)

    def _tell(self, error: BaseException) -> None:
        import sqlite3

        if not isinstance(error, sqlite3.Error):
            return
        # Only errors of SQLite itself carry a name; those of misuse (closed, wrong thread) do not.
        name: str = getattr(error, "sqlite_errorname", "")
        primary = "_".join(name.split("_")[:2])
        what, hint = _MEANINGS.get(primary, ("failed", ""))
        if isinstance(error, sqlite3.ProgrammingError):
            what, hint = (
                "was misused",
                "open one Store per thread, and do not use it once it is closed",
            )
        fault = DamagedError if primary in _DAMAGED else StoreError
        raise fault(f"the store {self._place} {what}: {error}", hint=hint) from error


@contextmanager
def _file_faults(home: Path) -> Generator[None]:
    try:
        yield
    except (FileExistsError, NotADirectoryError) as error:
        raise StoreError(
            f"the store {home} is not a directory: {error.strerror}",
            hint="move that file away, or choose another store",
        ) from error
    except OSError as error:
        raise StoreError(
            f"the store {home} cannot be made: {error.strerror}",
            hint="choose a directory you may write to, on a disk with free space",
        ) from error


@contextmanager
def _set_up_alone(home: Path) -> Generator[None]:
    """One process at a time: SQLite's switch to WAL does not wait for others, it fails."""
    with _file_faults(home):
        directory = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)


def _prepare(connection: sqlite3.Connection, place: str) -> None:
    version = _number(connection, "PRAGMA user_version")
    if version == 0:
        foreign = _number(connection, "SELECT count(*) FROM sqlite_master") > 0
    else:
        foreign = _number(connection, "PRAGMA application_id") != _APPLICATION_ID
    if foreign:
        raise StoreError(
            f"{place} belongs to another program", hint="move it away, or choose another store"
        )
    must_be_made = is_new(version, place)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
    if must_be_made:
        with _alone(connection):
            for statement in _statements(SCHEMA_FILE.read_text(encoding="utf-8")):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA}")
    connection.execute("PRAGMA foreign_keys = ON")


@contextmanager
def _alone(connection: sqlite3.Connection) -> Generator[None]:
    """Everything in the block lands together, or nothing does."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _statements(script: str) -> Iterator[str]:
    """Split a script: `executescript` would commit the transaction that makes it atomic."""
    import sqlite3

    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _number(connection: sqlite3.Connection, query: str) -> int:
    (value,) = connection.execute(query).fetchone()
    return int(value)


def _refuse_network(home: Path) -> None:
    """WAL keeps its index in shared memory, which machines do not share: data would be lost."""
    device = home.stat().st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return  # not Linux, or no /proc: nothing to go by
    for line in mounts.splitlines():
        place, _, kind = line.partition(" - ")
        if place.split(" ")[2:3] == [wanted] and kind.split(" ")[0] in _NETWORK:
            raise StoreError(
                f"the store {home} is on a network file system ({kind.split(' ')[0]}), where "
                "SQLite cannot keep data safe",
                hint="choose a directory on a local disk",
            )
