"""A PostgreSQL server of the tests' own: started once, on a Unix socket and a free port."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from assay.store import Database

__all__ = [
    "KINDS",
    "PostgresServer",
    "free_port",
    "location",
    "new_location",
    "programs",
    "shared_server",
]

KINDS = ("sqlite", "postgres")
"""Every kind of database, for `new_location`."""

_NOBODY = 65534
_SETTINGS = {  # what its processes wrote outlives them; a power cut is not tested
    "fsync": "off",
    "full_page_writes": "off",
    "listen_addresses": "127.0.0.1",
    "max_connections": "40",
    "shared_buffers": "16MB",
    "ssl": "on",
}


def programs() -> Path | None:
    """The directory of PostgreSQL's programs, or None where they are not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    if found:
        return found[-1].parent
    return Path(on_path).resolve().parent if on_path else None


@pytest.fixture(params=KINDS)
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty database of each kind is opened; a room's conftest imports it."""
    return new_location(request, str(request.param), tmp_path)


def new_location(request: pytest.FixtureRequest, kind: str, directory: Path) -> str:
    """Where a test may open an empty database of a kind."""
    if kind == "sqlite":
        return str(directory / "home")
    server = shared_server(request)
    return server.address(server.emptied())


def shared_server(request: pytest.FixtureRequest) -> PostgresServer:
    """The server that all tests of this process share; skips the test where there is none."""
    server = request.config.stash.get(_SERVER, None)
    if server is None:
        binaries = programs()
        if binaries is None:
            pytest.skip("PostgreSQL is not installed (Debian's package 'postgresql')")
        server = PostgresServer(binaries)
        request.config.stash[_SERVER] = server
        # Not when the configuration is let go: by then who waits for this process may kill it.
        request.session.addfinalizer(server.stop)
    return server


class PostgresServer:
    """A server with its data in a temporary directory; ``user`` is a superuser.

    Attributes:
        port: Its TCP port on the loopback interface, and the number of its Unix socket.
        password: Asked for over TCP, not on the socket.
        certificate: What it shows to those who ask for encryption.
    """

    user = "tester"

    def __init__(self, binaries: Path) -> None:
        self._binaries = binaries
        self._home = Path(tempfile.mkdtemp(prefix="assay-pg-"))
        self._data = self._home / "data"
        self.certificate = self._home / "server.crt"
        self._process: subprocess.Popen[bytes] | None = None
        self._made = 0
        self._shared = ""
        self._cleaner: Database | None = None
        self._tables: list[str] = []
        self.password = f"p@s:s/w#{secrets.token_hex(4)}?%"
        self.port = free_port()
        self._make()

    def address(self, database: str, *, user: str = "", options: str = "") -> str:
        """A database over the Unix socket, which asks for no password."""
        where = f"host={quote(str(self._home), safe='')}&port={self.port}{options}"
        return f"postgresql://{user or self.user}@/{database}?{where}"

    def tcp_address(self, database: str, *, password: str | None = None, options: str = "") -> str:
        """A database over TCP."""
        secret = quote(self.password if password is None else password, safe="")
        at = f"@127.0.0.1:{self.port}/{database}{options}"
        return f"postgresql://{self.user}:{secret}{at}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = [f"-c{name}={value}" for name, value in _SETTINGS.items()]
        settings += [
            f"-cssl_cert_file={self.certificate}",
            f"-cssl_key_file={self._home}/server.key",
        ]
        place = [f"-D{self._data}", f"-k{self._home}", f"-p{self.port}"]
        with (self._home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._as_nobody("postgres", *place, *settings), stdout=log, stderr=log
            )
        deadline = time.monotonic() + 60
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((self._home / "log").read_text())
            time.sleep(0.02)

    def kill(self) -> None:
        """End every one of its processes at once, as a power cut would."""
        assert self._process
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        pids = [self._process.pid, *map(int, children.read_text().split())]
        for pid in pids:
            with suppress(ProcessLookupError):  # those left end by themselves
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        while any(_lives(pid) for pid in pids):
            time.sleep(0.01)

    def stop(self) -> None:
        """End it, and remove everything that it wrote."""
        try:
            if self._cleaner is not None:
                self._cleaner.close()
        finally:
            if self._process is not None and self._process.poll() is None:
                self._process.send_signal(signal.SIGQUIT)  # at once: nobody reads its data again
                self._process.wait(timeout=120)
            shutil.rmtree(self._home)

    def run(self, sql: str, database: str = "postgres") -> str:
        """What `psql` prints for a statement."""
        place = ["-h", str(self._home), "-p", str(self.port), "-U", self.user, "-d", database]
        done = subprocess.run(
            [self._binaries / "psql", *place, "-XAtqc", sql],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(done.stderr)
        return done.stdout.strip()

    def connection(self, database: str) -> psycopg.Connection:
        """A session of the superuser, to be closed."""
        return psycopg.connect(self.address(database), autocommit=True)

    def new_database(self) -> str:
        """The name of a new database, whose language sorts texts unlike their bytes."""
        self._made += 1
        name = f"test{self._made}"
        self.run(f"CREATE DATABASE {name} TEMPLATE english")
        return name

    def emptied(self) -> str:
        """The name of the one database that tests share in turn, with nothing in it."""
        if self._cleaner is None:
            self._shared = self.new_database()
            self._cleaner = Database.open(self.address(self._shared))
            self._tables = [
                str(name)
                for (name,) in self._cleaner.rows(
                    "SELECT tablename FROM pg_tables WHERE schemaname = 'assay' "
                    "AND tablename <> 'migration'"
                )
            ]
        with self._cleaner.writing():
            # Without triggers, which refuse to forget versions; quicker than TRUNCATE.
            self._cleaner.change("SET LOCAL session_replication_role = replica")
            for table in self._tables:
                self._cleaner.change(f"DELETE FROM {table}")
            values = "('default', 'Default', '2026-11-21T09:08:30.000Z')"
            self._cleaner.change(f"INSERT INTO project (key, name, created_at) VALUES {values}")
        return self._shared

    def _make(self) -> None:
        self._data.mkdir()
        if os.geteuid() == 0:
            for place in (self._home, self._data):
                os.chown(place, _NOBODY, _NOBODY)
        secret = self._home / "secret"
        secret.write_text(self.password)
        secret.chmod(0o644)
        subprocess.run(
            self._as_nobody(
                "initdb", f"-D{self._data}", f"-U{self.user}", "--no-sync", "--encoding=UTF8",
                "--locale=C", "--auth-local=trust", "--auth-host=scram-sha-256",
                f"--pwfile={secret}", "--no-instructions",
            ),
            check=True, capture_output=True, timeout=120,
        )  # fmt: skip
        self._make_certificate()
        self.start()
        self.run(
            "CREATE DATABASE english TEMPLATE template0 "
            "LOCALE_PROVIDER icu ICU_LOCALE 'en' LOCALE 'C'"
        )

    def _make_certificate(self) -> None:
        names = ["-subj", "/CN=tests", "-addext", "subjectAltName=IP:127.0.0.1"]
        key = self._home / "server.key"
        subprocess.run(
            [
                "openssl", "req", "-x509", "-nodes", "-days", "2", *names,
                "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                "-keyout", key, "-out", self.certificate,
            ],
            check=True, capture_output=True, timeout=60,
        )  # fmt: skip
        if os.geteuid() == 0:
            os.chown(key, _NOBODY, _NOBODY)

    def _as_nobody(self, program: str, *arguments: str) -> list[str]:
        """A command of PostgreSQL's, which refuses to be run by the superuser."""
        as_nobody = [f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups"]
        ids = as_nobody if os.geteuid() == 0 else []
        # Whatever becomes of the tests, the server does not outlive them.
        with_us = ["setpriv", "--pdeathsig=INT", *ids, "--"]
        return [*with_us, str(self._binaries / program), *arguments]

    def _answers(self) -> bool:
        try:
            self.run("SELECT 1")
        except RuntimeError:
            return False
        return True


_SERVER = pytest.StashKey[PostgresServer]()


def _lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def free_port() -> int:
    """One on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
