"""JSON values, and a JSON-safe copy of anything that a grader was called with.

What is recorded beside a score is read by people, stored for years and sent to trackers: so it is
bounded in size, never fails, and carries no secrets.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time, timedelta
from pathlib import PurePath
from typing import TypeAlias, cast

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

MAX_RECORDED_BYTES = 16_384
"""Characters kept of one value, of parameters kept with one score; long texts keep both ends."""

_MAX_STRING = 4_096
_MOST_ARRAY = 1 << 16
"""Bytes of an array whose values are listed."""
_MAX_EVIDENCE = 262_144
_MAX_EVIDENCE_STRING = 80_000  # a command's kept output fits whole
_MAX_ITEMS = 200
_MAX_DEPTH = 12
_REDACTED = "[redacted]"
_SECRET_WORDS = (
    "api_key",
    "apikey",
    "authorization",
    "bearer",
    "credential",
    "passwd",
    "password",
    "private_key",
    "secret",
    "token",
)
_NOT_SECRET = ("tokens", "tokenizer", "token_count", "max_token", "token_level")


def noted(**entries: Json) -> dict[str, Json]:
    """The entries that say something: neither None nor False, 0 or empty."""
    return {name: entry for name, entry in entries.items() if entry}


def record_parameters(parameters: Mapping[str, object]) -> dict[str, Json]:
    """Copy a grader's parameters for the record: JSON-safe, bounded, secrets redacted.

    A text, list or mapping is a secret when its name says so (``api_key``, ``password``, ``token``
    ...) at any depth, and a text also when it looks like a key of a known provider.

    Args:
        parameters: Keyword arguments as the grader received them.

    Returns:
        A dictionary of plain JSON, at most about `MAX_RECORDED_BYTES` characters of text.
    """
    return _Copier().mapping(parameters, depth=0)


def record_evidence(details: Mapping[str, object]) -> dict[str, Json]:
    """Copy what a grader tells beside its score: as `record_parameters`, with room for outputs."""
    return _Copier(_MAX_EVIDENCE, _MAX_EVIDENCE_STRING).mapping(details, depth=0)


def json_safe(value: object) -> Json:
    """Copy any value to plain JSON: never fails, bounded, secrets redacted.

    Non-finite floats become their names (``"nan"``), sets are sorted, unknown objects and those
    that cannot be read become ``"<TypeName: not serializable>"``.
    """
    return _Copier().value(value, depth=0)


_PLAIN = frozenset({str, int, bool, type(None)})
"""What is plain JSON by its type alone."""


class PlainJson(dict[str, Json]):
    """An object that is plain JSON all through, as who makes it knows: it need not be copied."""


def plain(value: object, other: Callable[[object], Json] = json_safe) -> Json:
    """Copy any value to plain JSON, uncut: scalars and arrays of NumPy and torch as values."""
    if type(value) in _PLAIN or (type(value) is float and math.isfinite(value)):
        return cast("Json", value)
    if type(value) is PlainJson:
        return {**value}
    if isinstance(value, Mapping):
        entries = cast("Mapping[object, Json]", value)
        return {
            str(key): item if type(item) in _PLAIN else plain(item, other)
            for key, item in entries.items()
        }
    if isinstance(value, list | tuple):
        return [plain(item, other) for item in cast("Iterable[object]", value)]
    if type(listed := _listed(value)) in (bool, int, float, str, list):
        return plain(listed, other)
    return other(value)


def _listed(value: object) -> object:
    """What an array or a scalar of NumPy, torch and kin holds, as Python has it; else None."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, float | type):
        return None
    try:
        if getattr(value, "nbytes", 0) > _MOST_ARRAY:  # an image, say, which nobody compares with
            return None
        return cast("Callable[[], object]", getattr(value, "tolist"))()  # noqa: B009 - of no known type
    except Exception:  # an object of a stranger may fail at whatever it is asked
        return None


class _Copier:
    """One copy in progress: remembers how much it may still keep and what it is inside of."""

    def __init__(self, most: int = MAX_RECORDED_BYTES, longest: int = _MAX_STRING) -> None:
        self._left = most
        self._longest = longest
        self._open: set[int] = set()

    def value(self, value: object, *, depth: int) -> Json:
        # Everything costs something: a few lists that hold each other often are endless otherwise.
        self._left -= 8
        if type(value) is str:  # as most are, and nothing can fail
            return self._text(value)
        if type(value) is float and math.isfinite(value):
            return value
        try:
            return self._copy(value, depth=depth)
        except Exception:  # an object of a stranger may fail at whatever it is asked
            return _unknown(value)

    def _copy(self, value: object, *, depth: int) -> Json:  # noqa: PLR0911 - one return per kind
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, enum.Enum):
            return self.value(value.value, depth=depth)
        if isinstance(value, int):
            return (
                int(value)
                if abs(value) < 10**30
                else self._text(f"<int of {value.bit_length()} bits>")
            )
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else str(float(value))
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, bytes | bytearray):
            return self._text(bytes(value[: self._longest]).decode("utf-8", "replace"))
        if isinstance(value, PurePath):
            return self._text(str(value))
        if isinstance(value, datetime | date | time):
            return value.isoformat()
        if isinstance(value, timedelta):
            return value.total_seconds()
        return self._container(value, depth=depth)

    def _container(self, value: object, *, depth: int) -> Json:
        identity = id(value)
        if depth >= _MAX_DEPTH or identity in self._open:
            return f"<{type(value).__name__}: too deep>"
        self._open.add(identity)
        try:
            if dataclasses.is_dataclass(value) and not isinstance(value, type):
                fields = {f.name: getattr(value, f.name, None) for f in dataclasses.fields(value)}
                return self.mapping(fields, depth=depth)
            if isinstance(value, Mapping):
                entries = cast("Mapping[object, object]", value)
                return self.mapping({str(k): v for k, v in entries.items()}, depth=depth)
            if isinstance(value, list | tuple | set | frozenset):
                return self._sequence(cast("Iterable[object]", value), depth=depth)
        finally:
            self._open.discard(identity)
        return _unknown(value)

    def mapping(self, mapping: Mapping[str, object], *, depth: int) -> dict[str, Json]:
        copied: dict[str, Json] = {}
        for count, (key, item) in enumerate(mapping.items()):
            if count >= _MAX_ITEMS or self._left <= 0:
                copied["..."] = f"{len(mapping) - count} more"
                break
            name = self._text(str(key))
            secret = _names_a_secret(name) and not isinstance(item, int | float)
            copied[name] = _REDACTED if secret and item else self.value(item, depth=depth + 1)
        return copied

    def _sequence(self, items: Iterable[object], *, depth: int) -> list[Json]:
        everything = list(items)
        if isinstance(items, set | frozenset):
            everything.sort(key=repr)
        copied: list[Json] = []
        for item in everything[:_MAX_ITEMS]:
            if self._left <= 0:
                break
            copied.append(self.value(item, depth=depth + 1))
        if len(everything) > len(copied):
            copied.append(f"... {len(everything) - len(copied)} more")
        return copied

    def _text(self, text: str) -> str:
        text = _redact_keys(text)  # before it is cut, which could leave half a key
        keep = max(0, min(self._longest, self._left))
        if len(text) > keep:
            half = keep // 2
            cut = len(text) - 2 * half
            text = f"{text[:half]}... [{cut} characters cut] ...{text[len(text) - half :]}"
        self._left -= len(text)
        # Lone surrogates cannot be written as UTF-8, and a store must never fail on an answer.
        return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _unknown(value: object) -> str:
    return f"<{type(value).__name__}: not serializable>"


@functools.lru_cache(maxsize=1_024)
def _names_a_secret(name: str) -> bool:
    lowered = name.lower().replace("-", "_")
    if any(word in lowered for word in _NOT_SECRET):
        return False
    return any(word in lowered for word in _SECRET_WORDS)


def _redact_keys(text: str) -> str:
    if "sk-" not in text and "ghp_" not in text and "AKIA" not in text and "hf_" not in text:
        return text
    import re

    return re.sub(
        r"\b(sk-[A-Za-z0-9_-]{16,}|ghp_[A-Za-z0-9]{20,}|AKIA[A-Z0-9]{16}|hf_[A-Za-z0-9]{20,})",
        _REDACTED,
        text,
    )
