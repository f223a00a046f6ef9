"""Anthropic's messages."""

from __future__ import annotations

import json
from collections.abc import Mapping

from assay.errors import InputError
from assay.models.messages import Finish, Message, Request, Rung, Usage
from assay.models.resolving import Capability, Endpoint
from assay.models.schemas import Shape
from assay.models.wire import (
    UNENDED,
    RawReply,
    count,
    encode,
    is_named,
    kept_fields,
    mapping,
    name,
    one_call,
    parameters,
    said_error,
    text,
    written,
)
from assay.scoring.json_safe import Json

ROUTE: str = "/v1/messages"
_VERSION = "2023-06-01"
# What is not here is an end; servers that translate from OpenAI's protocol keep its words.
_FINISH: Mapping[str, Finish] = {
    "max_tokens": "length",
    "length": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
    "content_filter": "refusal",
    "tool_use": "tool",
    "tool_calls": "tool",
}
_UNENDED_REASONS = frozenset({"pause_turn", "compaction"})
_TOOL_USE = "Give the reply."


def headers(endpoint: Endpoint) -> dict[str, str]:
    """What identifies us to the endpoint, and the version of the protocol."""
    known = {"anthropic-version": _VERSION}
    if endpoint.key:
        known[endpoint.key_header or "x-api-key"] = endpoint.key
    return known


def body(
    request: Request,
    messages: tuple[Message, ...],
    *,
    most_tokens: int,
    model: str,
    capability: Capability,
    shape: Shape | None,
) -> bytes:
    """The encoded body of a request; see `assay.models.openai_wire.body`."""
    fields: dict[str, object] = {
        "model": model,
        "max_tokens": capability.tokens(most_tokens),
    }
    system = [part for message in messages if message.role == "system" for part in _parts(message)]
    if system:
        only_text = all(isinstance(part, str) for part in system)
        fields["system"] = "\n\n".join(map(str, system)) if only_text else _blocks(system)
    fields["messages"] = [
        {
            "role": message.role,
            "content": message.content
            if isinstance(message.content, str)
            else _blocks(_parts(message)),
        }
        for message in messages
        if message.role != "system"
    ]
    fields |= parameters(request, capability, "temperature", "top_p")
    effort = str(parameters(request, capability, "reasoning_effort").get("reasoning_effort", ""))
    if shape is None:
        return encode(fields, _output_config(effort, ""))
    key = ("anthropic", capability.rung_for(shape), request.schema_name, effort)
    return encode(fields, kept_fields(shape, key, _shape_fields))


def _shape_fields(shape: Shape, rung: Rung, called: str, effort: str) -> str:
    if rung == "json_schema":
        return _output_config(effort, f'{{"type":"json_schema","schema":{shape.strict}}}')
    if rung == "tool":
        schema = shape.strict or shape.plain
        described = f'"name":{called},"description":"{_TOOL_USE}","input_schema":{schema}'
        choice = f'"tool_choice":{{"type":"tool","name":{called}}}'
        return f',"tools":[{{{described}}}],{choice}{_output_config(effort, "")}'
    return _output_config(effort, "")


def _output_config(effort: str, shape: str) -> str:
    known = ([f'"effort":{json.dumps(effort)}'] if effort else []) + (
        [f'"format":{shape}'] if shape else []
    )
    return f',"output_config":{{{",".join(known)}}}' if known else ""


def _parts(message: Message) -> list[str | Mapping[str, Json]]:
    return [message.content] if isinstance(message.content, str) else list(message.content)


def _blocks(parts: list[str | Mapping[str, Json]]) -> list[dict[str, object]]:
    return [
        {"type": "text", "text": part} if isinstance(part, str) else _block(part) for part in parts
    ]


def _block(part: Mapping[str, Json]) -> dict[str, object]:
    """A part in OpenAI's form, in Anthropic's."""
    if part.get("type") != "image_url":
        return dict(part)
    image = part.get("image_url")
    url = text(image) or text(mapping(image).get("url"))
    if not url.startswith("data:"):
        return {"type": "image", "source": {"type": "url", "url": url}}
    kind, comma, data = url[5:].partition(";base64,")
    if not comma:
        raise InputError("an image's data URL has to be base64")
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}


def error(data: Json) -> Json:
    """What a server says went wrong; see `assay.models.openai_wire.error`."""
    return said_error(mapping(data))


def read(data: Json, tool: str = "verdict") -> RawReply | None:
    """Take a reply apart; None if it is not a reply. See `assay.models.openai_wire.read`."""
    reply = mapping(data)
    content = reply.get("content")
    if not isinstance(content, list) or reply.get("type", "message") != "message":
        return None
    said, wrong = "", ""
    calls: list[str] = []
    for block in map(mapping, content):
        if block.get("type") == "text":
            said += text(block.get("text"))
        elif block.get("type") == "tool_use" and is_named(block, tool):
            calls.append(written(block.get("input")))
    reason = text(reply.get("stop_reason"))
    finish = finish_of(reason)
    if reason in _UNENDED_REASONS:
        wrong = UNENDED
    refusal = said if finish == "refusal" else ""
    if calls:
        said, differ = one_call(calls)
        wrong = wrong or differ
    return RawReply(
        said,
        finish,
        name(reply.get("model")),
        usage_of(mapping(reply.get("usage"))),
        refusal=refusal,
        wrong=wrong,
    )


def finish_of(reason: str) -> Finish:
    """What the word for why a reply ended means."""
    return _FINISH.get(reason, "stop")


def usage_of(usage: Mapping[str, Json]) -> Usage:
    """The tokens of a reply."""
    fresh = count(usage.get("input_tokens"))
    cached = count(usage.get("cache_read_input_tokens"))
    stored = count(usage.get("cache_creation_input_tokens"))
    by_time = mapping(usage.get("cache_creation"))
    hour = count(by_time.get("ephemeral_1h_input_tokens"))
    if stored is None and by_time:
        stored = (count(by_time.get("ephemeral_5m_input_tokens")) or 0) + (hour or 0)
    hour = None if hour is None else min(hour, stored or 0)
    return Usage(
        input_tokens=None if fresh is None else fresh + (cached or 0) + (stored or 0),
        cached_tokens=cached,
        output_tokens=count(usage.get("output_tokens")),
        reasoning_tokens=count(mapping(usage.get("output_tokens_details")).get("thinking_tokens")),
        stored_tokens=(stored or 0) - (hour or 0) or None,
        stored_hour_tokens=hour or None,
    )
