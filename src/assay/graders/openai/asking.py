"""Ask a judge what one of OpenAI's graders asks, and say in OpenAI's words what went wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from assay.errors import InputError, ModelError, ModelFault
from assay.graders.openai.judges import JudgeRequest
from assay.graders.openai.rewards import FaultError, Flag
from assay.models import current_client, parse_reference, unconfigured
from assay.models.messages import Message, Reply, Request, Role
from assay.scoring.json_safe import Json

__all__ = ["described", "reference_of", "send", "why_not"]

_FLAGS: Mapping[ModelFault, Flag] = {
    "refused": "model_grader_refusal_error",
    "truncated": "model_grader_parse_error",
    "unreadable": "model_grader_parse_error",
    "unbelievable": "model_grader_parse_error",
}
"""Anything else is an error of the server's: also that it has no time for us, or no room."""

_MOST_TOKENS = 4096


async def send(request: JudgeRequest) -> Reply:
    """Ask.

    Returns:
        The reply; its ``data`` has the shape that was asked for.

    Raises:
        FaultError: With OpenAI's flag for what went wrong.
    """
    sampling = request.sampling
    limit = sampling.get("max_completions_tokens") or sampling.get("max_completion_tokens")
    try:
        return await current_client().ask(
            Request(
                model=reference_of(request.model),
                messages=tuple(map(_message, request.messages)),
                schema=request.response_format,
                schema_name="grade",
                max_tokens=cast("int | None", limit) or _MOST_TOKENS,
                temperature=cast("float | None", sampling.get("temperature")),
                top_p=cast("float | None", sampling.get("top_p")),
                seed=cast("int | None", sampling.get("seed")),
                reasoning_effort=cast("str | None", sampling.get("reasoning_effort")),
                volatile=request.fences,
            )
        )
    except ModelError as error:
        flag = _FLAGS.get(error.kind, "model_grader_server_error")
        details = {"model": request.model, "error_kind": error.kind, "status": error.status}
        raise FaultError(str(error), flag=flag, outcome=error.kind, details=details) from error
    except InputError as error:
        raise FaultError(str(error), flag="model_grader_server_error") from error


def reference_of(model: str) -> str:
    """The model reference that a grader's ``model`` means.

    A name that is neither ours nor of a known family is one of the provider's whose API this is:
    so one at ``OPENAI_BASE_URL`` has.

    Raises:
        InputError: If it can name no model.
    """
    theirs = f"openai:{model}"
    try:
        known = parse_reference(model)
    except InputError:
        parse_reference(theirs)
        return theirs
    if known.provider or not unconfigured(model) or unconfigured(theirs):
        return model
    return theirs


def why_not(model: str) -> str:
    """Why a grader's ``model`` cannot be asked on this machine; "" where it can."""
    try:
        return unconfigured(reference_of(model))
    except InputError as error:
        return str(error)


def described(reply: Reply) -> dict[str, Json]:
    """What is kept of a reply beside its verdict."""
    usage = reply.usage
    return {
        "reply": reply.text,
        "served": reply.model,
        "request": reply.digest,
        "cost_usd": reply.cost_usd,
        "from_cache": reply.is_hit,
        "repairs": reply.repairs,
        "dropped": list(reply.dropped),
        "usage": {
            "prompt_tokens": usage.input_tokens,
            "completion_tokens": usage.output_tokens,
            "cached_tokens": usage.cached_tokens,
        },
    }


def _message(said: Mapping[str, Json]) -> Message:
    role = cast("str", said["role"])
    ours = cast("Role", {"developer": "system"}.get(role, role))
    parts = [_part(part) for part in cast("list[dict[str, Json]]", said["content"])]
    if all(part["type"] == "text" for part in parts):
        return Message(ours, "\n".join(str(part["text"]) for part in parts))
    return Message(ours, tuple(parts))


def _part(part: Mapping[str, Json]) -> dict[str, Json]:
    """A part of a message as chat completions have it."""
    kind = part["type"]
    if kind == "input_image":
        image: dict[str, Json] = {"url": part.get("image_url")}
        if part.get("detail") is not None:
            image["detail"] = part["detail"]
        return {"type": "image_url", "image_url": image}
    if kind == "input_audio":
        return {"type": "input_audio", "input_audio": part.get("input_audio")}
    return {"type": "text", "text": part["text"]}
