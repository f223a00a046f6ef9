"""The file of recorded replies, and a reply as a value in it."""

from __future__ import annotations

import fcntl
import json
import math
import os
import threading
import zlib
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

from assay.errors import StoreError
from assay.models.messages import Finish, Reply, Rung, Usage
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import NotJsonError, decode_json

if TYPE_CHECKING:
    import sqlite3

_APPLICATION_ID = 0x61737279  # "asry"
_VERSION = 1
_TABLE = "CREATE TABLE replies (digest BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"
_PATIENCE_SECONDS = 60.0
_LONGEST_VALUE = 64 * 1024 * 1024


class ReplyFile:
    """One connection to a file of replies; calls from several threads take turns.

    Args:
        file: Its path. With ``writable``, it and its directory are made if they are missing; it
            is for the user alone, since it holds what models said of private work.
        writable: Whether it may be written to.

    Raises:
        StoreError: The file cannot be opened, is damaged, or is another program's.
    """

    def __init__(self, file: str, *, writable: bool) -> None:
        self._file = file
        self._lock = threading.Lock()
        with _file_faults(file):
            self._connection = _open_to_write(file) if writable else _open_to_read(file)

    def get(self, digest: bytes) -> bytes | None:
        """The value stored under a digest."""
        with self._lock, _file_faults(self._file):
            row = self._connection.execute(
                "SELECT value FROM replies WHERE digest = ?", (digest,)
            ).fetchone()
        return _bytes(row[0], self._file) if row else None

    def put(self, rows: Iterable[tuple[bytes, bytes]]) -> None:
        """Store values under their digests, all or none, in the place of what was there."""
        with self._lock, _file_faults(self._file):
            connection = self._connection
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.executemany("INSERT OR REPLACE INTO replies VALUES (?, ?)", rows)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close the connection."""
        with self._lock, _file_faults(self._file):
            self._connection.close()


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


def _bytes(value: object, file: str) -> bytes:
    if not isinstance(value, bytes):
        raise _damaged(file, "a value in it is not of its form")
    return value


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


MAX_BYTES = 64 * 1024 * 1024
"""Most bytes of one reply's JSON: several times what a transport lets through."""

_STORABLE = ("stop", "tool")
_WORTH_COMPRESSING = 2_048  # most verdicts are shorter, and zlib costs more than it saves


class RecordError(ValueError):
    """What is stored is not a reply; the message says which field is wrong."""


def to_json(reply: Reply) -> dict[str, Json]:
    """Everything of a reply that a hit brings back, and what it took and cost."""
    usage = reply.usage
    return {
        "text": reply.text,
        "data": reply.data,
        "finish": reply.finish,
        "model": reply.model,
        "usage": {
            "input_tokens": usage.input_tokens,
            "cached_tokens": usage.cached_tokens,
            "output_tokens": usage.output_tokens,
            "reasoning_tokens": usage.reasoning_tokens,
        },
        "fingerprint": reply.fingerprint,
        "rung": reply.rung,
        "dropped": list(reply.dropped),
        "repairs": reply.repairs,
        "seconds": reply.seconds,
        "cost_usd": reply.cost_usd,
    }


def reply_of(record: Json, *, digest: str) -> Reply:
    """The hit that a record stands for: it costs nothing and took no time, but once it did.

    Raises:
        RecordError: A field is missing or of the wrong kind.
    """
    if not isinstance(record, dict):
        raise RecordError("it is not an object")
    dropped = record.get("dropped")
    if not isinstance(dropped, list) or not all(isinstance(name, str) for name in dropped):
        raise RecordError("'dropped' is not a list of names")
    return Reply(
        text=_text(record, "text"),
        data=record.get("data"),
        finish=cast("Finish", _one_of(record, "finish", _STORABLE)),
        model=_text(record, "model"),
        usage=_usage(record.get("usage")),
        fingerprint=_text(record, "fingerprint"),
        rung=cast("Rung", _one_of(record, "rung", get_args(Rung))),
        dropped=tuple(cast("list[str]", dropped)),
        repairs=_count(record, "repairs") or 0,
        cost_usd=0.0,
        is_hit=True,
        asked_usd=None if record.get("cost_usd") is None else _amount(record, "cost_usd"),
        asked_seconds=_amount(record, "seconds"),
        digest=digest,
    )


def pack(record: dict[str, Json]) -> bytes:
    """A record as bytes of the store.

    Raises:
        RecordError: It is not JSON.
    """
    try:
        text = json.dumps(record, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise RecordError(f"it is not JSON: {error}") from None
    value = text.encode("ascii")
    return value if len(value) < _WORTH_COMPRESSING else zlib.compress(value, 1)


def unpack(value: bytes) -> Json:
    """The record in bytes of the store; never more than `MAX_BYTES` of it.

    Raises:
        RecordError: They are damaged.
    """
    if value[:1] == b"{":
        return parse(value)
    stream = zlib.decompressobj()
    try:
        text = stream.decompress(value, MAX_BYTES)
        if not stream.eof:
            raise RecordError("it is cut off or too large")
        return parse(text)
    except zlib.error:
        raise RecordError("it is not compressed as it should be") from None


def parse(text: str | bytes) -> Json:
    """Parse JSON whose numbers are finite.

    Raises:
        RecordError: It is not that.
    """
    try:
        return decode_json(text)
    except NotJsonError as error:
        raise RecordError(f"it is not JSON: {error}") from None


def _text(record: dict[str, Json], key: str) -> str:
    value = record.get(key)
    if not isinstance(value, str):
        raise RecordError(f"'{key}' is not a text")
    return value


def _one_of(record: dict[str, Json], key: str, words: tuple[str, ...]) -> str:
    value = _text(record, key)
    if value not in words:
        raise RecordError(f"'{key}' is not one of {', '.join(words)}")
    return value


def _amount(record: dict[str, Json], key: str) -> float:
    value = record.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RecordError(f"'{key}' is not a number")
    if not (0 <= value < math.inf):
        raise RecordError(f"'{key}' is not a number from 0")
    return value


def _count(record: dict[str, Json], key: str) -> int | None:
    value = record.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
        raise RecordError(f"'{key}' is not a count")
    return value


def _usage(value: Json) -> Usage:
    if not isinstance(value, dict):
        raise RecordError("'usage' is not an object")
    return Usage(
        input_tokens=_count(value, "input_tokens"),
        cached_tokens=_count(value, "cached_tokens"),
        output_tokens=_count(value, "output_tokens"),
        reasoning_tokens=_count(value, "reasoning_tokens"),
    )
