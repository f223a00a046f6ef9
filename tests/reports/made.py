"""Cells and runs that reports are made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from assay.scoring.results import SubScore
from assay.store.records import CellRecord, RunRecord

__all__ = ["RUN", "cell", "errored", "failing", "hostile_cells", "hostile_run"]

RUN = RunRecord(id="r1", created_at="2026-11-21T09:08:30Z", label="nightly", config={"trials": 2})


def cell(case: str = "sort", **more: Any) -> CellRecord:
    """A cell that passed; or as is said."""
    fields: dict[str, Any] = {
        "harness": "echo",
        "model": "small",
        "status": "graded",
        "reward": 1.0,
        "passed": True,
        **more,
    }
    return CellRecord(run_id="r1", case=case, **fields)


def failing(case: str = "sort", **more: Any) -> CellRecord:
    """A cell that failed, with evidence."""
    node = SubScore(
        "tests",
        0.25,
        metadata={"exit_code": 1, "stdout": "3 failed", "_parameters": {"cmd": "pytest"}},
        children=[SubScore("test_a", 0.0, reason="assert 1 == 2"), SubScore("test_b", 1.0)],
    )
    return cell(case, **{"reward": 0.25, "passed": False, "subscores": (node.to_dict(),), **more})


def errored(case: str = "e", **more: Any) -> CellRecord:
    """A cell that could not be graded."""
    return cell(case, **{"status": "error", "reward": None, "error": "judge: 503", **more})


def hostile_run(text: str) -> RunRecord:
    """A run with a text wherever somebody can write one."""
    return RunRecord(
        id=text, created_at=text, label=text, planned=99, config={text: text}, digests={text: "x"}
    )


def hostile_cells(text: str) -> Iterator[CellRecord]:
    """Two cells of each outcome with a text wherever an agent, a model or an author writes one."""
    node = SubScore(text, 0.0, metadata={"stdout": text, text: [text]}, reason=text, flags=(text,))
    for state in ("graded", "error", "skipped"):
        for trial in (1, 2):
            yield CellRecord(
                run_id="r",
                case=text + state,
                harness=text,
                model=text,
                trial=trial,
                status=state,
                reward=0.0 if state == "graded" else None,
                passed=False if state == "graded" else None,
                error=text,
                flags=(text,),
                subscores=(node.to_dict(),),
                content=text,
                answer=text,
                file=text,
                digest=text + str(trial),
            )
