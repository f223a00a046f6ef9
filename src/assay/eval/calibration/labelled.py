"""What people label and graders are calibrated on: items, and what people said of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from assay.errors import InputError, Location
from assay.eval.calibration.scale import Label, Scale, raters_of, scale_of, written_by
from assay.graders.digest import framed
from assay.scoring.json_safe import Json
from assay.tasks.row_files import AS_IT_IS, RowReading
from assay.tasks.rows import LABEL_FIELDS, Row, read_row, read_rows
from assay.types.submission import Submission

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


def read_items(file: str, *, label: str = "", reading: RowReading = AS_IT_IS) -> Iterator[Item]:
    """Read a dataset; see `assay.tasks.rows.read_row` for what a row has.

    Raises:
        InputError: For a missing file or a malformed row, naming file and line.
    """
    names = (label,) if label else LABEL_FIELDS
    reading = replace(reading, labels=(*reading.labels, *names))
    for row in read_rows(file, reading=reading):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationItem:
    """One item and its labels.

    Attributes:
        item: The item.
        labels: Rater to label; who said nothing, or NA, is left out.
        truth: What the raters say together, in [0, 1]; None where they are split.
        cluster: What it shares with items that are not independent of it.
    """

    item: Item
    labels: Mapping[str, Label]
    truth: float | None
    cluster: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledSet:
    """A dataset with labels.

    Attributes:
        items: The items that somebody labelled.
        scale: What labels can be.
        name: The file, or where else they are from.
        field: The field they stand in; empty for ``labels`` or ``label``.
        cluster: The field that says which items are not independent, or empty.
        unlabelled: How many items have no label, or NA alone.
        rows: All rows that were read.
        malformed: Rows that could not be read and were left out.
    """

    items: tuple[CalibrationItem, ...]
    scale: Scale
    name: str
    field: str = ""
    cluster: str = ""
    unlabelled: int = 0
    rows: int = 0
    malformed: int = 0

    @property
    def digest(self) -> str:
        """Of the items and of everything said of them, in whatever order; 32 hex digits."""
        parts = sorted(
            framed(
                one.item.digest.encode(),
                *(
                    f"{who}={said!r}".encode("utf-8", "replace")
                    for who, said in sorted(one.labels.items())
                ),
            )
            for one in self.items
        )
        return hashlib.sha256(b"assay labels 1\0" + framed(*parts)).hexdigest()[:32]

    @property
    def raters(self) -> int:
        """How many people labelled."""
        return len({rater for one in self.items for rater in one.labels})

    @property
    def split(self) -> int:
        """Items on which as many said yes as said no."""
        return sum(one.truth is None for one in self.items)


def read_labelled(
    file: str,
    *,
    label: str = "",
    cluster: str = "",
    levels: Sequence[str] = (),
    reading: RowReading = AS_IT_IS,
) -> LabelledSet:
    """Read a dataset with labels.

    Args:
        file: Rows as `assay.tasks.rows.read_row` takes them, each with a label: true or false,
            PASS or FAIL, MET or UNMET, a number, or a level; a list or a mapping of them where
            several people labelled.
        label: The field of the labels, in the row or its metadata; ``labels`` or ``label`` where
            not given.
        cluster: Field that says which rows are not independent, such as a question's id.
        levels: All levels, lowest first, where labels are levels.
        reading: How they are read.

    Raises:
        InputError: For a malformed row or label, naming file and line; for no labels; for rows
            that are the same but for their labels.
    """
    items = read_items(file, label=label, reading=reading)
    read = [(item, _said(item, label)) for item in items]
    name = reading.name or file
    if not read:
        raise InputError(f"{name} has no rows")
    if all(said is None for _, said in read):
        sought = repr(label) if label else " or ".join(map(repr, reversed(LABEL_FIELDS)))
        there = ", ".join(map(repr, list(read[0][0].fields)[:8]))
        raise InputError(
            f"no row of {name} has a label in {sought}; the first has {there}",
            hint="--label FIELD names another field",
        )
    return labelled_set(read, name=name, label=label, cluster=cluster, levels=levels)


def labelled_set(
    read: Iterable[tuple[Item, Json]],
    *,
    name: str,
    label: str = "",
    cluster: str = "",
    levels: Sequence[str] = (),
) -> LabelledSet:
    """Put items and what was said of them on one scale; see `read_labelled`.

    Raises:
        InputError: As `read_labelled`.
    """
    found: list[tuple[Item, dict[str, Label]]] = []
    bare = 0
    every: list[tuple[Label, str]] = []
    written: list[Json] = []
    seen: dict[str, tuple[str, Json]] = {}
    for item, value in read:
        where = item.file or f"item {item.id!r}"
        first, said_first = seen.setdefault(item.digest, (where, value))
        if first != where:
            if value == said_first:  # the same answer drawn twice is one observation
                continue
            raise InputError(
                f"{where} is the same row as {first}, with another label",
                hint="give all labels of an answer in one row: {'ada': true, 'bo': false}",
            )
        try:
            every_one = raters_of(value, levels)
        except InputError as error:
            raise InputError(f"{where}: {error.message}", hint=error.hint) from error
        said = {who: one for who, one in every_one.items() if one is not None}
        every += [(one, where) for one in said.values()]
        as_written = written_by(value)
        written += [as_written[who] for who in said]
        if said:
            found.append((item, said))
        else:
            bare += 1
    scale = scale_of(every, levels, written)
    items = [
        CalibrationItem(
            item=item,
            labels=said,
            truth=scale.truth(list(said.values())),
            cluster=_cluster_of(item, cluster),
        )
        for item, said in found
    ]
    return LabelledSet(
        items=tuple(items),
        scale=scale,
        name=name,
        field=label,
        cluster=cluster,
        unlabelled=bare,
        rows=len(found) + bare,
    )


def _said(item: Item, label: str) -> Json:
    """The label of a row, wherever it stands."""
    names = (label,) if label else reversed(LABEL_FIELDS)
    metadata = item.fields.get("metadata")
    places = [item.fields, metadata if isinstance(metadata, dict) else {}]
    for name in names:
        for place in places:
            if (value := place.get(name)) is not None:
                return value
    return None


def _cluster_of(item: Item, name: str) -> str:
    """What an item shares with others that are not independent of it.

    Raises:
        InputError: For an item without a value in this field.
    """
    if not name:
        return item.digest
    value = item.fields.get(name, item.submission.metadata.get(name))
    if not isinstance(value, str | int | float):
        raise InputError(
            f"{item.file or item.id}: {name!r} is {value!r:.60}, which cannot name a cluster",
            hint="give every row the id of its cluster, as text or a number",
        )
    return f"{value}"
