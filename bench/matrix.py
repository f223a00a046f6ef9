"""What a matrix run costs: of the harness ``echo``, and of an agent in Python that answers at once.

So only the runners work. All processes are measured whole, from start to end.
"""

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
_AGENTS_CELLS = 200

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

_ANSWER = "Through the old town, the river runs to the sea."
_AGENTS_CASE = """\
id: agent
task: {prompt: "Where?"}
matrix: {harnesses: [echo], models: [none]}
graders:
  - {type: contains, substring: river runs}
"""
_AGENT = f"""\
async def answers(run):
    return {_ANSWER!r}
"""
_INSPECT = f"""\
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes
from inspect_ai.solver import solver

@solver
def answers():
    async def solve(state, generate):
        state.output.completion = {_ANSWER!r}
        return state
    return solve

@task
def rivers():
    samples = [Sample("Where?", target="river runs", id=n) for n in range({_AGENTS_CELLS})]
    return Task(samples, solver=answers(), scorer=includes())
"""
_PYDANTIC_EVALS = f"""\
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Contains

async def answers(prompt):
    return {_ANSWER!r}

cases = [Case(name=str(n), inputs="Where?") for n in range({_AGENTS_CELLS})]
report = Dataset(name="rivers", cases=cases, evaluators=[Contains("river runs")]).evaluate_sync(
    answers, progress=False
)
print("passed:", sum(case.assertions["Contains"].value for case in report.cases))
"""


def measure(peers: Mapping[str, Peer], scratch: Path, *, quick: bool) -> list[Row]:
    """Whole processes of ``run`` over one case, into a fresh store each time."""
    case = scratch / "suite" / "evals" / "echo" / "case.yaml"
    case.parent.mkdir(parents=True, exist_ok=True)
    case.write_text(_CASE, encoding="utf-8")
    things = {f"assay {n}": partial(_assay, scratch / "suite", n) for n in (_ONE, _FEW, _MANY)}
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
    return rows + _of_an_agent(peers, scratch, 2 if quick else 7)


def _of_an_agent(peers: Mapping[str, Peer], scratch: Path, rounds: int) -> list[Row]:
    suite = scratch / "agents"
    for name, text in (
        ("evals/agent/case.yaml", _AGENTS_CASE),
        ("agent.py", _AGENT),
        ("rivers.py", _INSPECT),
        ("rivers_dataset.py", _PYDANTIC_EVALS),
    ):
        (suite / name).parent.mkdir(parents=True, exist_ok=True)
        (suite / name).write_text(text, encoding="utf-8")
    things = {"assay": partial(_assay, suite, _AGENTS_CELLS, "--harness", "agent.py:answers")}
    beside = {
        "Inspect": ("evaluators", _inspect),
        "pydantic-evals": ("pydantic-evals", _pydantic_evals),
    }
    for name, (installed, run) in beside.items():
        if installed in peers:
            things[name] = partial(run, peers[installed], suite)
    costs = in_turn(rounds, things)
    return [
        Row(
            what=f"run {_AGENTS_CELLS} cells of a Python agent",
            measure=counted,
            unit="s",
            ours=[_of(cost, counted) for cost in costs["assay"]],
            peer=[_of(cost, counted) for cost in costs.get(name, [])],
            beside=name,
            goal=Goal("times_less", 5) if counted == "CPU" else None,
            note="" if name in costs else f"{name} is not installed",
        )
        for name in beside
        for counted in MEASURES
    ]


def _inspect(peer: Peer, suite: Path) -> Cost:
    with tempfile.TemporaryDirectory(dir=suite) as logs:
        argv = [str(peer.bin / "inspect"), "eval", "rivers.py", "--model", "mockllm/model"]
        return cost_of([*argv, "--display", "plain", "--log-dir", logs], cwd=suite, expect="1.000")


def _pydantic_evals(peer: Peer, suite: Path) -> Cost:
    expected = f"passed: {_AGENTS_CELLS}"
    return cost_of([peer.python, "rivers_dataset.py"], cwd=suite, expect=expected)


def _assay(suite: Path, cells: int, *more: str) -> Cost:
    argv = [str(OURS / "assay"), "run", "evals", "--trials", str(cells), *more]
    with tempfile.TemporaryDirectory(dir=suite) as home:
        return cost_of(
            argv,
            cwd=suite,
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
