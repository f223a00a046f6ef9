"""What a run recorded, as lines in a format of others: one for each cell."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Literal, TypeAlias

from assay.agents.transcripts.telling import as_otel
from assay.agents.transcripts.writing import Told, as_atif, as_chat
from assay.eval.told import told_cell
from assay.scoring.json_safe import Json
from assay.store.records import CellRecord
from assay.store.runs import Store
from assay.tasks.rows import Row

TraceFormat: TypeAlias = Literal["jsonl", "atif", "chat", "otel"]


def exported_traces(store: Store, run_id: str, form: TraceFormat) -> Iterator[str]:
    """The latest result of each cell of a run, as JSON; `assay grade` reads each of the formats.

    Args:
        store: Where it is kept.
        run_id: Its full id.
        form: ``jsonl`` is rows with assay's own traces, which lose nothing.
    """
    began = store.run(run_id).created_at
    for cell in store.cells(run_id):
        told, row = told_cell(cell, store.detail(run_id, cell.key), began)
        if form == "jsonl":
            yield json.dumps(_row(cell, told, row))
        else:
            yield json.dumps({"atif": as_atif, "chat": as_chat, "otel": as_otel}[form](told))


def _row(cell: CellRecord, told: Told, row: Row | None) -> dict[str, Json]:
    grade: dict[str, Json] = {"status": cell.status, "reward": cell.reward, "passed": cell.passed}
    question = told.prompt if row is None else row.submission.question
    expected = None if row is None else row.submission.expected
    written: dict[str, Json] = {"id": told.id, "answer": told.trace.content}
    written |= {"question": question} if question is not None else {}
    written |= {"expected": expected} if expected is not None else {}
    return {**written, "trace": told.trace.to_dict(), "grade": grade}
