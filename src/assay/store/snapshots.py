"""Snapshots: what an agent left in its directory, kept by content.

Everything in such a directory was put there by somebody who wants reward. So nothing is ever
followed: each directory is opened relative to its parent's descriptor, each file without links and
without waiting, and what is opened is asked what it is. Whatever cannot be kept is left out and
reported, because a directory that could make its own snapshot fail would escape its grade.

A snapshot is a manifest, from path to what is there::

    {"src": {"type": "directory"},
     "src/a.py": {"type": "file", "mode": 420, "size": 12, "sha256": "..."},
     "src/b.py": {"type": "link", "target": "a.py"}}

and its digest is the SHA-256 of that manifest as canonical JSON. Names that are not UTF-8 stand in
it with their odd bytes as lone surrogates. Owners, times, hard links and the modes of directories
are not kept, nor are set-uid, set-gid and sticky bits.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from assay.errors import StoreError
from assay.frozen import frozen
from assay.scoring.json_safe import Json
from assay.store.blobs import CHUNK, Blobs

if TYPE_CHECKING:
    from assay.store.sources import Hasher

Signature: TypeAlias = tuple[int, int, int, int, int]
"""What tells that a file was not touched: inode, size, mode, and times of change in nanoseconds."""

Known: TypeAlias = "Mapping[str, tuple[Signature, Json]]"
"""Files whose content is known, by path: their signatures, and what a manifest says of them."""

_MAX_DROPPED = 1_000
"""Entries reported by name; more are only counted, or a hostile tree would make a huge report."""

_OURS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Failures that say nothing about the workspace: this process ran out of something."""

_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
}


@frozen(kw_only=True)
class SnapshotLimits:
    """How much of a workspace is kept; what is over is left out and reported.

    Attributes:
        entries: Files, directories and links together.
        total_bytes: Size of all files together, before compression.
        file_bytes: Size of one file.
        path_bytes: Length of one path from the workspace's root, and of one link's target.
        depth: Directories inside each other; each costs an open descriptor for a while.
    """

    entries: int = 100_000
    total_bytes: int = 1 << 30
    file_bytes: int = 256 << 20
    path_bytes: int = 1_024
    depth: int = 100


@frozen
class Dropped:
    """Something that was left out.

    Attributes:
        path: Where it is, from the root of the workspace; ``.`` for the root itself.
        why: The reason, for people.
    """

    path: str
    why: str


@frozen
class Snapshot:
    """A workspace as it was kept.

    Attributes:
        digest: What `restore_snapshot` finds it by; equal trees have equal digests.
        files: Number of regular files kept.
        bytes: Their size together.
        dropped: What was left out; after a thousand, the last entry says how many more.
        entries: The manifest: path to what is there.
    """

    digest: str
    files: int
    bytes: int
    dropped: tuple[Dropped, ...] = ()
    entries: Mapping[str, Json] = field(default_factory=dict[str, Json], repr=False)


def take_snapshot(
    store_dir: str, path: str, *, limits: SnapshotLimits | None = None, known: Known | None = None
) -> Snapshot:
    """Keep a directory as it is now. Blocks; call it in a thread where that matters.

    Args:
        store_dir: The store's directory (`Store.home`).
        path: The directory. If it is gone or no longer a directory, the snapshot is empty and
            says so: whoever worked in it could have removed it.
        limits: How much to keep; by default `SnapshotLimits()`.
        known: Files of a source that is kept already (see `assay.store.sources`). Those that were
            not touched since are neither read nor kept again: to restore the snapshot, give
            `restore_snapshot` that source.
    """
    with Blobs(Path(store_dir, "blobs")) as blobs, Blobs(Path(store_dir, "snapshots")) as manifests:
        walk = Walk(blobs, limits or SnapshotLimits(), known or {})
        walk.root(Path(path))
        digest = manifests.put(walk.manifest())
    return Snapshot(digest, walk.files, walk.size, walk.report(), walk.entries)


class _NotKeptError(Exception):
    """Why one entry is left out of the snapshot."""


@dataclass(slots=True)
class Walk:
    """One snapshot being taken.

    Attributes:
        blobs: Where the content goes, or what only says its digest.
        limits: How much to keep.
        known: Files that need not be read.
        entries: The manifest so far.
        signatures: Of each file that was read.
    """

    blobs: Blobs | Hasher
    limits: SnapshotLimits
    known: Known = field(default_factory=dict[str, tuple[Signature, Json]])
    signatures: dict[str, Signature] = field(default_factory=dict[str, Signature])
    entries: dict[str, Json] = field(default_factory=dict[str, Json])
    files: int = 0
    size: int = 0
    dropped: list[Dropped] = field(default_factory=list[Dropped])
    unnamed: int = 0

    def root(self, path: Path) -> None:
        """Walk a directory; one that is gone is reported as left out."""
        try:
            fd = _open(path, os.O_DIRECTORY)
        except _NotKeptError as reason:
            self.drop(".", str(reason))
            return
        self.directory(fd, "", 0)

    def directory(self, fd: int, prefix: str, depth: int) -> None:
        """Keep what is in an open directory, in the order of names; closes it."""
        try:
            for name, entry in self.listing(fd, prefix):
                path = prefix + name.decode("utf-8", "surrogateescape")
                try:
                    self.entry(fd, name, entry, path, depth)
                except _NotKeptError as reason:
                    self.drop(path, str(reason))
        finally:
            os.close(fd)

    def listing(self, fd: int, prefix: str) -> list[tuple[bytes, os.DirEntry[str]]]:
        """Names in a directory; bounded, because it may hold millions."""
        most = self.limits.entries + _MAX_DROPPED
        found: list[tuple[bytes, os.DirEntry[str]]] = []
        with os.scandir(fd) as scan:
            for entry in scan:
                if len(found) >= most:
                    self.drop(prefix.rstrip("/") or ".", "holds more entries than are looked at")
                    break
                found.append((os.fsencode(entry.name), entry))
        return sorted(found, key=lambda pair: pair[0])

    def entry(
        self, parent: int, name: bytes, entry: os.DirEntry[str], path: str, depth: int
    ) -> None:
        """Keep one entry of a directory, or say why not."""
        if len(path.encode("utf-8", "surrogateescape")) > self.limits.path_bytes:
            raise _NotKeptError(f"its path is longer than {self.limits.path_bytes} bytes")
        if len(self.entries) >= self.limits.entries:
            raise _NotKeptError(f"there are more than {self.limits.entries} entries")
        if entry.is_symlink():
            self.entries[path] = {"type": "link", "target": self.target(parent, name)}
        elif entry.is_dir(follow_symlinks=False):
            if depth >= self.limits.depth:
                raise _NotKeptError(f"it is more than {self.limits.depth} directories deep")
            fd = _open(name, os.O_DIRECTORY, parent)
            self.entries[path] = {"type": "directory"}
            self.directory(fd, f"{path}/", depth + 1)
        elif entry.is_file(follow_symlinks=False):
            self.entries[path] = self.file(parent, name, path)
        else:
            raise _NotKeptError(_kind(entry))

    def target(self, parent: int, name: bytes) -> str:
        """Where a link leads."""
        try:
            target = os.readlink(name, dir_fd=parent)
        except OSError as error:
            raise _unreadable(error) from error
        if len(target) > self.limits.path_bytes:
            raise _NotKeptError(f"its target is longer than {self.limits.path_bytes} bytes")
        return target.decode("utf-8", "surrogateescape")

    def untouched(self, parent: int, name: bytes, path: str) -> Json:
        """What is known of a file, if it is still as it was."""
        known = self.known.get(path)
        if known is None:
            return None
        try:
            status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        except OSError:
            return None
        return known[1] if _signature(status) == known[0] else None

    def file(self, parent: int, name: bytes, path: str) -> Json:
        """Keep a file; what the manifest says of it."""
        if (same := self.untouched(parent, name, path)) is not None:
            self.files += 1
            return same
        # Without waiting: should it have become a named pipe, opening it would hang.
        fd = _open(name, os.O_NONBLOCK | os.O_NOCTTY, parent)
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                raise _NotKeptError("it changed while it was read")
            if status.st_size > self.limits.file_bytes:
                raise _NotKeptError(f"it is larger than {self.limits.file_bytes} bytes")
            most = self.limits.total_bytes - self.size
            if status.st_size > most:
                raise _NotKeptError(
                    f"all files together are larger than {self.limits.total_bytes} bytes"
                )
            if status.st_size <= CHUNK:
                content = b"".join(_chunks(fd, status.st_size))
                digest, size = self.blobs.put(content), len(content)
            else:
                digest, size = self.blobs.put_chunks(_chunks(fd, status.st_size))
        finally:
            os.close(fd)
        self.files += 1
        self.size += size
        self.signatures[path] = _signature(status)
        return {
            "type": "file",
            "mode": stat.S_IMODE(status.st_mode) & 0o777,
            "size": size,
            "sha256": digest,
        }

    def manifest(self) -> bytes:
        """The entries as canonical JSON."""
        return json.dumps(self.entries, sort_keys=True, separators=(",", ":")).encode("ascii")

    def drop(self, path: str, why: str) -> None:
        """Note what is left out."""
        if len(self.dropped) < _MAX_DROPPED:
            self.dropped.append(Dropped(path, why))
        else:
            self.unnamed += 1

    def report(self) -> tuple[Dropped, ...]:
        """What was left out, at most a thousand by name."""
        more = (Dropped(".", f"{self.unnamed} more were left out"),) if self.unnamed else ()
        return (*self.dropped, *more)


def _open(name: Path | bytes, flags: int, parent: int | None = None) -> int:
    try:
        return os.open(name, _LOOK | flags, dir_fd=parent)
    except OSError as error:
        raise _unreadable(error) from error


def _chunks(fd: int, size: int) -> Iterator[bytes]:
    """What is in an open file that said it has ``size`` bytes."""
    left = size + 1
    while True:
        try:
            chunk = os.read(fd, min(CHUNK, left))
        except OSError as error:
            raise _unreadable(error) from error
        left -= len(chunk)
        if not left:
            raise _NotKeptError("it grew while it was read")
        if not chunk:
            return
        yield chunk


def _unreadable(error: OSError) -> Exception:
    if error.errno in _OURS:
        return StoreError(f"a snapshot could not be taken: {error.strerror}")
    return _NotKeptError(f"it cannot be read: {error.strerror}")


def _signature(status: os.stat_result) -> Signature:
    return (
        status.st_ino,
        status.st_size,
        stat.S_IMODE(status.st_mode),
        status.st_mtime_ns,
        status.st_ctime_ns,
    )


def _kind(entry: os.DirEntry[str]) -> str:
    try:
        mode = entry.stat(follow_symlinks=False).st_mode
    except OSError as error:
        raise _unreadable(error) from error
    return f"it is {_KINDS.get(stat.S_IFMT(mode), 'not a file')}"
