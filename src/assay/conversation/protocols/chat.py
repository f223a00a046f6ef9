"""OpenAI's chat completions: requests, whole replies and errors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from assay.conversation.messages import Finish
from assay.conversation.protocols.chat_stream import ChatStream, write_stream
from assay.conversation.protocols.codec import Codec, Protocol
from assay.conversation.protocols.shapes import ProtocolError, checked, missing
from assay.conversation.protocols.translating import (
    TurnBuilder,
    call_as_asked,
    flag,
    given_only,
    logprobs_body,
    logprobs_of,
    number,
    own_body,
    own_tool,
    texts,
    usage_of,
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
    Speaker,
    Stop,
    Text,
    Thought,
    Tokens,
    Tool,
    Turn,
    Unknown,
)
from assay.conversation.wire import count, items, mapping, name, text, written
from assay.scoring.json_safe import Json

_NAME: Protocol = "chat"
_SPEAKERS: Mapping[str, Speaker] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
_REASONS: Mapping[Stop, str] = {
    "stop": "stop",
    "length": "length",
    "tool": "tool_calls",
    "refusal": "content_filter",
}
_TEXTS: Mapping[str, str] = {"": "text", "text": "text", "output_text": "text"}
"""Parts of a reply that have a text. Whatever else has one is none of it: a thought, above all."""
_UNSUPPORTED = {"functions": "tools", "function_call": "tool_choice"}
_CREATED = 1_700_000_000  # a codec has no clock
_TYPES = {
    400: "invalid_request_error",
    401: "invalid_request_error",
    402: "insufficient_quota",
    404: "invalid_request_error",
    413: "invalid_request_error",
    429: "requests",
    529: "overloaded_error",
}


def read_request(body: Json) -> Conversation:
    """Read a request.

    Raises:
        ProtocolError: If it is none.
    """
    given = checked(_NAME, body)
    for field, instead in _UNSUPPORTED.items():
        if given.get(field) is not None:
            message = f"'{field}' is not supported here: send `{instead}`."
            raise ProtocolError(400, message, parameter=field, code="unsupported_parameter")
    if (whole(given.get("n")) or 1) > 1:
        # A conversation goes on from one reply: what stood in others would be nowhere.
        message = "Invalid 'n': replies are given one at a time here."
        raise ProtocolError(400, message, parameter="n", code="unsupported_value")
    most, older = given.get("max_completion_tokens"), given.get("max_tokens")
    if most is not None and older is not None:
        # Servers differ in which one they keep to.
        message = (
            "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
        )
        raise ProtocolError(400, message, parameter="max_tokens", code="invalid_parameter")
    is_streamed = flag(given.get("stream")) or False
    options = mapping(given.get("stream_options"))
    form = mapping(given.get("response_format"))
    is_schema = form.get("type") == "json_schema"
    schema = mapping(mapping(form.get("json_schema")).get("schema"))
    return Conversation(
        model=text(given["model"]),
        turns=_turns(items(given["messages"])),
        tools=tuple(map(_tool, map(mapping, items(given.get("tools"))))),
        choice=_choice(given.get("tool_choice")),
        max_tokens=whole(older if most is None else most),
        temperature=number(given.get("temperature")),
        top_p=number(given.get("top_p")),
        seed=whole(given.get("seed")),
        effort=word(given.get("reasoning_effort")),
        stop=texts(given.get("stop")),
        schema=schema or None if is_schema else None,
        is_parallel=flag(given.get("parallel_tool_calls")),
        wants_logprobs=flag(given.get("logprobs")) or False,
        wants_token_ids=given.get("return_token_ids") is True,
        wants_usage=not is_streamed or options.get("include_usage") is True,
        is_streamed=is_streamed,
    )


def _turns(messages: Sequence[Json]) -> tuple[Turn, ...]:
    turns = TurnBuilder()
    for message in map(mapping, messages):
        speaker = _SPEAKERS[text(message["role"])]
        if speaker == "tool":
            content = _content(message.get("content"), _TEXTS)
            kept = tuple(part for part in content if isinstance(part, Text | Image | Unknown))
            turns.add("tool", [Result(text(message["tool_call_id"]), kept)])
        else:
            turns.add(speaker, _said(message))
    return turns.made()


def _said(message: Mapping[str, Json]) -> list[Part]:
    """What a message of the past says; with the model's refusals, which are text there."""
    refusal = text(message.get("refusal"))
    return [
        *_thoughts(message),
        *_content(message.get("content"), {**_TEXTS, "refusal": "refusal"}),
        *([Text(refusal)] if refusal else []),
        *_calls(message),
    ]


def _thoughts(message: Mapping[str, Json]) -> list[Thought]:
    thought = text(message.get("reasoning_content")) or text(message.get("reasoning"))
    return [Thought(thought, protocol=_NAME)] if thought else []


def _content(value: Json, known: Mapping[str, str]) -> list[Part]:
    """Content of a message: a text, or parts, of which some have a text."""
    if isinstance(value, str):
        return [Text(text(value))] if value else []
    return [_part(part, known) for part in map(mapping, items(value))]


def _part(part: dict[str, Json], known: Mapping[str, str]) -> Part:
    kind = text(part.get("type"))
    if kind in known and isinstance(said := part.get(known[kind]), str):
        return Text(text(said))
    if kind == "image_url":
        image = part.get("image_url")  # a text, as some clients write it
        return Image(text(image) or text(mapping(image).get("url")))
    return Unknown(_NAME, part)


def _calls(message: Mapping[str, Json], nameless: str = "") -> list[Call]:
    found: list[Call] = []
    for call in map(mapping, items(message.get("tool_calls"))):
        is_custom = call.get("type") == "custom"
        inner = mapping(call.get("custom" if is_custom else "function"))
        said = text(inner.get("input")) if is_custom else written(inner.get("arguments"))
        if called := text(inner.get("name")) or (nameless if inner else ""):
            kind = "custom" if is_custom else "function"
            found.append(Call(text(call.get("id")), called, said, kind))
    older = mapping(message.get("function_call"))  # which could contradict the others
    if called := text(older.get("name")) or (nameless if older else ""):
        found.append(Call(called, called, written(older.get("arguments"))))
    return found


def _tool(tool: dict[str, Json]) -> Tool:
    kind = text(tool["type"])
    if kind not in ("function", "custom"):
        return own_tool(tool, kind, _NAME)
    inner = mapping(tool[kind])
    schema = mapping(inner.get("parameters" if kind == "function" else "format"))
    if kind == "custom" and schema.get("type") == "grammar":
        schema = {"type": "grammar", **mapping(schema.get("grammar"))}
    return Tool(
        name=text(inner["name"]),
        description=text(inner.get("description")),
        schema=schema,
        kind="function" if kind == "function" else "custom",
    )


def _choice(choice: Json) -> str:
    if not isinstance(choice, dict):
        return text(choice) or "auto"
    kind = text(choice.get("type", "function"))
    if kind == "allowed_tools":
        return text(mapping(choice.get(kind)).get("mode")) or "auto"
    named = choice.get(kind) if kind in ("function", "custom") else None
    if called := text(mapping(choice if named is None else named).get("name")):
        return called
    raise missing("tool_choice.function.name")


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
        message["tool_calls"] = [_call_body(call) for call in calls]
    elif message["content"] is None:
        message["content"] = ""
    thoughts = (part for part in turn.parts if isinstance(part, Thought))
    # Only servers that know the field sent it; the others refuse it.
    said = [part.text for part in thoughts if part.text and part.protocol in ("", _NAME)]
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
        elif isinstance(part, Unknown) and part.protocol == _NAME:
            found.append(dict(part.data))
    return texts[0] if len(found) == len(texts) == 1 else found or None


def _tool_body(tool: Tool) -> dict[str, Json]:
    """A tool's declaration; empty for one that only another protocol has."""
    if (own := own_body(tool, _NAME)) is not None:
        return own
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


def _call_body(call: Call) -> Json:
    """A call, as messages have it."""
    if call.kind == "custom":
        inner: Json = {"name": call.name, "input": call.arguments}
        return {"id": call.id, "type": "custom", "custom": inner}
    inner = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": inner}


def read_reply(body: Json, nameless: str = "") -> AssistantTurn | None:
    """Read a whole reply; None if it is none. Of several in one, the first counts.

    Args:
        body: The reply.
        nameless: What is called where a call has no name; such calls are left out by default.
    """
    reply = mapping(body)
    choices = items(reply.get("choices"))
    choice = mapping(choices[0]) if choices else {}
    message = mapping(choice.get("message"))
    if not message:
        return None
    refusal = text(message.get("refusal"))
    calls = _calls(message, nameless)
    parts: list[Part] = [*_thoughts(message), *_reply_texts(message), *calls]
    said = text(choice.get("finish_reason"))
    stop: Stop = "refusal" if refusal else _FINISH.get(reason_of(said), "stop")
    return AssistantTurn(
        turn=Turn("assistant", tuple(parts)),
        stop="tool" if calls and stop == "stop" else stop,
        model=name(reply.get("model")),
        usage=usage_of(reply.get("usage"), "prompt", "completion"),
        id=name(reply.get("id")),
        refusal=refusal,
        tokens=_tokens(reply, choice),
        stopped=name(choice.get("finish_reason")),
    )


def _reply_texts(message: Mapping[str, Json]) -> list[Text]:
    content = message.get("content")
    found = [part for part in _content(content, _TEXTS) if isinstance(part, Text) and part.text]
    citations = tuple(items(message.get("annotations")))
    return [Text(found[0].text, citations)] if isinstance(content, str) and found else found


def _tokens(reply: Mapping[str, Json], choice: Mapping[str, Json]) -> Tokens | None:
    prompt = reply.get("prompt_token_ids") or choice.get("prompt_token_ids")
    if not (prompt or choice.get("logprobs") or choice.get("token_ids")):
        return None
    each = [mapping(one) for one in items(mapping(choice.get("logprobs")).get("content"))]
    found = Tokens(
        prompt_ids=_ids(prompt),
        output_ids=_ids(choice.get("token_ids")),
        logprobs=logprobs_of(each),
    )
    return found if found != Tokens() else None


def _ids(value: Json) -> tuple[int, ...]:
    """Ids of tokens; none where one of them cannot be."""
    found = [count(one) for one in items(value)]
    return () if None in found else tuple(one for one in found if one is not None)


def write_reply(reply: AssistantTurn, asked: Conversation) -> dict[str, Json]:
    """Write a whole reply to a request."""
    calls = [call_as_asked(call, asked) for call in reply.turn.calls]
    message: dict[str, Json] = {
        "role": "assistant",
        "content": None if reply.refusal else reply.turn.text or (None if calls else ""),
        "refusal": reply.refusal or None,
    }
    if thought := reply.turn.thought:
        message["reasoning_content"] = thought
    if calls:
        message["tool_calls"] = [_call_body(call) for call in calls]
    texts = (part for part in reply.turn.parts if isinstance(part, Text))
    citations = [one for part in texts for one in part.citations]
    # Only this protocol's own form has its data one level deeper.
    if kept := [one for one in citations if isinstance(mapping(one).get("url_citation"), dict)]:
        message["annotations"] = kept
    choice: dict[str, Json] = {
        "index": 0,
        "message": message,
        "logprobs": _logprobs_body(reply) if asked.wants_logprobs else None,
        "finish_reason": _REASONS[reply.stop],
    }
    body: dict[str, Json] = {
        "id": reply.id,
        "object": "chat.completion",
        "created": _CREATED,
        "model": reply.model or asked.model,
        "choices": [choice],
    }
    if reply.tokens is not None and asked.wants_token_ids:
        choice["token_ids"] = list[Json](reply.tokens.output_ids)
        body["prompt_token_ids"] = list[Json](reply.tokens.prompt_ids)
    usage = reply.usage
    if usage.input_tokens is not None or usage.output_tokens is not None:
        read, wrote = usage.input_tokens or 0, usage.output_tokens or 0
        body["usage"] = {
            "prompt_tokens": read,
            "completion_tokens": wrote,
            "total_tokens": read + wrote,
            "prompt_tokens_details": {"cached_tokens": usage.cached_tokens or 0},
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
        }
    return body


def _logprobs_body(reply: AssistantTurn) -> Json:
    if reply.tokens is None:
        return None
    said = reply.turn.text or json.dumps([call.arguments for call in reply.turn.calls])
    return {"content": logprobs_body(said, reply.tokens.logprobs), "refusal": None}


# By what servers of this protocol say; what is not here is an end, for which each has a word.
_FINISH: Mapping[str, Finish] = {
    "length": "length",
    "max_new_tokens": "length",
    "max_completion_tokens": "length",
    "model_context_window_exceeded": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "content_filter": "refusal",
    "refusal": "refusal",
    "safety": "refusal",
    "recitation": "refusal",
    "prohibited_content": "refusal",
    "sensitive": "refusal",
    "tool_calls": "tool",
    "function_call": "tool",
    "tool_call": "tool",
    "tool_use": "tool",
}


def reason_of(stopped: str) -> str:
    """Why a reply ended, in one word; some servers add others behind a colon."""
    return stopped.partition(":")[0].strip().lower()


def write_error(error: ProtocolError) -> dict[str, Json]:
    """The body of an error."""
    kind = _TYPES.get(error.status, "server_error")
    details: dict[str, Json] = {
        "message": error.message,
        "type": "insufficient_quota" if error.code == "insufficient_quota" else kind,
        "param": error.parameter or None,
        "code": error.code or None,
    }
    return {"error": details}


CODEC = Codec(
    NAME=_NAME,
    PATH="/chat/completions",
    read_request=read_request,
    write_request=write_request,
    read_reply=read_reply,
    write_reply=write_reply,
    events_of=write_stream,
    stream=ChatStream,
    write_error=write_error,
)
