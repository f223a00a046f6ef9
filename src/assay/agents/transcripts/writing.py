"""Traces in the formats of others: ATIF and chat messages for training.

What a format has no place for is listed in ``docs/traces.md``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import cast

from assay.agents.transcripts.document import texts_of
from assay.frozen import frozen
from assay.graders.usage import COPIED, totals_of, walk
from assay.scoring.json_safe import Json
from assay.types.trace import (
    ActionStep,
    AgentStep,
    AnyStep,
    Step,
    SubagentStep,
    ToolCall,
    ToolResult,
    ToolStep,
    Trace,
    as_turns,
)

_VERSION = "ATIF-v1.7"


@frozen
class ToldScore:
    """What one grader gave, or all of them.

    Attributes:
        name: The grader's.
        value: None where there is no score.
        reason: Why.
        label: ``pass`` or ``fail``; without a score ``skipped`` or ``error``.
    """

    name: str
    value: float | None
    reason: str = ""
    label: str = ""


@frozen(kw_only=True)
class Told:
    """A trace, and what is said of it beside its steps.

    Attributes:
        id: The cell's name in its run.
        run: The run.
        trace: It.
        trace_id: By which it is found elsewhere; "" where it was never a run's.
        prompt: What was asked; "" where the trace shows it, or nobody knows.
        agent: What did the work.
        model: The model.
        reward: What it was worth; None where that could not be said.
        label: Whether that passed, as in `ToldScore`.
        scores: What each grader gave.
        began: When the work was stored, for steps without times.
    """

    id: str
    run: str
    trace: Trace
    trace_id: str = ""
    prompt: str = ""
    agent: str = ""
    model: str = ""
    reward: float | None = None
    label: str = ""
    scores: tuple[ToldScore, ...] = ()
    began: str = ""


# ---- ATIF --------------------------------------------------------------------------------------


def as_atif(told: Told) -> dict[str, Json]:
    """A trajectory of version 1.7."""
    document = _trajectory(told.trace, told.id, told.agent or "unknown", told.model)
    totals = totals_of(told.trace)
    steps = [step for _, step in walk(told.trace) if isinstance(step, AgentStep)]
    usages = [step.usage for step in steps if step.usage is not None]
    prompts = [usage.prompt_tokens for usage in usages]
    outputs = [usage.completion_tokens for usage in usages]
    final: dict[str, Json] = {"total_cost_usd": totals.cost_usd}
    if len(usages) == len(steps) and None not in prompts and None not in outputs:
        final["total_prompt_tokens"] = sum(n or 0 for n in prompts)
        final["total_completion_tokens"] = sum(n or 0 for n in outputs)
    document["final_metrics"] = {key: one for key, one in final.items() if one is not None}
    listed: list[Json] = [
        {"name": one.name, "value": one.value, "reason": one.reason} for one in told.scores
    ]
    document["extra"] = {"run": told.run, "reward": told.reward, "scores": listed}
    if told.prompt and not any(step.source == "user" for step in told.trace.steps):
        asked: Json = {"step_id": 1, "source": "user", "message": told.prompt}
        later = cast("list[dict[str, Json]]", document["steps"])
        moved: list[Json] = [{**one, "step_id": n} for n, one in enumerate(later, 2)]
        document["steps"] = [asked, *moved]
    return document


def _trajectory(trace: Trace, name: str, agent: str, model: str) -> dict[str, Json]:
    steps: list[dict[str, Json]] = []
    inner: list[Json] = []
    for step in as_turns(_with_answer(trace)):
        if isinstance(step, SubagentStep):
            called = step.name or f"subagent {len(inner) + 1}"
            inner.append(_trajectory(step.subagent, f"{name}/{len(inner)}", called, ""))
            reference: Json = {"trajectory_id": f"{name}/{len(inner) - 1}"}
            if steps:
                _results(steps[-1]).append({"subagent_trajectory_ref": [reference]})
        elif isinstance(step, ToolStep):
            _observe(steps, step)
        else:
            steps += _atif_step(step)
    for number, written in enumerate(steps, 1):
        written["step_id"] = number
    about: dict[str, Json] = {"name": agent, "version": "unknown"}
    if model:
        about["model_name"] = model
    document: dict[str, Json] = {
        "schema_version": _VERSION,
        "session_id": name,
        "trajectory_id": name,
        "agent": about,
        "steps": list[Json](steps),
    }
    if inner:
        document["subagent_trajectories"] = inner
    return document


def _with_answer(trace: Trace) -> list[Step]:
    """The steps, and an answer that an agent left without one: a trajectory ends with it."""
    spoke = any(isinstance(step, AgentStep | ActionStep) for step in trace.steps)
    if spoke or not trace.content:
        return trace.steps
    return [*trace.steps, AgentStep(content=trace.content, done=True)]


def _atif_step(step: Step) -> Iterator[dict[str, Json]]:
    written: dict[str, Json] = {"step_id": 0}
    if step.started_at or step.ended_at:
        written["timestamp"] = step.started_at or step.ended_at
    if step.extra.get(COPIED) is True:
        written["is_copied_context"] = True
    if not isinstance(step, AgentStep):
        for message in step.messages:
            said = message if isinstance(message, dict) else {}
            source = step.source if step.source in ("user", "system") else "system"
            yield {**written, "source": source, "message": texts_of(said.get("content")) or ""}
        if step.error:
            yield {**written, "source": "system", "message": "", "extra": {"error": step.error}}
        return
    written |= {"source": "agent", "message": step.content or step.refusal or ""}
    if step.model:
        written["model_name"] = step.model
    if step.reasoning:
        written["reasoning_content"] = step.reasoning
    if step.tool_calls:
        written["tool_calls"] = [_atif_call(call) for call in step.tool_calls]
    if metrics := _metrics(step):
        written["metrics"] = metrics
    yield written


def _atif_call(call: ToolCall) -> Json:
    return {
        "tool_call_id": call.id,
        "function_name": call.name,
        "arguments": dict(call.arguments),
    }


def _metrics(step: AgentStep) -> dict[str, Json]:
    usage, sample = step.usage, step.sample
    metrics: dict[str, Json] = {}
    if usage is not None:
        metrics = {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "cached_tokens": usage.cached_tokens,
            "cost_usd": usage.cost_usd,
        }
    if sample is not None:
        metrics |= {
            "prompt_token_ids": list[Json](sample.prompt_token_ids) or None,
            "completion_token_ids": list[Json](sample.output_token_ids) or None,
            "logprobs": list[Json](sample.output_logprobs) or None,
        }
    return {key: one for key, one in metrics.items() if one is not None}


def _results(step: dict[str, Json]) -> list[Json]:
    observation = cast("dict[str, Json]", step.setdefault("observation", {"results": []}))
    return cast("list[Json]", observation["results"])


def _observe(steps: list[dict[str, Json]], step: ToolStep) -> None:
    """Put what a tool did to the step that called it; one that no turn asked for has a turn."""
    caller: dict[str, Json] | None = None
    for one in reversed(steps):
        calls = cast("list[dict[str, Json]]", one.get("tool_calls") or [])
        if any(call["tool_call_id"] == step.call.id for call in calls):
            caller = one
            break
    if caller is None:
        caller = {"step_id": 0, "source": "agent", "message": "", "llm_call_count": 0}
        caller["tool_calls"] = [_atif_call(step.call)]
        steps.append(caller)
    if step.result is not None:
        content = step.result.content
        told = content if isinstance(content, str | list) else json.dumps(content)
        _results(caller).append({"source_call_id": step.call.id, "content": told})
        if step.result.is_error:
            extra = cast("dict[str, Json]", caller.setdefault("extra", {}))
            failed = cast("list[Json]", extra.setdefault("failed_calls", []))
            failed.append(step.call.id)


# ---- chat --------------------------------------------------------------------------------------


def as_chat(told: Told) -> dict[str, Json]:
    """Messages as training takes them: each reply with its token ids, where they are known."""
    messages = [
        message for step in as_turns(_with_answer(told.trace)) for message in _messages(step)
    ]
    before = (message for step in told.trace.steps for message in _messages(step))
    if told.prompt and all(message["role"] != "user" for message in before):
        messages.insert(0, {"role": "user", "content": told.prompt})
    return {"id": told.id, "messages": list[Json](messages), "reward": told.reward}


def _messages(step: AnyStep) -> Iterator[dict[str, Json]]:
    if isinstance(step, SubagentStep) or step.extra.get(COPIED) is True:
        return
    if isinstance(step, ToolStep):
        if step.result is not None:
            said = said_by(step.result)
            yield {"role": "tool", "tool_call_id": step.call.id, "content": said}
        return
    if not isinstance(step, AgentStep):
        for message in step.messages:
            if isinstance(message, dict) and message.get("role") in ("user", "system"):
                yield dict(message)
        return
    written: dict[str, Json] = {"role": "assistant", "content": step.content}
    if step.refusal:
        written["refusal"] = step.refusal
    if step.reasoning:
        written["reasoning_content"] = step.reasoning
    if step.tool_calls:
        written["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(dict(call.arguments))},
            }
            for call in step.tool_calls
        ]
    if step.sample is not None:
        written |= {
            "prompt_token_ids": list[Json](step.sample.prompt_token_ids),
            "token_ids": list[Json](step.sample.output_token_ids),
            "logprobs": list[Json](step.sample.output_logprobs),
        }
    yield written


def said_by(result: ToolResult) -> str:
    """What a tool answered, as text."""
    content = result.content
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
