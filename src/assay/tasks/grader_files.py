"""Read declared graders: the list in a case, or one that stands alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from assay.documents import parse_document, problems_to_error, read_document
from assay.errors import InputError, Location, nearest
from assay.graders.kinds import kind_of
from assay.graders.paths import resolve_paths
from assay.graders.spec import GraderSpec, credit_problems, read_spec
from assay.scoring.json_safe import Json
from assay.tasks.formats import has_rows
from assay.types import codec
from assay.types.codec import Problem
from assay.types.submission import Submission

_INJECT = "inject"


def load_graders(file_or_text: str, *, alone: bool = False) -> tuple[GraderSpec, ...]:
    """Read graders that stand alone: a list of them, or a mapping with ``graders``.

    Args:
        file_or_text: A YAML or JSON file, or its text (which has more than one line, or starts
            with ``-``, ``[`` or ``{``). Paths are relative to the file, or to the current
            directory.
        alone: Whether they have to make a reward by themselves, so that one must add credit.
    """
    is_text = "\n" in file_or_text or file_or_text.lstrip().startswith(("- ", "[", "{"))
    if not is_text and has_rows(file_or_text):
        raise InputError(
            "it is a file of rows, and graders are YAML",
            location=Location(file_or_text),
            hint="assay grade ROWS GRADERS.yaml",
        )
    read = parse_document if is_text else read_document
    problems: list[Problem] = []
    document = read(file_or_text, problems=problems)
    base = str(Path.cwd()) if is_text else str(Path(file_or_text).resolve().parent)
    data, path = document.data, ()
    if isinstance(data, dict):
        if "graders" not in data:
            near = [key for key in data if nearest(key, ["graders"]).startswith("did you mean")]
            hint = f"did you write {near[0]!r} for it?" if near else "or write a list of graders"
            problems.append(Problem(("graders",), "'graders' is required", hint, at_key=True))
            raise problems_to_error(problems, document)
        data, path = data["graders"], ("graders",)
    graders = read_graders(data, path, problems, base=base)
    if alone and not problems:
        problems = credit_problems(graders, path)
    if problems:
        raise problems_to_error(problems, document)
    return graders


def read_graders(
    data: Json,
    path: codec.Path,
    problems: list[Problem],
    *,
    base: str,
    injected_later: bool = False,
    row: Submission | None = None,
) -> tuple[GraderSpec, ...]:
    """Read a list of graders, adding to ``problems`` instead of raising.

    Args:
        data: The list as it stands in the document.
        path: Where it stands.
        problems: What is wrong is added to these.
        base: Directory that paths are relative to.
        injected_later: Whether injected files come from elsewhere, so that they cannot be
            checked yet; their paths stay as they are written (see `bind_injected`).
        row: What the case says that options may come from; see `read_spec`.
    """
    if not isinstance(data, list):
        problems.append(Problem(path, "expected a list of graders"))
        return ()
    if not data:
        problems.append(Problem(path, "there are no graders", "declare at least one"))
    specs: list[GraderSpec | None] = []
    for number, item in enumerate(data):
        here = (*path, number)
        if injected_later and isinstance(item, dict) and _INJECT in item:
            specs.append(_read_unbound(item, here, problems, base, row))
        else:
            specs.append(read_spec(item, here, problems, base=base, row=row))
    return tuple(spec for spec in specs if spec is not None)


def bind_injected(graders: Sequence[GraderSpec], base: str) -> tuple[GraderSpec, ...]:
    """Make the paths of injected files absolute, now that their directory is there."""
    problems: list[Problem] = []
    bound: list[GraderSpec] = []
    for number, spec in enumerate(graders):
        options = dict(spec.options)
        if _INJECT in options:
            options[_INJECT] = resolve_paths(
                spec.kind.parameters[_INJECT].annotation,
                options[_INJECT],
                base=base,
                path=("graders", number, _INJECT),
                problems=problems,
            )
        bound.append(dataclasses.replace(spec, options=options))
    if problems:
        raise codec.ShapeError(problems)
    return tuple(bound)


def _read_unbound(
    item: dict[str, Json],
    path: codec.Path,
    problems: list[Problem],
    base: str,
    row: Submission | None,
) -> GraderSpec | None:
    others = {key: value for key, value in item.items() if key != _INJECT}
    spec = read_spec(others, path, problems, base=base, row=row)
    if spec is None:
        return None
    parameter = kind_of(spec.type).parameters.get(_INJECT)
    if parameter is None:
        return read_spec(item, path, problems, base=base, row=row)
    codec.read(parameter.annotation, item[_INJECT], (*path, _INJECT), problems)
    return dataclasses.replace(spec, options={**spec.options, _INJECT: item[_INJECT]})
