"""Runs put straight into a store: quick, and with every way in which a cell can end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from assay.scoring.json_safe import Json
from assay.store.records import UNCLAMPED, CellRecord, Packer, RunRecord, cell_row
from assay.store.runs import Store
from assay.types.run import Run
from assay.types.trace import AgentStep, ToolCall, ToolResult, ToolStep, Trace, Usage

__all__ = ["HOSTILE", "add_long_run", "add_run", "big_run", "mixed_run"]

HOSTILE = '<img src=x onerror="document.title=1">'
"""Stands wherever an agent, a model or an author can write something."""

_AGENTS = (("claude-code", "claude-sonnet-5"), ("codex", "gpt-6-mini"))


def add_run(
    home: Path,
    run: RunRecord,
    cells: Iterable[CellRecord],
    detail: Callable[[CellRecord], dict[str, Json]] = lambda _: {},
) -> None:
    """Store a run with the narrow rows of its cells, and their details."""
    with Store.open(str(home / ".assay")) as store:
        store.create_run(run)
        pack = Packer().pack
        rows = [(cell_row(cell), "", pack(detail(cell), "a cell")) for cell in cells]
        store.add_rows(run.id, rows)


def mixed_run(run_id: str = "20261121-090830-ab12") -> tuple[RunRecord, list[CellRecord]]:
    """Eight cases by two agents, three trials each."""
    names = ("refund-fee", "repair-parser", "summarise-invoice", "sort-stable", "plan-route",
             "sql-window", "unicode-names", HOSTILE)  # fmt: skip
    cells: list[CellRecord] = []
    for place, name in enumerate(names):
        for agent, (harness, model) in enumerate(_AGENTS):
            for trial in (1, 2, 3):
                number = place * 6 + agent * 3 + trial
                cells.append(_cell(run_id, name, harness, model, trial, number))
    config: dict[str, Json] = {
        "kind": "matrix",
        "request": {"paths": ["evals"], "harnesses": ["claude-code", "codex"], "trials": 3,
                    "label": HOSTILE},
    }  # fmt: skip
    run = RunRecord(
        id=run_id,
        created_at="2026-11-21T09:08:30+00:00",
        label="nightly",
        config=config,
        finished=True,
        planned=len(cells),
        assay="0.9.0",
    )
    return run, cells


def _cell(run_id: str, case: str, harness: str, model: str, trial: int, number: int) -> CellRecord:
    base = CellRecord(
        run_id=run_id,
        case=case,
        harness=harness,
        model=model,
        trial=trial,
        status="skipped",
        content="the harness has no browser",
    )
    if number % 13 == 0:
        return base
    ran = replace(
        base,
        seconds=11.0 + number * 1.7,
        cost_usd=None if harness == "codex" else 0.0132 * (1 + number % 5),
        tokens=5_000 + 431 * number,
    )
    if number % 11 == 0:
        said = f"TimeoutError in json_match after {number} s: {HOSTILE}"
        return replace(ran, status="error", error=said, content="")
    reward = (1.0, 0.25, 1.0, 0.6, 1.0)[number % 5]
    return replace(
        ran,
        status="graded",
        reward=reward,
        passed=reward >= 1.0,
        notes={UNCLAMPED: 1.4} if number == 10 else {},
        flags=("edited the hidden tests: tests/test_parser.py", HOSTILE) if number == 9 else (),
        assurance="separate",
        content=f"tests {reward:.2f}",
    )


def big_run(
    cells: int = 10_000, run_id: str = "20261120-020000-b1b1"
) -> tuple[RunRecord, list[CellRecord]]:
    """Many cells: a thousand cases, two agents, five trials."""
    made: list[CellRecord] = []
    for number in range(cells):
        harness, model = _AGENTS[number % 2]
        is_error, passed = number % 97 == 5, number % 3 != 0
        made.append(
            CellRecord(
                run_id=run_id,
                case=f"case-{number // 10:04}",
                harness=harness,
                model=model,
                trial=1 + number % 10 // 2,
                status="error" if is_error else "graded",
                reward=None if is_error else float(passed),
                passed=None if is_error else passed,
                error=f"the sandbox ended after {number} ms" if is_error else "",
                seconds=1.0 + number % 40,
                cost_usd=0.001 * (number % 7),
                tokens=100 + number,
                content="" if is_error else "2 of 3 tests",
            )
        )
    run = RunRecord(
        id=run_id,
        created_at="2026-11-20T02:00:00+00:00",
        label="big",
        config={"kind": "matrix", "request": {"paths": ["evals/large"]}},
        finished=True,
        planned=cells,
        assay="0.9.0",
    )
    return run, made


def add_long_run(home: Path, calls: int = 2_500) -> None:
    """Store a run of one cell, in which an agent called a tool so many times: `long`."""
    trace = Trace()
    for number in range(calls):
        call = ToolCall(name="bash", arguments={"command": f"ls {number}"}, id=str(number))
        error = number == 1_501
        usage = Usage(prompt_tokens=100, completion_tokens=number % 50, cost_usd=0.001)
        trace.record(AgentStep(tool_calls=(call,), usage=usage, reasoning=f"thought {number}"))
        if number % 2:
            result = ToolResult(content="\n".join(f"line {n}" for n in range(30)), is_error=error)
            trace.record(ToolStep(call=call, result=result))
        else:
            trace.record(ToolStep(call=call))
    trace.content = "x" * 1_000_000
    trace.record(AgentStep(content=trace.content, done=True))
    told: dict[str, Json] = {"values": "31 of 34 tests", "undecided": ["test_c: result == 4"]}
    node: dict[str, Json] = {"name": "n", "value": 0.5, "metadata": told, "flags": ["odd"]}
    begun = "2026-11-20T00:00:00+00:00"
    cell = CellRecord(
        run_id="long", case="c", status="graded", reward=0.5, passed=False, subscores=(node,)
    )
    with Store.open(str(home / ".assay")) as store:
        store.create_run(RunRecord(id="long", created_at=begun, planned=1, finished=True))
        store.add_cell(cell, Run(prompt="Do.", trace=trace).to_dict())
