"""Read SWE-bench's rows, and write them as cases.

A row tells of one repaired bug: a repository and a commit, the patch that repaired it, the patch
of its tests, and which tests failed before (``FAIL_TO_PASS``) or have to pass still
(``PASS_TO_PASS``). SWE-bench, Verified, Lite, Multimodal, Gym, Live and the rows made after them
differ in how the lists are written, and in further fields, which are not read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from assay.documents import read_text
from assay.errors import InputError, Location, nearest
from assay.graders.swebench_ids import read_ids
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import NotJsonError, decode_json, read_json
from assay.types.codec import Problem, ShapeError

MAX_BYTES = 1 << 30
"""Size of a file of rows."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*/[A-Za-z0-9_.-]+")
_COMMIT = re.compile(r"[0-9a-fA-F]{7,64}")
_DIFF = re.compile(r"^(diff --git |--- )", re.MULTILINE)
_TEXTS = ("instance_id", "repo", "base_commit", "patch", "test_patch", "problem_statement")
_OPTIONAL = ("hints_text", "version", "environment_setup_commit", "created_at", "image_name")
_IMAGE = re.compile(r"|[A-Za-z0-9][\w./:@-]{0,499}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SweBenchInstance:
    """One row.

    Attributes:
        instance_id: Its name, such as ``django__django-11099``.
        repo: Owner and name of the repository on GitHub.
        base_commit: The commit that the bug is repaired from.
        patch: The repair, as a unified diff without the tests.
        test_patch: The change of the tests, as a unified diff.
        problem_statement: What the agent is asked.
        fail_to_pass: Ids of tests that fail before the repair and pass after it; at least one.
        pass_to_pass: Ids of tests that pass before and after.
        hints_text: What was said about the issue before it was repaired.
        version: Version of the project, as the benchmark counts.
        environment_setup_commit: The commit that the benchmark installs the project from.
        created_at: When the repair was proposed.
        image_name: Container image in which the project is installed at ``/testbed``; empty where
            the row names none.
    """

    instance_id: str
    repo: str
    base_commit: str
    patch: str
    test_patch: str
    problem_statement: str
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...] = ()
    hints_text: str = ""
    version: str = ""
    environment_setup_commit: str = ""
    created_at: str = ""
    image_name: str = ""

    @property
    def url(self) -> str:
        """Address of the repository."""
        return f"https://github.com/{self.repo}"


def read_instance(row: Mapping[str, Json]) -> SweBenchInstance:
    """Read one row.

    Raises:
        ShapeError: With everything that is wrong in it.
    """
    problems: list[Problem] = []
    said = {name: _text(row, name, problems, required=True) for name in _TEXTS}
    said |= {name: _text(row, name, problems) for name in _OPTIONAL}
    for name, pattern, meaning in (
        ("instance_id", _NAME, "a name of letters, digits, '.', '_' and '-'"),
        ("repo", _REPOSITORY, "owner/name of a repository"),
        ("base_commit", _COMMIT, "a commit id: 7 to 64 hexadecimal digits"),
        ("image_name", _IMAGE, "the name of a container image"),
    ):
        if said[name] and not pattern.fullmatch(said[name]):
            problems.append(Problem((name,), f"{said[name][:80]!r} is not {meaning}"))
    problems += [
        Problem((name,), f"{name} is not a unified diff")
        for name in ("patch", "test_patch")
        if said[name] and not _DIFF.search(said[name])
    ]
    fail_to_pass = _ids(row, "FAIL_TO_PASS", problems)
    pass_to_pass = _ids(row, "PASS_TO_PASS", problems)
    if not fail_to_pass and not any(p.path == ("FAIL_TO_PASS",) for p in problems):
        problems.append(Problem(("FAIL_TO_PASS",), "no test shows the bug"))
    if problems:
        raise ShapeError(problems)
    return SweBenchInstance(fail_to_pass=fail_to_pass, pass_to_pass=pass_to_pass, **said)


def _text(
    row: Mapping[str, Json], name: str, problems: list[Problem], *, required: bool = False
) -> str:
    value = row.get(name)
    if value is None and not required:
        return ""
    if value is None:
        problems.append(_lacking(name, row))
        return ""
    if isinstance(value, int | float) and not isinstance(value, bool) and not required:
        return str(value)  # versions and times are numbers in some rows
    if not isinstance(value, str):
        problems.append(Problem((name,), f"expected text, got {json.dumps(value)[:80]}"))
        return ""
    if required and not value.strip():
        problems.append(Problem((name,), f"{name} is empty"))
    return value


def _lacking(name: str, row: Mapping[str, Json]) -> Problem:
    meant = nearest(name, list(row))  # else the names that the row has, which are no help
    hint = meant if meant.startswith("did you mean") else ""
    return Problem((name,), f"{name!r} is required", hint, at_key=True)


def _ids(row: Mapping[str, Json], name: str, problems: list[Problem]) -> tuple[str, ...]:
    spelt = next((key for key in (name, name.lower()) if row.get(key) is not None), None)
    if spelt is None:
        if name == "FAIL_TO_PASS":
            problems.append(_lacking(name, row))
        return ()
    try:
        return read_ids(row[spelt], what=spelt)
    except InputError as error:
        problems.append(Problem((name,), error.message, error.hint))
        return ()


PlacedRow: TypeAlias = "tuple[Location, Mapping[str, Json] | InputError]"
"""Where a row stands, and it, or what is wrong there."""


def read_instances(file: str) -> list[Mapping[str, Json]]:
    """The rows of a file: one row as JSON, a list of rows, or one row to a line (JSONL).

    Raises:
        InputError: If it cannot be read or holds something else, with the line.
    """
    rows: list[Mapping[str, Json]] = []
    for _, row in placed_rows(file):
        if isinstance(row, InputError):
            raise row
        rows.append(row)
    return rows


def placed_rows(file: str) -> list[PlacedRow]:
    """The rows of a file with their places, and in the place of a row what is wrong with it.

    Raises:
        InputError: If the file cannot be read.
    """
    text = read_text(file, MAX_BYTES)
    try:
        whole = decode_json(text, nan=True)
    except NotJsonError as error:
        if error.kind != "repeated key":
            return _lines(file, text)
        place = Location(file=file)
        raise InputError(str(error), location=place, hint="keep one of them") from None
    rows = whole if isinstance(whole, list) else [whole]
    places = (Location(file=file, field=f"[{number}]") for number in range(len(rows)))
    return [(place, _mapping(row, place)) for place, row in zip(places, rows, strict=True)]


def _lines(file: str, text: str) -> list[PlacedRow]:
    rows: list[PlacedRow] = []
    # A line ends at a line feed alone: texts in the rows may hold every other separator.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        place = Location(file=file, line=number)
        try:
            row = read_json(line, place, wrong="this is not JSON", nan=True)
        except InputError as error:
            rows.append((place, error))
        else:
            rows.append((place, _mapping(row, place)))
    return rows


def _mapping(row: Json, place: Location) -> Mapping[str, Json] | InputError:
    said = "a row is a mapping with instance_id, repo and more"
    return row if isinstance(row, dict) else InputError(said, location=place)


def pick_instance(
    rows: Sequence[Mapping[str, Json]], instance_id: str | None, *, file: str
) -> SweBenchInstance:
    """Read the row with an id; the only row where no id is given.

    Raises:
        InputError: If there is no such row, or several rows and no id; with everything that is
            wrong in the row.
    """
    names = [str(row.get("instance_id", "")) for row in rows]
    if instance_id is not None:
        if instance_id not in names:
            hint = nearest(instance_id, names[:10_000])
            raise InputError(f"{file} has no instance {instance_id!r}", hint=hint)
        return read_placed(rows[names.index(instance_id)], Location(file=file))
    if len(rows) != 1:
        such = next((f", such as {name}" for name in names if name), "")
        hint = f"name one with --instance{such}" if names else "is it empty?"
        raise InputError(f"{file} has {len(rows)} rows", hint=hint)
    return read_placed(rows[0], Location(file=file))


def read_placed(row: Mapping[str, Json], place: Location) -> SweBenchInstance:
    """Read one row.

    Raises:
        InputError: With everything that is wrong in it.
    """
    try:
        return read_instance(row)
    except ShapeError as error:
        said = "; ".join(f"{one.field}: {one.message}" for one in error.problems)
        whose = f" of instance {row['instance_id']!r}" if "instance_id" in row else ""
        hint = next((one.hint for one in error.problems if one.hint), "")
        raise InputError(f"the row{whose}: {said}", location=place, hint=hint) from error
