"""`Labels`: what people say of answers; appended, and the last word of each rater counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from assay.errors import InputError
from assay.scoring.json_safe import Json
from assay.store.checks import json_text, read_json, valid_text
from assay.store.database import Database
from assay.store.engine import Row
from assay.store.rows import plain

__all__ = ["LabelRecord", "LabelledItem", "Labels"]

_MAX_ROW_BYTES = 4 << 20
_MAX_NOTE = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRecord:
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


@dataclass(frozen=True, slots=True)
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


class Labels:
    """The labels of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, project: str, record: LabelRecord, row: Mapping[str, Json]) -> None:
        """Append a label; an empty one takes back what the rater said.

        Raises:
            InputError: For a text that is empty or too long, or a row of more than 4 MiB.
            NotFoundError: For an unknown project.
            StoreError: If the database cannot be written.
        """
        from assay.store.projects import Projects

        values = [
            _named(record.field, "field", most=200),
            _named(record.item, "item", most=200),
            _named(record.rater, "rater", most=200),
            valid_text(record.label, "label", most=200),
            valid_text(record.note, "note", most=_MAX_NOTE),
            valid_text(record.criterion, "criterion", most=_MAX_NOTE),
        ]
        data = json_text(row, "the row", most=_MAX_ROW_BYTES)
        with self._database.writing():
            Projects(self._database).get(project)
            now = self._database.now()
            self._database.change(
                "INSERT INTO label_item (project, digest, data, created_at) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (project, digest) DO NOTHING",
                *(project, values[1], data, now),
            )
            self._database.insert(
                "INSERT INTO label (project, field, item, rater, label, note, criterion, "
                "created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                *(project, *values, now),
            )

    def current(
        self, project: str, field: str, *, rater: str | None = None
    ) -> dict[str, dict[str, LabelRecord]]:
        """The labels that count: item to rater to label, in the order they were first given.

        Raises:
            NotFoundError: For an unknown project.
            StoreError: If the database cannot be read.
        """
        from assay.store.projects import Projects

        Projects(self._database).get(project)
        rows = self._database.rows(
            "SELECT item, field, rater, label, note, criterion, created_at FROM label "
            "WHERE project = ? AND field = ? ORDER BY seq",
            *(project, plain(field)),
        )
        found: dict[str, dict[str, LabelRecord]] = {}
        for row in rows:
            record = _read(row)
            if rater is None or record.rater == plain(rater):
                found.setdefault(record.item, {})[record.rater] = record
        counted = {
            item: {name: record for name, record in said.items() if record.label}
            for item, said in found.items()
        }
        return {item: said for item, said in counted.items() if said}

    def items(self, project: str, field: str) -> list[LabelledItem]:
        """The items that have a label, with their rows.

        Raises:
            NotFoundError: For an unknown project.
            StoreError: If the database cannot be read.
        """
        labelled = self.current(project, field)
        found: list[LabelledItem] = []
        for digest, labels in labelled.items():
            ((data,),) = self._database.rows(
                "SELECT data FROM label_item WHERE project = ? AND digest = ?", project, digest
            )
            found.append(LabelledItem(digest, read_json(cast("str", data)), labels))
        return found


def _named(text: str, field: str, *, most: int) -> str:
    if not text.strip():
        raise InputError(f"a label's {field!r} must not be empty")
    return valid_text(text, field, most=most)


def _read(row: Row) -> LabelRecord:
    item, field, rater, label, note, criterion, created_at = cast("tuple[str, ...]", row)
    return LabelRecord(
        item=item,
        field=field,
        rater=rater,
        label=label,
        note=note,
        criterion=criterion,
        created_at=created_at,
    )
