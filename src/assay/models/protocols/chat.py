"""OpenAI's chat completions: requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assay.models.conversation import (
    Call,
    Conversation,
    Image,
    Part,
    Result,
    Speaker,
    Text,
    Thought,
    Tool,
    Turn,
    Unknown,
)
from assay.models.protocols.chat_reply import (
    NAME,
    call_body,
    read_reply,
    thoughts_of,
    write_reply,
)
from assay.models.protocols.chat_stream import read_stream, write_stream
from assay.models.protocols.codec import ProtocolError
from assay.models.protocols.errors import write_error
from assay.models.protocols.events import event
from assay.models.protocols.fields import (
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
from assay.models.protocols.translating import given_only
from assay.models.protocols.turns import Turns
from assay.models.wire import text
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

PATH: str = "/chat/completions"

_SPEAKERS: Mapping[str, Speaker] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


def read_request(body: Json) -> Conversation:
    """Read a request.

    Raises:
        ProtocolError: If it is none.
    """
    given = object_at(body, "")
    model = text_in(given, "model")
    if not model:
        raise ProtocolError(400, "you must provide a model parameter", parameter="model")
    if given.get("messages") is None:
        raise missing("messages")
    messages = list_at(given["messages"], "messages")
    if not messages:
        message = "Invalid 'messages': empty array. Expected an array with minimum length 1."
        raise ProtocolError(400, message, parameter="messages", code="empty_array")
    if (optional_integer(given, "n", low=1) or 1) > 1:
        # A conversation goes on from one reply: what stood in others would be nowhere.
        message = "Invalid 'n': replies are given one at a time here."
        raise ProtocolError(400, message, parameter="n", code="unsupported_value")
    most = optional_integer(given, "max_completion_tokens", low=1)
    if most is not None and given.get("max_tokens") is not None:
        # Servers differ in which one they keep to.
        message = (
            "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
        )
        raise ProtocolError(400, message, parameter="max_tokens", code="invalid_parameter")
    is_streamed = optional_flag(given, "stream") or False
    options = optional_object(given, "stream_options")
    stop = given.get("stop")
    return Conversation(
        model=model,
        turns=_turns(messages),
        tools=_tools(given),
        choice=_choice(given),
        max_tokens=optional_integer(given, "max_tokens", low=1) if most is None else most,
        temperature=optional_number(given, "temperature", low=0, high=2),
        top_p=optional_number(given, "top_p", low=0, high=1),
        seed=optional_integer(given, "seed", low=-(2**63), high=2**63 - 1),
        effort=optional_word(given, "reasoning_effort"),
        stop=() if stop is None else texts_at(stop, "stop"),
        schema=_schema(given),
        is_parallel=optional_flag(given, "parallel_tool_calls"),
        wants_logprobs=optional_flag(given, "logprobs") or False,
        wants_token_ids=given.get("return_token_ids") is True,
        wants_usage=not is_streamed
        or bool(optional_flag(options, "include_usage", "stream_options")),
        is_streamed=is_streamed,
    )


def _turns(messages: Sequence[Json]) -> tuple[Turn, ...]:
    turns = Turns()
    for at, one in enumerate(messages):
        where = f"messages[{at}]"
        message = object_at(one, where)
        role = text_in(message, "role", where)
        speaker = _SPEAKERS.get(role)
        if speaker is None:
            raise not_allowed(f"{where}.role", role, list(_SPEAKERS))
        if speaker == "tool":
            turns.add("tool", [_result(message, role, where)])
            continue
        parts = _content(message.get("content"), f"{where}.content")
        if speaker == "assistant":
            parts = (*thoughts_of(message), *parts, *_rest_of_reply(message, where))
        elif message.get("content") is None:
            raise missing(f"{where}.content")
        turns.add(speaker, parts)
    return turns.made()


def _result(message: Mapping[str, Json], role: str, where: str) -> Result:
    called = text_in(message, "tool_call_id" if role == "tool" else "name", where)
    content = _content(message.get("content"), f"{where}.content")
    kept = tuple(part for part in content if isinstance(part, Text | Image | Unknown))
    return Result(called, kept)


def _content(value: Json, where: str) -> tuple[Part, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (Text(value),) if value else ()
    if not isinstance(value, list):
        expected = "one of a string or array of objects"
        raise mistyped(where, value, expected, "a valid string or list")
    return tuple(_part(one, f"{where}[{at}]") for at, one in enumerate(value))


def _part(value: Json, where: str) -> Part:
    part = object_at(value, where)
    kind = text_in(part, "type", where)
    if kind == "text":
        return Text(text_in(part, "text", where))
    if kind == "refusal":
        return Text(text_in(part, "refusal", where))
    if kind == "image_url":
        image = part.get("image_url")
        if isinstance(image, str):  # as some clients write it
            return Image(image)
        return Image(
            text_in(optional_object(part, "image_url", where), "url", f"{where}.image_url")
        )
    return Unknown(NAME, part)


def _rest_of_reply(message: Mapping[str, Json], where: str) -> tuple[Part, ...]:
    """What an assistant's message of the past says beside its content."""
    found: list[Part] = []
    if refusal := optional_text(message, "refusal", where):
        found.append(Text(refusal))
    for at, one in enumerate(optional_list(message, "tool_calls", where)):
        place = f"{where}.tool_calls[{at}]"
        call = object_at(one, place)
        if call.get("type") == "custom":
            inner = optional_object(call, "custom", place)
            made = text_in(inner, "name", f"{place}.custom"), text(inner.get("input"))
            found.append(Call(text_in(call, "id", place), *made, "custom"))
            continue
        inner = object_at(call.get("function"), f"{place}.function")
        called = text_in(inner, "name", f"{place}.function")
        arguments = optional_text(inner, "arguments", f"{place}.function") or ""
        found.append(Call(text_in(call, "id", place), called, arguments))
    if legacy := optional_object(message, "function_call", where):
        called = text_in(legacy, "name", f"{where}.function_call")
        found.append(Call(called, called, text(legacy.get("arguments"))))
    return tuple(found)


def _tools(given: Mapping[str, Json]) -> tuple[Tool, ...]:
    tools: list[Tool] = []
    for at, one in enumerate(optional_list(given, "tools")):
        where = f"tools[{at}]"
        tool = object_at(one, where)
        kind = text_in(tool, "type", where)
        if kind in ("function", "custom"):
            if tool.get(kind) is None:
                raise missing(f"{where}.{kind}")
            inner = object_at(tool[kind], f"{where}.{kind}")
            tools.append(_tool(inner, f"{where}.{kind}", is_custom=kind == "custom"))
        else:
            own: dict[str, Json] = {**tool, "protocol": NAME}
            tools.append(Tool(name=text(tool.get("name")) or kind, own=own))
    for at, one in enumerate(optional_list(given, "functions")):
        where = f"functions[{at}]"
        tools.append(_tool(object_at(one, where), where, is_custom=False))
    return tuple(tools)


def _tool(inner: Mapping[str, Json], where: str, *, is_custom: bool) -> Tool:
    schema = optional_object(inner, "format" if is_custom else "parameters", where)
    if is_custom and schema.get("type") == "grammar":
        schema = {"type": "grammar", **optional_object(schema, "grammar", f"{where}.format")}
    return Tool(
        name=text_in(inner, "name", where),
        description=optional_text(inner, "description", where) or "",
        schema=schema,
        kind="custom" if is_custom else "function",
    )


def _choice(given: Mapping[str, Json]) -> str:
    choice = given.get("tool_choice", given.get("function_call"))
    if choice is None:
        return "auto"
    if isinstance(choice, str):
        if choice not in ("none", "auto", "required"):
            raise not_allowed("tool_choice", choice, ("none", "auto", "required"))
        return choice
    chosen = object_at(choice, "tool_choice")
    kind = chosen.get("type", "function")
    if kind == "allowed_tools":
        return text(optional_object(chosen, "allowed_tools", "tool_choice").get("mode")) or "auto"
    inner = chosen.get(kind) if kind in ("function", "custom") else None
    named = chosen if inner is None else object_at(inner, f"tool_choice.{kind}")
    return text_in(named, "name", "tool_choice.function")


def _schema(given: Mapping[str, Json]) -> dict[str, Json] | None:
    form = optional_object(given, "response_format")
    if form.get("type") != "json_schema":
        return None
    inner = optional_object(form, "json_schema", "response_format")
    return optional_object(inner, "schema", "response_format.json_schema") or None


def write_request(conversation: Conversation) -> dict[str, Json]:
    """Write a request; what the protocol cannot say is left out."""
    asked = conversation
    body: dict[str, Json] = {
        "model": asked.model,
        "messages": [message for turn in asked.turns for message in _messages(turn)],
    }
    tools = [_tool_body(tool) for tool in asked.tools]
    if kept := [tool for tool in tools if tool]:
        body["tools"] = list[Json](kept)
        if asked.choice != "auto":
            body["tool_choice"] = _choice_body(asked)
        if asked.is_parallel is not None:
            body["parallel_tool_calls"] = asked.is_parallel
    if asked.schema is not None:
        form: Json = {"name": asked.schema_name, "schema": dict(asked.schema), "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": form}
    body |= given_only(
        max_completion_tokens=asked.max_tokens,
        temperature=asked.temperature,
        top_p=asked.top_p,
        seed=asked.seed,
        reasoning_effort=asked.effort,
    )
    if asked.stop:
        body["stop"] = list[Json](asked.stop)
    if asked.wants_logprobs:
        body["logprobs"] = True
    if asked.wants_token_ids:
        body["return_token_ids"] = True
    if asked.is_streamed:
        body["stream"] = True
        if asked.wants_usage:
            body["stream_options"] = {"include_usage": True}
    return body


def _messages(turn: Turn) -> list[Json]:
    if turn.speaker == "tool":
        return [
            {
                "role": "tool",
                "tool_call_id": result.id,
                "content": _content_body(result.content) or "",
            }
            for result in turn.results
        ]
    message: dict[str, Json] = {"role": turn.speaker, "content": _content_body(turn.parts)}
    if turn.speaker != "assistant":
        message["content"] = message["content"] or ""
        return [message]
    if calls := turn.calls:
        message["tool_calls"] = [call_body(call) for call in calls]
    elif message["content"] is None:
        message["content"] = ""
    thoughts = (part for part in turn.parts if isinstance(part, Thought))
    # Only servers that know the field sent it; the others refuse it.
    said = [part.text for part in thoughts if part.text and part.protocol in ("", NAME)]
    if said:
        message["reasoning_content"] = "\n".join(said)
    return [message]


def _content_body(parts: Sequence[Part]) -> Json:
    """Texts and images: one text as it is, none as None."""
    found: list[Json] = []
    texts: list[str] = []
    for part in parts:
        if isinstance(part, Text):
            texts.append(part.text)
            found.append({"type": "text", "text": part.text})
        elif isinstance(part, Image):
            found.append({"type": "image_url", "image_url": {"url": part.url}})
        elif isinstance(part, Unknown) and part.protocol == NAME:
            found.append(dict(part.data))
    return texts[0] if len(found) == len(texts) == 1 else found or None


def _tool_body(tool: Tool) -> dict[str, Json]:
    """A tool's declaration; empty for one that only another protocol has."""
    if tool.own is not None:
        is_ours = tool.own.get("protocol") == NAME
        return {key: tool.own[key] for key in tool.own if key != "protocol"} if is_ours else {}
    inner: dict[str, Json] = {"name": tool.name}
    if tool.description:
        inner["description"] = tool.description
    if tool.kind == "function":
        inner["parameters"] = dict(tool.schema)
        return {"type": "function", "function": inner}
    form: dict[str, Json] = dict(tool.schema)
    if form:
        if form.get("type") == "grammar":
            grammar: Json = {key: form[key] for key in form if key != "type"}
            form = {"type": "grammar", "grammar": grammar}
        inner["format"] = form
    return {"type": "custom", "custom": inner}


def _choice_body(asked: Conversation) -> Json:
    if asked.choice in ("auto", "none", "required"):
        return asked.choice
    tool = next((tool for tool in asked.tools if tool.name == asked.choice), None)
    kind = "function" if tool is None else tool.kind
    return {"type": kind, kind: {"name": asked.choice}}


def write_error_event(error: ProtocolError) -> bytes:
    """An error as the last event of a stream that had begun."""
    return event(write_error(error))
