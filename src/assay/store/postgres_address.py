"""Addresses of PostgreSQL databases, as people write them; a password in one is never shown."""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, cast, get_args
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from assay.errors import InputError

SslMode: TypeAlias = Literal["disable", "prefer", "require", "verify-ca", "verify-full"]

_OPTIONS = ("connect_timeout", "host", "sslmode", "sslrootcert")
_EXAMPLE = "postgresql://user:password@host:5432/database"
_ENCODE = "write it as " + _EXAMPLE + ", with %40 for '@', %2F for '/', %23 for '#', %3F for '?'"


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresAddress:
    """Where a database is, and as whom to use it.

    Attributes:
        host: Name or address of the machine, or the directory of a Unix socket.
        port: TCP port, or the number in the name of the socket.
        user: Role to act as.
        password: None where none was given.
        database: Name of the database.
        ssl_mode: As libpq has them: whether to encrypt, and what to check.
        ca_file: Certificates to trust; the system's where empty.
        connect_seconds: How long to wait for the server.
    """

    host: str
    port: int
    user: str
    password: str | None = field(repr=False)
    database: str
    ssl_mode: SslMode = "prefer"
    ca_file: str = ""
    connect_seconds: float = 10.0

    @property
    def socket_file(self) -> str:
        """The Unix socket, or empty for TCP."""
        return f"{self.host}/.s.PGSQL.{self.port}" if self.host.startswith("/") else ""

    def __str__(self) -> str:
        user, database = quote(self.user, safe=""), quote(self.database, safe="")
        if self.socket_file:
            return f"postgresql://{user}@/{database}?host={quote(self.host)}&port={self.port}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"postgresql://{user}@{host}:{self.port}/{database}"

    def ssl_context(self) -> ssl.SSLContext | bool | None:
        """What the driver is to be told: a context, True to insist, False to do without, or None.

        Raises:
            InputError: If the file of certificates cannot be used.
        """
        if self.ssl_mode in ("disable", "prefer"):
            return False if self.ssl_mode == "disable" or self.socket_file else None
        if self.ssl_mode == "require" and not self.ca_file:
            return True
        try:
            context = ssl.create_default_context(cafile=self.ca_file or None)
        except OSError as error:
            raise InputError(
                f"cannot use the certificates in {self.ca_file!r}: {error}",
                hint="name a file in PEM format with sslrootcert",
            ) from error
        context.check_hostname = self.ssl_mode == "verify-full"
        return context


def read_address(location: str) -> PostgresAddress:
    """Read ``postgresql://user:password@host:port/database?sslmode=...``.

    What is left out is taken from ``PGHOST``, ``PGPORT``, ``PGUSER``, ``PGPASSWORD`` and
    ``PGDATABASE``, then as PostgreSQL's own tools do: ``localhost``, 5432, the name of the user who
    runs this, no password, and the role's own database. A host that is a directory (as the option
    ``host``) holds a Unix socket.

    Raises:
        InputError: For an address that cannot be read; it never shows any part of it that could
            be a password.
    """
    try:
        parts = urlsplit(location)
        host, port = unquote(parts.hostname or ""), parts.port
        query = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        # From None: the cause quotes what it could not read.
        raise InputError("the database's address cannot be read", hint=_ENCODE) from None
    if parts.fragment or "@" in f"{parts.path}{parts.query}" or "/" in parts.path[1:]:
        # A password with one of / ? # in it, as it stands, makes the rest of it the path.
        raise InputError("the database's address cannot be read", hint=_ENCODE)
    options = dict(query)
    if set(options) - {*_OPTIONS, "port"}:
        raise InputError(
            "the database's address has an option that is not known",
            hint="valid: port, " + ", ".join(_OPTIONS),
        )
    mode = options.get("sslmode", "prefer")
    if mode not in get_args(SslMode):
        raise InputError(
            "the sslmode of the database's address is not known",
            hint="valid: " + ", ".join(get_args(SslMode)),
        )
    user = unquote(parts.username or "") or os.environ.get("PGUSER") or _whoami()
    return PostgresAddress(
        host=options.get("host") or host or os.environ.get("PGHOST") or "localhost",
        port=port or _number(options.get("port") or os.environ.get("PGPORT") or "5432"),
        user=user,
        password=unquote(parts.password or "") or os.environ.get("PGPASSWORD") or None,
        database=unquote(parts.path[1:]) or os.environ.get("PGDATABASE") or user,
        ssl_mode=cast("SslMode", mode),
        ca_file=options.get("sslrootcert", ""),
        connect_seconds=float(_number(options.get("connect_timeout", "10")) or 10),
    )


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:6]) < 65_536):
        raise InputError(
            "a number in the database's address cannot be read",
            hint="the port and connect_timeout are whole numbers",
        )
    return int(text)


def _whoami() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        raise InputError("the database's address names no user", hint=_ENCODE) from None
