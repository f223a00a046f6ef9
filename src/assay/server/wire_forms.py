"""The wire forms of trainers and platforms: ``/serve/PROJECT/KEY``, and OpenAI's endpoints."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from http import HTTPStatus
from typing import Any, TypeAlias, cast

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from assay.endpoint import Served, router_finding
from assay.endpoint.problems import ProblemError
from assay.graders.function import FunctionGrader
from assay.interop.openai_api import check_grader, run_grader
from assay.registry.definitions import definition_of
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.server.admission import admit
from assay.server.bodies import Body
from assay.server.context import Item, caller, context
from assay.server.problems import OPENAI
from assay.server.replies import reply
from assay.server.routes import GuardedRoute, needs
from assay.service.graders import version_to_run
from assay.service.operation import KEY_PATTERN
from assay.store.catalog import GraderVersion

PREFIX = "/serve/{project}/{key}"

_KEY = re.compile(KEY_PATTERN)


def served_router() -> APIRouter:
    """The routes, to be included under `PREFIX`."""
    return router_finding(_find)


async def _find(request: Request) -> Served:
    """The latest version of the grader that the path names."""
    await admit(request, "editor")
    project, key = request.path_params["project"], request.path_params["key"]
    if not (_KEY.search(project) and _KEY.search(key)):
        raise ProblemError(404, "no key of a project and a grader")
    server = context(request)
    version = await server.storage.run(
        lambda database: version_to_run(server.desk(database, project), key, None)
    )

    async def grade(items: Sequence[Item]) -> list[Graded]:
        return list((await server.grade_apart(project, version, items)).graded)

    return Served(
        scorer=grade,
        name=key,
        version=str(version.number),
        score_range=_range(version),
        max_bytes=server.settings.max_body_bytes,
    )


def _range(version: GraderVersion) -> tuple[float, float] | None:
    """The scores that a version may give; None for any number."""
    definition = definition_of(version)
    # Other kinds are graded on their own scale, and their scores brought to [0, 1].
    if definition.kind != "function":
        return 0.0, 1.0
    return FunctionGrader.of(definition.specs[0].options).function().range


# OpenAI's grader endpoints, at the paths that its clients call.


class OpenaiErrorShown(BaseModel):
    """What went wrong, as OpenAI's clients read it."""

    model_config = ConfigDict(extra="forbid")

    error: dict[str, JsonValue]


openai_router = APIRouter(
    prefix=OPENAI,
    route_class=GuardedRoute,
    tags=["openai"],
    responses={
        status: {"model": OpenaiErrorShown, "description": HTTPStatus(status).phrase}
        for status in (400, 401, 403, 408, 413, 415, 421, 429, 500, 503)
    },
)

_GRADER: dict[str, JsonValue] = {
    "type": "string_check",
    "name": "same",
    "input": "{{ sample.output_text }}",
    "reference": "{{ item.reference }}",
    "operation": "eq",
}


class OpenaiRunBody(Body):
    """A sample to grade."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"grader": _GRADER, "model_sample": "4", "item": {"reference": "4"}}]
        }
    )

    grader: dict[str, JsonValue] = Field(examples=[_GRADER])
    model_sample: str
    item: dict[str, JsonValue] | None = None


class OpenaiCheckBody(Body):
    """A grader to check."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"grader": _GRADER}]})

    grader: dict[str, JsonValue] = Field(examples=[_GRADER])


class OpenaiRewardShown(BaseModel):
    """What came of a sample."""

    model_config = ConfigDict(extra="allow")

    reward: float


class OpenaiGraderShown(BaseModel):
    """A grader that is well formed."""

    model_config = ConfigDict(extra="allow")

    grader: dict[str, JsonValue]


_Openai: TypeAlias = Callable[[Mapping[str, Json]], Coroutine[Any, Any, dict[str, Json]]]


async def _openai(request: Request, work: _Openai) -> Response:
    body = cast("dict[str, Json]", await request.json())
    lanes, project = context(request).lanes, caller(request).project
    return reply(await lanes.run("functions", project, lambda: work(body)))


@openai_router.post(
    "/run",
    name="run",
    response_model=OpenaiRewardShown,
    openapi_extra=needs("editor", project="own"),
)
async def run_openai_grader(request: Request, body: OpenaiRunBody) -> Response:
    """Grade one sample with a grader in OpenAI's format; nothing is stored."""
    del body  # checked; what is passed on is what was sent
    return await _openai(request, run_grader)


@openai_router.post(
    "/validate",
    name="validate",
    response_model=OpenaiGraderShown,
    openapi_extra=needs("editor", project="own"),
)
async def validate_openai_grader(request: Request, body: OpenaiCheckBody) -> Response:
    """Check a grader in OpenAI's format."""
    del body
    return await _openai(request, check_grader)
