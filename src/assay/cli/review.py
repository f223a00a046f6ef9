"""``assay review``: people decide about the cells that are held or flagged, one at a time."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from rich.console import Console

from assay.cli.label import Keys, opened_keys
from assay.cli.options import RUN, explain, store_there, user_name
from assay.errors import InputError, nearest
from assay.reports.figures import count, score
from assay.reports.page import Page
from assay.reports.plain import one_line
from assay.scoring.json_safe import Json
from assay.store.database import Database
from assay.store.decisions import (
    HELD,
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
Each cell is shown with its signs, where they stand, and its reward. o lets the reward stand (a
held cell gets it), z makes it 0, s leaves the cell for later, w writes a note, q ends. A decision
is appended to the cell's results; its scores stay as they are. The same command goes on where it
stopped. Without a terminal, lines of standard input are the keys.

exit status: 0 ended, 2 bad input, 3 the decisions could not be kept, 130 interrupted"""
_EXAMPLES = """\
  assay review latest
  assay review latest --json
  assay review latest --decide 1f2e3d4c=ok --note "ctypes is what the task asks for\""""


def add(parser: ArgumentParser) -> None:
    """Say what ``assay review`` takes."""
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
    add("--again", action="store_true", help="also show what was decided before")
    add("--json", action="store_true", help="print the cells with their signs and decisions")


_RULINGS: Mapping[str, Ruling] = {"o": "ok", "z": "zero"}
_KEYS = "[o] ok  [z] zero  [s] skip  [w] note  [q] quit"
_MOST_SIGNS = 20


def run(given: Namespace) -> int:
    """Decide about cells: by keys, or by what the command line says."""
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
            print(json.dumps({"run": run.id, "cells": list(map(_shown, cells))}))
            return 0
        page = Page(Console(highlight=False))
        todo = [one for one in cells if given.again or decision_of(one) is None]
        if not given.decide:
            with opened_keys(tuple(_RULINGS.values())) as keys:
                _Work(page, store, by, given.note, len(todo)).go(todo, keys)
        decided = sum(decision_of(cell) is not None for cell in store.cells(run.id))
        said = f"{decided:,} of {count(len(cells), 'held or flagged cell')} decided"
        page.line(said if cells else f"no cell of run {run.id} is held or flagged")
        if decided:
            page.line(("Next  ", "dim"), f"assay report {run.id}", ("  with the decisions", "dim"))
    return 0


def _meant(said: str, cells: Sequence[CellRecord]) -> tuple[CellRecord, Ruling]:
    """The cell and the decision that ``CELL=ok`` means."""
    name, _, word = said.rpartition("=")
    rulings: list[Ruling] = [ruling for ruling in _RULINGS.values() if ruling == word]
    if not name or not rulings:
        raise InputError(f"--decide {said!r}: no decision", hint="CELL=ok or CELL=zero")
    found = [cell for cell in cells if name in (cell.case, _id(cell))]
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


def _shown(cell: CellRecord) -> dict[str, Json]:
    held, decision = cell.notes.get(HELD), decision_of(cell)
    return {
        "id": _id(cell),
        "case": cell.case,
        "harness": cell.harness,
        "model": cell.model,
        "trial": cell.trial,
        "status": cell.status,
        "reward": cell.reward,
        "held": held.get("reward") if isinstance(held, dict) else None,
        "flags": list(cell.flags),
        "signs": [dict(sign) for sign in _signs(cell.subscores)],
        "decision": None if decision is None else decision.to_dict(),
    }


def _signs(nodes: Sequence[Mapping[str, Json]]) -> Iterator[Mapping[str, Json]]:
    """What audits found, anywhere in a score tree."""
    for node in nodes:
        metadata, children = node.get("metadata"), node.get("children")
        listed = metadata.get("signs") if isinstance(metadata, dict) else None
        yield from (
            one for one in (listed if isinstance(listed, list) else []) if isinstance(one, dict)
        )
        yield from _signs(
            [one for one in children if isinstance(one, dict)] if isinstance(children, list) else []
        )


@dataclass(slots=True)
class _Work:
    """One reviewer at work."""

    page: Page
    store: Store
    by: str
    note: str
    total: int
    done: int = field(default=0)

    def go(self, todo: Sequence[CellRecord], keys: Keys) -> None:
        """Show cells until the reviewer quits, or nothing is left."""
        for cell in todo:
            keys.forget()
            self._show(cell)
            if not self._ask(cell, keys):
                return

    def _ask(self, cell: CellRecord, keys: Keys) -> bool:
        """Wait for a decision; whether the reviewer goes on."""
        note = self.note
        while True:
            key, written = keys.next()
            if key in _RULINGS:
                ruling = _RULINGS[key]
                decide(self.store, cell, Decision(ruling=ruling, by=self.by, note=written or note))
                self.done += 1
                self.page.line((f"→ {ruling}", "bold"))
                return True
            if key in ("s", "q"):
                return key == "s"
            if key == "w":
                note = written or keys.note(lambda: self.page.line(("a line for the note:", "dim")))
                self.page.line(("noted; now a decision", "dim"))
            elif key.strip():
                self.page.line((f"{key!r:.20} is not one of the keys", "yellow"))

    def _show(self, cell: CellRecord) -> None:
        page, held = self.page, cell.notes.get(HELD)
        agent = " · ".join(one_line(name, 40) for name in (cell.harness, cell.model) if name)
        page.blank()
        page.line(
            (one_line(cell.case, 60), "bold"),
            (
                f"  {agent} · trial {cell.trial}  {_id(cell)}  {self.done + 1} of {self.total}",
                "dim",
            ),
        )
        kept = held.get("reward") if isinstance(held, dict) else cell.reward
        reward = score(float(kept)) if isinstance(kept, int | float) else "none"
        page.line(f"{'held' if held else cell.status}, reward {reward}", indent=2)
        signs = list(_signs(cell.subscores))
        for sign in signs[:_MOST_SIGNS]:
            place = f"{sign.get('file') or 'trace'}:{sign.get('line')}"
            said = f"{sign.get('sign')}: {sign.get('what')}: {sign.get('why')}"
            page.line(
                (one_line(place, 100), "yellow"), f"  {one_line(said, 200)}", indent=2, hanging=2
            )
            if code := sign.get("code"):
                page.quote([one_line(cast("str", code), 160)], indent=4)
        other = [flag for flag in cell.flags if not (signs and flag.startswith("audit: "))]
        for flag in other[:_MOST_SIGNS]:
            page.line((f"flagged: {one_line(flag, 200)}", "yellow"), indent=2, hanging=2)
        page.line((_KEYS, "cyan"))
