"""A stored cell as it is told to other systems: its trace, and what it was worth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from assay.agents.transcripts.writing import Told, ToldScore
from assay.scoring.json_safe import Json
from assay.store.records import CellRecord
from assay.tasks.rows import Row, read_row
from assay.types.run import Run
from assay.types.trace import AgentStep, Trace


def told_cell(cell: CellRecord, detail: Mapping[str, Json], began: str) -> tuple[Told, Row | None]:
    """What is told of a cell, and the row that it is of, if it is one of a dataset."""
    given = detail.get("row")
    if isinstance(given, dict):
        row = read_row(given)
        return told_row(cell, row, began), row
    return told_run(cell, Run.from_dict(detail), began), None


def told_row(cell: CellRecord, row: Row, began: str) -> Told:
    """What is told of a row: where its work is not known, its answer is all of it."""
    answer = row.submission.answer
    alone = Trace(steps=[AgentStep(step_id=1, content=answer)], content=answer)
    return _told(cell, row.submission.trace or alone, row.submission.question, began)


def told_run(cell: CellRecord, run: Run, began: str) -> Told:
    """What is told of a run."""
    return replace(_told(cell, run.trace, run.prompt_text, began), trace_id=run.trace_id or "")


def name_of(case: str, harness: str, model: str, trial: int) -> str:
    """What a cell is called in its run."""
    parts = (case, harness, model, str(trial) if trial > 1 else "")
    return " ".join(part for part in parts if part)


def _told(cell: CellRecord, trace: Trace, question: str | None, began: str) -> Told:
    return Told(
        id=name_of(cell.case, cell.harness, cell.model, cell.trial),
        run=cell.run_id,
        trace=replace(trace, steps=trace.work),
        prompt=question or "",
        agent=cell.harness,
        model=cell.model,
        reward=cell.reward,
        label=_label(cell.passed, cell.status),
        scores=tuple(_scores(cell)),
        began=began,
    )


def _scores(cell: CellRecord) -> Iterator[ToldScore]:
    for node in cell.subscores:
        told = node if isinstance(node, dict) else {}
        value, reason, status = told.get("value"), told.get("reason"), told.get("status")
        yield ToldScore(
            str(told.get("name") or ""),
            float(value) if isinstance(value, int | float) else None,
            reason if isinstance(reason, str) else "",
            _label(told.get("passed"), str(status or "")),
        )


def _label(passed: Json, status: str) -> str:
    if status in ("error", "skipped"):
        return status
    return "pass" if passed is True else "fail" if passed is False else ""
