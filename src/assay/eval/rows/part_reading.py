"""A finished directory of parts, read back: what all of it comes to, and its rows as cells."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from assay.errors import InputError, StoreError, reason_of
from assay.eval.rows.grades import RowTally
from assay.eval.rows.part_writing import MANIFEST, PARTS
from assay.eval.rows.parts import read_part
from assay.scoring.json_safe import Json
from assay.store.records import GROUP, CellRecord
from assay.types.codec import ShapeError

SUMMARY = "summary.json"


def summary_of(place: Path) -> dict[str, Json]:
    """What all parts of a directory come to, once they are there.

    Raises:
        InputError: If some are not, or what is there cannot be read.
    """
    with _told(place):
        _finished(place)
        return _summary(place)[0]


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
        if (form := options["parts"]) not in ("jsonl", "parquet"):
            raise ValueError(f"{MANIFEST} names no form of parts")
        expected = _summary(place)[1].rows
    for part in parts:
        for case, grade, group in read_part(place / PARTS / part, form, mapping):
            yield CellRecord(
                run_id="",
                case=case,
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
    manifest = cast("dict[str, Json]", read_json(place / MANIFEST))
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
    except ShapeError as error:
        raise InputError(f"{place} cannot be read: {error}") from error
    except InputError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{place} cannot be read: {reason_of(error)}") from error


def _summary(place: Path) -> tuple[dict[str, Json], RowTally]:
    """A summary that others may have written, if it has what one has."""
    found = cast("dict[str, Json]", read_json(place / SUMMARY))
    for name, kind in (("left_out", int), ("parts", int), ("first_left_out", str)):
        if type(found[name]) is not kind:
            raise ValueError(f"{SUMMARY}: {name!r} is not what it should be")
    return {**found, "directory": str(place)}, RowTally.from_dict(found)


def read_json(file: Path) -> Json:
    """The JSON of a file of the directory."""
    return cast("Json", json.loads(file.read_text(encoding="utf-8")))
