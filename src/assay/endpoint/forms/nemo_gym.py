"""The form of NeMo Gym's resources server: ``/verify``, ``/seed_session``, ``/aggregate_metrics``.

A rollout that could not be graded has the reward 0.0 and ``_ng_failure_class``, by which the
trainer keeps it out of its results and grades it again later.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from assay.endpoint.problems import ProblemError
from assay.errors import InputError, ScoreError
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.scoring.results import finite_number
from assay.types.codec import Problem
from assay.types.submission import Submission
from assay.types.thread import StringThread

__all__ = ["AGGREGATE_REQUEST", "REQUEST", "aggregate", "read", "reply"]

REQUEST: dict[str, Json] = {
    "type": "object",
    "required": ["responses_create_params", "response"],
    "properties": {
        "responses_create_params": {"type": "object"},
        "response": {"type": "object"},
    },
}
"""JSON Schema of a rollout to verify."""

AGGREGATE_REQUEST: dict[str, Json] = {
    "type": "object",
    "required": ["verify_responses"],
    "properties": {"verify_responses": {"type": "array", "items": {"type": "object"}}},
}
"""JSON Schema of rollouts to aggregate."""

_FAILURE = "_ng_failure_class"
_CAUSE = "_ng_failure_judge_error"
_TASK = "_ng_task_index"
_OURS = frozenset({"responses_create_params", "response", "question", "expected", "reward"})


def read(body: Json) -> tuple[dict[str, Json], Submission]:
    """A rollout: the body as it came, and what is graded of it.

    The answer is the text of the response's last message; a response without any has the empty
    answer. What is expected is the row's ``expected`` or ``expected_answer``; the rest of the row
    is metadata.

    Raises:
        ProblemError: For a body of another shape.
    """
    row = body if isinstance(body, dict) else {}
    asked, response = row.get("responses_create_params"), row.get("response")
    output = response.get("output") if isinstance(response, dict) else None
    if not isinstance(asked, dict) or not isinstance(output, list):
        missing = "responses_create_params" if not isinstance(asked, dict) else "response.output"
        problem = Problem((missing,), "is missing or of another type")
        raise ProblemError(422, f"{missing} {problem.message}", errors=[problem])
    answer = _answer(output)
    metadata = {k: v for k, v in row.items() if k not in _OURS and not k.startswith("_ng_failure")}
    try:
        thread = StringThread.from_messages(_turns(asked), metadata).assistant(answer)
    except InputError as error:
        raise ProblemError(422, f"responses_create_params.input: {error.message}") from None
    question = row.get("question")
    submission = Submission(
        answer=answer,
        thread=thread,
        question=question if isinstance(question, str) else thread.last_user_turn(),
        expected=row.get("expected", row.get("expected_answer")),
        metadata=metadata,
    )
    return row, submission


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


def reply(row: Mapping[str, Json], graded: Graded) -> dict[str, Json]:
    """What ``POST /verify`` answers: the body again, with the reward."""
    # What an earlier verification said, or whoever wrote the row, says nothing about this one.
    kept = {key: value for key, value in row.items() if not key.startswith("_ng_failure")}
    if graded.score is not None:
        return {**kept, "reward": graded.score, "reason": graded.reason}
    failed = graded.status == "error"
    return {
        **kept,
        "reward": 0.0,
        _FAILURE: "judge_failed" if failed else "skipped",
        _CAUSE: graded.error if failed else graded.reason,
    }


def aggregate(body: Json) -> dict[str, Json]:
    """What ``POST /aggregate_metrics`` answers: mean, least and most reward, by task and overall.

    Rollouts that could not be graded are left out and counted.

    Raises:
        ProblemError: For a body of another shape.
    """
    rollouts = body.get("verify_responses") if isinstance(body, dict) else None
    if not isinstance(rollouts, list):
        raise ProblemError(422, "the body must be an object with a list 'verify_responses'")
    rewards: list[float] = []
    tasks: dict[int, list[float]] = {}
    for rollout in rollouts:
        row = rollout if isinstance(rollout, dict) else {}
        task = row.get(_TASK)
        try:
            reward = finite_number(row.get("reward"), what="the reward")
        except ScoreError:
            continue
        if row.get(_FAILURE) is not None:
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
