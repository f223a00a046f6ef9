"""Spans of OpenTelemetry that tell what an agent did: each recorded step is one of them.

The one place that maps a step to a span: for runs that are exported once they are over, and for
those that are exported while they go on. Ids follow from the trace's and from a step's place in it,
so that both ways give the same.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from assay.agents.transcripts.document import texts_of
from assay.agents.transcripts.writing import Told, ToldScore, said_by
from assay.errors import InputError
from assay.frozen import frozen
from assay.models.reference import parse_reference
from assay.scoring.json_safe import Json
from assay.types.trace import ActionStep, AgentStep, Step, SubagentStep, ToolStep
from assay.version import __version__

NEW_MESSAGES = "assay.messages_are_new"
"""Says on a span that its input is only what is new since the reply before."""
SCOPE = ("assay", __version__)
"""What made the spans: name and version."""

_SCHEMA = "assay.step/1"
_MOST_ERROR = 2_000
_TRACE_ID = re.compile(r"[0-9a-f]{32}")


@frozen(kw_only=True)
class ToldSpan:
    """One span, whatever it is sent as.

    Attributes:
        trace: Its trace: 32 hexadecimal digits.
        id: Its own: 16 of them.
        parent: That of the span around it; empty for the outermost.
        name: What it is called.
        calls: Whether it called something else: a model, a tool.
        start: When it began, in nanoseconds.
        end: When it ended.
        attributes: What is said of it; None says nothing.
        events: What is said of its end: name and attributes.
        error: Why it failed; empty where it did not.
    """

    trace: str
    id: str
    parent: str
    name: str
    calls: bool = False
    start: int
    end: int
    attributes: Mapping[str, Json]
    events: tuple[tuple[str, Mapping[str, Json]], ...] = ()
    error: str = ""


@dataclass(slots=True)
class _Line:
    """One conversation: the agent's own, or a helper's."""

    path: str
    parent: str
    began: int
    waiting: list[Json] = field(default_factory=list[Json])
    steps: int = 0
    helpers: int = 0
    is_said: bool = False


class Telling:
    """Tells a trace step by step.

    The input of a model's turn is only what is new since the one before, or the spans would grow
    as the square of them.

    Args:
        trace_id: The trace's.
        began: When the work began, as ISO 8601, for steps without times.
        prompt: What was asked, for a trace that does not begin with it.
        model: The model, as a reference that names its provider.
    """

    def __init__(
        self, trace_id: str, *, began: str = "", prompt: str = "", model: str = ""
    ) -> None:
        self.trace_id = trace_id
        self._clock = _Clock(began)
        self._began = self._clock.now
        self._prompt = prompt
        self._provider = _provider_of(model)
        self._lines = {0: _Line("0", root_id(trace_id), self._began)}

    def tell(self, step: Step, line: int = 0) -> Iterator[ToldSpan]:
        """The span of the next step, and the spans of the steps within it.

        Args:
            step: It.
            line: Which conversation it goes on with: 0 is the agent's own, others are helpers'.
        """
        if line not in self._lines:
            self._lines[line] = self._helper(self._lines[0])
        yield from self._tell(step, self._lines[line])

    def close(self) -> Iterator[ToldSpan]:
        """The spans around the conversations of helpers, once no more comes."""
        for line in list(self._lines.values())[1:]:
            yield self._around(line, self._lines[0].parent)

    def whole(self, told: Told, ended: str = "") -> ToldSpan:
        """The span around all, with what the graders gave as its events.

        Args:
            told: What is said of it.
            ended: When it was graded, as ISO 8601; by default when the last step ended.
        """
        about: dict[str, Json] = {"gen_ai.operation.name": "invoke_agent"}
        about["gen_ai.provider.name"] = self._provider
        about["gen_ai.agent.name"] = told.agent or "agent"
        if told.trace.content is not None:
            said = _message("assistant", {"type": "text", "content": told.trace.content})
            about["gen_ai.output.messages"] = json.dumps([said])
        reward = ToldScore("reward", told.reward, label=told.label)
        failed = told.trace.status == "error"
        return ToldSpan(
            trace=self.trace_id,
            id=self._lines[0].parent,
            parent="",
            name=f"invoke_agent {told.agent}".strip(),
            start=self._began,
            end=max(self._clock.now, _nanoseconds(ended)),
            attributes=about,
            events=tuple(("gen_ai.evaluation.result", _given(s)) for s in (reward, *told.scores)),
            error=(told.trace.error or "it failed")[:_MOST_ERROR] if failed else "",
        )

    def _helper(self, line: _Line) -> _Line:
        line.helpers += 1
        path = f"{line.path}.h{line.helpers}"
        return _Line(path, _digest(self.trace_id, path), self._clock.now)

    def _around(self, line: _Line, parent: str, name: str = "") -> ToldSpan:
        about: dict[str, Json] = {"gen_ai.operation.name": "invoke_agent"}
        about["gen_ai.agent.name"] = name or "subagent"
        return ToldSpan(
            trace=self.trace_id,
            id=line.parent,
            parent=parent,
            name=f"invoke_agent {name or 'subagent'}",
            calls=True,
            start=line.began,
            end=self._clock.now,
            attributes={**about, **_tags(SubagentStep)},
        )

    def _tell(self, step: Step, line: _Line) -> Iterator[ToldSpan]:
        if isinstance(step, SubagentStep):
            inner = self._helper(line)
            spans = [span for one in step.subagent.steps for span in self._tell(one, inner)]
            yield self._around(inner, line.parent, step.name)
            yield from spans
            return
        start, end = self._clock.span(step)
        line.steps += 1
        if isinstance(step, ToolStep):
            name, about = f"execute_tool {step.call.name}", _tool_attributes(step)
            line.waiting += _response(step)
        elif isinstance(step, AgentStep):
            name, about = f"chat {step.model or ''}".strip(), self._turn(step, line)
            line.is_said = True
        elif isinstance(step, ActionStep):
            # What the model said is not said again by the action that it was.
            said = AgentStep(content=step.action)
            name, about = ("step action", {}) if line.is_said else ("chat", self._turn(said, line))
            seen = texts_of(step.observation)
            about |= {"assay.observation": seen, "assay.reward": step.reward}
            line.is_said = False
            if seen:
                line.waiting.append(_message("user", {"type": "text", "content": seen}))
        else:
            if step.source == "user" and line.path == "0":
                self._prompt = ""  # the trace shows it
            said = _messages(step)
            name, about = f"step {step.source}", {"assay.step.source": step.source}
            about |= {"gen_ai.input.messages": json.dumps(said)} if said else {}
            line.waiting += said
        failed = isinstance(step, ToolStep) and step.result is not None and step.result.is_error
        yield ToldSpan(
            trace=self.trace_id,
            id=_digest(self.trace_id, f"{line.path}/{line.steps}"),
            parent=line.parent,
            name=name,
            calls=isinstance(step, AgentStep | ToolStep),
            start=start,
            end=end,
            attributes={**about, **_tags(type(step)), "assay.step.id": line.steps},
            error=((step.error or "it failed") if step.error or failed else "")[:_MOST_ERROR],
        )

    def _turn(self, step: AgentStep, line: _Line) -> dict[str, Json]:
        if line.path == "0" and self._prompt:
            line.waiting.insert(0, _message("user", {"type": "text", "content": self._prompt}))
            self._prompt = ""
        waiting, line.waiting = line.waiting, []
        return {**_turn_attributes(step, waiting), "gen_ai.provider.name": self._provider}


class _Clock:
    """Times in nanoseconds; steps whose time is unknown follow each other at once."""

    def __init__(self, began: str) -> None:
        self.now = _nanoseconds(began) or 1

    def span(self, step: Step) -> tuple[int, int]:
        """When a step began and ended, later than all before."""
        end = max(_nanoseconds(step.ended_at), self.now + 2_000)
        start = min(max(_nanoseconds(step.started_at), self.now + 1_000), end)
        self.now = end
        return start, end


def _provider_of(model: str) -> str | None:
    """The conventions' name of whose protocol a model speaks; None where that is not known."""
    try:
        provider = parse_reference(model).provider
    except InputError:
        return None
    return "gcp.gemini" if provider == "google" else provider or None


def _nanoseconds(when: str | None) -> int:
    try:
        return int(datetime.fromisoformat(when).timestamp() * 1e9) if when else 0
    except (ValueError, OverflowError, OSError):
        return 0


def _trace_id(told: Told) -> str:
    """The run's own id, by which it is found in a collector; else one that its name gives."""
    given = told.trace_id
    if _TRACE_ID.fullmatch(given) and given.strip("0"):
        return given
    return hashlib.sha256(f"{told.run}\0{told.id}".encode()).hexdigest()[:32]


def root_id(trace_id: str) -> str:
    """The id of the span around all."""
    return _digest(trace_id, "")


def _digest(trace_id: str, path: str) -> str:
    return hashlib.sha256(f"{trace_id}/{path}".encode()).hexdigest()[:16]


def about_run(run: str, cell: str) -> dict[str, Json]:
    """What is said of what made a trace's spans."""
    return {"service.name": "assay", "assay.run": run, "assay.cell": cell}


def spans_of(told: Told) -> Iterator[ToldSpan]:
    """All spans of what is over, the outermost last."""
    telling = Telling(_trace_id(told), began=told.began, prompt=told.prompt, model=told.model)
    for step in told.trace.steps:
        yield from telling.tell(step)
    yield telling.whole(told)


def as_otel(told: Told) -> dict[str, Json]:
    """Spans as OTLP writes JSON, the outermost first."""
    *inner, outermost = spans_of(told)
    spans = [_otlp(span) for span in (outermost, *inner)]
    resource: Json = {"attributes": _attributes(about_run(told.run, told.id))}
    scope: Json = {"name": SCOPE[0], "version": SCOPE[1]}
    return {
        "resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": spans}]}]
    }


def _otlp(told: ToldSpan) -> Json:
    span: dict[str, Json] = {"traceId": told.trace, "spanId": told.id, "name": told.name}
    span |= {"kind": 3 if told.calls else 1, "attributes": _attributes(told.attributes)}
    span |= {"startTimeUnixNano": str(told.start), "endTimeUnixNano": str(told.end)}
    if told.parent:
        span["parentSpanId"] = told.parent
    if told.error:
        span["status"] = {"code": 2, "message": told.error}
    if told.events:
        span["events"] = [
            {"name": name, "timeUnixNano": str(told.end), "attributes": _attributes(about)}
            for name, about in told.events
        ]
    return span


def _given(score: ToldScore) -> dict[str, Json]:
    return {
        "gen_ai.evaluation.name": score.name,
        "gen_ai.evaluation.score.value": score.value,
        "gen_ai.evaluation.score.label": score.label or None,
        "gen_ai.evaluation.explanation": score.reason or None,
        "error.type": "_OTHER" if score.label == "error" else None,
    }


def _tags(kind: type[Step]) -> dict[str, Json]:
    return {"assay.schema": _SCHEMA, "assay.step.type": kind.TAG}


def _tool_attributes(step: ToolStep) -> dict[str, Json]:
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": step.call.name,
        "gen_ai.tool.call.id": step.call.id or None,
        "gen_ai.tool.call.arguments": json.dumps(dict(step.call.arguments)),
        "gen_ai.tool.call.result": None if step.result is None else said_by(step.result),
    }


def _messages(step: Step) -> list[Json]:
    role = step.source if step.source in ("user", "system") else "system"
    told = [message if isinstance(message, dict) else {} for message in step.messages]
    texts = (texts_of(message.get("content")) or "" for message in told)
    return [_message(role, {"type": "text", "content": text}) for text in texts]


def _response(step: ToolStep) -> list[Json]:
    if step.result is None:
        return []
    part: dict[str, Json] = {"type": "tool_call_response", "id": step.call.id}
    part |= {"response": said_by(step.result)}
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
