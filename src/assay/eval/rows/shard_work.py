"""One shard of a dataset, graded: what this process does, a fork of it, or an actor of a cluster.

What could not be graded is a row that says so. Where the graded rows go is the business of an
`Out`, of which each sink has its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from assay.errors import AssayError, InputError
from assay.eval.batch import in_batches
from assay.eval.rows.grading import computes, is_pure, row_results, without_loop
from assay.eval.rows.shards import Shard, read_row_of, read_shard
from assay.graders.spec import GraderSpec
from assay.scoring.results import EvaluationResult
from assay.tasks.rows import Row
from assay.tasks.tables import Batch

NOT_SHARED = "the data and --out DIR/ must be where every machine of the cluster sees them"
"""What helps where another machine does not see the files."""

_COMPUTED = 1_024
"""Rows that graders which compute are given together at most."""


def batch_size(graders: Sequence[GraderSpec]) -> int:
    """Rows that are handed together to graders that do not only compute."""
    return min((spec.kind.grader.batch_size for spec in graders), default=1)


@dataclass(frozen=True, slots=True)
class Block:
    """Some rows of a shard that are well-formed, and, of a table, their columns."""

    rows: Sequence[tuple[Row, bytes]]
    batch: Batch | None = None


class Writer(Protocol):
    """Takes the rows of one shard, in their order."""

    def ended(self, count: int) -> Sequence[int]:
        """Places among the next rows of those that have a grade already."""
        ...

    def put(self, block: Block, results: Sequence[EvaluationResult | None], seconds: float) -> None:
        """Take rows with their results; None for those that have a grade.

        A result that several rows share is one object. Each row took so many seconds.
        """
        ...

    def made(self) -> object:
        """What the driver is given of the shard, once all its rows are there."""
        ...


class Out(Protocol):
    """What whoever grades does with graded rows; can be pickled."""

    def prepare(self) -> None:
        """Load what is needed: once, before the first shard."""
        ...

    def writing(self, work: ShardWork, shard: Shard) -> AbstractContextManager[Writer]:
        """Begin a shard."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardWork:
    """Grades shards: what a pool of processes or actors does. Can be pickled.

    Attributes:
        graders: What every row goes through.
        threshold: Reward that a row needs to pass.
        out: Where the graded rows go.
        label: Field that people labelled; None for none.
        may_skip: Whether malformed rows are left out, rather than ending all.
        place: Directory of files that graders name and that were sent along; what is written names
            them without it.
        at_once: Batches of rows under way in a process, of graders that do not only compute.
    """

    graders: tuple[GraderSpec, ...]
    threshold: float
    out: Out
    label: str | None = None
    may_skip: bool = False
    place: str = ""
    at_once: int = 32

    def prepare(self) -> None:
        """Load what a process needs that grades shards: once, before the first."""
        self.out.prepare()

    def __call__(self, shard: Shard) -> object | Coroutine[None, None, object]:
        """Grade a shard: at once where graders only compare, else as `grade`."""
        return without_loop(self.grade(shard)) if is_pure(self.graders) else self.grade(shard)

    async def grade(self, shard: Shard, turn: asyncio.Semaphore | None = None) -> object:
        """Grade a shard.

        Args:
            shard: Which.
            turn: How many batches of rows may be under way, of all shards together; by default
                ``at_once`` of this one.

        Returns:
            What its sink makes of it; or the error that ends the whole, such as a row that became
            malformed, or a full disk.
        """
        try:
            return await self._grade(shard, turn)
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
        for block in self.blocks(shard):
            rows = [row for row, _ in block.rows][max(0, first - start) : max(0, last - start)]
            start += len(block.rows)
            await self._results(rows, {}, None)

    async def _grade(self, shard: Shard, turn: asyncio.Semaphore | None) -> object:
        count, given_up = 0, dict(shard.given_up)
        with self.out.writing(self, shard) as to:
            for blocks in self._together(self.blocks(shard)):
                rows = [row for block in blocks for row, _ in block.rows]
                known: dict[int, EvaluationResult | None] = dict.fromkeys(to.ended(len(rows)))
                for place in range(len(rows)) if given_up else ():
                    if (why := given_up.get(count + place)) is not None:
                        known[place] = EvaluationResult.from_error(f"[grading] {why}")
                begun = time.monotonic()
                results = iter(await self._results(rows, known, turn))
                seconds = (time.monotonic() - begun) / max(1, len(rows))
                for block in blocks:
                    to.put(block, list(islice(results, len(block.rows))), seconds)
                count += len(rows)
            if count != shard.rows:
                raise InputError(
                    f"{shard.source.name} now has {count} rows instead of {shard.rows}",
                    hint="was it changed, or is it damaged?",
                )
            return to.made()

    def _together(self, blocks: Iterator[Block]) -> Iterator[Sequence[Block]]:
        """Blocks that are graded together: of graders that wait, all of a shard."""
        if is_pure(self.graders):
            yield from ([block] for block in blocks)
        else:
            yield list(blocks)

    async def _results(
        self,
        rows: Sequence[Row],
        known: dict[int, EvaluationResult | None],
        turn: asyncio.Semaphore | None,
    ) -> list[EvaluationResult | None]:
        """The results of rows, those that are known already by their places included."""
        if is_pure(self.graders) and not known:
            return [*await row_results(self.graders, rows)]
        todo = [place for place in range(len(rows)) if place not in known]
        size = _COMPUTED if computes(self.graders) else batch_size(self.graders)
        batches = list(in_batches(todo, size))
        limit = turn or asyncio.Semaphore(self.at_once)

        async def in_turn(batch: list[int]) -> list[EvaluationResult]:
            async with limit:
                return await row_results(self.graders, [rows[place] for place in batch])

        if is_pure(self.graders):  # without a loop
            found = [await in_turn(batch) for batch in batches]
        else:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(in_turn(batch)) for batch in batches]
            found = [task.result() for task in tasks]
        for batch, results in zip(batches, found, strict=True):
            known.update(zip(batch, results, strict=True))
        return [known[place] for place in range(len(rows))]

    def blocks(self, shard: Shard) -> Iterator[Block]:
        """The well-formed rows of a shard; others are left out, or end it.

        Raises:
            InputError: For a row that is malformed, naming file and place.
        """
        source, twins = shard.source, frozenset(shard.twins)
        for lines, batch in read_shard(shard):
            kept: list[tuple[Row, bytes]] = []
            places: list[int] = []
            for place, (number, line) in enumerate(lines):
                if number in twins:
                    continue
                try:
                    kept.append(read_row_of(line, number, source, label=self.label))
                except InputError:
                    if not self.may_skip:
                        raise
                    continue
                places.append(place)
            if batch is not None and len(kept) < len(lines):
                yield Block(kept, batch.take(places) if places else batch.slice(0, 0))
            else:
                yield Block(kept, batch)
