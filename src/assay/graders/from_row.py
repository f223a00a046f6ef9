"""Options that a row gives: ``substring: {from: expected}``.

Read once with the grader, and filled in for each row, case, request or sample in one way. What a
row gives is data: it is checked by the option's own type, judges see it in fences, and nothing that
a grader runs, opens, asks or guards itself by may come from it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from typing import TypeGuard, cast

from assay.errors import InputError, nearest
from assay.graders.kinds import Kind
from assay.graders.paths import names_path
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import NotJsonError, decode_json
from assay.types import codec
from assay.types.codec import Path, Problem
from assay.types.submission import SUBMISSION_PARTS, Submission

SOURCES = ("expected", "question", "metadata")
"""What of a row may be named: what its author wrote, and nothing of the answer."""

_OF_AUTHOR = frozenset(
    {"pass_threshold", "isolation", "contract", "fresh", "cmd", "files", "negate"}
)
"""What holds for a whole run, how a judge is kept apart from what it judges, what it runs and looks
at, and whether the opposite is right."""

_VALID = "valid: expected, question, metadata.FIELD"

FROM_SCHEMA: dict[str, Json] = {
    "type": "object",
    "description": "The option comes from the row or the case: from its `expected`, its "
    "`question`, or a field of either or of its metadata.",
    "properties": {
        "from": {"type": "string", "pattern": rf"^({'|'.join(SOURCES)})(\.[^.]+)*$"},
    },
    "required": ["from"],
    "additionalProperties": False,
}


def is_from(option: object) -> TypeGuard[dict[str, Json]]:
    """Whether an option says where it comes from, instead of what it is."""
    if not isinstance(option, dict) or "from" not in option:
        return False
    said = cast("dict[str, Json]", option)
    # Beside other keys it may be a JSON Schema's or a reference answer's own.
    return len(said) == 1 or (isinstance(said["from"], str) and _root(said["from"]) in SOURCES)


def nearly_from(option: object) -> str:
    """The key of an option that is meant to be ``from``, and is misspelt; "" where none is."""
    said = cast("dict[str, Json]", option) if isinstance(option, dict) else {}
    if len(said) != 1:
        return ""
    ((key, source),) = said.items()
    is_place = isinstance(source, str) and _root(source) in SOURCES
    return key if is_place and nearest(key, ["from"]).startswith("did you mean") else ""


def read_from(
    kind: Kind, name: str, option: Mapping[str, Json], path: Path, problems: list[Problem]
) -> str:
    """Read where an option comes from; what is wrong with it is added to ``problems``."""
    source = option["from"]
    before = len(problems)
    problems += [
        Problem((*path, other), "'from' stands alone", at_key=True)
        for other in option
        if other != "from"
    ]
    if why := refused(kind, name):
        problems.append(Problem(path, why, "write it into the grader"))
    if not isinstance(source, str):
        problems.append(Problem((*path, "from"), "must be text", _VALID))
    elif wrong := _wrong(source):
        problems.append(Problem((*path, "from"), *wrong))
    return str(source) if len(problems) == before else ""


def refused(kind: Kind, name: str) -> str:
    """Why no row may give an option; "" where it may."""
    if name in SUBMISSION_PARTS and name not in SOURCES:
        return f"{name!r} is what is graded, which no other field stands for"
    permitted = kind.grader.from_rows
    if name in _OF_AUTHOR or (permitted is not None and name not in permitted):
        return f"{name!r} is for the author of the grader to say, not for a row"
    parameter = kind.parameters.get(name)
    if parameter is not None and names_path(parameter.annotation):
        return f"{name!r} names a file, which no row may do"
    return ""


def _root(source: str) -> str:
    return source.partition(".")[0]


def _wrong(source: str) -> tuple[str, str] | None:
    """What is wrong with a place in a row, and how to write it."""
    root = _root(source)
    if root in SOURCES:
        return None if all(source.split(".")) else (f"{source!r} names an empty field", _VALID)
    if root in SUBMISSION_PARTS:
        return f"{root!r} is what is graded: it may not say how it is graded", _VALID
    if root == "prompt":
        return "'prompt' is nothing of a row", "did you mean 'question'?"
    near = nearest(root, [*SOURCES])
    near = near if near.startswith("did you mean") else _VALID
    if near == _VALID and "." not in source:
        near = f"did you mean 'metadata.{source:.60}'? {_VALID}"
    return f"{source!r:.100} is nothing of a row", near


def value_from(kind: Kind, name: str, source: str, submission: Submission) -> object:
    """What a row gives for an option.

    Raises:
        InputError: If the row has no such field, or it is not what the option takes.
    """
    found = _found(source, submission, f"{name!r} comes from {source}")
    parameter = kind.parameters.get(name)
    problems = [] if parameter is None else _problems(parameter.annotation, found, name)
    if problems and parameter is not None and isinstance(found, str):
        try:  # a cell of a CSV is text, and may stand for a number or a list
            read = decode_json(found)
        except NotJsonError:
            pass
        else:
            if not _problems(parameter.annotation, read, name):
                found, problems = read, []
    if problems:
        place = source + problems[0].field.removeprefix(name)
        raise InputError(
            f"{name!r} comes from {place}: {problems[0].message} ({kind.name})",
            hint=problems[0].hint,
        )
    return kind.grader.of_row(deepcopy(found))


def _problems(annotation: object, value: Json, name: str) -> list[Problem]:
    problems: list[Problem] = []
    check_option(annotation, value, (name,), problems)
    return problems


def _found(source: str, submission: Submission, what: str) -> Json:
    root, _, rest = source.partition(".")
    parts: dict[str, Json] = {
        "expected": submission.expected,
        "question": submission.question,
        "metadata": dict(submission.metadata),
    }
    try:
        return value_at(parts[root], rest, root)
    except InputError as error:
        raise InputError(f"{what}: {error.message}", hint=error.hint) from error


def value_at(value: Json, rest: str, place: str) -> Json:
    """What stands below a value; names may have dots in them, as columns of tables do.

    Raises:
        InputError: If nothing stands there.
    """
    if value is None:
        raise InputError(f"there is no {place} here")
    if not rest:
        return value
    field, _, after = rest.partition(".")
    if isinstance(value, dict):
        if rest in value:
            field, after = rest, ""
        if field not in value:
            names = [name for name in list(value)[:_MOST_NAMES] if len(name) <= _LONGEST_NAME]
            hint = nearest(field, names) or "it is empty"
            raise InputError(f"{place} has no field {field!r}", hint=hint)
        return value_at(value[field], after, f"{place}.{field}")
    if isinstance(value, list) and re.fullmatch(r"[0-9]{1,9}", field):
        if int(field) >= len(value):
            raise InputError(f"{place} has {len(value)} items, and no item {field}")
        return value_at(value[int(field)], after, f"{place}.{field}")
    raise InputError(f"{place} is no mapping, and has no field {field!r}")


_MOST_NAMES = 50
_LONGEST_NAME = 60


def check_option(annotation: object, item: Json, path: Path, problems: list[Problem]) -> None:
    """Check an option by its type, adding to ``problems`` instead of raising."""
    try:
        codec.read(annotation, item, path, problems)
    except TypeError:
        # An own grader may annotate with types that no YAML can hold; it will check them itself.
        return
