"""OpenAI's ``/v1/fine_tuning/alpha/graders/run`` and ``/validate``, without the transport."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import cast, get_args

from assay.errors import InputError, nearest
from assay.graders.openai.base import OpenAIDefinition
from assay.graders.openai.definitions import models_needed, read_definition
from assay.graders.openai.rewards import FaultError, Flag, GivenReward
from assay.graders.openai.template import TemplateScope, sample_of
from assay.scoring.json_safe import Json
from assay.types.codec import Problem, ShapeError

_DETAILS = (
    "model_grader_server_error_details",
    "python_grader_runtime_error_details",
    "python_grader_server_error_type",
)
_TOKENS = ("prompt_tokens", "completion_tokens", "cached_tokens", "total_tokens")
_ERRORS = get_args(Flag)


async def run_grader(body: Mapping[str, Json]) -> dict[str, Json]:
    """Grade one sample: the answer to ``POST /v1/fine_tuning/alpha/graders/run``.

    As there, what could not be graded has the reward 0.0 and says so in ``metadata.errors``: look
    at those before you believe a 0.

    Raises:
        InputError: For a malformed body, or a grader that needs a model nobody can ask here.
        SandboxUnavailableError: Nothing untrusted can run on this machine.
        MissingExtraError: Packages that the grader needs are not installed.
    """
    definition = _definition(body, ("grader", "model_sample", "item"))
    await _check(definition)
    sample, item = body.get("model_sample"), body.get("item")
    if not isinstance(sample, str):
        raise ShapeError([Problem(("model_sample",), "expected text", "what the model said")])
    if item is not None and not isinstance(item, dict):
        raise ShapeError([Problem(("item",), "expected an object", "the row of the dataset")])
    _require_no_model(definition)
    started = time.perf_counter()
    try:
        outcome = await definition.graded(TemplateScope(item or {}, sample_of(sample)))
    except FaultError as fault:
        outcome = fault
    return _envelope(body, outcome, seconds=time.perf_counter() - started)


async def check_grader(body: Mapping[str, Json]) -> dict[str, Json]:
    """Check a grader: the answer to ``POST /v1/fine_tuning/alpha/graders/validate``.

    Sources are parsed in the sandbox.

    Raises:
        InputError: With everything that is wrong in it.
        SandboxError: If a source cannot be looked at.
    """
    await _check(_definition(body, ("grader",)))
    return {"grader": body["grader"]}


def _definition(body: Mapping[str, Json], fields: tuple[str, ...]) -> OpenAIDefinition:
    problems = [
        Problem((name,), f"unknown field {name!r}", nearest(name, list(fields)), at_key=True)
        for name in body
        if name not in fields
    ]
    if "grader" not in body:
        problems.append(Problem(("grader",), "'grader' is required", at_key=True))
    if problems:
        raise ShapeError(problems)
    try:
        return read_definition(body["grader"])
    except ShapeError as error:
        raise _inside(error) from error


async def _check(definition: OpenAIDefinition) -> None:
    try:
        await definition.check()
    except ShapeError as error:
        raise _inside(error) from error


def _inside(error: ShapeError) -> ShapeError:
    """The same problems, by their paths in the body."""
    return ShapeError([replace(p, path=("grader", *p.path)) for p in error.problems])


def _require_no_model(definition: OpenAIDefinition) -> None:
    if needs := models_needed(definition):
        raise InputError(
            f"{definition.TAG} cannot run: it needs {' and '.join(needs)}",
            hint="the grader itself is well-formed",
        )


def _envelope(
    body: Mapping[str, Json], outcome: GivenReward | FaultError, *, seconds: float
) -> dict[str, Json]:
    grader = body["grader"]
    declared = grader if isinstance(grader, dict) else {}
    errors: dict[str, Json] = {**dict.fromkeys(_ERRORS, False), **dict.fromkeys(_DETAILS)}
    reward = 0.0
    if isinstance(outcome, GivenReward):
        reward = outcome.value
    else:
        errors[outcome.flag] = True
        if outcome.flag == "python_grader_runtime_error":
            errors["python_grader_runtime_error_details"] = outcome.message
        elif outcome.flag == "python_grader_server_error":
            errors["python_grader_server_error_type"] = outcome.outcome
        elif outcome.flag == "model_grader_server_error":
            errors["model_grader_server_error_details"] = outcome.message
    parts: dict[str, Json] = dict(outcome.parts)
    usage = _usage(outcome.details)
    return {
        "reward": reward,
        "sub_rewards": parts,
        "metadata": {
            "name": declared.get("name") or declared.get("type"),
            "type": declared.get("type"),
            "errors": errors,
            "execution_time": seconds,
            "scores": dict(parts),
            "token_usage": sum(used["total_tokens"] for used in usage.values()) or None,
            "sampled_model_name": None,
        },
        "model_grader_token_usage_per_model": {name: dict(used) for name, used in usage.items()},
    }


def _usage(details: Mapping[str, object]) -> dict[str, dict[str, int]]:
    """Tokens by the model that was asked, of a grader or of the parts of a `multi`."""
    found: dict[str, dict[str, int]] = {}
    for one in (details, *details.values()):
        if not isinstance(one, Mapping):
            continue
        known = cast("Mapping[str, object]", one)
        model, usage = known.get("model"), known.get("usage")
        if isinstance(model, str) and isinstance(usage, Mapping):
            given = cast("Mapping[str, int | None]", usage)
            total = found.setdefault(model, dict.fromkeys(_TOKENS, 0))
            for name in _TOKENS[:3]:
                total[name] += given.get(name) or 0
            total["total_tokens"] = total["prompt_tokens"] + total["completion_tokens"]
    return found
