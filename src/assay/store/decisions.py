"""`Decisions`: what people decided about flagged and held cells; appended beside the scores."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from assay.scoring.json_safe import Json
from assay.scoring.results import assurance_from, reaches
from assay.store.database import Database
from assay.store.records import CellRecord

__all__ = ["HELD", "Decision", "Decisions", "Ruling", "cell_digest", "decided"]

HELD = "held"
"""Where a cell's notes have the reward that is held back."""

Ruling = Literal["ok", "zero"]

_FIELD = "assay review"
_PRECISION = 1e-9
_PROJECT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What somebody decided about a cell.

    Attributes:
        ruling: ``ok``: the cell has the reward that its graders gave; ``zero``: it has 0.
        by: Who decided.
        at: When: ISO 8601, UTC.
        note: What they wrote beside it.
    """

    ruling: Ruling
    by: str
    at: str = ""
    note: str = ""

    def to_dict(self) -> dict[str, Json]:
        """The decision as plain JSON."""
        return {"ruling": self.ruling, "by": self.by, "at": self.at, "note": self.note}


class Decisions:
    """The decisions of a database.

    They are kept as labels: never changed, the newest counts. One is about a result as it was
    seen. Where the cell is graded again, with other signs or another reward, it no longer holds.
    """

    def __init__(self, database: Database) -> None:
        from assay.store.labels import Labels

        self._labels = Labels(database)

    def add(self, cell: CellRecord, decision: Decision) -> None:
        """Append a decision about a cell.

        Raises:
            InputError: For a note or name that is too long or no text.
            StoreError: If the database cannot be written.
        """
        from assay.store.labels import LabelRecord

        row: dict[str, Json] = {
            "run": cell.run_id,
            "cell": list[Json](cell.key),
            "status": cell.status,
            "reward": cell.reward,
            "flags": list[Json](cell.flags),
        }
        record = LabelRecord(
            item=cell_digest(cell),
            field=_FIELD,
            rater=decision.by,
            label=decision.ruling,
            note=decision.note,
            criterion="whether the work earned its reward",
        )
        self._labels.add(_PROJECT, record, row)

    def all(self) -> dict[str, Decision]:
        """The newest decision about every result, by its digest."""
        found: dict[str, Decision] = {}
        for item, said in self._labels.current(_PROJECT, _FIELD).items():
            last = max(said.values(), key=lambda one: one.created_at)
            ruling: Ruling = "ok" if last.label == "ok" else "zero"
            found[item] = Decision(ruling=ruling, by=last.rater, at=last.created_at, note=last.note)
        return found


def decided(
    cells: Iterable[CellRecord], read: Callable[[], Mapping[str, Decision]]
) -> Iterator[CellRecord]:
    """Cells with the decisions beside them, and the rewards that follow."""
    known: Mapping[str, Decision] | None = None
    for cell in cells:
        found = None
        if _is_reviewed(cell):
            known = read() if known is None else known
            found = known.get(cell_digest(cell))
        yield cell if found is None else _decided(cell, found)


def _is_reviewed(cell: CellRecord) -> bool:
    return bool(cell.flags) or HELD in cell.notes


def cell_digest(cell: CellRecord) -> str:
    """What names a result as it was seen: its cell, its reward and its signs."""
    held = cell.notes.get(HELD)
    seen = [cell.run_id, *cell.key, cell.status, cell.reward, list(cell.flags), held]
    return hashlib.sha256(json.dumps(seen).encode()).hexdigest()[:32]


def _decided(cell: CellRecord, decision: Decision) -> CellRecord:
    held = cell.notes.get(HELD)
    kept = held.get("reward") if isinstance(held, dict) else cell.reward
    said = f"{decision.by} decided on {decision.at[:10]}: {decision.ruling}"
    said += f" ({decision.note})" if decision.note else ""
    cell = replace(
        cell,
        notes={**cell.notes, "review": decision.to_dict()},
        content=f"{cell.content}; {said}".lstrip("; "),
    )
    if cell.status == "error" or not isinstance(kept, int | float):
        return cell
    reward = float(kept) if decision.ruling == "ok" else 0.0
    word = held.get("assurance") if isinstance(held, dict) else cell.assurance
    assurance = assurance_from(word)
    passed = reward >= cell.threshold - _PRECISION and reaches(assurance, cell.min_assurance)
    return replace(cell, status="graded", reward=reward, passed=passed, assurance=assurance)
