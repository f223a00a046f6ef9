"""Shards graded by actors of a cluster: to those that see the files go only their places."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from assay.errors import InputError
from assay.eval.cluster.actors import (
    DEPTH,
    SLOW_SECONDS,
    WAITING,
    Actors,
    EndsWorkersError,
    worker_directory,
)
from assay.eval.cluster.joining import Cluster
from assay.eval.cluster.limits import ClusterLimits
from assay.eval.cluster.pieces import by_pieces
from assay.eval.cluster.sent_graders import SentGraders
from assay.eval.rows.datasets import OURS
from assay.eval.rows.grading import computes, is_pure
from assay.eval.rows.recorded import RowPlan
from assay.eval.rows.shard_work import NOT_SHARED, ShardWork, batch_size
from assay.eval.rows.shards import Shard, read_shard
from assay.tasks.task import RunOptions

_BATCHES = 8


@dataclass(frozen=True, slots=True)
class _Attempt:
    """Some rows of a shard, over which workers may end."""

    shard: Shard
    first: int
    last: int


@dataclass(slots=True, kw_only=True)
class SentShards:
    """Grades shards on another machine.

    Attributes:
        work: What is done here.
        sent: Its graders on their way.
        sizes: How long each file of the dataset is that they have to see, by its path.
        at_once: Batches of rows under way, of graders that do not only compute.
    """

    work: ShardWork
    sent: SentGraders
    sizes: tuple[tuple[str, int], ...]
    at_once: int
    _turn: asyncio.Semaphore | None = field(default=None, init=False)

    def prepare(self) -> None:
        """Check that this machine sees the shared files, and unpack the graders.

        Raises:
            AssayError: If it does not see them, or a grader cannot run here.
        """
        for path, size in self.sizes:
            try:
                there = Path(path).stat().st_size
            except OSError as error:
                raise InputError(
                    f"{path} cannot be read there: {error.strerror}", hint=NOT_SHARED
                ) from error
            if there < size:
                raise InputError(f"{path} is a different file there", hint=NOT_SHARED)
        self.work.prepare()
        place = worker_directory()
        self.work = replace(self.work, graders=self.sent.unpacked(place), place=place)

    async def __call__(self, request: Shard | _Attempt) -> object:
        """Grade a shard, or try some of its rows."""
        if isinstance(request, _Attempt):
            return await self.work.attempt(request.shard, request.first, request.last)
        if self._turn is None:
            self._turn = asyncio.Semaphore(self.at_once)
        return await self.work.grade(request, self._turn)


@asynccontextmanager
async def sent_shards(
    cluster: Cluster, plan: RowPlan, workers: int
) -> AsyncGenerator[tuple[Callable[[Shard], Awaitable[object]], int]]:
    """What has a cluster grade a shard, and how many it may have under way.

    Args:
        cluster: Which.
        plan: What is graded.
        workers: Actors; by default one for each core.

    Raises:
        GraderError: If no worker can do it, as one that does not see the files.
    """
    graders, sink = plan.work.graders, plan.sink
    waits = any(spec.kind.grader.waits for spec in graders)
    batches = 1 if batch_size(graders) == 1 else _BATCHES
    at_once = WAITING if waits else batches
    versions = plan.terms.data.versions
    sizes = {path: one.size for path, one in versions.items() if not path.startswith(OURS)}
    work = SentShards(
        work=plan.work,
        sent=SentGraders.of(graders),
        sizes=tuple(sizes.items()) if sink.is_shared else (),
        at_once=at_once,
    )
    limit: float | None = SLOW_SECONDS
    if sink.by_batches:
        limit += 0.0 if computes(graders) else RunOptions().grading_timeout or 0.0
    elif not is_pure(graders):
        limit = None  # nobody knows how long a whole shard may take
    # Rows that are sent are held ready only for those whom they are for.
    is_sent = not sink.is_shared or len(sizes) < len(versions)
    room = workers or (max(1, cluster.cores) if is_sent and sink.is_shared else cluster.room)
    depth = max(DEPTH, at_once) if sink.by_batches and not computes(graders) else DEPTH

    def given(shard: Shard) -> Shard:
        if shard.lines is not None or (sink.is_shared and not shard.source.path.startswith(OURS)):
            return shard
        return replace(shard, lines=[one for lines, _ in read_shard(shard) for one in lines])

    limits = None if computes(graders) else ClusterLimits()
    with Actors(work, workers, depth=depth, patience=limit, limits=limits) as pool:
        yield lambda shard: _graded(pool, given(shard)), depth * room


async def _graded(pool: Callable[[object], Awaitable[object]], shard: Shard) -> object:
    """Have workers grade a shard; rows over which workers die are found, and become errors."""
    every = range(shard.rows)

    async def ask(rows: Sequence[int]) -> object:
        if rows == every:
            return await pool(shard)
        return await pool(_Attempt(shard, rows[0], rows[-1] + 1))

    def lost(row: int, error: EndsWorkersError) -> object:
        return row, error.message

    found = await by_pieces(every, ask, lost)
    given_up = tuple(cast("tuple[int, str]", one) for one in found if isinstance(one, tuple))
    if len(found) == 1 and not given_up:
        return found[0]
    return await pool(replace(shard, given_up=given_up))
