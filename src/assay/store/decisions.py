"""Decisions about cells that are held or flagged: results like all others, appended by people.

A decision is about one grading. It repeats that grading's row and detail, with the reward that
follows and the decision among the notes, so that whoever reads the newest results follows it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from assay.errors import ConflictError
from assay.frozen import frozen
from assay.scoring.json_safe import Json
from assay.scoring.results import assurance_from, reaches
from assay.store.checks import valid_text
from assay.store.records import CellKey, CellRecord
from assay.store.runs import Store

HELD = "held"
"""Where a cell's notes have the reward that is held back."""

Ruling = Literal["ok", "zero"]

_REVIEW = "review"
_PRECISION = 1e-9
_MOST_NOTE = 4_096


@frozen(kw_only=True)
class Decision:
    """What somebody decided about a cell.

    Attributes:
        ruling: ``ok``: the cell has the reward that its graders gave; ``zero``: it has 0.
        by: Who decided.
        at: When: ISO 8601, UTC; set when it is stored.
        note: What they wrote beside it.
    """

    ruling: Ruling
    by: str
    at: str = ""
    note: str = ""

    def to_dict(self) -> dict[str, Json]:
        """The decision as plain JSON."""
        return {"ruling": self.ruling, "by": self.by, "at": self.at, "note": self.note}


def needs_decision(cell: CellRecord) -> bool:
    """Whether a cell is one that people decide about."""
    return bool(cell.flags) or HELD in cell.notes


def decision_of(cell: CellRecord) -> Decision | None:
    """The decision that a result follows; None for a grading."""
    said = cell.notes.get(_REVIEW)
    if not isinstance(said, dict):
        return None
    by, at, note = (str(said.get(name, "")) for name in ("by", "at", "note"))
    return Decision(ruling="ok" if said.get("ruling") == "ok" else "zero", by=by, at=at, note=note)


def gradings(store: Store, run_id: str, key: CellKey) -> list[CellRecord]:
    """The results of a cell that graders gave, oldest first."""
    return [one for one in store.history(run_id, key) if decision_of(one) is None]


def decide(store: Store, cell: CellRecord, decision: Decision, *, seen: str = "") -> CellRecord:
    """Append what follows from a decision about a cell, or about what was ``seen`` of it.

    Raises:
        ConflictError: If it was graded again meanwhile, to another reward or with other signs.
        InputError: For a note or name that is too long or no text.
    """
    valid_text(decision.note, "note", most=_MOST_NOTE)
    valid_text(decision.by, "by", most=_MOST_NOTE)
    with store.database.writing():
        graded = gradings(store, cell.run_id, cell.key)[-1]
        if cell_digest(graded) != (seen or cell_digest(cell)):
            why = f"cell {cell.key} was graded again meanwhile"
            raise ConflictError(why, hint="look at it again")
        found = _decided(graded, replace(decision, at=decision.at or store.database.now()))
        store.add_again(found)
    return found


def add_graded(
    store: Store, cell: CellRecord, detail: Mapping[str, Json], snapshot: str = ""
) -> CellRecord:
    """Append a grading; a decision about an earlier one with the same signs and reward holds on."""
    with store.database.writing():
        store.add_cell(cell, detail, snapshot)
        # Asked here, as anybody may decide meanwhile; and of what was decided alone.
        for one in reversed(store.history(cell.run_id, cell.key, noted=_REVIEW)):
            if (decision := decision_of(one)) and cell_digest(one) == cell_digest(cell):
                cell = _decided(cell, decision)
                store.add_again(cell)
                break
    return cell


def cell_digest(cell: CellRecord) -> str:
    """What names a grading as it was seen: its cell, its reward and its signs."""
    said = cell.notes.get(_REVIEW)
    if isinstance(said, dict):
        return str(said.get("grading", ""))
    held = cell.notes.get(HELD)
    seen = [cell.run_id, *cell.key, cell.status, cell.reward, list(cell.flags), held]
    return hashlib.sha256(json.dumps(seen).encode()).hexdigest()[:32]


def _decided(cell: CellRecord, decision: Decision) -> CellRecord:
    held = cell.notes.get(HELD)
    kept = held.get("reward") if isinstance(held, dict) else cell.reward
    said = f"{decision.by} decided on {decision.at[:10]}: {decision.ruling}"
    said += f" ({decision.note})" if decision.note else ""
    review: dict[str, Json] = {**decision.to_dict(), "grading": cell_digest(cell)}
    cell = replace(
        cell, notes={**cell.notes, _REVIEW: review}, content=f"{cell.content}; {said}".lstrip("; ")
    )
    if cell.status == "error" or not isinstance(kept, int | float):
        return cell
    reward = float(kept) if decision.ruling == "ok" else 0.0
    word = held.get("assurance") if isinstance(held, dict) else cell.assurance
    assurance = assurance_from(word)
    assured = reaches(assurance, cell.min_assurance)
    passed = reward >= cell.threshold - _PRECISION and assured and cell.is_covered
    return replace(cell, status="graded", reward=reward, passed=passed, assurance=assurance)
