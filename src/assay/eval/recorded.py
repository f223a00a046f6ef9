"""Grade a dataset of recorded answers: every row is a task whose agent replays its answer."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from assay.agents.replay import RecordedAgent
from assay.errors import InputError
from assay.eval.records import graders_digest, record_of, start_run
from assay.eval.rollout import Cell
from assay.eval.runner import run_cells
from assay.eval.sessions import open_session
from assay.graders.apply import require_parts
from assay.graders.spec import GraderSpec
from assay.store.records import CellRecord, RunRecord
from assay.store.runs import Store
from assay.tasks.rows import Row, read_rows
from assay.tasks.task import RunOptions, Session, Task
from assay.types.run import Run

__all__ = ["count_rows", "grade_dataset"]

OnRow = Callable[[Row, CellRecord], None]


def count_rows(file: str, *, label: str | None = None) -> int:
    """Read a dataset through, so that a malformed row is found before anything is graded.

    Raises:
        InputError: Naming file and line; or for a dataset without rows, or without a label.
    """
    rows = labelled = 0
    for row in read_rows(file, graders=(), label=label):
        rows += 1
        labelled += row.label is not None
    if not rows:
        raise InputError(f"{file} has no rows")
    if label is not None and not labelled:
        raise InputError(f"no row of {file} has a label {label!r}")
    return rows


async def grade_dataset(
    file: str,
    graders: Sequence[GraderSpec],
    store: Store,
    *,
    on_row: OnRow,
    label: str | None = None,
    threshold: float = 1.0,
    workers: int = 8,
    planned: int | None = None,
) -> RunRecord:
    """Grade every row of a dataset and store the results as a run.

    Args:
        file: JSONL dataset; see `assay.tasks.rows.read_rows`.
        graders: What every row goes through.
        store: Where the run is kept.
        on_row: Called with each row and its result, as they finish.
        label: Field that people labelled.
        threshold: Reward that a row needs to pass.
        workers: Rows graded at once.
        planned: Rows that there are, where `count_rows` was asked already.

    Raises:
        InputError: For a malformed row, or graders that this version cannot run.
    """
    require_parts(graders, {"answer", "question", "expected", "thread", "metadata"})
    digest = graders_digest(graders)
    run = start_run(
        store,
        config={"kind": "dataset", "file": file, "label": label},
        digests={Path(file).name: _file_digest(file)},
        planned=count_rows(file, label=label) if planned is None else planned,
    )
    rows: dict[int, Row] = {}

    def cells() -> Iterator[Cell]:
        options = RunOptions()
        for number, row in enumerate(read_rows(file, graders=graders, label=label)):
            rows[number] = row
            yield _cell(row, run.id, threshold, options)

    def done(number: int, finished: Run) -> None:
        row = rows.pop(number)
        record = record_of(
            finished, run_id=run.id, case=row.id, threshold=threshold, digest=digest, file=row.file
        )
        store.add_cell(record, {**finished.to_dict(), "row": dict(row.fields)})
        on_row(row, record)

    await run_cells(cells(), done, max_concurrent=workers)
    store.finish_run(run.id)
    return run


def _cell(row: Row, run_id: str, threshold: float, options: RunOptions) -> Cell:
    task = Task(id=row.id, work=row, pass_threshold=threshold)
    session: AbstractAsyncContextManager[Session] = open_session(task)
    return Cell(
        task=task,
        agent=RecordedAgent(answer=row.submission.answer),
        session=session,
        options=options,
        harness="recorded",
        job_id=run_id,
    )


def _file_digest(file: str) -> str:
    with Path(file).open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
