"""Taking snapshots of directories whose owner wants them to fail, to hang, or to reach outside."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import socket
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from assay.errors import StoreError
from assay.store import Dropped, Snapshot, SnapshotLimits, restore_snapshot, take_snapshot
from tests.each import each
from tests.processes import open_below

_NOBODY = 65534


def _blobs(home: str) -> set[str]:
    root = Path(home, "blobs")
    return {str(file.relative_to(root)) for file in root.rglob("*") if file.is_file()}


def _names(home: str, snapshot: Snapshot) -> set[str]:
    """What is in a snapshot, as far as it can be restored."""
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory, "target")
        restore_snapshot(home, snapshot.digest, str(target))
        return {str(path.relative_to(target)) for path in target.rglob("*")}


def test_a_file_is_kept_once_under_the_digest_of_its_content(
    home: str, work: Path, tmp_path: Path
) -> None:
    (work / "a.txt").write_bytes(b"hello")
    (work / "sub").mkdir()
    (work / "sub" / "same.txt").write_bytes(b"hello")
    snapshot = take_snapshot(home, str(work))
    digest = hashlib.sha256(b"hello").hexdigest()
    assert _blobs(home) == {f"{digest[:2]}/{digest[2:]}"}
    assert (snapshot.files, snapshot.bytes, snapshot.dropped) == (2, 10, ())
    assert take_snapshot(home, str(shutil.copytree(work, tmp_path / "other"))) == snapshot
    assert len(_blobs(home)) == 1


def test_the_digest_is_that_of_the_canonical_manifest(home: str, work: Path) -> None:
    (work / "a").mkdir()
    (work / "a" / "b").symlink_to("../a-b")
    (work / "a-b").write_bytes(b"hello")
    (work / "a-b").chmod(0o644)
    digest = hashlib.sha256(b"hello").hexdigest()
    manifest = (
        '{"a":{"type":"directory"},'
        f'"a-b":{{"mode":420,"sha256":"{digest}","size":5,"type":"file"}},'
        '"a/b":{"target":"../a-b","type":"link"}}'
    )
    expected = hashlib.sha256(manifest.encode()).hexdigest()
    assert take_snapshot(home, str(work)).digest == expected
    assert Path(home, "snapshots", expected[:2], expected[2:]).is_file()


def test_every_change_that_matters_changes_the_digest(home: str, work: Path) -> None:
    (work / "a").write_text("one")
    (work / "l").symlink_to("a")
    digests = [take_snapshot(home, str(work)).digest]
    for change in (
        lambda: (work / "a").write_text("eno"),
        lambda: (work / "a").rename(work / "b"),
        lambda: (work / "b").chmod(0o755),
        (work / "l").unlink,
        lambda: (work / "l").symlink_to("b"),
        (work / "d").mkdir,
    ):
        change()
        digests.append(take_snapshot(home, str(work)).digest)
    assert len(set(digests)) == len(digests)


def test_links_are_neither_read_nor_entered(home: str, work: Path, tmp_path: Path) -> None:
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "test_it.py").write_text("assert answer == 42")
    (work / "file").symlink_to(tmp_path / "hidden" / "test_it.py")
    (work / "directory").symlink_to(tmp_path / "hidden", target_is_directory=True)
    (work / "loop").symlink_to(".", target_is_directory=True)
    snapshot = take_snapshot(home, str(work))
    assert (snapshot.files, snapshot.bytes, snapshot.dropped) == (0, 0, ())
    assert _blobs(home) == set()
    assert _names(home, snapshot) == {"loop"}


@pytest.mark.parametrize("replacement", ["link", "file", "gone"])
def test_a_workspace_replaced_by_its_owner_is_empty_and_says_so(
    home: str, work: Path, tmp_path: Path, replacement: str
) -> None:
    """It must neither be followed nor fail: a failure would be an error instead of a 0."""
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "secret").write_text("hidden tests")
    work.rmdir()
    if replacement == "link":
        work.symlink_to(tmp_path / "hidden", target_is_directory=True)
    elif replacement == "file":
        work.write_text("no directory")
    for path in (str(work), f"{work}/"):
        snapshot = take_snapshot(home, path)
        assert snapshot.files == 0
        assert [dropped.path for dropped in snapshot.dropped] == ["."]
        assert "cannot be read" in snapshot.dropped[0].why
        assert _names(home, snapshot) == set()


def test_pipes_sockets_devices_and_endless_links_are_reported_and_never_waited_for(
    home: str, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "a").write_text("kept")
    os.mkfifo(work / "pipe")
    (work / "link").symlink_to("x" * 2_000)
    devices: tuple[Dropped, ...] = ()
    with suppress(PermissionError):  # only the superuser can make one, and not in every container
        os.mknod(work / "a-device", 0o600 | 0o020000, os.makedev(1, 5))
        devices = (Dropped("a-device", "it is a device"),)
    monkeypatch.chdir(work)  # the name of a socket has to be short
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("socket")
        snapshot = take_snapshot(home, str(work))
    assert snapshot.files == 1
    assert snapshot.dropped == (
        *devices,
        Dropped("link", "its target is longer than 1024 bytes"),
        Dropped("pipe", "it is a named pipe"),
        Dropped("socket", "it is a socket"),
    )


@pytest.mark.parametrize(
    ("was", "becomes"), [("file", "pipe"), ("file", "link"), ("directory", "link")]
)
def test_an_entry_swapped_after_it_was_listed_is_neither_waited_for_nor_followed(
    home: str, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, was: str, becomes: str
) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "file").write_text("hidden tests")
    if was == "file":
        (work / "a").write_text("a file while it is listed")
    else:
        (work / "a").mkdir()
    opened = os.open

    def swap(path: str | bytes | Path, flags: int, *rest: int, dir_fd: int | None = None) -> int:
        if path == b"a":
            (work / "a").rename(tmp_path / "a")
            if becomes == "pipe":
                os.mkfifo(work / "a")
            else:
                (work / "a").symlink_to(tmp_path / "secret" / ("file" if was == "file" else ""))
        return opened(path, flags, *rest, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", swap)
    snapshot = take_snapshot(home, str(work))
    ((path, why),) = [(dropped.path, dropped.why) for dropped in snapshot.dropped]
    assert (path, snapshot.files) == ("a", 0)
    assert becomes == "link" or why == "it changed while it was read"


def test_a_file_that_grows_while_it_is_read_is_left_out(
    home: str, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "small").write_bytes(b"x" * 10)
    (work / "large").write_bytes(b"x" * (3 << 20))
    read = os.read

    def grow(fd: int, size: int) -> bytes:
        for name in ("small", "large"):
            with (work / name).open("ab") as file:
                file.write(b"more")
        return read(fd, size)

    monkeypatch.setattr(os, "read", grow)
    snapshot = take_snapshot(home, str(work))
    assert snapshot.dropped == (
        Dropped("large", "it grew while it was read"),
        Dropped("small", "it grew while it was read"),
    )
    assert _blobs(home) == set()  # nor is anything half-written left behind


def test_hard_links_to_one_large_file_count_every_time(home: str, work: Path) -> None:
    """Kept once, they would still fill the disk when they are restored."""
    (work / "00").write_bytes(b"x" * 1000)
    for number in range(1, 20):
        (work / f"{number:02}").hardlink_to(work / "00")
    snapshot = take_snapshot(home, str(work), limits=SnapshotLimits(total_bytes=5_500))
    assert (snapshot.files, snapshot.bytes, len(snapshot.dropped)) == (5, 5_000, 15)
    assert len(_blobs(home)) == 1


def test_set_uid_bits_are_not_kept(home: str, work: Path, tmp_path: Path) -> None:
    (work / "tool").write_text("#!/bin/sh\n")
    (work / "tool").chmod(0o6755)
    restore_snapshot(home, take_snapshot(home, str(work)).digest, str(tmp_path / "target"))
    assert (tmp_path / "target" / "tool").stat().st_mode & 0o7777 == 0o755


def test_what_cannot_be_read_is_reported() -> None:
    directory = Path(tempfile.mkdtemp())
    privileged = os.geteuid() == 0
    if privileged:
        os.chown(directory, _NOBODY, -1)
        os.seteuid(_NOBODY)
    try:
        work = directory / "work"
        (work / "closed").mkdir(parents=True)
        (work / "file").write_text("mine alone")
        (work / "file").chmod(0o000)
        (work / "closed").chmod(0o000)
        snapshot = take_snapshot(str(directory / "home"), str(work))
        (work / "closed").chmod(0o700)
    finally:
        if privileged:
            os.seteuid(0)
        shutil.rmtree(directory)
    assert snapshot.dropped == (
        Dropped("closed", "it cannot be read: Permission denied"),
        Dropped("file", "it cannot be read: Permission denied"),
    )


_ALL = {"a", "b", "b/c", "b/c/d", "e"}


@each(
    "limits, kept, dropped",
    [
        (
            SnapshotLimits(entries=5, total_bytes=600, file_bytes=300, path_bytes=5, depth=2),
            _ALL,
            set[str](),
        ),
        (SnapshotLimits(entries=4), _ALL - {"e"}, {"e"}),
        (SnapshotLimits(entries=2), {"a", "b"}, {"b/c", "e"}),
        (SnapshotLimits(file_bytes=299), _ALL - {"e"}, {"e"}),
        (SnapshotLimits(total_bytes=599), _ALL - {"e"}, {"e"}),
        (SnapshotLimits(total_bytes=150), {"a", "b", "b/c"}, {"b/c/d", "e"}),
        (SnapshotLimits(path_bytes=4), _ALL - {"b/c/d"}, {"b/c/d"}),
        (SnapshotLimits(depth=1), {"a", "b", "e"}, {"b/c"}),
        (SnapshotLimits(depth=0), {"a", "e"}, {"b"}),
    ],
)
def test_what_is_over_a_limit_is_left_out_and_reported(
    home: str, work: Path, limits: SnapshotLimits, kept: set[str], dropped: set[str]
) -> None:
    (work / "b" / "c").mkdir(parents=True, exist_ok=True)
    (work / "a").write_bytes(b"a" * 100)
    (work / "b" / "c" / "d").write_bytes(b"d" * 200)
    (work / "e").write_bytes(b"e" * 300)
    snapshot = take_snapshot(home, str(work), limits=limits)
    assert _names(home, snapshot) == kept
    assert {entry.path for entry in snapshot.dropped} == dropped


@pytest.mark.slow
def test_a_directory_of_very_many_entries_makes_a_short_report(home: str, work: Path) -> None:
    for number in range(2_500):
        (work / f"{number:04}").touch()
    snapshot = take_snapshot(home, str(work), limits=SnapshotLimits(entries=1_000))
    assert snapshot.files == 1_000
    assert len(snapshot.dropped) == 1_001
    assert snapshot.dropped[0] == Dropped(".", "holds more entries than are looked at")
    assert snapshot.dropped[-1] == Dropped(".", "1 more were left out")


def test_a_very_deep_tree_is_cut_off(home: str, work: Path) -> None:
    here = os.open(work, os.O_RDONLY)
    for _ in range(1_500):  # deeper than descriptors and recursion would reach
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    try:
        (dropped,) = take_snapshot(home, str(work)).dropped
    finally:
        subprocess.run(["rm", "-rf", work], check=True)  # too deep for Python to remove
    assert dropped.why == "it is more than 100 directories deep"
    assert dropped.path.count("/") == 100


def test_running_out_of_descriptors_is_no_fault_of_the_workspace(
    home: str, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "a").write_text("one")
    opened = os.open

    def fail(path: str | bytes | Path, flags: int, *rest: int, dir_fd: int | None = None) -> int:
        if path == b"a":
            raise OSError(errno.EMFILE, "Too many open files")
        return opened(path, flags, *rest, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", fail)
    with pytest.raises(StoreError, match="Too many open files"):
        take_snapshot(home, str(work))


@pytest.mark.parametrize("size", [10, 3 << 20])
def test_a_full_disk_is_a_store_error_and_leaves_no_torn_file(
    home: str, work: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    (work / "a").write_bytes(os.urandom(size))

    def full(fd: int, content: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(StoreError, match=r"No space left.*free space"):
            take_snapshot(home, str(work))
    assert _blobs(home) == set()
    assert take_snapshot(home, str(work)).files == 1


def test_writes_that_take_only_a_part_are_continued(
    home: str, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = os.urandom(3 << 20)
    (work / "a").write_bytes(content)
    write = os.write

    def write_some(fd: int, data: bytes) -> int:
        return write(fd, data[:100_000])

    monkeypatch.setattr(os, "write", write_some)
    restore_snapshot(home, take_snapshot(home, str(work)).digest, str(tmp_path / "target"))
    assert (tmp_path / "target" / "a").read_bytes() == content


def test_an_artifact_torn_by_a_power_cut_is_written_again(home: str, work: Path) -> None:
    (work / "a").write_text("one")
    first = take_snapshot(home, str(work))
    (blob,) = _blobs(home)
    Path(home, "blobs", blob).write_bytes(b"")
    assert take_snapshot(home, str(work)) == first
    assert Path(home, "blobs", blob).stat().st_size > 0


def test_a_store_that_cannot_be_made_is_a_store_error(work: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StoreError, match="could not be read or written"):
        take_snapshot(str(tmp_path / "file"), str(work))


def test_no_descriptor_stays_open(home: str, work: Path, tmp_path: Path) -> None:
    (work / "a" / "b").mkdir(parents=True)
    (work / "a" / "b" / "c").write_text("one")
    os.mkfifo(work / "pipe")
    (work / "large").write_bytes(bytes(3 << 20))
    snapshot = take_snapshot(home, str(work), limits=SnapshotLimits(depth=1))
    restore_snapshot(home, snapshot.digest, str(tmp_path / "target"))
    assert open_below(tmp_path) == []
