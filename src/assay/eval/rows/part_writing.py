"""One part of a directory, written by whoever grades its rows; and its tally, kept beside it."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from assay.errors import InputError, StoreError
from assay.eval.rows.grades import RowGrade, RowTally, score_names
from assay.eval.rows.parts import PartForm, PartWriter, commit, read_part, temporary
from assay.eval.rows.shard_work import NOT_SHARED, Block, ShardWork
from assay.eval.rows.shards import Shard
from assay.scoring.json_safe import Json
from assay.scoring.results import EvaluationResult
from assay.tasks.tables import load_arrow
from assay.types.codec import ShapeError

MANIFEST, PARTS, TALLIES = "manifest.json", "parts", "tallies"


def digest_of_plan(place: Path) -> str:
    """SHA-256 of the plan of a directory, which tells one directory from another."""
    return hashlib.sha256((place / MANIFEST).read_bytes()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartsOut:
    """Writes parts, for whoever grades.

    Attributes:
        directory: Where they are.
        manifest: Digest of the plan that stands there.
        form: As what they are written.
        has_tables: Whether what is read or written has columns.
    """

    directory: str
    manifest: str
    form: PartForm
    has_tables: bool = False

    def prepare(self) -> None:
        """Load what tables need, and see that the plan is here that there is where it was made.

        Raises:
            InputError: If another machine does not see the directory.
        """
        directory = Path(self.directory)
        try:
            found = digest_of_plan(directory)
            tempfile.TemporaryFile(dir=directory / PARTS).close()
        except OSError as error:
            raise InputError(
                f"{directory} cannot be written there: {error.strerror}", hint=NOT_SHARED
            ) from error
        if found != self.manifest:
            raise InputError(f"{directory} is a different directory there", hint=NOT_SHARED)
        if self.has_tables:
            load_arrow()

    def writing(self, work: ShardWork, shard: Shard) -> _Part:
        """Begin a part."""
        return _Part(self, work, shard)

    def path(self, shard: Shard) -> Path:
        """Where the part of a shard is."""
        return Path(self.directory, PARTS, shard.part)

    def tally(self, shard: Shard, threshold: float) -> RowTally:
        """What a part that is there comes to.

        Raises:
            StoreError: If it is damaged.
        """
        part = self.path(shard)
        kept = _kept_tally(part)
        if kept is not None and kept.rows == shard.rows:
            return kept
        tally = RowTally()
        for _, grade, _ in read_part(part, self.form):
            tally.add(grade, threshold=threshold)
        if tally.rows != shard.rows:
            raise StoreError(
                f"{part} is damaged: it has {tally.rows} of {shard.rows} rows",
                hint="remove it, and the same command writes it again",
            )
        _keep_tally(part, tally)
        return tally


class _Part:
    """A part that is being written; it has its name once it is whole."""

    def __init__(self, out: PartsOut, work: ShardWork, shard: Shard) -> None:
        self._out, self._work, self._shard = out, work, shard
        self._target = out.path(shard)
        self._names = score_names(spec.label for spec in work.graders)
        self._earlier = read_part(self._target, out.form) if shard.again else iter(())
        self._kept: list[RowGrade] = []
        self._tally = RowTally()

    def __enter__(self) -> Self:
        if self._shard.again:
            _tally_file(self._target).unlink(missing_ok=True)  # it is of the part that gives way
        with ExitStack() as opened:
            self._file: IO[bytes] = opened.enter_context(temporary(self._target))
            writer = PartWriter(self._file, self._out.form, self._names)
            self._to = opened.enter_context(writer)
            self._open = opened.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.__exit__(kind, error, trace)

    def ended(self, count: int) -> Sequence[int]:
        self._kept = [grade for _, grade, _ in islice(self._earlier, count)]
        return [place for place, one in enumerate(self._kept) if one.status != "error"]

    def put(self, block: Block, results: Sequence[EvaluationResult | None], seconds: float) -> None:
        del seconds
        kept, self._kept = self._kept[: len(results)], self._kept[len(results) :]
        known: dict[int, RowGrade] = {}  # equal scores share one result
        grades: list[RowGrade] = []
        for place, result in enumerate(results):
            if result is None:
                grade = kept[place]
            elif (grade := known.get(id(result))) is None:
                grade = known[id(result)] = self._grade(result)
            grades.append(grade)
            self._tally.add(grade, threshold=self._work.threshold)
        self._to.write(block, grades)

    def _grade(self, result: EvaluationResult) -> RowGrade:
        work = self._work
        grade = RowGrade.of(result, threshold=work.threshold, graders=len(work.graders))
        if not work.place:
            return grade
        told = {
            name: text.replace(work.place, "")
            for name in ("error", "reason", "not_graded")
            if (text := getattr(grade, name)) is not None
        }
        return replace(grade, **told)

    def made(self) -> RowTally:
        self._to.close()
        if not commit(self._file, self._target, replace=self._shard.again):
            return self._out.tally(self._shard, self._work.threshold)  # another was first
        _keep_tally(self._target, self._tally)
        return self._tally


def _tally_file(part: Path) -> Path:
    return part.parent.parent / TALLIES / f"{part.name}.json"


def _keep_tally(part: Path, tally: RowTally) -> None:
    """Write what a part comes to; where that is lost, the part tells it."""
    path = _tally_file(part)
    try:
        text = json.dumps({"bytes": part.stat().st_size, **tally.to_dict()}).encode()
        with temporary(path) as file:
            file.write(text)
            file.flush()
            Path(file.name).replace(path)
    except (OSError, StoreError):
        return


def _kept_tally(part: Path) -> RowTally | None:
    """What was kept of a part; None where it is not there, or the part is not as long any more."""
    try:
        data: Json = json.loads(_tally_file(part).read_text(encoding="utf-8"))
        is_of_it = isinstance(data, dict) and data.get("bytes") == part.stat().st_size
        return RowTally.from_dict(data) if isinstance(data, dict) and is_of_it else None
    except (OSError, ValueError, KeyError, ShapeError):
        return None
