"""The OpenAPI document: what every operation needs and may answer, derived from its route."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from assay.server.access import COOKIE
from assay.server.documents import problem_responses
from assay.server.door import REPEATABLE, ROLE
from assay.server.models.base import KEY_PATTERN, ProblemShown
from assay.types.codec import schema
from assay.version import __version__

__all__ = ["describe"]

_METHODS = ("get", "put", "post", "delete", "patch")
_ABOUT = """\
Turn an LLM's answer, or an agent's work, into a reward you can trust.

Send an API key as `Authorization: Bearer assay_...`. A refusal is `application/problem+json` with
the field, the fault and the mend. Lists go on with `cursor`; a `POST` with an `Idempotency-Key` may
be sent again.
"""
_IDEMPOTENT = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Send the request again with the same key, and it is carried out once.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"},
    "example": "0b9f1c9e-5b0e-4a3f-9c55-1f6d1f0e7a11",
}


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
    for model in _models(BaseModel):
        if model.__name__ in schemas:  # as they were written: nulls were dropped on the way
            extra = cast("dict[str, Any]", model.model_config.get("json_schema_extra") or {})
            schemas[model.__name__].update(extra)
    _add_definitions(schemas)
    components["securitySchemes"] = {
        "key": {"type": "http", "scheme": "bearer", "description": "An API key."},
        "session": {"type": "apiKey", "in": "cookie", "name": COOKIE},
    }
    paths = cast("dict[str, dict[str, Any]]", document["paths"])
    for path, operations in paths.items():
        for method in _METHODS:
            if method in operations:
                _complete(path, method, operations[method])
    return document


def _models(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for model in base.__subclasses__():
        if model.__module__.startswith("assay.server."):
            yield model
        yield from _models(model)


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
        usual += [400, 413, 415]
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
    from assay.registry import KINDS

    options: list[dict[str, str]] = []
    for kind, definition in KINDS.items():
        name = f"Definition_{kind}"
        schemas[name] = {"title": name, **schema(definition)}
        options.append({"$ref": f"#/components/schemas/{name}"})
    for body in ("GraderBody", "ValidateBody", "VersionBody"):
        fields = schemas[body]["properties"]
        fields["kind"] = {**fields["kind"], "enum": list(KINDS)}
        fields["definition"] = {
            "title": "Definition",
            "description": fields["definition"].get("description", "The fields of its kind."),
            "examples": fields["definition"].get("examples", []),
            "anyOf": options,
        }
