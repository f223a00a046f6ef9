"""One shard of a dataset, graded and committed as one file: what a process or an actor does.

A part is there whole or not at all, and does not depend on when, where or in which order it was
made. What could not be graded is a row of it that says so. Beside it stands a tally, what it comes
to, which is read from the part where that is lost.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from assay.errors import AssayError, InputError, StoreError
from assay.eval.batch import in_batches
from assay.eval.grades import Grade, Tally, score_names
from assay.eval.parts import Column, PartWriter, commit, read_grades, temporary
from assay.eval.row_grading import computes, is_pure, row_results, without_loop
from assay.eval.shard_rows import Shard, read_row_of, read_shard
from assay.eval.stretches import STRETCH_ROWS
from assay.graders.spec import GraderSpec
from assay.scoring.json_safe import Json
from assay.scoring.results import EvaluationResult
from assay.tasks.formats import TABLE_FORMS, Form
from assay.tasks.rows import Row
from assay.tasks.tables import Batch, load_arrow

__all__ = [
    "PARTS",
    "TALLIES",
    "ShardWork",
]

PARTS, TALLIES = "parts", "tallies"


@dataclass(frozen=True, slots=True)
class _Block:
    """Some rows of a shard that are well-formed, and, of a table, their columns."""

    rows: Sequence[tuple[Row, bytes]]
    batch: Batch | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardWork:
    """Grades shards: what a pool of processes or actors does. Can be pickled.

    Attributes:
        graders: What every row goes through.
        threshold: Reward that a row needs to pass.
        directory: Where the parts are, for whoever grades.
        form: As what they are written.
        columns: Of tables that are made of JSON rows; None where rows have theirs.
        may_skip: Whether malformed rows are left out, rather than ending all.
        place: Directory of files that graders name and that were sent along; what is written names
            them without it.
        has_tables: Whether what is read or written is Parquet or Arrow.
        at_once: Batches of rows under way in a process, of graders that do not only compute.
    """

    graders: tuple[GraderSpec, ...]
    threshold: float
    directory: str
    form: Form
    columns: tuple[Column, ...] | None = None
    may_skip: bool = False
    place: str = ""
    has_tables: bool = False
    at_once: int = 32

    def prepare(self) -> None:
        """Load what a process needs that grades shards: once, before the first."""
        if self.has_tables:
            load_arrow()

    def __call__(
        self, shard: Shard
    ) -> Tally | AssayError | Coroutine[None, None, Tally | AssayError]:
        """Grade a shard: at once where graders only compute, else as `grade`."""
        return without_loop(self.grade(shard)) if is_pure(self.graders) else self.grade(shard)

    async def grade(
        self, shard: Shard, turn: asyncio.Semaphore | None = None
    ) -> Tally | AssayError:
        """Grade a shard and commit its part.

        Args:
            shard: Which.
            turn: How many batches of rows may be under way, of all shards together; by default
                ``at_once`` of this one.

        Returns:
            What it comes to, its part being there; or the error that ends the whole, such as a
            malformed row or a full disk.
        """
        target = Path(self.directory, PARTS, shard.part)
        try:
            return await self._write(shard, target, turn)
        except AssayError as error:
            return error

    async def attempt(self, shard: Shard, first: int, last: int) -> None:
        """Grade some rows of a shard for nothing but to see whether it can be done.

        Args:
            shard: Which.
            first: Place of the first of them in it.
            last: Place after the last of them.
        """
        start = 0
        for block in self._blocks(shard, Tally()):
            rows = [row for row, _ in block.rows][max(0, first - start) : max(0, last - start)]
            start += len(block.rows)
            await self._grades(rows, iter(()), None)

    async def _write(self, shard: Shard, target: Path, turn: asyncio.Semaphore | None) -> Tally:
        start, given_up = 0, dict(shard.given_up)
        tally, names = Tally(), score_names(spec.label for spec in self.graders)
        earlier = read_grades(target, self.form) if shard.again else iter(())
        if shard.again:
            _tally_file(target).unlink(missing_ok=True)  # it is of the part that gives way
        with temporary(target) as file:
            with PartWriter(file, self.form, names, self.columns) as to:
                for blocks in self._together(self._blocks(shard, tally)):
                    rows = [row for block in blocks for row, _ in block.rows]
                    lost = [given_up.get(start + n) for n in range(len(rows))] if given_up else ()
                    grades = iter(await self._grades(rows, earlier, turn, lost))
                    start += len(rows)
                    for block in blocks:
                        done = list(islice(grades, len(block.rows)))
                        self._put(to, block, done)
                        for grade in done:
                            tally.add(grade, threshold=self.threshold)
            if tally.rows + tally.left_out != shard.stretch.rows:
                raise InputError(
                    f"{shard.source.name} now has {tally.rows + tally.left_out} rows instead of "
                    f"{shard.stretch.rows}",
                    hint="was it changed, or is it damaged?",
                )
            if not commit(file, target, replace=shard.again):
                return self.tally(shard, target)  # another attempt was first
        _keep_tally(target, tally)
        return tally

    def tally(self, shard: Shard, part: Path) -> Tally:
        """What a part that is there comes to.

        Raises:
            StoreError: If it is damaged.
            InputError: If rows cannot be read.
        """
        kept = _kept_tally(part)
        if kept is not None and kept.rows + kept.left_out == shard.stretch.rows:
            return kept
        tally = Tally()
        for grade in read_grades(part, self.form):
            tally.add(grade, threshold=self.threshold)
        if self.may_skip and tally.rows < shard.stretch.rows:
            for _ in self._blocks(shard, tally):  # which rows were left out is not in the part
                pass
        if tally.rows + tally.left_out != shard.stretch.rows:
            raise StoreError(
                f"{part} is damaged: it has {tally.rows} of {shard.stretch.rows} rows",
                hint="remove it, and the same command writes it again",
            )
        _keep_tally(part, tally)
        return tally

    def _together(self, blocks: Iterator[_Block]) -> Iterator[Sequence[_Block]]:
        """Blocks that are graded together: of graders that wait, all of a shard."""
        if is_pure(self.graders):
            yield from ([block] for block in blocks)
        else:
            yield list(blocks)

    async def _grades(
        self,
        rows: Sequence[Row],
        earlier: Iterator[Grade],
        turn: asyncio.Semaphore | None,
        lost: Sequence[str | None] = (),
    ) -> list[Grade]:
        kept = list(islice(earlier, len(rows)))
        ended = {place: one for place, one in enumerate(kept) if one.status != "error"}
        for place, why in enumerate(lost):
            if why is not None:
                failed = EvaluationResult.from_error(f"[grading] {why}")
                ended[place] = self._grade(rows[place], failed)
        todo = [place for place in range(len(rows)) if place not in ended]
        size = min((spec.kind.grader.batch_size for spec in self.graders), default=1)
        batches = list(in_batches(todo, STRETCH_ROWS if computes(self.graders) else size))

        limit = turn or asyncio.Semaphore(self.at_once)

        async def work(batch: list[int]) -> list[Grade]:
            results = await row_results(self.graders, [rows[place] for place in batch])
            known: dict[int, Grade] = {}  # equal scores share one result
            grades: list[Grade] = []
            for place, result in zip(batch, results, strict=True):
                row, alike = rows[place], known.get(id(result))
                grade = self._grade(row, result) if alike is None else alike.called(row.id)
                known.setdefault(id(result), grade)
                grades.append(grade)
            return grades

        async def in_turn(batch: list[int]) -> list[Grade]:
            async with limit:
                return await work(batch)

        if is_pure(self.graders):
            found = [await work(batch) for batch in batches]
        else:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(in_turn(batch)) for batch in batches]
            found = [task.result() for task in tasks]
        for batch, grades in zip(batches, found, strict=True):
            ended.update(zip(batch, grades, strict=True))
        return [ended[place] for place in range(len(rows))]

    def _grade(self, row: Row, result: EvaluationResult) -> Grade:
        grade = Grade.of(row, result, threshold=self.threshold, graders=len(self.graders))
        if not self.place:
            return grade
        told = {
            name: text.replace(self.place, "")
            for name in ("error", "reason", "not_graded")
            if (text := getattr(grade, name)) is not None
        }
        return replace(grade, **told)

    def _put(self, to: PartWriter, block: _Block, grades: Sequence[Grade]) -> None:
        if self.form not in TABLE_FORMS:
            to.lines(((row.fields, line) for row, line in block.rows), grades)
        elif block.batch is not None and self.columns is None:
            to.batch(block.batch, grades)
        else:
            to.fields([row.fields for row, _ in block.rows], grades)

    def _blocks(self, shard: Shard, tally: Tally) -> Iterator[_Block]:
        """The well-formed rows of a shard; others are left out, or end it.

        Raises:
            InputError: For a row that is malformed, naming file and place.
        """
        source, twins = shard.source, frozenset(shard.twins)
        for lines, batch in read_shard(shard):
            kept: list[tuple[Row, bytes]] = []
            places: list[int] = []
            for place, (number, line) in enumerate(lines):
                try:
                    row, text = read_row_of(line, number, source, self.graders)
                except InputError as error:
                    if not self.may_skip:
                        raise
                    tally.leave_out(str(error))
                    continue
                if number in twins:
                    tally.leave_out(f"{row.file}: id {row.id!r} is that of an earlier row")
                    continue
                kept.append((row, text))
                places.append(place)
            if batch is not None and len(kept) < len(lines):
                yield _Block(kept, batch.take(places) if places else batch.slice(0, 0))
            else:
                yield _Block(kept, batch)


def _tally_file(part: Path) -> Path:
    return part.parent.parent / TALLIES / f"{part.name}.json"


def _keep_tally(part: Path, tally: Tally) -> None:
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


def _kept_tally(part: Path) -> Tally | None:
    """What was kept of a part; None where it is not there, or the part is not as long any more."""
    try:
        data: Json = json.loads(_tally_file(part).read_text(encoding="utf-8"))
        is_of_it = isinstance(data, dict) and data.get("bytes") == part.stat().st_size
        return Tally.from_dict(data) if isinstance(data, dict) and is_of_it else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
