"""What people label and graders are calibrated on: rows without any label, named by a digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from assay.errors import InputError, Location
from assay.scoring.json_safe import Json
from assay.tasks.rows import Row, read_row, read_rows
from assay.types.submission import Submission

__all__ = ["LABEL_FIELDS", "Item", "item_of", "read_items"]

LABEL_FIELDS = ("label", "labels")
"""Where labels stand unless another field is named."""

_NO_CONTENT = frozenset({"id", "grade", *LABEL_FIELDS})


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A row as raters and graders see it: whatever people said of it is taken out.

    Attributes:
        id: The row's id, or its line number.
        digest: Of what is seen; rows that differ only in id, labels or grade have the same.
        submission: What is graded; no label is left in its metadata.
        fields: The whole row, labels included.
        file: ``file:line``, for people.
    """

    id: str
    digest: str
    submission: Submission
    fields: Mapping[str, Json]
    file: str = ""


def read_items(file: str, *, label: str = "") -> Iterator[Item]:
    """Read a JSONL dataset; see `assay.tasks.rows.read_row` for what a row has.

    Raises:
        InputError: For a missing file or a malformed row, naming file and line.
    """
    for row in read_rows(file, graders=()):
        yield _item(row, label)


def item_of(fields: Mapping[str, Json], *, label: str = "", number: int = 1) -> Item:
    """The item that one row is, where it comes from no file.

    Raises:
        InputError: For a malformed row.
    """
    return _item(read_row(fields, number), label)


def _item(row: Row, label: str) -> Item:
    hidden = _NO_CONTENT | {label}
    seen = {key: value for key, value in row.fields.items() if key not in hidden}
    nested = seen.get("metadata")
    if isinstance(nested, dict):
        seen["metadata"] = {key: value for key, value in nested.items() if key not in hidden}
    try:
        text = json.dumps(seen, sort_keys=True, separators=(",", ":"))
    except RecursionError as error:
        raise InputError(f"{row.file or 'the row'} is nested too deep") from error
    return Item(
        id=row.id,
        digest=hashlib.sha256(b"assay item 1\0" + text.encode()).hexdigest()[:32],
        # Read again without the labels, so that none is left wherever metadata are copied to.
        submission=read_row(seen, where=Location(file=row.file)).submission,
        fields=row.fields,
        file=row.file,
    )
