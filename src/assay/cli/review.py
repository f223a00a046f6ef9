"""``assay runs review``: people decide about the cells that are held or flagged."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from urllib.parse import quote

from assay.cli.options import (
    RUN,
    add_db,
    explain,
    named_store,
    store_there,
    user_name,
)
from assay.cli.view import add_page, open_page
from assay.errors import InputError, nearest
from assay.reports.cell_view import view_of
from assay.reports.figures import count
from assay.reports.page import page_on
from assay.scoring.records import as_json
from assay.store.database import Database
from assay.store.decisions import (
    Decision,
    Ruling,
    cell_digest,
    decide,
    decision_of,
    needs_decision,
)
from assay.store.records import CellRecord
from assay.store.runs import Store

_MORE = """\
Opens the page on the cells that an audit flagged or held, each with its signs, where they stand,
and its reward. There one lets the reward stand (a held cell gets it) or makes it 0; `--decide` does
so without the page. A decision is appended to the cell's results; its scores stay as they are.

exit status: 0 ended, 2 bad input, 3 the decisions could not be kept, 130 interrupted"""
_EXAMPLES = """\
  assay runs review latest
  assay runs review latest --json
  assay runs review latest --decide 1f2e3d4c=ok --note "ctypes is what the task asks for\""""


def add(parser: ArgumentParser) -> None:
    """Say what ``assay runs review`` takes."""
    explain(parser, _MORE, _EXAMPLES)
    add = parser.add_argument
    add("run", metavar="RUN", help=RUN)
    add(
        "--decide",
        action="append",
        default=[],
        metavar="CELL=ok|zero",
        help="decide without asking; the cell's id, or its case where no other has it",
    )
    add("--note", default="", metavar="TEXT", help="what to write beside the decisions")
    add("--by", default="", metavar="NAME", help="who decides; your user name by default")
    add_page(parser)
    add_db(parser)
    add("--json", action="store_true", help="print the cells with their signs and decisions")


_RULINGS: tuple[Ruling, ...] = ("ok", "zero")


def run(given: Namespace) -> int:
    """Open the page on the cells, or decide about those that the command line names."""
    by = given.by or user_name("reviewer")
    with Database.open(store_there()) as database:
        store = Store(database)
        run = store.run(given.run)
        cells = list(filter(needs_decision, store.cells(run.id)))
        for said in given.decide:
            cell, ruling = _meant(said, cells)
            decide(store, cell, Decision(ruling=ruling, by=by, note=given.note))
        if given.json:
            cells = list(filter(needs_decision, store.cells(run.id)))
            shown = as_json([view_of(run, cell) for cell in cells])
            print(json.dumps({"run": run.id, "cells": shown}))
            return 0
        decided = sum(decision_of(cell) is not None for cell in store.cells(run.id))
    page = page_on(sys.stdout)
    if not cells:
        page.line(f"no cell of run {run.id} is held or flagged")
        return 0
    if not given.decide:
        place = f"/runs/{quote(run.id, safe='')}?flagged=true"
        return open_page(given, store_there(), lambda: place)
    page.line(f"{decided:,} of {count(len(cells), 'held or flagged cell')} decided")
    page.line(
        ("Next  ", "dim"), f"assay report {run.id}{named_store()}", ("  with the decisions", "dim")
    )
    return 0


def _meant(said: str, cells: Sequence[CellRecord]) -> tuple[CellRecord, Ruling]:
    """The cell and the decision that ``CELL=ok`` means."""
    name, _, word = said.rpartition("=")
    rulings: list[Ruling] = [ruling for ruling in _RULINGS if ruling == word]
    if not name or not rulings:
        raise InputError(f"--decide {said!r}: no decision", hint="CELL=ok or CELL=zero")
    found = [cell for cell in cells if name in (cell.case, _id(cell), cell_digest(cell))]
    if len(found) != 1:
        ids = ", ".join(_id(cell) for cell in found[:5])
        names = [name for cell in cells for name in (cell.case, _id(cell))]
        raise InputError(
            f"--decide {said!r}: {'several cells are' if found else 'no held or flagged cell is'} "
            f"called {name!r}",
            hint=f"say which: {ids}" if found else nearest(name, names),
        )
    return found[0], rulings[0]


def _id(cell: CellRecord) -> str:
    return cell_digest(cell)[:8]
