"""Operations on stored datasets, and on their rows as people look at them and graders read them.

A row may be megabytes long: a list tells the beginning of each, and one that is opened is told as
text, cut where nobody could read on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated

from assay.errors import AssayError, InputError
from assay.reports.pictures import ShownPicture, described, in_turn, pictures_of, shown_pictures
from assay.reports.plain import one_line, plain
from assay.scoring.json_safe import Json
from assay.service.operation import (
    After,
    DatasetKey,
    Desk,
    Force,
    InProject,
    Limit,
    Offset,
    Section,
    Spec,
    Whole,
)
from assay.store.datasets import DamagedRow, DatasetRecord, DatasetRow, Datasets, DatasetUse
from assay.store.pages import Page, Stretch

if TYPE_CHECKING:
    from assay.types.thread import StringThread

of_datasets = Section("/projects/{project}/datasets", tag="datasets")
_GLIMPSE = 300
_MOST_LINES = 50

RowNumber = Annotated[int, Spec("Number of the row.", ge=1, le=2**31 - 1, example=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGlimpse:
    """What a row is read as, on a line.

    Attributes:
        number: From 1.
        id: Its own ``id``, or its number.
        question: What was asked; empty where it says nothing.
        answer: What is graded.
        expected: The reference answer, as text or JSON.
        turns: Messages of its conversation; 0 without one.
        steps: Steps of its trace; 0 without one.
        others: Names in its metadata.
        fault: Why it cannot be graded; empty if it can.
        hint: What helps.
        data: The row as it came; null unless it was asked for.
    """

    number: int
    id: str
    question: str = ""
    answer: str = ""
    expected: str = ""
    turns: int = 0
    steps: int = 0
    others: tuple[str, ...] = ()
    fault: str = ""
    hint: str = ""
    data: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowTurn:
    """A turn of a conversation.

    Attributes:
        role: Who spoke.
        text: What was said.
    """

    role: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RowDetail:
    """A row as it is read, and as it came.

    Attributes:
        number: From 1.
        id: Its own ``id``, or its number.
        question: What was asked; null where it says nothing.
        answer: What is graded; null where there is none.
        expected: The reference answer, as text or JSON; null where there is none.
        turns: Its conversation.
        pictures: Those of its conversation.
        metadata: As JSON; empty without any.
        json: All of it as it came, but for what pictures hold.
        fault: Why it cannot be graded; empty if it can.
    """

    number: int
    id: str
    question: str | None = None
    answer: str | None = None
    expected: str | None = None
    turns: tuple[RowTurn, ...] = ()
    pictures: tuple[ShownPicture, ...] = ()
    metadata: str = ""
    json: str = ""
    fault: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsRead:
    """How the first rows of a file would be read.

    Attributes:
        rows: What each line is; those that cannot be stored say why.
        fields: Names that occur in the rows, the commonest first.
        wrong: How many of the lines cannot be stored.
        likely: Our names of fields that no row has, each with what they probably call it.
    """

    rows: tuple[RowGlimpse, ...]
    fields: tuple[str, ...]
    wrong: int
    likely: Mapping[str, str] = field(default_factory=dict[str, str])


@of_datasets("GET")
def list_datasets(
    desk: Desk,
    *,
    limit: Limit = 50,
    offset: Offset = 0,
    after: After = None,
    project: InProject = None,
) -> Page[DatasetRecord]:
    """The datasets of a project, by key."""
    return Datasets(desk.database).page(desk.project, Stretch(limit, offset, after))


@of_datasets("GET", "/{key}")
def show_dataset(desk: Desk, key: DatasetKey, *, project: InProject = None) -> DatasetRecord:
    """One dataset."""
    return Datasets(desk.database).get(desk.project, key)


@of_datasets("DELETE", "/{key}", repeatable=True)
def delete_dataset(
    desk: Desk, key: DatasetKey, *, force: Force = False, project: InProject = None
) -> None:
    """Delete a dataset."""
    Datasets(desk.database).delete(desk.project, key, force=force)


@of_datasets("GET", "/{key}/rows")
def list_rows(
    desk: Desk,
    key: DatasetKey,
    *,
    whole: Whole = False,
    limit: Limit = 50,
    offset: Offset = 0,
    after: After = None,
    project: InProject = None,
) -> Page[RowGlimpse]:
    """The rows of a dataset in their order, as graders are given them."""
    wanted = Stretch(limit, offset, after)
    found = Datasets(desk.database).rows(desk.project, key, wanted)
    return found.of(lambda row: _stored_glimpse(row, whole=whole))


@of_datasets("GET", "/{key}/rows/{number}")
def show_row(
    desk: Desk, key: DatasetKey, number: RowNumber, *, project: InProject = None
) -> RowDetail:
    """One row, as it is read and as it came."""
    return row_detail(Datasets(desk.database).row(desk.project, key, number))


@of_datasets("GET", "/{key}/use")
def show_dataset_use(desk: Desk, key: DatasetKey, *, project: InProject = None) -> DatasetUse:
    """What depends on a dataset: what would be lost or cancelled with it."""
    return Datasets(desk.database).use(desk.project, key)


@Section("/datasets", tag="datasets")("POST", "/read", role="member", lasts=False)
def read_lines(
    _: Desk,
    lines: Annotated[
        str,
        Spec(
            f"Lines of JSON: the first {_MOST_LINES} are read.",
            max_length=1 << 20,
            example='{"output": "4", "target": "4"}\n',
        ),
    ],
    mapping: Annotated[
        dict[str, str] | None,
        Spec(
            "Our names of fields, each with the one that the rows have.",
            example={"answer": "output", "expected": "target"},
        ),
    ] = None,
) -> RowsRead:
    """Say how the first lines of a file would be read, before it is stored; nothing is."""
    from assay.tasks.rows import likely_names

    rows: list[RowGlimpse] = []
    fields: dict[str, int] = {}
    # Lines end in line feeds and in nothing else: JSON may hold the other separators.
    for number, line in enumerate(lines.split("\n")[:_MOST_LINES], start=1):
        if line.strip():
            rows.append(_line_glimpse(line, number, mapping or {}, fields))
    names = sorted(fields, key=lambda name: (-fields[name], name))
    return RowsRead(
        rows=tuple(rows),
        fields=tuple(names[:_MOST_LINES]),
        wrong=sum(bool(row.fault) for row in rows),
        likely={} if "messages" in fields else likely_names(fields),
    )


def row_detail(row: DatasetRow) -> RowDetail:
    """A stored row for people."""
    from assay.tasks.rows import read_row

    if isinstance(row.data, DamagedRow):
        return RowDetail(number=row.number, id=plain(row.id), fault=_DAMAGED)
    whole = plain(_json_text(described(dict(row.data))))
    try:
        found = read_row(row.data, row.number).submission
    except AssayError as error:
        return RowDetail(number=row.number, id=plain(row.id), json=whole, fault=str(error))
    thread = found.thread
    is_talk = "messages" in row.data or "input" in row.data
    return RowDetail(
        number=row.number,
        id=plain(row.id),
        question=None if found.question is None else plain(found.question),
        answer=None if found.answer is None else plain(found.answer),
        expected=None if found.expected is None else plain(_text(found.expected)),
        turns=() if thread is None or not is_talk else _turns(thread),
        pictures=shown_pictures(pictures_of(thread, None)),
        metadata=plain(_json_text(dict(found.metadata))) if found.metadata else "",
        json=whole,
    )


def _turns(thread: StringThread) -> tuple[RowTurn, ...]:
    return tuple(
        RowTurn(role=one_line(turn.role, 60), text=plain(in_turn(thread, place)))
        for place, turn in enumerate(thread)
    )


_DAMAGED = "what is stored of it cannot be read any more"


def _stored_glimpse(row: DatasetRow, *, whole: bool) -> RowGlimpse:
    if isinstance(row.data, DamagedRow):
        found = RowGlimpse(number=row.number, id=one_line(row.id, 120), fault=_DAMAGED)
    else:
        found = _glimpse(row.data, row.number)
    return replace(found, data=row.data) if whole else found


def _line_glimpse(
    line: str, number: int, mapping: Mapping[str, str], fields: dict[str, int]
) -> RowGlimpse:
    from assay.tasks.json_rows import parse_line
    from assay.tasks.row_files import renamed

    try:
        row = parse_line(line.encode("utf-8", "surrogatepass"))
        for name in row:
            shown = one_line(name, 60)
            fields[shown] = fields.get(shown, 0) + 1
        return _glimpse(renamed(row, mapping, set()), number)
    except InputError as error:
        return _faulty(number, str(number), error)


def _glimpse(data: Mapping[str, Json], number: int) -> RowGlimpse:
    from assay.tasks.rows import read_row

    try:
        row = read_row(data, number)
    except AssayError as error:
        name = data.get("id")
        return _faulty(number, str(number if name is None else name), error)
    found = row.submission
    return RowGlimpse(
        number=number,
        id=one_line(row.id, 120),
        question=one_line(found.question or "", _GLIMPSE),
        answer=one_line(found.answer or "", _GLIMPSE),
        expected="" if found.expected is None else one_line(_text(found.expected), _GLIMPSE),
        turns=0 if found.thread is None else len(found.thread),
        steps=0 if found.trace is None else len(found.trace.steps),
        others=tuple(one_line(name, 60) for name in list(found.metadata)[:12]),
    )


def _faulty(number: int, name: str, error: AssayError) -> RowGlimpse:
    return RowGlimpse(
        number=number,
        id=one_line(name, 120),
        fault=one_line(error.message, _GLIMPSE),
        hint=one_line(error.hint, _GLIMPSE),
    )


def _text(value: Json) -> str:
    return value if isinstance(value, str) else _json_text(value)


def _json_text(value: Json) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
