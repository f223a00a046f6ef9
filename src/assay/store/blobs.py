"""Content-addressed files: named by the SHA-256 of what is in them, zstd-compressed, kept once.

A blob is written beside its place and moved there, so that a process killed half-way leaves no torn
one. Nothing is synced to disk: what a power cut tears is found out by its digest when it is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from assay.errors import StoreError

if TYPE_CHECKING:
    from zstandard import ZstdCompressor, ZstdDecompressor


CHUNK = 1 << 20
"""Bytes handled at a time; a file of at most this size is read in one piece."""

_DIGEST = re.compile(r"[0-9a-f]{64}\Z")


@dataclass(slots=True)
class _Incoming:
    """A file being written: moved to its place if a digest was set, else removed."""

    fd: int
    digest: str = ""


class Blobs:
    """The blobs of one directory, kept as ``ab/cdef...``; serves one thread, closed by ``with``."""

    def __init__(self, directory: Path) -> None:
        import hashlib

        self._sha256 = hashlib.sha256
        self._directory = directory
        with disk_faults(f"the artifacts in {directory}"):
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
            try:
                self._root = os.open(directory, flags)
            except FileNotFoundError:
                directory.mkdir(0o700, parents=True, exist_ok=True)
                self._root = os.open(directory, flags)

    @cached_property
    def _compressor(self) -> ZstdCompressor:
        import zstandard

        return zstandard.ZstdCompressor(level=3)

    @cached_property
    def _decompressor(self) -> ZstdDecompressor:
        import zstandard

        return zstandard.ZstdDecompressor()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._root)

    def put(self, content: bytes) -> str:
        """Keep some content and return its digest."""
        digest = self._sha256(content).hexdigest()
        if not self._is_kept(digest):
            with self._incoming() as new:
                write_all(new.fd, self._compressor.compress(content))
                new.digest = digest
        return digest

    def put_chunks(self, chunks: Iterable[bytes]) -> tuple[str, int]:
        """Keep content that comes in pieces, not held at once; if they fail, nothing is kept."""
        hasher, size = self._sha256(), 0
        with self._incoming() as new:
            packing = self._compressor.compressobj()
            for chunk in chunks:
                size += len(chunk)
                hasher.update(chunk)
                write_all(new.fd, packing.compress(chunk))
            write_all(new.fd, packing.flush())
            digest = hasher.hexdigest()
            if not self._is_kept(digest):
                new.digest = digest
        return digest, size

    def get(self, digest: str, *, most: int) -> bytes:
        """The content behind a digest."""
        parts: list[bytes] = []
        self.read(digest, parts.append, most=most)
        return b"".join(parts)

    def read(self, digest: str, sink: Callable[[bytes], object], *, most: int) -> int:
        """Hand the content behind a digest to ``sink``, piece by piece, and check it.

        Raises:
            StoreError: If it is missing, larger than ``most``, or not what its name says.
        """
        import zstandard

        hasher, size = self._sha256(), 0
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            with disk_faults(f"artifact {digest}"):
                fd = os.open(_place(digest), flags, dir_fd=self._root)
                with open(fd, "rb", buffering=0) as packed:  # noqa: PTH123 - a descriptor
                    for chunk in self._decompressor.read_to_iter(packed, write_size=CHUNK):
                        size += len(chunk)
                        if size > most:
                            raise _damaged(digest, "it is larger than was recorded")
                        hasher.update(chunk)
                        sink(chunk)
        except zstandard.ZstdError as error:
            raise _damaged(digest, str(error)) from error
        if hasher.hexdigest() != digest:
            raise _damaged(digest, "its content is not what its name says")
        return size

    def _is_kept(self, digest: str) -> bool:
        """Whether the content is there already; an empty file is what a power cut leaves."""
        with disk_faults(f"artifact {digest}"), suppress(FileNotFoundError):
            return os.stat(_place(digest), dir_fd=self._root).st_size > 0
        return False

    @contextmanager
    def _incoming(self) -> Generator[_Incoming]:
        name = f"incoming-{os.urandom(8).hex()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with disk_faults(f"the artifacts in {self._directory}"):
            new = _Incoming(os.open(name, flags, 0o644, dir_fd=self._root))
            try:
                yield new
                if new.digest:
                    self._move(name, new.digest)
            finally:
                os.close(new.fd)
                if not new.digest:
                    os.unlink(name, dir_fd=self._root)

    def _move(self, name: str, digest: str) -> None:
        place = _place(digest)
        roots = {"src_dir_fd": self._root, "dst_dir_fd": self._root}
        try:
            os.replace(name, place, **roots)  # noqa: PTH105 - relative to a descriptor
        except FileNotFoundError:
            with suppress(FileExistsError):
                os.mkdir(place[:2], dir_fd=self._root)
            os.replace(name, place, **roots)  # noqa: PTH105 - relative to a descriptor


@contextmanager
def disk_faults(what: str) -> Generator[None]:
    """Turn what the file system raises into a `StoreError` that names what could not be kept."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{what} could not be read or written: {error.strerror}",
            hint="check the store's disk, its free space and who owns it",
        ) from error


def write_all(fd: int, content: bytes) -> None:
    """Write everything: the system may take less than it is given."""
    while content:
        content = content[os.write(fd, content) :]


def is_digest(text: str) -> bool:
    """Whether a text names an artifact, and so no place anywhere else."""
    return _DIGEST.match(text) is not None


def _place(digest: str) -> str:
    if not is_digest(digest):
        raise StoreError(f"{digest!r} is not the digest of an artifact")
    return f"{digest[:2]}/{digest[2:]}"


def _damaged(digest: str, why: str) -> StoreError:
    return StoreError(f"artifact {digest} is damaged: {why}", hint="run the cell again")
