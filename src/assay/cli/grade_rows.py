"""``assay grade``."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import ExitStack, redirect_stdout
from typing import TYPE_CHECKING

from assay.cli.judging import cost_so_far
from assay.cli.options import (
    INTERRUPTED,
    Outputs,
    check_targets,
    file_warnings,
    state_home,
    tell_warnings,
    worker_count,
)
from assay.cli.report import conclude
from assay.errors import InputError
from assay.eval.recorded import count_rows, grade_dataset
from assay.reports.files import replacing
from assay.reports.json_report import cell_dict
from assay.store.records import CellRecord
from assay.store.runs import Store
from assay.tasks.case import load_graders
from assay.tasks.rows import Row

if TYPE_CHECKING:
    from assay.graders.spec import GraderSpec

__all__ = ["grade_rows"]


def grade_rows(
    data: str,
    *,
    graders_file: str,
    label: str | None,
    threshold: float | None,
    out: str | None,
    workers: int | None,
    outputs: Outputs,
) -> int:
    """Grade a dataset.

    Returns:
        The exit status.

    Raises:
        InputError: For a malformed dataset or grader file.
    """
    from rich.console import Console

    from assay.reports.progress import progress

    check_targets((out, outputs.junit, outputs.html), inputs=(data, graders_file))
    graders = _graders(graders_file)
    tell_warnings(graders_file, file_warnings(graders))
    if threshold is None:
        own = graders[0].pass_threshold if len(graders) == 1 else None
        threshold = 1.0 if own is None else own
    planned = count_rows(data, label=label)
    labels: dict[str, bool | float] = {}
    kept = 0
    with Store.open(state_home()) as store, ExitStack() as stack:
        written = stack.enter_context(replacing(out)) if out else None
        stack.enter_context(redirect_stdout(sys.stderr))
        shown = stack.enter_context(
            progress(Console(stderr=True, highlight=False), planned, note=cost_so_far)
        )

        def on_row(row: Row, cell: CellRecord) -> None:
            nonlocal kept
            kept += 1
            if isinstance(row.label, bool | int | float):
                labels[row.id] = row.label if isinstance(row.label, bool) else float(row.label)
            if written is not None:
                graded = {**row.fields, "grade": cell_dict(cell)}
                written.write(json.dumps(graded) + "\n")
            shown.cell(cell)

        try:
            run = asyncio.run(
                grade_dataset(
                    data,
                    graders,
                    store,
                    planned=planned,
                    on_row=on_row,
                    label=label,
                    threshold=threshold,
                    workers=worker_count(workers, graders),
                )
            )
        except KeyboardInterrupt:
            stack.close()
            print(
                f"interrupted: {kept:,} of {planned:,} rows are kept (assay report latest); the "
                "same command starts over, and replies of models that are kept are not paid again",
                file=sys.stderr,
            )
            return INTERRUPTED
        stack.close()
        return conclude(store, run.id, outputs, labels=labels if label is not None else None)


def _graders(file: str) -> tuple[GraderSpec, ...]:
    if file.endswith(".py"):
        raise InputError(
            f"{file} is Python, and --graders takes a YAML file of graders",
            hint=f"a function grades with --function {file}",
        )
    return load_graders(file)
