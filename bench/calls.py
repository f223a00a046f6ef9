"""What one call costs: comparing answers, and combining scores."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from itertools import count as numbers
from pathlib import Path

from bench.peers import Peer
from bench.rows import Goal, Row
from bench.turns import in_turn
from bench.worker import Worker
from bench.workloads import COMBINING, COMPARING, Timing

__all__ = ["measure"]

_GOALS = {"make and combine 5 subscores": None, "combine 5 graders": Goal("times_less", 1.4)}
"""Where it is not twice as fast: mostly the cost of making objects, as people call it."""

_ONE_KB = 100
"""Words from which a workload is done less often per round."""


def measure(peers: Mapping[str, Peer], scratch: Path, *, quick: bool) -> list[Row]:
    """CPU per call, in one process per package, which take turns."""
    with ExitStack() as stack:
        own = stack.enter_context(Worker(sys.executable, "assay.graders", cwd=scratch))
        workers = {"assay": own}
        if hud := peers.get("hud"):
            workers["hud"] = stack.enter_context(Worker(hud.python, "hud.graders", cwd=scratch))
        return [_row(name, workers, quick=quick) for name in (*COMPARING, *COMBINING)]


def _row(name: str, workers: dict[str, Worker], *, quick: bool) -> Row:
    seeds = {which: numbers(1) for which in workers}
    count = _count(name) // (4 if quick else 1)

    def once(which: str) -> Timing:
        return workers[which].run(name, seed=next(seeds[which]), count=count)

    timings = in_turn(3 if quick else 15, {which: partial(once, which) for which in workers})
    ours, peer = timings["assay"], timings.get("hud", [])
    agree = all(abs(a.check - b.check) < 1e-6 for a, b in zip(ours, peer, strict=False))
    return Row(
        what=name,
        measure="CPU",
        unit="us",
        ours=[timing.cpu for timing in ours],
        peer=[timing.cpu for timing in peer],
        beside="hud",
        goal=_GOALS.get(name, Goal("times_less", 2)),
        note="" if agree else "the packages gave different scores",
    )


def _count(name: str) -> int:
    if name in COMPARING:
        return 400 if COMPARING[name].words > _ONE_KB else 2_000
    return 400 if COMBINING[name][0] <= 5 else 200
