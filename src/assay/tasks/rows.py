"""Dataset rows: recorded answers, each with what it is graded against."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
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
    """Read one line of a dataset; see `read_row`.

    Raises:
        InputError: For a row that is malformed, naming file and line.
    """
    try:
        data = _parse(line)
        return _row(data, number, f"{file}:{number}", graders, label)
    except InputError as error:
        raise _at(error, Location(file=file, line=number)) from error


def read_lines(file: str) -> Iterator[tuple[int, bytes]]:
    """The lines of a dataset that hold something, with their numbers."""
    try:
        handle = Path(file).open("rb")  # noqa: SIM115 - closed below, however the reader stops
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from error
    with handle:
        for number, line in enumerate(iter(partial(handle.readline, MAX_LINE_BYTES + 1), b""), 1):
            if not line.isspace():
                yield number, line


def _line_of(identity: str, file: str, before: int) -> int | None:
    """The line above another that has the id; None where only the hashes are the same."""
    for number, line in read_lines(file):
        if number == before:
            return None
        given = _parse(line).get("id")
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


def _parse(line: bytes) -> dict[str, Json]:
    if len(line) > MAX_LINE_BYTES:
        raise InputError(f"the line is longer than {MAX_LINE_BYTES} bytes")
    data = read_json(line, wrong="not a JSON object")
    if not isinstance(data, dict):
        raise InputError("a row must be a JSON object")
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
    try:
        return _row(data, number, f"{where.file}:{number}" if where.file else "", graders, label)
    except InputError as error:
        raise _at(error, where) from error


def _row(
    data: Mapping[str, Json],
    number: int,
    file: str,
    graders: tuple[GraderSpec, ...],
    label: str | None,
) -> Row:
    fields = data
    if "answer" not in data and "messages" not in data and isinstance(data.get("input"), list):
        fields = dict(data)
        fields["messages"] = fields.pop("input")
    metadata = fields.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise InputError("'metadata' must be an object")
    if others := fields.keys() - _KNOWN:
        metadata = {**metadata, **{key: fields[key] for key in fields if key in others}}
    answer, thread = _answer(fields)
    question = fields.get("question")
    if question is None and thread is not None:
        question = thread.last_user_turn()
    if question is not None and not isinstance(question, str):
        raise InputError("'question' must be text")
    return Row(
        id=_id(fields.get("id"), number),
        submission=Submission(
            answer=answer,
            thread=thread,
            question=question,
            expected=_expected(fields, metadata),
            metadata=metadata,
        ),
        graders=graders,
        label=None if label is None else _label(metadata, label),
        file=file,
        fields=data,
    )


def _id(given: Json, number: int) -> str:
    if given is None:
        return str(number)
    if isinstance(given, str):
        if not given.isascii() and not _is_encodable(given):
            raise InputError("'id' holds half a character (a lone surrogate)")
        return given
    if isinstance(given, bool) or not isinstance(given, int):
        raise InputError("'id' must be text or a number")
    return str(given)


def _at(error: InputError, where: Location) -> InputError:
    """The error with the place of the row that it is about."""
    return InputError(error.message, location=where, hint=error.hint)


def _shown(where: Location) -> Location:
    """A line of no file is said to be one: a bare number tells nobody what it counts."""
    if where.line is None or where.file or where.field:
        return where
    return Location(field=f"line {where.line}")


def _expected(data: Mapping[str, Json], metadata: Mapping[str, Json]) -> Json:
    """What every grader takes as the reference answer, wherever the row has it."""
    given, other = data.get("expected"), metadata.get("expected")
    if given is None or other is None:
        return other if given is None else given
    if _canonical(given) != _canonical(other):
        raise InputError(
            f"'expected' is {given!r:.60}, and 'metadata.expected' is {other!r:.60}",
            hint="give it once",
        )
    return given


def _canonical(value: Json) -> str:
    """JSON that is the same text where it is the same: to Python, true would also be 1."""
    return json.dumps(value, sort_keys=True, default=repr)


def _answer(data: Mapping[str, Json]) -> tuple[str | None, StringThread | None]:
    answer, messages, completion = data.get("answer"), data.get("messages"), data.get("completion")
    if answer is not None and not isinstance(answer, str):
        raise InputError(f"'answer' must be text, got {type(answer).__name__}", hint="quote it")
    if answer is None and "answer" not in data and "messages" not in data:
        raise InputError("a row needs 'answer' or 'messages'", hint=_misspelt(data))
    if completion is not None and not isinstance(completion, str):
        raise InputError(f"'completion' must be text, got {type(completion).__name__}")
    if messages is None:
        return answer, None
    thread = StringThread.from_dict(data)
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


def _label(metadata: Mapping[str, Json], label: str) -> Json:
    value = metadata.get(label)
    if value is not None and not isinstance(value, bool | int | float):
        raise InputError(f"label {label!r} must be true, false or a number, got {value!r:.60}")
    return value
