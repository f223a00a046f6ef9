"""`Labels`: what people say of answers; appended, and the last word of each rater counts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Literal, cast

from assay.errors import InputError
from assay.frozen import frozen
from assay.scoring.json_safe import Json
from assay.scoring.results import assurance_from, reaches
from assay.store.checks import json_text, plain, read_json, valid_text
from assay.store.database import Database, Record
from assay.store.records import CellKey, CellRecord
from assay.store.table import Table

_MAX_ROW_BYTES = 4 << 20
_MAX_NOTE = 4_096


@frozen(kw_only=True)
class LabelRecord(Record):
    """What one rater said of one item.

    Attributes:
        item: Digest of the item.
        field: What the label is about, such as ``correct``.
        rater: Who said it.
        label: The label, such as ``PASS``; empty where it was taken back.
        note: What the rater wrote beside it.
        criterion: What the rater was asked.
        created_at: ISO 8601, UTC; set by the store.
    """

    item: str
    field: str
    rater: str
    label: str
    note: str = ""
    criterion: str = ""
    created_at: str = ""


@frozen
class LabelledItem:
    """An item with the labels that count.

    Attributes:
        digest: Digest of the item.
        row: The row that was labelled.
        labels: Rater to label, in the order in which raters first labelled it.
    """

    digest: str
    row: Mapping[str, Json]
    labels: Mapping[str, LabelRecord]


@frozen(kw_only=True)
class LabelCount(Record):
    """How often one rater gave one label of a field.

    Attributes:
        field: What the labels are about.
        rater: Who gave them.
        label: The label.
        items: To how many items.
        last_at: When the newest was given.
    """

    field: str
    rater: str
    label: str
    items: int
    last_at: str


class Labels:
    """The labels of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._table = Table(database, "label", LabelRecord)

    def add(self, project: str, record: LabelRecord, row: Mapping[str, Json]) -> LabelRecord:
        """Append a label; an empty one takes back what the rater said.

        Returns:
            The label as it is stored.

        Raises:
            InputError: For a text that is empty or too long, or a row of more than 4 MiB.
        """
        from assay.store.projects import Projects

        values = {
            "field": _named(record.field, "field", most=200),
            "item": _named(record.item, "item", most=200),
            "rater": _named(record.rater, "rater", most=200),
            "label": valid_text(record.label, "label", most=200),
            "note": valid_text(record.note, "note", most=_MAX_NOTE),
            "criterion": valid_text(record.criterion, "criterion", most=_MAX_NOTE),
        }
        data = json_text(row, "the row", most=_MAX_ROW_BYTES)
        with self._database.writing():
            Projects(self._database).get(project)
            now = self._database.now()
            self._database.change(
                "INSERT INTO label_item (project, digest, data, created_at) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (project, digest) DO NOTHING",
                *(project, values["item"], data, now),
            )
            self._table.insert({**values, "project": project, "created_at": now})
        return replace(record, created_at=now)

    def current(
        self, project: str, field: str, *, rater: str | None = None
    ) -> dict[str, dict[str, LabelRecord]]:
        """The labels that count: item to rater to label, in the order they were first given."""
        from assay.store.projects import Projects

        Projects(self._database).get(project)
        found: dict[str, dict[str, LabelRecord]] = {}
        for record in self._table.select({"project": project, "field": field}, order="seq"):
            if rater is None or record.rater == plain(rater):
                found.setdefault(record.item, {})[record.rater] = record
        counted = {
            item: {name: record for name, record in said.items() if record.label}
            for item, said in found.items()
        }
        return {item: said for item, said in counted.items() if said}

    def items(self, project: str, field: str) -> list[LabelledItem]:
        """The items that have a label, with their rows."""
        return self.with_rows(project, self.current(project, field))

    def with_rows(
        self, project: str, labelled: Mapping[str, Mapping[str, LabelRecord]]
    ) -> list[LabelledItem]:
        """Labels that were read, with the rows of their items."""
        found: list[LabelledItem] = []
        for digest, labels in labelled.items():
            data = self._database.value(
                "SELECT data FROM label_item WHERE project = ? AND digest = ?", project, digest
            )
            found.append(LabelledItem(digest, read_json(data), labels))
        return found

    def counts(self, project: str) -> list[LabelCount]:
        """The labels that count, counted by field, rater and label; decisions are none."""
        from assay.store.projects import Projects

        Projects(self._database).get(project)
        rows = self._database.rows(
            "SELECT l.field, l.rater, l.label, count(*), max(l.created_at) FROM label l JOIN "
            "(SELECT max(seq) AS seq FROM label WHERE project = ? GROUP BY field, item, rater) n "
            "ON n.seq = l.seq WHERE l.label <> '' AND l.field <> ? "
            "GROUP BY l.field, l.rater, l.label ORDER BY l.field, l.rater, l.label",
            *(project, REVIEW),
        )
        return [
            LabelCount(field=field, rater=rater, label=label, items=items, last_at=last)
            for field, rater, label, items, last in rows
        ]


def _named(text: str, field: str, *, most: int) -> str:
    if not text.strip():
        raise InputError(f"a label's {field!r} must not be empty")
    return valid_text(text, field, most=most)


HELD = "held"
"""Where a cell's notes have the reward that is held back."""

Ruling = Literal["ok", "zero"]

REVIEW = "assay review"
"""The field under which decisions are kept."""

_PRECISION = 1e-9
_PROJECT = "default"


@frozen(kw_only=True)
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
        self._database = database
        self._labels = Labels(database)

    def add(self, cell: CellRecord, decision: Decision) -> None:
        """Append a decision about a cell.

        Raises:
            InputError: For a note or name that is too long or no text.
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
            field=REVIEW,
            rater=decision.by,
            label=decision.ruling,
            note=decision.note,
            criterion="whether the work earned its reward",
        )
        self._labels.add(_PROJECT, record, row)

    def all(self) -> dict[str, Decision]:
        """The newest decision about every result, by its digest."""
        found: dict[str, Decision] = {}
        for item, said in self._labels.current(_PROJECT, REVIEW).items():
            last = max(said.values(), key=lambda one: one.created_at)
            ruling: Ruling = "ok" if last.label == "ok" else "zero"
            found[item] = Decision(ruling=ruling, by=last.rater, at=last.created_at, note=last.note)
        return found

    def cells_of(self, runs: Iterable[str]) -> dict[str, list[CellKey]]:
        """The cells of some runs that somebody decided about, also where that no longer holds."""
        rows = self._database.rows(
            "SELECT data FROM label_item WHERE project = ? AND digest IN "
            "(SELECT item FROM label WHERE project = ? AND field = ?)",
            *(_PROJECT, _PROJECT, REVIEW),
        )
        found: dict[str, dict[CellKey, None]] = {run: {} for run in runs}
        for (data,) in rows:
            row = read_json(data)
            run, key = row.get("run"), row.get("cell")
            if isinstance(run, str) and run in found and isinstance(key, list):
                found[run][cast("CellKey", tuple(key))] = None
        return {run: list(keys) for run, keys in found.items()}


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
    assured = reaches(assurance, cell.min_assurance)
    passed = reward >= cell.threshold - _PRECISION and assured and cell.is_covered
    return replace(cell, status="graded", reward=reward, passed=passed, assurance=assurance)
