"""The file of a dataset in stretches, each to be read alone; whether it is still the same."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

from assay.errors import InputError
from assay.tasks.json_rows import MAX_LINE_BYTES

__all__ = [
    "STRETCH_BYTES",
    "STRETCH_ROWS",
    "Lines",
    "Stretch",
    "Version",
    "joined",
    "survey",
    "version_of",
]

Lines: TypeAlias = "Sequence[tuple[int, bytes]]"

STRETCH_ROWS = 1_024
STRETCH_BYTES = 1 << 20
"""So many rows, or bytes of them, are read, graded and stored together by graders that compute."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive lines of a dataset.

    Attributes:
        number: That of the first line.
        start: Where in the file that line begins, in bytes.
        size: How long all of them are, in bytes.
        rows: How many of them are rows; the others are blank.
    """

    number: int
    start: int
    size: int
    rows: int

    def lines(self, file: str) -> Lines:
        """Read them."""
        with Path(file).open("rb") as handle:
            handle.seek(self.start)
            read = io.BytesIO(handle.read(self.size))
        return [(n, line) for n, line in enumerate(read, self.number) if not line.isspace()]


@dataclass(slots=True)
class Version:
    """A file as it was read; more may be appended to it.

    Attributes:
        file: Its path.
        stamp: What changes when it is written.
        size: How many bytes were read.
        digest: Theirs.
    """

    file: str
    stamp: tuple[int, ...]
    size: int
    digest: str

    def holds(self) -> bool:
        """Whether the bytes that were read are still there."""
        try:
            with Path(self.file).open("rb") as handle:
                stamp = _stamp(handle.fileno())
                if stamp != self.stamp:
                    digest, left = hashlib.blake2b(digest_size=32), self.size
                    while left and (chunk := handle.read(min(left, STRETCH_BYTES))):
                        digest.update(chunk)
                        left -= len(chunk)
                    if digest.hexdigest() != self.digest:
                        return False
                    self.stamp = stamp
        except OSError:
            return False
        return True


def version_of(file: str, name: str) -> Version:
    """The version of any file.

    Raises:
        InputError: If it cannot be read.
    """
    try:
        with Path(file).open("rb") as handle:
            stamp = _stamp(handle.fileno())
            digest = hashlib.file_digest(handle, partial(hashlib.blake2b, digest_size=32))
            return Version(file, stamp, handle.tell(), digest.hexdigest())
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror}") from error


def _stamp(descriptor: int) -> tuple[int, ...]:
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def survey(
    file: str, name: str, *, rows: int = STRETCH_ROWS, size: int = STRETCH_BYTES
) -> tuple[tuple[Stretch, ...], Version]:
    """A file of JSON lines in stretches, and its version, without reading a row.

    Args:
        file: Its path.
        name: What people call it.
        rows: How many each stretch has at most.
        size: Bytes after which one ends, too.

    Raises:
        InputError: If it cannot be read.
    """
    stretches: list[Stretch] = []
    digest = hashlib.blake2b(digest_size=32)
    place = length = held = 0
    first = number = 1
    try:
        with Path(file).open("rb") as handle:
            stamp = _stamp(handle.fileno())
            for number, line in enumerate(
                iter(partial(handle.readline, MAX_LINE_BYTES + 1), b""), 1
            ):
                digest.update(line)
                length += len(line)
                held += not line.isspace()
                if held == rows or length >= size:
                    stretches.append(Stretch(first, place, length, held))
                    place, length, held, first = place + length, 0, 0, number + 1
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror}") from error
    if held:
        stretches.append(Stretch(first, place, length, held))
    return tuple(stretches), Version(file, stamp, place + length, digest.hexdigest())


def joined(stretches: Iterable[Stretch], room: Callable[[], int]) -> Iterator[Stretch]:
    """Stretches, those that follow each other as one while there is room for all their rows."""
    held: Stretch | None = None
    for one in stretches:
        if held is not None and held.rows + one.rows <= room():
            size, rows = held.size + one.size, held.rows + one.rows
            held = Stretch(held.number, held.start, size, rows)
            continue
        if held is not None:
            yield held
        held = one
    if held is not None:
        yield held
