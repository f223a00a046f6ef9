"""Bodies of requests: strict JSON without unknown fields; each model is made of its operation."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, TypeAlias, cast

from annotated_types import MaxLen
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    create_model,
)

from assay.endpoint.problems import ProblemError
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import NotJsonError, decode_json
from assay.service.operation import KEY_PATTERN, Input, Operation, Spec
from assay.types.codec import Problem

ItemId: TypeAlias = Annotated[str, StringConstraints(max_length=500, pattern=r"^[^\x00]*$")]


class Body(BaseModel):
    """What a client sends."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Message(BaseModel):
    """One turn of a conversation; other fields are passed over, as chat APIs add their own."""

    model_config = ConfigDict(strict=True)

    role: str = Field(examples=["user"])
    content: JsonValue = Field(
        default=None, description="Text, null, or a list of parts.", examples=["What is 2 + 2?"]
    )


class Row(Body):
    """One recorded answer: what is graded, and what it is graded against.

    It is data: other fields belong to its metadata.
    """

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "anyOf": [
                {"required": ["answer"]},
                {"required": ["messages"]},
                {"required": ["input"], "properties": {"input": {"type": "array"}}},
            ],
            "examples": [
                {"id": "1", "question": "What is 2 + 2?", "answer": "4", "expected": "4"},
                {
                    "messages": [
                        {"role": "user", "content": "What is 2 + 2?"},
                        {"role": "assistant", "content": "4"},
                    ],
                    "metadata": {"level": 1},
                },
                {"answer": "4", "item": {"expected": "4"}, "split": "test"},
            ],
        },
    )

    id: ItemId | int | None = Field(
        default=None, description="By which the result is told apart; its place by default."
    )
    answer: str | None = Field(default=None, description="The final text.")
    messages: list[Message] | None = Field(
        default=None, description="The conversation; it may end with the assistant's answer."
    )
    completion: str | None = Field(
        default=None, description="The assistant's answer to `messages`, if they lack it."
    )
    question: str | None = Field(
        default=None, description="What was asked; the last user turn by default."
    )
    expected: JsonValue = Field(default=None, description="The reference answer.")
    metadata: dict[str, JsonValue] | None = Field(
        default=None, description="Anything that belongs to the sample."
    )


def _a_number(value: float) -> float:
    if abs(value) > 1e100:
        raise ValueError("must be from -1e100 to 1e100")
    return value


class WrittenScore(Body):
    """A score from elsewhere, for a grader of the kind `custom`."""

    grader: Annotated[str, StringConstraints(pattern=KEY_PATTERN)]
    item: ItemId
    score: Annotated[
        float, Field(allow_inf_nan=False, ge=-1e100, le=1e100), AfterValidator(_a_number)
    ]
    reason: Annotated[str, StringConstraints(max_length=10_000, pattern=r"^[^\x00]*$")] = ""
    details: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])


def _whole(value: object) -> object:
    """1.0 is a whole number in JSON, whoever writes it so."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


_OF_ITS_ROW = (
    "dict_type",
    "list_type",
    "missing",
    "model_attributes_type",
    "model_type",
    "string_type",
)


def _some_are_fine(rows: object, check: ValidatorFunctionWrapHandler) -> object:
    """Let rows pass of which some are of wrong types: who reads them tells it of these alone."""
    try:
        return check(rows)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        wrong = {fault["loc"][0] for fault in faults if fault["loc"]}
        if (
            not isinstance(rows, list)
            or len(wrong) == len(cast("list[object]", rows))
            or any(one["type"] not in _OF_ITS_ROW or "id" in one["loc"][1:2] for one in faults)
        ):
            raise
        return cast("list[object]", rows)


def inputs_of(operation: Operation[..., Any]) -> list[Input]:
    """The parameters of an operation, with the types that a request is checked by."""
    return operation.inputs(Json=JsonValue, Row=Row, WrittenScore=WrittenScore)


def field_options(spec: Spec, *, alias: bool = False) -> dict[str, Any]:
    """What FastAPI and pydantic are told of a parameter."""
    told: dict[str, Any] = {
        "description": spec.description or None,
        "examples": None if spec.example is None else [spec.example],
        "pattern": spec.pattern or None,
        "min_length": spec.min_length,
        "max_length": spec.max_length,
        "ge": spec.ge,
        "le": spec.le,
        "alias": (spec.alias or None) if alias else None,
    }
    return {name: value for name, value in told.items() if value is not None}


@cache
def body_of(operation: Operation[..., Any]) -> type[BaseModel] | None:
    """The model of an operation's body; None where it has none."""
    fields: dict[str, Any] = {}
    example: dict[str, Any] = {}
    for one in inputs_of(operation):
        if one.place != "body":
            continue
        kind = one.annotation
        if kind in (int, int | None):
            kind = Annotated[kind, BeforeValidator(_whole)]
        elif kind == Sequence[Row]:
            kind = Annotated[kind, WrapValidator(_some_are_fine)]
        default: Any = ... if one.default is inspect.Parameter.empty else one.default
        default = list[Any]() if default == () else default
        fields[one.name] = (kind, Field(default, **field_options(one.spec)))
        if one.spec.example is not None:
            example[one.name] = one.spec.example
    if not fields:
        return None
    name = "".join(part.title() for part in operation.name.split("_")) + "Body"
    config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [example]})
    doc = (inspect.getdoc(operation.function) or "").partition("\n")[0]
    return create_model(name, __config__=config, __doc__=doc, __module__=__name__, **fields)


def arguments_of(body: BaseModel, raw: Mapping[str, JsonValue]) -> dict[str, Any]:
    """The fields of a body as an operation takes them: rows and mappings as they were sent."""
    given: dict[str, Any] = {}
    for name in type(body).model_fields:
        value = getattr(body, name)
        is_plain = value is None or isinstance(value, str | int | float)
        given[name] = value if is_plain or name not in raw else raw[name]
    return given


# JSON, read strictly.

_MOST_UNKNOWN = 50

_HINTS = {
    "repeated key": "readers would differ on which one counts",
    "number": "send null, or a finite number",
    "digits": "send it as text",
}


def parse(body: bytes, *, max_depth: int, max_values: int | None = None, where: str = "") -> Json:
    """Read a body."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise refusal(where, f"not JSON: byte {error.start} is not UTF-8", "send UTF-8") from None
    try:
        return decode_json(text, max_depth=max_depth, max_values=max_values)
    except NotJsonError as error:
        message, hint = str(error), _HINTS.get(error.kind, "")
        if error.kind == "syntax":
            message = f"not JSON: {error}, character {error.offset}"
            hint = "" if where else f"line {error.line}, column {error.column}"
        elif error.kind == "number":
            message = "NaN and infinities are not JSON"
            where = ": ".join(part for part in (where, error.path) if part)
        elif error.kind == "values":
            raise ProblemError(
                413, f"the body: {error}", errors=[Problem(("",), message)]
            ) from None
        raise refusal(where, message, hint) from None


def check_size(body: Json, model: type[BaseModel]) -> None:
    """Refuse what is far too large by a look at it: to say what is wrong where takes too long."""
    if not isinstance(body, dict):
        return
    for name, most in _longest(model):
        value = body.get(name)
        if isinstance(value, list) and len(value) > most:
            fault = Problem((name,), f"has {len(value):,} entries", f"send up to {most:,}")
            raise ProblemError(422, f"{name}: {fault.message} ({fault.hint})", errors=[fault])
    if len(body) > len(model.model_fields) + _MOST_UNKNOWN:
        unknown = [name for name in body if name not in model.model_fields][:_MOST_UNKNOWN]
        faults = [Problem((name[:200],), "unknown field") for name in unknown]
        raise ProblemError(422, f"{len(body):,} fields, most of them unknown", errors=faults)


@cache
def _longest(model: type[BaseModel]) -> tuple[tuple[str, int], ...]:
    """The fields that say how long they may be."""
    return tuple(
        (name, one.max_length)
        for name, field in model.model_fields.items()
        for one in field.metadata
        if isinstance(one, MaxLen)
    )


def parse_line(line: bytes, number: int, *, max_depth: int) -> dict[str, Json]:
    """Read a line of a dataset, which must be an object."""
    where = f"line {number}"
    data = parse(line, max_depth=max_depth, where=where)
    if isinstance(data, dict):
        return data
    raise refusal(where, "a row must be a JSON object", 'such as {"answer": "4"}')


def refusal(place: str, message: str, hint: str = "", status: int = 400) -> ProblemError:
    """A refusal of one place of a body."""
    detail = f"{place or 'the body'}: {message}" + (f" ({hint})" if hint else "")
    return ProblemError(status, detail, errors=[Problem((place,), message, hint)])
