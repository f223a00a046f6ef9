"""Open files of a directory that nobody trusts, without following any link out of it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import PurePath

__all__ = ["make_directory_inside", "open_inside", "remove_inside"]

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def open_inside(root: str, relative: str, flags: int, mode: int = 0o644) -> int:
    """Open a file below a directory; no part of the path may be a link.

    Args:
        root: The directory; its own path is trusted.
        relative: Path below it, without ``..``.
        flags: As for `os.open`; ``O_NOFOLLOW`` and ``O_NONBLOCK`` are added.
        mode: Permissions of a new file.

    Returns:
        A file descriptor.

    Raises:
        OSError: If there is none, or a link stands in the way.
    """
    parent, name = _parent(root, relative)
    try:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, mode, dir_fd=parent)
    finally:
        os.close(parent)


def make_directory_inside(root: str, relative: str) -> None:
    """Make a directory and those above it, where they are missing.

    Raises:
        OSError: If a link or a file stands in the way.
    """
    directory = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in _parts(relative):
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=directory)
            directory = _enter(directory, part)
    finally:
        os.close(directory)


def remove_inside(root: str, relative: str) -> None:
    """Remove a file, a link or a directory with all that is in it; what is missing is fine.

    Raises:
        OSError: If a link stands in the way, or something cannot be removed.
    """
    import shutil

    try:
        parent, name = _parent(root, relative)
    except FileNotFoundError:
        return
    try:
        os.unlink(name, dir_fd=parent)
    except FileNotFoundError:
        return
    except (IsADirectoryError, PermissionError):
        shutil.rmtree(name, dir_fd=parent)
    finally:
        os.close(parent)


def _parent(root: str, relative: str) -> tuple[int, str]:
    *above, name = _parts(relative)
    directory = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in above:
            directory = _enter(directory, part)
    except OSError:
        os.close(directory)
        raise
    return directory, name


def _enter(directory: int, part: str) -> int:
    inner = os.open(part, _DIRECTORY, dir_fd=directory)
    os.close(directory)
    return inner


def _parts(relative: str) -> tuple[str, ...]:
    parts = PurePath(relative).parts
    if not parts or PurePath(relative).is_absolute() or ".." in parts:
        raise OSError(f"{relative!r} is not a path inside a directory")
    return parts
