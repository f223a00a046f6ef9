"""Spans of the OpenAI Agents SDK, as its ``export()`` gives them, one to a line.

Spans of type ``response`` name the response and its usage alone, unless a processor adds it: what
was said is missing then.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime

from assay.agents.transcripts.document import Notes, count, listing, mapping, shortened, text_of
from assay.agents.transcripts.provider import is_responses, turns_of
from assay.agents.transcripts.spans import ModelSpan, Spans, ToolSpan
from assay.agents.transcripts.transcript import Transcript, arguments_of
from assay.conversation.messages import ReplyUsage
from assay.conversation.turns import AssistantTurn, Turn
from assay.scoring.json_safe import Json
from assay.types.trace import ToolCall, ToolResult, tool_kind

FORMAT = "openai-agents"

_AROUND = frozenset({"agent", "task", "turn", "custom", "handoff", "guardrail", "mcp_tools"})


def is_span(value: Json) -> bool:
    """Whether a value can only be a trace or a span of it."""
    entry = mapping(value)
    if entry.get("object") == "trace.span":
        return isinstance(entry.get("span_data"), dict)
    return entry.get("object") == "trace" and isinstance(entry.get("id"), str)


def group_of(value: Json) -> str:
    """The trace that a value belongs to."""
    entry = mapping(value)
    return text_of(entry.get("trace_id")) or text_of(entry.get("id")) or ""


def read(values: Iterable[Json], notes: Notes) -> Transcript:
    """Read the spans of one trace."""
    spans = Spans(notes)
    times: list[float] = []
    for value in values:
        entry = mapping(value)
        if entry.get("object") == "trace":
            spans.session["workflow"] = text_of(entry.get("workflow_name"))
            continue
        data = mapping(entry.get("span_data"))
        start, end = _time(entry.get("started_at")), _time(entry.get("ended_at"))
        times += [one for one in (start, end) if one is not None]
        at = text_of(entry.get("ended_at")) or ""
        error = text_of(mapping(entry.get("error")).get("message")) or ""
        kind = text_of(data.get("type"))
        if kind in ("generation", "response"):
            spans.models.append(_model(data, start or 0.0, at, error, notes))
            spans.session.setdefault("model", spans.models[-1].reply.model or None)
        elif kind == "function":
            spans.tools.append(_tool(data, start or 0.0, at, error, notes))
        elif kind not in _AROUND:
            notes.add(f"a span of type {str(kind)[:40]!r}")
        if error and entry.get("parent_id") is None:
            spans.error = error
    spans.seconds = max(times) - min(times) if times else None
    return spans.transcript(FORMAT)


def _time(value: Json) -> float | None:
    try:
        return datetime.fromisoformat(value).timestamp() if isinstance(value, str) else None
    except (ValueError, OverflowError, OSError):
        return None


def _model(data: Mapping[str, Json], start: float, at: str, error: str, notes: Notes) -> ModelSpan:
    response = mapping(data.get("response"))
    given, said = data.get("input"), listing(data.get("output") or response.get("output"))
    alone: Json = {"role": "user", "content": given}
    asked = [alone] if isinstance(given, str) else listing(given)
    protocol = "responses" if any(map(is_responses, [*asked, *said])) or not said else "chat"
    turns = turns_of(asked, protocol, notes)
    replied = turns_of(said, protocol, notes)
    if not said and not error:
        notes.lack("a span does not tell what the model said")
    usage = mapping(data.get("usage")) or mapping(response.get("usage"))
    counts = [
        count(usage.get(name, usage.get(older)), notes, name)
        for name, older in (
            ("input_tokens", "prompt_tokens"),
            ("output_tokens", "completion_tokens"),
        )
    ]
    parts = tuple(part for turn in replied for part in turn.parts)
    return ModelSpan(
        turns=turns,
        reply=AssistantTurn(
            turn=Turn("assistant", parts),
            model=(text_of(data.get("model")) or text_of(response.get("model")) or "")[:200],
            usage=ReplyUsage(input_tokens=counts[0], output_tokens=counts[1]),
        ),
        start=start,
        at=at,
        error=error,
    )


def _tool(data: Mapping[str, Json], start: float, at: str, error: str, notes: Notes) -> ToolSpan:
    name = text_of(data.get("name")) or ""
    arguments = arguments_of(data.get("input"), notes)
    output = data.get("output")
    said = output if isinstance(output, str) or output is None else json.dumps(output)
    result = ToolResult(content=shortened(error or said), is_error=bool(error))
    return ToolSpan(
        call=ToolCall(name=name, arguments=arguments, kind=tool_kind(name)),
        is_told=data.get("input") not in (None, ""),
        result=result,
        start=start,
        at=at,
    )
