"""A run as one JSON object: the records that the API answers with, each under its own name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TextIO, cast

from assay.reports.cell_records import OpenedCell
from assay.reports.cell_view import change_of
from assay.reports.explain import tidy
from assay.reports.outcome import Cells, stream
from assay.reports.review import Change
from assay.reports.run_view import matrix_of, overview_of, run_row, sums_of, whole_row
from assay.reports.summary import Summary, Tally, verdict
from assay.scoring.json_safe import Json
from assay.scoring.records import as_json
from assay.store.kept_files import RunState
from assay.store.records import CellRecord, RunRecord

if TYPE_CHECKING:
    from assay.reports.grader_cards import Shelf
    from assay.reports.run_records import Breakdown


def cells_json(
    file: TextIO,
    run: RunRecord,
    cells: Cells,
    *,
    state: RunState = "finished",
    fail_under: float | None = None,
    strict: bool = False,
    changes: Sequence[Change] = (),
    shelf: Shelf | None = None,
    opener: Callable[[CellRecord], OpenedCell] | None = None,
    some: bool = False,
    broken_down: Breakdown | None = None,
    bill: Mapping[str, Json] | None = None,
) -> Summary:
    """Write the run as exactly one JSON object and a line feed, ASCII only, cell by cell.

    ``run`` is what ``GET /runs/RUN`` answers, ``cells`` its ``/cells?whole=true``, ``matrix`` its
    ``/matrix`` and ``overview`` its ``/overview``, which is last because it is known last. With an
    opener each cell is ``opened``, too. Of `some` cells, nobody asks what became of the others that
    were planned.
    """
    tally = Tally(run=None if some else run, shelf=shelf)
    verdict(tally.summary(), fail_under=fail_under)
    file.write(f'{{"run": {_dumped(run)},\n"cells": [')
    separator = "\n"
    for cell in stream(cells):
        tally.add(cell)
        row = as_json(whole_row(cell), tidy)
        if opener is not None:
            row = {**cast("dict[str, Json]", row), "opened": as_json(opener(cell), tidy)}
        file.write(separator + json.dumps(row, allow_nan=False))
        separator = ",\n"
    summary = replace(tally.summary(), broken_down=broken_down)
    decided = verdict(summary, fail_under=fail_under, strict=strict)
    parts: dict[str, object] = {
        **({} if bill is None else {"bill": bill}),
        "changes": list(map(change_of, changes)),
        "matrix": matrix_of(summary.groups),
        "overview": overview_of(run_row(run, state, sums_of(summary.totals)), summary, decided),
    }
    written = ",\n".join(f'"{name}": {_dumped(part)}' for name, part in parts.items())
    file.write(f"\n],\n{written}}}\n")
    return summary


def _dumped(value: object) -> str:
    return json.dumps(as_json(value, tidy), allow_nan=False)
