"""`Labels`: what people say of answers; appended, and the last word of each rater counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from assay.errors import InputError
from assay.frozen import frozen
from assay.scoring.json_safe import Json
from assay.store.checks import json_text, plain, read_json, valid_text
from assay.store.database import Database, Record, size_of
from assay.store.pages import PAGE_BYTES, Page, Stretch, part_of
from assay.store.projects import Projects
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
        return list(self._with_rows(project, self.current(project, field).items()))

    def page(
        self, project: str, labelled: Mapping[str, Mapping[str, LabelRecord]], wanted: Stretch
    ) -> Page[LabelledItem]:
        """Some of the labels that were read, with the rows of their items."""

        def read(some: Sequence[tuple[str, Mapping[str, LabelRecord]]]) -> list[LabelledItem]:
            return list(self._with_rows(project, some, PAGE_BYTES))

        return part_of(list(labelled.items()), wanted, read)

    def _with_rows(
        self,
        project: str,
        labelled: Iterable[tuple[str, Mapping[str, LabelRecord]]],
        most_bytes: int | None = None,
    ) -> Iterator[LabelledItem]:
        for digest, labels in labelled:
            data: str = self._database.value(
                "SELECT data FROM label_item WHERE project = ? AND digest = ?", project, digest
            )
            yield LabelledItem(digest, read_json(data), labels)
            if most_bytes is not None and (most_bytes := most_bytes - size_of((data,))) <= 0:
                return

    def counts(self, project: str) -> list[LabelCount]:
        """The labels that count, counted by field, rater and label; decisions are none."""
        Projects(self._database).get(project)
        rows = self._database.rows(
            "SELECT l.field, l.rater, l.label, count(*), max(l.created_at) FROM label l JOIN "
            "(SELECT max(seq) AS seq FROM label WHERE project = ? GROUP BY field, item, rater) n "
            "ON n.seq = l.seq WHERE l.label <> '' "
            "GROUP BY l.field, l.rater, l.label ORDER BY l.field, l.rater, l.label",
            project,
        )
        return [
            LabelCount(field=field, rater=rater, label=label, items=items, last_at=last)
            for field, rater, label, items, last in rows
        ]


def _named(text: str, field: str, *, most: int) -> str:
    if not text.strip():
        raise InputError(f"a label's {field!r} must not be empty")
    return valid_text(text, field, most=most)
