"""What runs keep as files: workspaces and the sources that they started from; and freeing them.

The same file is kept once, whoever left it. So the files of a run that is deleted are freed only
where no other result needs them, and only while nobody is about to need them: whoever works on a
run holds the store's files (`at_work`), and freeing takes that nobody does.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeGuard

from assay.errors import ConflictError
from assay.scoring.json_safe import Json
from assay.store.blobs import disk_faults, is_digest
from assay.store.pages import every
from assay.store.records import RunRecord
from assay.store.restore import read_snapshot
from assay.store.runs import Store

_AT_WORK = "at-work.lock"


@dataclass(frozen=True, slots=True)
class Freed:
    """What a deletion gave back.

    Attributes:
        files: How many files.
        bytes: Their size on disk.
    """

    files: int = 0
    bytes: int = 0


@contextmanager
def at_work(home: str) -> Generator[None]:
    """Hold the files of a store while results are added to it: none of them is freed meanwhile."""
    with _lock(home) as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


@contextmanager
def alone_with(home: str) -> Generator[bool]:
    """Hold the files of a store alone, if nobody is at work; whether it is so."""
    with _lock(home) as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not is_held(Path(home, _AT_WORK), shared=True):
                    continue  # somebody looked whether anybody is at work
                yield False
                return
            yield True
            return


@contextmanager
def held(path: Path) -> Generator[int | None]:
    """Hold a file alone until the block ends, or all processes that have it open.

    Yields:
        Its descriptor; None where somebody else holds it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        with path.open("ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not is_held(path):
                    continue  # somebody looked whether it is held, which holds it for an instant
                yield None
                return
            if not _is_at(path, file.fileno()):
                continue  # whoever held it has removed it between the opening and the locking
            try:
                yield file.fileno()
            finally:
                path.unlink(missing_ok=True)
            return


def is_held(path: Path, *, shared: bool = False) -> bool:
    """Whether somebody holds a file alone; with `shared`, whether anybody holds it at all."""
    how = fcntl.LOCK_EX if shared else fcntl.LOCK_SH
    try:
        with path.open("rb") as file:
            fcntl.flock(file, how | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def rows_lock(store: Store, run_id: str) -> Path:
    """What is held by whoever grades the rows of a dataset in a run."""
    return Path(store.home, f"{run_id}.lock")


RunState = Literal["finished", "running", "interrupted", "unfinished"]


def run_state(store: Store, run: RunRecord) -> RunState:
    """Whether a run has ended, and if not, whether somebody is at work on it.

    ``unfinished`` where that cannot be told: a process is at work here, but a newer run is open
    too; or the database is one that other machines write to.
    """
    if run.finished:
        return "finished"
    state = _open_state(store, run)
    # Whoever was at work may have ended between the two looks, at the record and at the lock.
    return "finished" if state != "running" and store.is_finished(run.id) else state


def _open_state(store: Store, run: RunRecord) -> RunState:
    if is_held(rows_lock(store, run.id)):
        return "running"
    if run.config.get("kind") != "dataset" and is_held(Path(store.home, _AT_WORK), shared=True):
        newest = store.newest_unfinished()
        return "running" if newest == run.id else "unfinished"
    return "unfinished" if store.database.is_shared else "interrupted"


def source_of(detail: dict[str, Json]) -> str:
    """The digest of the source that a cell's work started from, as its detail has it.

    Whatever else stands there is none: files are deleted by that name.
    """
    metadata = detail.get("metadata")
    found = metadata.get("source") if isinstance(metadata, dict) else None
    return found if isinstance(found, str) and is_digest(found) else ""


def delete_run(store: Store, run_id: str, *, keep_files: bool = False) -> Freed:
    """Remove a run with all that is stored of it, and the files that nobody else needs.

    Args:
        store: Where it is kept.
        run_id: Its full id.
        keep_files: Leave all files.

    Raises:
        ConflictError: If a process of this machine is at work on it, or, unless ``keep_files``, on
            any run that keeps files in the same place.
        InputError: For an unknown run.
        StoreError: If something that other results rest on cannot be read: nothing is deleted then.
    """
    run, keeps = store.run(run_id), bool(store.snapshots(run_id))
    if is_held(rows_lock(store, run.id)) and not store.is_finished(run.id):
        raise ConflictError(f"run {run.id} is at work", hint="interrupt it first, with Ctrl-C")
    is_rows = run.config.get("kind") == "dataset"
    if (keep_files and run.finished) or (is_rows and not keeps):
        store.forget_run(run.id)
        return Freed()
    with alone_with(store.home) as is_alone:
        if not is_alone:
            raise _busy(run.id, finished=run.finished)
        doomed = [] if keep_files else list(_doomed(store, run.id))
        store.forget_run(run.id)
        return _free(doomed)


def _busy(run_id: str, *, finished: bool) -> ConflictError:
    if not finished:
        return ConflictError(
            f"run {run_id} is not finished, and a run is at work here: it may be this one",
            hint="wait for it, or interrupt it with Ctrl-C",
        )
    return ConflictError(
        f"a run is at work here, and may need files of run {run_id}",
        hint="wait for it, or leave the files: --keep-files",
    )


@contextmanager
def _lock(home: str) -> Generator[int]:
    with disk_faults(f"the store's directory {home}"):
        Path(home).mkdir(parents=True, exist_ok=True)
        file = os.open(Path(home, _AT_WORK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        yield file
    finally:
        os.close(file)


def _doomed(store: Store, run_id: str) -> Iterator[Path]:
    """The files that only this run needs."""
    snapshots, sources = _snapshots(store, run_id), _sources(store, run_id)
    kept, kept_sources = set[str](), set[str]()
    for other in _others(store, run_id):
        kept |= _snapshots(store, other)
        if sources - kept_sources:
            kept_sources |= _sources(store, other)
    home = Path(store.home)
    for digest in sources - kept_sources:
        yield home / "sources" / f"{digest}.zst"
        yield home / "cache" / "sources" / digest
    manifests = {_place(home, "snapshots", digest) for digest in kept | kept_sources}
    gone = {_place(home, "snapshots", d) for d in snapshots | sources} - manifests
    files = {file for place in gone for file in _files(home, place)}
    for place in manifests if files else ():
        files -= _files(home, place)
    yield from gone
    yield from (_place(home, "blobs", digest) for digest in files)


def _others(store: Store, run_id: str) -> Iterator[str]:
    return (run.id for run in every(store.runs) if run.id != run_id)


def _snapshots(store: Store, run_id: str) -> set[str]:
    return set(filter(is_digest, store.snapshots(run_id)))


def _sources(store: Store, run_id: str) -> set[str]:
    if not store.snapshots(run_id):
        return set()
    return {source_of(detail) for _, _, detail in store.every_result(run_id)} - {""}


def _files(home: Path, manifest: Path) -> set[str]:
    """Digests of the files that a manifest names; one that is not here can give nothing back."""
    if not manifest.exists():
        return set()
    entries = read_snapshot(str(home), manifest.parent.name + manifest.name)
    return {str(entry["sha256"]) for entry in entries.values() if _is_file(entry)}


def _is_file(entry: Json) -> TypeGuard[dict[str, Json]]:
    return isinstance(entry, dict) and entry.get("type") == "file"


def _place(home: Path, room: str, digest: str) -> Path:
    return home / room / digest[:2] / digest[2:]


def _free(doomed: list[Path]) -> Freed:
    files = size = 0
    for place in doomed:
        with suppress(FileNotFoundError):
            if place.is_dir():
                shutil.rmtree(place)  # a copy in the cache
                continue
            held = place.stat().st_size
            place.unlink()
            files, size = files + 1, size + held
    return Freed(files, size)
