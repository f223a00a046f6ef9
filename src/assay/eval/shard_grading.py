"""Grade what a plan of shards misses, and sum up what all its parts come to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias, cast

from assay.cores import cores
from assay.errors import AssayError, InputError
from assay.eval.batch import Processes, run_batches
from assay.eval.grades import Tally
from assay.eval.part_directory import SUMMARY, replace_json
from assay.eval.row_grading import computes
from assay.eval.shard_rows import Shard
from assay.eval.shard_work import ShardWork
from assay.eval.shards import OURS, ShardPlan
from assay.scoring.json_safe import Json

__all__ = ["OnShard", "grade_shards", "write_summary"]

Pool: TypeAlias = "Callable[[object], Awaitable[object]]"
OnShard: TypeAlias = "Callable[[Shard, Tally], None]"
"""Told of each shard whose part is there now."""

_UNDER_WAY = 2


async def grade_shards(
    plan: ShardPlan,
    *,
    on_shard: OnShard,
    workers: int = 0,
    pool: Pool | None = None,
    at_once: int = 0,
) -> None:
    """Grade what is missing.

    Args:
        plan: What `plan_shards` gave.
        on_shard: Told of each shard whose part is there now.
        workers: Processes where graders only compute, else batches of rows under way; by default
            as many as there are cores.
        pool: Grades shards somewhere else: is given a `Shard`, and gives what ``plan.work`` gives.
        at_once: Shards that it is given at once.

    Raises:
        InputError: For a malformed row, or a file that changed meanwhile.
        StoreError: If a part cannot be written.
    """
    count = workers or cores()

    def keep(shard: Shard, done: object) -> None:
        if isinstance(done, AssayError):
            raise done
        version = plan.versions[shard.source.path]
        if not version.holds():
            plan.changed.add(shard.source.path)
            raise InputError(
                f"{shard.source.name} changed while it was being graded", hint="grade it again"
            )
        plan.done[shard.number] = tally = cast("Tally", done)
        on_shard(shard, tally)

    if pool is not None:
        shards = (_with_data(shard) for shard in plan.missing)
        await run_batches(shards, pool, keep, at_once=at_once or 2 * count)
    elif not computes(plan.work.graders):
        size = min((spec.kind.grader.batch_size for spec in plan.work.graders), default=1)
        turn = asyncio.Semaphore(count if size == 1 else 8 * count)
        await run_batches(
            plan.missing, lambda shard: plan.work.grade(shard, turn), keep, at_once=_UNDER_WAY
        )
    elif count > 1 and len(plan.missing) > 1:
        plan.work.prepare()  # before the forks, so that none of them has to
        with Processes(plan.work, min(count, len(plan.missing))) as processes:
            await run_batches(plan.missing, processes, keep, at_once=count)
    else:
        await run_batches(plan.missing, partial(_here, plan.work), keep, at_once=1)


async def _here(work: ShardWork, shard: Shard) -> object:
    await asyncio.sleep(0)  # Ctrl-C has its turn
    return await work.grade(shard)


def _with_data(shard: Shard) -> Shard:
    """A shard for another machine: with its rows, where they are in a file of this process."""
    if not shard.source.path.startswith(OURS):
        return shard
    with Path(shard.source.path).open("rb") as file:
        file.seek(shard.stretch.start)
        return replace(shard, data=file.read(shard.stretch.size))


def write_summary(plan: ShardPlan, seconds: float) -> dict[str, Json]:
    """Write ``summary.json``: what all parts come to, and what it took now; and give it back."""
    tally = plan.tally()
    mean, now = tally.mean(), plan.todo
    summary: dict[str, Json] = {
        "directory": str(plan.directory),
        "rows": plan.rows,
        "graded": tally.graded,
        "passed": tally.passed,
        "failed": tally.failed,
        "scored": tally.scored,
        "errors": tally.errors,
        "skipped": tally.skipped,
        "not_graded": None
        if not tally.partly
        else {
            "cells": tally.partly,
            "share": tally.share,
            "graders": dict[str, Json](tally.skipped_graders),
        },
        "flagged": tally.flagged,
        "left_out": tally.left_out,
        "first_left_out": tally.first_left_out,
        "mean": {"mean": mean.mean, "low": mean.low, "high": mean.high, "n": mean.n},
        "causes": [{"count": n, "text": why} for why, n in tally.causes.most_common()],
        "parts": len(plan.shards),
        "graded_now": now,
        "seconds": round(seconds, 3),
        "rows_per_second": round(now / seconds, 1) if seconds > 0 else None,
    }
    replace_json(plan.directory / SUMMARY, summary)
    return summary
