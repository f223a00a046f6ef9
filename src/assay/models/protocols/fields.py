"""Reading requests of strangers: a field is what the protocol says, or the request is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from assay.models.protocols.codec import ProtocolError
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import NotJsonError, decode_json

MOST_DEPTH = 100
"""How many lists and objects may stand inside each other in what is sent, either way."""

_LONGEST_SHOWN = 80


class MalformedError(ProtocolError):
    """A field is not what it has to be; in the words of OpenAI, or of Anthropic.

    Attributes:
        problem: The same, as Anthropic says it.
    """

    def __init__(self, parameter: str, message: str, code: str, problem: str) -> None:
        super().__init__(400, message, parameter=parameter, code=code)
        self.problem = problem

    def as_anthropic(self) -> ProtocolError:
        """The error as Anthropic's server words it."""
        dotted = re.sub(r"\[(\d+)\]", r".\1", self.parameter)
        said = f"{dotted}: {self.problem}" if dotted else self.problem
        return ProtocolError(400, said, parameter=dotted)


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


def missing(where: str) -> MalformedError:
    """The error of a field that has to be there."""
    message = f"Missing required parameter: '{where}'."
    return MalformedError(where, message, "missing_required_parameter", "Field required")


def not_allowed(where: str, value: str, known: Sequence[str]) -> MalformedError:
    """The error of a word that is none of those known."""
    menu = ", ".join(f"'{word}'" for word in known)
    shown = f"'{value[:_LONGEST_SHOWN]}'"
    message = f"Invalid value: {shown}. Supported values are: {menu}."
    return MalformedError(where, message, "invalid_value", f"Input should be one of {menu}")


def mistyped(where: str, value: Json, expected: str, anthropic: str) -> MalformedError:
    """The error of a value of another type."""
    message = f"Invalid type for '{where}': expected {expected}, but got {_type_of(value)} instead."
    return MalformedError(where, message, "invalid_type", f"Input should be {anthropic}")


def object_at(value: Json, where: str) -> dict[str, Json]:
    """The value, which has to be an object."""
    if not isinstance(value, dict):
        if not where:
            raise ProtocolError(400, "The body of the request has to be a JSON object.")
        raise mistyped(where, value, "an object", "a valid dictionary")
    return value


def list_at(value: Json, where: str) -> list[Json]:
    """The value, which has to be a list."""
    if not isinstance(value, list):
        raise mistyped(where, value, "an array of objects", "a valid list")
    return value


def text_at(value: Json, where: str) -> str:
    """The value, which has to be text."""
    if not isinstance(value, str):
        raise mistyped(where, value, "a string", "a valid string")
    return value


def text_in(parent: Mapping[str, Json], name: str, where: str = "") -> str:
    """The text of a field that has to be there."""
    value = parent.get(name)
    if isinstance(value, str):
        return value
    place = f"{where}.{name}" if where else name
    if value is None:
        raise missing(place)
    return text_at(value, place)


def optional_text(parent: Mapping[str, Json], name: str, where: str = "") -> str | None:
    """The text of a field, None where it is not given."""
    return None if parent.get(name) is None else text_in(parent, name, where)


def optional_object(parent: Mapping[str, Json], name: str, where: str = "") -> dict[str, Json]:
    """The object of a field, empty where it is not given."""
    value = parent.get(name)
    return {} if value is None else object_at(value, f"{where}.{name}" if where else name)


def optional_list(parent: Mapping[str, Json], name: str, where: str = "") -> list[Json]:
    """The list of a field, empty where it is not given."""
    value = parent.get(name)
    return [] if value is None else list_at(value, f"{where}.{name}" if where else name)


def optional_flag(parent: Mapping[str, Json], name: str, where: str = "") -> bool | None:
    """The yes or no of a field, None where it is not given."""
    value = parent.get(name)
    if value is not None and not isinstance(value, bool):
        place = f"{where}.{name}" if where else name
        raise mistyped(place, value, "a boolean", "a valid boolean")
    return value


def optional_number(
    parent: Mapping[str, Json], name: str, *, low: float, high: float
) -> float | None:
    """The number of a field, None where it is not given."""
    value = parent.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise mistyped(name, value, "a decimal", "a valid number")
    if not low <= value <= high:
        message = f"Invalid '{name}': expected a value from {low:g} to {high:g}, got {value!r:.40}."
        code = "decimal_above_max_value" if value > high else "decimal_below_min_value"
        raise MalformedError(name, message, code, f"Input should be from {low:g} to {high:g}")
    return float(value)


def optional_integer(
    parent: Mapping[str, Json], name: str, *, low: int, high: int = 1_000_000_000
) -> int | None:
    """The whole number of a field, None where it is not given."""
    value = parent.get(name)
    if value is None:
        return None
    if type(value) is not int:
        raise mistyped(name, value, "an integer", "a valid integer")
    if not low <= value <= high:
        message = f"Invalid '{name}': expected a value from {low} to {high}, got {value!r:.40}."
        code = "integer_above_max_value" if value > high else "integer_below_min_value"
        raise MalformedError(name, message, code, f"Input should be from {low} to {high}")
    return value


def optional_word(parent: Mapping[str, Json], name: str, where: str = "") -> str | None:
    """The word of a field that is short text, None where it is not given."""
    word = optional_text(parent, name, where)
    return None if word is None else word[:_LONGEST_SHOWN]


def texts_at(value: Json, where: str) -> tuple[str, ...]:
    """One text or a list of them."""
    if isinstance(value, str):
        return (value,)
    return tuple(text_at(one, f"{where}[{at}]") for at, one in enumerate(list_at(value, where)))


def _type_of(value: Json) -> str:
    if isinstance(value, bool):
        return "a boolean"
    names: dict[type[object], str] = {
        type(None): "null",
        int: "an integer",
        float: "a decimal",
        str: "a string",
        list: "an array",
    }
    return names.get(type(value), "an object")
