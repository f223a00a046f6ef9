"""Requests of OTLP/HTTP that bring spans: each span is checked, and kept or refused by itself.

What a span means is said in `assay.agents.transcripts.otel`; here only what tells spans and traces
apart is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from assay.agents.transcripts import otel
from assay.agents.transcripts.document import Notes, clean, text_of
from assay.errors import InputError, Location
from assay.frozen import frozen
from assay.scoring.json_safe import Json

MOST_SPANS = 10_000
"""Spans of one request."""

MOST_TRACES = 1_000
"""Traces of one request, each of which is looked up."""

_TRACE = re.compile(r"[0-9a-fA-F]{32}")
_SPAN = re.compile(r"[0-9a-fA-F]{16}")
_HEX = "hexadecimal digits, as OTLP's JSON says, not all of them 0"


@frozen(kw_only=True)
class SentSpan:
    """A span of a request.

    Attributes:
        trace: Its trace; empty where nobody knows which.
        id: Its own; empty for one that is refused.
        name: What it is called.
        is_outermost: Whether no span is around it.
        gen_ai: Whether it keeps to the conventions for generative AI.
        data: The span as OTLP writes it, its ids in small letters.
        why: Why it is refused; empty for a good one.
    """

    trace: str
    id: str = ""
    name: str = ""
    is_outermost: bool = False
    gen_ai: bool = False
    data: Mapping[str, Json]
    why: str = ""


def sent_spans(value: Json) -> Iterator[SentSpan]:
    """The spans of a request.

    Raises:
        InputError: If it is none, or one of too many spans or traces.
    """
    if not isinstance(value, dict) or not isinstance(value.get("resourceSpans", []), list):
        raise InputError(
            "no ExportTraceServiceRequest",
            location=Location(field="resourceSpans"),
            hint='send {"resourceSpans": [...]}',
        )
    traces: set[str] = set()
    for number, span in enumerate(otel.otlp_entries(value), 1):
        sent = _sent(span)
        traces.add(sent.trace)
        if number > MOST_SPANS or len(traces) > MOST_TRACES:
            raise InputError(
                f"more than {MOST_SPANS:,} spans, or of more than {MOST_TRACES:,} traces",
                hint="send smaller batches",
            )
        yield sent


def _sent(span: Mapping[str, Json]) -> SentSpan:
    trace, name = _id(span.get("traceId"), _TRACE), _id(span.get("spanId"), _SPAN)
    if not trace:
        return SentSpan(trace="", data={}, why=f"a traceId is not 32 {_HEX}")
    if not name:
        return SentSpan(trace=trace, data={}, why=f"a spanId is not 16 {_HEX}")
    said = span.get("parentSpanId") or ""
    parent = _id(said, _SPAN)
    if not parent and said not in ("", "0" * 16):
        return SentSpan(trace=trace, data={}, why=f"a parentSpanId is not 16 {_HEX}")
    notes = Notes()
    data = clean(dict(span), notes)
    if notes.missing or not isinstance(data, dict):
        return SentSpan(trace=trace, data={}, why=f"a span: {notes.missing}")
    data |= {"traceId": trace, "spanId": name, "parentSpanId": parent}
    return SentSpan(
        trace=trace,
        id=name,
        name=text_of(data.get("name")) or "",
        is_outermost=not parent,
        gen_ai=otel.tells(otel.otlp_span(data)),
        data=data,
    )


def gap(spans: Sequence[Mapping[str, Json]]) -> str:
    """Why spans of one trace, as `sent_spans` gives them, are not all of it; else empty.

    What an exporter dropped leaves those inside without their parent; parents may go in a circle.
    """
    inside: dict[Json, list[Json]] = {}
    for span in spans:
        inside.setdefault(span.get("parentSpanId"), []).append(span.get("spanId"))
    reached, level = 0, inside.pop("", [])
    if len(level) != 1:
        return "more than one span is outermost" if level else "the outermost span has not come"
    while level:
        reached += len(level)
        level = [one for parent in level for one in inside.pop(parent, ())]
    return "" if reached == len(spans) else "a span is inside of one that has not come"


def _id(value: Json, form: re.Pattern[str]) -> str:
    """An id in small letters; empty for what is none."""
    if not isinstance(value, str) or not form.fullmatch(value) or not value.strip("0"):
        return ""
    return value.lower()
