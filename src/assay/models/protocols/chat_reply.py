"""OpenAI's chat completions: whole replies, and what they share with the messages of requests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal

from assay.models.conversation import (
    Call,
    Conversation,
    Part,
    Reply,
    Stop,
    Text,
    Thought,
    Tokens,
    Turn,
)
from assay.models.messages import Finish, Usage
from assay.models.protocols.codec import Protocol
from assay.models.protocols.tokens import logprobs_body, logprobs_of
from assay.models.protocols.translating import call_as_asked
from assay.models.wire import count, items, mapping, name, text, written
from assay.scoring.json_safe import Json

NAME: Protocol = "chat"

_REASONS: Mapping[Stop, str] = {
    "stop": "stop",
    "length": "length",
    "tool": "tool_calls",
    "refusal": "content_filter",
}
# Whatever else has a text is none of the reply: a thought, above all.
_TEXT_PARTS = ("", "text", "output_text")
_CREATED = 1_700_000_000  # a codec has no clock


def thoughts_of(message: Mapping[str, Json]) -> tuple[Thought, ...]:
    """What a message of the model shows of its thoughts."""
    thought = text(message.get("reasoning_content")) or text(message.get("reasoning"))
    return (Thought(thought, protocol=NAME),) if thought else ()


def call_body(call: Call) -> Json:
    """A call, as messages have it."""
    if call.kind == "custom":
        inner: Json = {"name": call.name, "input": call.arguments}
        return {"id": call.id, "type": "custom", "custom": inner}
    inner = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": inner}


def read_reply(body: Json, nameless: str = "") -> Reply | None:
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
    calls = _reply_calls(message, nameless)
    parts: list[Part] = [*thoughts_of(message), *_reply_texts(message), *calls]
    stop: Stop = "refusal" if refusal else finish_of(reason_of(choice))
    return Reply(
        turn=Turn("assistant", tuple(parts)),
        stop="tool" if calls and stop == "stop" else stop,
        model=name(reply.get("model")),
        usage=usage_of(mapping(reply.get("usage"))),
        id=name(reply.get("id")),
        refusal=refusal,
        tokens=_tokens(reply, choice),
        stopped=name(choice.get("finish_reason")),
    )


def _reply_texts(message: Mapping[str, Json]) -> list[Text]:
    content = message.get("content")
    if isinstance(content, list):
        return [
            Text(text(part.get("text")))
            for part in map(mapping, content)
            if text(part.get("text")) and text(part.get("type")) in _TEXT_PARTS
        ]
    citations = tuple(items(message.get("annotations")))
    return [Text(text(content), citations)] if text(content) else []


def _reply_calls(message: Mapping[str, Json], nameless: str) -> list[Call]:
    found: list[Call] = []
    for call in map(mapping, items(message.get("tool_calls"))):
        kind: Literal["function", "custom"] = (
            "custom" if call.get("type") == "custom" else "function"
        )
        inner = mapping(call.get(kind))
        said = text(inner.get("input")) if kind == "custom" else written(inner.get("arguments"))
        if called := text(inner.get("name")) or (nameless if inner else ""):
            found.append(Call(text(call.get("id")), called, said, kind))
    legacy = mapping(message.get("function_call"))
    if called := text(legacy.get("name")) or (nameless if legacy else ""):
        found.append(Call(called, called, written(legacy.get("arguments"))))
    return found


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


def write_reply(reply: Reply, asked: Conversation) -> dict[str, Json]:
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
        message["tool_calls"] = [call_body(call) for call in calls]
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


def _logprobs_body(reply: Reply) -> Json:
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


def reason_of(choice: Mapping[str, Json]) -> str:
    """Why a reply ended, in one word; some servers add others behind a colon."""
    return text(choice.get("finish_reason")).partition(":")[0].strip().lower()


def finish_of(reason: str) -> Finish:
    """What the word means."""
    return _FINISH.get(reason, "stop")


def usage_of(usage: Mapping[str, Json]) -> Usage:
    """The tokens of a reply."""
    read_details = usage.get("prompt_tokens_details")
    written_details = usage.get("completion_tokens_details")
    return Usage(
        input_tokens=count(usage.get("prompt_tokens")),
        cached_tokens=count(mapping(read_details).get("cached_tokens")),
        output_tokens=count(usage.get("completion_tokens")),
        reasoning_tokens=count(mapping(written_details).get("reasoning_tokens")),
    )
