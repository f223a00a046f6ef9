"""The directory that a dataset is graded into: whose it is, and whether its plan is the same."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast

from assay.errors import AssayError, InputError, StoreError, reason_of
from assay.eval.parts import commit, read_groups, temporary
from assay.eval.shard_work import PARTS, TALLIES
from assay.scoring.json_safe import Json
from assay.store.kept import held
from assay.store.records import GROUP, CellRecord
from assay.tasks.formats import FORMS

__all__ = [
    "MANIFEST",
    "SUMMARY",
    "agree",
    "cells_of",
    "opened_for_parts",
    "replace_json",
    "summary_of",
]

MANIFEST, SUMMARY, _LOCK = "manifest.json", "summary.json", ".lock"


@contextmanager
def opened_for_parts(place: Path) -> Generator[None]:
    """Make a directory, or take one that has parts; nobody else grades into it meanwhile.

    A new one is removed again if the block raises an `AssayError` before its first part.

    Raises:
        InputError: If it holds something else, cannot be written, or is somebody's now.
    """
    is_new = not place.exists()
    try:
        _make(place)
        with held(place / _LOCK) as lock:
            if lock is None:
                raise InputError(
                    f"{place} is in use: another command is grading into it",
                    hint="wait, or name another directory",
                )
            try:
                _clear(place)
                yield
            except AssayError:
                _clear(place)
                if is_new:
                    _unmake(place)
                raise
            finally:
                _clear(place)
    except PermissionError as error:
        raise InputError(f"cannot write to {place}: {error.strerror}") from error


def _clear(place: Path) -> None:
    """Remove what killed or interrupted attempts have left."""
    for one in (place, place / PARTS, place / TALLIES):
        for left in one.glob(".*.tmp"):
            left.unlink(missing_ok=True)


def _make(place: Path) -> None:
    try:
        if place.is_dir() and not (place / MANIFEST).is_file():
            ours = {_LOCK, PARTS, TALLIES}
            others = [one.name for one in place.iterdir() if one.name not in ours]
            if [one for one in others if not one.startswith(f".{MANIFEST}")]:
                raise InputError(
                    f"{place} holds {others[0]!r:.80} and no parts of a graded dataset",
                    hint="name an empty directory, or a new one",
                )
        for one in (place / PARTS, place / TALLIES):
            if one.is_symlink():  # what it leads to is not ours to write, or to clear
                raise InputError(f"{one} is a symbolic link", hint="name another directory")
            one.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write to {place}: {error.strerror}") from error


def _unmake(place: Path) -> None:
    with suppress(OSError):  # of one that is not empty: a part is there, or a stranger's file
        (place / PARTS).rmdir()
        (place / TALLIES).rmdir()
        for name in (MANIFEST, _LOCK):
            (place / name).unlink(missing_ok=True)
        place.rmdir()


def agree(place: Path, manifest: Mapping[str, Json]) -> None:
    """Keep the plan in the directory, or check that the plan that is there is the same.

    Raises:
        InputError: If it is a different one, saying what differs.
    """
    file = place / MANIFEST
    try:
        earlier = _read(file)
    except FileNotFoundError:
        replace_json(file, manifest)
        return
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{file} cannot be read: {error}", hint="name a fresh directory"
        ) from error
    same = cast("Json", json.loads(json.dumps(manifest)))
    if earlier == same:
        return
    if not any((place / PARTS).iterdir()):  # a plan without any part yet
        replace_json(file, manifest)
        return
    differs = "; ".join(_differences(earlier, same)) or "its shards"
    raise InputError(
        f"{place} holds parts of a different grading: {differs}",
        hint="name a fresh directory, or remove this one",
    )


def _differences(earlier: Json, now: Json) -> Iterator[str]:
    """What of two plans is not the same."""
    if not isinstance(earlier, dict) or not isinstance(now, dict):
        return
    if earlier.get("assay") != now.get("assay"):
        yield f"assay is {now.get('assay')} and was {earlier.get('assay')}"
    elif earlier.get("graders") != now.get("graders"):
        yield "the graders are different, or their files have changed"
    old, new = earlier.get("options"), now.get("options")
    if isinstance(old, dict) and isinstance(new, dict):
        for name in new:
            if old.get(name) != new[name]:
                yield f"{name} is {new[name]} and was {old.get(name)}"
    files = [_by_name(one.get("files")) for one in (earlier, now)]
    for name in sorted(files[0].keys() | files[1].keys()):
        if name not in files[1]:
            yield f"{name} is no longer among the data"
        elif name not in files[0]:
            yield f"{name} is new among the data"
        elif files[0][name] != files[1][name]:
            yield f"{name} has changed"


def _by_name(files: Json) -> dict[str, Json]:
    listed = files if isinstance(files, list) else []
    return {str(one["name"]): one.get("digest") for one in listed if isinstance(one, dict)}


def summary_of(place: Path) -> dict[str, Json]:
    """What all parts of a directory come to, once they are there.

    Raises:
        InputError: If some are not, or what is there cannot be read.
    """
    with _told(place):
        _finished(place)
        return _summary(_read(place / SUMMARY))


def cells_of(place: Path) -> Iterator[CellRecord]:
    """The rows of all parts of a directory as the cells of a run, as far as parts have them.

    Raises:
        InputError: If some parts are not there, or what is there cannot be read.
        StoreError: If a part is damaged, or has not all of its rows.
    """
    with _told(place):
        manifest, parts = _finished(place)
        options = cast("dict[str, Json]", manifest["options"])
        mapping = {str(k): str(v) for k, v in cast("dict[str, str]", options["map"]).items()}
        columns = cast("dict[str, str] | None", manifest["columns"])
        made = None if columns is None else tuple(columns.items())
        if (form := options["parts"]) not in FORMS:
            raise ValueError(f"{MANIFEST} names no form of parts")
        summary = _summary(_read(place / SUMMARY))
        expected = sum(cast("int", summary[name]) for name in ("graded", "errors", "skipped"))
    for part in parts:
        for grade, group in read_groups(place / PARTS / part, form, mapping, made):
            yield CellRecord(
                run_id="",
                case=grade.id,
                status=grade.status,
                reward=grade.reward,
                passed=grade.passed,
                error=grade.error or "",
                flags=grade.flags,
                notes={GROUP: group} if group else {},
            )
            expected -= 1
    if expected:
        raise StoreError(
            f"{place} has not the rows that {SUMMARY} tells of",
            hint="a part was changed: remove it, and the same `assay grade` writes it again",
        )


def _finished(place: Path) -> tuple[dict[str, Json], list[str]]:
    """The plan of a directory, and its parts, all of which are there."""
    manifest = cast("dict[str, Json]", _read(place / MANIFEST))
    listed = [one["part"] for one in cast("list[dict[str, str]]", manifest["shards"])]
    found = {one.name for one in (place / PARTS).iterdir()}
    there = [one for one in listed if one in found]
    if len(there) == len(listed) and (place / SUMMARY).is_file():
        return manifest, there
    raise InputError(
        f"{place} has {len(there):,} of {len(listed):,} parts",
        hint="the same `assay grade` goes on with the rest",
    )


@contextmanager
def _told(place: Path) -> Generator[None]:
    """Say of what others may have written that it cannot be read."""
    try:
        yield
    except InputError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{place} cannot be read: {reason_of(error)}") from error


_COUNTS = (
    "rows",
    "graded",
    "passed",
    "failed",
    "scored",
    "errors",
    "skipped",
    "flagged",
    "left_out",
    "parts",
)


def _summary(data: Json) -> dict[str, Json]:
    """A summary that others may have written, if it has what one has."""
    found = cast("dict[str, Json]", data)
    wrong = [name for name in _COUNTS if type(found[name]) is not int]
    mean = cast("dict[str, Json]", found["mean"])
    ends = [mean[name] for name in ("mean", "low", "high")]
    wrong += ["mean"] * any(type(one) not in (int, float, type(None)) for one in ends)
    wrong += ["first_left_out"] * (type(found["first_left_out"]) is not str)
    causes = cast("list[dict[str, Json]]", found["causes"])
    wrong += ["causes"] * any(
        type(one["count"]) is not int or type(one["text"]) is not str for one in causes
    )
    partly = cast("dict[str, Json] | None", found["not_graded"])
    wrong += ["not_graded"] * (partly is not None and not _is_not_graded(partly))
    if wrong:
        raise ValueError(f"{SUMMARY}: {wrong[0]!r} is not what it should be")
    return found


def _is_not_graded(partly: Mapping[str, Json]) -> bool:
    graders = cast("dict[str, Json]", partly["graders"])
    texts = all(type(why) is str for why in graders.values())
    return type(partly["cells"]) is int and type(partly["share"]) in (int, float) and texts


def _read(file: Path) -> Json:
    return cast("Json", json.loads(file.read_text(encoding="utf-8")))


def replace_json(file: Path, data: Mapping[str, Json]) -> None:
    """Write a file of JSON, whole or not at all.

    Raises:
        StoreError: If it cannot be written.
    """
    with temporary(file) as to:
        to.write((json.dumps(data, indent=1) + "\n").encode())
        commit(to, file, replace=True)
