"""The form of NeMo Gym's resources server: ``/verify``, ``/seed_session``, ``/aggregate_metrics``.

A rollout that could not be graded has the reward 0.0 and three marks: ``_ng_failure_class``, by
which Gym keeps it out of its results and grades it again later; ``mask_sample``, by which Gym 0.7
keeps it out of its figures; and ``instance_config.mask_sample``, by which NeMo RL keeps it out of
the loss. (Its 0.0 still counts in the mean of its group there.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import cast

from assay.errors import InputError, ScoreError
from assay.graders.endpoints.forms.form import (
    Asked,
    Item,
    NotGradedError,
    Server,
    Span,
    WireForm,
    bad,
    before_and_answer,
    malformed,
    reason_in,
    remote_error,
    scored,
)
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json, plain, record_parameters
from assay.scoring.results import finite_number
from assay.types.submission import Submission
from assay.types.thread import StringThread

_SCHEMA: dict[str, Json] = {
    "type": "object",
    "required": ["responses_create_params", "response"],
    "properties": {
        "responses_create_params": {"type": "object"},
        "response": {"type": "object"},
    },
}

AGGREGATE_REQUEST: dict[str, Json] = {
    "type": "object",
    "required": ["verify_responses"],
    "properties": {"verify_responses": {"type": "array", "items": {"type": "object"}}},
}
"""JSON Schema of rollouts to aggregate."""

_FAILURE = "_ng_failure_class"
_CAUSE = "_ng_failure_judge_error"
_TASK = "_ng_task_index"
_INSTANCE, _MASKED = "instance_config", "mask_sample"
_KIND, _WHY = "failure_kind", "failure_reason"
_VERDICT = frozenset({"reward", _MASKED, _KIND, _WHY})
_OURS = frozenset({"responses_create_params", "response", "question", "expected", *_VERDICT})


def _encode_request(items: Sequence[Item]) -> Json:
    item, submission = items[0]
    turns, answer = before_and_answer(submission)
    content: Json = {"type": "output_text", "text": answer or "", "annotations": []}
    message: Json = {
        "id": f"msg_{item}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [content],
    }
    response: Json = {
        "id": f"resp_{item}",
        "object": "response",
        "created_at": 0,
        "model": "unknown",
        "output": [message],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
    }
    row = cast("dict[str, Json]", plain(submission.metadata))
    for name, part in (("question", submission.question), ("expected", submission.expected)):
        if part is not None:
            row.setdefault(name, part)
    return {**row, "responses_create_params": {"input": [*turns]}, "response": response}


def _decode_answer(items: Sequence[Item], reply: Json, span: Span) -> list[Graded]:
    item = items[0][0]
    if not isinstance(reply, dict):
        return [bad(item, "the reply is not an object")]
    failure = reply.get(_FAILURE)
    if failure is None and _is_masked(reply):  # its reward measures nothing
        failure = reply.get(_KIND) or _MASKED
    if failure is not None:
        told = reply.get(_CAUSE) or reply.get(_WHY)
        return [remote_error(item, {"code": failure, "message": told}, {})]
    components = reply.get("reward_components")
    details = record_parameters({"components": components}) if components else {}
    return [scored(item, reply.get("reward"), span, reason=reason_in(reply), details=details)]


def _is_masked(row: Mapping[str, Json]) -> bool:
    """Whether a rollout says of its reward that it measures nothing, to Gym or to NeMo RL."""
    instance = row.get(_INSTANCE)
    inner = instance.get(_MASKED) if isinstance(instance, dict) else None
    return any(mask not in (None, False) for mask in (row.get(_MASKED), inner))


def _decode_request(body: Json, server: Server) -> list[Asked]:
    """What is graded of a rollout.

    The answer is the text of the response's last message; a response without any has the empty
    answer. What is expected is the row's ``expected`` or ``expected_answer``; the rest of the row
    is metadata.
    """
    del server
    row = body if isinstance(body, dict) else {}
    asked, response = row.get("responses_create_params"), row.get("response")
    output = response.get("output") if isinstance(response, dict) else None
    if not isinstance(asked, dict) or not isinstance(output, list):
        missing = "responses_create_params" if not isinstance(asked, dict) else "response.output"
        raise malformed("is missing or of another type", missing)
    answer = _answer(output)
    metadata = {k: v for k, v in row.items() if k not in _OURS and not k.startswith("_ng_failure")}
    try:
        thread = StringThread.from_messages(_turns(asked), metadata).assistant(answer)
    except InputError as error:
        raise malformed(error.message, "responses_create_params", "input") from None
    question = row.get("question")
    submission = Submission(
        answer=answer,
        thread=thread,
        question=question if isinstance(question, str) else thread.last_user_turn(),
        expected=row.get("expected", row.get("expected_answer")),
        metadata=metadata,
    )
    return [("0", submission)]


def _answer(output: Sequence[Json]) -> str:
    """The text of the last message."""
    for item in reversed(output):
        if isinstance(item, dict) and item.get("type", "message") == "message":
            content = item.get("content")
            if isinstance(content, str):
                return content
            parts = [p for p in content if isinstance(p, dict)] if isinstance(content, list) else []
            texts = [p.get("text") for p in parts if p.get("type") == "output_text"]
            return "".join(text for text in texts if isinstance(text, str))
    return ""


def _turns(asked: Mapping[str, Json]) -> list[Json]:
    """What was asked, as chat messages; calls of tools and their results are left out."""
    given, instructions = asked.get("input"), asked.get("instructions")
    turns: list[Json] = []
    if isinstance(instructions, str) and instructions:
        turns.append({"role": "system", "content": instructions})
    if isinstance(given, str):
        turns.append({"role": "user", "content": given})
    elif isinstance(given, list):
        turns += [turn for turn in given if isinstance(turn, dict) and "role" in turn]
    return turns


def _encode_answer(body: Json, graded: Sequence[Graded], server: Server) -> Json:
    """The body again, with the reward."""
    row, (outcome,) = cast("dict[str, Json]", body), graded
    # What an earlier verification said, or whoever wrote the row, says nothing about this one.
    told = (_KIND, _WHY)
    kept = {k: v for k, v in row.items() if k not in told and not k.startswith("_ng_failure")}
    instance = kept.get(_INSTANCE)
    instance = dict(instance) if isinstance(instance, dict) else {}
    if outcome.score is not None:
        if _FAILURE in row:
            kept.pop(_MASKED, None)
            if instance.pop(_MASKED, None) is not None:
                kept[_INSTANCE] = instance
        return {**kept, "reward": outcome.score, "reason": outcome.reason}
    failed = outcome.status == "error"
    if server.on_error == "fail":
        raise NotGradedError(outcome.error if failed else outcome.reason)
    why = outcome.error if failed else outcome.reason
    return {
        **kept,
        _INSTANCE: {**instance, _MASKED: True},
        "reward": 0.0,
        _MASKED: True,
        _KIND: "judge_failed" if failed else "assay:skipped",  # Gym has no name of its own for it
        _WHY: why,
        _FAILURE: "judge_failed" if failed else "skipped",
        _CAUSE: why,
    }


FORM = WireForm(
    route="/verify",
    title="Verify a rollout, for NeMo Gym.",
    schema=_SCHEMA,
    encode_request=_encode_request,
    decode_request=_decode_request,
    encode_answer=_encode_answer,
    decode_answer=_decode_answer,
    most=1,
)


def session(body: Json) -> dict[str, Json]:
    """What ``/seed_session`` and ``/close_session`` answer: no state is kept.

    An Environment Server of Gym names the session itself, and wants to read its name.
    """
    name = body.get("resources_session_id") if isinstance(body, dict) else None
    return {"resources_session_id": name} if isinstance(name, str) else {}


def aggregate(body: Json) -> dict[str, Json]:
    """What ``POST /aggregate_metrics`` answers: mean, least and most reward, by task and overall.

    Rollouts that could not be graded are left out and counted.
    """
    rollouts = body.get("verify_responses") if isinstance(body, dict) else None
    if not isinstance(rollouts, list):
        raise malformed("the body must be an object with a list 'verify_responses'")
    rewards: list[float] = []
    tasks: dict[int, list[float]] = {}
    for rollout in rollouts:
        row = rollout if isinstance(rollout, dict) else {}
        task = row.get(_TASK)
        try:
            reward = finite_number(row.get("reward"), what="the reward")
        except ScoreError:
            continue
        if row.get(_FAILURE) is not None or _is_masked(row):
            continue
        rewards.append(reward)
        if isinstance(task, int):
            tasks.setdefault(task, []).append(reward)
    overall: dict[str, Json] = {**_figures(rewards), "not_graded": len(rollouts) - len(rewards)}
    groups: list[Json] = [{_TASK: task, **_figures(tasks[task])} for task in sorted(tasks)]
    key = {name: value for name, value in overall.items() if name == "mean/reward"}
    return {"group_level_metrics": groups, "agent_metrics": overall, "key_metrics": key}


def _figures(rewards: Sequence[float]) -> dict[str, Json]:
    if not rewards:
        return {}
    mean = math.fsum(rewards) / len(rewards)
    return {"mean/reward": mean, "min/reward": min(rewards), "max/reward": max(rewards)}
