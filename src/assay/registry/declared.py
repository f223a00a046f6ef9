"""Declared graders that are stored: what they may not say, and reading them.

A case's graders may name files beside the case and classes of the author's. A stored grader runs on
other machines, for other people: it may name neither, and saying so must come before anything looks
whether the file is there, or imports the class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from assay.errors import InputError
from assay.graders.kinds import Kind, kind_of
from assay.graders.paths import named_paths
from assay.graders.spec import GraderSpec, read_spec
from assay.registry.definition import secret_problems
from assay.scoring.json_safe import Json
from assay.types import codec
from assay.types.codec import Problem
from assay.types.submission import SUBMISSION_PARTS

__all__ = ["ROW_PARTS", "declared_problems", "lacking_parts", "read_declared"]

ROW_PARTS = frozenset({"answer", "question", "expected", "thread", "metadata"})
"""Parts of a submission that a row of a dataset may have."""

_MOST = 100
_NOWHERE = "/nonexistent"
"""Where relative paths would start from, if any got that far."""


def declared_problems(graders: Sequence[Mapping[str, Json]]) -> list[Problem]:
    """What is wrong with a list of declared graders that is to be stored."""
    problems: list[Problem] = []
    if not graders:
        problems.append(Problem(("graders",), "there are no graders", "declare at least one"))
    if len(graders) > _MOST:
        problems.append(Problem(("graders",), f"{len(graders)} graders; the limit is {_MOST}"))
        return problems
    for number, grader in enumerate(graders):
        before = len(problems)
        problems.extend(_foreign(dict(grader), ("graders", number)))
        if len(problems) == before:
            read_spec(dict(grader), ("graders", number), problems, base=_NOWHERE)
    if not problems and not any(_gives_credit(grader) for grader in graders):
        message = "no grader gives credit: all are gates or penalties"
        problems.append(Problem(("graders",), message, "add one with a weight above 0"))
    return problems


def _gives_credit(grader: Mapping[str, Json]) -> bool:
    weight = grader.get("weight", 1.0)
    return grader.get("gate") is not True and isinstance(weight, int | float) and weight > 0


def read_declared(
    graders: Sequence[Mapping[str, Json]], problems: list[Problem]
) -> tuple[GraderSpec, ...]:
    """Read declared graders that `declared_problems` found nothing wrong with."""
    found = [
        read_spec(dict(grader), ("graders", number), problems, base=_NOWHERE)
        for number, grader in enumerate(graders)
    ]
    return tuple(spec for spec in found if spec is not None)


def lacking_parts(specs: Sequence[GraderSpec]) -> Iterator[tuple[str, str]]:
    """What graders need that no row of a dataset has, as (grader, part)."""
    for spec in specs:
        kind = spec.kind
        for name, parameter in kind.parameters.items():
            part = kind.filled_from.get(name, name)
            given = name in spec.options or not parameter.required
            if part in SUBMISSION_PARTS and part not in ROW_PARTS and not given:
                yield spec.label, part


def _foreign(data: Json, path: codec.Path) -> Iterator[Problem]:
    """Classes, files and other secrets that a declaration names, at any depth."""
    if isinstance(data, dict):
        name = data.get("type")
        if isinstance(name, str) and name.startswith("python:"):
            hint = "store it as a grader of the kind 'custom'"
            yield Problem((*path, "type"), "a stored grader imports no class", hint)
        elif isinstance(name, str):
            yield from _files(name, data, path)
        secret = data.get("secret_env")
        if name == "external_endpoint" and isinstance(secret, str):
            for problem in secret_problems(secret):
                yield replace(problem, path=(*path, *problem.path))
        for key, item in data.items():
            yield from _foreign(item, (*path, key))
    elif isinstance(data, list):
        for number, item in enumerate(data):
            yield from _foreign(item, (*path, number))


def _files(name: str, data: Mapping[str, Json], path: codec.Path) -> Iterator[Problem]:
    try:
        kind: Kind = kind_of(name)
    except InputError:
        return  # unknown: `read_spec` says so, or it is no grader's type at all
    for option, parameter in kind.parameters.items():
        if option in data and named_paths(parameter.annotation, data[option]):
            message = f"{option!r} names a file, and a stored grader has none beside it"
            inline = "give its text as 'source'" if "source" in kind.parameters else ""
            hint = inline or "write the content into the definition, or keep it in a case"
            yield Problem((*path, option), message, hint)
