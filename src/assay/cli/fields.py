"""``--set FIELD=VALUE``: the fields of a record, said on the command line or in a file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from typing import TypeVar, cast, get_origin

from assay.errors import InputError, Location
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import read_json
from assay.types import codec
from assay.types.codec import Problem

T = TypeVar("T")

_MOST_BYTES = 1 << 20


def fields_of(said: Sequence[str]) -> dict[str, Json]:
    """The fields of some ``FIELD=VALUE``, and what is in the file of ``FIELD=@FILE``."""
    fields: dict[str, Json] = {}
    for one in said:
        name, equals, value = one.partition("=")
        if not (name and equals):
            raise InputError(
                f"--set takes FIELD=VALUE, not {one!r:.80}", hint="such as threshold=1"
            )
        fields[name] = _in(value[1:]) if value.startswith("@") else _value(value)
    return fields


def _value(text: str) -> Json:
    try:
        return read_json(text, Location(), nan=True)
    except InputError:
        return text


def _in(file: str) -> Json:
    """What is in a file: data of JSON or JSON lines, else text."""
    text = _text_of(file)
    if file.endswith(".jsonl"):
        lines = enumerate(text.splitlines(), 1)
        return [_json_of(line, file, number) for number, line in lines if line.strip()]
    return _json_of(text, file) if file.endswith(".json") else text


def _text_of(file: str) -> str:
    try:
        data = Path(file).read_bytes()
        if len(data) > _MOST_BYTES:
            raise InputError(f"{file} has more than {_MOST_BYTES} bytes")
        return data.decode()
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is not UTF-8 text") from error


def _json_of(text: str, file: str, line: int | None = None) -> Json:
    return read_json(text, Location(file=file, line=line), nan=True)


def settings_of(kind: type[T], said: Sequence[str], **own: Json) -> T:
    """A record of settings, of ``FIELD=VALUE``, ``FIELD.PART=VALUE`` and ``@FILE.yaml``.

    Args:
        kind: Its type, which says what each field may be.
        said: What ``--set`` was given; what comes later counts.
        **own: Fields that other options give.

    Raises:
        InputError: With everything that is wrong.
    """
    fields: dict[str, Json] = {}
    for one in said:
        for name, value in (_of_file(one[1:]) if one[:1] == "@" else fields_of([one])).items():
            *within, last = name.split(".")
            place = fields
            for part in within:
                place = cast("dict[str, Json]", place.setdefault(part, {}))
            place[last] = value
    if both := fields.keys() & own.keys():
        raise InputError(f"--set {min(both)}: this command sets it, from its other options")
    problems: list[Problem] = [
        Problem((name,), f"must be above 0, got {value}")
        for name, value in _numbers(fields)
        if not 0 < value < math.inf
    ]
    made = codec.read(kind, {**_listed(kind, fields), **own}, (), problems)
    if problems:
        said_of = [f"--set {one.field}: {one.message}" for one in problems]
        raise InputError("; ".join(said_of), hint=problems[0].hint)
    return cast("T", made)


def _listed(kind: type, fields: Mapping[str, Json]) -> dict[str, Json]:
    """The fields, with those that hold several things as lists: a text names them with commas."""
    types, listed = codec.field_types(kind), dict[str, Json]()
    for name, value in fields.items():
        wanted = types.get(name)
        if isinstance(value, dict) and isinstance(wanted, type) and is_dataclass(wanted):
            listed[name] = _listed(wanted, value)
        elif isinstance(value, str) and get_origin(wanted) is tuple:
            listed[name] = list[Json](value.split(","))
        else:
            listed[name] = value
    return listed


def _of_file(file: str) -> Mapping[str, Json]:
    from assay.documents import read_document

    data = read_document(file).data
    if not isinstance(data, dict):
        raise InputError(f"{file} holds no fields", hint="write FIELD: VALUE, a line for each")
    return data


def _numbers(fields: Mapping[str, Json], before: str = "") -> Iterator[tuple[str, float]]:
    for name, value in fields.items():
        if isinstance(value, dict):
            yield from _numbers(value, f"{before}{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{before}{name}", value
