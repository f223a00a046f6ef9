"""The store and the definition that options of ``assay graders`` name."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from assay.cli.nouns import key_and_number, place_of, store_of
from assay.cli.options import is_shared
from assay.errors import InputError, Location
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
            from assay.service.operation import do, local_desk
            from assay.service.site import create_project

            do(create_project, local_desk(database), given.project)
            print(f"made project {given.project!r}", file=sys.stderr)
        yield Registry(
            database,
            given.project,
            allow_custom_code=not is_shared(given) if trusted is None else trusted,
            allow_internal=trusted is not False,
        )
        if change:
            from assay.service.operation import local_desk

            local_desk(database, given.project).note(change, what)


def key_and_version(given: Namespace) -> tuple[str, int | None]:
    """The key and the version of ``KEY`` or ``KEY@N``, and of ``--version``."""
    key, number = key_and_number(given.key)
    if None not in (number, given.version) and number != given.version:
        raise InputError(
            f"{given.key!r} and --version {given.version} are two versions", hint="keep one"
        )
    return key, number or given.version


def standing_of(given: Namespace, version: GraderVersion) -> Standing | None:
    """The calibration card of a stored grader; None where there is none."""
    from assay.reports.standing import stored_standing

    with Database.open(place_of(given)) as database:
        return stored_standing(database, version)


_KINDS = {
    "function": "function",
    "judge": "binary_judge",
    "prebuilt": "prebuilt_judge",
    "endpoint": "external_endpoint",
    "graders": "declared",
    "custom": "custom",
}
"""The option that says what a grader is, and the kind."""

_OPTIONS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "isolation": ("isolation", ("function",)),
    "no_range": ("range", ("function", "endpoint")),
    "range": ("range", ("function", "endpoint")),
    "model": ("judge_model", ("judge", "prebuilt")),
    "examples": ("examples", ("judge",)),
    "system_template": ("system_template", ("judge",)),
    "user_template": ("user_template", ("judge",)),
    "variables": ("template_variables", ("judge",)),
    "allow_na": ("allow_na", ("judge",)),
    "threshold": ("threshold", ("graders",)),
    "protocol": ("protocol", ("endpoint",)),
    "secret_env": ("secret_env", ("endpoint",)),
    "auth": ("auth", ("endpoint",)),
    "timeout": ("timeout_seconds", ("endpoint",)),
    "batch": ("batch", ("endpoint",)),
    "allow_internal": ("allow_internal", ("endpoint",)),
}
"""Each further option: the definition's field, and the kinds that take it."""


_OWN_FIELDS = {
    "function": "source",
    "judge": "criteria",
    "prebuilt": "type",
    "endpoint": "url",
    "graders": "graders",
    "custom": "path",
}
"""The option that says what a grader is, and the field that it gives."""


def kept_fields(given: Namespace, before: GraderVersion) -> dict[str, Json]:
    """What an update takes over: fields of a version of the same kind that no option speaks of.

    An endpoint at another address is another service, so that nothing is: not its secret either.
    """
    form = _form(given)
    if form not in _OWN_FIELDS or before.kind != _KINDS[form]:
        return {}
    if form == "endpoint" and before.definition.get("url") != given.endpoint:
        return {}
    spoken = {_OPTIONS[name][0] for name in _OPTIONS if _is_given(given, name)}
    spoken.add(_OWN_FIELDS[form])
    return {name: value for name, value in before.definition.items() if name not in spoken}


def described(given: Namespace, kept: Mapping[str, Json] | None = None) -> GraderFile | None:
    """The grader that options describe; None where none of them says what it is."""
    from assay.registry.files import GraderFile

    form = _form(given)
    options = {name: getattr(given, name) for name in _OPTIONS if _is_given(given, name)}
    for name in options:
        takes = _OPTIONS[name][1]
        if form not in takes:
            wanted = " or ".join(f"--{kind}" for kind in takes)
            raise InputError(f"{_flag(name)} goes with {wanted}", hint="leave it out")
    if form is None:
        return None
    kept = kept or {}
    if form == "file":
        said = grader_of_file(given.file)
    else:
        value = cast("str", getattr(given, form))
        data = {**kept, **_own_fields(form, value)}
        options.pop("no_range", None)  # it said what not to keep
        data |= {_OPTIONS[name][0]: _option(name, option) for name, option in options.items()}
        said = GraderFile(key=given.key, definition=_read(form, data, value))
    return replace(
        said,
        key=given.key,
        name=given.name or said.name,
        description=given.description or said.description,
        feedback_key=given.feedback_key or said.feedback_key,
    )


def _form(given: Namespace) -> str | None:
    return next((name for name in (*_KINDS, "file") if getattr(given, name) is not None), None)


def _is_given(given: Namespace, name: str) -> bool:
    return getattr(given, name) not in (None, False)


def _own_fields(form: str, value: str) -> dict[str, Json]:
    """What the option that names the kind says itself."""
    if form == "function":
        from assay.graders.functions.source import read_source

        return {"source": read_source(value)}
    if form == "graders":
        return {"graders": _grader_list(value)}
    return {_OWN_FIELDS[form]: value} if value or form != "custom" else {}


_TEXT_FILES = ("system_template", "user_template")
_MOST_BYTES = 1 << 20


def _option(name: str, given: object) -> Json:
    """The value of an option; of those that name a file, what is in it."""
    if name in _TEXT_FILES:
        return _text_of(cast("str", given))
    if name == "variables":
        return _json_of(_text_of(cast("str", given)), cast("str", given))
    if name == "examples":
        lines = enumerate(_text_of(cast("str", given)).splitlines(), 1)
        return [_json_of(line, cast("str", given), n) for n, line in lines if line.strip()]
    return cast("Json", given)


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


def _read(form: str, data: dict[str, Json], value: str) -> Definition:
    from assay.registry import definition_from

    try:
        return definition_from(_KINDS[form], data)
    except ShapeError as error:
        if form == "graders":
            raise _in_file(value, error) from error
        names = {field: _flag(name) for name, (field, _) in _OPTIONS.items()}
        first = error.problems[0]
        where = names.get(str(first.path[0]) if first.path else "", f"--{form}")
        inside = f"{first.field}: " if len(first.path) > 1 else ""
        hint = first.hint.replace("allow_internal: true", "--allow-internal")
        raise InputError(f"{where}: {inside}{error.message}", hint=hint) from error


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


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


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
