"""``assay report``, and how every command with results ends: reports, verdict, exit status."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from assay.cli.options import (
    EXITS,
    NOT_GRADED,
    Outputs,
    add_outputs,
    check_targets,
    explain,
    state_home,
)
from assay.errors import InputError
from assay.reports.review import Review, changes_of, review, review_rows
from assay.reports.summary import Summary, summarize, verdict
from assay.store.cards import Cards
from assay.store.database import Database
from assay.store.labels import Decision, Decisions, decided
from assay.store.records import CellRecord, RunRecord
from assay.store.runs import Store

if TYPE_CHECKING:
    from assay.reports.standing import Shelf


def add(parser: ArgumentParser) -> None:
    """Say what ``assay report`` takes."""
    explain(parser, EXITS)
    parser.add_argument(
        "run",
        nargs="?",
        default="latest",
        metavar="RUN",
        help="a run's id, a prefix of it, its label, or latest (the default)",
    )
    parser.add_argument("--all", action="store_true", help="open every failing cell")
    add_outputs(parser)


def conclude(
    store: Store,
    run_id: str,
    outputs: Outputs,
    *,
    shown: int | None = 5,
) -> int:
    """Write what was asked for and give the exit status of the verdict that was printed.

    Returns:
        The verdict's exit status, also where whoever reads the output stopped reading; 3 where a
        report could not be written.
    """
    run = store.run(run_id)

    shelf = _shelf(as_json=outputs.json)
    fail_under, strict = outputs.fail_under, outputs.strict

    def cells() -> Iterator[CellRecord]:
        return decided(store.cells(run_id), _decisions)

    def junit() -> None:
        from assay.reports.junit import write_junit

        write_junit(outputs.junit or "", run, cells)

    def as_json() -> None:
        from assay.reports.json_report import cells_json

        again = changes_of(store, run_id)
        summary = cells_json(
            sys.stdout,
            run,
            cells,
            fail_under=fail_under,
            strict=strict,
            changes=again,
            shelf=shelf,
        )
        summaries.append(summary)

    summaries: list[Summary] = []
    written = [_write(outputs.junit, junit)] if outputs.junit else []
    if not outputs.json or outputs.html:
        limit = None if shown is None else 200
        found = _reviewed(store, run, shelf, limit)
        summaries.append(found.summary)
        if outputs.html:
            written.append(_write(outputs.html, lambda: _html(outputs, found)))
        if not outputs.json:
            written.append(_write(_OUT, lambda: _table(found, outputs, shown)))
    if outputs.json:
        written.append(_write(_OUT, as_json))
    summary = summaries[0] if summaries else summarize(cells, run=run)
    return (
        verdict(summary, fail_under=fail_under, strict=strict).code if all(written) else NOT_GRADED
    )


def _reviewed(
    store: Store,
    run: RunRecord,
    shelf: Shelf | None,
    limit: int | None,
) -> Review:
    """The run as reports show it; of a dataset only the rows that are shown are read one by one."""
    again = changes_of(store, run.id)
    if limit is None or shelf or run.config.get("kind") != "dataset" or _decisions():
        cells = decided(store.cells(run.id), _decisions)
        return review(run, cells, limit=limit, changes=again, shelf=shelf)
    first = partial(store.first_cells, run.id)
    return review_rows(run, store.alike_cells(run.id), first, limit=limit, changes=again)


_OUT = "standard output"


def _decisions() -> Mapping[str, Decision]:
    """What people decided about held and flagged cells."""
    with Database.open(state_home()) as database:
        return Decisions(database).all()


def _shelf(*, as_json: bool) -> Shelf | None:
    """The calibration cards that stand beside scores; JSON has a place for them without any."""
    with Database.open(state_home()) as database:
        cards = Cards(database).newest()
    if not cards and not as_json:
        return None
    from assay.reports import standing

    return standing.Shelf(cards)


def _html(outputs: Outputs, found: Review) -> None:
    from assay.reports.html import write_html

    file = outputs.html or ""
    write_html(file, found, fail_under=outputs.fail_under, strict=outputs.strict)


def _table(found: Review, outputs: Outputs, shown: int | None) -> None:
    from assay.reports.page import page_on
    from assay.reports.table import render

    page = page_on(sys.stdout)
    render(page, found, fail_under=outputs.fail_under, strict=outputs.strict, shown=shown)


def _write(target: str, report: Callable[[], None]) -> bool:
    """Write one report; whether nobody has to be told that it is not there."""
    try:
        report()
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # rich leaves by SystemExit where the reader has gone
        # What is left in the buffer has nowhere to go, and must not fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, InputError) as error:
        print(f"error: cannot write {target}: {error}", file=sys.stderr)
        return False
    return True


def run(given: Namespace) -> int:
    """Report a stored run."""
    outputs = Outputs.of(given)
    check_targets((outputs.junit, outputs.html), inputs=())
    with Store.open(state_home()) as store:
        return conclude(store, store.run(given.run).id, outputs, shown=None if given.all else 5)
