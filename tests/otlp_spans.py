"""Spans as exporters send them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from assay.scoring.json_safe import Json

__all__ = ["TRACE", "agent_spans", "otlp_request", "span", "span_id"]

TRACE = "5b8efff798038103d269b633813fc60c"


def span_id(number: int) -> str:
    """The id of a span by its number; empty for 0, the parent of what is outermost."""
    return f"{number:016x}" if number else ""


def span(
    number: int, parent: int = 0, name: str = "s", trace: str = TRACE, **about: Json
) -> dict[str, Json]:
    """A span with attributes: of ``about``, with ``gen_ai.`` before and ``.`` for ``__``."""
    attributes: list[Json] = [
        {"key": f"gen_ai.{key.replace('__', '.')}", "value": _value(value)}
        for key, value in about.items()
    ]
    return {
        "traceId": trace,
        "spanId": span_id(number),
        "parentSpanId": span_id(parent),
        "name": name,
        "startTimeUnixNano": str(1_700_000_000_000_000_000 + number),
        "endTimeUnixNano": str(1_700_000_001_000_000_000 + number),
        "attributes": attributes,
    }


def _value(value: Json) -> Json:
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"stringValue": value if isinstance(value, str) else json.dumps(value)}


def agent_spans(answer: str = "4", trace: str = TRACE) -> list[dict[str, Json]]:
    """An agent that asks a model, calls a tool, and asks again: children end, and come, first."""

    def said(role: str, *parts: Json) -> Json:
        return [{"role": role, "parts": list(parts)}]

    question: Json = {"type": "text", "content": "What is 2 + 2?"}
    call: Json = {"type": "tool_call", "id": "c", "name": "bash", "arguments": {"cmd": "bc"}}
    told: Json = {"type": "tool_call_response", "id": "c", "response": "4"}
    first = span(
        2, 1, "chat m", trace,
        operation__name="chat", request__model="m",
        usage__input_tokens=10, usage__output_tokens=5,
        input__messages=said("user", question), output__messages=said("assistant", call),
    )  # fmt: skip
    tool = span(
        3, 1, "execute_tool bash", trace,
        operation__name="execute_tool", tool__name="bash", tool__call__id="c",
        tool__call__result="4",
    )  # fmt: skip
    asked: Json = [{"role": "user", "parts": [question]}, {"role": "assistant", "parts": [call]},
             {"role": "tool", "parts": [told]}]  # fmt: skip
    last = span(
        4, 1, "chat m", trace,
        operation__name="chat", request__model="m",
        usage__input_tokens=20, usage__output_tokens=5,
        input__messages=asked,
        output__messages=said("assistant", {"type": "text", "content": answer}),
    )  # fmt: skip
    outermost = span(
        1, 0, "invoke_agent sums", trace, operation__name="invoke_agent", agent__name="sums"
    )
    return [first, tool, last, outermost]


def otlp_request(spans: Sequence[Mapping[str, Json]]) -> dict[str, Json]:
    """A request that brings spans."""
    return {
        "resourceSpans": [
            {"resource": {}, "scopeSpans": [{"scope": {}, "spans": [dict(one) for one in spans]}]}
        ]
    }
