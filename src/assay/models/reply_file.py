"""The file of recorded replies: one table of bytes by digest, in SQLite."""

from __future__ import annotations

import fcntl
import os
import weakref
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

from assay.errors import StoreError
from assay.models.forking import ForkSafe

if TYPE_CHECKING:
    import sqlite3

_APPLICATION_ID = 0x61737279  # "asry"
_VERSION = 1
_TABLE = "CREATE TABLE replies (digest BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"
_PATIENCE_SECONDS = 60.0
_LONGEST_VALUE = 64 * 1024 * 1024


class ReplyFile(ForkSafe):
    """A file of replies; calls from several threads take turns, and the first one opens it.

    Args:
        file: Its path. With ``writable``, it and its directory are made if they are missing; it
            is for the user alone, since it holds what models said of private work.
        writable: Whether it may be written to.
    """

    def __init__(self, file: str, *, writable: bool) -> None:
        self._file = file
        self._writable = writable
        super().__init__()
        self._opened: sqlite3.Connection | None = None

    def renew(self) -> None:
        """A connection may not be used, not even closed, in a process forked from its own."""
        super().renew()
        self._opened = None  # its finalizer keeps it

    def get(self, digest: bytes) -> bytes | None:
        """The value stored under a digest.

        Raises:
            StoreError: The file cannot be opened, is damaged, or is another program's.
        """
        with self.lock, _file_faults(self._file):
            if not (self._writable or self._opened or Path(self._file).exists()):
                return None
            row = (
                self._connection()
                .execute("SELECT value FROM replies WHERE digest = ?", (digest,))
                .fetchone()
            )
        if row and not isinstance(row[0], bytes):
            raise _damaged(self._file, "a value in it is not of its form")
        return cast("bytes", row[0]) if row else None

    def put(self, rows: Iterable[tuple[bytes, bytes]]) -> None:
        """Store values under their digests, all or none, in the place of what was there.

        Raises:
            StoreError: As `get`, or it cannot be written.
        """
        with self.lock, _file_faults(self._file):
            connection = self._connection()
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.executemany("INSERT OR REPLACE INTO replies VALUES (?, ?)", rows)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        with self.lock, _file_faults(self._file):
            if self._opened is not None:
                self._opened.close()
            self._opened = None

    def _connection(self) -> sqlite3.Connection:
        if self._opened is None:
            open_it = _open_to_write if self._writable else _open_to_read
            self._opened = open_it(self._file)
            weakref.finalize(self, _close_own, self._opened, os.getpid())
        return self._opened


def _close_own(connection: sqlite3.Connection, process: int) -> None:
    if os.getpid() == process:
        connection.close()


def _open_to_write(file: str) -> sqlite3.Connection:
    directory = Path(file).absolute().parent
    directory.mkdir(parents=True, exist_ok=True)
    with _alone(directory):
        # SQLite would make it readable to everybody; its two companions take its mode. Never open
        # one that is there: to close it again would drop the locks that this process holds on it,
        # and another process would take away the log that is being written.
        with suppress(FileExistsError):
            os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        connection = _connect(file, "rw")
        try:
            if not _is_ours(connection, file):
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(_TABLE)
                connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {_VERSION}")
                connection.execute("COMMIT")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
    return connection


def _open_to_read(file: str) -> sqlite3.Connection:
    import sqlite3

    try:
        return _checked(_connect(file, "ro"), file)
    except sqlite3.OperationalError:
        # A directory that may not be written to: the log's companions cannot be made there.
        log = Path(f"{file}-wal")
        if not Path(file).exists() or (log.exists() and log.stat().st_size):
            raise
        return _checked(_connect(file, "ro&immutable=1"), file)


def _checked(connection: sqlite3.Connection, file: str) -> sqlite3.Connection:
    try:
        is_new = not _is_ours(connection, file)
    except BaseException:
        connection.close()
        raise
    if is_new:
        connection.close()
        raise StoreError(f"{file} holds no replies", hint="record some first")
    return connection


def _connect(file: str, mode: str) -> sqlite3.Connection:
    import sqlite3

    connection = sqlite3.connect(
        f"{Path(file).absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=_PATIENCE_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _is_ours(connection: sqlite3.Connection, file: str) -> bool:
    """Whether the file has our table, and nothing else; False when it is new."""
    version = _number(connection, "PRAGMA user_version")
    objects = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    if version == 0 and not objects:
        return False
    if _number(connection, "PRAGMA application_id") == _APPLICATION_ID:
        if version > _VERSION:
            raise StoreError(
                f"{file} was written by a newer assay", hint="upgrade, or choose another file"
            )
        # A file from elsewhere could bring a view or a trigger in the table's place.
        if objects == [(_TABLE,)]:
            return True
    raise StoreError(
        f"{file} is not a file of recorded replies", hint="move it away, or choose another file"
    )


def _number(connection: sqlite3.Connection, statement: str) -> int:
    row = cast("tuple[int]", connection.execute(statement).fetchone())
    return row[0]


def _damaged(file: str, why: object) -> StoreError:
    return StoreError(
        f"the recorded replies in {file} cannot be used: {why}",
        hint="move the file away to begin anew",
    )


@contextmanager
def _alone(directory: Path) -> Generator[None]:
    """One process at a time: SQLite's switch to the log does not wait for others, it fails."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def _file_faults(file: str) -> Generator[None]:
    import sqlite3

    try:
        yield
    except sqlite3.Error as error:
        raise _damaged(file, error) from error
    except OSError as error:
        raise StoreError(
            f"{file} cannot be opened for recorded replies: {error.strerror or error}",
            hint="choose a file in a directory that you may write to",
        ) from error
