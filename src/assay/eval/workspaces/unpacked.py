"""The container images that were unpacked below a store: what they take, and giving that back."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from assay.errors import ConflictError, InputError
from assay.frozen import frozen
from assay.store.kept_files import alone_with

_ID = re.compile(r"[0-9a-f]{64}")


@frozen(kw_only=True)
class Unpacked:
    """An image's files on this machine.

    Attributes:
        digest: Its id, ``sha256:...``, as cells name it.
        name: What it was last asked for by; empty where that was its id.
        bytes: What its files take on disk.
        used: When it was last needed.
    """

    digest: str
    name: str
    bytes: int
    used: datetime


def unpacked_images(home: str) -> list[Unpacked]:
    """The images below a store's directory, the last used first."""
    place = Path(home, "cache", "images")
    found = [
        _unpacked(entry)
        for entry in (place.iterdir() if place.is_dir() else ())
        if _ID.fullmatch(entry.name) and (entry / "image.json").is_file()
    ]
    return sorted(found, key=lambda image: image.used, reverse=True)


def find_image(images: Iterable[Unpacked], reference: str) -> Unpacked:
    """The image of a name, or of an id or its beginning.

    Raises:
        InputError: If none is meant, or several are.
    """
    digits = reference.removeprefix("sha256:")
    meant = [
        image
        for image in images
        if reference == image.name or (digits and image.digest[7:].startswith(digits))
    ]
    if len(meant) != 1:
        what = "no image is called" if not meant else "several images are called"
        raise InputError(
            f"{what} {reference!r}", hint="assay doctor images lists them with their ids"
        )
    return meant[0]


def delete_images(home: str, images: Iterable[Unpacked]) -> int:
    """Remove images' files; whoever needs one again unpacks it again.

    Returns:
        Bytes that were given back.

    Raises:
        ConflictError: If a process is at work with the store: it may run commands in them.
    """
    place, freed = Path(home, "cache", "images"), 0
    with alone_with(home) as is_alone:
        if not is_alone:
            raise ConflictError("a run is at work here, and may need its image", hint="wait for it")
        for image in images:
            digits = image.digest.removeprefix("sha256:")
            # First out of the way: what is left of it must never be taken for an image.
            with tempfile.TemporaryDirectory(dir=place, prefix=".deleting-") as aside:
                Path(place, digits).rename(Path(aside, digits))
                shutil.rmtree(Path(aside, digits))
            for file in place.glob(f"{digits}.*"):
                if file.suffix != ".lock":
                    file.unlink(missing_ok=True)
            freed += image.bytes
    return freed


def _unpacked(place: Path) -> Unpacked:
    used = place.with_name(f"{place.name}.used")
    known = used if used.exists() else place
    return Unpacked(
        digest=f"sha256:{place.name}",
        name=used.read_text() if used.exists() else "",
        bytes=sum(
            _bytes(Path(folder, name)) for folder, _, names in os.walk(place) for name in names
        ),
        used=datetime.fromtimestamp(known.stat().st_mtime, UTC),
    )


def _bytes(file: Path) -> int:
    found = file.lstat()
    return found.st_blocks * 512 // found.st_nlink  # the same file may stand there twice
