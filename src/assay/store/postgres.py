"""PostgreSQL: how a server is connected to, and what its failures mean to people."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Generator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from urllib.parse import quote

from assay.errors import InputError, MissingExtraError, StoreError
from assay.store.database import SCHEMA, SCHEMA_FILE, Query, Row, Scalar, inserting, is_new

if TYPE_CHECKING:
    import psycopg

    _Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]
    _Cursor: TypeAlias = psycopg.Cursor[tuple[Any, ...]]

_ADVISORY_LOCK = 1634955641
"""Held while the tables are made ("assy" read as a number)."""

_SCHEMA = "assay"
_SETTINGS = f"""
    SET search_path = {_SCHEMA};
    SET statement_timeout = '60s';
    SET lock_timeout = '30s';
    SET idle_in_transaction_session_timeout = '300s';
    SET client_min_messages = warning
"""
_DEFAULTS = {  # of an address; a server that is gone without a word is given up after a minute
    "application_name": "assay",
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
_ENCODE = (
    "write it as postgresql://user:password@host:5432/database, with %40 for '@', %2F for '/', "
    "%23 for '#', %3F for '?'"
)


class PostgresEngine:
    """A connection to one PostgreSQL database; see `assay.store.database.Engine`.

    Tables are in a schema of their own, ``assay``. A connection that is lost is made again for the
    next call: silently for what can be repeated, which is a read or the start of a transaction.
    Inside a transaction, nothing is repeated and nothing is left behind.

    Attributes:
        place: The database's address, without a password.
    """

    def __init__(self, location: str) -> None:
        self._address = _read_address(location)
        self.place = _shown(self._address)
        self._connection: _Connection | None = None
        self._is_closed = False
        self._in_transaction = False

    @classmethod
    def open(cls, location: str) -> PostgresEngine:
        """Connect, and make the tables where there are none."""
        engine = cls(location)
        try:
            engine._prepare()
        except BaseException:
            engine.close()
            raise
        return engine

    def query(self, sql: str, values: Sequence[Scalar]) -> list[Row]:
        """The rows that a statement selects."""
        return self._again_if_lost(sql, values).fetchall()

    def check(self) -> None:
        """The server looks after its files."""

    def query_within(self, most_bytes: int, query: Query, values: Sequence[Scalar]) -> list[Row]:
        """The first rows that a query selects, as long as there are few bytes of them.

        The server adds the lengths up, for which it need not read long texts.
        """
        size = " + ".join(f"octet_length({name})" for name in query.wide) or "0"
        place = f"row_number() OVER (ORDER BY {query.order}) AS place"
        found = self.query(
            f"SELECT * FROM (SELECT part.*, sum({size}) OVER (ORDER BY place) - ({size}) AS held "
            f"FROM (SELECT {query.columns}, {place} {query.source} ORDER BY {query.order} "
            "LIMIT ? OFFSET ?) part) summed WHERE held < ? ORDER BY place",
            (*values, most_bytes),
        )
        return [row[:-2] for row in found]

    def change(self, sql: str, values: Sequence[Scalar]) -> int:
        """Run a statement; the number of rows that it changed."""
        return self._run(sql, values).rowcount

    def insert_many(
        self, table: str, columns: tuple[str, ...], rows: Sequence[Sequence[Scalar]]
    ) -> None:
        """Insert rows."""
        if len(rows) == 1:  # a round trip less
            self._run(inserting(table, columns), rows[0])
        elif rows:
            self._copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN", rows)

    def insert_numbered(
        self, table: str, columns: tuple[str, ...], rows: Sequence[Sequence[Scalar]]
    ) -> Sequence[int]:
        """Insert rows; their ``seq``."""
        if len(rows) == 1:
            return self._run(f"{inserting(table, columns)} RETURNING seq", rows[0]).fetchall()[0]
        reserve = "SELECT nextval(pg_get_serial_sequence(?, 'seq')) FROM generate_series(1, ?)"
        numbers = [number for (number,) in self.query(reserve, (f"{_SCHEMA}.{table}", len(rows)))]
        numbered = [(number, *row) for number, row in zip(numbers, rows, strict=True)]
        self.insert_many(table, ("seq", *columns), numbered)
        return numbers

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
        cursor = self._connected().cursor()
        with self._faults():
            # Without values nothing is replaced, and several statements may come in one.
            said = [_storable(value) for value in values] if values else None
            return cursor.execute(_with_places(sql), said)

    def _copy(self, sql: str, rows: Sequence[Sequence[Scalar]]) -> None:
        """Send rows at once, which takes a third of the time of as many statements."""
        cursor = self._connected().cursor()
        with self._faults(), cursor.copy(_with_places(sql)) as copy:
            for row in rows:
                copy.write_row([_storable(value) for value in row])

    @contextlib.contextmanager
    def _faults(self) -> Generator[None]:
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            is_lost = self._connection is None or self._connection.closed or has_ended(error)
            if is_lost:
                self._let_go()
            raise fault(self.place, error, is_lost=is_lost) from error
        except BaseException:  # such as an interrupt: what comes next belongs to nobody
            self._let_go()
            raise

    def _connected(self) -> _Connection:
        if self._is_closed:
            raise StoreError(
                f"the store {self.place} was misused: it is closed",
                hint="open one Store per thread, and do not use it once it is closed",
            )
        if self._connection is None:
            if self._in_transaction:
                raise LostError(f"the connection to {self.place} was lost during a write")
            self._connection = _connect(self._address, self.place)
            try:
                self._run(_SETTINGS, ())
            except BaseException:
                self._let_go()
                raise
        return self._connection

    def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _prepare(self) -> None:
        encoding = self._connected().info.parameter_status("server_encoding") or ""
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


def _read_address(location: str) -> dict[str, str]:
    """The parts of an address, as libpq reads it.

    Raises:
        InputError: For one that cannot be read; it never shows any part of it that could be a
            password.
        MissingExtraError: If the driver is not installed.
    """
    try:
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict
    except ImportError as error:
        raise MissingExtraError("a store on PostgreSQL", extra="postgres") from error
    try:
        parts = {name: str(value) for name, value in conninfo_to_dict(location).items()}
    except ProgrammingError:
        # From None: the cause quotes what it could not read.
        raise InputError("the database's address cannot be read", hint=_ENCODE) from None
    # Where a password has a / or @ in it as it stands, the rest of it is the port or the database.
    if not _ADDRESS.fullmatch(location) or re.search(r"[^0-9,]", parts.get("port", "")):
        raise InputError("the database's address cannot be read", hint=_ENCODE)
    return {**_DEFAULTS, **parts, "client_encoding": "utf8"}


_ADDRESS = re.compile(r"[a-z]+://([^@/]*@)?[^@]*")


def _shown(address: dict[str, str]) -> str:
    """An address as messages name it."""
    user, host, port, name = (address.get(n, "") for n in ("user", "host", "port", "dbname"))
    user, name = f"{quote(user, safe='')}@" if user else "", quote(name, safe="")
    if host.startswith("/"):
        return f"postgresql://{user}/{name}?host={quote(host)}" + (f"&port={port}" if port else "")
    host = f"[{host}]" if ":" in host else host
    return f"postgresql://{user}{host}{f':{port}' if port else ''}/{name}"


def _connect(address: dict[str, str], place: str) -> _Connection:
    import psycopg
    from psycopg.conninfo import make_conninfo

    told = make_conninfo("", **address)
    try:
        return psycopg.connect(told, autocommit=True)  # transactions begin and end where we say
    except psycopg.Error as error:
        said = _in_a_line(error).removeprefix("connection failed: ")
        hint = next(hint for words, hint in _REFUSALS.items() if words in said)
        raise StoreError(f"the store {place} cannot be reached: {said}", hint=hint) from error


_REFUSALS = {  # while connecting, libpq tells only what the server said, and no SQLSTATE
    "password": "check user and password; PGPASSWORD can hold the password, or the address",
    "certificate": "check sslmode and sslrootcert",
    "SSL": "check sslmode and sslrootcert",
    "does not exist": "create it first, in the encoding UTF8",
    "too many": "end some clients, or raise max_connections",
    "": "see that the server runs, and that host and port are right",
}


@lru_cache(maxsize=256)
def _with_places(sql: str) -> bytes:
    return sql.replace("?", "%s").encode()


def _storable(value: Scalar) -> Scalar:
    """The value without the one character that PostgreSQL's texts cannot hold."""
    return value.replace("\0", "␀") if isinstance(value, str) and "\0" in value else value


_AGAIN = "try again"
_MEANINGS = {  # by SQLSTATE, else by its class
    "22": ("refused what was to be stored", ""),
    "23": ("refused what was to be stored", ""),
    "25006": ("is read-only", "choose a server and a role that may write"),
    "40": ("was changed by others at the same moment", _AGAIN),
    "42501": ("may not be used so by that role", "GRANT it the right, or choose another role"),
    "42P01": ("has lost a table", "restore a backup, or choose another database"),
    "53100": ("cannot grow: the server's disk is full", "free some space, then resume the run"),
    "53200": ("has no memory left", _AGAIN),
    "54": ("cannot hold a value that large", "shorten the trace or the answer"),
    "55P03": ("is locked by another process", "end the process that holds it, then resume"),
    "57014": ("did not answer in time", "see what the server is busy with, then resume"),
}


class LostError(StoreError):
    """A connection was lost."""


def has_ended(error: psycopg.Error) -> bool:
    """Whether the server ends a connection with what it reports; it may not have done so yet."""
    severity = error.diag.severity_nonlocalized
    return severity in ("FATAL", "PANIC") or (error.sqlstate or "").startswith(
        ("08", "25P03", "57P")
    )


def fault(place: str, error: psycopg.Error, *, is_lost: bool) -> StoreError:
    """What to raise for an error of the driver, the network or the server in a statement."""
    if is_lost:
        return LostError(
            f"the connection to the store {place} was lost: {_in_a_line(error)}",
            hint="see that the server runs, then resume; nothing is half-written",
        )
    code = error.sqlstate or ""
    what, hint = _MEANINGS.get(code) or _MEANINGS.get(code[:2]) or ("failed", "")
    return StoreError(f"the store {place} {what}: {_in_a_line(error)}", hint=hint)


def _in_a_line(error: Exception) -> str:
    return " ".join(str(error).split())
