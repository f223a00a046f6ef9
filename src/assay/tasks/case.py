"""`Case`: a task written as a YAML directory, and reading one or many."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Literal, cast

from assay.documents import (
    Document,
    DocumentError,
    DocumentFault,
    problems_to_error,
    read_document,
)
from assay.errors import Location
from assay.frozen import frozen
from assay.graders.spec import GraderSpec, credit_problems, spec_schema
from assay.scoring.json_safe import Json
from assay.scoring.results import reaches
from assay.tasks.blocks import (
    NO_MATRIX,
    Artifacts,
    CaseTask,
    CellLimits,
    Conditions,
    ContainerSpec,
    EnvironmentSpec,
    Expect,
    Matrix,
    Observe,
    SelfTest,
    Setup,
)
from assay.tasks.case_files import (
    case_digest,
    find_case_files,
    lock_name,
    outside_paths,
    reference_problems,
)
from assay.tasks.grader_files import bind_injected, read_graders
from assay.tasks.origin import Fixtures, Source
from assay.tasks.permitted import SubmissionSpec
from assay.tasks.rules import inside_problem
from assay.types import codec
from assay.types.codec import Problem
from assay.types.submission import Submission

REFERENCES = ("reference", "honest", "fix", "solution", "gold")
"""Recordings that are the reference where ``selftest.reference`` names none; the first counts."""

_MAX_ID = 200
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


@frozen(kw_only=True)
class CaseDocument:
    """What a case file may say.

    Attributes:
        id: Unique name of the case.
        description: What it is about, for people.
        task: What the agent is asked.
        source: The tree that the agent starts from; none is an empty directory.
        fixtures: Repository that hidden test files come from.
        artifacts: What is put at the agent's disposal.
        matrix: Which harnesses and models work on it, and how often; without one, whoever runs it
            names a model.
        environment: What is installed.
        container: The image that its commands need.
        setup: What is done to the source before the agent sees it.
        observe: What is recorded of the agent's work.
        graders: What the work is graded by; at least one that adds credit.
        expect: What counts as passing.
        availability: optional skips the case where its repository cannot be reached.
        limits: What a cell may use.
        submission: Which of the agent's changes are graded.
        selftest: What proves that the case grades right.
        expected: The reference answer, in any form that the graders understand.
        metadata: Anything that belongs to the case.
    """

    id: str
    task: CaseTask
    graders: tuple[object, ...]
    matrix: Matrix = NO_MATRIX
    description: str = ""
    source: Source | None = None
    fixtures: Fixtures | None = None
    artifacts: Artifacts = field(default_factory=Artifacts)
    environment: EnvironmentSpec | None = None
    container: ContainerSpec | None = None
    setup: Setup | None = None
    observe: Observe | None = None
    expect: Expect = field(default_factory=Expect)
    availability: Literal["required", "optional"] = "required"
    limits: CellLimits = field(default_factory=CellLimits)
    submission: SubmissionSpec = field(default_factory=SubmissionSpec)
    selftest: SelfTest = field(default_factory=SelfTest)
    expected: Json = None
    metadata: Mapping[str, Json] = field(default_factory=dict[str, Json])


@frozen(kw_only=True)
class Case(CaseDocument):
    """A case that was read and found right; see `CaseDocument` for what it says.

    Attributes:
        graders: What the work is graded by.
        file: The case file, as the user would type it.
        root: Absolute path of the directory that its paths are relative to.
        harnesses_file: The ``harnesses.yaml`` that applies to it, or an empty string.
        document: The parsed file.
    """

    graders: tuple[GraderSpec, ...]
    file: str
    root: str
    harnesses_file: str = ""
    document: Mapping[str, Json] = field(default_factory=dict[str, Json], repr=False)

    def resolve(self, path: str) -> str:
        """The absolute form of a path that the case names."""
        return os.path.normpath(Path(self.root, path))

    @property
    def conditions(self) -> Conditions:
        """What it says of the work on it, which other tasks have by default."""
        return Conditions(
            matrix=self.matrix,
            limits=self.limits,
            expect=self.expect,
            file=self.file,
            root=self.root,
            harnesses_file=self.harnesses_file,
        )

    @property
    def instruction_files(self) -> tuple[str, ...]:
        """Absolute paths of the instruction files."""
        return tuple(self.resolve(path) for path in self.task.instruction_files)

    @property
    def source_path(self) -> str | None:
        """Absolute path of the directory the agent starts from, for a source with a path."""
        if self.source is None or self.source.path is None:
            return None
        return self.resolve(self.source.path)

    @property
    def image(self) -> ContainerSpec | None:
        """The image whose file system everything runs in, wherever the case says so."""
        if self.container is not None or self.environment is None:
            return self.container
        name = self.environment.container
        return None if name is None else ContainerSpec(image=name)

    @property
    def requirement_files(self) -> tuple[str, ...]:
        """Absolute paths of the files with requirements."""
        named = self.environment.requirement_files if self.environment else ()
        return tuple(self.resolve(path) for path in named)

    @property
    def digest(self) -> str:
        """SHA-256 of what the case says and of every file of its directory, read anew each time.

        It covers the parsed document, the case's directory without caches, its lock file and
        ``.git``, and what the case names outside of it. Where the case lies, times, owners,
        comments and layout do not change it.
        """
        outside = outside_paths(self.document, self.graders, self.root)
        return case_digest(dict(self.document), self.root, file=self.file, outside=outside)

    @property
    def lock_file(self) -> str:
        """Absolute path of the file that keeps how its tests are isolated, if there is one."""
        return str(Path(self.root, lock_name(self.file)))

    def doubts(self) -> tuple[str, ...]:
        """Sentences about expectations that every cell meets, or that some grader keeps it from."""
        least = self.expect.min_assurance
        found: list[str] = []
        if self.expect.pass_threshold <= 0.0:
            found.append("expect.pass_threshold is 0: a cell that earns nothing passes")
        for spec in self.graders if least else ():
            best = spec.kind.grader.best_assurance(spec.options)
            if best and spec.weight > 0 and not spec.gate and not reaches(best, least):
                found.append(
                    f"expect.min_assurance is {least}, but a score of {spec.label!r} "
                    f"({spec.type}) is {best} at best: no cell can pass"
                )
        return tuple(found)

    def with_fixtures(self, directory: str) -> Case:
        """The case with its injected files taken from its fetched fixtures."""
        return dataclasses.replace(self, graders=bind_injected(self.graders, directory))


def load_case(file: str) -> Case:
    """Read one case."""
    found = find_case_files(file)
    if len(found) != 1:
        message = f"holds {len(found)} cases, not one"
        raise DocumentError([DocumentFault(location=Location(file=file), message=message)])
    return _read_case(found[0], given=file)[0]


def load_cases(
    paths: Sequence[str], *, unread: dict[str, DocumentError] | None = None
) -> list[Case]:
    """Read cases, sorted by id.

    Args:
        paths: Each a case file, the directory of a case, a directory of such directories, or a
            directory that has one in ``evals``. A case that is named twice is read once.
        unread: Takes what is wrong with single cases, by their files, if others can be read.

    Raises:
        DocumentError: For whatever is wrong with one of them.
    """
    faults: list[DocumentFault] = []
    cases: dict[str, Case] = {}
    files: set[str] = set()
    wrong: dict[str, DocumentError] = {}
    for given, file in _each_file(paths, faults):
        if (real := os.path.realpath(file)) in files:
            continue
        files.add(real)
        try:
            case, document = _read_case(file, given=given)
        except DocumentError as error:
            wrong[file] = error
            continue
        if case.id in cases:
            message = f"the id {case.id!r} is already that of {cases[case.id].file}"
            problem = Problem(("id",), message, "ids must be unique")
            faults.extend(problems_to_error([problem], document).faults)
        cases.setdefault(case.id, case)
    if unread is not None and cases:
        unread.update(wrong)
    else:
        faults += [fault for error in wrong.values() for fault in error.faults]
    if faults:
        raise DocumentError(faults)
    return sorted(cases.values(), key=lambda case: case.id)


def _each_file(paths: Sequence[str], faults: list[DocumentFault]) -> Iterator[tuple[str, str]]:
    for given in paths:
        try:
            found = find_case_files(given)
        except DocumentError as error:
            faults.extend(error.faults)
            continue
        yield from ((given, file) for file in found)


def _read_case(file: str, *, given: str) -> tuple[Case, Document]:
    from assay.tasks.blocks import find_harnesses_file

    problems: list[Problem] = []
    document = read_document(file, problems)
    # Where a given directory is itself a link, its case still lies where the user sees it.
    root = os.path.dirname(os.path.abspath(file))  # noqa: PTH100, PTH120
    if not isinstance(document.data, dict):
        problems.append(Problem((), "a case is a mapping with an 'id', a 'task' and more"))
        raise problems_to_error(problems, document)
    data = {key: item for key, item in document.data.items() if key != "$schema"}
    said = codec.read(CaseDocument, data, (), problems)
    problems += _id_problems(data)
    problems += reference_problems(data, root)
    graders: tuple[GraderSpec, ...] = ()
    if "graders" in data and not _is_at(problems, ("graders",)):
        before = len(problems)
        graders = read_graders(
            data["graders"],
            ("graders",),
            problems,
            base=root,
            injected_later=data.get("fixtures") is not None,
            row=_said_of_all(data),
        )
        if len(problems) == before:
            problems += credit_problems(graders, ("graders",))
            problems += _unproven(graders, data, root, document.file)
    if problems:
        raise problems_to_error(problems, document)
    values = {f.name: getattr(said, f.name) for f in dataclasses.fields(CaseDocument)}
    values |= {
        "graders": graders,
        "file": document.file,
        "root": root,
        "harnesses_file": find_harnesses_file(root, given),
        "document": data,
    }
    return cast("Callable[..., Case]", Case)(**values), document


def _said_of_all(data: Mapping[str, Json]) -> Submission:
    """What a case says that options of its graders may come from."""
    metadata = data.get("metadata")
    said = metadata if isinstance(metadata, dict) else {}
    return Submission(expected=data.get("expected"), metadata=said)


def _unproven(
    graders: Sequence[GraderSpec], data: Mapping[str, Json], root: str, file: str
) -> Iterator[Problem]:
    """Graders that are to judge apart, with nothing to say what that has to permit."""
    selftest = data.get("selftest")
    named = selftest.get("reference") if isinstance(selftest, dict) else None
    names = [named] if isinstance(named, str) else REFERENCES
    recordings, lock = Path(root, "recordings"), Path(root, lock_name(file))
    if lock.is_file() or any((recordings / name).is_dir() for name in names):
        return
    for number, spec in enumerate(graders):
        options = spec.options
        if options.get("isolation") == "process" and options.get("contract") is None:
            if spec.kind.grader.separable(options) is None:
                continue
            yield Problem(
                ("graders", number, "isolation"),
                "process needs a reference recording, which shows what tests need of right work",
                "record right work as recordings/reference and run assay selftest; or leave "
                "isolation out",
            )


def _id_problems(data: Mapping[str, Json]) -> list[Problem]:
    name = data.get("id")
    if not isinstance(name, str):
        return []
    if not name or name != name.strip():
        return [Problem(("id",), "an id is not empty and has no space around it")]
    if len(name) > _MAX_ID:
        return [Problem(("id",), f"an id has at most {_MAX_ID} characters, not {len(name)}")]
    if _CONTROL.search(name):
        return [Problem(("id",), "an id has no control characters")]
    fixtures = data.get("fixtures")
    if isinstance(fixtures, dict) and fixtures.get("subdir") is None:
        return inside_problem(name, ("id",))
    return []


def _is_at(problems: Sequence[Problem], path: codec.Path) -> bool:
    return any(problem.path == path for problem in problems)


_ABOVE_0: dict[str, Json] = {"exclusiveMinimum": 0}
_RATE: dict[str, Json] = {"exclusiveMinimum": 0, "maximum": 1}
_COMMIT: dict[str, Json] = {"pattern": "^[0-9a-fA-F]{7,64}$"}
_PAIRS: dict[str, Json] = {
    "oneOf": [
        {"required": ["harnesses", "models"], "not": {"required": ["entries"]}},
        {
            "required": ["entries"],
            "not": {"anyOf": [{"required": ["harnesses"]}, {"required": ["models"]}]},
        },
    ]
}
_ORIGINS: dict[str, Json] = {
    "oneOf": [
        {"required": ["path"]},
        {"required": ["git", "commit"]},
        {"required": ["repo", "commit"]},
        {"required": ["pypi"]},
    ]
}
_RULES: tuple[tuple[str, Mapping[str, Json]], ...] = (
    ("id", {"minLength": 1, "maxLength": 200}),
    ("task.prompt", {"minLength": 1}),
    ("source", _ORIGINS),
    ("source.commit", _COMMIT),
    ("source.sha256", {"pattern": "^[0-9a-fA-F]{64}$"}),
    ("source.pypi", {"pattern": "=="}),
    ("fixtures.commit", _COMMIT),
    ("matrix", _PAIRS),
    ("matrix.harnesses", {"minItems": 1, "uniqueItems": True}),
    ("matrix.models", {"minItems": 1, "uniqueItems": True}),
    ("matrix.entries", {"minItems": 1}),
    ("matrix.trials", {"minimum": 1}),
    ("environment.timeout_s", _ABOVE_0),
    ("expect.pass_threshold", {"minimum": 0, "maximum": 1}),
    ("expect.min_coverage", {"minimum": 0, "maximum": 1}),
    ("expect.pass_rate", _RATE),
    ("expect.pass_at_k.k", {"minimum": 1}),
    ("expect.pass_at_k.rate", _RATE),
    ("expect.pass_hat_k.k", {"minimum": 1}),
    ("expect.pass_hat_k.rate", _RATE),
    ("limits.agent_timeout_s", _ABOVE_0),
    ("limits.grading_timeout_s", _ABOVE_0),
    ("limits.model_calls", _ABOVE_0),
    ("limits.model_tokens", _ABOVE_0),
    ("limits.model_cost_usd", _ABOVE_0),
)


def case_schema() -> dict[str, Json]:
    """The JSON Schema (draft 2020-12) of a case file.

    What it accepts and the loader refuses: files that do not exist, and rules between fields that
    no editor would show well.
    """
    schema = codec.schema(CaseDocument)
    properties = cast("dict[str, dict[str, Json]]", schema["properties"])
    grader = spec_schema()
    schema["$defs"] = grader.pop("$defs")
    properties["graders"] |= {"minItems": 1, "items": grader}
    properties["$schema"] = {"type": "string"}
    for path, rules in _RULES:
        place = schema
        for name in path.split("."):
            place = cast("dict[str, dict[str, Json]]", _object(place)["properties"])[name]
        _object(place).update(rules)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "assay case",
        **schema,
    }


def _object(place: dict[str, Json]) -> dict[str, Json]:
    """The schema itself, or what it is unless null."""
    options = cast("list[dict[str, Json]]", place.get("anyOf", [place]))
    return next(option for option in options if option.get("type") != "null")
