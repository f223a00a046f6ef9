"""Putting a snapshot back, as if the store itself were hostile.

The manifest and every file are checked against their digests, and the manifest once more for what
no snapshot can contain. Files are made relative to descriptors of the directories above them, never
through a link and never over something that is there; links are made last, and only those that
cannot lead out of the target.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from assay.errors import InputError, StoreError
from assay.frozen import frozen
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import NotJsonError, decode_json
from assay.store.blobs import Blobs, disk_faults, write_all
from assay.store.snapshots import Dropped

if TYPE_CHECKING:
    from assay.store.sources import Archive, SourceCopy

_LARGEST_MANIFEST = 512 << 20
_MOST_HOPS = 40
"""Links followed on one path, as in the kernel."""

_MOST_STEPS = 2_000_000
"""Path components looked at while links are checked: a second's work, whatever the links say."""

_HINT = "the store was tampered with: trust nothing in it"

_BUILT = 946_684_800 * 10**9
"""In 2000: when programs that a submission brings were made, so that what builds by the times of
files builds them anew. Theirs may be of other sources than the ones that are graded."""

_COMPILED = (b"\x7fELF", b"!<arch>\n", b"\0asm", b"BC\xc0\xde")

_INTO = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@frozen
class File:
    """A regular file of a manifest."""

    mode: int
    size: int
    sha256: str

    def to_json(self) -> dict[str, Json]:
        """As it stands in a manifest."""
        return {"type": "file", "mode": self.mode, "size": self.size, "sha256": self.sha256}


@frozen
class Link:
    """A symbolic link of a manifest."""

    target: str


@frozen
class Directory:
    """A directory of a manifest."""


Parts: TypeAlias = tuple[str, ...]
Tree: TypeAlias = "dict[Parts, File | Link | Directory]"


Contents: TypeAlias = "Blobs | Archive"
"""Where the contents of files are read from."""


def read_snapshot(store_dir: str, digest: str) -> dict[str, Json]:
    """The manifest of a snapshot, checked."""
    with Blobs(Path(store_dir, "snapshots")) as manifests:
        content = manifests.get(digest, most=_LARGEST_MANIFEST)
    _read_manifest(content, digest)
    return cast("dict[str, Json]", json.loads(content))


def restore_snapshot(
    store_dir: str, digest: str, target: str, *, source: str = ""
) -> tuple[Dropped, ...]:
    """Put a snapshot into a directory. Blocks; call it in a thread where that matters.

    Args:
        store_dir: The store's directory (`Store.home`).
        digest: As `take_snapshot` returned it.
        target: An empty directory, or the name of one to be made.
        source: The kept source's digest, for a snapshot that was taken with what is known of it.
            Files that are as in the source are links to its copy in the cache: never write there.

    Returns:
        The links that were not made, because they lead out of the target or in circles.

    Raises:
        InputError: If the target is not empty.
        StoreError: If the snapshot is missing, damaged or tampered with, or the target cannot be
            written; what was restored so far is left there.
    """
    return restore_entries(store_dir, read_snapshot(store_dir, digest), target, source=source)


def restore_entries(
    store_dir: str, entries: Mapping[str, Json], target: str, *, source: str = ""
) -> tuple[Dropped, ...]:
    """Put what a manifest says into a directory; see `restore_snapshot`."""
    from assay.store.sources import SourceCopy

    tree = checked_tree(entries, "manifest")
    with Blobs(Path(store_dir, "blobs")) as blobs, disk_faults(f"{target}, a snapshot's copy,"):
        copy = SourceCopy(store_dir, source) if source else None
        root = _open_empty(target)
        try:
            return put_back(tree, blobs, root, copy)
        finally:
            os.close(root)
            if copy is not None:
                copy.close()


def _open_empty(target: str) -> int:
    Path(target).mkdir(parents=True, exist_ok=True)
    root = os.open(target, _INTO)
    if os.listdir(root):  # noqa: PTH208 - of a descriptor
        os.close(root)
        raise InputError(f"{target} is not empty", hint="restore a snapshot to a new directory")
    return root


def put_back(
    tree: Tree, contents: Contents, root: int, shared: SourceCopy | None = None
) -> tuple[Dropped, ...]:
    """Write a checked tree below an open, empty directory, in the tree's order.

    All its files are of the same moment: later than the copy's, but for programs that are not the
    source's, which are as old as can be.
    """
    now = time.time_ns()
    built = now if shared is None else _BUILT
    links: dict[Parts, str] = {}
    places = _Places(root)
    try:
        for parts, entry in tree.items():
            if isinstance(entry, Link):
                links[parts] = _from_here(entry.target, parts)
            elif isinstance(entry, Directory):
                os.mkdir(_bytes(parts[-1]), 0o755, dir_fd=places.at(parts[:-1]))
            else:
                name, parent, path = _bytes(parts[-1]), places.at(parts[:-1]), "/".join(parts)
                if shared is None or not shared.link(path, entry, name, parent):
                    is_new = shared is None or not shared.has(path)
                    made = built if is_new and entry.mode & 0o111 else now
                    _restore_file(entry, contents, name, parent, made=made, built=built)
        inside = _Containment(links)
        dropped: list[Dropped] = []
        for parts, to in links.items():
            if why := inside.objection(parts):
                dropped.append(Dropped("/".join(parts), why))
            else:
                os.symlink(_bytes(to), _bytes(parts[-1]), dir_fd=places.at(parts[:-1]))
        return tuple(dropped)
    finally:
        places.close()


def _restore_file(
    entry: File, blobs: Contents, name: bytes, parent: int, *, made: int, built: int
) -> None:
    """Write a file that was made at some time; compiled code was ``built`` at another."""
    fd = os.open(name, _NEW, 0o600, dir_fd=parent)
    begins = b""

    def write(chunk: bytes) -> None:
        nonlocal begins
        begins = begins or chunk[:8]
        write_all(fd, chunk)

    try:
        size = blobs.read(entry.sha256, write, most=entry.size)
        if size != entry.size:
            raise StoreError(f"artifact {entry.sha256} is smaller than was recorded")
        os.fchmod(fd, entry.mode)
        when = built if begins.startswith(_COMPILED) else made
        os.utime(fd, ns=(when, when))
    finally:
        os.close(fd)


def _from_here(target: str, link: Parts) -> str:
    """A target that begins where the sandbox shows the tree, as it is from the link itself."""
    first, name, *rest = [*target.split("/", 2), "", ""]
    if (first, name) != ("", "workspace"):
        return target
    return "../" * (len(link) - 1) + (rest[0].lstrip("/") or ".")


class _Places:
    """Descriptors of the directories on the way to the current entry."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._open: list[tuple[str, int]] = []

    def at(self, parts: Parts) -> int:
        """The directory at a path, reached from the root without following a link."""
        shared = 0
        for (name, _), part in zip(self._open, parts, strict=False):
            if name != part:
                break
            shared += 1
        while len(self._open) > shared:
            os.close(self._open.pop()[1])
        for part in parts[shared:]:
            above = self._open[-1][1] if self._open else self._root
            self._open.append((part, os.open(_bytes(part), _INTO, dir_fd=above)))
        return self._open[-1][1] if self._open else self._root

    def close(self) -> None:
        while self._open:
            os.close(self._open.pop()[1])


class _Containment:
    """Whether links stay inside, walking each as the kernel would, through the other links."""

    def __init__(self, links: Mapping[Parts, str]) -> None:
        self._links = links
        self._steps = 0

    def objection(self, link: Parts) -> str:
        """Why a link may not be made; empty if it may."""
        here = list(link[:-1])
        ahead = [link[-1]]
        hops = 0
        while ahead:
            self._steps += 1
            if self._steps > _MOST_STEPS:
                return "there are too many links to check"
            part = ahead.pop()
            if part == "..":
                if not here:
                    return "it leads out of the directory"
                here.pop()
            elif part not in ("", "."):
                here.append(part)
                target = self._links.get(tuple(here))
                if target is not None:
                    hops += 1
                    if hops > _MOST_HOPS:
                        return "it leads in circles"
                    if target.startswith("/"):
                        return "it leads out of the directory"
                    here.pop()
                    ahead.extend(reversed(target.split("/")))
        return ""


def _read_manifest(content: bytes, digest: str) -> Tree:
    """Read a manifest, in the order in which it can be written."""
    try:
        entries = decode_json(content)
    except NotJsonError as error:
        raise StoreError(f"snapshot {digest} is not a manifest: {error}", hint=_HINT) from error
    if not isinstance(entries, dict):
        raise StoreError(f"snapshot {digest}: it is not a mapping", hint=_HINT)
    return checked_tree(entries, digest)


def checked_tree(found: Mapping[str, Json], digest: str) -> Tree:
    """Check entries, and put them in the order in which they can be written."""
    try:
        tree = {_parts(path): _entry(path, found[path]) for path in found}
    except StoreError as error:
        raise StoreError(f"snapshot {digest}: {error.message}", hint=error.hint) from error
    for parts in tree:
        if parts[:-1] and not isinstance(tree.get(parts[:-1]), Directory):
            raise StoreError(
                f"snapshot {digest}: {'/'.join(parts)!r} is in no directory", hint=_HINT
            )
    return dict(sorted(tree.items()))


def _tampered(why: str) -> StoreError:
    return StoreError(why, hint=_HINT)


def _parts(path: str) -> Parts:
    parts = tuple(path.split("/"))
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise _tampered(f"{path!r} is not a path inside a workspace")
    _bytes(path)
    return parts


def _entry(path: str, data: Json) -> File | Link | Directory:
    match data:
        case {"type": "directory"} if len(data) == 1:
            return Directory()
        case {"type": "link", "target": str(target)} if len(data) == 2 and _is_target(target):
            return Link(target)
        case {"type": "file", "mode": int(mode), "size": int(size), "sha256": str(sha256)}:
            if len(data) == 4 and 0 <= mode <= 0o777 and size >= 0:
                return File(mode, size, sha256)
        case _:
            pass
    raise _tampered(f"{path!r} is neither a file nor a link nor a directory")


def _is_target(target: str) -> bool:
    return bool(_bytes(target)) and "\0" not in target


def _bytes(name: str) -> bytes:
    """A name as the file system knows it."""
    try:
        return name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise _tampered(f"{name!r} is not the name of a file") from error
