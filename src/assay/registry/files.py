"""Graders as files, so that they can live in git beside what they grade.

A grader is ``KEY.yaml`` with its kind and definition; a function's source stands beside it as
``KEY.py``. One grader has one form, to the byte: what was exported and imported again is the same,
and a difference in git is a difference of the grader. The key is the file's name and nothing in a
file names another file, so that no file leads out of its directory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from assay.documents import (
    Document,
    DocumentError,
    DocumentFault,
    parse_document,
    problems_to_error,
)
from assay.errors import InputError, Location
from assay.registry.definitions import KINDS, Definition, read_definition
from assay.scoring.json_safe import Json
from assay.store.catalog import GraderRecord, GraderVersion
from assay.store.checks import valid_key
from assay.types import codec
from assay.types.codec import Problem

if TYPE_CHECKING:
    import yaml

MAX_FILES = 2_000
"""Files that are read at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderFile:
    """A grader as a file says it.

    Attributes:
        key: Its key: the file's name without ``.yaml``.
        definition: Its definition.
        name: For people; empty is the key.
        description: What it is for.
        feedback_key: The metric its scores are written to; empty is the key.
        file: The file, as messages name it; a function's own source.
    """

    key: str
    definition: Definition
    name: str = ""
    description: str = ""
    feedback_key: str = ""
    file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """What ``KEY.yaml`` may say."""

    kind: str
    definition: dict[str, Json] | None = None
    name: str = ""
    description: str = ""
    feedback_key: str = ""


def grader_files(record: GraderRecord) -> dict[str, str]:
    """A stored grader's files, by name; what has its default is left out."""
    said = {
        "name": record.name if record.name != record.key else "",
        "description": record.description,
        "feedback_key": record.feedback_key if record.feedback_key != record.key else "",
    }
    return _written(record.latest, {field: text for field, text in said.items() if text})


def definition_files(version: GraderVersion) -> dict[str, str]:
    """The files of one version: what decides its scores, and nothing else."""
    return _written(version, {})


def differences(older: GraderVersion, newer: GraderVersion) -> str:
    """What changed between two versions, as a unified diff; empty where they are the same."""
    return "".join(_changed_lines(older, newer))


def _changed_lines(older: GraderVersion, newer: GraderVersion) -> Iterable[str]:
    import difflib

    old, new = definition_files(older), definition_files(newer)
    for name in sorted({*old, *new}, reverse=True):
        lines = difflib.unified_diff(
            old.get(name, "").splitlines(keepends=True),
            new.get(name, "").splitlines(keepends=True),
            f"{name}@{older.number}",
            f"{name}@{newer.number}",
        )
        for line in lines:
            yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _written(version: GraderVersion, said: Mapping[str, Json]) -> dict[str, str]:
    definition = dict(version.definition)
    files: dict[str, str] = {}
    source = definition.get("source")
    if version.kind == "function" and isinstance(source, str):
        files[f"{version.key}.py"] = source
        del definition["source"]
    data: dict[str, Json] = {**said, "kind": version.kind}
    if definition:
        data["definition"] = definition
    return {f"{version.key}.yaml": yaml_text(data, sort_keys=True), **files}


_GRADE = re.compile(r"^(async[ \t]+)?def[ \t]+grade\b", re.MULTILINE)


def is_grader_file(text: str) -> bool:
    """Whether a YAML file says what a grader's file says: a kind of ours, and nothing foreign."""
    try:
        data = parse_document(text, file="").data
    except DocumentError:
        return False
    known = {field.name for field in fields(_Shape)}
    return isinstance(data, dict) and data.get("kind") in KINDS and set(data) <= known


def is_source_file(text: str) -> bool:
    """Whether a Python file looks like a function grader's source. It is not parsed."""
    return _GRADE.search(text) is not None


def read_grader_files(files: Mapping[str, str], *, folder: str = "") -> list[GraderFile]:
    """Read graders from the texts of their files.

    Raises:
        DocumentError: With everything that is wrong in all of them.
    """
    faults: list[DocumentFault] = []
    read: list[GraderFile] = []
    if len(files) > MAX_FILES:
        raise InputError(f"{len(files)} files; the most at once is {MAX_FILES}")
    for name in sorted(files):
        place = f"{folder}{name}"
        try:
            key, is_source = _key_of(name)
            if is_source and f"{key}.yaml" not in files:
                raise _fault(place, f"has no {key}.yaml beside it", "write: kind: function")
            if not is_source:
                read.append(_read_one(key, files[name], files.get(f"{key}.py"), place))
        except DocumentError as error:
            faults.extend(error.faults)
        except InputError as error:
            faults.append(DocumentFault(location=Location(file=place), message=error.message))
    if faults:
        raise DocumentError(faults)
    return read


def _key_of(name: str) -> tuple[str, bool]:
    """The key that a file is named after, and whether it is a source."""
    stem, _, suffix = name.rpartition(".")
    if suffix not in ("yaml", "py") or not stem:
        raise InputError(f"{name!r:.80} is not named KEY.yaml or KEY.py")
    return valid_key(stem), suffix == "py"


def _read_one(key: str, text: str, source: str | None, place: str) -> GraderFile:
    problems: list[Problem] = []
    document = parse_document(text, file=place, problems=problems)
    shape = codec.read(_Shape, document.data, (), problems)
    definition = None
    if isinstance(shape, _Shape):
        fields = _with_source(shape, source, key, problems)
        definition = read_definition(shape.kind, fields, ("definition",), problems)
    if problems or definition is None or not isinstance(shape, _Shape):
        raise _placed(problems, document, key)
    is_function = definition.kind == "function"
    return GraderFile(
        key=key,
        definition=definition,
        name=shape.name,
        description=shape.description,
        feedback_key=shape.feedback_key,
        file=place if source is None or not is_function else f"{place.removesuffix('.yaml')}.py",
    )


def _with_source(
    shape: _Shape, source: str | None, key: str, problems: list[Problem]
) -> dict[str, Json]:
    fields = dict(shape.definition or {})
    if shape.kind != "function" or source is None:
        return fields
    if "source" in fields:
        message = f"the source also stands in {key}.py"
        problems.append(Problem(("definition", "source"), message, "keep one of them"))
    return {**fields, "source": source}


def _placed(problems: list[Problem], document: Document, key: str) -> DocumentError:
    """The problems where they stand; a source that is missing is to be put into its own file."""
    missing = ("definition", "source")
    hint = f"put it into {key}.py, beside this file"
    placed = [
        Problem(p.path, p.message, hint, p.at_key) if p.path == missing and p.at_key else p
        for p in problems
    ]
    return problems_to_error(placed, document)


def _fault(place: str, message: str, hint: str) -> DocumentError:
    return DocumentError([DocumentFault(location=Location(file=place), message=message, hint=hint)])


# A text is quoted unless it is a plain word, so that no reader, of whatever
# version of YAML, takes it for a number or a date. A text of several lines is a block of lines.

_WORD = re.compile(r"(?!NaN$|Infinity$)[A-Za-z]([A-Za-z0-9 _./-]*[A-Za-z0-9])?")
_LINES = re.compile(r"\S[ -~\u00a1-\u167f]*(\n(\S[ -~\u00a1-\u167f]*|[ ]+\S[ -~\u00a1-\u167f]*)?)+")
"""What a block of lines can hold: visible characters, and no white space at its beginning."""


def yaml_text(data: Json, *, sort_keys: bool = False) -> str:
    """Write plain data as YAML; `assay.documents` reads the same value back."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Writes texts in the styles above, and lists inside their key's indentation."""

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - PyYAML's
            super().increase_indent(flow, False)

        def ignore_aliases(self, data: object) -> bool:
            del data
            return True

    Dumper.add_representer(str, _text)
    return yaml.dump(
        data,
        Dumper=Dumper,
        sort_keys=sort_keys,
        allow_unicode=True,
        default_flow_style=False,
        width=1 << 30,
    )


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    import yaml

    del dumper
    if _WORD.fullmatch(text):
        style = None  # PyYAML itself quotes `yes`, `null` and their like
    elif "\n" in text and _LINES.fullmatch(text) and not re.search(r"[ \t]$", text, re.MULTILINE):
        style = "|"
    else:
        style = '"'
    return yaml.ScalarNode("tag:yaml.org,2002:str", text, style=style)
