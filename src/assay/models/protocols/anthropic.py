"""Anthropic's messages: requests and whole replies."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from assay.models.conversation import (
    Call,
    Conversation,
    Image,
    Part,
    Reply,
    Result,
    Stop,
    Text,
    Thought,
    Tool,
    Turn,
    Unknown,
)
from assay.models.messages import Finish, Usage
from assay.models.protocols.anthropic_stream import read_stream, write_stream
from assay.models.protocols.codec import Protocol, ProtocolError
from assay.models.protocols.events import event
from assay.models.protocols.fields import (
    MalformedError,
    list_at,
    missing,
    mistyped,
    not_allowed,
    object_at,
    optional_flag,
    optional_integer,
    optional_list,
    optional_number,
    optional_object,
    optional_text,
    optional_word,
    text_in,
    texts_at,
)
from assay.models.protocols.translating import (
    as_function,
    as_function_call,
    call_as_asked,
    given_only,
)
from assay.models.protocols.turns import Turns
from assay.models.wire import count, items, mapping, name, text, written
from assay.scoring.json_safe import Json

__all__ = [
    "NAME",
    "PATH",
    "read_reply",
    "read_request",
    "read_stream",
    "write_error",
    "write_error_event",
    "write_reply",
    "write_request",
    "write_stream",
]

NAME: Protocol = "anthropic"
PATH: str = "/v1/messages"

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
    try:
        return _read(object_at(body, ""))
    except MalformedError as error:
        raise error.as_anthropic() from None


def _read(given: Mapping[str, Json]) -> Conversation:
    model = text_in(given, "model")
    if not model:
        raise missing("model")
    for field in ("messages", "max_tokens"):
        if given.get(field) is None:
            raise missing(field)
    messages = list_at(given["messages"], "messages")
    if not messages:
        message = "messages: at least one message is required"
        raise ProtocolError(400, message, parameter="messages")
    turns = Turns()
    if system := _content(given.get("system"), "system"):
        turns.add("system", system)
    for at, one in enumerate(messages):
        _add_message(turns, one, f"messages[{at}]")
    config = optional_object(given, "output_config")
    form = optional_object(config, "format", "output_config")
    form = form or optional_object(given, "output_format")
    choice, is_parallel = _choice(given)
    stop = given.get("stop_sequences")
    return Conversation(
        model=model,
        turns=turns.made(),
        tools=_tools(given),
        choice=choice,
        max_tokens=optional_integer(given, "max_tokens", low=1),
        temperature=optional_number(given, "temperature", low=0, high=2),
        top_p=optional_number(given, "top_p", low=0, high=1),
        effort=optional_word(config, "effort", "output_config"),
        stop=() if stop is None else texts_at(stop, "stop_sequences"),
        schema=optional_object(form, "schema", "output_config.format") or None,
        is_parallel=is_parallel,
        is_streamed=optional_flag(given, "stream") or False,
    )


def _add_message(turns: Turns, value: Json, where: str) -> None:
    message = object_at(value, where)
    role = text_in(message, "role", where)
    if message.get("content") is None:
        raise missing(f"{where}.content")
    parts = _content(message["content"], f"{where}.content")
    if role in ("assistant", "system"):
        turns.add("assistant" if role == "assistant" else "system", parts)
        return
    if role != "user":
        raise not_allowed(f"{where}.role", role, ("user", "assistant", "system"))
    # What the user's message brings of tools is a turn of its own.
    results = tuple(part for part in parts if isinstance(part, Result))
    others = tuple(part for part in parts if not isinstance(part, Result))
    if results:
        turns.add("tool", results)
    if others or not results:
        turns.add("user", others)


def _content(value: Json, where: str) -> tuple[Part, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (Text(value),) if value else ()
    if not isinstance(value, list):
        raise mistyped(where, value, "a string or array", "a valid string or list")
    return tuple(
        _part(object_at(one, f"{where}[{at}]"), f"{where}[{at}]") for at, one in enumerate(value)
    )


def _part(block: Mapping[str, Json], where: str) -> Part:  # noqa: PLR0911 - one for each kind
    kind = text_in(block, "type", where)
    match kind:
        case "text":
            return Text(text_in(block, "text", where), tuple(items(block.get("citations"))))
        case "thinking":
            sealed = optional_text(block, "signature", where) or ""
            return Thought(text_in(block, "thinking", where), sealed, protocol=NAME)
        case "redacted_thinking":
            return Thought("", text_in(block, "data", where), _REDACTED, NAME)
        case "image":
            return _image(block, where)
        case "tool_use":
            given = object_at(block.get("input"), f"{where}.input")
            arguments = json.dumps(given)
            return Call(text_in(block, "id", where), text_in(block, "name", where), arguments)
        case "tool_result":
            content = _content(block.get("content"), f"{where}.content")
            return Result(
                text_in(block, "tool_use_id", where),
                tuple(part for part in content if isinstance(part, Text | Image | Unknown)),
                optional_flag(block, "is_error", where) or False,
            )
        case _:
            return Unknown(NAME, block)


def _image(block: Mapping[str, Json], where: str) -> Part:
    source = object_at(block.get("source"), f"{where}.source")
    if source.get("type") == "url":
        return Image(text_in(source, "url", f"{where}.source"))
    if source.get("type") == "base64":
        kind = text_in(source, "media_type", f"{where}.source")
        return Image(f"data:{kind};base64,{text_in(source, 'data', f'{where}.source')}")
    return Unknown(NAME, block)


def _tools(given: Mapping[str, Json]) -> tuple[Tool, ...]:
    tools: list[Tool] = []
    for at, one in enumerate(optional_list(given, "tools")):
        where = f"tools[{at}]"
        tool = object_at(one, where)
        kind = optional_text(tool, "type", where)
        if kind in (None, "custom"):
            if tool.get("input_schema") is None:
                raise missing(f"{where}.input_schema")
            tools.append(
                Tool(
                    name=text_in(tool, "name", where),
                    description=optional_text(tool, "description", where) or "",
                    schema=object_at(tool["input_schema"], f"{where}.input_schema"),
                )
            )
        else:
            own: dict[str, Json] = {**tool, "protocol": NAME}
            tools.append(Tool(name=text(tool.get("name")) or str(kind), own=own))
    return tuple(tools)


def _choice(given: Mapping[str, Json]) -> tuple[str, bool | None]:
    chosen = optional_object(given, "tool_choice")
    if not chosen:
        return "auto", None
    kind = text_in(chosen, "type", "tool_choice")
    is_single = optional_flag(chosen, "disable_parallel_tool_use", "tool_choice")
    is_parallel = None if is_single is None else not is_single
    if kind == "tool":
        return text_in(chosen, "name", "tool_choice"), is_parallel
    if kind not in _CHOICES:
        raise not_allowed("tool_choice.type", kind, (*_CHOICES, "tool"))
    return _CHOICES[kind], is_parallel


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
            if part.sealed and part.protocol in ("", NAME):  # others' seals are broken here
                found.append(_thought_body(part))
        elif isinstance(part, Unknown):
            if part.protocol == NAME:
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
    kind, comma, data = url.removeprefix("data:").partition(";base64,")
    if url.startswith("data:") and comma:
        return {"type": "base64", "media_type": kind, "data": data}
    return {"type": "url", "url": url}


def _tool_body(tool: Tool) -> dict[str, Json]:
    """A tool's declaration; empty for one that only another protocol has."""
    if tool.own is not None:
        is_ours = tool.own.get("protocol") == NAME
        return {key: tool.own[key] for key in tool.own if key != "protocol"} if is_ours else {}
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


def read_reply(body: Json) -> Reply | None:
    """Read a whole reply; None if it is none."""
    reply = mapping(body)
    content = reply.get("content")
    if not isinstance(content, list) or reply.get("type", "message") != "message":
        return None
    turn = Turn("assistant", tuple(_reply_part(block) for block in map(mapping, content) if block))
    reason = text(reply.get("stop_reason"))
    stop: Stop = finish_of(reason)
    return Reply(
        turn=turn,
        stop="tool" if turn.calls and stop == "stop" else stop,
        model=name(reply.get("model")),
        usage=usage_of(mapping(reply.get("usage"))),
        id=name(reply.get("id")),
        refusal=turn.text if stop == "refusal" else "",
        stopped=name(reason),
    )


def _reply_part(block: dict[str, Json]) -> Part:
    match block.get("type"):
        case "text":
            return Text(text(block.get("text")), tuple(items(block.get("citations"))))
        case "thinking":
            said = text(block.get("thinking"))
            return Thought(said, text(block.get("signature")), protocol=NAME)
        case "redacted_thinking":
            return Thought("", text(block.get("data")), _REDACTED, NAME)
        case "tool_use":
            given = written(block.get("input"))
            return Call(text(block.get("id")), text(block.get("name")), given)
        case _:
            return Unknown(NAME, block)


def write_reply(reply: Reply, asked: Conversation) -> dict[str, Json]:
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
        elif isinstance(part, Unknown) and part.protocol == NAME:
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


def write_error_event(error: ProtocolError) -> bytes:
    """An error as the last event of a stream that had begun."""
    return event(write_error(error), "error")


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
