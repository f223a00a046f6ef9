"""A run as files that anything can read, and back.

::

    run.json                 {"format": "assay run 1", "run": {...}}
    results.jsonl            {"cell": {...}, "snapshot": "...", "detail": {...}}, oldest first
    snapshots/DIGEST.json    what was in a workspace, or in the source that it started from
    files/SHA256             what is in a file that a snapshot names

A cell may have several results; its last one counts. ``detail`` is the whole rollout: prompt,
trace, grade; ``detail.metadata.source`` is the snapshot that the work started from.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from datetime import datetime
from functools import partial
from pathlib import Path

from assay.errors import InputError, Location, StoreError
from assay.scoring.json_safe import Json, plain
from assay.scoring.strict_json import NotJsonError, decode_json
from assay.store.blobs import CHUNK, Blobs, disk_faults, is_digest
from assay.store.kept_files import at_work, source_of
from assay.store.records import CellRecord, RunRecord
from assay.store.restore import File, checked_tree, read_snapshot, restore_entries
from assay.store.runs import Store
from assay.store.sources import keep_source, source_tree
from assay.types.codec import from_json

_FORMAT = "assay run 1"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def export_run(store: Store, run_id: str, target: str, *, files: bool = True) -> int:
    """Write a run to a new directory.

    Args:
        store: Where it is kept.
        run_id: Its full id.
        target: The directory; it must not be there, or be empty.
        files: Whether to write workspaces and sources, too.

    Returns:
        How many results were written.

    Raises:
        InputError: If the directory has something in it.
        StoreError: If something that was kept is missing or damaged.
    """
    run, place, number = store.run(run_id), Path(target), 0
    snapshots, sources = set[str](), set[str]()
    with disk_faults(f"{target}, the exported run,"):
        place.mkdir(parents=True, exist_ok=True)
        if any(place.iterdir()):
            raise InputError(f"{target} is not empty", hint="export to a new directory")
        about = {"format": _FORMAT, "run": _written(run)}
        (place / "run.json").write_text(json.dumps(about, indent=2) + "\n", "ascii")
        with (place / "results.jsonl").open("w", encoding="ascii") as lines:
            for cell, snapshot, detail in store.every_result(run.id):
                result = {"cell": _written(cell), "snapshot": snapshot, "detail": detail}
                lines.write(json.dumps(result) + "\n")
                number += 1
                snapshots |= {snapshot} - {""}
                sources |= {source_of(detail)} - {""}
        if files:
            _write_files(store.home, place, snapshots, sources)
    return number


def _written(record: CellRecord | RunRecord) -> dict[str, Json]:
    return {entry.name: plain(getattr(record, entry.name)) for entry in fields(record)}


def _write_files(home: str, place: Path, snapshots: set[str], sources: set[str]) -> None:
    manifests, contents = place / "snapshots", place / "files"
    manifests.mkdir()
    contents.mkdir()
    for digest in sorted(snapshots | sources):
        entries = read_snapshot(home, digest)
        (manifests / f"{digest}.json").write_text(json.dumps(entries, sort_keys=True), "ascii")
    for digest in sorted(sources):  # first: what a workspace shares with its source is kept there
        tree, copy = checked_tree(read_snapshot(home, digest), digest), source_tree(home, digest)
        for parts, entry in tree.items():
            if isinstance(entry, File) and not (contents / entry.sha256).exists():
                inside = os.path.join(copy, *parts)  # noqa: PTH118 - odd names as bytes
                shutil.copyfile(os.fsencode(inside), contents / entry.sha256)
    with Blobs(Path(home, "blobs")) as blobs:
        for digest in sorted(snapshots):
            for entry in checked_tree(read_snapshot(home, digest), digest).values():
                if isinstance(entry, File) and not (contents / entry.sha256).exists():
                    with (contents / entry.sha256).open("wb") as file:
                        blobs.read(entry.sha256, file.write, most=entry.size)


def import_run(store: Store, source: str) -> RunRecord:
    """Store a run that `export_run` wrote; all of it, or nothing but files that nobody needs.

    Its results are taken as they are: whoever wrote the directory says what was scored. Its
    configuration says ``imported``.

    Raises:
        InputError: For a directory that is no exported run, or a malformed one.
        StoreError: If there is a run of that id already.
    """
    place = Path(source)
    run = _read_run(place / "run.json")
    with at_work(store.home):
        snapshots, sources = set[str](), set[str]()
        begun = replace(run, config={**run.config, "imported": True}, finished=False)
        store.create_run(begun)
        try:
            for cell, snapshot, detail in _results(place / "results.jsonl", run.id):
                store.add_cell(cell, detail, snapshot)
                snapshots |= {snapshot} - {""}
                sources |= {source_of(detail)} - {""}
            if (place / "snapshots").is_dir():
                _read_files(store.home, place, snapshots, sources)
            if run.finished:
                store.finish_run(run.id)
        except BaseException:
            store.forget_run(run.id)
            raise
    return run


def _read_run(file: Path) -> RunRecord:
    data = _document(file)
    if data.get("format") != _FORMAT or not isinstance(data.get("run"), dict):
        raise InputError("not an exported run", location=Location(file=str(file)))
    run = from_json(RunRecord, data["run"])
    try:
        datetime.fromisoformat(run.created_at)
    except ValueError as error:
        raise InputError(f"created_at: {error}", location=Location(file=str(file))) from error
    if not _ID.fullmatch(run.id):
        raise InputError(f"{run.id!r} is not the id of a run", location=Location(file=str(file)))
    return run


def _document(file: Path) -> Mapping[str, Json]:
    try:
        return _mapping(decode_json(file.read_bytes()), str(file), None)
    except OSError as error:
        hint = "give a directory that `assay runs export` wrote"
        raise InputError(f"cannot read {file}: {error.strerror}", hint=hint) from error
    except NotJsonError as error:
        raise InputError(str(error), location=Location(file=str(file))) from error


def _mapping(data: Json, file: str, line: int | None) -> dict[str, Json]:
    if not isinstance(data, dict):
        raise InputError("not a JSON object", location=Location(file=file, line=line))
    return data


def _results(file: Path, run_id: str) -> Iterator[tuple[CellRecord, str, dict[str, Json]]]:
    if not file.is_file():
        raise InputError(f"there is no {file}")
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            where = Location(file=str(file), line=number)
            try:
                data = _mapping(decode_json(line), str(file), number)
            except NotJsonError as error:
                raise InputError(str(error), location=where) from error
            snapshot, detail = data.get("snapshot"), data.get("detail")
            try:
                cell = from_json(CellRecord, data.get("cell"))
            except InputError as error:
                where = replace(where, field=f"cell.{error.location.field}".rstrip("."))
                raise InputError(error.message, location=where, hint=error.hint) from error
            if cell.run_id != run_id or not isinstance(snapshot, str):
                raise InputError(f"not a result of run {run_id}", location=where)
            if snapshot and not is_digest(snapshot):
                where = replace(where, field="snapshot")
                raise InputError(f"{snapshot!r:.100} is not a digest", location=where)
            yield cell, snapshot, _mapping(detail, str(file), number)


def _read_files(home: str, place: Path, snapshots: set[str], sources: set[str]) -> None:
    """Keep manifests and files; each is known by its digest, which is that of what is there."""
    with Blobs(Path(home, "blobs")) as blobs, Blobs(Path(home, "snapshots")) as manifests:
        for digest in sorted(snapshots | sources):
            entries = _document(place / "snapshots" / f"{digest}.json")
            written = json.dumps(entries, sort_keys=True, separators=(",", ":")).encode("ascii")
            tree = checked_tree(entries, digest)
            _require_same(manifests.put(written), digest)
            for entry in tree.values():
                if isinstance(entry, File):
                    _require_same(_put(blobs, place / "files" / entry.sha256), entry.sha256)
    for digest in sorted(sources):
        with tempfile.TemporaryDirectory(prefix="assay-import-") as directory:
            restore_entries(home, read_snapshot(home, digest), directory)
            _require_same(keep_source(home, directory).digest, digest)


def _put(blobs: Blobs, file: Path) -> str:
    if file.is_symlink() or not file.is_file():
        raise InputError(f"{file} is missing, or no file")
    with file.open("rb") as content:
        return blobs.put_chunks(iter(partial(content.read, CHUNK), b""))[0]


def _require_same(found: str, digest: str) -> None:
    if found != digest:
        raise StoreError(f"{digest} of the exported run is not what its name says")
