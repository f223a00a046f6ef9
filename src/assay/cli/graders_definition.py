"""The store and the definition that options of ``assay graders`` name."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from assay.cli.options import is_shared, key_and_number, store_place
from assay.cli.verbs import store_of
from assay.errors import InputError, Location
from assay.graders.functions.source import read_source
from assay.registry import Registry
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import read_json
from assay.store.database import Database
from assay.store.projects import Projects
from assay.types.codec import ShapeError

if TYPE_CHECKING:
    from assay.registry import Definition
    from assay.registry.files import GraderFile
    from assay.reports.standing import Standing
    from assay.store.catalog import GraderVersion
    from assay.types.submission import Submission


@contextmanager
def opened(
    given: Namespace,
    *,
    trusted: bool | None = None,
    make: bool = False,
    change: str = "",
    **what: Json,
) -> Generator[Registry]:
    """The graders of the project that options name.

    Args:
        given: The options.
        trusted: Whether classes of graders' authors are imported, and endpoints on private
            networks called. None allows the first in a store of one's own, the second everywhere.
        make: Whether to make the store and the project if they are not there.
        change: What is changed with them, for the log of changes.
        **what: Of what, likewise.
    """
    with store_of(given, make=make) as database:
        if make and given.project not in {p.key for p in Projects(database).all()}:
            from assay.service.here import do, local_desk
            from assay.service.site import create_project

            do(create_project, local_desk(database), given.project)
            print(f"made project {given.project!r}", file=sys.stderr)
        yield Registry(
            database,
            given.project,
            allow_custom_code=not is_shared() if trusted is None else trusted,
            allow_internal=trusted is not False,
        )
        if change:
            from assay.service.here import local_desk

            local_desk(database, given.project).note(change, what)


def key_and_version(given: Namespace) -> tuple[str, int | None]:
    """The key and the version of ``KEY`` or ``KEY@N``, and of ``--version``."""
    key, number = key_and_number(given.key)
    if None not in (number, given.version) and number != given.version:
        raise InputError(
            f"{given.key!r} and --version {given.version} are two versions", hint="keep one"
        )
    return key, number or given.version


def standing_of(version: GraderVersion) -> Standing | None:
    """The calibration card of a stored grader; None where there is none."""
    from assay.reports.standing import stored_standing

    with Database.open(store_place()) as database:
        return stored_standing(database, version)


_MOST_BYTES = 1 << 20


def described(
    given: Namespace, before: GraderVersion | None = None
) -> tuple[GraderFile | None, dict[str, Json]]:
    """The grader that options describe, None where none of them says anything of it.

    An update of the same kind takes over the fields that no option speaks of, which are given, too.
    An endpoint at another address is another service, so that nothing is: not its secret either.
    """
    from assay.registry.files import GraderFile

    fields, kind, kept = fields_of(given.set), cast("str | None", given.kind), dict[str, Json]()
    if given.file is not None:
        if fields:
            raise InputError("--set does not go with --file", hint="write it in the file")
        said = grader_of_file(given.file)
    else:
        if given.function is not None:
            kind, fields = "function", {**fields, "source": read_source(given.function)}
        elif given.graders is not None:
            kind, fields = "declared", {**fields, "graders": _grader_list(given.graders)}
        elif kind is None and fields and before is not None:
            kind = before.kind
        if kind is None:
            return None, {}
        if before is not None and before.kind == kind and not _has_moved(before, fields):
            kept = {n: value for n, value in before.definition.items() if n not in fields}
        data = {name: value for name, value in {**kept, **fields}.items() if value is not None}
        said = GraderFile(key=given.key, definition=_read(kind, data, given.graders))
    named = replace(
        said,
        key=given.key,
        name=given.name or said.name,
        description=given.description or said.description,
        feedback_key=given.feedback_key or said.feedback_key,
    )
    return named, kept


def _has_moved(before: GraderVersion, fields: Mapping[str, Json]) -> bool:
    url = before.definition.get("url")
    return fields.get("url", url) != url


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


def _grader_list(file: str) -> Json:
    from assay.tasks.document import read_document

    data = read_document(file).data
    if isinstance(data, dict) and set(data) == {"graders"}:
        return data["graders"]
    if isinstance(data, list):
        return data
    where = Location(file=file)
    raise InputError("is not a list of graders", location=where, hint="or a mapping with `graders`")


def _read(kind: str, data: Mapping[str, Json], file: str | None) -> Definition:
    from assay.registry import definition_from

    try:
        return definition_from(kind, data)
    except ShapeError as error:
        raise error if file is None else _in_file(file, error) from error


def _in_file(file: str, error: ShapeError) -> InputError:
    """The problems of a list of graders, where they stand in its file."""
    from assay.tasks.document import problems_to_error, read_document

    document = read_document(file)
    inside = isinstance(document.data, list)
    problems = [
        replace(p, path=p.path[1:]) if inside and p.path[:1] == ("graders",) else p
        for p in error.problems
    ]
    return problems_to_error(problems, document)


def grader_of_file(file: str) -> GraderFile:
    """The grader in a grader's file."""
    from assay.registry.files import read_grader_files
    from assay.registry.imports import read_folder

    if Path(file).is_dir():
        raise InputError(f"{file!r} is a directory", hint="name one KEY.yaml in it")
    files, shown = read_folder(file)
    (grader,) = read_grader_files(files, folder=shown)
    return grader


def read_samples(files: list[str]) -> list[tuple[str, Submission]]:
    """The rows of some datasets, with their ids."""
    from assay.tasks.rows import read_rows

    return [(row.id, row.submission) for file in files for row in read_rows(file, graders=())]
