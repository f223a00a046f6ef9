"""Anthropic's messages: requests, whole replies and errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assay.conversation.messages import Finish, ReplyUsage
from assay.conversation.protocols.anthropic_stream import AnthropicStream, write_stream
from assay.conversation.protocols.codec import Codec, Protocol
from assay.conversation.protocols.shapes import ProtocolError, checked
from assay.conversation.protocols.translating import (
    TurnBuilder,
    as_function,
    as_function_call,
    call_as_asked,
    data_of,
    flag,
    given_only,
    number,
    own_body,
    own_tool,
    texts,
    whole,
    word,
)
from assay.conversation.turns import (
    AssistantTurn,
    Call,
    Conversation,
    Image,
    Part,
    Result,
    Stop,
    Text,
    Thought,
    Tool,
    Turn,
    Unknown,
)
from assay.conversation.wire import count, items, mapping, name, text, written
from assay.scoring.json_safe import Json

_NAME: Protocol = "anthropic"
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_REASONS: Mapping[Stop, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool": "tool_use",
    "refusal": "refusal",
}
_MOST_TOKENS = 8192
"""Asked for where nobody said how many: here a number has to be said."""
_REDACTED = "redacted_thinking"
"""In place of the id of a thought that is hidden."""
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}


def read_request(body: Json) -> Conversation:
    """Read a request.

    Raises:
        ProtocolError: If it is none.
    """
    given = checked(_NAME, body)
    turns = TurnBuilder()
    if system := _content(given.get("system")):
        turns.add("system", system)
    for message in map(mapping, items(given["messages"])):
        _add_message(turns, text(message["role"]), _content(message["content"]))
    config = mapping(given.get("output_config"))
    form = mapping(config.get("format")) or mapping(given.get("output_format"))
    choice = mapping(given.get("tool_choice"))
    kind = text(choice.get("type")) or "auto"
    is_single = flag(choice.get("disable_parallel_tool_use"))
    return Conversation(
        model=text(given["model"]),
        turns=turns.made(),
        tools=tuple(map(_tool, map(mapping, items(given.get("tools"))))),
        choice=text(choice["name"]) if kind == "tool" else _CHOICES[kind],
        max_tokens=whole(given["max_tokens"]),
        temperature=number(given.get("temperature")),
        top_p=number(given.get("top_p")),
        effort=word(config.get("effort")),
        stop=texts(given.get("stop_sequences")),
        schema=mapping(form.get("schema")) or None,
        is_parallel=None if is_single is None else not is_single,
        is_streamed=flag(given.get("stream")) or False,
    )


def _add_message(turns: TurnBuilder, role: str, parts: Sequence[Part]) -> None:
    if role != "user":
        turns.add("assistant" if role == "assistant" else "system", parts)
        return
    # What the user's message brings of tools is a turn of its own.
    results = tuple(part for part in parts if isinstance(part, Result))
    others = tuple(part for part in parts if not isinstance(part, Result))
    if results:
        turns.add("tool", results)
    if others or not results:
        turns.add("user", others)


def _content(value: Json) -> tuple[Part, ...]:
    """Content of a message, of the past or of a reply: a text, or blocks."""
    if isinstance(value, str):
        return (Text(text(value)),) if value else ()
    return tuple(_part(block) for block in map(mapping, items(value)) if block)


def _part(block: dict[str, Json]) -> Part:  # noqa: PLR0911 - one for each kind
    match block.get("type"):
        case "text":
            return Text(text(block.get("text")), tuple(items(block.get("citations"))))
        case "thinking":
            said = text(block.get("thinking"))
            return Thought(said, text(block.get("signature")), protocol=_NAME)
        case "redacted_thinking":
            return Thought("", text(block.get("data")), _REDACTED, _NAME)
        case "image":
            return _image(block)
        case "tool_use":
            given = written(block.get("input"))
            return Call(text(block.get("id")), text(block.get("name")), given)
        case "tool_result":
            content = _content(block.get("content"))
            kept = tuple(part for part in content if isinstance(part, Text | Image | Unknown))
            is_error = flag(block.get("is_error")) or False
            return Result(text(block.get("tool_use_id")), kept, is_error)
        case _:
            return Unknown(_NAME, block)


def _image(block: dict[str, Json]) -> Part:
    source = mapping(block.get("source"))
    if source.get("type") == "url":
        return Image(text(source.get("url")))
    if source.get("type") == "base64":
        return Image(f"data:{text(source.get('media_type'))};base64,{text(source.get('data'))}")
    return Unknown(_NAME, block)


def _tool(tool: dict[str, Json]) -> Tool:
    kind = text(tool.get("type")) or "custom"
    if kind != "custom":
        return own_tool(tool, kind, _NAME)
    return Tool(
        name=text(tool["name"]),
        description=text(tool.get("description")),
        schema=mapping(tool["input_schema"]),
    )


def write_request(conversation: Conversation) -> dict[str, Json]:
    """Write a request; what the protocol cannot say is left out."""
    asked = conversation
    body: dict[str, Json] = {"model": asked.model, "max_tokens": asked.max_tokens or _MOST_TOKENS}
    if system := [part for turn in _systems(asked) for part in turn.parts]:
        texts = [part.text for part in system if isinstance(part, Text)]
        only = len(texts) == len(system) == 1
        body["system"] = texts[0] if only else list[Json](_blocks(system))
    body["messages"] = _messages([turn for turn in asked.turns if turn.speaker != "system"])
    if asked.is_continued:
        _keep(body["messages"])
    tools = [_tool_body(tool) for tool in asked.tools]
    if kept := [tool for tool in tools if tool]:
        body["tools"] = list[Json](kept)
        if (choice := _choice_body(asked)) != {"type": "auto"}:
            body["tool_choice"] = choice
    config = given_only(effort=asked.effort)
    if asked.schema is not None:
        config["format"] = {"type": "json_schema", "schema": dict(asked.schema)}
    if config:
        body["output_config"] = config
    body |= given_only(temperature=asked.temperature, top_p=asked.top_p)
    if asked.stop:
        body["stop_sequences"] = list[Json](asked.stop)
    if asked.is_streamed:
        body["stream"] = True
    return body


def _systems(asked: Conversation) -> list[Turn]:
    return [turn for turn in asked.turns if turn.speaker == "system"]


def _messages(turns: Sequence[Turn]) -> list[Json]:
    messages: list[Json] = []
    behind_results: list[Json] | None = None
    for turn in turns:
        blocks = list[Json](_blocks(turn.parts))
        if not blocks and turn.speaker != "user":
            continue  # all of it is another protocol's own: an empty message is refused
        if turn.speaker == "user" and behind_results is not None:
            behind_results += blocks  # one message, in which results come first
            behind_results = None
            continue
        behind_results = blocks if turn.speaker == "tool" else None
        is_text = len(turn.parts) == 1 and isinstance(turn.parts[0], Text)
        content: Json = turn.text if is_text or not blocks else blocks
        role = "assistant" if turn.speaker == "assistant" else "user"
        messages.append({"role": role, "content": content})
    return messages


def _keep(messages: list[Json]) -> None:
    """Have all that stands up to the end of the messages kept for the next request."""
    last = messages[-1] if messages else None
    if not isinstance(last, dict) or last["role"] != "user":
        return
    content = last["content"]
    blocks: Json = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if content and isinstance(blocks, list) and isinstance(end := blocks[-1], dict):
        last["content"] = [*blocks[:-1], {**end, "cache_control": {"type": "ephemeral"}}]


def _blocks(parts: Sequence[Part]) -> list[dict[str, Json]]:
    found: list[dict[str, Json]] = []
    for part in parts:
        if isinstance(part, Thought):
            if part.sealed and part.protocol in ("", _NAME):  # others' seals are broken here
                found.append(_thought_body(part))
        elif isinstance(part, Unknown):
            if part.protocol == _NAME:
                found.append(dict(part.data))
        elif not isinstance(part, Text) or part.text:  # an empty text is refused
            found.append(_block(part))
    return found


def _thought_body(thought: Thought) -> dict[str, Json]:
    if thought.id == _REDACTED:
        return {"type": _REDACTED, "data": thought.sealed}
    return {"type": "thinking", "thinking": thought.text, "signature": thought.sealed}


def _block(part: Text | Call | Result | Image) -> dict[str, Json]:
    match part:
        case Text():
            ours = [one for one in part.citations if _is_ours(one)]
            cited: dict[str, Json] = {"citations": ours} if ours else {}
            return {"type": "text", "text": part.text, **cited}
        case Image():
            return {"type": "image", "source": _source(part.url)}
        case Call():
            call = as_function_call(part)
            given = call.given
            # As Anthropic's documentation says to give back what is none.
            body = {"INVALID_JSON": call.arguments} if given is None else given
            return {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(body)}
        case Result():
            blocks = list[Json](_blocks(part.content))
            is_text = len(part.content) == 1 and isinstance(part.content[0], Text)
            result: dict[str, Json] = {
                "type": "tool_result",
                "tool_use_id": part.id,
                "content": part.text if is_text else blocks,
            }
            return {**result, "is_error": True} if part.is_error else result


def _is_ours(citation: Json) -> bool:
    return text(mapping(citation).get("type")).endswith("_location")


def _source(url: str) -> dict[str, Json]:
    if (held := data_of(url)) is not None:
        return {"type": "base64", "media_type": held[0], "data": held[1]}
    return {"type": "url", "url": url}


def _tool_body(tool: Tool) -> dict[str, Json]:
    """A tool's declaration; empty for one that only another protocol has."""
    if (own := own_body(tool, _NAME)) is not None:
        return own
    function = as_function(tool)
    described: dict[str, Json] = {"description": function.description}
    return {
        "name": function.name,
        **(described if function.description else {}),
        "input_schema": dict(function.schema),
    }


def _choice_body(asked: Conversation) -> dict[str, Json]:
    kinds = {ours: kind for kind, ours in _CHOICES.items()}
    choice: dict[str, Json] = (
        {"type": kinds[asked.choice]}
        if asked.choice in kinds
        else {"type": "tool", "name": asked.choice}
    )
    if asked.is_parallel is not None and asked.choice != "none":
        choice["disable_parallel_tool_use"] = not asked.is_parallel
    return choice


def read_reply(body: Json) -> AssistantTurn | None:
    """Read a whole reply; None if it is none."""
    reply = mapping(body)
    content = reply.get("content")
    if not isinstance(content, list) or reply.get("type", "message") != "message":
        return None
    turn = Turn("assistant", _content(content))
    reason = text(reply.get("stop_reason"))
    stop: Stop = _FINISH.get(reason, "stop")
    return AssistantTurn(
        turn=turn,
        stop="tool" if turn.calls and stop == "stop" else stop,
        model=name(reply.get("model")),
        usage=usage_of(mapping(reply.get("usage"))),
        id=name(reply.get("id")),
        refusal=turn.text if stop == "refusal" else "",
        stopped=name(reason),
    )


def write_reply(reply: AssistantTurn, asked: Conversation) -> dict[str, Json]:
    """Write a whole reply to a request."""
    content: list[Json] = []
    for part in reply.turn.parts:
        if isinstance(part, Thought) and part.id != _REDACTED:
            content.append({"type": "thinking", "thinking": part.text, "signature": part.sealed})
        elif isinstance(part, Thought):
            content.append(_thought_body(part))
        elif isinstance(part, Call):
            call = call_as_asked(part, asked)
            given = as_function_call(call).given
            body: Json = call.arguments if given is None else given
            content.append({"type": "tool_use", "id": call.id, "name": call.name, "input": body})
        elif isinstance(part, Text):
            content.append({"citations": None, **_block(part)})
        elif isinstance(part, Unknown) and part.protocol == _NAME:
            content.append(dict(part.data))
    if reply.refusal and not reply.turn.text:
        content.append({"type": "text", "text": reply.refusal, "citations": None})
    usage = reply.usage
    cached = usage.cached_tokens or 0
    stored, hour = usage.stored_tokens or 0, usage.stored_hour_tokens or 0
    counted: dict[str, Json] = {
        "input_tokens": max(0, (usage.input_tokens or 0) - cached - stored - hour),
        "cache_creation_input_tokens": stored + hour,
        "cache_read_input_tokens": cached,
        "output_tokens": usage.output_tokens or 0,
    }
    if hour:
        by_time: Json = {"ephemeral_5m_input_tokens": stored, "ephemeral_1h_input_tokens": hour}
        counted["cache_creation"] = by_time
    if usage.reasoning_tokens is not None:
        counted["output_tokens_details"] = {"thinking_tokens": usage.reasoning_tokens}
    return {
        "id": reply.id,
        "type": "message",
        "role": "assistant",
        "model": reply.model or asked.model,
        "content": content,
        "stop_reason": _REASONS[reply.stop],
        "stop_sequence": None,
        "usage": counted,
    }


def write_error(error: ProtocolError) -> dict[str, Json]:
    """The body of an error."""
    told: Json = {"type": _TYPES.get(error.status, "api_error"), "message": error.message}
    return {"type": "error", "error": told, "request_id": None}


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


def usage_of(usage: Mapping[str, Json]) -> ReplyUsage:
    """The tokens of a reply."""
    fresh = count(usage.get("input_tokens"))
    cached = count(usage.get("cache_read_input_tokens"))
    stored = count(usage.get("cache_creation_input_tokens"))
    by_time = mapping(usage.get("cache_creation"))
    hour = count(by_time.get("ephemeral_1h_input_tokens"))
    if stored is None and by_time:
        stored = (count(by_time.get("ephemeral_5m_input_tokens")) or 0) + (hour or 0)
    hour = None if hour is None else min(hour, stored or 0)
    return ReplyUsage(
        input_tokens=None if fresh is None else fresh + (cached or 0) + (stored or 0),
        cached_tokens=cached,
        output_tokens=count(usage.get("output_tokens")),
        reasoning_tokens=count(mapping(usage.get("output_tokens_details")).get("thinking_tokens")),
        stored_tokens=(stored or 0) - (hour or 0) or None,
        stored_hour_tokens=hour or None,
    )


CODEC = Codec(
    NAME=_NAME,
    PATH="/v1/messages",
    read_request=read_request,
    write_request=write_request,
    read_reply=read_reply,
    write_reply=write_reply,
    events_of=write_stream,
    stream=AnthropicStream,
    write_error=write_error,
    error_name="error",
)
