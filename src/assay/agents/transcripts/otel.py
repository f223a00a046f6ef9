"""Spans of OpenTelemetry that keep to its conventions for generative AI (``gen_ai.*``).

Two forms are read: OTLP as JSON (``resourceSpans``), and the lines of the SDK's own JSON. What was
said stands in attributes (``gen_ai.input.messages`` and ``gen_ai.output.messages``, as JSON in a
text or as values) or, from older instrumentation, in events (``gen_ai.user.message``,
``gen_ai.choice``) and in numbered attributes (``gen_ai.prompt.0.content``). Many tracers leave it
out unless they are told otherwise: then the calls of tools are known, and the texts are not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from assay.agents.transcripts.document import (
    Notes,
    clean,
    count,
    listing,
    mapping,
    shortened,
    text_of,
    texts_of,
)
from assay.agents.transcripts.spans import ModelSpan, Spans, ToolSpan
from assay.agents.transcripts.telling import NEW_MESSAGES
from assay.agents.transcripts.transcript import Transcript, arguments_of
from assay.conversation.messages import ReplyUsage
from assay.conversation.turns import (
    AssistantTurn,
    Call,
    Part,
    Result,
    Speaker,
    Stop,
    Text,
    Thought,
    Turn,
)
from assay.frozen import frozen
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import NotJsonError, decode_json
from assay.types.trace import ToolCall, ToolResult, tool_kind

FORMAT = "otel"

REWRITTEN = "a span came again and said something else"
"""Why a trace is incomplete of which the first span of each id is read."""

_HEX = re.compile(r"[0-9a-fA-F]+")
_DEEPEST = 16
_CALLS_A_MODEL = frozenset({"chat", "text_completion", "generate_content", "completion"})
_TOOL = "execute_tool"
_OUTPUT = "running output function"
_DEFERRED = "pydantic_ai.tool.deferral.name"
_STOPS: Mapping[str, Stop] = {
    "stop": "stop",
    "length": "length",
    "max_tokens": "length",
    "tool_call": "tool",
    "tool_calls": "tool",
    "tool_use": "tool",
    "content_filter": "refusal",
}
_SPEAKERS: Mapping[str, Speaker] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}


@frozen(kw_only=True)
class Span:
    """One span, whichever form it came in.

    Attributes:
        trace: Its trace.
        id: Its own.
        parent: That of the span around it; empty for the outermost.
        name: What it is called.
        start: When it began, in seconds.
        end: When it ended.
        attributes: What is said of it.
        events: What is said of moments in it: name and attributes.
        error: Why it failed.
    """

    trace: str
    id: str
    parent: str
    name: str
    start: float
    end: float
    attributes: Mapping[str, Json]
    events: tuple[tuple[str, Mapping[str, Json]], ...] = ()
    error: str = ""


def is_spans(value: Json) -> bool:
    """Whether a value can only be spans."""
    entry = mapping(value)
    if isinstance(entry.get("resourceSpans"), list):
        return True
    context = mapping(entry.get("context"))
    return isinstance(context.get("trace_id"), str) and "attributes" in entry and "name" in entry


def spans_of(value: Json) -> Iterator[Span]:
    """The spans that a value holds."""
    entry = mapping(value)
    if "context" in entry:
        yield _sdk_span(entry)
    else:
        yield from map(otlp_span, otlp_entries(entry))


def otlp_entries(value: Mapping[str, Json]) -> Iterator[Mapping[str, Json]]:
    """The spans that a request of OTLP holds, as it writes them."""
    for resource in map(mapping, listing(value.get("resourceSpans"))):
        scopes = listing(resource.get("scopeSpans", resource.get("instrumentationLibrarySpans")))
        for scope in map(mapping, scopes):
            yield from map(mapping, listing(scope.get("spans")))


def tells(span: Span) -> bool:
    """Whether a span says anything in the conventions for generative AI."""
    names = (*span.attributes, *(name for name, _ in span.events))
    return any(name.startswith("gen_ai.") for name in names)


def otlp_span(span: Mapping[str, Json]) -> Span:
    """A span as OTLP writes it."""
    events = [mapping(event) for event in listing(span.get("events"))]
    status = mapping(span.get("status"))
    failed = status.get("code") in (2, "STATUS_CODE_ERROR")
    return Span(
        trace=_id(span.get("traceId")),
        id=_id(span.get("spanId")),
        parent=_id(span.get("parentSpanId")),
        name=text_of(span.get("name")) or "",
        start=_nanoseconds(span.get("startTimeUnixNano")),
        end=_nanoseconds(span.get("endTimeUnixNano")),
        attributes=_attributes(span.get("attributes")),
        events=tuple(
            (text_of(e.get("name")) or "", _attributes(e.get("attributes"))) for e in events
        ),
        error=(text_of(status.get("message")) or "it failed")[:2000] if failed else "",
    )


def _id(value: Json) -> str:
    """An id, which may be written in letters of either size."""
    said = text_of(value) or ""
    return said.lower() if _HEX.fullmatch(said) else said


def _sdk_span(span: Mapping[str, Json]) -> Span:
    context = mapping(span.get("context"))
    events = [mapping(event) for event in listing(span.get("events"))]
    status = mapping(span.get("status"))
    failed = status.get("status_code") == "ERROR"
    return Span(
        trace=(text_of(context.get("trace_id")) or "").removeprefix("0x"),
        id=(text_of(context.get("span_id")) or "").removeprefix("0x"),
        parent=(text_of(span.get("parent_id")) or "").removeprefix("0x"),
        name=text_of(span.get("name")) or "",
        start=_moment(span.get("start_time")),
        end=_moment(span.get("end_time")),
        attributes=mapping(span.get("attributes")),
        events=tuple((text_of(e.get("name")) or "", mapping(e.get("attributes"))) for e in events),
        error=(text_of(status.get("description")) or "it failed")[:2000] if failed else "",
    )


def _attributes(listed: Json) -> dict[str, Json]:
    pairs = [mapping(one) for one in listing(listed)]
    return {
        key: _value(one.get("value"))
        for one in pairs
        if (key := text_of(one.get("key"))) is not None
    }


def _value(value: Json, depth: int = 0) -> Json:
    """A value as OTLP writes it: each says its type; whole numbers are texts."""
    given = mapping(value)
    for key in ("stringValue", "boolValue", "doubleValue", "bytesValue"):
        if key in given:
            return given[key]
    if "intValue" in given:
        said = given["intValue"]
        is_number = isinstance(said, str) and re.fullmatch(r"-?\d{1,19}", said, re.ASCII)
        return int(str(said)) if is_number or type(said) is int else None
    if depth > _DEEPEST:
        return None
    if "arrayValue" in given:
        inside = listing(mapping(given["arrayValue"]).get("values"))
        return [_value(one, depth + 1) for one in inside]
    if "kvlistValue" in given:
        inside = [mapping(one) for one in listing(mapping(given["kvlistValue"]).get("values"))]
        return {str(one.get("key")): _value(one.get("value"), depth + 1) for one in inside}
    return None


def _nanoseconds(value: Json) -> float:
    try:
        return int(value) / 1e9 if isinstance(value, str | int) else 0.0
    except (ValueError, OverflowError):
        return 0.0


def _moment(value: Json) -> float:
    try:
        return datetime.fromisoformat(value).timestamp() if isinstance(value, str) else 0.0
    except (ValueError, OverflowError, OSError):
        return 0.0


def _iso(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return ""


def read(spans: Iterable[Span], notes: Notes) -> Transcript:
    """Read the spans of one trace."""
    first: dict[tuple[str, int], Span] = {}
    is_rewritten = False
    for n, span in enumerate(spans):
        kept = first.setdefault((span.id, 0 if span.id else n), span)
        is_rewritten = is_rewritten or kept != span
    if is_rewritten:  # whoever writes it could say something better later
        notes.lack(REWRITTEN)
    found = list(first.values())
    known = {span.id for span in found}
    gathered = Spans(notes)
    for span in found:
        _take(gathered, span, is_outermost=span.parent not in known)
    times = [time for span in found for time in (span.start, span.end) if time > 0]
    gathered.seconds = max(times) - min(times) if times else None
    transcript = gathered.transcript(FORMAT)
    if is_rewritten:  # nor is known what was said last
        transcript.trace.content = None
    return transcript


def _take(spans: Spans, span: Span, *, is_outermost: bool) -> None:
    about, notes = span.attributes, spans.notes
    operation = text_of(about.get("gen_ai.operation.name")) or ""
    has_tool = "gen_ai.tool.name" in about and operation not in _CALLS_A_MODEL
    agent = text_of(about.get("gen_ai.agent.name"))
    if agent is not None:
        spans.session.setdefault("agent", agent)
    is_output, is_deferred = _is_output(span), _DEFERRED in about
    if (operation == _TOOL or has_tool) and (is_output or is_deferred):
        if call_id := text_of(about.get("gen_ai.tool.call.id")):
            spans.no_calls[call_id] = is_output or spans.no_calls.get(call_id, False)
    elif operation == _TOOL or has_tool:
        spans.tools.append(_tool(span, notes))
    elif operation in _CALLS_A_MODEL or (not operation and "gen_ai.request.model" in about):
        model = _model(span, notes)
        spans.models.append(model)
        spans.session.setdefault("model", model.reply.model or None)
    elif is_outermost and "gen_ai.output.messages" in about:
        said = _turns(about.get("gen_ai.output.messages"), notes)
        spans.answer = (said[-1].text or None) if said else None
    if is_outermost and span.error:
        spans.error = span.error


def _is_output(span: Span) -> bool:
    """Whether pydantic-ai ran a function on the model's answer: no tool, though told as one."""
    said = text_of(span.attributes.get("logfire.msg")) or ""
    return span.name == _OUTPUT or said.startswith(f"{_OUTPUT}:")


def _tool(span: Span, notes: Notes) -> ToolSpan:
    about = span.attributes
    name = text_of(about.get("gen_ai.tool.name")) or span.name.removeprefix(f"{_TOOL} ")
    given = about.get("gen_ai.tool.call.arguments", about.get("tool_arguments"))
    said = about.get("gen_ai.tool.call.result", about.get("tool_response"))
    content = shortened(said if said is not None else span.error)
    call_id = text_of(about.get("gen_ai.tool.call.id")) or ""
    return ToolSpan(
        call=ToolCall(
            name=name, arguments=arguments_of(given, notes), id=call_id, kind=tool_kind(name)
        ),
        is_told=given not in (None, ""),
        result=ToolResult(content=content, is_error=bool(span.error), id=call_id)
        if said is not None or span.error
        else None,
        start=span.start,
        at=_iso(span.end) if span.end else "",
    )


def _model(span: Span, notes: Notes) -> ModelSpan:
    about = span.attributes
    turns, said = _conversation(span, notes)
    parts = tuple(part for turn in said for part in turn.parts)
    reasons = about.get("gen_ai.response.finish_reasons")
    reason = next((r for r in listing(reasons) if isinstance(r, str)), text_of(reasons) or "")
    counts = [
        count(about.get(f"gen_ai.usage.{name}", about.get(f"gen_ai.usage.{older}")), notes, name)
        for name, older in (
            ("input_tokens", "prompt_tokens"),
            ("output_tokens", "completion_tokens"),
            ("cache_read.input_tokens", "cached_tokens"),
        )
    ]
    model = about.get("gen_ai.response.model", about.get("gen_ai.request.model"))
    return ModelSpan(
        turns=turns,
        reply=AssistantTurn(
            turn=Turn("assistant", parts),
            stop=_STOPS.get(reason, "stop"),
            model=(text_of(model) or "")[:200],
            usage=ReplyUsage(
                input_tokens=counts[0], output_tokens=counts[1], cached_tokens=counts[2]
            ),
            id=(text_of(about.get("gen_ai.response.id")) or "")[:200],
            stopped=reason[:200],
        ),
        start=span.start,
        at=_iso(span.end) if span.end else "",
        error=span.error,
        goes_on=about.get(NEW_MESSAGES) is True,
        parent=span.parent,
    )


def _conversation(span: Span, notes: Notes) -> tuple[tuple[Turn, ...], tuple[Turn, ...]]:
    """What was said before, and what was said then."""
    about = dict(span.attributes)
    for name, fields in span.events:
        if name == "gen_ai.client.inference.operation.details":
            about = {**about, **fields}
    standing = _written(about.get("gen_ai.system_instructions"), notes)
    before = _turns(about.get("gen_ai.input.messages"), notes)
    said = _turns(about.get("gen_ai.output.messages"), notes)
    if standing is not None:
        before = (Turn("system", _parts(standing, notes)), *before)
    if before or said:
        return before, said
    listed: list[Json] = []
    chosen: list[Json] = []
    for name, fields in span.events:
        middle = name.removeprefix("gen_ai.").removesuffix(".message")
        if name == "gen_ai.choice":
            message = _written(fields.get("message"), notes)
            chosen.append({"role": "assistant", **(mapping(message) or fields)})
        elif middle in _SPEAKERS:
            listed.append({"role": middle, **fields})
    listed += _numbered(about, "gen_ai.prompt")
    chosen += _numbered(about, "gen_ai.completion")
    return _turns(listed, notes), _turns(chosen, notes)


def _numbered(about: Mapping[str, Json], prefix: str) -> list[Json]:
    """Messages whose fields are attributes of their own: ``gen_ai.prompt.0.role``."""
    messages: dict[int, dict[str, Json]] = {}
    calls: dict[tuple[int, int], dict[str, Json]] = {}
    for key, value in about.items():
        if not key.startswith(f"{prefix}."):
            continue
        number, _, rest = key.removeprefix(f"{prefix}.").partition(".")
        if not (number.isascii() and number.isdigit() and len(number) < 7):
            continue
        words = rest.split(".")
        message = messages.setdefault(int(number), {})
        if (
            len(words) == 3
            and words[0] == "tool_calls"
            and words[1].isascii()
            and words[1].isdigit()
        ):
            calls.setdefault((int(number), int(words[1][:6])), {})[words[2]] = value
        else:
            message[rest] = value
    for (number, _), call in sorted(calls.items()):
        one = messages[number]
        one["tool_calls"] = [*listing(one.get("tool_calls")), dict(call)]
    return [dict(messages[number]) for number in sorted(messages)]


def _written(value: Json, notes: Notes) -> Json:
    """A value that may be JSON in a text."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return clean(decode_json(value, nan=True), notes)
        except NotJsonError:
            notes.lack("messages are broken JSON: the tracer may have cut them off")
            return None
    return value


def _turns(given: Json, notes: Notes) -> tuple[Turn, ...]:
    turns: list[Turn] = []
    for message in map(mapping, listing(_written(given, notes))):
        speaker = _SPEAKERS.get(text_of(message.get("role")) or "")
        if speaker is None:
            notes.lack("a message of an unknown role")
            continue
        parts = _parts(message.get("parts", message.get("content")), notes)
        parts = (*parts, *_calls(_written(message.get("tool_calls"), notes), notes))
        results = tuple(part for part in parts if isinstance(part, Result))
        if speaker == "tool" and not results:
            call_id = text_of(message.get("id")) or text_of(message.get("tool_call_id")) or ""
            texts = tuple(part for part in parts if isinstance(part, Text))
            results = (Result(call_id, texts),)
        if results:
            turns.append(Turn("tool", results))
        others = tuple(part for part in parts if not isinstance(part, Result))
        if others and speaker != "tool":
            turns.append(Turn(speaker, others))
    return tuple(turns)


def _parts(given: Json, notes: Notes) -> tuple[Part, ...]:
    given = _written(given, notes)
    if isinstance(given, str):
        return (Text(given),)
    parts: list[Part] = []
    for part in map(mapping, listing(given)):
        kind = text_of(part.get("type")) or ""
        if kind in ("text", "input_text", "output_text"):
            said = text_of(part.get("content")) or text_of(part.get("text")) or ""
            parts.append(Text(said))
        elif kind in ("reasoning", "thinking"):
            parts.append(Thought(texts_of(part.get("content")) or text_of(part.get("text")) or ""))
        elif kind in ("tool_call", "server_tool_call", "tool_use"):
            parts += _calls([dict(part)], notes)
        elif kind in ("tool_call_response", "server_tool_call_response", "tool_result"):
            told = next((part[k] for k in ("response", "result", "content") if k in part), None)
            said = told if isinstance(told, str) else json.dumps(told, ensure_ascii=False)
            call_id = text_of(part.get("id")) or text_of(part.get("tool_use_id")) or ""
            parts.append(Result(call_id, (Text(said),), is_error=part.get("is_error") is True))
        else:
            notes.add(f"a part of type {kind[:40]!r}")
    return tuple(parts)


def _calls(given: Json, notes: Notes) -> Sequence[Call]:
    calls: list[Call] = []
    for call in map(mapping, listing(given)):
        function = mapping(call.get("function")) or call
        arguments = function.get("arguments", function.get("input"))
        written = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
        name = text_of(function.get("name"))
        if name is None:
            notes.add("a tool call without a name")
        calls.append(Call(text_of(call.get("id")) or "", name or "", written))
    return calls
