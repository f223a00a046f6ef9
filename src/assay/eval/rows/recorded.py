"""Grade a dataset of recorded answers: its shards through graders, into a sink, resumable.

A row needs no agent and no workspace, so it is graded without a rollout. All rows are read before
the first is graded (`datasets`): of a dataset with a malformed row nothing is kept. Then shards are
graded by processes, tasks or actors of a cluster (`shard_work`), and each is kept as a whole by the
sink: a store (`store_sink`) or a directory of parts (`directory_sink`). What is killed loses the
shards under way, and no more; the next grading of the same goes on after those that are kept.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeAlias

from assay.cores import cores
from assay.errors import AssayError, InputError
from assay.eval.batch import Processes, run_batches
from assay.eval.rows.datasets import Dataset, read_through
from assay.eval.rows.grading import ROW_PARTS, computes
from assay.eval.rows.shard_work import Out, ShardWork, batch_size
from assay.eval.rows.shards import Shard
from assay.frozen import frozen
from assay.graders.apply import require_parts
from assay.graders.spec import GraderSpec
from assay.scoring.json_safe import Json
from assay.tasks.row_files import AS_IT_IS, RowReading

if TYPE_CHECKING:
    from assay.eval.cluster.joining import Cluster
    from assay.shown import Ended

Hands: TypeAlias = "Callable[[Shard], Awaitable[object]]"
OnEnded: TypeAlias = "Callable[[Counter[Ended]], None]"
"""Told how the rows of a shard ended that is kept now."""

_AT_HOME = 2_000
"""So few rows are graded here: other processes would take longer to start than they save."""
_UNDER_WAY = 2
"""Shards under way, of graders that wait: while one ends, the next begins."""
_BATCHES = 8
"""Batches under way for each core, of graders that take many rows together."""


@frozen(kw_only=True)
class RowTerms:
    """What decides the grades of rows, on which a sink has to agree.

    Attributes:
        data: The dataset.
        graders: What every row goes through.
        threshold: Reward that a row needs to pass.
        notes: What else is kept of how the rows are graded.
    """

    data: Dataset
    graders: tuple[GraderSpec, ...]
    threshold: float
    notes: Mapping[str, Json]


class Sink(Protocol):
    """Where graded rows are kept, a shard at a time.

    Attributes:
        before: Rows that were kept already.
        by_batches: Whether shards of graders that wait are handed out batch by batch.
        is_shared: Whether other machines see it, and the files of the dataset.
    """

    before: int
    by_batches: bool
    is_shared: bool

    def shard_size(self, graders: Sequence[GraderSpec]) -> tuple[int, int]:
        """Bytes and rows that a shard has at most."""
        ...

    def agreed(self, terms: RowTerms) -> AbstractContextManager[Out]:
        """Find what is kept on the same terms, or begin; nobody else does until the block ends."""
        ...

    def todo(self) -> Iterable[Shard]:
        """What is yet to be graded."""
        ...

    def keep(self, shard: Shard, made: object) -> Counter[Ended]:
        """Keep what a worker made of a shard, whole or not at all; how its rows ended."""
        ...

    def refuse(self, shard: Shard) -> None:
        """Take back what a worker made of a shard: its file has changed meanwhile."""
        ...

    def finish(self, seconds: float) -> None:
        """Note that all is kept, and how long that took now."""
        ...


@frozen(kw_only=True)
class RowPlan:
    """Rows of a dataset that are about to be graded.

    Attributes:
        terms: What decides their grades.
        sink: Where they are kept.
        work: Grades a shard.
    """

    terms: RowTerms
    sink: Sink
    work: ShardWork

    @property
    def rows(self) -> int:
        """All rows, graded already or not."""
        return self.terms.data.rows


@contextmanager
def plan_rows(
    data: str,
    graders: Sequence[GraderSpec],
    sink: Sink,
    *,
    reading: RowReading = AS_IT_IS,
    label: str | None = None,
    threshold: float = 1.0,
    left_out: tuple[int, str] = (0, ""),
    notes: Callable[[], Mapping[str, Json]] = dict[str, Json],
) -> Generator[RowPlan]:
    """Read a dataset through, and find or begin its grading; it is nobody else's until the end.

    Args:
        data: The path of a dataset, of whatever form; see `assay.tasks.row_files.opened`.
        graders: What every row goes through.
        sink: Where graded rows are kept.
        reading: How rows are read; with ``on_bad_row``, malformed ones are left out.
        label: Field that people labelled; None for none.
        threshold: Reward that a row needs to pass.
        left_out: How many rows were left out where the dataset was made of something else, and what
            is wrong with the first.
        notes: Gives what else is kept of how the rows are graded, once they are known to be sound:
            a malformed row is worse than graders that do not work.

    Raises:
        InputError: For a malformed row, a label that no row has, graders that cannot run; or a sink
            that holds something else.
        StoreError: If the sink cannot be written.
    """
    graders = tuple(graders)
    require_parts(graders, ROW_PARTS | {"trace"})
    with read_through(
        data,
        reading=reading,
        label=label,
        size=sink.shard_size(graders),
        left_out=left_out,
    ) as found:
        if not found.has_traces:
            require_parts(graders, ROW_PARTS)
        terms = RowTerms(data=found, graders=graders, threshold=threshold, notes=notes())
        with sink.agreed(terms) as out:
            work = ShardWork(
                graders=graders,
                threshold=threshold,
                out=out,
                label=label,
                may_skip=found.may_skip,
            )
            yield RowPlan(terms=terms, sink=sink, work=work)


async def grade_rows(
    plan: RowPlan,
    *,
    on_ended: OnEnded = lambda _: None,
    workers: int = 0,
    cluster: Cluster | None = None,
    hands: Hands | None = None,
) -> None:
    """Grade the rows that have no grade yet, and keep them.

    Args:
        plan: What `plan_rows` gave.
        on_ended: Told of each shard that is kept.
        workers: Processes where graders only compute, else batches of rows under way; by default
            as many as there are cores.
        cluster: Where to grade, else here. Then ``workers`` are actors, by default one for each
            core of it.
        hands: Grades shards somewhere else: is given a `Shard`, and gives what ``plan.work`` gives.

    Raises:
        InputError: For a dataset that changed meanwhile.
        GraderError: If no worker of the cluster can do it.
        StoreError: If what is graded cannot be kept.
    """
    begun, sink, versions = time.monotonic(), plan.sink, plan.terms.data.versions

    def keep(shard: Shard, made: object) -> None:
        if isinstance(made, AssayError):
            raise made
        # What is kept is of the version that was planned, also if it is gone on with later.
        if not versions[shard.source.path].holds():
            sink.refuse(shard)
            raise InputError(
                f"{shard.source.name} changed while it was being graded", hint="grade it again"
            )
        on_ended(sink.keep(shard, made))

    async with _hands(plan, workers, cluster, hands) as (work, at_once):
        await run_batches(sink.todo(), work, keep, at_once=at_once)
    sink.finish(time.monotonic() - begun)


@asynccontextmanager
async def _hands(
    plan: RowPlan, workers: int, cluster: Cluster | None, hands: Hands | None
) -> AsyncGenerator[tuple[Hands, int]]:
    """What grades a shard, and how many it may have under way."""
    count, work = workers or cores(), plan.work
    if hands is not None:
        yield hands, 2 * count
    elif cluster is not None:
        from assay.eval.cluster.sent_shards import sent_shards

        async with sent_shards(cluster, plan, workers) as found:
            yield found
    elif not computes(work.graders):
        batches = count if batch_size(work.graders) == 1 else _BATCHES * count
        turn = asyncio.Semaphore(batches)
        at_once = batches if plan.sink.by_batches else _UNDER_WAY
        yield partial(work.grade, turn=turn), at_once
    elif count > 1 and plan.rows - plan.sink.before > _AT_HOME:
        work.prepare()  # before the forks, so that none of them has to
        with Processes(work, count) as processes:
            yield processes, count
    else:
        yield partial(_here, work), 1


async def _here(work: ShardWork, shard: Shard) -> object:
    await asyncio.sleep(0)  # Ctrl-C has its turn
    return await work.grade(shard)
