"""The check of a reply by its schema, and what is put right before it fails.

Put right is what can mean one thing only: the case of an enum's word, white space around it, and
keys that nobody asked for, which are left out.
"""

from __future__ import annotations

import functools
import importlib
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import NoReturn, Protocol, cast

from assay.errors import InputError
from assay.models.schema_dialect import schema_text
from assay.scoring.json_safe import Json

__all__ = ["validator"]

_LONGEST_COMPLAINT = 300
_STRANGE_KEYS = re.compile(
    r"Additional properties are not allowed.*|.*(?:unexpected|not allowed).*", re.DOTALL
)
_PLAIN_PATH = re.compile(r"(?:\.[A-Za-z_]{1,30}|\[\d{1,6}\])*+")


class _Fault(Protocol):
    message: str
    instance_path: list[str | int]


class _Compiled(Protocol):
    def is_valid(self, instance: Json) -> bool: ...

    def iter_errors(self, instance: Json) -> Iterable[_Fault]: ...


class _Library(Protocol):
    def RegexOptions(self) -> object: ...  # noqa: N802 - the library's own name

    def validator_for(
        self,
        schema: Json,
        *,
        pattern_options: object,
        retriever: Callable[[str], Json],
        mask: str,
    ) -> _Compiled: ...


def validator(schema: Mapping[str, Json]) -> Callable[[Json], str]:
    """Make the check of a schema; made once, however often it is asked for.

    The check takes JSON and returns ``""``, or one sentence: where, what is wrong, and what is
    allowed. Of the reply it repeats names of keys only, so that what a model wrote is not put
    before it again as our words. What can mean one thing only is put right in place: words of
    an enum that differ from the schema's in case or in white space around them; and keys that the
    schema does not know are left out, unless they are a known one in other letters.

    Args:
        schema: A JSON Schema. Patterns run in linear time; nothing is fetched.

    Raises:
        InputError: It is no JSON Schema.
    """
    return _validator(schema_text(schema))


@functools.lru_cache(maxsize=256)
def _validator(text: str) -> Callable[[Json], str]:
    library = cast("_Library", importlib.import_module("jsonschema_rs"))
    schema = cast("Json", json.loads(text))
    try:
        compiled = library.validator_for(
            schema,
            pattern_options=library.RegexOptions(),
            retriever=_fetch_nothing,
            mask="this value",
        )
    except ValueError as error:
        first = (str(error).strip().splitlines() or ["unknown reason"])[0]
        raise InputError(
            f"the schema of a reply is no good: {first}",
            hint="patterns may not look around; $ref may not leave the schema",
        ) from None

    def check(data: Json) -> str:
        try:
            if compiled.is_valid(data):
                return ""
            if _put_right(data, schema) and compiled.is_valid(data):
                return ""
            return _complaint(compiled, data)
        except (ValueError, RecursionError):  # the library's own limit
            return "it is nested too deep"

    return check


def _fetch_nothing(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is outside the schema, and nothing is fetched")


def _complaint(compiled: _Compiled, data: Json) -> str:
    fault = next(iter(compiled.iter_errors(data)), None)
    if fault is None:
        return "it is nested too deep"
    path = "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" for step in fault.instance_path
    )
    # The complaint goes back to the judge outside of every fence, and a reply's keys may be words
    # of what it was shown.
    what = _STRANGE_KEYS.sub("There are keys that were not asked for", fault.message)
    where = path.lstrip(".") if _PLAIN_PATH.fullmatch(path) else ""
    return f"{where or 'the JSON'}: {what}"[:_LONGEST_COMPLAINT]


def _put_right(data: Json, schema: Json) -> bool:
    """Write data as the schema does, where that is clear; whether anything was changed."""
    if not isinstance(schema, dict):
        return False
    changed = False
    properties = schema.get("properties")
    if isinstance(data, dict) and isinstance(properties, dict):
        if schema.get("additionalProperties") is False and "patternProperties" not in schema:
            changed |= _leave_out(data, properties)
        for key in data.keys() & properties.keys():
            changed |= _put_word_right(data, key, properties[key])
    elif isinstance(data, list) and "items" in schema:
        for index in range(len(data)):
            changed |= _put_word_right(data, index, schema["items"])
    return changed


def _leave_out(data: dict[str, Json], known: Mapping[str, Json]) -> bool:
    """Drop keys that nobody asked for; "Verdict", which may contradict "verdict", stays."""
    names = set(map(_letters, known))
    strange = [key for key in data.keys() - known.keys() if _letters(key) not in names]
    for key in strange:
        del data[key]
    return bool(strange)


def _letters(key: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", key).casefold()))


def _put_word_right(parent: dict[str, Json] | list[Json], key: str | int, schema: Json) -> bool:
    slots = cast("dict[str | int, Json]", parent)
    value = slots[key]
    words = schema.get("enum") if isinstance(schema, dict) else None
    if not isinstance(value, str) or not isinstance(words, list):
        return _put_right(value, schema)
    written = value.strip().casefold()
    meant = [word for word in words if isinstance(word, str) and word.casefold() == written]
    if len(meant) != 1 or meant[0] == value:
        return False
    slots[key] = meant[0]
    return True
