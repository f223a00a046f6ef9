"""Shards graded by actors of a cluster: paths go to them, parts appear where all see them."""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import cast

from assay.errors import AssayError, InputError
from assay.eval.actors import (
    DEPTH,
    SLOW_SECONDS,
    WAITING,
    EndsWorkersError,
    worker_directory,
)
from assay.eval.cluster import Cluster
from assay.eval.cluster_limits import limited_actors
from assay.eval.grades import Tally
from assay.eval.part_directory import MANIFEST
from assay.eval.pieces import by_pieces
from assay.eval.row_grading import computes, is_pure
from assay.eval.sent_graders import SentGraders
from assay.eval.shard_grading import OnShard, grade_shards
from assay.eval.shard_rows import Shard
from assay.eval.shard_work import PARTS, ShardWork
from assay.eval.shards import OURS, ShardPlan

__all__ = ["SentShards", "grade_shards_on"]

_BATCHES = 8
_NOT_SHARED = "the data and --out DIR/ must be where every machine of the cluster sees them"


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
        manifest: Digest of the plan that stands in its directory.
        sizes: How long each file of the dataset is, by its path.
        at_once: Batches of rows under way, of graders that do not only compute.
    """

    work: ShardWork
    sent: SentGraders
    manifest: str
    sizes: tuple[tuple[str, int], ...]
    at_once: int
    _turn: asyncio.Semaphore | None = field(default=None, init=False)

    def prepare(self) -> None:
        """Check that this machine sees the shared files, and unpack the graders.

        Raises:
            AssayError: If it does not see them, or a grader cannot run here.
        """
        directory = Path(self.work.directory)
        try:
            found = manifest_digest(directory)
            tempfile.TemporaryFile(dir=directory / PARTS).close()
        except OSError as error:
            raise InputError(
                f"{directory} cannot be written there: {error.strerror}", hint=_NOT_SHARED
            ) from error
        if found != self.manifest:
            raise InputError(f"{directory} is a different directory there", hint=_NOT_SHARED)
        for path, size in self.sizes:
            try:
                there = Path(path).stat().st_size
            except OSError as error:
                raise InputError(
                    f"{path} cannot be read there: {error.strerror}", hint=_NOT_SHARED
                ) from error
            if there < size:
                raise InputError(f"{path} is a different file there", hint=_NOT_SHARED)
        self.work.prepare()
        place = worker_directory()
        self.work = replace(self.work, graders=self.sent.unpacked(place), place=place)

    async def __call__(self, request: Shard | _Attempt) -> Tally | AssayError | None:
        """Grade a shard, or try some of its rows."""
        if isinstance(request, _Attempt):
            return await self.work.attempt(request.shard, request.first, request.last)
        if self._turn is None:
            self._turn = asyncio.Semaphore(self.at_once)
        return await self.work.grade(request, self._turn)


def manifest_digest(directory: Path) -> str:
    """What tells one plan from another."""
    return hashlib.sha256((directory / MANIFEST).read_bytes()).hexdigest()


async def grade_shards_on(
    cluster: Cluster, plan: ShardPlan, *, on_shard: OnShard, workers: int = 0
) -> None:
    """Grade what is missing on a cluster.

    Args:
        cluster: Where.
        plan: What `assay.eval.shards.plan_shards` gave.
        on_shard: Told of each shard whose part is there now.
        workers: Actors; by default one for each core.

    Raises:
        InputError: For a malformed row, or a file that changed meanwhile.
        StoreError: If a part cannot be written.
        GraderError: If no worker can do it, as one that does not see the files.
    """
    pure, asks = is_pure(plan.work.graders), not computes(plan.work.graders)
    kinds = [spec.kind.grader for spec in plan.work.graders]
    size = min((kind.batch_size for kind in kinds), default=1)
    waits = any(kind.waits for kind in kinds)
    sizes = {path: one.size for path, one in plan.versions.items() if not path.startswith(OURS)}
    work = SentShards(
        work=plan.work,
        sent=SentGraders.of(plan.work.graders),
        manifest=manifest_digest(plan.directory),
        sizes=tuple(sizes.items()),
        at_once=WAITING if waits else 1 if size == 1 else _BATCHES,
    )
    # Rows in a file of this process alone are sent, and held ready only for whom they are.
    is_sent = len(sizes) < len(plan.versions)
    room = workers or (max(1, cluster.cores) if is_sent else cluster.room)
    patience = SLOW_SECONDS if pure else None
    async with limited_actors(cluster, work, workers, asks=asks, patience=patience) as pool:
        await grade_shards(
            plan, on_shard=on_shard, pool=partial(_graded, pool), at_once=DEPTH * room
        )


async def _graded(pool: Callable[[object], Awaitable[object]], request: object) -> object:
    """Have workers grade a shard; rows over which workers die are found, and become errors."""
    assert isinstance(request, Shard), "shards are what is graded"
    shard, every = request, range(request.stretch.rows)

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
