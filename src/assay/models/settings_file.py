"""The settings file of models: YAML that `ASSAY_MODELS` names, read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import cast

from assay.errors import InputError, Location, nearest
from assay.models.settings import EndpointSettings, ModelSettings

__all__ = ["read_settings_file"]

_FORBIDDEN = frozenset("#:/ ")
_NOT_IN_A_FILE = frozenset({"secrets"})


def read_settings_file(file: str) -> dict[str, object]:
    """The fields of `ModelSettings` that a file gives.

    Args:
        file: Path of a YAML file: a mapping with the fields of `ModelSettings`, and under
            ``endpoints`` a mapping of names to the fields of `EndpointSettings`.

    Raises:
        InputError: If it cannot be read or says what is not known; names the field.
    """
    import yaml

    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise InputError(
            f"the file of ASSAY_MODELS cannot be read: {reason}", location=Location(file)
        ) from None
    try:
        content: object = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - a safe loader either way
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else None
        problem = getattr(error, "problem", None) or "it is no YAML"
        raise InputError(str(problem), location=Location(file, line)) from None
    known = [field.name for field in fields(ModelSettings) if field.name not in _NOT_IN_A_FILE]
    values = _mapping(content, known, file, "")
    entries = values.pop("endpoints", None)
    if entries is not None:
        if not isinstance(entries, Mapping):
            raise _wrong(file, "endpoints", "must be a mapping of names to endpoints")
        named = cast("Mapping[object, object]", entries)
        values["endpoints"] = {str(name): _entry(file, name, at) for name, at in named.items()}
    return values


def _entry(file: str, name: object, content: object) -> EndpointSettings:
    place = f"endpoints.{name}"
    if not isinstance(name, str) or not name or _FORBIDDEN & set(name) or not name.isprintable():
        raise _wrong(file, place, "a name has no ':', '#', '/' or blank in it")
    known = [field.name for field in fields(EndpointSettings)]
    values = _mapping(content, known, file, f"{place}.")
    for field in ("base_url", "model", "protocol", "key_env", "key_header", "structured"):
        if field in values and not isinstance(values[field], str):
            raise _wrong(file, f"{place}.{field}", "must be text")
    headers = values.get("headers", {})
    if not isinstance(headers, Mapping):
        raise _wrong(file, f"{place}.headers", "must be a mapping of text to text")
    values["headers"] = {
        str(key): str(value) for key, value in cast("Mapping[object, object]", headers).items()
    }
    try:
        return EndpointSettings(**values)  # pyright: ignore[reportArgumentType]  # it checks them
    except InputError as error:
        raise _wrong(file, place, error.message, hint=error.hint) from None


def _mapping(content: object, known: list[str], file: str, prefix: str) -> dict[str, object]:
    if content is None:
        return {}
    if not isinstance(content, Mapping):
        raise _wrong(file, prefix.rstrip("."), "must be a mapping")
    values: dict[str, object] = {}
    for key, value in cast("Mapping[object, object]", content).items():
        if key not in known:
            raise _wrong(file, f"{prefix}{key}", "is not known", hint=nearest(str(key), known))
        values[str(key)] = value
    return values


def _wrong(file: str, place: str, problem: str, *, hint: str = "") -> InputError:
    return InputError(problem, location=Location(file, field=place), hint=hint)
