"""A directory of parts as where graded rows go: each shard becomes a file, named by its plan.

A part is there whole or not at all. Its name has a digest of everything that decides what stands in
it, and it does not depend on when, where or in which order it was made: after an interruption the
same plan, ``manifest.json``, goes on and gives the same bytes; another plan is refused. Whoever
grades writes the part, and sends back only a tally, what it comes to; so neither side holds more
than a few rows. A tally that is lost is made again from the part.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

from assay.errors import AssayError, InputError
from assay.eval.records import digest_with_files
from assay.eval.rows.datasets import OURS
from assay.eval.rows.grades import RowTally
from assay.eval.rows.grading import computes, is_pure
from assay.eval.rows.part_reading import SUMMARY, read_json
from assay.eval.rows.part_writing import MANIFEST, PARTS, TALLIES, PartsOut, digest_of_plan
from assay.eval.rows.parts import PartForm, commit, fits_parquet, temporary
from assay.eval.rows.recorded import RowTerms
from assay.eval.rows.shards import Shard, ShardSource, Version
from assay.graders.spec import GraderSpec
from assay.scoring.json_safe import Json
from assay.shown import Ended
from assay.store.kept_files import held
from assay.tasks.tables import ColumnFile
from assay.version import __version__

_LOCK = ".lock"

_ROWS, _COMPUTED_ROWS, _COSTLY_ROWS = 5_000, 2_000, 1_000
"""Rows of a shard by default: tenths of a second of work, so that its files cost little beside
it (5 ms on a disk; a cluster's actor takes another to be asked), and few enough that all cores of
a machine have a share of 100,000. A death may lose them."""
_BYTES = 64 << 20


class PartDirectory:
    """Where graded rows become files: Parquet where all files are tables that fit, else JSON lines.

    Args:
        place: The directory; it is made, or has what an earlier grading of the same left.
        rows: How many a part has; by default as many as suit the graders.

    Attributes:
        parts: Those that there will be, as shards.
        missing: Those that are not there yet, or have errors that are to be graded again.
        todo_rows: Rows that are to be graded: of a part with errors, these alone.
        done: What the parts come to that are there, by the numbers of their shards.
        summary: What all of them come to, once they are there.
    """

    by_batches = False
    is_shared = True

    def __init__(self, place: str, *, rows: int | None = None) -> None:
        self.place = Path(place)
        self._rows = rows
        self.parts: tuple[Shard, ...] = ()
        self.missing: tuple[Shard, ...] = ()
        self.todo_rows = self.before = 0
        self.done: dict[int, RowTally] = {}
        self._changed: set[str] = set()
        self._left_out = 0, ""
        self.summary: dict[str, Json] = {}

    def shard_size(self, graders: Sequence[GraderSpec]) -> tuple[int, int]:
        """Bytes and rows that a shard has at most."""
        if self._rows:
            return sys.maxsize, self._rows
        if is_pure(graders):
            return _BYTES, _ROWS
        return _BYTES, _COMPUTED_ROWS if computes(graders) else _COSTLY_ROWS

    @contextmanager
    def agreed(self, terms: RowTerms) -> Generator[PartsOut]:
        """Keep the plan in the directory, which is nobody else's until the block ends.

        Raises:
            InputError: If it holds something else, saying what differs; or is somebody's now.
            StoreError: If it cannot be written.
        """
        data, graders, form = terms.data, terms.graders, _form_of(terms.data.sources)
        self._left_out = data.left_out, data.first_left_out
        decided: dict[str, Json] = {
            "assay": __version__,
            "graders": digest_with_files(graders),
            "options": {
                "threshold": terms.threshold,
                "map": dict[str, Json](data.reading.mapping),
                "on_bad_row": "skip" if data.may_skip else "stop",
                "shard_rows": self.shard_size(graders)[1],
                "parts": form,
            },
            "files": [
                {"name": one.name, "digest": data.versions[one.path].digest} for one in data.sources
            ],
        }
        with _opened(self.place):
            self.parts = tuple(_named(shard, data.versions, decided, form) for shard in data.shards)
            _agree(self.place, {**decided, "shards": [_listed(shard) for shard in self.parts]})
            out = PartsOut(
                directory=str(self.place.absolute()),
                manifest=digest_of_plan(self.place),
                form=form,
                has_tables=any(one.is_table for one in data.sources),
            )
            self._look_what_is_there(out, terms.threshold)
            if self.missing:  # what stands there is of other parts than there will be
                (self.place / SUMMARY).unlink(missing_ok=True)
            try:
                yield out
            finally:
                self._disown()  # once nobody writes any more

    def _look_what_is_there(self, out: PartsOut, threshold: float) -> None:
        named = {one.name for one in (self.place / PARTS).iterdir()}
        missing: list[Shard] = []
        for shard in self.parts:
            if shard.part not in named:
                missing.append(shard)
                self.todo_rows += shard.rows
                continue
            self.done[shard.number] = tally = out.tally(shard, threshold)
            if tally.errors:
                del self.done[shard.number]
                missing.append(replace(shard, again=True))
                self.todo_rows += tally.errors
        self.missing = tuple(missing)
        self.before = sum(tally.rows for tally in self.done.values())

    def refuse(self, shard: Shard) -> None:
        """Remove a part in the end, and others of its file that nobody has looked at yet."""
        self._changed.add(shard.source.path)

    def _disown(self) -> None:
        for shard in self.missing:
            if shard.source.path in self._changed and shard.number not in self.done:
                (self.place / PARTS / shard.part).unlink(missing_ok=True)

    def todo(self) -> Sequence[Shard]:
        """What is missing."""
        return self.missing

    def keep(self, shard: Shard, made: object) -> Counter[Ended]:
        """Count a part that is there now; how its rows ended."""
        self.done[shard.number] = tally = cast("RowTally", made)
        return tally.ended()

    def tally(self) -> RowTally:
        """What the parts that are there come to."""
        whole = RowTally()
        for number in sorted(self.done):
            whole.include(self.done[number])
        return whole

    def finish(self, seconds: float) -> None:
        """Write ``summary.json``: what all parts come to, and what it took now."""
        tally, now = self.tally(), self.todo_rows
        mean = tally.mean()
        self.summary = {
            "directory": str(self.place),
            **tally.to_dict(),
            "graded": tally.graded,
            "left_out": self._left_out[0],
            "first_left_out": self._left_out[1],
            "mean": {"mean": mean.mean, "low": mean.low, "high": mean.high, "n": mean.n},
            "parts": len(self.parts),
            "graded_now": now,
            "seconds": round(seconds, 3),
            "rows_per_second": round(now / seconds, 1) if seconds > 0 else None,
        }
        _replace_json(self.place / SUMMARY, self.summary)


# ---- the directory -----------------------------------------------------------------------------


def _form_of(sources: Sequence[ShardSource]) -> PartForm:
    """What parts are written as: what came in columns goes out in columns, if it can."""
    for one in sources:
        if not one.is_table or one.path.startswith(OURS):  # whose rows may be sent, as JSON
            return "jsonl"
        with closing(ColumnFile(one.path, one.name, one.pictures)) as table:
            if not fits_parquet(table):
                return "jsonl"
    return "parquet"


def _named(
    shard: Shard, versions: Mapping[str, Version], decided: Mapping[str, Json], form: PartForm
) -> Shard:
    """With the name of its part."""
    same = {name: value for name, value in decided.items() if name != "files"}
    version, stretch = versions[shard.source.path].digest, shard.stretch
    key: list[Json] = [same, version, shard.source.before, stretch.start, stretch.size]
    if shard.twins:
        key.append(list(shard.twins))
    digest = hashlib.blake2b(json.dumps(key, sort_keys=True).encode(), digest_size=8)
    part = f"{shard.number:05d}-{digest.hexdigest()}.{form}"
    return replace(shard, part=part)


def _listed(shard: Shard) -> Json:
    stretch = shard.stretch
    return {
        "part": shard.part,
        "file": shard.source.name,
        "first": stretch.number,
        "rows": stretch.rows,
        "start": stretch.start,
        "size": stretch.size,
    }


@contextmanager
def _opened(place: Path) -> Generator[None]:
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


def _agree(place: Path, manifest: Mapping[str, Json]) -> None:
    """Keep the plan in the directory, or check that the plan that is there is the same.

    Raises:
        InputError: If it is a different one, saying what differs.
    """
    file = place / MANIFEST
    try:
        earlier = read_json(file)
    except FileNotFoundError:
        _replace_json(file, manifest)
        return
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{file} cannot be read: {error}", hint="name a fresh directory"
        ) from error
    same = cast("Json", json.loads(json.dumps(manifest)))
    if earlier == same:
        return
    if not any((place / PARTS).iterdir()):  # a plan without any part yet
        _replace_json(file, manifest)
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


def _replace_json(file: Path, data: Mapping[str, Json]) -> None:
    """Write a file of JSON, whole or not at all.

    Raises:
        StoreError: If it cannot be written.
    """
    with temporary(file) as to:
        to.write((json.dumps(data, indent=1) + "\n").encode())
        commit(to, file, replace=True)
