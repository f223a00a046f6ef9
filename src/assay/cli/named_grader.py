"""The grader that a command names: a function's file, a grader file, or a stored one."""

from __future__ import annotations

import hashlib
import inspect
import os
import re
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from assay.cli.options import (
    file_and_name,
    file_warnings,
    is_trusted,
    key_and_number,
    tell_warnings,
)
from assay.errors import AssayError, InputError, nearest
from assay.graders.digest import grader_digest, parts_digest
from assay.graders.kinds import load_file
from assay.graders.spec import GraderSpec, pass_mark
from assay.scoring.json_safe import Json
from assay.tasks.formats import has_rows

if TYPE_CHECKING:
    from types import ModuleType

    from assay.eval.calibration.asking import Target
    from assay.store.catalog import GraderVersion
    from assay.store.database import Database


def named_grader(given: Namespace, database: Database) -> Target:
    """Find a grader to calibrate.

    Args:
        given: With ``grader`` (FILE.py, FILE.py:FUNCTION, a YAML file, KEY or KEY@VERSION) and
            ``project``; ``db`` and ``trust_authors`` say what stored graders may do.
        database: Where stored graders are.
    """
    file, name = file_and_name(given.grader)
    if file.endswith(".py"):
        return _of_function(file, name)
    return _stored(given, database) if names_stored(file) else _of_file(file)


def in_order(grader: str, rows: str) -> tuple[str, str]:
    """A grader and rows, also where they were given the other way round."""
    is_swapped = has_rows(grader) or Path(rows).suffix in (".py", ".yaml", ".yml")
    return (rows, grader) if is_swapped and not has_rows(rows) else (grader, rows)


def names_stored(text: str) -> bool:
    """Whether it is the key of a stored grader, perhaps with a version, rather than a file."""
    is_file = Path(text).suffix in (".yaml", ".yml", ".json") or Path(text).exists()
    return not is_file and _KEY.fullmatch(text) is not None


_KEY = re.compile(r"[a-z0-9][a-z0-9._-]*(@.*)?")


def _of_function(file: str, name: str) -> Target:
    from assay.endpoint.scorers import scorer_of
    from assay.eval.calibration.asking import Target

    function = function_of(file, name)
    source = Path(file).read_bytes()
    called = str(getattr(function, "__name__", Path(file).stem))
    digest = hashlib.sha256(b"assay function 1\0" + called.encode() + b"\0" + source).hexdigest()
    return Target(
        name=Path(file).name,
        kind="function",
        digest=digest[:16],
        alias=_in_sandbox(file),
        made_of={"source": hashlib.sha256(source).hexdigest()[:16]},
        score=scorer_of(function),
    )


def _in_sandbox(file: str) -> str:
    """The digest that the file's scores have in `assay grade`."""
    options: dict[str, Json] = {"file": str(Path(file).resolve()), "isolation": "call"}
    try:
        return grader_digest(GraderSpec(type="function", options=options))
    except AssayError:  # no function that the sandbox would take
        return ""


def _of_file(file: str) -> Target:
    from assay.endpoint.scorers import scorer_of_graders
    from assay.eval.calibration.asking import Target
    from assay.eval.calibration.stored import models_of
    from assay.tasks.grader_files import load_graders

    specs = load_graders(file, alone=True)
    tell_warnings(file, file_warnings(specs))
    (only,) = specs if len(specs) == 1 else (None,)
    stem, whole = Path(file).stem, Path(file).name
    return Target(
        name=whole if only is None else only.name or stem,
        is_named=only is None or bool(only.name),
        kind="combined" if only is None else only.type,
        digest=parts_digest((grader_digest(s), s.weight, s.gate) for s in specs),
        made_of=_declared(specs),
        models=models_of(specs),
        threshold=pass_mark(specs),
        score=scorer_of_graders(specs),
    )


def _declared(specs: Sequence[GraderSpec]) -> dict[str, Json]:
    """What graders were declared with, as it is recorded beside their scores."""
    if len(specs) == 1:
        return _recorded(specs[0])
    return {spec.label: cast("Json", _recorded(spec)) for spec in specs}


def _recorded(spec: GraderSpec) -> dict[str, Json]:
    grader = spec.kind.grader
    options = grader.record(spec.options)
    return {"type": spec.type, **options}


def _stored(given: Namespace, database: Database) -> Target:
    from assay.eval.calibration.stored import stored_target
    from assay.registry.policy import Permissions

    version, trusted = stored_version(given, database), is_trusted(given)
    return stored_target(version, Permissions(custom_code=trusted, internal=trusted))


def stored_version(given: Namespace, database: Database) -> GraderVersion:
    """The version that ``KEY`` or ``KEY@N`` names; what is worth a look in it is told."""
    from assay.registry import Registry
    from assay.registry.definitions import definition_of
    from assay.registry.validation import definition_warnings

    key, number = key_and_number(given.grader)
    version = Registry(database, given.project).version(key, number)
    named = f"{version.key}@{version.number}"
    tell_warnings(named, definition_warnings(definition_of(version)))
    return version


def function_of(file: str, name: str = "") -> Callable[..., object]:
    """The function of a file that grades: the one that is named, ``grade``, or the only one.

    The file is its user's own code, and is run.
    """
    if not os.access(file, os.R_OK) or not Path(file).is_file():
        raise InputError(f"there is no file {file}, or it may not be read")
    try:
        module = cast("ModuleType", load_file(file))
    except (Exception, SystemExit) as error:  # the author's code may fail in any way
        raise InputError(f"{file} cannot be loaded: {type(error).__name__}: {error}") from error
    own = {
        key
        for key, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__
    }
    public = [key for key in sorted(own) if not key.startswith("_")]
    wanted = name or ("grade" if "grade" in own or len(public) != 1 else public[0])
    found: object = getattr(module, wanted, None)
    if not callable(found):
        raise InputError(
            f"{file} has no function {wanted!r}", hint=nearest(wanted, public) or "write one"
        )
    return found
