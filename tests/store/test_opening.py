"""Opening a store: what is made, what is refused, and what each failure tells people to do."""

from __future__ import annotations

import concurrent.futures
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from assay.errors import InputError, StoreError
from assay.store import CellRecord, RunRecord, Store, sqlite
from assay.store.database import SCHEMA, SCHEMA_FILE, Database
from assay.store.projects import Projects
from assay.store.sqlite import SqliteEngine
from tests.each import each
from tests.processes import open_below

_NOBODY = 65534


def raw(store: Store) -> sqlite3.Connection:
    opened = store._database._engine
    assert isinstance(opened, SqliteEngine)
    return opened._connection


def _fill(store: Store) -> None:
    store.create_run(RunRecord(id="r1", created_at="2026-11-21T09:08:30Z"))
    store.add_cell(CellRecord(run_id="r1", case="a", status="skipped"), {})


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    with Store.open(str(tmp_path / "home")) as store:
        _fill(store)
    return tmp_path / "home"


@pytest.fixture
def unprivileged(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory that belongs to us while we are not the superuser, who may write anywhere."""
    directory = Path(tempfile.mkdtemp())
    # The sources may lie where only the superuser gets to.
    schema = Path(shutil.copy(sqlite.SCHEMA_FILE, directory))
    monkeypatch.setattr(sqlite, "SCHEMA_FILE", schema)
    schema.chmod(0o444)
    if os.geteuid() != 0:
        yield directory
    else:
        os.chown(directory, _NOBODY, -1)
        os.seteuid(_NOBODY)
        try:
            yield directory
        finally:
            os.seteuid(0)
    shutil.rmtree(directory)


def test_a_store_is_made_with_its_parents_and_kept_out_of_git(tmp_path: Path) -> None:
    home = tmp_path / "deep" / "home"
    with Store.open(str(home)) as store:
        assert store.home == str(home)
    assert (home / "assay.db").is_file()
    assert (home / ".gitignore").read_text() == "*\n"
    (home / ".gitignore").write_text("blobs/\n")  # a user's own is left alone
    Store.open(str(home)).close()
    assert (home / ".gitignore").read_text() == "blobs/\n"


def test_the_settings_are_the_safe_ones(tmp_path: Path) -> None:
    with Store.open(str(tmp_path)) as store:
        settings = {
            name: raw(store).execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    assert settings == {
        "journal_mode": "wal", "synchronous": 1, "foreign_keys": 1, "busy_timeout": 30_000,
    }  # fmt: skip


def test_a_place_where_something_else_is_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "one" / "assay.db").mkdir(parents=True)
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "assay.db").write_text("my notes " * 1000)
    for place, complaint in (
        ("file", r"is not a directory.*choose another store"),
        ("file/home", r"is not a directory.*choose another store"),
        ("one", r"cannot be opened.*must be a file"),
        ("two", r"is not a database.*move the file away"),
    ):
        with pytest.raises(StoreError, match=complaint):
            Store.open(str(tmp_path / place))
    assert (tmp_path / "file").read_text() == "mine"
    assert (tmp_path / "two" / "assay.db").read_text() == "my notes " * 1000


def test_a_home_in_a_place_that_takes_no_files_is_refused(unprivileged: Path) -> None:
    unprivileged.chmod(0o500)
    with pytest.raises(StoreError, match=r"cannot be made.*may write to"):
        Store.open(str(unprivileged / "home"))


def test_a_read_only_database_is_refused(unprivileged: Path) -> None:
    with Store.open(str(unprivileged)) as store:
        _fill(store)
    (unprivileged / "assay.db").chmod(0o400)
    unprivileged.chmod(0o500)
    with (
        pytest.raises(StoreError, match=r"is read-only.*choose another store"),
        Store.open(str(unprivileged)) as store,
    ):
        store.finish_run("r1")
    unprivileged.chmod(0o700)


def test_a_damaged_database_is_named_as_such(filled: Path) -> None:
    database = filled / "assay.db"
    content = bytearray(database.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    database.write_bytes(content)
    with (
        pytest.raises(StoreError, match=r"is damaged.*\.recover"),
        Store.open(str(filled)) as store,
    ):
        list(store.cells("r1"))
    database.write_bytes(b"")  # what was cut off to nothing is no new store
    with pytest.raises(StoreError, match="is empty: something has cut it off"):
        Store.open(str(filled))
    for file in filled.glob("assay.db*"):
        file.unlink()
    Store.open(str(filled)).close()


@pytest.mark.parametrize("pragma", ["user_version = 1", "user_version = 0"])
def test_a_database_of_another_program_is_refused(tmp_path: Path, pragma: str) -> None:
    database = sqlite3.connect(tmp_path / "assay.db")
    database.execute("CREATE TABLE theirs (x)")
    database.execute(f"PRAGMA {pragma}")
    database.close()
    with pytest.raises(StoreError, match="belongs to another program"):
        Store.open(str(tmp_path))


def test_a_database_of_another_version_is_refused_and_kept(filled: Path) -> None:
    for version, complaint in (
        (999, r"by a newer assay \(schema 999, this one reads \d+\).*upgrade assay"),
        (1, r"by an older assay \(schema 1, this one reads \d+\).*`assay runs export` them"),
    ):
        _set_version(filled, version)
        with pytest.raises(StoreError, match=complaint):
            Store.open(str(filled))
        # Nor do the lock of the set-up and the connection outlive the error.
        assert open_below(filled) == []
    _set_version(filled, SCHEMA)
    with Store.open(str(filled)) as store:
        assert [cell.case for cell in store.cells("r1")] == ["a"]


def test_a_full_disk_loses_nothing_that_was_stored(filled: Path) -> None:
    with Store.open(str(filled)) as store:
        pages = raw(store).execute("PRAGMA page_count").fetchone()[0]
        raw(store).execute(f"PRAGMA max_page_count = {pages}")
        large = CellRecord(run_id="r1", case="b", status="skipped", answer="x" * 100_000)
        with pytest.raises(StoreError, match=r"disk is full.*then resume"):
            store.add_cell(large, {})
        assert [cell.case for cell in store.cells("r1")] == ["a"]
        raw(store).execute("PRAGMA max_page_count = 1000000")
        store.add_cell(large, {})
        assert [cell.case for cell in store.cells("r1")] == ["a", "b"]


def _mounted_as(kind: str, directory: Path) -> Path:
    device = directory.stat().st_dev
    mounts = directory / "mountinfo"
    mounts.write_text(
        "21 1 0:999 / /elsewhere rw - nfs4 server:/other rw\n"
        f"22 1 {os.major(device)}:{os.minor(device)} / / rw shared:1 - {kind} server:/x rw\n"
    )
    return mounts


def test_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("nfs4", "cifs", "fuse.sshfs"):
        monkeypatch.setattr(sqlite, "_MOUNTS", _mounted_as(kind, tmp_path))
        with pytest.raises(StoreError, match=rf"network file system \({kind}\).*local disk"):
            Store.open(str(tmp_path / "home"))
    # One that is mounted elsewhere is no matter, nor that there is no list of mounts.
    for mounts in (_mounted_as("ext4", tmp_path), tmp_path / "none"):
        monkeypatch.setattr(sqlite, "_MOUNTS", mounts)
        Store.open(str(tmp_path / "home")).close()


def test_tables_that_cannot_be_made_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        twice = tmp_path / "schema.sql"
        twice.write_text(SCHEMA_FILE.read_text() + "CREATE TABLE run (x);\n")
        patch.setattr(sqlite, "SCHEMA_FILE", twice)
        with pytest.raises(StoreError, match="already exists"):
            Store.open(str(tmp_path / "home"))
    with Store.open(str(tmp_path / "home")) as store:
        _fill(store)


def _set_version(home: Path, version: int) -> None:
    database = sqlite3.connect(home / "assay.db")
    database.execute(f"PRAGMA user_version = {version}")
    database.close()


def test_a_closed_store_says_so(location: str) -> None:
    opened = Database.open(location)
    opened.close()
    with pytest.raises(StoreError, match=r"was misused.*closed"):
        Projects(opened).all()
    opened.close()


def test_a_store_of_another_thread_or_process_is_refused(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Locks and sessions belong to the process: a fork that writes through them damages a file."""
    with Database.open(location) as opened:
        with (
            concurrent.futures.ThreadPoolExecutor(1) as pool,
            pytest.raises(StoreError, match=r"was misused.*one Store per thread"),
        ):
            pool.submit(Projects(opened).all).result()
        with monkeypatch.context() as patch:
            patch.setattr(os, "getpid", lambda: -1)
            with pytest.raises(StoreError, match=r"another process.*after a fork"):
                Projects(opened).create("p")
            opened.close()  # does nothing: the parent goes on
        assert [project.key for project in Projects(opened).all()] == ["default"]


@each("address", ["mysql://u:secret@host/db", "sqlite:///home/me/assay.db"])
def test_another_databases_address_is_refused_unseen(address: str) -> None:
    with pytest.raises(InputError, match=r"cannot be at (mysql|sqlite)://\.\.\.") as caught:
        Store.open(address)
    assert "secret" not in str(caught.value)


def test_a_write_belongs_to_a_transaction_also_one_around_it(filled: Path) -> None:
    with Store.open(str(filled)) as store:
        with pytest.raises(StoreError, match="outside a transaction"):
            store._database.change("DELETE FROM detail")
        with suppress(InputError), store._database.writing():
            store.finish_run("r1")
            store.finish_run("r9")
        assert not store.run("r1").finished
        with pytest.raises(InputError):
            store.finish_run("r9")
        store.finish_run("r1")  # a failure lets the next one through
    for _ in range(2):
        with Store.open(str(filled)) as store:
            assert store.run("r1").finished
            assert [cell.case for cell in store.cells("r1")] == ["a"]


def test_a_store_is_not_for_everybody_to_read_nor_is_what_a_link_leads_to(tmp_path: Path) -> None:
    home = tmp_path / "store"
    with Database.open(home) as database:
        Projects(database).create("secret")
        found = {path.name: path.stat().st_mode & 0o077 for path in [home, *home.glob("assay.db*")]}
    assert found.pop("store") == 0o011
    assert "assay.db" in found
    assert set(found.values()) == {0}
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / "assay.db").symlink_to(tmp_path / "elsewhere.db")
    before = os.umask(0o022)
    try:
        Database.open(linked).close()
    finally:
        os.umask(before)
    assert (tmp_path / "elsewhere.db").stat().st_mode & 0o777 == 0o600
