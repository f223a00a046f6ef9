"""Options that name a file of the case: checked and made absolute when the case is loaded."""

from __future__ import annotations

import os
import typing
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from typing import Annotated, TypeAlias, cast

from assay.scoring.json_safe import Json
from assay.types import codec
from assay.types.codec import Problem

_MARK = "a file or directory of the case"

CasePath: TypeAlias = Annotated[str, _MARK]
"""A path relative to the case (or to the grader file), which must exist."""


def resolve_paths(
    annotation: object, data: Json, *, base: str, path: codec.Path, problems: list[Problem]
) -> Json:
    """Make every `CasePath` in some data absolute, adding a problem for each that is missing."""
    return _each(annotation, data, path, lambda given, at: _existing(given, base, at, problems))


def moved_paths(annotation: object, data: Json, change: Callable[[str], str]) -> Json:
    """Some data with another path for every `CasePath`."""
    return _each(annotation, data, (), lambda given, _: change(given))


def named_paths(annotation: object, data: Json) -> list[str]:
    """Every `CasePath` in some data."""
    found: list[str] = []

    def note(given: str, at: codec.Path) -> str:
        del at
        found.append(given)
        return f"{given}/"  # anything else: that it was a path ends the search among a union

    _each(annotation, data, (), note)
    return found


def names_path(annotation: object) -> bool:
    """Whether a `CasePath` stands anywhere in an annotation."""
    if isinstance(annotation, type) and is_dataclass(annotation):
        hints = typing.get_type_hints(annotation, include_extras=True)
        return any(map(names_path, hints.values()))
    arguments = typing.get_args(annotation)
    return _MARK in arguments or any(map(names_path, arguments))


def _each(
    annotation: object, data: Json, path: codec.Path, change: Callable[[str, codec.Path], str]
) -> Json:
    """Change every `CasePath` in some data."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        if _MARK not in arguments:
            return _each(arguments[0], data, path, change)
        return change(data, path) if isinstance(data, str) else data
    if isinstance(data, list) and origin in (list, tuple, Sequence):
        inside = arguments[0]
        return [_each(inside, item, (*path, n), change) for n, item in enumerate(data)]
    if isinstance(data, dict) and isinstance(annotation, type) and is_dataclass(annotation):
        hints = typing.get_type_hints(annotation, include_extras=True)
        known = {field.name for field in fields(annotation)}
        return {
            key: _each(hints[key], item, (*path, key), change) if key in known else item
            for key, item in data.items()
        }
    for option in _options(cast("object", annotation)):
        resolved = _each(option, data, path, change)
        if resolved != data:
            return resolved
    return data


def _options(annotation: object) -> tuple[object, ...]:
    import types

    is_union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    return cast("tuple[object, ...]", typing.get_args(annotation)) if is_union else ()


def _existing(given: str, base: str, path: codec.Path, problems: list[Problem]) -> str:
    # os.path answers False to a NUL byte, a link loop or a name too long, where Path raises.
    found = os.path.join(base, given)  # noqa: PTH118
    if not os.path.exists(found):  # noqa: PTH110
        shown = given if len(given) <= 100 else f"{given[:100]}..."
        hint = f"looked for it in {base}"
        if " " in given:  # the text itself, such as a rubric in prose
            hint += "; here stands the path of a file (model_judge takes the text as 'words')"
        problems.append(Problem(path, f"{shown!r} does not exist", hint))
        return given
    return os.path.realpath(found)
