"""``assay validate``."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.cli.options import add_json, explain, file_warnings
from assay.cli.run import isolation_notes
from assay.errors import InputError
from assay.eval.harnesses import declared_harnesses, require_harnesses, require_recordings
from assay.eval.planning import require_case_parts
from assay.graders.spec import GraderSpec, spec_schema
from assay.reports.figures import count
from assay.reports.plain import one_line
from assay.scoring.json_safe import Json
from assay.tasks.case import Case, case_schema, load_cases
from assay.tasks.formats import has_rows
from assay.tasks.grader_files import load_graders
from assay.tasks.task import case_task

_MORE = "Every problem is shown with file, line, field and the nearest valid name."
_EXAMPLES = """\
  assay validate evals
  assay validate --schema > case.schema.json
  # first line of a case:  # yaml-language-server: $schema=case.schema.json"""


def add_validate(parser: ArgumentParser) -> None:
    """Say what ``assay validate`` takes."""
    explain(parser, _MORE, _EXAMPLES)
    add = parser.add_argument
    add("paths", nargs="*", metavar="PATH", help="cases, or grader files")
    add(
        "--schema",
        nargs="?",
        const="case",
        choices=("case", "graders"),
        help="print the JSON Schema of a case or a grader file instead, for editors",
    )
    add_json(parser)


def run_validate(given: Namespace) -> int:
    """Check every path; all problems of all of them are shown, and what is worth a look."""
    if given.schema:
        print(json.dumps(_schema(given.schema), indent=2))
        return 0
    if not given.paths:
        raise InputError("name cases or grader files", hint="assay validate PATH...")
    problems: list[str] = []
    warnings: list[str] = []
    notes: list[str] = []
    checked: list[Json] = []
    files: dict[str, str] = {}
    for path in given.paths:
        try:
            found = _load(path)
        except InputError as error:
            problems.extend(str(error).splitlines())
            continue
        for one in found:
            first = files.setdefault(one.name, one.file)
            if not Path(first).samefile(one.file):
                where = f"{one.file}: id: the id {one.name!r} is already that of {first}"
                problems.append(f"{where} (ids must be unique)")
                continue
            checked.append(one.name)
            warnings.extend(f"{one.file}: {warning}" for warning in one.warnings)
            notes.extend(f"{one.file}: {note}" for note in one.notes)
    if given.json:
        result: dict[str, Json] = {
            "valid": not problems,
            "checked": checked,
            "problems": list[Json](problems),
            "warnings": list[Json](warnings),
            "notes": list[Json](notes),
        }
        print(json.dumps(result))
        return 2 if problems else 0
    for line in warnings:
        print(f"warning: {one_line(line, 1_000)}", file=sys.stderr)
    for line in notes:
        print(f"note: {one_line(line, 1_000)}", file=sys.stderr)
    for line in problems:
        print(line, file=sys.stderr)
    if checked:
        print(f"{len(checked)} well-formed: {', '.join(str(name) for name in checked[:20])}")
    return 2 if problems else 0


@dataclass(frozen=True, slots=True)
class _Found:
    """A case or a grader file that is well-formed, and what is worth a look in it."""

    name: str
    file: str
    warnings: Sequence[str]
    notes: Sequence[str] = ()


def _load(path: str) -> list[_Found]:
    if _is_grader_file(path):
        graders = load_graders(path, alone=True)
        name = f"{path} ({count(len(graders), 'grader')})"
        return [_Found(name, path, file_warnings(graders), _readings(graders))]
    return [_checked(case) for case in load_cases([path])]


def _checked(case: Case) -> _Found:
    """A case whose harnesses and graders fit it, too."""
    named = {harness for harness, _ in case.matrix.pairs()}
    declared = declared_harnesses(case.conditions)
    require_harnesses(case_task(case), named, declared)
    require_recordings(case, declared)
    require_case_parts(case)
    warnings = (*file_warnings(case.graders), *case.out_of_reach(), *_of_image(case))
    notes = (*isolation_notes(case), *_readings(case.graders))
    return _Found(case.id, case.file, warnings, notes)


def _of_image(case: Case) -> list[str]:
    """What keeps the image of a case from being used at once."""
    if case.image is None:
        return []
    from assay.eval.images import missing

    return [why] if (why := missing(case)) else []


def _readings(graders: Sequence[GraderSpec]) -> list[str]:
    """How the outcomes of commands are read where their runner's name alone says so."""
    from assay.graders.tests import TestsGrader

    return [
        f"{spec.label}: {report.program} implies {report}"
        for spec in graders
        if spec.type == "tests" and (report := TestsGrader.implied(spec.options))
    ]


def _is_grader_file(path: str) -> bool:
    """Whether a file is a bare list of graders rather than a case."""
    from assay.tasks.document import read_document

    if not Path(path).is_file() or Path(path).suffix == ".py" or has_rows(path):
        return False
    data = read_document(path).data
    return isinstance(data, list) or (isinstance(data, dict) and set(data) == {"graders"})


def _schema(kind: str) -> dict[str, Json]:
    if kind == "case":
        return case_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "assay graders",
        "type": "array",
        "minItems": 1,
        "items": spec_schema(),
    }
