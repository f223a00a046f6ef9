"""The OpenAPI document: what every operation needs and may answer, derived from the table."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator
from typing import Any, cast

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict

from assay.endpoint.problems import MEDIA_TYPE
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.server.admission import COOKIE
from assay.server.routes import REPEATABLE, ROLE
from assay.service.operation import KEY_PATTERN, Operation
from assay.service.table import OPERATIONS
from assay.store.pages import Page
from assay.types import codec
from assay.version import __version__

_METHODS = ("get", "put", "post", "delete", "patch")
_ABOUT = """\
Turn an LLM's answer, or an agent's work, into a reward you can trust.

Send an API key as `Authorization: Bearer assay_...`. A refusal is `application/problem+json` with
the field, the fault and the fix. Lists go on `after` the `next` of a page; a `POST` with an
`Idempotency-Key` may be sent again.
"""
_IDEMPOTENT = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Send the request again with the same key, and it is carried out once.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"},
    "example": "0b9f1c9e-5b0e-4a3f-9c55-1f6d1f0e7a11",
}
_MEANINGS = {
    400: "Malformed: not JSON, or not a finite number.",
    401: "No valid key or session.",
    403: "The role does not allow it, or the request is from another origin.",
    404: "There is no such thing.",
    408: "The rest of the body did not come in time.",
    409: "The name is taken, the thing is in use, or the idempotency key is another request's.",
    412: "It was changed meanwhile.",
    413: "The body is too large.",
    415: "The body has another media type.",
    421: "The server has another name.",
    422: "Understood, and refused: a field is wrong.",
    423: "The grader is locked.",
    428: "`If-Match` is missing.",
    429: "Too many failures came from this address, or too many requests of the project wait.",
    500: "An error of the server.",
    503: "The database or the sandbox cannot be used now.",
}
_ETAG = {"ETag": {"schema": {"type": "string"}, "description": "Begins with KEY@NUMBER."}}


class FaultShown(BaseModel):
    """One thing that is wrong."""

    model_config = ConfigDict(extra="forbid")

    field: str
    message: str
    hint: str


class ProblemShown(BaseModel):
    """A refusal or a failure (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    errors: list[FaultShown]


def problem_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Replies that are problems, for the ``responses`` of a route."""
    return {
        status: {
            "description": _MEANINGS[status],
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemShown"}}},
        }
        for status in statuses
    }


def describe_reply(operation: Operation[..., Any]) -> dict[int | str, dict[str, Any]]:
    """The ``responses`` of an operation's route."""
    told: dict[int | str, dict[str, Any]] = problem_responses(*operation.faults)
    done: dict[str, Any] = {"description": "Successful Response"}
    if operation.output is not type(None):
        reference = {"$ref": f"#/components/schemas/{_name_of(operation.output)}"}
        done["content"] = {"application/json": {"schema": reference}}
    if operation.headers is not None and operation.tag == "graders":
        done["headers"] = _ETAG
        if operation.method == "GET":
            told[304] = {"description": "The client has it already."}
    return {operation.status: done, **told}


def describe(app: FastAPI) -> dict[str, Any]:
    """The document of an app; made once."""
    if app.openapi_schema is None:
        app.openapi_schema = _described(app)
    return app.openapi_schema


def _described(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(
        title="assay", version=__version__, description=_ABOUT, routes=app.routes
    )
    components = cast("dict[str, Any]", document.setdefault("components", {}))
    schemas = cast("dict[str, Any]", components.setdefault("schemas", {}))
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    _add_problem(schemas)
    records: dict[str, Any] = {}
    for record in _replies(app):
        _add_record(record, records)
    schemas |= records
    for model in _models(BaseModel):
        if model.__name__ in schemas:  # as they were written: nulls were dropped on the way
            extra = cast("dict[str, Any]", model.model_config.get("json_schema_extra") or {})
            schemas[model.__name__].update(extra)
    _add_definitions(schemas)
    components["securitySchemes"] = {
        "key": {"type": "http", "scheme": "bearer", "description": "An API key."},
        "session": {
            "type": "apiKey",
            "in": "cookie",
            "name": COOKIE,
            "description": "Of a browser; `_PORT` follows where the address names a port.",
        },
    }
    paths = cast("dict[str, dict[str, Any]]", document["paths"])
    for path, operations in paths.items():
        for method in _METHODS:
            if method in operations:
                _complete(path, method, operations[method])
    return document


def _replies(app: FastAPI) -> Iterator[object]:
    """The records that are replies."""
    yield from (one.output for one in OPERATIONS if one.output is not type(None))
    for route in app.routes:
        if isinstance(route, APIRoute) and dataclasses.is_dataclass(route.response_model):
            yield cast("object", route.response_model)


def _models(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for model in base.__subclasses__():
        if model.__module__.startswith("assay.server."):
            yield model
        yield from _models(model)


def _name_of(record: object) -> str:
    """What a record is called in the document; ``Page[JobRecord]`` is a ``JobPage``."""
    if typing.get_origin(record) is Page:
        (item,) = typing.get_args(record)
        return item.__name__.removesuffix("Record") + "Page"
    return cast("type", record).__name__


def _add_record(record: object, schemas: dict[str, Any]) -> None:
    """The schema of what an operation returns: its dataclass, with every field in every reply."""
    name = _name_of(record)
    if name in schemas:
        return
    kind: Any = typing.get_origin(record) or record
    hints = dict(codec.field_types(cast("type", record)))
    if kind == Graded:
        hints["error"] = str | None  # no error is null in JSON
    about = codec.field_docs(kind)

    def reference(record: type) -> dict[str, Json]:
        _add_record(record, schemas)
        return {"$ref": f"#/components/schemas/{record.__name__}"}

    properties: dict[str, Any] = {}
    schemas[name] = {"title": name, "type": "object", "properties": properties}
    for field in dataclasses.fields(kind):
        properties[field.name] = codec.schema(hints[field.name], reference)
        if description := about.get(field.name):
            properties[field.name] = {**properties[field.name], "description": description}
    doc = (kind.__doc__ or "").partition("\n")[0]
    schemas[name] |= {
        "description": doc,
        "required": list(properties),
        "additionalProperties": False,
    }


def _complete(path: str, method: str, operation: dict[str, Any]) -> None:
    """What holds for every operation of a sort."""
    served = path.startswith("/serve/")
    role = operation.get(ROLE, "editor" if served else "anyone")
    operation[ROLE] = role
    responses = cast("dict[str, Any]", operation["responses"])
    responses.pop("422", None)
    usual = [421, 500]
    if role != "anyone":
        operation["security"] = [{"key": []}, {"session": []}]
        usual += [401, 403, 429, 503]
    if path.startswith(("/readyz", "/metrics", "/login")):
        usual += [503]
    if served:
        _add_parameters(operation)
    if operation.get("parameters") or method in ("post", "put", "patch") or role != "anyone":
        usual.append(422)
    if "{" in path:
        usual.append(404)
    if "requestBody" in operation:
        usual += [400, 408, 413, 415]
    if method != "get":
        usual.append(403)
    if operation.pop(REPEATABLE, False):
        operation.setdefault("parameters", []).append(dict(_IDEMPOTENT))
        usual.append(409)
    for status, told in problem_responses(*usual).items():
        responses.setdefault(str(status), told)


def _add_parameters(operation: dict[str, Any]) -> None:
    """The parts of the path that the routes of an endpoint do not declare."""
    operation["parameters"] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "pattern": KEY_PATTERN},
            "example": example,
        }
        for name, example in (("project", "default"), ("key", "four"))
    ]


def _add_problem(schemas: dict[str, Any]) -> None:
    problem = ProblemShown.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas.update(problem.pop("$defs", {}))
    schemas["ProblemShown"] = problem


def _add_definitions(schemas: dict[str, Any]) -> None:
    """The fields of each kind of grader; which of them holds depends on ``kind``."""
    from assay.registry.definitions import KINDS, definition_schema

    options: list[dict[str, str]] = []
    for kind in KINDS:
        name = f"Definition_{kind}"
        schemas[name] = {"title": name, **definition_schema(kind)}
        options.append({"$ref": f"#/components/schemas/{name}"})
    for body in ("CreateGraderBody", "ValidateGraderBody", "UpdateGraderBody", "TryGraderBody"):
        fields = schemas[body]["properties"]
        fields["kind"] = {**fields["kind"], "enum": list(KINDS)}
        fields["definition"] = {
            "title": "Definition",
            "description": fields["definition"].get("description", "The fields of its kind."),
            "examples": fields["definition"].get("examples", []),
            "anyOf": options,
        }
