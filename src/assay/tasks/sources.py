"""Put the pristine source of a case into a directory."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from assay.errors import SourceError
from assay.tasks.archives import copy_tree, unpack
from assay.tasks.case import Case
from assay.tasks.origin import Source, is_local
from assay.tasks.repositories import begin_repository, export_commit, head_commit


def materialise(case: Case, target_dir: str, cache_dir: str) -> None:
    """Fill a directory with the source that a case starts from; nothing of it is run.

    A ``path`` is copied without caches and repositories. A ``git`` source is the files of its
    commit in a new repository whose one commit is ``base``: no later or earlier commit, remote or
    reflog is there to look the solution up in. A ``pypi`` source is the unpacked source
    distribution. Without a source the directory is empty.
    """
    source = case.source
    if source is None:
        _fill(target_dir, lambda _: None)
        return
    try:
        _fill(target_dir, lambda target: _write(case, source, target, cache_dir))
    except SourceError as error:
        raise SourceError(f"source of {case.id}: {error.message}", hint=error.hint) from error


def fetch_fixtures(case: Case, target_dir: str, cache_dir: str) -> None:
    """Fill a directory with the fixtures of a case; see `Case.with_fixtures` for what is next."""
    fixtures = case.fixtures
    if fixtures is None:
        raise SourceError(f"case {case.id} has no fixtures")
    url = case.resolve(fixtures.repo) if is_local(fixtures.repo) else fixtures.repo
    subdir = case.id if fixtures.subdir is None else fixtures.subdir
    _fill(target_dir, lambda t: export_commit(url, fixtures.commit, subdir, t, cache_dir))


def _write(case: Case, source: Source, target: str, cache_dir: str) -> None:
    if source.pypi is not None:
        _write_sdist(source.pypi, source, target, cache_dir)
        return
    if source.path is not None:
        directory = case.resolve(source.path)
        if source.isolation in ("auto", "copy"):
            copy_tree(directory, target)
            return
        url, commit = directory, head_commit(directory)
    else:
        url, commit = source.url or "", source.commit or ""
        url = case.resolve(url) if is_local(url) else url
    export_commit(url, commit, source.subdir or "", target, cache_dir)
    begin_repository(target)


def _write_sdist(requirement: str, source: Source, target: str, cache_dir: str) -> None:
    from assay.tasks.packages import fetch_sdist

    archive = fetch_sdist(requirement, source.sha256, cache_dir)
    if source.subdir is None:
        unpack(archive, target)
        return
    with tempfile.TemporaryDirectory(dir=Path(target).parent, prefix=".unpacked-") as scratch:
        whole = Path(scratch, "all")
        whole.mkdir()
        unpack(archive, str(whole))
        chosen = whole / source.subdir
        if not chosen.is_dir():
            raise SourceError(f"{requirement} has no directory {source.subdir!r}")
        copy_tree(str(chosen), target)


def _fill(target_dir: str, write: Callable[[str], None]) -> None:
    """Let something write into a directory beside the target, and rename it when it is done."""
    target = Path(target_dir)
    try:
        if os.path.lexists(target) and (target.is_symlink() or any(target.iterdir())):
            raise SourceError(f"{target} is not an empty directory")
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}-"))
    except OSError as error:
        raise SourceError(f"cannot write {target}: {error.strerror}") from error
    inner = beside / "tree"
    try:
        inner.mkdir()
        write(str(inner))
        inner.replace(target)
    except OSError as error:
        raise SourceError(f"cannot write {target}: {error}") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
