"""``assay report``, and how every command with results ends: reports, verdict, exit status."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from assay.cli.options import (
    EXITS,
    NOT_GRADED,
    RUN,
    Outputs,
    add_db,
    add_outputs,
    check_targets,
    explain,
    is_parts,
    named_store,
    positive,
    read_or_not,
    store_place,
    store_there,
)
from assay.errors import InputError
from assay.eval.journals import salvage
from assay.reports.breakdown import breakdown_of
from assay.reports.opened import open_cell
from assay.reports.outcome import trouble
from assay.reports.plain import one_line
from assay.reports.review import Review, changes_of, review, review_rows
from assay.reports.summary import Summary, summarize, verdict
from assay.store.cards import Cards
from assay.store.database import Database
from assay.store.kept_files import run_state
from assay.store.records import CellRecord, RunRecord
from assay.store.runs import Store

if TYPE_CHECKING:
    from assay.models.bill import Bill
    from assay.reports.grader_cards import Shelf
    from assay.reports.run_records import Breakdown


def add(parser: ArgumentParser) -> None:
    """Say what ``assay report`` takes."""
    explain(parser, EXITS)
    parser.add_argument(
        "run",
        nargs="?",
        default="latest",
        metavar="RUN",
        help=f"{RUN} (the default); or a directory that `assay grade --out` wrote",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="open every failing cell; with --case every cell; with --json all cells",
    )
    _add_cell(parser.add_argument, "open this case's cells, also those that passed")
    workspace = "lay the workspace of that cell out in this new directory, as a copy"
    parser.add_argument("--workspace", metavar="DIR", help=workspace)
    add_outputs(parser)
    html = "also write a report as one HTML file"
    parser.add_argument("--html", metavar="FILE", help=html)
    add_db(parser)


def _add_cell(option: Callable[..., object], purpose: str) -> None:
    """Add what tells one cell of a run from the others."""
    option("--case", metavar="ID", help=purpose)
    option("--harness", metavar="NAME", help="with a case: only this harness")
    option("--model", metavar="NAME", help="with a case: only this model")
    option("--trial", type=positive, metavar="N", help="with a case: only this trial")


def conclude(
    store: Store,
    run_id: str,
    outputs: Outputs,
    *,
    shown: int | None = 5,
    only: Sequence[CellRecord] = (),
    full: bool = False,
    is_asked_alone: bool = False,
    bill: Bill | None = None,
) -> int:
    """Write what was asked for and give the exit status of the verdict that was printed.

    Args:
        store: Where the run is.
        run_id: The run.
        outputs: What was asked for.
        shown: Failing cells that the terminal opens; None for all.
        only: These cells are all that is reported, and each is opened.
        full: Whether JSON has every cell opened.
        is_asked_alone: Whether nothing but the report was asked for: a field to break it down by
            that no cell has is an error then, and else, after the work, a warning.
        bill: What the run was to cost, where it was done now.

    Returns:
        The verdict's exit status, also where whoever reads the output stopped reading; 3 where a
        report could not be written.
    """
    stored = store.run(run_id)
    # Of some cells, what else was planned is not asked for.
    run = replace(stored, planned=len(only)) if only else stored
    opener = partial(open_cell, store)
    shelf = _shelf(as_json=outputs.json)
    fail_under, strict = outputs.fail_under, outputs.strict
    broken_down = _broken_down(store, stored, outputs.by, is_asked_alone=is_asked_alone)

    def cells() -> Iterator[CellRecord]:
        return iter(only) if only else store.cells(run_id)

    def junit() -> None:
        from assay.reports.junit import write_junit

        write_junit(outputs.junit or "", run, cells, opener=opener)

    def as_json() -> None:
        from assay.reports.cell_view import opened_cell
        from assay.reports.json_report import cells_json

        summary = cells_json(
            sys.stdout,
            stored,
            cells,
            fail_under=fail_under,
            strict=strict,
            changes=[] if only else changes_of(store, run_id),
            shelf=shelf,
            opener=partial(opened_cell, store, run, whole=True) if only or full else None,
            state=run_state(store, stored),
            some=bool(only),
            broken_down=broken_down,
            bill=None if bill is None else bill.to_dict(),
        )
        summaries.append(summary)

    summaries: list[Summary] = []
    written = [_write(outputs.junit, junit)] if outputs.junit else []
    if not outputs.json or outputs.html:
        limit = None if shown is None else 200
        found = review(run, cells, shelf=shelf) if only else _reviewed(store, run, shelf, limit)
        found = replace(_with_labels(found, store), open=opener, where=named_store())
        found = replace(found, summary=replace(found.summary, broken_down=broken_down))
        summaries.append(found.summary)
        if outputs.html:
            written.append(_write(outputs.html, lambda: _html(outputs, found, store)))
        if not outputs.json:
            written.append(_write(_OUT, lambda: _table(found, outputs, shown, opened=bool(only))))
    if outputs.json:
        written.append(_write(_OUT, as_json))
    summary = summaries[0] if summaries else summarize(cells, run=run)
    return (
        verdict(summary, fail_under=fail_under, strict=strict).code if all(written) else NOT_GRADED
    )


def _broken_down(
    store: Store, run: RunRecord, field: str, *, is_asked_alone: bool
) -> Breakdown | None:
    try:
        return breakdown_of(store, run, field) if field else None
    except InputError as error:
        if is_asked_alone:
            raise
        print(f"warning: --by: {error}", file=sys.stderr)
        return None


def _reviewed(
    store: Store,
    run: RunRecord,
    shelf: Shelf | None,
    limit: int | None,
) -> Review:
    """The run as reports show it; of a dataset only the rows that are shown are read one by one."""
    again = changes_of(store, run.id)
    if limit is None or shelf or not run.are_apart:
        return review(run, store.cells(run.id), limit=limit, changes=again, shelf=shelf)
    first = partial(store.first_cells, run.id)
    return review_rows(run, store.alike_cells(run.id), first, limit=limit, changes=again)


_MOST_AGAINST = 20


def _with_labels(found: Review, store: Store) -> Review:
    """With the rows to read, where people and graders differ."""
    agreement = found.summary.agreement or {}
    if not (agreement.get("fp") or agreement.get("fn")):
        return found
    return replace(found, against=tuple(store.against_labels(found.run.id, _MOST_AGAINST)))


_OUT = "standard output"


def _shelf(*, as_json: bool) -> Shelf | None:
    """The calibration cards that stand beside scores; JSON has a place for them without any."""
    with Database.open(store_place()) as database:
        cards = Cards(database).newest()
    if not cards and not as_json:
        return None
    from assay.reports import grader_cards

    return grader_cards.Shelf(cards)


def _html(outputs: Outputs, found: Review, store: Store) -> None:
    from assay.reports.html import write_html

    file = outputs.html or ""
    write_html(file, found, store=store, fail_under=outputs.fail_under, strict=outputs.strict)


def _table(found: Review, outputs: Outputs, shown: int | None, *, opened: bool) -> None:
    from assay.reports.page import page_on
    from assay.reports.table import render, render_opened

    page, write = page_on(sys.stdout), render_opened if opened else render
    write(page, found, fail_under=outputs.fail_under, strict=outputs.strict, shown=shown)


def _write(target: str, report: Callable[[], None]) -> bool:
    """Write one report; whether nobody has to be told that it is not there."""
    try:
        with read_or_not():
            report()
    except (OSError, InputError) as error:
        print(f"error: cannot write {target}: {error}", file=sys.stderr)
        return False
    return True


def run(given: Namespace) -> int:
    """Report a stored run, or some cells of it.

    Raises:
        InputError: For an unknown run or cell.
    """
    outputs = Outputs.of(given)
    check_targets((outputs.junit, outputs.html), inputs=())
    if given.case is None and (given.harness or given.model or given.trial):
        raise InputError("--harness, --model and --trial say which cells of a case", hint="--case")
    if given.workspace is not None:
        if given.case is None:
            raise InputError("--workspace is that of a case's cell", hint="--case ID")
        return _lay_out(given)
    if is_parts(given.run):
        from assay.cli.grade_parts import report_parts

        return report_parts(given, outputs)
    with Store.open(store_there()) as store:
        stored = store.run(given.run)
        if not stored.finished:
            salvage(store, stored.id)
        only = (
            []
            if given.case is None
            else store.cells_of_case(stored.id, given.case, **_agent(given))
        )
        shown = None if given.all else 5
        return conclude(
            store,
            stored.id,
            outputs,
            shown=shown,
            only=only,
            full=given.all,
            is_asked_alone=True,
        )


class _Agent(TypedDict):
    """Which cells of a case are asked for."""

    harness: str | None
    model: str | None
    trial: int | None


def _agent(given: Namespace) -> _Agent:
    return {"harness": given.harness, "model": given.model, "trial": given.trial}


def _lay_out(given: Namespace) -> int:
    """Lay out what an agent left.

    Raises:
        InputError: For an unknown run or cell, several cells, or a directory that is there.
        StoreError: If what was kept is missing or damaged.
    """
    from assay.eval.promote import cell_of
    from assay.eval.workspaces.case_session import Kept, lay_out_kept
    from assay.types.run import Run

    with Store.open(store_there()) as store:
        cell = cell_of(store, store.run(given.run).id, given.case, **_agent(given))
        detail = store.detail(cell.run_id, cell.key)
        kept = None if "row" in detail else Kept.of(Run.from_dict(detail))
        if kept is None or not kept.snapshot:
            raise InputError(
                f"nothing is kept of a workspace of case {given.case!r}",
                hint=trouble(cell) or "rows of a dataset have none",
            )
        target = Path(given.workspace)
        left_out = lay_out_kept(store.home, kept, str(target))
    for one in left_out:
        print(f"note: {one_line(one, 300)}", file=sys.stderr)
    print(target)
    return 0
