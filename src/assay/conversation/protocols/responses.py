"""OpenAI's responses: requests, whole replies and errors."""

from __future__ import annotations

from collections.abc import Mapping

from assay.conversation.protocols.chat import write_error
from assay.conversation.protocols.codec import Codec, Protocol
from assay.conversation.protocols.responses_stream import ResponsesStream, write_stream
from assay.conversation.protocols.shapes import ProtocolError, checked, object_of
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
from assay.conversation.wire import items, mapping, name, text, written
from assay.scoring.json_safe import Json

_NAME: Protocol = "responses"
_CREATED = 1_700_000_000  # a codec has no clock
_ANNOTATIONS = ("url_citation", "file_citation", "container_file_citation", "file_path")
_SPEAKERS: Mapping[str, Speaker] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}
_UNSUPPORTED = {
    "conversation": "send what was said as `input`",
    "prompt": "send its text as `instructions`",
    "background": "wait for the reply",
}
_LOGPROBS = "message.output_text.logprobs"
_SEALED = "reasoning.encrypted_content"


def read_request(body: Json) -> Conversation:
    """Read a request.

    Raises:
        ProtocolError: If it is none, or refers to what only the provider's server holds; but for
            the reply that it follows, which is told.
    """
    for field, remedy in _UNSUPPORTED.items():
        if object_of(body).get(field) not in (None, False):
            message = f"'{field}' is not supported here: {remedy}."
            raise ProtocolError(400, message, parameter=field, code="unsupported_parameter")
    given = checked(_NAME, body)
    # What the model says at a time is one turn, of however many items it consists.
    turns = TurnBuilder("assistant")
    if instructions := text(given.get("instructions")):
        turns.add("system", [Text(instructions)])
    if isinstance(said := given["input"], str):
        turns.add("user", _content(said))
    for at, item in enumerate(map(mapping, items(said))):
        _add_item(turns, item, f"input[{at}]")
    form = mapping(mapping(given.get("text")).get("format"))
    is_schema = form.get("type") == "json_schema"
    return Conversation(
        model=text(given["model"]),
        turns=turns.made(),
        tools=tuple(map(_tool, map(mapping, items(given.get("tools"))))),
        choice=_choice(given.get("tool_choice")),
        max_tokens=whole(given.get("max_output_tokens")),
        temperature=number(given.get("temperature")),
        top_p=number(given.get("top_p")),
        effort=word(mapping(given.get("reasoning")).get("effort")),
        schema=mapping(form.get("schema")) or None if is_schema else None,
        is_parallel=flag(given.get("parallel_tool_calls")),
        wants_logprobs=_LOGPROBS in items(given.get("include")) or bool(given.get("top_logprobs")),
        is_streamed=flag(given.get("stream")) or False,
        follows=text(given.get("previous_response_id")),
    )


def _add_item(turns: TurnBuilder, item: dict[str, Json], where: str) -> None:
    kind = text(item.get("type")) or "message"
    match kind:
        case "message":
            turns.add(_SPEAKERS[text(item["role"])], _content(item["content"]))
        case "function_call_output" | "custom_tool_call_output":
            content = _content(item["output"])
            kept = tuple(part for part in content if isinstance(part, Text | Image | Unknown))
            of = "custom" if kind == "custom_tool_call_output" else "function"
            turns.add("tool", [Result(text(item["call_id"]), kept, kind=of)])
        case "item_reference":
            raise ProtocolError(
                400,
                f"'{where}' refers to an item that is not held here: send the item itself, "
                "and ask with store=false, so that clients keep what was said.",
                parameter=where,
                code="unsupported_value",
            )
        case _:
            # A call of a tool that only this protocol has may be answered by an item as unknown.
            is_result = kind.endswith(("_output", "_response"))
            turns.add("tool" if is_result else "assistant", [_item(item)])


def _content(value: Json) -> tuple[Part, ...]:
    if isinstance(value, str):
        return (Text(text(value)),) if value else ()
    return tuple(map(_part, map(mapping, items(value))))


def _part(part: dict[str, Json]) -> Part:
    match part.get("type"):
        case "input_text" | "output_text" | "text":
            return Text(text(part.get("text")), tuple(items(part.get("annotations"))))
        case "refusal":
            return Text(text(part.get("refusal")))
        case "input_image" if part.get("image_url") is not None:
            return Image(text(part.get("image_url")))
        case _:
            return Unknown(_NAME, part)


def _item(item: dict[str, Json]) -> Part:
    """What the model did beside its messages, in the past or in a reply."""
    called = text(item.get("call_id")), text(item.get("name"))
    match item.get("type"):
        case "reasoning":
            parts = [*items(item.get("summary")), *items(item.get("content"))]
            said = [text(mapping(part).get("text")) for part in parts]
            sealed = text(item.get("encrypted_content"))
            return Thought("\n".join(filter(None, said)), sealed, text(item.get("id")), _NAME)
        case "function_call":
            return Call(*called, written(item.get("arguments")))
        case "custom_tool_call":
            return Call(*called, text(item.get("input")), "custom")
        case _:
            return Unknown(_NAME, item)


def _tool(tool: dict[str, Json]) -> Tool:
    kind = text(tool["type"])
    if kind not in ("function", "custom"):
        return own_tool(tool, kind, _NAME)
    return Tool(
        name=text(tool["name"]),
        description=text(tool.get("description")),
        schema=mapping(tool.get("parameters" if kind == "function" else "format")),
        kind="function" if kind == "function" else "custom",
    )


def _choice(choice: Json) -> str:
    if not isinstance(choice, dict):
        return text(choice) or "auto"
    kind = text(choice["type"])
    if kind == "allowed_tools":
        return text(choice.get("mode")) or "auto"
    return text(choice["name"]) if kind in ("function", "custom") else kind


def write_request(conversation: Conversation) -> dict[str, Json]:
    """Write a request; what the protocol cannot say is left out."""
    asked = conversation
    body: dict[str, Json] = {
        "model": asked.model,
        "input": [item for turn in asked.turns for item in _items(turn)],
    }
    include: list[Json] = [_LOGPROBS] if asked.wants_logprobs else []
    if asked.follows:
        body["previous_response_id"] = asked.follows
    else:  # who says all that was said keeps it, thoughts included
        body["store"] = False
        include.append(_SEALED)
    if include:
        body["include"] = include
    if kept := [declared for tool in asked.tools if (declared := _tool_body(tool))]:
        body["tools"] = list[Json](kept)
        if asked.choice != "auto":
            body["tool_choice"] = _choice_body(asked)
        if asked.is_parallel is not None:
            body["parallel_tool_calls"] = asked.is_parallel
    if asked.schema is not None:
        body["text"] = {
            "format": {
                "type": "json_schema",
                "name": "reply",
                "schema": dict(asked.schema),
                "strict": True,
            }
        }
    if asked.effort is not None:
        body["reasoning"] = {"effort": asked.effort}
    body |= given_only(
        max_output_tokens=asked.max_tokens, temperature=asked.temperature, top_p=asked.top_p
    )
    if asked.is_streamed:
        body["stream"] = True
    return body


def _items(turn: Turn) -> list[Json]:
    """A turn as items; neighbouring texts and images are one message."""
    found: list[Json] = []
    content: list[Json] = []

    def end_message() -> None:
        if content:
            found.append({"type": "message", "role": turn.speaker, "content": [*content]})
            content.clear()

    for part in turn.parts:
        if isinstance(part, Text | Image):
            content.append(_part_body(part, turn.speaker))
            continue
        if isinstance(part, Unknown) and turn.speaker in ("user", "system"):
            content += [dict(part.data)] if part.protocol == _NAME else []
            continue
        end_message()
        if isinstance(part, Call):
            found.append(_call_item(part))
        elif isinstance(part, Result):
            found.append(_result_item(part))
        elif isinstance(part, Unknown):
            found += [dict(part.data)] if part.protocol == _NAME else []
        elif part.protocol in ("", _NAME) and (part.sealed or part.id):
            found.append(_thought_item(part))
    end_message()
    if not found and turn.speaker in ("user", "system"):
        found.append({"type": "message", "role": turn.speaker, "content": ""})
    return found


def _part_body(part: Text | Image, speaker: Speaker) -> dict[str, Json]:
    if isinstance(part, Image):
        return {"type": "input_image", "image_url": part.url, "detail": "auto"}
    return _text_part(part) if speaker == "assistant" else {"type": "input_text", "text": part.text}


def _result_item(result: Result) -> dict[str, Json]:
    content = result.content
    is_text = len(content) == 1 and isinstance(content[0], Text)
    parts: list[Json] = [
        _part_body(part, "tool") for part in content if isinstance(part, Text | Image)
    ]
    parts += [
        dict(part.data) for part in content if isinstance(part, Unknown) and part.protocol == _NAME
    ]
    return {
        "type": "custom_tool_call_output" if result.kind == "custom" else "function_call_output",
        "call_id": result.id,
        "output": result.text if is_text or not parts else parts,
    }


def _choice_body(asked: Conversation) -> Json:
    if asked.choice in ("auto", "none", "required"):
        return asked.choice
    tool = next((tool for tool in asked.tools if tool.name == asked.choice), None)
    if tool is not None and tool.own is not None:
        return {"type": tool.own.get("type")}
    return {"type": "function" if tool is None else tool.kind, "name": asked.choice}


def _thought_item(thought: Thought) -> dict[str, Json]:
    """A thought, as its item."""
    summary: list[Json] = [{"type": "summary_text", "text": thought.text}] if thought.text else []
    item: dict[str, Json] = {"type": "reasoning", "id": thought.id, "summary": summary}
    return {**item, "encrypted_content": thought.sealed} if thought.sealed else item


def _call_item(call: Call) -> dict[str, Json]:
    """A call, as its item."""
    is_custom = call.kind == "custom"
    return {
        "type": "custom_tool_call" if is_custom else "function_call",
        "call_id": call.id,
        "name": call.name,
        "input" if is_custom else "arguments": call.arguments,
    }


def _text_part(part: Text) -> dict[str, Json]:
    """A text of the model."""
    ours: list[Json] = [
        one
        for one in part.citations
        if text(mapping(one).get("type")) in _ANNOTATIONS and "url_citation" not in mapping(one)
    ]
    return {"type": "output_text", "text": part.text, "annotations": ours}


def _tool_body(tool: Tool) -> dict[str, Json]:
    """A tool's declaration; empty for one that only another protocol has."""
    if (own := own_body(tool, _NAME)) is not None:
        return own
    body: dict[str, Json] = {"type": tool.kind, "name": tool.name}
    if tool.description:
        body["description"] = tool.description
    if tool.kind == "function":
        return {**body, "parameters": dict(tool.schema), "strict": False}
    return {**body, "format": dict(tool.schema)} if tool.schema else body


def read_reply(body: Json) -> AssistantTurn | None:
    """Read a whole reply; None if it is none, also where it failed."""
    response = mapping(body)
    output = response.get("output")
    status = text(response.get("status"))
    if not isinstance(output, list) or status in ("failed", "cancelled", "queued"):
        return None
    parts: list[Part] = []
    refusals: list[str] = []
    logprobs: list[Json] = []
    for item in map(mapping, output):
        if item.get("type") == "message":
            for part in map(mapping, items(item.get("content"))):
                logprobs += items(part.get("logprobs"))
                if part.get("type") == "refusal":
                    refusals.append(text(part.get("refusal")))
                elif said := text(part.get("text")):
                    parts.append(Text(said, tuple(items(part.get("annotations")))))
        elif item:
            parts.append(_item(item))
    turn = Turn("assistant", tuple(parts))
    reason = text(mapping(response.get("incomplete_details")).get("reason"))
    found = logprobs_of([mapping(one) for one in logprobs])
    return AssistantTurn(
        turn=turn,
        stop=_stop(turn, status, reason, is_refused=bool(refusals)),
        model=name(response.get("model")),
        usage=usage_of(response.get("usage"), "input", "output"),
        id=name(response.get("id")),
        refusal="\n".join(refusals),
        tokens=Tokens(logprobs=found) if found else None,
        stopped=name(reason or status),
    )


def _stop(turn: Turn, status: str, reason: str, *, is_refused: bool) -> Stop:
    if is_refused or reason == "content_filter":
        return "refusal"
    if status == "incomplete":
        return "length"
    own = (part for part in turn.parts if isinstance(part, Unknown))
    # Those of the provider's own tools that the asker runs are calls as well.
    is_called = any(text(part.data.get("type")) in RUN_BY_THE_ASKER for part in own)
    return "tool" if turn.calls or is_called else "stop"


RUN_BY_THE_ASKER = ("local_shell_call", "shell_call", "apply_patch_call", "computer_call")


def write_reply(reply: AssistantTurn, asked: Conversation) -> dict[str, Json]:
    """Write a whole reply to a request."""
    status = "incomplete" if reply.stop == "length" else "completed"
    output = _output(reply, asked, status)
    reason: Json = {"reason": "max_output_tokens"} if status == "incomplete" else None
    usage = reply.usage
    read, wrote = usage.input_tokens or 0, usage.output_tokens or 0
    form: Json = {"type": "text"}
    if asked.schema is not None:
        form = {"type": "json_schema", "name": "reply", "schema": dict(asked.schema)}
    return {
        "id": reply.id,
        "object": "response",
        "created_at": _CREATED,
        "status": status,
        "error": None,
        "incomplete_details": reason,
        "instructions": asked.system or None,
        "max_output_tokens": asked.max_tokens,
        "metadata": {},
        "model": reply.model or asked.model,
        "output": output,
        "parallel_tool_calls": asked.is_parallel is not False,
        "previous_response_id": asked.follows or None,
        "reasoning": {"effort": asked.effort, "summary": None},
        "temperature": asked.temperature,
        "text": {"format": form},
        "tool_choice": _chosen(asked),
        "tools": [declared for tool in asked.tools if (declared := _tool_body(tool))],
        "top_p": asked.top_p,
        "truncation": "disabled",
        "usage": {
            "input_tokens": read,
            "input_tokens_details": {
                "cached_tokens": usage.cached_tokens or 0,
                "cache_write_tokens": 0,
            },
            "output_tokens": wrote,
            "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
            "total_tokens": read + wrote,
        },
    }


def _chosen(asked: Conversation) -> Json:
    if asked.choice in ("auto", "none", "required"):
        return asked.choice
    return {"type": "function", "name": asked.choice}


def _output(reply: AssistantTurn, asked: Conversation, status: str) -> list[Json]:
    output: list[Json] = []
    logprobs = reply.tokens.logprobs if reply.tokens is not None and asked.wants_logprobs else ()
    for at, part in enumerate(reply.turn.parts):
        named: dict[str, Json] = {"id": f"{_IDS.get(type(part), 'item')}_{reply.id}_{at}"}
        if isinstance(part, Text):
            body = {**_text_part(part), "logprobs": logprobs_body(part.text, logprobs)}
            logprobs = ()  # of the first text alone: nobody knows where the next one begins
            output.append(_message(named, body, status))
        elif isinstance(part, Call):
            call = _call_item(call_as_asked(part, asked))
            output.append({**named, **call, "status": status})
        elif isinstance(part, Thought):
            item = _thought_item(part)
            output.append(item if part.id else {**item, **named})
        elif isinstance(part, Unknown) and part.protocol == _NAME:
            output.append({**named, **part.data})
    if reply.refusal:
        refused: dict[str, Json] = {"type": "refusal", "refusal": reply.refusal}
        output.append(_message({"id": f"msg_{reply.id}_refusal"}, refused, status))
    return output


_IDS: Mapping[type[object], str] = {Text: "msg", Call: "fc", Thought: "rs"}


def _message(named: dict[str, Json], part: Mapping[str, Json], status: str) -> dict[str, Json]:
    return {
        **named,
        "type": "message",
        "role": "assistant",
        "status": status,
        "content": [dict(part)],
    }


def _error_event(error: ProtocolError) -> dict[str, Json]:
    """An error as the last event of a stream that had begun."""
    return {
        "type": "error",
        "code": error.code or None,
        "message": error.message,
        "param": error.parameter or None,
        "sequence_number": 0,
    }


CODEC = Codec(
    NAME=_NAME,
    PATH="/responses",
    read_request=read_request,
    write_request=write_request,
    read_reply=read_reply,
    write_reply=write_reply,
    events_of=write_stream,
    stream=ResponsesStream,
    write_error=write_error,
    error_event=_error_event,
    error_name="error",
)
