"""What a matrix run costs: cells of the harness ``echo``, so that only the runner works."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from bench.peers import Peer
from bench.rows import MEASURES, Goal, Measure, Row
from bench.turns import OURS, Cost, cost_of, in_turn

__all__ = ["measure"]

_ONE, _FEW, _MANY = 1, 50, 250

# Both read this file: the fields and the grader are the same by name.
_CASE = """\
id: echo
task:
  prompt: Say where the river runs, and nothing else.
matrix:
  harnesses: [echo]
  models: [none]
  trials: 50
graders:
  - type: files
    patterns: ["river runs"]
"""


def measure(peers: Mapping[str, Peer], scratch: Path, *, quick: bool) -> list[Row]:
    """Whole processes of ``run`` over one case, into a fresh store each time."""
    case = scratch / "suite" / "evals" / "echo" / "case.yaml"
    case.parent.mkdir(parents=True, exist_ok=True)
    case.write_text(_CASE, encoding="utf-8")
    things = {f"assay {n}": partial(_assay, scratch, n) for n in (_ONE, _FEW, _MANY)}
    touchstone = peers.get("touchstone")
    if touchstone is not None:
        for n in (_ONE, _FEW, _MANY):
            things[f"touchstone {n}"] = partial(_touchstone, touchstone, scratch, n)
    costs = in_turn(2 if quick else 7, things)
    one = _pair(costs, str(_ONE))
    few = _pair(costs, str(_FEW))
    many = _pair(costs, str(_MANY))
    less = Goal("times_less", 2)
    missing = "" if touchstone else "touchstone is not installed"
    rows: list[Row] = []
    for counted in MEASURES:
        start = Goal("below", 0.25) if counted == "CPU" else None
        for cells, (ours, peer), goal in (
            (_ONE, one, start),
            (_FEW, few, less),
            (_MANY, many, None),
        ):
            rows.append(
                Row(
                    what="run 1 cell" if cells == 1 else f"run {cells} cells",
                    measure=counted,
                    unit="s",
                    ours=[_of(cost, counted) for cost in ours],
                    peer=[_of(cost, counted) for cost in peer],
                    beside="touchstone",
                    goal=goal,
                    note=missing,
                )
            )
        rows.append(
            Row(
                what=f"each further cell ({_MANY} - {_FEW})",
                measure=counted,
                unit="ms",
                ours=_further(few[0], many[0], counted),
                peer=_further(few[1], many[1], counted),
                beside="touchstone",
            )
        )
    return rows


def _assay(scratch: Path, cells: int) -> Cost:
    argv = [str(OURS / "assay"), "run", "evals", "--trials", str(cells)]
    with tempfile.TemporaryDirectory(dir=scratch) as home:
        return cost_of(
            argv,
            cwd=scratch / "suite",
            env={"ASSAY_DB": home},
            expect="the 1 graded cell" if cells == 1 else f"all of {cells}",
        )


def _touchstone(peer: Peer, scratch: Path, cells: int) -> Cost:
    with tempfile.TemporaryDirectory(dir=scratch) as runs:
        places = ["--evals-dir", "evals", "--runs-dir", runs]
        argv = [str(peer.bin / "touchstone"), *places, "run", "--trials", str(cells)]
        return cost_of(argv, cwd=scratch / "suite", expect=f"__t{cells}] PASS")


def _pair(costs: dict[str, list[Cost]], cells: str) -> tuple[list[Cost], list[Cost]]:
    return costs[f"assay {cells}"], costs.get(f"touchstone {cells}", [])


def _of(cost: Cost, counted: Measure) -> float:
    return cost.cpu if counted == "CPU" else cost.wall


def _further(few: list[Cost], many: list[Cost], counted: Measure) -> list[float]:
    pairs = zip(few, many, strict=True)
    return [(_of(b, counted) - _of(a, counted)) / (_MANY - _FEW) for a, b in pairs]
