"""Dataset rows: recorded answers, each with what it is graded against."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from assay.errors import InputError, Location, nearest
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import read_json
from assay.types.submission import Submission
from assay.types.thread import StringThread

if TYPE_CHECKING:
    from assay.graders.spec import GraderSpec


MAX_LINE_BYTES = 64 << 20
"""Longest line of a dataset; a longer one is refused rather than filling the memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One recorded answer and the graders it goes through.

    Attributes:
        id: The row's ``id``, or its line number.
        submission: The answer or conversation, question, expected answer and metadata.
        graders: What grades it.
        label: The value of the field that people labelled, if asked for.
        file: ``file:line``, for people.
    """

    id: str
    submission: Submission
    graders: tuple[GraderSpec, ...] = ()
    label: Json = None
    file: str = ""
    fields: Mapping[str, Json] = field(default_factory=dict[str, Json])


def read_rows(
    file: str, *, graders: Sequence[GraderSpec], label: str | None = None
) -> Iterator[Row]:
    """Read a JSONL dataset, one row at a time.

    See `read_row` for what a row may have.
    """
    specs = tuple(graders)
    seen = SeenIds()
    for number, line in read_lines(file):
        row = parse_row(line, number, file, graders=specs, label=label)
        if not seen.add(row.id) and (other := _line_of(row.id, file, number)):
            where = Location(file=file, line=number)
            raise InputError(f"id {row.id!r} is also that of line {other}", location=where)
        yield row


def parse_row(
    line: bytes,
    number: int,
    file: str,
    *,
    graders: tuple[GraderSpec, ...] = (),
    label: str | None = None,
) -> Row:
    """Read one line of a dataset; see `read_row`."""
    where = Location(file=file, line=number)
    return read_row(_parse(line, where), number, where, graders=graders, label=label)


def read_lines(file: str) -> Iterator[tuple[int, bytes]]:
    """The lines of a dataset that hold something, with their numbers."""
    try:
        handle = Path(file).open("rb")  # noqa: SIM115 - closed below, however the reader stops
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from error
    with handle:
        for number, line in enumerate(iter(lambda: handle.readline(MAX_LINE_BYTES + 1), b""), 1):
            if line.strip():
                yield number, line


def _line_of(identity: str, file: str, before: int) -> int | None:
    """The line above another that has the id; None where only the hashes are the same."""
    for number, line in read_lines(file):
        if number == before:
            return None
        given = _parse(line, Location(file=file, line=number)).get("id")
        if identity == (str(number) if given is None else str(given)):
            return number
    return None


class SeenIds:
    """Which texts there were, as hashes: 16 to 32 bytes each, so that millions fit anywhere."""

    def __init__(self) -> None:
        self._table = array("Q", bytes(8 * 1_024))
        self._count = 0

    def add(self, text: str) -> bool:
        """Add a text; False if one of the same hash was there."""
        if not self._put(hash(text) & 0xFFFF_FFFF_FFFF_FFFF or 1):
            return False
        self._count += 1
        if 2 * self._count > len(self._table):
            old, self._table = self._table, array("Q", bytes(16 * len(self._table)))
            for key in filter(None, old):
                self._put(key)
        return True

    def _put(self, key: int) -> bool:
        table, last = self._table, len(self._table) - 1
        place = key & last
        while found := table[place]:
            if found == key:
                return False
            place = (place + 1) & last
        table[place] = key
        return True


def _parse(line: bytes, where: Location) -> dict[str, Json]:
    if len(line) > MAX_LINE_BYTES:
        raise InputError(f"the line is longer than {MAX_LINE_BYTES} bytes", location=where)
    data = read_json(line, where, wrong="not a JSON object")
    if not isinstance(data, dict):
        raise InputError("a row must be a JSON object", location=where)
    return data


_KNOWN = frozenset({"id", "answer", "messages", "completion", "question", "expected", "metadata"})


def read_row(
    data: Mapping[str, Json],
    number: int = 1,
    where: Location | None = None,
    *,
    graders: tuple[GraderSpec, ...] = (),
    label: str | None = None,
) -> Row:
    """Read one row that is JSON already.

    A row has ``answer`` (text), or ``messages`` (or ``input``): chat messages that end with the
    assistant's, or that its ``completion`` follows. It may have ``id``, ``question``, ``expected``
    and ``metadata``; other fields are kept in the metadata. What is expected may stand in the
    metadata instead; in both places it must be the same. Null counts as not given.
    """
    where = _shown(where or Location())
    fields = dict(data)
    if "answer" not in fields and "messages" not in fields and isinstance(data.get("input"), list):
        fields["messages"] = fields.pop("input")
    metadata = fields.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise InputError("'metadata' must be an object", location=where)
    if others := fields.keys() - _KNOWN:
        metadata = {**metadata, **{key: fields[key] for key in fields if key in others}}
    answer, thread = _answer(fields, where)
    question = fields.get("question")
    if question is None and thread is not None:
        question = thread.last_user_turn()
    if question is not None and not isinstance(question, str):
        raise InputError("'question' must be text", location=where)
    identity = fields.get("id")
    if isinstance(identity, str) and not _is_encodable(identity):
        raise InputError("'id' holds half a character (a lone surrogate)", location=where)
    if isinstance(identity, bool) or not isinstance(identity, str | int | None):
        raise InputError("'id' must be text or a number", location=where)
    return Row(
        id=str(number) if identity is None else str(identity),
        submission=Submission(
            answer=answer,
            thread=thread,
            question=question,
            expected=_expected(fields, metadata, where),
            metadata=metadata,
        ),
        graders=graders,
        label=_label(metadata, label, where),
        file=f"{where.file}:{number}" if where.file else "",
        fields=dict(data),
    )


def _shown(where: Location) -> Location:
    """A line of no file is said to be one: a bare number tells nobody what it counts."""
    if where.line is None or where.file or where.field:
        return where
    return Location(field=f"line {where.line}")


def _expected(data: Mapping[str, Json], metadata: Mapping[str, Json], where: Location) -> Json:
    """What every grader takes as the reference answer, wherever the row has it."""
    given, other = data.get("expected"), metadata.get("expected")
    if given is None or other is None:
        return other if given is None else given
    if _canonical(given) != _canonical(other):
        raise InputError(
            f"'expected' is {given!r:.60}, and 'metadata.expected' is {other!r:.60}",
            location=where,
            hint="give it once",
        )
    return given


def _canonical(value: Json) -> str:
    """JSON that is the same text where it is the same: to Python, true would also be 1."""
    return json.dumps(value, sort_keys=True, default=repr)


def _answer(data: dict[str, Json], where: Location) -> tuple[str | None, StringThread | None]:
    answer, messages, completion = data.get("answer"), data.get("messages"), data.get("completion")
    if answer is not None and not isinstance(answer, str):
        raise InputError(
            f"'answer' must be text, got {type(answer).__name__}", location=where, hint="quote it"
        )
    if "answer" not in data and "messages" not in data:
        raise InputError("a row needs 'answer' or 'messages'", location=where, hint=_misspelt(data))
    if completion is not None and not isinstance(completion, str):
        raise InputError(
            f"'completion' must be text, got {type(completion).__name__}", location=where
        )
    if messages is None:
        return answer, None
    try:
        thread = StringThread.from_dict(data)
    except InputError as error:
        raise InputError(error.message, location=where, hint=error.hint) from error
    return (thread.completion() if answer is None else answer), thread


_LONGEST_NAME = 30
_MOST_NAMES = 50


def _misspelt(data: Mapping[str, Json]) -> str:
    """Which field was probably meant to be what is graded, or an empty string."""
    for name in list(data)[:_MOST_NAMES]:
        if name in _KNOWN or len(name) > _LONGEST_NAME:
            continue
        said = nearest(name, ["answer", "messages"])
        if said.startswith("did you mean"):
            return f"{name!r}: {said}"
    return ""


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _label(metadata: Mapping[str, Json], label: str | None, where: Location) -> Json:
    if label is None:
        return None
    value = metadata.get(label)
    if value is not None and not isinstance(value, bool | int | float):
        raise InputError(
            f"label {label!r} must be true, false or a number, got {value!r:.60}", location=where
        )
    return value
