"""OpenAI's grader endpoints, at the paths that its clients call."""

from __future__ import annotations

from typing import cast

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from assay.interop.openai_api import check_grader, run_grader
from assay.scoring.json_safe import Json
from assay.server.bodies import Body
from assay.server.door import Door, needs
from assay.server.openapi import problem_responses
from assay.server.problems import reply

__all__ = ["router"]

router = APIRouter(prefix="/v1/fine_tuning/alpha/graders", route_class=Door, tags=["openai"])

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
        },
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

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={"examples": [{"reward": 1.0, "sub_rewards": {}, "metadata": {}}]},
    )

    reward: float


class OpenaiGraderShown(BaseModel):
    """A grader that is well formed."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"examples": [{"grader": _GRADER}]})

    grader: dict[str, JsonValue]


@router.post(
    "/run",
    response_model=OpenaiRewardShown,
    openapi_extra=needs("editor", project="own"),
    responses=problem_responses(503),
)
async def run(request: Request, body: OpenaiRunBody) -> Response:
    """Grade one sample with a grader in OpenAI's format; nothing is stored."""
    del body  # checked; what is passed on is what was sent
    return reply(await run_grader(cast("dict[str, Json]", await request.json())))


@router.post(
    "/validate",
    response_model=OpenaiGraderShown,
    openapi_extra=needs("editor", project="own"),
    responses=problem_responses(503),
)
async def validate(request: Request, body: OpenaiCheckBody) -> Response:
    """Check a grader in OpenAI's format."""
    del body
    return reply(await check_grader(cast("dict[str, Json]", await request.json())))
