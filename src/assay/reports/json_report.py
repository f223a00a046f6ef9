"""A run as one JSON object: ``{"run": ..., "cells": [...], "summary": ...}``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TextIO

from assay.reports.explain import tidy
from assay.reports.outcome import Cells, outcome, reward_of, stream, trouble
from assay.reports.review import Change
from assay.reports.summary import Summary, Tally, verdict
from assay.scoring.json_safe import Json
from assay.store.records import CellRecord, RunRecord

if TYPE_CHECKING:
    from assay.reports.standing import Shelf


def cells_json(
    file: TextIO,
    run: RunRecord,
    cells: Cells,
    *,
    fail_under: float | None = None,
    strict: bool = False,
    labels: Mapping[str, bool | float] | None = None,
    changes: Sequence[Change] = (),
    shelf: Shelf | None = None,
) -> Summary:
    """Write the run as exactly one JSON object and a line feed, ASCII only, cell by cell.

    The summary comes last, with the verdict in it, because it is known last.
    """
    tally = Tally(run=run, labels=labels, shelf=shelf)
    verdict(tally.summary(), fail_under=fail_under)
    file.write(f'{{"run": {_dumped(_run_dict(run))},\n"cells": [')
    separator = "\n"
    for cell in stream(cells):
        tally.add(cell)
        written = cell_dict(cell)
        if shelf:
            written["calibrations"] = [each.to_dict() for each in shelf.of_cell(cell)]
        file.write(f"{separator}{_dumped(written)}")
        separator = ",\n"
    summary = tally.summary()
    decided = verdict(summary, fail_under=fail_under, strict=strict)
    numbers = summary.to_dict()
    numbers["changes"] = [change.to_dict() for change in changes]
    numbers["verdict"] = {"code": decided.code, "line": decided.line}
    file.write(f'\n],\n"summary": {_dumped(numbers)}}}\n')
    return summary


def cell_dict(cell: CellRecord) -> dict[str, Json]:
    """One cell as plain JSON; a graded cell without a usable reward is written as an error."""
    state = outcome(cell)
    graded = state in ("pass", "fail")
    return {
        "case": cell.case,
        "harness": cell.harness,
        "model": cell.model,
        "trial": cell.trial,
        "status": "graded" if graded else state,
        "reward": reward_of(cell) if graded else None,
        "passed": state == "pass" if graded else None,
        "threshold": cell.threshold,
        "assurance": cell.assurance,
        "min_assurance": cell.min_assurance,
        "not_graded": cell.not_graded[0],
        "skipped_graders": dict(cell.not_graded[1]),
        "min_coverage": cell.min_coverage,
        "flags": list(cell.flags),
        "subscores": [dict(part) for part in cell.subscores],
        "error": trouble(cell) if state == "error" else "",
        "content": cell.content,
        "answer": cell.answer,
        "seconds": cell.seconds,
        "cost_usd": cell.cost_usd,
        "tokens": cell.tokens,
        "digest": cell.digest,
        "file": cell.file,
        "notes": dict(cell.notes),
    }


def _run_dict(run: RunRecord) -> dict[str, Json]:
    return {
        "id": run.id,
        "created_at": run.created_at,
        "label": run.label,
        "config": dict(run.config),
        "digests": dict(run.digests),
        "finished": run.finished,
        "planned": run.planned,
    }


def _dumped(value: Mapping[str, Json]) -> str:
    return json.dumps(tidy(value), allow_nan=False)
