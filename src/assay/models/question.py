"""A single question to a model, said as the conversation that it is; its reply, read strictly."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from assay.models.conversation import Conversation, Image, Part, Reply, Text, Tool, Turn, Unknown
from assay.models.messages import Message, Request, Rung
from assay.models.protocols import Codec
from assay.models.resolving import Capability, Endpoint
from assay.models.schemas import Shape
from assay.models.wire import (
    UNENDED,
    RawReply,
    encode,
    is_named,
    items,
    mapping,
    name,
    one_call,
    said_error,
    text,
)
from assay.scoring.json_safe import Json

_UNENDED_REASONS = frozenset({"pause_turn", "compaction"})
_FAILED = frozenset(
    {"error", "abort", "aborted", "cancelled", "network_error", "insufficient_system_resource"}
)
_OPTIONAL = {"temperature": "temperature", "top_p": "top_p", "seed": "seed"}


def headers(endpoint: Endpoint) -> dict[str, str]:
    """What identifies us to the endpoint, and the version of the protocol."""
    known: dict[str, str] = {}
    if endpoint.protocol == "anthropic":
        known["anthropic-version"] = "2023-06-01"
        if endpoint.key:
            known[endpoint.key_header or "x-api-key"] = endpoint.key
    elif endpoint.key:
        own = endpoint.key_header
        known[own or "Authorization"] = endpoint.key if own else f"Bearer {endpoint.key}"
    return known


def body(
    codec: Codec,
    request: Request,
    messages: tuple[Message, ...],
    *,
    most_tokens: int,
    model: str,
    capability: Capability,
    shape: Shape | None,
) -> bytes:
    """The encoded body of a request."""

    def kept(field: str) -> float | None:
        return None if field in capability.refused else getattr(request, field)

    rung: Rung = capability.rung_for(shape)
    asked = Conversation(
        model=model,
        turns=tuple(Turn(one.role, _parts(one, codec)) for one in messages),
        max_tokens=None if "max_tokens" in capability.refused else capability.tokens(most_tokens),
        temperature=kept("temperature"),
        top_p=kept("top_p"),
        seed=request.seed if "seed" not in capability.refused else None,
        effort=request.reasoning_effort if "reasoning_effort" not in capability.refused else None,
    )
    if shape is not None and rung == "json_schema":
        asked = replace(asked, schema=json.loads(shape.strict), schema_name=request.schema_name)
    elif shape is not None and rung == "tool":
        schema = json.loads(shape.strict or shape.plain)
        tool = Tool(name=request.schema_name, description="Give the reply.", schema=schema)
        asked = replace(asked, tools=(tool,), choice=request.schema_name)
    said = codec.write_request(asked)
    if codec.NAME == "chat":
        if (most := said.pop("max_completion_tokens", None)) is not None:
            said[capability.token_field] = most
        if rung == "json_object":
            said["response_format"] = {"type": "json_object"}
    return encode(said)


def _parts(message: Message, codec: Codec) -> tuple[Part, ...]:
    if isinstance(message.content, str):
        return (Text(message.content),)
    return tuple(_part(part, codec) for part in message.content)


def _part(part: Mapping[str, Json], codec: Codec) -> Part:
    if part.get("type") == "text":
        return Text(text(part.get("text")))
    image = part.get("image_url")
    if part.get("type") == "image_url":
        return Image(text(image) or text(mapping(image).get("url")))
    return Unknown(codec.NAME, part)


def error(data: Json) -> Json:
    """What a server says went wrong, also beside a reply; nothing if it says nothing."""
    reply = mapping(data)
    if told := said_error(reply):
        return told
    for choice in map(mapping, items(reply.get("choices"))):
        if told := said_error(choice):
            return told
        if text(choice.get("finish_reason")).partition(":")[0].strip().lower() in _FAILED:
            return {"message": "it broke off while it was writing"}
    return None


def read(codec: Codec, data: Json, tool: str = "verdict") -> RawReply | None:
    """Take a reply apart; None if it is not a reply.

    Args:
        codec: Of its protocol.
        data: The body.
        tool: The name of the tool that the model was given to reply by; empty if none. Calls of it
            are the reply; those of any other name are ignored.
    """
    reply = codec.read_reply(data)
    if reply is None:
        return None
    said, wrong = _said(reply, tool)
    for other in items(mapping(data).get("choices"))[1:]:
        further = codec.read_reply({"choices": [other]})
        if further is None or _said(further, tool) != (said, wrong):
            wrong = "there are several replies in one, which differ"
    if reply.stopped.lower() in _UNENDED_REASONS:
        wrong = wrong or UNENDED
    fingerprint = name(mapping(data).get("system_fingerprint"))
    return RawReply(said, reply.stop, reply.model, reply.usage, fingerprint, reply.refusal, wrong)


def _said(reply: Reply, tool: str) -> tuple[str, str]:
    """What a reply says, and what is wrong with it."""
    calls = reply.turn.calls
    ours = [one.arguments for one in calls if is_named({"name": one.name}, tool)]
    return one_call(ours) if ours else (reply.turn.text, "")
