"""Read a tree that nobody trusts: regular files only, no link followed, everything bounded."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from assay.sandbox.host import open_inside

SKIPPED_DIRECTORIES = frozenset({".git", "__pycache__", ".venv", "node_modules"})
"""Directories that hold no work of whoever was asked to work."""


def read_regular(root: Path, relative: str | Path, *, limit: int) -> bytes | str:
    """Read a regular file below a directory, following no link on the way."""
    try:
        handle = open_inside(str(root), str(relative), os.O_RDONLY)
    except FileNotFoundError:
        return "is missing"
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        return f"cannot be read as a regular file: {reason or error}"
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        return "is not a regular file"
    with os.fdopen(handle, "rb") as file:
        data = b"" if status.st_size > limit else file.read(limit + 1)
        return "is too large" if max(status.st_size, len(data)) > limit else data


def regular_files(root: Path, skipped: frozenset[str] = SKIPPED_DIRECTORIES) -> Iterator[Path]:
    """The regular files of a tree, however deep it is: a directory's own first, each by name.

    Not by `os.walk`, which recurses in Python before 3.12: a thousand directories inside each
    other would end the grading with an error instead of a score.
    """
    waiting = [Path()]
    while waiting:
        directory = waiting.pop()
        try:
            with os.scandir(root / directory) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError:  # not ours to read, or its path is longer than the system takes
            continue
        inner = [e for e in entries if e.is_dir(follow_symlinks=False) and e.name not in skipped]
        waiting.extend(directory / entry.name for entry in reversed(inner))
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                yield directory / entry.name


_FEW_ENTRIES = 16
_FEW_BYTES = 1 << 16


def is_small(root: str | Path) -> bool:
    """Whether a tree has so little in it that a thread to look through it costs more than to look.

    Links, special files and what cannot be read make it large: who knows what they cost.
    """
    waiting, entries, size = [str(root)], 0, 0
    while waiting:
        try:
            with os.scandir(waiting.pop()) as found:
                for entry in found:
                    entries += 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif entry.is_file(follow_symlinks=False):
                        size += entry.stat(follow_symlinks=False).st_size
                    else:
                        return False
                    if entries > _FEW_ENTRIES or size > _FEW_BYTES:
                        return False
        except OSError:
            return False
    return True
