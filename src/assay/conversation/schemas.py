"""What a reply has to look like: said to providers, said in words, and as a key.

Providers that promise a schema take a small dialect of JSON Schema only. What the dialect cannot
say is left to our own check of the reply (`validator`), which holds for
every provider, also for those that promise nothing.
"""

from __future__ import annotations

import functools
import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, cast

from assay.errors import InputError
from assay.scoring.json_safe import Json, plain

if TYPE_CHECKING:
    from jsonschema_rs import Validator

_KEPT = ("type", "description", "title", "enum", "$ref")
_NAMES = {"string": "text", "array": "list", "null": "null", "boolean": "true or false"}
_DEEPEST = 24
_MOST_NAMED = 1_000


def schema_text(schema: Mapping[str, Json]) -> str:
    """A schema as JSON, its keys in their order: what it is told apart by.

    Raises:
        InputError: It is not JSON.
    """
    try:
        return json.dumps(schema if type(schema) is dict else plain(schema), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"the reply schema is not JSON: {error}") from None


def strict_schema(schema: Mapping[str, Json]) -> dict[str, Json]:
    """Say a schema in the dialect that providers hold a model to.

    Every key is required, no other key is allowed, and bounds, patterns, lengths and formats are
    left out: they are for our own check. The order of keys is kept, for models write in it.

    Raises:
        InputError: The schema has keys of free choice, which no strict mode can promise.
    """
    return _strict(schema, path="", depth=0)


def _strict(schema: Mapping[str, Json], *, path: str, depth: int) -> dict[str, Json]:
    if depth > _DEEPEST:
        raise InputError("the reply schema is nested too deeply", hint="flatten it")
    strict: dict[str, Json] = {key: schema[key] for key in _KEPT if key in schema}
    if "const" in schema:
        strict["enum"] = [schema["const"]]
    free = schema.get("additionalProperties")
    if isinstance(free, Mapping) or free is True or "patternProperties" in schema:
        raise InputError(
            f"the reply schema allows unknown keys at {path or 'its top'}",
            hint="name every key, or ask for a list of objects with a name and a value",
        )
    if "properties" in schema or schema.get("type") == "object":
        properties = _named(schema, "properties", path=path, depth=depth)
        strict |= {
            "properties": cast("Json", properties),
            "required": list(properties),
            "additionalProperties": False,
        }
    items = schema.get("items")
    if isinstance(items, dict):
        strict["items"] = cast("Json", _strict(items, path=f"{path}[]", depth=depth + 1))
    choices = schema.get("anyOf", schema.get("oneOf"))
    if isinstance(choices, list):
        strict["anyOf"] = [
            cast("Json", _strict(choice, path=path, depth=depth + 1))
            for choice in choices
            if isinstance(choice, dict)
        ]
    if "$defs" in schema:
        strict["$defs"] = cast("Json", _named(schema, "$defs", path=path, depth=depth))
    return strict


def _named(
    schema: Mapping[str, Json], key: str, *, path: str, depth: int
) -> dict[str, dict[str, Json]]:
    entries = schema.get(key)
    return {
        name: _strict(
            entry if isinstance(entry, dict) else {}, path=f"{path}.{name}", depth=depth + 1
        )
        for name, entry in (entries.items() if isinstance(entries, dict) else ())
    }


def in_words(schema: Mapping[str, Json]) -> str:
    """State the shape of a reply for the prompt: keys in order, types, every word of an enum.

    Stated to every model, since not every provider that takes a schema shows it to its model.
    """
    shape = _Words(schema).of(schema, indent=0)
    return f"Reply with one JSON object, its keys in this order, and nothing else:\n{shape}"


class _Words:
    """The words of one schema. Definitions that hold each other are said to a limit."""

    def __init__(self, root: Mapping[str, Json]) -> None:
        self._root = root
        self._left = _MOST_NAMED
        self._depth = 0

    def of(self, schema: Json | Mapping[str, Json], *, indent: int) -> str:
        self._left -= 1
        if self._left < 0 or self._depth > _DEEPEST or not isinstance(schema, Mapping):
            return "..."
        self._depth += 1
        shape = self._shape(self._resolved(schema), indent=indent)
        self._depth -= 1
        description = schema.get("description")
        return f"{shape} ({description})" if isinstance(description, str) else shape

    def _shape(self, schema: Mapping[str, Json], *, indent: int) -> str:
        choices = [schema["const"]] if "const" in schema else schema.get("enum")
        if isinstance(choices, list):
            return " or ".join(json.dumps(choice, ensure_ascii=False) for choice in choices)
        branches = schema.get("anyOf", schema.get("oneOf"))
        if isinstance(branches, list):
            return " or ".join(self.of(branch, indent=indent) for branch in branches)
        properties = schema.get("properties")
        if isinstance(properties, dict):
            pad = "  " * (indent + 1)
            lines = [
                f"{pad}{json.dumps(name, ensure_ascii=False)}: {self.of(entry, indent=indent + 1)}"
                for name, entry in properties.items()
            ]
            return "{\n" + ",\n".join(lines) + "\n" + "  " * indent + "}"
        if isinstance(schema.get("items"), dict):
            item = self.of(schema["items"], indent=indent)
            return f"[{item}, ...]{_bounds(schema, 'minItems', 'maxItems', ' items')}"
        return _plain(schema)

    def _resolved(self, schema: Mapping[str, Json]) -> Mapping[str, Json]:
        """What a ``$ref`` into the schema's own ``$defs`` stands for."""
        reference, definitions = schema.get("$ref"), self._root.get("$defs")
        if not isinstance(reference, str) or not isinstance(definitions, dict):
            return schema
        found = definitions.get(reference.removeprefix("#/$defs/"))
        return found if isinstance(found, dict) else schema


def _plain(schema: Mapping[str, Json]) -> str:
    kind = schema.get("type", "any JSON")
    kinds = kind if isinstance(kind, list) else [kind]
    name = " or ".join(_NAMES.get(str(one), str(one)) for one in kinds)
    return (
        name
        + _bounds(schema, "minimum", "maximum", "")
        + _bounds(schema, "minLength", "maxLength", " characters")
    )


def _bounds(schema: Mapping[str, Json], low: str, high: str, unit: str) -> str:
    least, most = schema.get(low), schema.get(high)
    if least is not None and most is not None:
        return f" from {least} to {most}{unit}"
    if least is not None:
        return f" of at least {least}{unit}"
    return f" of at most {most}{unit}" if most is not None else ""


_LONGEST_COMPLAINT = 300
_STRANGE_KEYS = re.compile(
    r"Additional properties are not allowed.*|.*(?:unexpected|not allowed).*", re.DOTALL
)
_PLAIN_PATH = re.compile(r"(?:\.[A-Za-z_]{1,30}|\[\d{1,6}\])*+")


def validator(schema: Mapping[str, Json]) -> Callable[[Json], str]:
    """Make the check of a schema; made once, however often it is asked for.

    The check takes JSON and returns ``""``, or one sentence: where, what is wrong, and what is
    allowed. Of the reply it repeats names of keys only, so that what a model wrote is not put
    before it again as our words. What can mean one thing only is put right in place: words of
    an enum that differ from the schema's in case or in white space around them; and keys that the
    schema does not know are left out, unless they are a known one in other letters.

    Raises:
        InputError: It is not JSON Schema.
    """
    return _validator(schema_text(schema))


@functools.lru_cache(maxsize=256)
def _validator(text: str) -> Callable[[Json], str]:
    from jsonschema_rs import RegexOptions, validator_for

    schema = cast("dict[str, Json]", json.loads(text))
    try:
        compiled = validator_for(
            schema,
            pattern_options=RegexOptions(),
            retriever=_fetch_nothing,
            mask="this value",
        )
    except ValueError as error:
        first = (str(error).strip().splitlines() or ["unknown reason"])[0]
        raise InputError(
            f"the reply schema is invalid: {first}",
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


def _complaint(compiled: Validator, data: Json) -> str:
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


@dataclass(slots=True)
class Shape:
    """A schema, made ready.

    Attributes:
        validate: Says what is wrong with JSON, or "".
        words: The schema in words, for the prompt.
        plain: The schema as it came, encoded.
        strict: The schema in the strict dialect, encoded; empty if it cannot be said in it.
    """

    validate: Callable[[Json], str]
    words: str
    plain: str
    strict: str


def shape_of(schema: Mapping[str, Json]) -> Shape:
    """The shape of a schema.

    Raises:
        InputError: If it is not JSON Schema.
    """
    return _shape(json.dumps(plain(schema), ensure_ascii=False, separators=(",", ":")))


@functools.lru_cache(maxsize=512)
def _shape(encoded: str) -> Shape:
    schema = cast("dict[str, Json]", json.loads(encoded))
    validate = validator(schema)
    try:
        strict = json.dumps(strict_schema(schema), ensure_ascii=False, separators=(",", ":"))
    except InputError:
        strict = ""  # asked for in another way, and checked here as any reply is
    return Shape(validate, in_words(schema), encoded, strict)
