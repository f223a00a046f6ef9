"""The pristine source of a case, kept as one file, and its copy that grading trees link to.

A snapshot of what an agent left has few files of its own: most are as they were in the source. So a
source is kept once, all files one after the other in a zstd stream (thousands of small files of
their own would take seconds to write), and its copy in the cache is what restored trees share.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Protocol, Self

from assay.errors import SourceError, StoreError
from assay.frozen import frozen
from assay.scoring.json_safe import Json
from assay.store.blobs import CHUNK, Blobs, disk_faults
from assay.store.restore import File, checked_tree, put_back, read_snapshot
from assay.store.snapshots import Known, Signature, SnapshotLimits, Walk

_RACY_NS = 50_000_000
"""A file that changed this shortly before it was looked at could change again unseen: the clock of
file systems ticks every few milliseconds."""


@frozen
class KeptSource:
    """A source that is kept.

    Attributes:
        digest: Of its manifest; `source_tree` finds it by this.
        entries: The manifest.
        known: What tells later that a file of the directory was not touched.
    """

    digest: str
    entries: dict[str, Json]
    known: Known


class Hasher:
    """Finds digests and keeps nothing."""

    def put(self, content: bytes) -> str:
        """The digest of some content."""
        return hashlib.sha256(content).hexdigest()

    def put_chunks(self, chunks: Iterable[bytes]) -> tuple[str, int]:
        """The digest and size of content that comes in pieces."""
        hasher, size = hashlib.sha256(), 0
        for chunk in chunks:
            hasher.update(chunk)
            size += len(chunk)
        return hasher.hexdigest(), size


def keep_source(store_dir: str, path: str | None) -> KeptSource:
    """Keep a directory that an agent will start from; None for an empty one. Blocks.

    Raises:
        SourceError: If it holds what cannot be kept: special files, or more than a snapshot takes.
        StoreError: If it cannot be written.
    """
    walk = Walk(Hasher(), SnapshotLimits())
    if path is not None:
        walk.root(Path(path))
    if dropped := walk.report():
        first = dropped[0]
        raise SourceError(
            f"the source cannot be kept for grading: {first.path}: {first.why}",
            hint="take it out of the source, or give a `subdir`",
        )
    now = time.time_ns()
    with Blobs(Path(store_dir, "snapshots")) as manifests:
        digest = manifests.put(walk.manifest())
    archive = _archive(store_dir, digest)
    if not archive.exists():
        with disk_faults(f"the source kept in {archive}"):
            _write(archive, path or os.sep, walk.entries)
    known = {
        name: (signature, walk.entries[name])
        for name, signature in walk.signatures.items()
        if _is_settled(signature, now)
    }
    return KeptSource(digest, walk.entries, known)


def source_tree(store_dir: str, digest: str) -> str:
    """The directory of a kept source's copy, made on first use. Read it, never write there."""
    place = Path(store_dir, "cache", "sources", digest)
    if place.is_dir():
        return str(place)
    tree = checked_tree(read_snapshot(store_dir, digest), digest)
    with disk_faults(f"the copy of a source in {place}"):
        place.parent.mkdir(parents=True, exist_ok=True)
        beside = tempfile.mkdtemp(dir=place.parent, prefix="incoming-")
        try:
            inner = Path(beside, "tree")
            inner.mkdir()
            root = os.open(inner, os.O_RDONLY | os.O_DIRECTORY)
            try:
                with Archive(_archive(store_dir, digest)) as archive:
                    put_back(tree, archive, root)
            finally:
                os.close(root)
            with suppress(OSError):  # another process was first, with the same content
                inner.rename(place)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    return str(place)


class SourceCopy:
    """The copy of a source in the cache, for linking files of a restored tree to it."""

    def __init__(self, store_dir: str, digest: str) -> None:
        self._entries = read_snapshot(store_dir, digest)
        self._root = os.open(source_tree(store_dir, digest), os.O_RDONLY | os.O_DIRECTORY)

    def has(self, path: str) -> bool:
        """Whether the source has something at a path."""
        return path in self._entries

    def link(self, path: str, entry: File, name: bytes, parent: int) -> bool:
        """Link a file in, if the source has the same one at that path."""
        theirs = self._entries.get(path)
        if not isinstance(theirs, dict) or theirs != entry.to_json():
            return False
        place = path.encode("utf-8", "surrogateescape")
        try:
            os.link(place, name, src_dir_fd=self._root, dst_dir_fd=parent, follow_symlinks=False)
        except OSError:  # another file system, or too many links already
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
            new = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with (
                open(os.open(place, flags, dir_fd=self._root), "rb") as old,  # noqa: PTH123
                open(os.open(name, new, entry.mode, dir_fd=parent), "wb") as copy,  # noqa: PTH123
            ):
                shutil.copyfileobj(old, copy, CHUNK)
                os.fchmod(copy.fileno(), entry.mode)
                when = os.fstat(old.fileno()).st_mtime_ns
                os.utime(copy.fileno(), ns=(when, when))
        return True

    def close(self) -> None:
        """Let go of the copy."""
        os.close(self._root)


def _is_settled(signature: Signature, now: int) -> bool:
    return max(signature[3:]) < now - _RACY_NS


def _archive(store_dir: str, digest: str) -> Path:
    return Path(store_dir, "sources", f"{digest}.zst")


def _write(archive: Path, path: str, entries: dict[str, Json]) -> None:
    """All files one after the other, in the order in which `put_back` wants them."""
    import zstandard

    archive.parent.mkdir(parents=True, exist_ok=True)
    tree = checked_tree(entries, "source")
    handle, beside = tempfile.mkstemp(dir=archive.parent, prefix="incoming-")
    try:
        with (
            os.fdopen(handle, "wb") as file,
            zstandard.ZstdCompressor(level=1).stream_writer(file) as packed,
        ):
            for parts, entry in tree.items():
                if isinstance(entry, File):
                    place = os.path.join(path, *parts)  # noqa: PTH118 - odd names as bytes
                    with open(os.fsencode(place), "rb") as content:  # noqa: PTH123
                        shutil.copyfileobj(content, packed, CHUNK)
        Path(beside).replace(archive)
    finally:
        Path(beside).unlink(missing_ok=True)


class _Readable(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...

    def close(self) -> None: ...


class Archive:
    """Reads the files of an archive in its order."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def __enter__(self) -> Self:
        import zstandard

        with disk_faults(f"the source kept in {self._place}"):
            self._file = self._place.open("rb")
        self._stream: _Readable = zstandard.ZstdDecompressor().stream_reader(self._file)
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()
        self._file.close()

    def read(self, digest: str, sink: Callable[[bytes], object], *, most: int) -> int:
        """Hand the next ``most`` bytes over, and check that they are what they should be."""
        import zstandard

        hasher, left = hashlib.sha256(), most
        try:
            while left:
                chunk = self._stream.read(min(left, CHUNK))
                if not chunk:
                    break
                hasher.update(chunk)
                sink(chunk)
                left -= len(chunk)
        except zstandard.ZstdError as error:
            raise StoreError(f"{self._place} is damaged: {error}") from error
        if hasher.hexdigest() != digest:
            raise StoreError(f"{self._place} is damaged", hint="remove it and run the case again")
        return most - left
