"""What a reply has to look like: said to providers, said in words, and as a key.

Providers that promise a schema take a small dialect of JSON Schema only. What the dialect cannot
say is left to our own check of the reply (`assay.models.structured.validator`), which holds for
every provider, also for those that promise nothing.
"""

from __future__ import annotations

import functools
import json
import marshal
from collections.abc import Mapping
from typing import cast

from assay.errors import InputError
from assay.scoring.json_safe import Json, plain

__all__ = ["in_words", "schema_text", "strict_schema"]

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
        # A tenth of the time that `json` takes, and every judgement needs it.
        key = marshal.dumps(cast("Json", schema) if type(schema) is dict else plain(schema), 2)
        return _text(key)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"the schema of a reply is not JSON: {error}") from None


@functools.lru_cache(maxsize=256)
def _text(key: bytes) -> str:
    return json.dumps(marshal.loads(key), allow_nan=False)  # noqa: S302 - bytes of our own


def strict_schema(schema: Mapping[str, Json]) -> dict[str, Json]:
    """Say a schema in the dialect that providers hold a model to.

    Every key is required, no other key is allowed, and bounds, patterns, lengths and formats are
    left out: they are for our own check. The order of keys is kept, for models write in it.

    Args:
        schema: A JSON Schema of an object.

    Raises:
        InputError: The schema has keys of free choice, which no strict mode can promise.
    """
    return _strict(schema, path="", depth=0)


def _strict(schema: Mapping[str, Json], *, path: str, depth: int) -> dict[str, Json]:
    if depth > _DEEPEST:
        raise InputError("the schema of a reply is nested too deep", hint="flatten it")
    strict: dict[str, Json] = {key: schema[key] for key in _KEPT if key in schema}
    if "const" in schema:
        strict["enum"] = [schema["const"]]
    free = schema.get("additionalProperties")
    if isinstance(free, Mapping) or free is True or "patternProperties" in schema:
        raise InputError(
            f"the schema of a reply leaves keys open at {path or 'its top'}",
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
