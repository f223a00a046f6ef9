"""Digests of directories and cases: the same content gives the same digest on any machine."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

from assay.errors import SourceError
from assay.graders.digest import framed
from assay.scoring.json_safe import Json

__all__ = ["NOT_SOURCE", "case_digest", "is_inside", "lock_name", "tree_digest", "tree_entries"]

NOT_SOURCE = frozenset(
    (
        ".DS_Store",
        ".assay",
        ".git",
        ".hypothesis",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        "__pycache__",
    )
)
"""Names that are neither copied to a workspace nor counted in a digest, at any depth.

Caches change with every run, and a repository's history may hold the solution.
"""

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK

Entry: TypeAlias = tuple[str, str, os.stat_result]
"""Path from the root with ``/``, absolute path, and what `os.lstat` says."""


def tree_entries(root: str, *, everything: bool = False) -> Iterator[Entry]:
    """Walk a directory in a fixed order, following no symbolic link.

    Args:
        root: The directory.
        everything: Whether the names in `NOT_SOURCE` are walked too.

    Raises:
        SourceError: For a directory that cannot be listed.
    """
    pending = [""]
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(Path(root, folder)) as listing:
                names = sorted(entry.name for entry in listing)
        except OSError as error:
            raise SourceError(f"cannot list {Path(root, folder)}: {error.strerror}") from error
        for name in names:
            if name in NOT_SOURCE and not everything:
                continue
            relative = f"{folder}/{name}" if folder else name
            path = Path(root, relative)
            try:
                status = path.lstat()
            except FileNotFoundError:  # gone since: another process replaced the case's lock file
                continue
            yield relative, str(path), status
            if stat.S_ISDIR(status.st_mode):
                pending.append(relative)


def is_inside(path: str, root: str) -> bool:
    """Whether a path, with its symbolic links followed, is a directory or below it."""
    real, top = os.path.realpath(path), os.path.realpath(root)
    return real == top or real.startswith(top.rstrip("/") + "/")


def case_digest(document: Json, root: str, *, file: str, outside: Iterable[tuple[str, str]]) -> str:
    """Digest a case: its parsed document, its directory, and what it names outside of that.

    Args:
        document: The case as parsed, so that comments and layout do not count.
        root: Directory of the case.
        file: The case file, whose bytes do not count; nor do those of its lock file.
        outside: What is outside, as (text in the case, absolute path).

    Returns:
        64 hexadecimal digits.

    Raises:
        SourceError: For a file that cannot be read.
    """
    whole = hashlib.sha256(b"assay case 1\0")
    canonical = json.dumps(document, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    whole.update(framed(canonical.encode()))
    own, lock = str(Path(file).resolve()), lock_name(file)
    for relative, path, status in sorted(tree_entries(root)):
        if relative == lock or (relative.startswith(f"{lock}.") and relative.endswith(".new")):
            continue
        if str(Path(path).parent.resolve() / Path(path).name) != own:
            whole.update(framed(os.fsencode(relative), *_content(path, status)))
    for text, path in sorted(set(outside)):
        whole.update(framed(b"outside", text.encode()))
        status = Path(path).lstat()
        if stat.S_ISDIR(status.st_mode):
            for relative, inner, inner_status in sorted(tree_entries(path)):
                whole.update(framed(os.fsencode(relative), *_content(inner, inner_status)))
        else:
            whole.update(framed(*_content(path, status)))
    return whole.hexdigest()


def lock_name(file: str) -> str:
    """What the lock file of a case file is called; it lies beside it."""
    return f"{Path(file).stem}.lock.json"


def tree_digest(path: str) -> str:
    """Digest a file, or a directory without caches and ``.git``.

    Raises:
        SourceError: For a file that cannot be read.
    """
    whole, path = hashlib.sha256(), os.path.realpath(path)
    status = Path(path).lstat()
    whole.update(framed(*_content(path, status)))
    if stat.S_ISDIR(status.st_mode):
        for relative, inner, inner_status in sorted(tree_entries(path)):
            whole.update(framed(os.fsencode(relative), *_content(inner, inner_status)))
    return whole.hexdigest()


def _content(path: str, status: os.stat_result) -> tuple[bytes, bytes]:
    """The kind of an entry and its content; times, owners and most of the mode do not count."""
    mode = status.st_mode
    if stat.S_ISDIR(mode):
        return b"directory", b""
    if stat.S_ISLNK(mode):
        return b"link", os.fsencode(Path(path).readlink())
    if not stat.S_ISREG(mode):
        return b"special", b""  # opening a pipe would wait for ever
    digest = hashlib.sha256()
    try:
        with os.fdopen(os.open(path, _READ), "rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from error
    return (b"program" if mode & stat.S_IXUSR else b"file"), digest.digest()
