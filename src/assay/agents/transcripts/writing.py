"""Traces in the formats of others: ATIF, chat messages for training, spans of OpenTelemetry.

What a format has no place for is listed in ``docs/traces.md``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import count
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
from assay.version import __version__

__all__ = ["NEW_MESSAGES", "Told", "as_atif", "as_chat", "as_otel"]

_VERSION = "ATIF-v1.7"
NEW_MESSAGES = "assay.messages_are_new"
"""Says on a span that its input is only what is new since the reply before."""


@frozen(kw_only=True)
class Told:
    """A trace, and what is said of it beside its steps.

    Attributes:
        id: The cell's name in its run.
        run: The run.
        trace: It.
        prompt: What was asked; "" where the trace shows it, or nobody knows.
        agent: What did the work.
        model: The model.
        reward: What it was worth; None where that could not be said.
        scores: What each grader gave: name, value (None for none) and reason.
        began: When the work was stored, for steps without times.
    """

    id: str
    run: str
    trace: Trace
    prompt: str = ""
    agent: str = ""
    model: str = ""
    reward: float | None = None
    scores: tuple[tuple[str, float | None, str], ...] = ()
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
        {"name": name, "value": value, "reason": why} for name, value, why in told.scores
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
            said = _said(step.result)
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


def _said(result: ToolResult) -> str:
    content = result.content
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


# ---- OpenTelemetry -----------------------------------------------------------------------------


def as_otel(told: Told) -> dict[str, Json]:
    """Spans as OTLP writes JSON: one around all, one for each turn of the model and each call.

    What the graders gave are events of the outermost (``gen_ai.evaluation.result``). The input of a
    turn is only what is new since the one before, or the spans would grow as the square of them.
    """
    trace_id = hashlib.sha256(f"{told.run}\0{told.id}".encode()).hexdigest()[:32]
    numbers = count(1)
    clock = _Clock(told.began)
    root = f"{next(numbers):016x}"
    start = clock.now
    waiting: list[Json] = []
    if told.prompt and not any(step.source == "user" for step in told.trace.steps):
        waiting.append(_message("user", {"type": "text", "content": told.prompt}))
    spans = list(_spans(told.trace, root, clock, numbers, waiting))
    about: dict[str, Json] = {"gen_ai.operation.name": "invoke_agent"}
    about["gen_ai.agent.name"] = told.agent or "agent"
    if told.trace.content is not None:
        said = _message("assistant", {"type": "text", "content": told.trace.content})
        about["gen_ai.output.messages"] = json.dumps([said])
    outermost = _span(root, "", f"invoke_agent {told.agent}".strip(), (start, clock.now), about)
    events: list[Json] = [
        {
            "name": "gen_ai.evaluation.result",
            "timeUnixNano": str(clock.now),
            "attributes": _attributes(
                {
                    "gen_ai.evaluation.name": name,
                    "gen_ai.evaluation.score.value": value,
                    "gen_ai.evaluation.explanation": why or None,
                }
            ),
        }
        for name, value, why in (("reward", told.reward, ""), *told.scores)
    ]
    outermost["events"] = events
    if told.trace.status == "error":
        outermost["status"] = {"code": 2, "message": (told.trace.error or "it failed")[:2000]}
    listed: list[Json] = [{**span, "traceId": trace_id} for span in (outermost, *spans)]
    resource: Json = {"attributes": _attributes({"service.name": "assay", "assay.run": told.run})}
    scope: Json = {"name": "assay", "version": __version__}
    return {
        "resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": listed}]}]
    }


class _Clock:
    """Times in nanoseconds; steps whose time is unknown follow each other at once."""

    def __init__(self, began: str) -> None:
        self.now = self._of(began) or 1

    def _of(self, when: str | None) -> int:
        try:
            return int(datetime.fromisoformat(when).timestamp() * 1e9) if when else 0
        except (ValueError, OverflowError, OSError):
            return 0

    def span(self, step: Step) -> tuple[int, int]:
        """When a step began and ended, later than all before."""
        end = max(self._of(step.ended_at), self.now + 2_000)
        start = min(max(self._of(step.started_at), self.now + 1_000), end)
        self.now = end
        return start, end


def _spans(
    trace: Trace, parent: str, clock: _Clock, numbers: Iterator[int], waiting: list[Json]
) -> Iterator[dict[str, Json]]:
    for step in as_turns(trace.steps):
        if isinstance(step, SubagentStep):
            own, start = f"{next(numbers):016x}", clock.now
            inner = list(_spans(step.subagent, own, clock, numbers, []))
            name = step.name or "subagent"
            tags = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
            yield _span(own, parent, f"invoke_agent {name}", (start, clock.now), tags, step=step)
            yield from inner
        elif isinstance(step, ToolStep):
            times = clock.span(step)
            waiting += _response(step)
            own = f"{next(numbers):016x}"
            about = _tool_attributes(step)
            yield _span(own, parent, f"execute_tool {step.call.name}", times, about, step=step)
        elif isinstance(step, AgentStep):
            times = clock.span(step)
            about = _turn_attributes(step, waiting)
            waiting.clear()
            own = f"{next(numbers):016x}"
            yield _span(own, parent, f"chat {step.model or ''}".strip(), times, about, step=step)
        else:
            for message in step.messages:
                said = message if isinstance(message, dict) else {}
                text = texts_of(said.get("content")) or ""
                role = step.source if step.source in ("user", "system") else "system"
                waiting.append(_message(role, {"type": "text", "content": text}))


def _span(
    own: str,
    parent: str,
    name: str,
    times: tuple[int, int],
    about: Mapping[str, Json],
    *,
    step: Step | None = None,
) -> dict[str, Json]:
    start, end = times
    tags: dict[str, Json] = dict(about)
    if step is not None:
        tags |= {"assay.schema": "assay.step/1", "assay.step.type": step.TAG}
        tags |= {"assay.step.id": step.step_id}
    failed = step is not None and (
        bool(step.error) or (isinstance(step, ToolStep) and _failed(step))
    )
    span: dict[str, Json] = {"spanId": own, "name": name, "kind": 1 if step is None else 3}
    span |= {"startTimeUnixNano": str(start), "endTimeUnixNano": str(end)}
    span["attributes"] = _attributes(tags)
    if parent:
        span["parentSpanId"] = parent
    if failed:
        span["status"] = {"code": 2, "message": ((step and step.error) or "it failed")[:2000]}
    return span


def _failed(step: ToolStep) -> bool:
    return step.result is not None and step.result.is_error


def _tool_attributes(step: ToolStep) -> dict[str, Json]:
    result = None if step.result is None else _said(step.result)
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": step.call.name,
        "gen_ai.tool.call.id": step.call.id or None,
        "gen_ai.tool.call.arguments": json.dumps(dict(step.call.arguments)),
        "gen_ai.tool.call.result": result,
    }


def _response(step: ToolStep) -> list[Json]:
    if step.result is None:
        return []
    part: dict[str, Json] = {"type": "tool_call_response", "id": step.call.id}
    part |= {"response": _said(step.result)}
    if step.result.is_error:
        part["is_error"] = True
    return [_message("tool", part)]


def _turn_attributes(step: AgentStep, waiting: Sequence[Json]) -> dict[str, Json]:
    parts: list[dict[str, Json]] = []
    if step.reasoning:
        parts.append({"type": "reasoning", "content": step.reasoning})
    if step.content:
        parts.append({"type": "text", "content": step.content})
    for one in step.tool_calls:
        call: dict[str, Json] = {"type": "tool_call", "id": one.id, "name": one.name}
        parts.append({**call, "arguments": dict(one.arguments)})
    usage = step.usage
    reason: Json = [step.finish_reason] if step.finish_reason else None
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": step.model,
        "gen_ai.response.model": step.model,
        "gen_ai.response.finish_reasons": reason,
        "gen_ai.usage.input_tokens": None if usage is None else usage.prompt_tokens,
        "gen_ai.usage.output_tokens": None if usage is None else usage.completion_tokens,
        "gen_ai.usage.cache_read.input_tokens": None if usage is None else usage.cached_tokens,
        "gen_ai.input.messages": json.dumps([*waiting]),
        "gen_ai.output.messages": json.dumps([_message("assistant", *parts)]),
        NEW_MESSAGES: True,
    }


def _message(role: str, *parts: dict[str, Json]) -> dict[str, Json]:
    return {"role": role, "parts": list[Json](parts)}


def _attributes(given: Mapping[str, Json]) -> list[Json]:
    return [{"key": key, "value": _value(one)} for key, one in given.items() if one is not None]


def _value(value: Json) -> Json:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(one) for one in value]}}
    return {"stringValue": value if isinstance(value, str) else json.dumps(value)}
