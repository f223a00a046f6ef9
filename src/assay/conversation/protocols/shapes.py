"""Requests of strangers: they have the shape that their protocol says, or are refused by a field.

The shapes are JSON Schemas, in ``shapes/`` beside this file.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING

from assay.scoring.json_safe import Json
from assay.scoring.strict_json import NotJsonError, decode_json

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator, ValidationError

MOST_DEPTH = 100
"""How many lists and objects may stand inside each other in what is sent, either way."""

_LONGEST_SHOWN = 80
_CODES = {"type": "invalid_type", "enum": "invalid_value", "minItems": "empty_array"}
_SIDES = {"minimum": ("least", "below_min_value"), "maximum": ("most", "above_max_value")}


class ProtocolError(Exception):
    """A request that no server of the protocol would take.

    Attributes:
        status: The HTTP status.
        message: What is wrong.
        parameter: The part of the request that is wrong, or "".
        code: The provider's word for it, or "".
    """

    def __init__(self, status: int, message: str, *, parameter: str = "", code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.parameter = parameter
        self.code = code


def decode_body(body: bytes) -> Json:
    """The JSON of a request's body.

    Raises:
        ProtocolError: If it is none, or means two things, or is nested too deeply.
    """
    try:
        return decode_json(body, max_depth=MOST_DEPTH)
    except NotJsonError as error:
        message = f"We could not parse the JSON body of your request: {error}"
        raise ProtocolError(400, message) from None


def missing(where: str) -> ProtocolError:
    """The error of a field that has to be there."""
    message = f"Missing required parameter: '{where}'."
    return ProtocolError(400, message, parameter=where, code="missing_required_parameter")


def object_of(body: Json) -> dict[str, Json]:
    """The body of a request, which has to be an object.

    Raises:
        ProtocolError: If it is none.
    """
    if not isinstance(body, dict):
        raise ProtocolError(400, "The body of the request has to be a JSON object.")
    return body


def checked(protocol: str, body: Json) -> dict[str, Json]:
    """The body of a request that has the shape of its protocol.

    Raises:
        ProtocolError: If it has not.
    """
    given = object_of(body)
    for error in _validator(protocol).iter_errors(given):
        raise _refused(error)
    return given


@functools.cache
def _validator(protocol: str) -> Draft202012Validator:
    from jsonschema_rs import Draft202012Validator

    file = Path(__file__).with_name("shapes") / f"{protocol}.json"
    return Draft202012Validator(json.loads(file.read_text("utf-8")))


def _refused(error: ValidationError) -> ProtocolError:
    kind, value = error.kind.as_dict(), error.instance
    name = error.kind.name
    path = [*error.instance_path, *([kind["property"]] if name == "required" else [])]
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    where = "".join(steps).removeprefix(".")
    if name == "required" or value in (None, ""):
        return missing(where)
    code = _CODES.get(name, "invalid_value")
    if name == "type":
        expected = " or ".join(kind["types"])
        told = f"Invalid type for '{where}': expected {expected}, but got {_type_of(value)}."
    elif name == "enum":
        menu = ", ".join(f"'{word}'" for word in kind["options"] if word)
        told = f"Invalid value: '{value!s:.{_LONGEST_SHOWN}}'. Supported values are: {menu}."
    elif name in _SIDES:
        side, ending = _SIDES[name]
        code = f"{'integer' if isinstance(value, int) else 'decimal'}_{ending}"
        told = f"Invalid '{where}': it has to be at {side} {kind['limit']}."
    else:
        told = f"Invalid '{where}': it must not be empty."
    return ProtocolError(400, told, parameter=where, code=code)


def _type_of(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    names: dict[type[object], str] = {int: "integer", float: "number", str: "string", list: "array"}
    return names.get(type(value), "object")
