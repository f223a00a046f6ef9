"""Dataset rows: recorded answers, each with what it is graded against."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from assay.errors import InputError, Location
from assay.scoring.json_safe import Json
from assay.types.submission import Submission
from assay.types.thread import StringThread

if TYPE_CHECKING:
    from assay.graders.spec import GraderSpec

__all__ = ["MAX_LINE_BYTES", "Row", "read_rows"]

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

    A row has ``answer`` (text) or ``messages`` (chat messages that end with the assistant's), and
    may have ``id``, ``question``, ``expected`` and ``metadata``; other fields are kept in the
    metadata.

    Args:
        file: Path of the dataset; blank lines are passed over.
        graders: What every row goes through.
        label: Field that people labelled, looked for in the row and then in its metadata.

    Raises:
        InputError: For a missing file, or a row that is malformed, naming file and line.
    """
    specs = tuple(graders)
    seen: dict[str, int] = {}
    try:
        handle = Path(file).open("rb")  # noqa: SIM115 - closed below, however the reader stops
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from error
    with handle:
        for number, line in enumerate(iter(lambda: handle.readline(MAX_LINE_BYTES + 1), b""), 1):
            if not line.strip():
                continue
            where = Location(file=file, line=number)
            row = _row(_parse(line, where), number, specs, label, where)
            if row.id in seen:
                raise InputError(
                    f"id {row.id!r} is also that of line {seen[row.id]}", location=where
                )
            seen[row.id] = number
            yield row


def _parse(line: bytes, where: Location) -> dict[str, Json]:
    if len(line) > MAX_LINE_BYTES:
        raise InputError(f"the line is longer than {MAX_LINE_BYTES} bytes", location=where)
    try:
        data = cast("Json", json.loads(line, parse_constant=_no_constant))
    except (ValueError, RecursionError) as error:
        raise InputError(f"not a JSON object: {error}", location=where) from error
    if not isinstance(data, dict):
        raise InputError("a row must be a JSON object", location=where)
    return data


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")


_KNOWN = frozenset({"id", "answer", "messages", "completion", "question", "expected", "metadata"})


def _row(
    data: dict[str, Json],
    number: int,
    graders: tuple[GraderSpec, ...],
    label: str | None,
    where: Location,
) -> Row:
    metadata = data.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise InputError("'metadata' must be an object", location=where)
    metadata = {**metadata, **{k: v for k, v in data.items() if k not in _KNOWN}}
    answer, thread = _answer(data, where)
    question = data.get("question")
    if question is None and thread is not None:
        question = thread.last_user_turn()
    if question is not None and not isinstance(question, str):
        raise InputError("'question' must be text", location=where)
    identity = data.get("id")
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
            expected=data.get("expected"),
            metadata=metadata,
        ),
        graders=graders,
        label=_label(metadata, label, where),
        file=f"{where.file}:{number}",
        fields=data,
    )


def _answer(data: dict[str, Json], where: Location) -> tuple[str | None, StringThread | None]:
    answer, messages = data.get("answer"), data.get("messages")
    if answer is not None and not isinstance(answer, str):
        raise InputError(
            f"'answer' must be text, got {type(answer).__name__}", location=where, hint="quote it"
        )
    if "answer" not in data and "messages" not in data:
        raise InputError("a row needs 'answer' or 'messages'", location=where)
    if messages is None:
        return answer, None
    try:
        thread = StringThread.from_dict(data)
    except InputError as error:
        raise InputError(error.message, location=where, hint=error.hint) from error
    return (thread.completion() if answer is None else answer), thread


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
