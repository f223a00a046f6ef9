"""``--otel``: what commands share that export spans while they go on."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.eval.span_export import SpanExport
    from assay.store.records import CellColumns, RunRecord
    from assay.store.runs import Store

_MOST = 400


def add_export(parser: ArgumentParser) -> None:
    """Add where spans are sent."""
    parser.add_argument(
        "--otel",
        nargs="?",
        const="",
        metavar="URL",
        help="send each step and grade to a collector of OpenTelemetry as it happens; by default "
        "to OTEL_EXPORTER_OTLP_ENDPOINT, or http://localhost:4318",
    )


@contextmanager
def exporting(given: Namespace) -> Generator[SpanExport | None]:
    """Export until the block ends, if that was asked for, and say what could not be.

    Raises:
        InputError: For an address that is none.
        MissingExtraError: If OpenTelemetry is not installed.
    """
    if given.otel is None:
        yield None
        return
    from assay.eval.span_export import SpanExport

    export = SpanExport(given.otel)
    try:
        with export:
            yield export
    finally:
        if export.dropped:
            from assay.reports.plain import one_line

            print(one_line(f"warning: {export}", _MOST), file=sys.stderr)


def tell_rows(
    export: SpanExport, store: Store, run: RunRecord, graded: Sequence[CellColumns]
) -> None:
    """Export rows that were graded, with what is kept of them."""
    from assay.eval.told import told_cell

    for cell in store.cells_of(run.id, [columns.case_id for columns in graded]).values():
        export.tell(told_cell(cell, store.detail(run.id, cell.key), run.created_at)[0])
