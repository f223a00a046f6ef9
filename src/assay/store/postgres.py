"""PostgreSQL: how a server is connected to, and what its failures mean to people."""

from __future__ import annotations

import contextlib
import importlib
import re
import socket
import ssl
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Protocol, cast

from assay.errors import MissingExtraError, StoreError
from assay.store.database import SCHEMA, SCHEMA_FILE, Row, Scalar, is_new
from assay.store.postgres_address import PostgresAddress, read_address

_ADVISORY_LOCK = 1634955641
"""Held while the tables are made ("assy" read as a number)."""

_SCHEMA = "assay"
_READ_SECONDS = 120.0
_SETTINGS = f"""
    SET search_path = {_SCHEMA};
    SET statement_timeout = '60s';
    SET lock_timeout = '30s';
    SET idle_in_transaction_session_timeout = '300s';
    SET client_min_messages = warning
"""
_MOST_VALUES = 20_000  # of one statement; the protocol's limit is 65,535
_MOST_BYTES = 8 << 20


class _Cursor(Protocol):
    rowcount: int

    def execute(self, operation: str, args: Sequence[Scalar] = ()) -> None: ...
    def fetchall(self) -> Sequence[Sequence[Scalar]]: ...


class _Connection(Protocol):
    autocommit: bool
    parameter_statuses: dict[str, str]

    def cursor(self) -> _Cursor: ...
    def close(self) -> None: ...


class _Driver(Protocol):
    def connect(self, user: str, **options: object) -> _Connection: ...


class PostgresEngine:
    """A connection to one PostgreSQL database; see `assay.store.database.Engine`.

    Tables are in a schema of their own, ``assay``. A connection that is lost is made again for the
    next call: silently for what can be repeated, which is a read or the start of a transaction.
    Inside a transaction, nothing is repeated and nothing is left behind.

    Attributes:
        place: The database's address, without a password.
    """

    def __init__(self, address: PostgresAddress) -> None:
        self.place = str(address)
        self._address = address
        self._connection: _Connection | None = None
        self._is_closed = False
        self._in_transaction = False

    @classmethod
    def open(cls, location: str) -> PostgresEngine:
        """Connect, and make the tables where there are none.

        Raises:
            InputError: For an address that cannot be read.
            MissingExtraError: If the driver is not installed.
            StoreError: If the server cannot be reached or refuses, or the database is not one that
                this version can use.
        """
        engine = cls(read_address(location))
        try:
            engine._prepare()
        except BaseException:
            engine.close()
            raise
        return engine

    def query(self, sql: str, values: Sequence[Scalar]) -> list[Row]:
        """The rows that a statement selects."""
        cursor = self._again_if_lost(sql, values)
        return [tuple(row) for row in cursor.fetchall()]

    def change(self, sql: str, values: Sequence[Scalar]) -> int:
        """Run a statement; the number of rows that it changed."""
        return self._run(sql, values).rowcount

    def insert(self, sql: str, values: Sequence[Scalar]) -> int:
        """Insert one row; its ``seq``."""
        ((seq,),) = self._run(f"{sql} RETURNING seq", values).fetchall()
        return cast("int", seq)

    def insert_many(self, sql: str, rows: Sequence[Sequence[Scalar]]) -> None:
        """Insert rows; ``sql`` ends before the word VALUES."""
        for part in _parts(rows):
            places = f"({', '.join('?' * len(part[0]))})"
            values = [value for row in part for value in row]
            self._run(f"{sql} VALUES {', '.join([places] * len(part))}", values)

    def insert_numbered(self, sql: str, rows: Sequence[Sequence[Scalar]]) -> Sequence[int]:
        """Insert rows, one by one: no order is promised of what several of them return."""
        return [self.insert(f"{sql} VALUES ({', '.join('?' * len(row))})", row) for row in rows]

    def begin(self) -> None:
        """Start a transaction."""
        self._again_if_lost("BEGIN", ())
        self._in_transaction = True

    def commit(self) -> None:
        """Make everything since `begin` last."""
        try:
            self._run("COMMIT", ())
        except LostError as error:
            raise StoreError(
                f"the connection to {self.place} was lost at the end of a write: it is not known "
                "whether the write is there",
                hint="look, then repeat it if it is not",
            ) from error
        finally:
            self._in_transaction = False

    def roll_back(self) -> None:
        """Forget everything since `begin`; without a connection the server has done so."""
        was_in_transaction, self._in_transaction = self._in_transaction, False
        if was_in_transaction and self._connection is not None:
            with contextlib.suppress(LostError):
                self._run("ROLLBACK", ())

    def close(self) -> None:
        """Give the connection back."""
        self._is_closed = True
        self._let_go()

    def _again_if_lost(self, sql: str, values: Sequence[Scalar]) -> _Cursor:
        if self._connection is None or self._in_transaction:
            return self._run(sql, values)
        try:
            return self._run(sql, values)
        except LostError:  # since the last call: the server was restarted, or a timeout cut it
            return self._run(sql, values)

    def _run(self, sql: str, values: Sequence[Scalar]) -> _Cursor:
        connection = self._connected()
        try:
            cursor = connection.cursor()
            cursor.execute(_with_places(sql) if values else sql, [_storable(v) for v in values])
        except Exception as error:
            if is_lost(error):
                self._let_go()
            raise fault(self.place, error) from error
        except BaseException:  # such as an interrupt: what comes next belongs to nobody
            self._let_go()
            raise
        return cursor

    def _connected(self) -> _Connection:
        if self._is_closed:
            raise StoreError(
                f"the store {self.place} was misused: it is closed",
                hint="open one Store per thread, and do not use it once it is closed",
            )
        if self._connection is None:
            if self._in_transaction:
                raise LostError(f"the connection to {self.place} was lost during a write")
            self._connection = _connect(self._address)
            try:
                self._run(_SETTINGS, ())
            except BaseException:
                self._let_go()
                raise
        return self._connection

    def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            sent = vars(connection).get("_sock")
            with contextlib.suppress(Exception):  # it may be dead, and says so in many ways
                connection.close()
            # The driver leaves what it could not send to the collector; Python 3.13 tells of it.
            with contextlib.suppress(Exception):
                cast("socket.SocketIO", sent).close()

    def _prepare(self) -> None:
        encoding = self._connected().parameter_statuses.get("server_encoding", "")
        if encoding.upper() not in ("UTF8", "UNICODE"):
            raise StoreError(
                f"the database {self.place} holds texts in {encoding}, not in UTF8",
                hint="create another one: CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0",
            )
        if not is_new(self._version(), self.place):
            return
        self.begin()
        try:
            # One process at a time; those that waited find it done.
            self._run("SET LOCAL statement_timeout = 0", ())
            self._run("SELECT pg_advisory_xact_lock(?)", (_ADVISORY_LOCK,))
            if is_new(self._version(), self.place):
                self._make_tables()
            self.commit()
        except BaseException:
            self.roll_back()
            raise

    def _version(self) -> int:
        # Read from a table: a session may go by what it remembers of names until it opens one.
        if "migration" not in self._tables():
            return 0
        ((version,),) = self.query("SELECT coalesce(max(number), 0) FROM assay.migration", ())
        return cast("int", version)

    def _tables(self) -> set[Scalar]:
        """Names of all that is in assay's schema."""
        rows = self.query(
            "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE n.nspname = ?",
            (_SCHEMA,),
        )
        return {name for (name,) in rows}

    def _make_tables(self) -> None:
        if self._tables():
            raise StoreError(
                f"the schema {_SCHEMA!r} of {self.place} belongs to another program",
                hint="rename that schema, or choose another database",
            )
        self._run(f"CREATE SCHEMA IF NOT EXISTS {_SCHEMA}", ())
        self._run("CREATE TABLE migration (number BIGINT PRIMARY KEY)", ())
        self._run(_REFUSE_CHANGE, ())
        self._run(_in_postgres(SCHEMA_FILE.read_text(encoding="utf-8")), ())
        self._run("INSERT INTO migration (number) VALUES (?)", (SCHEMA,))


_REFUSE_CHANGE = """
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'restrict_violation';
END $$
"""
_WORDS = (  # of schema.sql, and what PostgreSQL says for them
    (r"INTEGER PRIMARY KEY,", "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,"),
    (r"INTEGER", "BIGINT"),
    (r"REAL", "DOUBLE PRECISION"),
    (r"BLOB", "BYTEA"),
    # Texts compare by their bytes, as SQLite's do: what pages in one order must be sorted in that
    # order, whatever the language of the database.
    (r"TEXT", 'TEXT COLLATE "C"'),
    (r"\) WITHOUT ROWID;", ");"),
    (r"strftime\(.*\)", "to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"'))"),
    (
        r"\nBEGIN SELECT RAISE \(ABORT, ('.*')\); END;",
        r"\n  FOR EACH ROW EXECUTE FUNCTION refuse_change(\1);",
    ),
)


def _in_postgres(schema: str) -> str:
    for theirs, ours in _WORDS:
        schema = re.sub(rf"\b{theirs}" if theirs[0].isalpha() else theirs, ours, schema)
    return schema


def _connect(address: PostgresAddress) -> _Connection:
    try:
        driver = cast("_Driver", importlib.import_module("pg8000.dbapi"))
    except ImportError as error:
        raise MissingExtraError("a store on PostgreSQL", extra="postgres") from error
    context = address.ssl_context()
    link: socket.socket | None = None
    try:
        link = _socket(address)
        connection = driver.connect(
            address.user,
            host=address.host,
            port=address.port,
            database=address.database,
            password=address.password,
            application_name="assay",
            ssl_context=context,
            sock=link,
        )
    except Exception as error:  # what speaks something else makes the driver fail in any way
        if link is not None:
            link.close()
        has_password = address.password is not None
        raise no_connection(str(address), error, has_password=has_password) from error
    # With TLS the driver has wrapped the socket: the one to be patient with is its own.
    cast("socket.socket", vars(connection)["_usock"]).settimeout(_READ_SECONDS)
    connection.autocommit = True  # transactions begin and end where we say
    return connection


def _socket(address: PostgresAddress) -> socket.socket:
    if address.socket_file:
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            link.settimeout(address.connect_seconds)
            link.connect(address.socket_file)
        except BaseException:
            link.close()
            raise
        return link
    link = socket.create_connection((address.host, address.port), address.connect_seconds)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return link


@lru_cache(maxsize=256)
def _with_places(sql: str) -> str:
    return sql.replace("?", "%s")


def _storable(value: Scalar) -> Scalar:
    """The value without the one character that PostgreSQL's texts cannot hold."""
    return value.replace("\0", "␀") if isinstance(value, str) and "\0" in value else value


def _parts(rows: Sequence[Sequence[Scalar]]) -> Iterator[list[Sequence[Scalar]]]:
    part: list[Sequence[Scalar]] = []
    values, held = 0, 0
    for row in rows:
        part.append(row)
        values += len(row)
        held += sum(len(value) for value in row if isinstance(value, str | bytes))
        if values >= _MOST_VALUES or held >= _MOST_BYTES:
            yield part
            part, values, held = [], 0, 0
    if part:
        yield part


_AGAIN = "try again"
_MEANINGS = {  # by SQLSTATE, else by its class
    "22": ("refused what was to be stored", ""),
    "23": ("refused what was to be stored", ""),
    "25006": ("is read-only", "choose a server and a role that may write"),
    "28": ("refuses the user or the password", "check both; PGPASSWORD can hold the password"),
    "3D000": ("does not exist", "create it first, in the encoding UTF8"),
    "40": ("was changed by others at the same moment", _AGAIN),
    "42501": ("may not be used so by that role", "GRANT it the right, or choose another role"),
    "42P01": ("has lost a table", "restore a backup, or choose another database"),
    "53100": ("cannot grow: the server's disk is full", "free some space, then resume the run"),
    "53200": ("has no memory left", _AGAIN),
    "53300": ("has no connection left", "end some clients, or raise max_connections"),
    "54": ("cannot hold a value that large", "shorten the trace or the answer"),
    "55P03": ("is locked by another process", "end the process that holds it, then resume"),
    "57014": ("did not answer in time", "see what the server is busy with, then resume"),
    "57P03": ("is starting or stopping", "try again in a moment"),
}
_ENDED = ("08", "25P03", "57P")


class LostError(StoreError):
    """A connection was lost."""


def is_lost(error: Exception) -> bool:
    """Whether a connection is of no use after an error.

    What the server reports of a statement leaves it usable; anything else may have cut an answer in
    two, and the next one would be taken for the rest of it.
    """
    code, severity, _ = _report(error)
    return not code or severity in ("FATAL", "PANIC") or code.startswith(_ENDED)


def fault(place: str, error: Exception) -> StoreError:
    """What to raise for an error of the driver, the network or the server in a statement."""
    code, _, message = _report(error)
    if is_lost(error):
        return LostError(
            f"the connection to the store {place} was lost: {message or _reason(error)}",
            hint="see that the server runs, then resume; nothing is half-written",
        )
    what, hint = _meaning(code)
    return StoreError(f"the store {place} {what}: {message}", hint=hint)


def no_connection(place: str, error: Exception, *, has_password: bool) -> StoreError:
    """What to raise for an error while connecting."""
    code, _, message = _report(error)
    if code:
        what, hint = _meaning(code)
        return StoreError(f"the store {place} {what}: {message}", hint=hint)
    if not has_password and (isinstance(error, AttributeError) or "password" in str(error)):
        return StoreError(
            f"the store {place} asks for a password",
            hint="set PGPASSWORD, or put it into the address",
        )
    hint = "see that the server runs, and that host and port are right"
    if isinstance(_root(error), ssl.SSLError):
        hint = "check sslmode and sslrootcert"
    return StoreError(f"the store {place} cannot be reached: {_reason(error)}", hint=hint)


def _meaning(code: str) -> tuple[str, str]:
    return _MEANINGS.get(code) or _MEANINGS.get(code[:2]) or ("failed", "")


def _report(error: Exception) -> tuple[str, str, str]:
    """SQLSTATE, severity and text of what the server said, or empty texts.

    The driver may have failed once more while it closed the connection, so what led to an error is
    looked at, too.
    """
    for cause in _causes(error):
        said: object = cause.args[0] if cause.args else None
        if isinstance(said, dict):
            fields = cast("dict[str, str]", said)
            text = " ".join(fields[name] for name in ("M", "D") if name in fields)
            return fields.get("C", ""), fields.get("V", ""), " ".join(text.split())
    return "", "", ""


def _reason(error: Exception) -> str:
    root = _root(error)
    if isinstance(root, TimeoutError):
        return "no answer in time"
    if isinstance(root, socket.gaierror | OSError):
        return root.strerror or str(root)
    name = type(root).__name__
    return str(root) if name == "InterfaceError" else f"no answer of a PostgreSQL server ({name})"


def _root(error: Exception) -> BaseException:
    *_, last = _causes(error)
    return last


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
