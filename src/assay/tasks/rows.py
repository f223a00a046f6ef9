"""Dataset rows: recorded answers, each with what it is graded against."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, replace
from itertools import islice
from typing import IO, NamedTuple, cast

from assay.errors import InputError, Location, StoreError, nearest
from assay.frozen import frozen
from assay.scoring.json_safe import Json
from assay.tasks.json_rows import parse_line
from assay.tasks.pictures import IMAGES, placed
from assay.tasks.row_files import (
    AS_IT_IS,
    ROOM,
    RowFile,
    RowReading,
    Unit,
    opened,
    place_of,
    unnamed,
)
from assay.tasks.row_sets import files_of
from assay.types.codec import ShapeError
from assay.types.submission import Submission
from assay.types.thread import StringThread
from assay.types.trace import Trace


@frozen(kw_only=True)
class Row:
    """One recorded answer.

    Attributes:
        id: The row's ``id``, or its line number.
        submission: The answer or conversation, question, expected answer and metadata.
        group: Which rows are tries at the same thing; empty for none.
        label: The value of the field that people labelled, if asked for.
        file: ``file:line``, for people.
    """

    id: str
    submission: Submission
    group: str = ""
    label: Json = None
    file: str = ""
    fields: Mapping[str, Json] = field(default_factory=dict[str, Json])


def read_rows(
    file: str,
    *,
    label: str | None = None,
    reading: RowReading = AS_IT_IS,
) -> Iterator[Row]:
    """Read a dataset, one row at a time: JSONL, a JSON array or a table, also packed.

    See `read_row` for what a row may have. The rows of several files are counted through, and
    named by their own file. A digest of every id is held meanwhile.

    Raises:
        InputError: For a malformed row, naming file and place, unless `reading` leaves it out.
    """
    seen: dict[bytes, int] = {}
    begun: list[tuple[int, RowFile]] = []
    reading = _with_label(reading, label)
    for found, before, number, line in _lines_of(file, reading):
        if not begun or begun[-1][1] is not found:
            begun.append((before, found))
        name, unit, counted = found.name, found.unit, before + number
        try:
            row = parse_row(line, number, name, label=label, unit=unit, before=before)
            key = hashlib.sha256(row.id.encode("utf-8", "surrogatepass")).digest()
            if (earlier := seen.setdefault(key, counted)) != counted:
                start, other = next(one for one in reversed(begun) if one[0] < earlier)
                is_here = other is found and not before
                what = place_of(other.name, earlier - start, other.unit)
                raise twin(
                    row.id, f"{unit} {earlier}" if is_here else what, place_of(name, number, unit)
                )
        except InputError as error:
            if reading.on_bad_row is None:
                raise
            reading.on_bad_row(error)
        else:
            yield row


def _lines_of(
    file: str, reading: RowReading
) -> Iterator[tuple[RowFile, int, int, bytes | InputError]]:
    """The lines of a dataset, each with its file, how many are before that, and its number."""
    before = number = 0
    several = files_of(file)
    for one in several or [file]:
        with opened(one, replace(reading, name="") if several else reading) as found:
            for number, line in found.lines:
                yield found, before, number, line
        before, number = before + number, 0


def _with_label(reading: RowReading, label: str | None) -> RowReading:
    return reading if label is None else replace(reading, labels=(*reading.labels, label))


def parse_row(
    line: bytes | InputError,
    number: int,
    file: str,
    *,
    label: str | None = None,
    unit: Unit = "line",
    before: int = 0,
) -> Row:
    """Read one line of a dataset; see `read_row`.

    Args:
        line: The line, or what is wrong with it.
        number: Its number in the file.
        file: What people call that.
        label: Field that people labelled; None for none.
        unit: What numbers of the file count.
        before: How many rows are before the file, which count for the id of one that has none.

    Raises:
        InputError: For a row that is malformed, naming file and line, or its place in an array.
    """
    try:
        data = _parsed(line)
        where = f"{file}:{number}" if unit == "line" else str(place_of(file, number, unit))
        return _row(data, before + number, where, label)
    except InputError as error:
        raise _at(error, place_of(file, number, unit)) from error


def _parsed(line: bytes | InputError) -> dict[str, Json]:
    if isinstance(line, InputError):
        raise line
    return parse_line(line)


class Glance(NamedTuple):
    """What is known of a row that was looked at and not made."""

    id: str
    is_labelled: bool = False
    has_trace: bool = False


_MAY_BE_WRONG = frozenset({"messages", "completion", "trace", "metadata", IMAGES})


def glance_at(
    line: bytes | InputError,
    number: int,
    file: str,
    *,
    label: str | None = None,
    unit: Unit = "line",
    before: int = 0,
) -> Glance:
    """Look at one line of a dataset, which costs half of what `parse_row` does.

    Raises:
        InputError: Whatever `parse_row` raises of the line.
    """
    try:
        data = _parsed(line)
        # With an answer and a question that are texts, these alone can still be wrong.
        is_plain = type(data.get("answer")) is str and type(data.get("question", "")) is str
        if label is None and is_plain and _MAY_BE_WRONG.isdisjoint(data):
            return Glance(_id(data.get("id"), before + number))
        row = _row(data, before + number, "", label)
    except InputError as error:
        raise _at(error, place_of(file, number, unit)) from error
    return Glance(row.id, row.label is not None, row.submission.trace is not None)


def twin(identity: str, other: Location | str, where: Location) -> InputError:
    """What is wrong with a row whose id is also that of another one."""
    return InputError(
        f"id {identity!r} is also that of {other}",
        location=where,
        hint="if rows are samples of one prompt: --map group=id",
    )


@contextmanager
def as_json_lines(
    file: str, *, label: str | None = None, reading: RowReading = AS_IT_IS
) -> Generator[tuple[str, Unit]]:
    """Give one file of rows as one of JSON lines, which is there until the block ends.

    Yields:
        Its path, and what the numbers of its lines count: a row stands in the line of its number,
        and nothing where one cannot be read.

    Raises:
        InputError: If the file cannot be read; or a row of it, unless `reading` leaves it out.
        StoreError: If there is no room for it.
    """
    with opened(file, _with_label(reading, label)) as found, unnamed() as (kept, path):
        try:
            _copy(_readable(found, reading), kept)
            kept.flush()
        except OSError as error:
            raise StoreError(f"{found.name} cannot be unpacked: {error}", hint=ROOM) from error
        yield path, found.unit


def _readable(found: RowFile, reading: RowReading) -> Iterator[tuple[int, bytes]]:
    for number, line in found.lines:
        if isinstance(line, bytes):
            yield number, line
            continue
        error = _at(line, place_of(found.name, number, found.unit))
        if reading.on_bad_row is None:
            raise error
        reading.on_bad_row(error)


_BLANK = b"\n" * 4_096


def _copy(lines: Iterator[tuple[int, bytes]], to: IO[bytes]) -> None:
    """Write each line where it was; nothing stands where a row is left out or has several lines."""
    at = 1
    for number, line in lines:
        while at < number:
            to.write(_BLANK[: number - at])
            at += min(number - at, len(_BLANK))
        to.write(line if line.endswith(b"\n") else line + b"\n")
        at += 1


OWN_FIELDS = frozenset(
    {"id", "answer", "messages", "completion", "question", "expected", "metadata"}
)
LABEL_FIELDS = ("label", "labels")
"""Where labels stand unless another field is named."""


def read_row(
    data: Mapping[str, Json],
    number: int = 1,
    where: Location | None = None,
    *,
    label: str | None = None,
) -> Row:
    """Read one row that is JSON already.

    A row has ``answer`` (text), or ``messages`` (or ``input``): chat messages that end with the
    assistant's, or that its ``completion`` follows. It may have ``id``, ``question``, ``expected``
    and ``metadata``; other fields are kept in the metadata. What is expected may stand in the
    metadata instead; in both places it must be the same. Null counts as not given. A ``trace`` in
    assay's own form (an object with ``steps``) is what was done for the answer. ``images`` are
    pictures, as data URLs: of what is asked, or where a message has a place for them. A ``group``,
    which graders see as metadata, is the same in all rows that are tries at the same thing.
    """
    where = _shown(where or Location())
    if not isinstance(cast("object", data), Mapping):
        raise InputError("a row must be an object", location=where)
    try:
        return _row(data, number, f"{where.file}:{number}" if where.file else "", label)
    except InputError as error:
        raise _at(error, where) from error


def _row(data: Mapping[str, Json], number: int, file: str, label: str | None) -> Row:
    fields = data
    if "answer" not in data and "messages" not in data and isinstance(data.get("input"), list):
        fields = dict(data)
        fields["messages"] = fields.pop("input")
    if IMAGES in fields:
        fields = placed(fields)
    metadata = fields.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise InputError("'metadata' must be an object")
    trace = _trace(fields)
    own = OWN_FIELDS if trace is None else OWN_FIELDS | {"trace"}
    if not fields.keys() <= own:
        labels = {*LABEL_FIELDS, label}  # what people say is no grader's, and may stand twice
        metadata = dict(metadata)
        for key in [key for key in fields if key not in own]:
            said = fields[key] if key in labels else _given_once(key, fields, metadata)
            metadata[key] = said
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
            trace=trace,
            question=question,
            expected=_expected(fields, metadata),
            metadata=metadata,
        ),
        group=group_of(fields.get("group")),
        label=None if label is None else _label(metadata, label),
        file=file,
        fields=data,
    )


def _trace(fields: Mapping[str, Json]) -> Trace | None:
    """What was done, where a row tells it; a field of that name may be anything else."""
    given = fields.get("trace")
    if not isinstance(given, dict) or not isinstance(given.get("steps"), list):
        return None
    try:
        return Trace.from_dict(given)
    except ShapeError as error:
        raise InputError(f"'trace' is no trace of assay's: {error}") from error


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


_LONGEST_GROUP = 200


def group_of(given: Json) -> str:
    """What rows of one group have in common, such as a number or a prompt; a digest if it is long.

    An empty text is none: it is how tables write what is missing.
    """
    if given is None or given == "":
        return ""
    text = given if isinstance(given, str) else _canonical(given)
    if len(text) <= _LONGEST_GROUP and _is_encodable(text):
        return text
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _at(error: InputError, where: Location) -> InputError:
    """The error with the place of the row that it is about."""
    if where.line is not None and (column := error.location.column):
        where = replace(where, column=column)
    return InputError(error.message, location=where, hint=error.hint)


def _shown(where: Location) -> Location:
    """A line of no file is said to be one: a bare number tells nobody what it counts."""
    if where.line is None or where.file or where.field:
        return where
    return Location(field=f"line {where.line}")


def _expected(data: Mapping[str, Json], metadata: Mapping[str, Json]) -> Json:
    """What every grader takes as the reference answer, wherever the row has it."""
    return _given_once("expected", data, metadata)


def _given_once(field: str, data: Mapping[str, Json], metadata: Mapping[str, Json]) -> Json:
    """What a row or its metadata says; whoever says it twice has to say the same."""
    given, other = data.get(field), metadata.get(field)
    if given is None or other is None:
        return other if given is None else given
    if _canonical(given) != _canonical(other):
        raise InputError(
            f"{field!r:.60} is {given!r:.60}, and 'metadata.{field:.50}' is {other!r:.60}",
            hint="give it once",
        )
    return given


def _canonical(value: Json) -> str:
    """JSON that is the same text where it is the same: to Python, true would also be 1."""
    return json.dumps(value, sort_keys=True, default=repr)


def _answer(data: Mapping[str, Json]) -> tuple[str | None, StringThread | None]:
    answer, messages, completion = data.get("answer"), data.get("messages"), data.get("completion")
    if type(answer) is int:  # of 4.0 nobody knows whether 4 was written
        answer = str(answer)
    if answer is not None and not isinstance(answer, str):
        raise InputError(f"'answer' must be text, got {type(answer).__name__}", hint="quote it")
    if completion is not None and not isinstance(completion, str):
        raise InputError(f"'completion' must be text, got {type(completion).__name__}")
    if answer is None and "answer" not in data and "messages" not in data:
        if completion is None:
            raise InputError("a row needs 'answer' or 'messages'", hint=nearest_field(data))
        answer = completion
    if messages is None:
        return answer, None
    thread = StringThread.from_dict(data)
    return (thread.completion() if answer is None else answer), thread


_LONGEST_NAME = 30
_MOST_NAMES = 50
_MOST_TOLD = 8
_OTHER_NAMES = {
    "answer": ("response", "output", "completion", "prediction", "generation", "model_output"),
    "expected": ("target", "reference", "ground_truth", "gold", "ideal"),
    "question": ("prompt", "query"),
}
"""What other systems call the fields of rows."""


def nearest_field(names: Iterable[str]) -> str:
    """How what is graded is called, and was probably meant; or an empty string."""
    given = [name for name in map(str, islice(names, _MOST_NAMES)) if len(name) <= _LONGEST_NAME]
    for name in given:
        if name in OWN_FIELDS:
            continue
        said = nearest(name, ["answer", "messages"])
        if said.startswith("did you mean"):
            return f"{name!r}: {said}"
    found = likely_names(given)
    if "answer" not in found:
        if not given:
            return ""
        listed = ", ".join(map(repr, given[:_MOST_TOLD])) + (", ..." if given[_MOST_TOLD:] else "")
        return f"its fields are {listed}; on the command line: --map answer=FIELD"
    named = ",".join(f"{ours}={theirs}" for ours, theirs in found.items())
    return f"rename {found['answer']!r}, or on the command line: --map {named}"


def likely_names(given: Collection[str]) -> dict[str, str]:
    """Our names of fields that are not given, each with the one that other systems give it."""
    found: dict[str, str] = {}
    for ours, others in _OTHER_NAMES.items():
        if ours not in given and (theirs := next((name for name in others if name in given), "")):
            found[ours] = theirs
    return found


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
