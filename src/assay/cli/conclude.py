"""The end of every command that has results: reports, the verdict, the exit status."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

from assay.cli.options import Outputs
from assay.reports.summary import verdict
from assay.store.database import Store
from assay.store.records import CellRecord

__all__ = ["conclude"]


def conclude(
    store: Store,
    run_id: str,
    outputs: Outputs,
    *,
    labels: Mapping[str, bool | float] | None = None,
    shown: int | None = 5,
) -> int:
    """Write what was asked for and give the exit status of the verdict that was printed.

    Args:
        store: Where the run is.
        run_id: The run.
        outputs: What to write.
        labels: The truth by row id, to measure agreement with.
        shown: Failing cells to open; None for all.
    """
    run = store.run(run_id)

    def cells() -> Iterator[CellRecord]:
        return store.cells(run_id)

    if outputs.junit:
        from assay.reports.junit import write_junit

        write_junit(outputs.junit, run, cells)
    if outputs.html:
        from assay.reports.html import write_html
        from assay.reports.review import review

        limit = None if shown is None else 200
        found = review(run, cells, limit=limit, labels=labels)
        write_html(outputs.html, found, fail_under=outputs.fail_under)
    if outputs.json:
        from assay.reports.json_report import cells_json

        summary = cells_json(sys.stdout, run, cells, fail_under=outputs.fail_under, labels=labels)
        return verdict(summary, fail_under=outputs.fail_under).code
    from rich.console import Console

    from assay.reports.review import review
    from assay.reports.table import render

    limit = None if shown is None else 200
    found = review(run, cells, limit=limit, labels=labels)
    console = Console(highlight=False)
    return render(console, found, fail_under=outputs.fail_under, shown=shown).code
