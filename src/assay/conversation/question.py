"""A single question to a model, said as the conversation that it is; its reply, read strictly."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import cast

from assay.conversation.capability import Capability
from assay.conversation.messages import Message, Request
from assay.conversation.protocols import Codec, chat
from assay.conversation.schemas import Shape
from assay.conversation.turns import (
    AssistantTurn,
    Conversation,
    Image,
    Part,
    Text,
    Tool,
    Turn,
    Unknown,
)
from assay.conversation.wire import (
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
from assay.errors import InputError
from assay.scoring.json_safe import Json

_UNENDED_REASONS = frozenset({"pause_turn", "compaction"})
_FAILED = frozenset(
    {"error", "abort", "aborted", "cancelled", "network_error", "insufficient_system_resource"}
)


def body(
    codec: Codec,
    request: Request,
    *,
    model: str,
    capability: Capability,
    shape: Shape | None,
) -> bytes:
    """The encoded body of a request."""
    refused, is_chat = capability.refused, codec.NAME == "chat"
    rung = capability.rung_for(shape)
    schema: dict[str, Json] | None = None
    tools: tuple[Tool, ...] = ()
    if shape is not None and rung == "json_schema":
        schema = _schema(shape.strict)
    elif shape is not None and rung == "tool":
        tools = (_tool(request.schema_name, shape.strict or shape.plain),)
    asked = Conversation(
        model=model,
        turns=_turns(request.messages, codec),
        tools=tools,
        choice=request.schema_name if tools else "auto",
        max_tokens=capability.tokens(request.max_tokens),
        temperature=None if "temperature" in refused else request.temperature,
        top_p=None if "top_p" in refused else request.top_p,
        seed=None if "seed" in refused else request.seed,
        effort=None if "reasoning_effort" in refused else request.reasoning_effort,
        schema=schema,
        schema_name=request.schema_name,
    )
    written = codec.write_request(asked)
    if is_chat:
        most = written.pop("max_completion_tokens", None)
        if "max_tokens" not in refused:
            written[capability.token_field] = most
        if rung == "json_object":
            written["response_format"] = {"type": "json_object"}
        for tool in map(mapping, items(written.get("tools"))):
            # What an agent's tools cannot say: that the provider holds the model to the schema.
            mapping(tool["function"])["strict"] = shape is not None and bool(shape.strict)
    return encode(written)


def _tool(called: str, schema: str) -> Tool:
    return Tool(name=called, description="Give the reply.", schema=_schema(schema))


@lru_cache(maxsize=256)
def _schema(encoded: str) -> dict[str, Json]:
    return cast("dict[str, Json]", json.loads(encoded))


def _turns(messages: tuple[Message, ...], codec: Codec) -> tuple[Turn, ...]:
    turns = tuple(Turn(one.role, _parts(one, codec)) for one in messages)
    if codec.NAME == "chat":
        return turns
    system = [part for turn in turns if turn.speaker == "system" for part in turn.parts]
    if not all(isinstance(part, Text) for part in system):
        return turns
    # Anthropic's system prompt is one: as one text it reads like the messages that it was.
    said = "\n\n".join(part.text for part in system if isinstance(part, Text))
    others = tuple(turn for turn in turns if turn.speaker != "system")
    return (Turn("system", (Text(said),)), *others) if system else others


def _parts(message: Message, codec: Codec) -> tuple[Part, ...]:
    if isinstance(message.content, str):
        return (Text(message.content),)
    return tuple(_part(part, codec) for part in message.content)


def _part(part: Mapping[str, Json], codec: Codec) -> Part:
    """A part in OpenAI's form; for those who speak it as it is, with all that stands in it."""
    if codec.NAME == "chat" or part.get("type") not in ("text", "image_url"):
        return Unknown(codec.NAME, part)
    if part.get("type") == "text":
        return Text(text(part.get("text")))
    image = part.get("image_url")
    url = text(image) or text(mapping(image).get("url"))
    if url.startswith("data:") and ";base64," not in url:
        raise InputError("an image's data URL has to be base64")
    return Image(url)


def error(data: Json) -> Json:
    """What a server says went wrong, also beside a reply; nothing if it says nothing."""
    reply = mapping(data)
    if told := said_error(reply):
        return told
    for choice in map(mapping, items(reply.get("choices"))):
        if told := said_error(choice):
            return told
        if chat.reason_of(text(choice.get("finish_reason"))) in _FAILED:
            return {"message": "it broke off while it was writing"}
    return None


def read(codec: Codec, data: Json, tool: str = "verdict") -> RawReply | None:
    """Take a reply apart; None if it is not a reply.

    Args:
        codec: Of its protocol.
        data: The body.
        tool: The name of the tool that the model was given to reply by; empty if none. Calls of it
            are the reply, and those without a name, which can be of no other; the rest is ignored.
    """
    reply = _reply(codec, data, tool)
    if reply is None:
        return None
    said, wrong = _said(reply, tool)
    further = [
        _reply(codec, {"choices": [one]}, tool) for one in items(mapping(data).get("choices"))[1:]
    ]
    if any(other is None or _said(other, tool) != (said, wrong) for other in further):
        wrong = "there are several replies in one, which differ"
    if chat.reason_of(reply.stopped) in _UNENDED_REASONS:
        wrong = wrong or UNENDED
    fingerprint = name(mapping(data).get("system_fingerprint"))
    return RawReply(said, reply.stop, reply.model, reply.usage, fingerprint, reply.refusal, wrong)


def _reply(codec: Codec, data: Json, tool: str) -> AssistantTurn | None:
    return chat.read_reply(data, tool) if codec.NAME == "chat" else codec.read_reply(data)


def _said(reply: AssistantTurn, tool: str) -> tuple[str, str]:
    """What a reply says, and what is wrong with it."""
    ours = [one.arguments for one in reply.turn.calls if is_named({"name": one.name}, tool)]
    return one_call(ours) if ours else (reply.turn.text, "")
