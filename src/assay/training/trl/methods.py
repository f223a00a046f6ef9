"""Tools as the methods that TRL shows to models: by their signatures and docstrings."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, Union, cast

from assay.conversation.turns import Tool
from assay.errors import AssayError, InputError
from assay.scoring.json_safe import Json, plain

_TYPES: Mapping[str, object] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": None,
}
_SECTION = re.compile(r"^\s*(Args|Returns|Raises|Yields|Examples?):\s*$", re.MULTILINE)
_ARGUMENT = re.compile(r"^\s+(\w+)\s*(?:\([^)]*\))?:\s*(\S.*)$", re.MULTILINE)
_MOST_SCHEMA = 1_000


class ToolError(AssayError):
    """What a tool says went wrong; TRL tells the model, and counts it."""


def method(
    tool: Tool, call: Callable[[Any, str, Mapping[str, Json]], Awaitable[str]]
) -> Callable[..., Awaitable[str]]:
    """An async method with the signature and the docstring of a tool."""
    if tool.name in ("reset", "get_reward") or tool.name.startswith("_"):
        raise InputError(f"TRL cannot have a tool called {tool.name!r}", hint="rename it")
    properties = tool.schema.get("properties")
    required = tool.schema.get("required")
    schemas = properties if isinstance(properties, dict) else {}
    needed = required if isinstance(required, list) else []
    described = _described(tool.description)
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)]
    hints: dict[str, object] = {"return": str}
    lines = [_SECTION.split(tool.description)[0].strip() or tool.name, "", "Args:"]
    # What has no default comes first, as in any signature; models name what they give.
    for name in sorted(schemas, key=lambda name: name not in needed):
        schema = cast("dict[str, Json]", schemas[name] if isinstance(schemas[name], dict) else {})
        hints[name] = _hint(schema)
        default = inspect.Parameter.empty if name in needed else schema.get("default")
        try:
            parameters.append(
                inspect.Parameter(
                    name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=default,
                    annotation=hints[name],
                )
            )
        except ValueError as error:
            raise InputError(f"the tool {tool.name!r} cannot be a method: {error}") from error
        lines.append(f"    {name}: {described.get(name) or _description(schema, name)}")

    async def called(self: object, /, **arguments: object) -> str:
        return await call(self, tool.name, cast("dict[str, Json]", plain(arguments)))

    called.__name__ = called.__qualname__ = tool.name
    called.__doc__ = "\n".join(lines if schemas else lines[:1])
    called.__annotations__ = hints
    vars(called)["__signature__"] = inspect.Signature(parameters, return_annotation=str)
    return called


def _described(docstring: str) -> dict[str, str]:
    """What a docstring says of each parameter."""
    _, _, after = docstring.partition("Args:\n")
    return dict(_ARGUMENT.findall(_SECTION.split(after)[0]))


def _description(schema: Mapping[str, Json], name: str) -> str:
    said = schema.get("description") or name
    is_nested = "$ref" in json.dumps(schema) or "properties" in schema
    text = f"{said} {json.dumps(schema)[:_MOST_SCHEMA]}" if is_nested else str(said)
    return " ".join(text.split())


def _hint(schema: Mapping[str, Json]) -> object:
    """The type of what a schema takes; of what Python's types cannot say, anything."""
    chosen, several, kind = schema.get("enum"), schema.get("anyOf"), schema.get("type")
    if isinstance(chosen, list) and all(isinstance(one, str | int | bool) for one in chosen):
        return Literal[tuple(chosen)]
    if isinstance(several, list):
        return Union[tuple(_hint(one) if isinstance(one, dict) else Any for one in several)]  # noqa: UP007
    if isinstance(kind, list):
        return Union[tuple(_TYPES.get(str(one), Any) for one in kind)]  # noqa: UP007
    items = schema.get("items")
    if kind == "array" and isinstance(items, dict):
        return list[_hint(items)]
    return _TYPES.get(str(kind), Any)
