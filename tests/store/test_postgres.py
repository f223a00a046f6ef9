"""A store on PostgreSQL: its addresses, its schema, and what each failure tells people to do."""

from __future__ import annotations

import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from assay.errors import InputError, MissingExtraError, StoreError
from assay.store import Database, Projects, RunRecord, Store, postgres
from assay.store.database import SCHEMA_FILE
from assay.store.postgres import PostgresEngine, fault, has_ended
from tests.each import each
from tests.postgres import PostgresServer, free_port, programs


@pytest.fixture
def location(server: PostgresServer) -> str:
    return server.address(server.emptied())


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("PGHOST", "PGPORT", "PGUSER", "PGPASSWORD", "PGDATABASE"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@each(
    "address, shown",
    [
        ("postgresql://u:p@h:6543/d", "postgresql://u@h:6543/d"),
        ("postgres://u@h/d", "postgresql://u@h/d"),
        ("postgresql://u@[::1]:1/d", "postgresql://u@[::1]:1/d"),
        ("postgresql://%40:%40%2F%23%3F%25@h/d%20d", "postgresql://%40@h/d%20d"),
        ("postgresql://u:12#x?y@h/d", "postgresql://u@h/d"),
        ("postgresql://u@/d?host=/run/pg&port=7", "postgresql://u@/d?host=/run/pg&port=7"),
        ("postgresql://u:p@h/d?password=q&sslmode=require", "postgresql://u@h/d"),
    ],
)
def test_an_address_is_shown_without_its_password(address: str, shown: str) -> None:
    assert PostgresEngine(address).place == shown


def test_what_an_address_leaves_out_comes_from_the_environment(
    server: PostgresServer, environment: pytest.MonkeyPatch
) -> None:
    values = {
        "HOST": "127.0.0.1", "PORT": str(server.port), "USER": server.user,
        "PASSWORD": server.password, "DATABASE": server.emptied(),
    }  # fmt: skip
    for name, value in values.items():
        environment.setenv(f"PG{name}", value)
    with Database.open("postgresql://") as opened:
        assert Projects(opened).get("default")


_SECRET = "s3cr3t"
ENDING = ("57P01", "57P03", "08006", "25P03")
"""What a server reports as it ends a connection."""


@each(
    "address",
    [
        f"postgresql://u:{_SECRET}/x@h/d",
        f"postgresql://u:12/{_SECRET}@h/d",
        f"postgresql://u:12/x?sslmode={_SECRET}@h/d",
        f"postgresql://u:{_SECRET}",
        f"postgresql://u:12#{_SECRET}",
        f"postgresql://u:x@{_SECRET}@h:port/d",
        f"postgresql://u:{_SECRET}@[h/d",
        f"postgresql://u:{_SECRET}@h/d?{_SECRET}",
        f"postgresql://u:{_SECRET}@h/d?port={_SECRET}",
        f"postgresql://u:{_SECRET}@h/d?{_SECRET}=1",
    ],
)
def test_an_address_that_cannot_be_read_shows_no_password(address: str) -> None:
    with pytest.raises(InputError) as caught:
        Database.open(address)
    assert _SECRET not in "".join(traceback.format_exception(caught.value))


def test_runs_are_kept_on_a_server_with_files_beside_it(location: str, tmp_path: Path) -> None:
    with Store.open(location, home=str(tmp_path)) as store:
        assert store.home == str(tmp_path)
        store.create_run(RunRecord(id="r1", created_at="2026-11-21T09:08:30Z"))
        with pytest.raises(InputError, match=r"no run 'r9' in postgresql://tester@"):
            store.run("r9")
    with Store.open(location) as store:
        assert store.home == ".assay"
        assert store.run("latest").id == "r1"


def test_a_password_is_asked_for_over_tcp(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = server.emptied()
    with Database.open(server.tcp_address(database)) as opened:
        assert Projects(opened).get("default")
    monkeypatch.setenv("PGPASSWORD", server.password)
    location = f"postgresql://{server.user}@127.0.0.1:{server.port}/{database}"
    with Database.open(location) as opened:
        assert opened.place == location


def test_a_server_that_cannot_be_used_is_explained(
    server: PostgresServer, environment: pytest.MonkeyPatch
) -> None:
    del environment
    unread, unreached = "see that the server runs", "host and port are right"
    key, password, local = "sslmode and sslrootcert", "wr0ng-s3cr3t", f"127.0.0.1:{server.port}"
    for address, complaint, hint in (
        (server.tcp_address("postgres", password=password), "password authent", "PGPASSWORD"),
        (f"postgresql://tester@{local}/postgres", "no password supplied", "PGPASSWORD"),
        (server.address("nothing"), "does not exist", "create it first"),
        (f"postgresql://u:{password}@nowhere.invalid/d", "cannot be reached", unreached),
        (f"postgresql://u:{password}@127.0.0.1:99999/d", "cannot be reached: .*99999", unreached),
        (f"postgresql://u:{password}@127.0.0.1:{free_port()}/d", "Connection refused", unread),
        (f"postgresql://u:{password}@/d?host=/none", "cannot be reached: .*No such file", unread),
        (
            server.tcp_address("d", options="?sslmode=verify-ca&sslrootcert=/none"),
            "cannot be reached: .*certificate.*/none",
            key,
        ),
        (server.tcp_address("postgres", options="?sslmode=verify-full"), "certificate", key),
    ):
        with pytest.raises(StoreError, match=f"{complaint}.*{hint}") as caught:
            Database.open(address)
        shown = "".join(traceback.format_exception(caught.value))
        assert password not in shown
        assert server.password not in shown


def test_a_connection_is_encrypted_as_asked(server: PostgresServer) -> None:
    database = server.emptied()
    for mode in ("disable", "prefer", "require", "verify-ca", "verify-full"):
        options = f"?sslmode={mode}&sslrootcert={server.certificate}"
        with Database.open(server.tcp_address(database, options=options)) as opened:
            query = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
            assert opened.rows(query) == [(mode != "disable",)]


@contextmanager
def _answering(answer: bytes) -> Generator[str]:
    """The address of a server that says one thing to one client."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            client, _ = listener.accept()
            with client:
                client.recv(1024)
                client.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


@each(
    "answer, options, said",
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "", "cannot be reached"),
        (b"", "", "cannot be reached"),
        (b"N", "", "cannot be reached"),
        (b"N", "?sslmode=require", "does not support SSL"),
    ],
)
def test_a_server_of_another_kind_or_without_the_encryption_that_was_asked_for_is_explained(
    answer: bytes, options: str, said: str
) -> None:
    with _answering(answer) as place, pytest.raises(StoreError, match=said):
        Database.open(f"postgresql://u:p@{place}/d{options}")


@pytest.mark.slow
def test_a_server_that_never_answers_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        place = f"127.0.0.1:{listener.getsockname()[1]}/d?connect_timeout=1"
        with pytest.raises(StoreError, match="cannot be reached: connection timeout"):
            Database.open(f"postgresql://u:p@{place}")


def test_a_missing_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match=r"assay\[postgres\]"):
        Database.open("postgresql://u:p@h/d")


def test_a_database_of_another_encoding_is_refused(server: PostgresServer) -> None:
    server.run("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    with pytest.raises(StoreError, match=r"in LATIN1, not in UTF8.*ENCODING 'UTF8'"):
        Database.open(server.address("latin"))


def test_a_schema_of_another_program_is_refused_and_kept_and_its_tables_are_no_matter(
    server: PostgresServer,
) -> None:
    database = server.new_database()
    server.run("CREATE TABLE project (mine text); CREATE TABLE run (mine text)", database)
    with Database.open(server.address(database)) as opened:
        assert Projects(opened).create("p")
    assert server.run("SELECT count(*) FROM public.project", database) == "0"
    server.run("DROP SCHEMA assay CASCADE", database)
    server.run("CREATE SCHEMA assay CREATE TABLE theirs (x int)", database)
    with pytest.raises(StoreError, match=r"'assay' of .* belongs to another program"):
        Database.open(server.address(database))
    assert server.run("SELECT count(*) FROM assay.theirs", database) == "0"


def test_a_database_of_another_version_is_refused(server: PostgresServer) -> None:
    database = server.new_database()
    Database.open(server.address(database)).close()
    server.run("INSERT INTO assay.migration VALUES (999)", database)
    with pytest.raises(StoreError, match=r"by a newer assay \(schema 999.*upgrade assay"):
        Database.open(server.address(database))
    server.run("DELETE FROM assay.migration; INSERT INTO assay.migration VALUES (1)", database)
    with pytest.raises(StoreError, match=r"by an older assay \(schema 1,.*`assay runs export`"):
        Database.open(server.address(database))


def test_a_role_without_rights_is_told_so(server: PostgresServer, location: str) -> None:
    database = server.new_database()
    server.run("CREATE ROLE guest LOGIN")
    with pytest.raises(StoreError, match=r"may not be used so by that role.*GRANT"):
        Database.open(server.address(database, user="guest"))
    Database.open(server.address(database)).close()
    server.run(
        "GRANT USAGE ON SCHEMA assay TO guest; GRANT SELECT ON ALL TABLES IN SCHEMA assay TO guest",
        database,
    )
    with Database.open(server.address(database, user="guest")) as opened:
        assert Projects(opened).get("default")
        with pytest.raises(StoreError, match="may not be used so by that role"):
            Projects(opened).create("p")
        assert [project.key for project in Projects(opened).all()] == ["default"]


def test_a_server_without_room_for_another_client_is_told_as_such(server: PostgresServer) -> None:
    database = server.new_database()
    server.run("CREATE ROLE lonely LOGIN CONNECTION LIMIT 0")
    with pytest.raises(StoreError, match=r"too many connections.*max_connections"):
        Database.open(server.address(database, user="lonely"))


@each(
    "code, complaint",
    [
        ("53100", "disk is full.*free some space, then resume"),
        ("53200", "no memory left.*try again"),
        ("40001", "changed by others at the same moment.*try again"),
        ("XX001", "failed: it said so"),
        *((code, "was lost: it said so.*half-written") for code in ENDING),
    ],
)
def test_what_a_server_reports_is_explained(code: str, complaint: str) -> None:
    report = psycopg.errors.lookup(code)("it\n  said so")
    assert has_ended(report) == (code in ENDING)
    assert re.search(complaint, str(fault("here", report, is_lost=code in ENDING)))


def test_a_read_only_server_is_told_as_such(server: PostgresServer) -> None:
    database = server.new_database()
    Database.open(server.address(database)).close()
    server.run(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    with (
        Database.open(server.address(database)) as opened,
        pytest.raises(StoreError, match=r"is read-only.*may write"),
    ):
        Projects(opened).create("p")


def test_tables_that_cannot_be_made_leave_nothing(
    server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = server.address(server.new_database())
    with monkeypatch.context() as patch:
        twice = tmp_path / "schema.sql"
        twice.write_text(SCHEMA_FILE.read_text() + "CREATE TABLE run (x TEXT);\n")
        patch.setattr(postgres, "SCHEMA_FILE", twice)
        with pytest.raises(StoreError, match="already exists"):
            Database.open(location)
    with Database.open(location) as opened:
        assert Projects(opened).create("p")


def test_both_kinds_of_database_have_the_same_columns(location: str, tmp_path: Path) -> None:
    with Database.open(location) as opened:
        theirs = opened.rows(
            "SELECT table_name, column_name, is_nullable = 'NO' FROM information_schema.columns "
            "WHERE table_schema = 'assay' AND table_name <> 'migration'"
        )
    Database.open(tmp_path).close()
    file = sqlite3.connect(tmp_path / "assay.db")
    ours = file.execute(
        "SELECT m.name, c.name, m.type = 'table' AND (c.\"notnull\" OR c.pk > 0) "
        "FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type IN ('table', 'view')"
    ).fetchall()
    file.close()
    assert {(table, column, bool(fixed)) for table, column, fixed in ours} == set(theirs)


def test_texts_sort_by_their_bytes_whatever_the_servers_language(location: str) -> None:
    with Database.open(location) as opened:
        ((unlike,),) = opened.rows("SELECT 'a_b' COLLATE pg_catalog.\"und-x-icu\" < 'a-b'")
        for key in ("aa", "a_b", "a-b", "a.b", "a0"):
            Projects(opened).create(key)
        found = [project.key for project in Projects(opened).all()]
    assert found == ["a-b", "a.b", "a0", "a_b", "aa", "default"]
    assert unlike is True


def test_a_fork_does_not_end_its_parents_session(location: str) -> None:
    """What a child closes or drops must not be said to the server: the session is the parent's."""
    program = (
        "import os, sys\n"
        "from assay.store import Database, Projects\n"
        "opened = Database.open(sys.argv[1])\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    opened.close()\n"
        "    del opened\n"
        "    os._exit(0)\n"
        "os.waitpid(child, 0)\n"
        "print([project.key for project in Projects(opened).all()])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, location],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("['default']\n", "")


def _sessions(database: Database) -> list[object]:
    return [row[0] for row in database.rows("SELECT pg_backend_pid()")]


def test_a_session_that_was_ended_is_begun_again(server: PostgresServer, location: str) -> None:
    with Database.open(location) as opened:
        for use in (lambda: Projects(opened).all(), lambda: Projects(opened).ensure("p")):
            (session,) = _sessions(opened)
            assert server.run(f"SELECT pg_terminate_backend({session}, 5000)") == "t"
            assert use()
            assert _sessions(opened) != [session]


@each(
    "is_at_its_end, said",
    [
        (False, r"connection to the store .* was lost.*half-written"),
        (True, r"not known whether the write is there.*look"),
    ],
)
def test_a_write_whose_session_was_ended_leaves_nothing_and_what_is_known_is_said(
    server: PostgresServer, location: str, *, is_at_its_end: bool, said: str
) -> None:
    with Database.open(location) as opened:

        def write() -> None:
            with opened.writing():
                Projects(opened).create("first")
                server.run(f"SELECT pg_terminate_backend({_sessions(opened)[0]}, 5000)")
                if not is_at_its_end:
                    Projects(opened).create("second")

        with pytest.raises(StoreError, match=said):
            write()
        assert {"first", "second"}.isdisjoint(project.key for project in Projects(opened).all())
        assert Projects(opened).ensure("later")


def test_an_interrupt_leaves_no_half_of_an_answer(location: str) -> None:
    """What is left of one answer must not be taken for the next one."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with Database.open(location) as opened:
        before = signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        try:
            with pytest.raises(KeyboardInterrupt):
                opened.rows("SELECT 'the first answer' FROM pg_sleep(20)")
        finally:
            signal.signal(signal.SIGALRM, before)
        assert opened.rows("SELECT 1") == [(1,)]


def _set(database: Database, setting: str) -> None:
    with database.writing():
        database.change(f"SET {setting}")


def test_a_statement_that_takes_too_long_is_given_up(location: str) -> None:
    with Database.open(location) as opened:
        _set(opened, "statement_timeout = 50")
        with pytest.raises(StoreError, match="did not answer in time"):
            opened.rows("SELECT pg_sleep(20)")
        assert Projects(opened).all()


def test_a_lock_that_is_held_too_long_is_given_up(server: PostgresServer, location: str) -> None:
    with Database.open(location) as first, Database.open(location) as second, first.writing():
        first.change("UPDATE project SET name = 'x'")
        _set(second, "lock_timeout = 50")

        def write() -> None:
            with second.writing():
                second.change("UPDATE project SET name = 'y'")

        with pytest.raises(StoreError, match=r"is locked by another process.*end the process"):
            write()
        assert Projects(second).get("default").name == "Default"


def test_two_that_wait_for_each_other_are_told_to_try_again(location: str) -> None:
    with Database.open(location) as first:
        Projects(first).create("p")
        _set(first, "deadlock_timeout = 50")
        locked, ready = threading.Event(), threading.Event()

        def other() -> None:
            with Database.open(location) as second, second.writing():
                second.change("SET deadlock_timeout = '20s'")
                second.change("UPDATE project SET name = 'b' WHERE key = 'p'")
                locked.set()
                ready.wait()
                second.change("UPDATE project SET name = 'b' WHERE key = 'default'")

        def mine() -> None:
            with first.writing():
                first.change("UPDATE project SET name = 'a' WHERE key = 'default'")
                locked.wait()
                ready.set()
                first.change("UPDATE project SET name = 'a' WHERE key = 'p'")

        thread = threading.Thread(target=other)
        thread.start()
        with pytest.raises(StoreError, match=r"changed by others at the same moment.*try again"):
            mine()
        thread.join()
        assert [project.name for project in Projects(first).all()] == ["b", "b"]


@pytest.mark.slow
def test_a_server_that_dies_in_a_write_keeps_what_was_stored_and_nothing_else() -> None:
    binaries = programs()
    if binaries is None:
        pytest.skip("PostgreSQL is not installed (Debian's package 'postgresql')")
    server = PostgresServer(binaries)
    try:
        with Database.open(server.address(server.new_database())) as opened:
            Projects(opened).create("before")

            def write() -> None:
                with opened.writing():
                    Projects(opened).create("half")
                    server.kill()
                    Projects(opened).create("way")

            with pytest.raises(StoreError, match=r"was lost.*see that the server runs"):
                write()
            with pytest.raises(StoreError, match="cannot be reached"):
                Projects(opened).all()
            server.start()
            assert [project.key for project in Projects(opened).all()] == ["before", "default"]
            assert Projects(opened).create("after")
    finally:
        server.stop()


def test_who_waited_for_the_schema_finds_it(server: PostgresServer) -> None:
    """A session remembers what is not there until it opens a table, or has missed a lot."""
    newest = server.run("SELECT max(number) FROM assay.migration", server.emptied())
    database = server.new_database()
    places: list[str] = []

    def open_it() -> None:
        with Database.open(server.address(database)) as opened:
            places.append(opened.place)

    maker, waiter = server.connection(database), threading.Thread(target=open_it)
    maker.execute("BEGIN")
    maker.execute("SELECT pg_advisory_xact_lock(1634955641)")
    waiter.start()
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    while server.run(waiting, database) == "0":
        pass
    # Less than all that a schema has: so much changed would wake whoever waits.
    maker.execute("CREATE SCHEMA assay CREATE TABLE migration (number BIGINT PRIMARY KEY)")
    maker.execute("INSERT INTO assay.migration VALUES (%s)", (newest,))
    maker.execute("COMMIT")
    maker.close()
    waiter.join()
    assert places
