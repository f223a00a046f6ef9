"""The store and the definition that options of ``assay graders`` name."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from assay.cli.fields import fields_of
from assay.cli.options import is_shared
from assay.cli.verbs import store_of
from assay.errors import InputError, Location
from assay.graders.functions.source import read_source
from assay.registry import Registry
from assay.registry.policy import Permissions
from assay.scoring.json_safe import Json
from assay.store.projects import Projects
from assay.types.codec import ShapeError

if TYPE_CHECKING:
    from assay.registry import Definition
    from assay.registry.files import GraderFile
    from assay.store.catalog import GraderVersion
    from assay.types.submission import Submission


def permitted() -> Permissions:
    """What graders may do that are validated here: import classes in a store of one's own."""
    return Permissions(custom_code=not is_shared(), internal=True)


@contextmanager
def opened(
    given: Namespace, *, make: bool = False, change: str = "", **what: Json
) -> Generator[Registry]:
    """The graders of the project that options name.

    Args:
        given: The options.
        make: Whether to make the store and the project if they are not there.
        change: What is changed with them, for the log of changes.
        **what: Of what, likewise.
    """
    with store_of(given, make=make) as database:
        if make and given.project not in {p.key for p in Projects(database).all()}:
            from assay.service.local import do, local_desk
            from assay.service.site import create_project

            do(create_project, local_desk(database), given.project)
            print(f"made project {given.project!r}", file=sys.stderr)
        yield Registry(database, given.project)
        if change:
            from assay.service.local import local_desk

            local_desk(database, given.project).note(change, what)


def described(
    given: Namespace, before: GraderVersion | None = None
) -> tuple[GraderFile | None, dict[str, Json]]:
    """The grader that options describe, None where none of them says anything of it.

    An update of the same kind takes over the fields that no option speaks of, which are given, too.
    An endpoint at another address is another service, so that nothing is: not its secret either.
    """
    from assay.registry.files import GraderFile

    file, fields, kept = cast("str | None", given.file), fields_of(given.set), dict[str, Json]()
    kind, name, feedback_key = (_text(fields, one) for one in ("kind", "name", "feedback_key"))
    if file is not None and not file.endswith(".py") and is_definition(file):
        if fields or kind:
            raise InputError(f"{file} is a whole definition", hint="write there what --set says")
        said = grader_of_file(file)
    else:
        kind = _kind_of(kind, file, before if fields else None)
        if kind is None:
            given.name, given.feedback_key = name or None, feedback_key or None
            return None, {}
        if file is not None and file.endswith(".py"):
            fields["source"] = read_source(file)
        elif file is not None:
            fields["graders"] = _grader_list(file)
        if before is not None and before.kind == kind and not _has_moved(before, fields):
            kept = {n: value for n, value in before.definition.items() if n not in fields}
        data = {name: value for name, value in {**kept, **fields}.items() if value is not None}
        said = GraderFile(key=given.key, definition=_read(kind, data, file))
    named = replace(
        said,
        key=given.key,
        name=name or said.name,
        description=given.description or said.description,
        feedback_key=feedback_key or said.feedback_key,
    )
    return named, kept


def _kind_of(said: str, file: str | None, before: GraderVersion | None) -> str | None:
    """The kind of grader that is meant; of fields alone it is the one before."""
    own = "" if file is None else "function" if file.endswith(".py") else "declared"
    if said and own and said != own:
        raise InputError(f"{file} is of the kind {own}, not {said}", hint="leave one of them out")
    return said or own or (None if before is None else before.kind)


def _text(fields: dict[str, Json], name: str) -> str:
    """Take a field that is text."""
    value = fields.pop(name, "")
    if not isinstance(value, str):
        raise InputError(f"--set {name} must be text, got {value!r:.80}")
    return value


def _has_moved(before: GraderVersion, fields: Mapping[str, Json]) -> bool:
    url = before.definition.get("url")
    return fields.get("url", url) != url


def _grader_list(file: str) -> Json:
    from assay.documents import read_document

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
        if file is None or file.endswith(".py"):  # then no file says the fields
            raise
        raise _in_file(file, error) from error


def _in_file(file: str, error: ShapeError) -> InputError:
    """The problems of a list of graders, where they stand in its file."""
    from assay.documents import problems_to_error, read_document

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

    return [(row.id, row.submission) for file in files for row in read_rows(file)]


def is_definition(file: str) -> bool:
    """Whether a file is a grader's, as `export` writes it, and no list of graders."""
    from assay.documents import read_document

    data = read_document(file).data if Path(file).is_file() else None
    return not isinstance(data, list) and not (isinstance(data, dict) and "graders" in data)
