"""Unpack archives and copy trees that nobody trusts.

Files and directories are made first, exclusively and by our own names; links come last and must
point inside the tree once everything is there. Nothing is made executable that was not, nothing
keeps an owner, a time or a special mode bit.
"""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from assay.errors import SourceError
from assay.frozen import frozen
from assay.tasks.case_files import is_inside, tree_entries

MAX_FILES = 200_000
"""Files, directories and links of one tree."""

MAX_TREE_BYTES = 2 << 30
"""Bytes of all files of one tree."""

ARCHIVES = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar", ".zip")
"""Endings of the archives that can be unpacked."""


@frozen
class _Member:
    """One entry of an archive: a directory, a file with content, or a link with a target."""

    name: str
    size: int = 0
    executable: bool = False
    content: IO[bytes] | None = None
    link: str | None = None


def unpack(archive: str, target: str) -> None:
    """Unpack an archive; a single directory that holds everything is taken off."""
    name = Path(archive).name
    try:
        members = _zip_members(archive) if name.endswith(".zip") else _tar_members(archive)
        _Unpacking(target, name).take(members)
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as e:
        raise SourceError(f"cannot unpack {name}: {e}", hint="is the file damaged?") from e
    _lift_single_directory(target)
    if links := outward_links(target):
        raise SourceError(f"{name} holds a link that leads out of it: {links[0]}")


def copy_tree(source: str, target: str) -> None:
    """Copy a directory without caches and repositories; links stay links."""
    count = size = 0
    try:
        for relative, path, status in tree_entries(source):
            count, size = count + 1, size + (status.st_size if stat.S_ISREG(status.st_mode) else 0)
            _check_amount(source, count, size)
            copy = Path(target, relative)
            if stat.S_ISDIR(status.st_mode):
                copy.mkdir()
            elif stat.S_ISREG(status.st_mode):
                shutil.copyfile(path, copy, follow_symlinks=False)
                copy.chmod(0o755 if status.st_mode & stat.S_IXUSR else 0o644)
            elif stat.S_ISLNK(status.st_mode):
                copy.symlink_to(Path(path).readlink())
            else:
                raise SourceError(f"{path} is neither a file nor a directory", hint="remove it")
    except OSError as error:
        raise SourceError(f"cannot copy {source}: {error}") from error
    if links := outward_links(target):
        hint = "copy what it points to into the source"
        raise SourceError(f"{source} holds a link that leads out of it: {links[0]}", hint=hint)


def outward_links(root: str) -> list[str]:
    """The symbolic links of a tree that are absolute or lead out of it, as paths from its root."""
    return [
        relative
        for relative, path, status in tree_entries(root, everything=True)
        if stat.S_ISLNK(status.st_mode)
        and (Path(path).readlink().is_absolute() or not is_inside(path, root))
    ]


class _Unpacking:
    """One archive being unpacked into one directory."""

    def __init__(self, target: str, name: str) -> None:
        self._target = Path(target)
        self._name = name
        self._count = 0
        self._size = 0
        self._links: list[tuple[Path, str]] = []

    def take(self, members: Iterator[_Member]) -> None:
        for member in members:
            self._count += 1
            _check_amount(self._name, self._count, self._size + member.size)
            path = self._place(member.name)
            if member.link is not None:
                self._links.append((path, member.link))
            elif member.content is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._write(path, member.content, executable=member.executable)
            else:
                path.mkdir(parents=True, exist_ok=True)
        for path, link in self._links:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(link)

    def _place(self, name: str) -> Path:
        parts = [part for part in name.split("/") if part not in ("", ".")]
        odd = name.startswith("/") or ".." in parts or "\\" in name or "\0" in name
        if odd or ".git" in (part.lower() for part in parts):
            raise SourceError(f"{self._name} holds {name!r}, which may not be unpacked")
        return self._target.joinpath(*parts)

    def _write(self, path: Path, content: IO[bytes], *, executable: bool) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with os.fdopen(os.open(path, flags, 0o755 if executable else 0o644), "wb") as file:
            while block := content.read(1 << 20):
                self._size += len(block)
                _check_amount(self._name, self._count, self._size)
                file.write(block)


def _tar_members(archive: str) -> Iterator[_Member]:
    with tarfile.open(archive) as tar:
        for info in tar:
            if info.isdir():
                yield _Member(info.name)
            elif info.issym():
                yield _Member(info.name, link=info.linkname)
            elif info.isreg() and not info.issparse():
                executable = bool(info.mode & stat.S_IXUSR)
                content = tar.extractfile(info)
                yield _Member(info.name, info.size, executable, content)
            elif info.islnk():
                hint = "a source distribution needs no hard links"
                raise SourceError(f"{archive} holds the hard link {info.name!r}", hint=hint)
            else:
                raise SourceError(f"{archive} holds the special file {info.name!r}")


def _zip_members(archive: str) -> Iterator[_Member]:
    with zipfile.ZipFile(archive) as zipped:
        for info in zipped.infolist():
            mode = info.external_attr >> 16
            if info.is_dir():
                yield _Member(info.filename)
            elif stat.S_IFMT(mode) in (0, stat.S_IFREG):
                with zipped.open(info) as content:
                    executable = bool(mode & stat.S_IXUSR)
                    yield _Member(info.filename, info.file_size, executable, content)
            else:
                raise SourceError(f"{archive} holds the special file {info.filename!r}")


def _lift_single_directory(target: str) -> None:
    root = Path(target)
    entries = list(root.iterdir())
    if len(entries) != 1 or entries[0].is_symlink() or not entries[0].is_dir():
        return
    # Its own name may be the name of something in it, so it steps aside first.
    aside = root.with_name(root.name + ".lifted")
    entries[0].rename(aside)
    root.rmdir()
    aside.rename(root)


def _check_amount(what: str, count: int, size: int) -> None:
    if count > MAX_FILES:
        raise SourceError(f"{what} holds more than {MAX_FILES} files")
    if size > MAX_TREE_BYTES:
        raise SourceError(f"{what} holds more than {MAX_TREE_BYTES >> 20} MiB")
