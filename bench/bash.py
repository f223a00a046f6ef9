"""What `BashGrader` costs over the bare ``bash`` that it starts, and what the sandbox adds."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from bench.peers import Peer
from bench.rows import MEASURES, Goal, Measure, Row
from bench.turns import in_turn
from bench.worker import Worker
from bench.workloads import BASH, Timing

__all__ = ["measure"]

_BARE, _LOGIN, _GRADER, _ISOLATED, _DECLARED = BASH
_HUD = "hud's BashGrader"


def measure(peers: Mapping[str, Peer], scratch: Path, *, quick: bool) -> list[Row]:
    """CPU and time of one ``true``, one after the other; every figure beside bare bash."""
    count = 5 if quick else 20
    with ExitStack() as stack:
        own = stack.enter_context(Worker(sys.executable, "assay.graders", cwd=scratch))
        things = {name: partial(own.run, name, seed=0, count=count) for name in BASH}
        if hud := peers.get("hud"):
            other = stack.enter_context(Worker(hud.python, "hud.graders", cwd=scratch))
            things[_HUD] = partial(other.run, _GRADER, seed=0, count=count)
        timings = in_turn(3 if quick else 9, things)
    return [row for measured in MEASURES for row in _rows(timings, measured)]


def _rows(timings: dict[str, list[Timing]], measured: Measure) -> list[Row]:
    def seconds(name: str) -> list[float]:
        return [t.wall if measured == "wall" else t.cpu for t in timings.get(name, [])]

    def row(name: str, beside: str, goal: float | None = None, note: str = "") -> Row:
        return Row(
            what=f"{name} / {beside}",
            measure=measured,
            unit="ms",
            ours=seconds(name),
            peer=seconds(beside),
            beside=beside,
            goal=Goal("at_most", goal) if goal else None,
            over=True,
            note=note,
        )

    failed = [name for name, found in timings.items() if any(t.check < 1 for t in found)]
    note = f"did not pass: {', '.join(failed)}" if failed else ""
    rows = [
        row(_GRADER, _BARE, 1.3, note),
        row(_LOGIN, _BARE),
        row(_GRADER, _LOGIN),
        row(_ISOLATED, _BARE),
        row(_DECLARED, _BARE),
        row(_ISOLATED, _GRADER),
    ]
    if _HUD in timings:
        rows += [row(_HUD, _BARE), row(_GRADER, _HUD)]
    return rows
