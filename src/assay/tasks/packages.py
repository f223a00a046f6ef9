"""Fetch a source distribution, prove that it is the pinned one, and keep it; nothing is run."""

from __future__ import annotations

import hashlib
import re
import tempfile
from contextlib import closing
from pathlib import Path

from assay.errors import SourceError
from assay.tasks.archives import ARCHIVES
from assay.tasks.simple_index import (
    IndexSettings,
    Link,
    links_of,
    open_url,
    read_settings,
    shown_url,
)

__all__ = ["MAX_ARCHIVE_BYTES", "fetch_sdist"]

MAX_ARCHIVE_BYTES = 512 << 20
"""Size of a source distribution."""


def fetch_sdist(
    requirement: str,
    sha256: str | None,
    cache_dir: str,
    settings: IndexSettings | None = None,
) -> str:
    """Fetch a source distribution, or find it among those kept from before.

    Args:
        requirement: As ``name==version``.
        sha256: The hash it must have.
        cache_dir: Where archives are kept, by hash; one that is there needs no network.
        settings: Where to look; by default where this machine's pip or uv does.

    Returns:
        Path of the archive.

    Raises:
        SourceError: If it is not found, cannot be reached or has another hash, and always
            without a ``sha256``: the hint then says what to write.
    """
    if sha256 is not None and (kept := _kept(sha256.lower(), cache_dir)):
        return kept
    settings = settings or read_settings()
    project, _, version = (part.strip() for part in requirement.partition("=="))
    link = _find(project, version, (sha256 or "").lower(), settings)
    if link is None:
        places = [shown_url(place) for place in (*settings.indexes, *settings.find_links)]
        raise SourceError(
            f"no source distribution of {requirement} in {', '.join(places) or 'any index'}",
            hint="is the version right, and does the package publish an sdist?",
        )
    actual, archive = _download(link, cache_dir, settings)
    if sha256 is None:
        hint = f"if you trust it, pin it: sha256: {actual}"
        raise SourceError(f"{requirement} has no sha256 (found {link.filename})", hint=hint)
    if actual != sha256.lower():
        raise SourceError(
            f"{link.filename} from {shown_url(link.url)} has sha256 {actual}, "
            f"but the case pins {sha256.lower()}",
            hint="do not run it unless you know why it changed",
        )
    return archive


def _find(project: str, version: str, sha256: str, settings: IndexSettings) -> Link | None:
    """The file with the pinned hash as soon as an index tells of it, else the first of all."""
    first: Link | None = None
    for link in links_of(project, settings):
        if not _is_sdist(link.filename, project, version):
            continue
        if sha256 and link.sha256 == sha256:
            return link
        first = first or link
    return first


def _kept(sha256: str, cache_dir: str) -> str:
    folder = Path(cache_dir, "sdists", sha256)
    for archive in sorted(folder.glob("[!.]*")):
        with archive.open("rb") as stream:
            if hashlib.file_digest(stream, "sha256").hexdigest() == sha256:
                return str(archive)
        archive.unlink(missing_ok=True)  # damaged: fetch it anew
    return ""


def _download(link: Link, cache_dir: str, settings: IndexSettings) -> tuple[str, str]:
    """Fetch a file and keep it under its hash, which appears only when it is whole."""
    folder = Path(cache_dir, "sdists")
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    size = 0
    try:
        response, _, _ = open_url(link.url, settings)
        with closing(response), tempfile.TemporaryDirectory(dir=folder, prefix=".part-") as scratch:
            part = Path(scratch, link.filename)
            with part.open("wb") as stream:
                while block := response.read(1 << 20):
                    size += len(block)
                    if size > MAX_ARCHIVE_BYTES:
                        limit = f"{MAX_ARCHIVE_BYTES >> 20} MiB"
                        raise SourceError(f"{link.filename} is larger than {limit}")
                    digest.update(block)
                    stream.write(block)
            final = folder / digest.hexdigest() / link.filename
            final.parent.mkdir(exist_ok=True)
            part.replace(final)
    except OSError as error:
        raise SourceError(f"cannot fetch {shown_url(link.url)}: {error}") from error
    return digest.hexdigest(), str(final)


def _is_sdist(filename: str, project: str, version: str) -> bool:
    """Whether a file name is that of a source distribution of a version."""
    ending = next((e for e in ARCHIVES if filename.endswith(e)), "")
    stem = filename.removesuffix(ending)
    wanted = (_plain(project), _plain(version))
    # No path fits, because neither a name nor a version that was read from a case holds a slash.
    # Both names and versions may hold hyphens, so every one of them may be the one between.
    return bool(ending) and any(
        (_plain(stem[: match.start()]), _plain(stem[match.end() :])) == wanted
        for match in re.finditer("-", stem)
    )


def _plain(text: str) -> str:
    return re.sub(r"[-_.]+", "-", text).lower()
