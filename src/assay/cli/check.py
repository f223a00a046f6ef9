"""``assay validate``."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.cli.graders_definition import grader_of_file, permitted, read_samples
from assay.cli.options import add_json, explain, file_warnings
from assay.cli.run import isolation_notes
from assay.errors import InputError
from assay.eval.harnesses import declared_harnesses, require_harnesses, require_recordings
from assay.eval.planning import require_case_parts
from assay.graders.spec import GraderSpec, spec_schema
from assay.registry.files import is_grader_file, is_source_file
from assay.reports.figures import count
from assay.reports.plain import one_line
from assay.scoring.json_safe import Json
from assay.scoring.validation import ValidationReport
from assay.tasks.case import Case, case_schema, load_cases
from assay.tasks.formats import has_rows
from assay.tasks.grader_files import load_graders
from assay.tasks.task import case_task
from assay.types.submission import Submission

_MORE = """\
Every problem is shown with file, line, field and the nearest valid name. A function, in FILE.py or
beside the KEY.yaml of a stored grader, goes through five checks in the sandbox: syntax, structure,
signature, execution and a test run; with --sample it also grades those rows.

exit status: 0 all are valid, 2 not"""
_EXAMPLES = """\
  assay validate exact.py --sample answers.jsonl
  assay validate graders/exact.yaml
  assay validate evals
  assay validate --schema > case.schema.json
  # first line of a case:  # yaml-language-server: $schema=case.schema.json"""


def add_validate(parser: ArgumentParser) -> None:
    """Say what ``assay validate`` takes."""
    explain(parser, _MORE, _EXAMPLES)
    add = parser.add_argument
    add("paths", nargs="*", metavar="PATH", help="cases, grader files, or functions")
    add(
        "--schema",
        nargs="?",
        const="case",
        choices=("case", "graders"),
        help="print the JSON Schema of a case or a grader file instead, for editors",
    )
    add("--sample", action="append", default=[], metavar="DATA", help="rows for functions to grade")
    add_json(parser)


def run_validate(given: Namespace) -> int:
    """Check every path; all problems of all of them are shown, and what is worth a look."""
    if given.schema:
        print(json.dumps(_schema(given.schema), indent=2))
        return 0
    if not given.paths:
        raise InputError("name cases or grader files", hint="assay validate PATH...")
    if given.sample and not any(map(_is_definition, given.paths)):
        raise InputError(
            "--sample is for functions and stored graders: no path is one",
            hint="a file of graders is tried by: assay grade DATA GRADERS.yaml",
        )
    seen = _Seen(read_samples(given.sample), as_json=given.json)
    for path in given.paths:
        try:
            seen.look_at(path)
        except InputError as error:
            seen.problems.extend(str(error).splitlines())
    if given.json:
        result: dict[str, Json] = {
            "valid": not seen.problems,
            "checked": list[Json](seen.checked),
            "problems": list[Json](seen.problems),
            "warnings": list[Json](seen.warnings),
            "notes": list[Json](seen.notes),
            "reports": seen.reports,
        }
        print(json.dumps(result))
        return 2 if seen.problems else 0
    for line in seen.warnings:
        print(f"warning: {one_line(line, 1_000)}", file=sys.stderr)
    for line in seen.notes:
        print(f"note: {one_line(line, 1_000)}", file=sys.stderr)
    for line in seen.problems:
        if line not in seen.shown:
            print(line, file=sys.stderr)
    if seen.checked:
        print(f"{len(seen.checked)} well-formed: {', '.join(seen.checked[:20])}")
    return 2 if seen.problems else 0


class _Seen:
    """What was found in all paths until now."""

    def __init__(self, samples: Sequence[tuple[str, Submission]], *, as_json: bool) -> None:
        self._samples, self._as_json = samples, as_json
        self._files: dict[str, str] = {}
        self.problems: list[str] = []
        self.shown: set[str] = set()
        self.warnings: list[str] = []
        self.notes: list[str] = []
        self.checked: list[str] = []
        self.reports: dict[str, Json] = {}

    def look_at(self, path: str) -> None:
        """Check what is at a path.

        Raises:
            InputError: For what is no case and no grader.
        """
        if _is_definition(path):
            report, preview = _definition_report(path, self._samples, as_json=self._as_json)
            prompt: dict[str, Json] = {"preview": list[Json](preview)} if preview else {}
            self.reports[path] = {**report.to_dict(), **prompt}
            if report.valid:
                self.checked.append(path)
            else:
                # The report of the checks, which is shown unless as JSON, ends in these words.
                self.problems.append(f"{path} is not valid")
                self.shown.add(self.problems[-1])
            return
        for one in _load(path):
            first = self._files.setdefault(one.name, one.file)
            if not Path(first).samefile(one.file):
                where = f"{one.file}: id: the id {one.name!r} is already that of {first}"
                self.problems.append(f"{where} (ids must be unique)")
                continue
            self.checked.append(one.name)
            self.warnings.extend(f"{one.file}: {warning}" for warning in one.warnings)
            self.notes.extend(f"{one.file}: {note}" for note in one.notes)


@dataclass(frozen=True, slots=True)
class _Found:
    """A case or a grader file that is well-formed, and what is worth a look in it."""

    name: str
    file: str
    warnings: Sequence[str]
    notes: Sequence[str] = ()


def _is_definition(path: str) -> bool:
    """Whether a file is the KEY.yaml of a stored grader, or the source of a function."""
    file, looks = Path(path), {".yaml": is_grader_file, ".py": is_source_file}
    if file.suffix not in looks or not file.is_file():
        return False
    return looks[file.suffix](file.read_text("utf-8", errors="replace"))


def _definition_report(
    path: str, samples: Sequence[tuple[str, Submission]], *, as_json: bool
) -> tuple[ValidationReport, Sequence[str]]:
    """What the checks of a function or of a stored grader's file say, and what a judge would read.

    Both are shown, unless as JSON.
    """
    import asyncio

    from assay.cli.graders_output import print_preview, print_report
    from assay.graders.binary_judge import BinaryJudgeGrader
    from assay.graders.functions.source import read_source
    from assay.registry import definition_from
    from assay.registry.validation import validate

    is_source = path.endswith(".py")
    grader = None if is_source else grader_of_file(path)
    definition = (
        definition_from("function", {"source": read_source(path)})
        if grader is None
        else grader.definition
    )
    report = asyncio.run(validate(definition, samples, permitted()))
    preview: Sequence[str] = ()
    if definition.kind == "binary_judge":
        preview = BinaryJudgeGrader.of(definition.specs[0].options).preview()
    if not as_json:
        if preview:
            print_preview(*preview)
        print_report(report, what=path, file=path if grader is None else grader.file)
    return report, preview


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
    warnings = (*file_warnings(case.graders), *case.doubts(), *_of_image(case))
    notes = (*isolation_notes(case), *_readings(case.graders))
    return _Found(case.id, case.file, warnings, notes)


def _of_image(case: Case) -> list[str]:
    """What keeps the image of a case from being used at once."""
    if case.image is None:
        return []
    from assay.eval.workspaces.images import missing

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
    from assay.documents import read_document

    if not Path(path).is_file() or Path(path).suffix == ".py" or has_rows(path):
        return False
    data = read_document(path).data
    return isinstance(data, list) or (isinstance(data, dict) and set(data) == {"graders"})


def _schema(kind: str) -> dict[str, Json]:
    if kind == "case":
        return case_schema()
    grader = spec_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "assay graders",
        "$defs": grader.pop("$defs"),
        "type": "array",
        "minItems": 1,
        "items": grader,
    }
