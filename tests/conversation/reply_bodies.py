"""Bodies of replies by chance, as the servers of each protocol write them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from assay.conversation.protocols import Protocol
from assay.scoring.json_safe import Json
from tests.protocol_bodies import Strategy, json_objects, json_values, leaves, objects, texts, words

__all__ = ["BODIES"]

_COUNT = st.integers(0, 99)


def _inner(number: int, kind: str, inner: dict[str, Json]) -> dict[str, Json]:
    return {"id": f"call_{number}", "type": kind, kind: inner}


def _numbered(choices: list[dict[str, Json]], more: dict[str, Json]) -> dict[str, Json]:
    listed: list[Json] = [{"index": at, **choice} for at, choice in enumerate(choices)]
    return {"object": "chat.completion", "choices": listed, **more}


_FUNCTION = objects({"name": words, "arguments": texts})
_CUSTOM = objects({"name": words, "input": texts})
_CALL = st.builds(_inner, st.integers(0, 999), st.just("function"), _FUNCTION) | st.builds(
    _inner, st.integers(0, 999), st.just("custom"), _CUSTOM
)
_LOGPROBS = st.none() | objects(
    {},
    content=st.none() | st.lists(objects({"token": texts, "logprob": -1.5}), max_size=5),
    refusal=st.none(),
)
_MESSAGES = objects(
    {"role": "assistant", "content": st.none() | texts},
    refusal=st.none() | texts,
    reasoning_content=texts,
    reasoning=st.none() | texts,
    tool_calls=st.lists(_CALL, max_size=3, unique_by=lambda call: str(call["id"])),
    function_call=st.none() | _FUNCTION,
    annotations=st.lists(json_objects, max_size=2),
    other=json_values,
)
_CHOICES = objects(
    {"message": _MESSAGES, "finish_reason": st.sampled_from(["stop", "length", "tool_calls"])},
    logprobs=_LOGPROBS,
    token_ids=st.none() | st.lists(_COUNT, max_size=9),
    stop_reason=leaves,
)
_CHAT = st.builds(
    _numbered,
    st.lists(_CHOICES, min_size=1, max_size=2),
    objects(
        {},
        id=texts,
        created=st.integers(0, 9),
        model=texts,
        usage=st.dictionaries(words, _COUNT, min_size=1),
        prompt_token_ids=st.lists(_COUNT, max_size=5),
        service_tier=st.none() | texts,
        other=json_objects,
    ),
)

_TEXT = objects(
    {"type": "output_text", "text": texts},
    annotations=st.lists(json_objects, max_size=2),
    logprobs=st.none() | st.lists(objects({"token": texts, "logprob": -0.5}), max_size=4),
)
_CONTENT = st.lists(_TEXT | objects({"type": "refusal", "refusal": texts}), max_size=2)
_THOUGHT = objects({"type": "reasoning_text", "text": texts})
_ITEMS = (
    objects({"type": "message", "id": words, "content": _CONTENT}, status=words)
    | objects(
        {"type": "reasoning", "id": words},
        summary=st.lists(objects({"type": "summary_text", "text": texts}), max_size=2),
        content=st.none() | st.lists(_THOUGHT, max_size=2),
        encrypted_content=texts,
    )
    | objects({"type": "function_call", "name": words, "arguments": texts}, id=words)
    | objects({"type": "custom_tool_call", "name": words, "input": texts}, id=words)
    | objects({"type": "web_search_call", "action": json_values})
)
_RESPONSES = objects(
    {
        "object": "response",
        "status": st.sampled_from(["completed", "incomplete"]),
        "output": st.lists(_ITEMS, max_size=4),
    },
    id=texts,
    usage=st.none() | json_objects,
    error=st.none(),
    incomplete_details=leaves,
    other=json_values,
)

_BLOCKS = (
    objects(
        {"type": "text", "text": texts},
        citations=st.none() | st.lists(objects({"type": "page_location"}), max_size=2),
        other=leaves,
    )
    | objects({"type": "thinking", "thinking": texts, "signature": texts})
    | objects({"type": "redacted_thinking", "data": texts})
    | objects({"type": "tool_use", "id": words, "name": words, "input": json_objects})
    | objects({"type": "server_tool_use", "id": words, "name": words, "input": json_objects})
    | objects({"type": "web_search_tool_result", "content": json_values})
)
_ANTHROPIC = objects(
    {
        "type": "message",
        "role": "assistant",
        "content": st.lists(_BLOCKS, max_size=4),
        "stop_reason": st.sampled_from(["end_turn", "tool_use", "max_tokens"]),
    },
    id=texts,
    model=texts,
    stop_sequence=st.none() | texts,
    container=st.none() | json_objects,
    usage=objects(
        {"output_tokens": _COUNT},
        input_tokens=_COUNT,
        cache_read_input_tokens=_COUNT,
        cache_creation=objects({"ephemeral_5m_input_tokens": 3}),
        output_tokens_details=objects({"thinking_tokens": _COUNT}),
        service_tier=texts,
    ),
    other=json_values,
)


def _apart(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Parts of which no two texts of a kind stand side by side: streamed they are one."""
    kept: list[dict[str, Any]] = []
    for part in parts:
        if not kept or part.keys() - {"text", "thought"} or part.keys() != kept[-1].keys():
            kept.append(part)
    return kept


_PARTS = (
    objects({"text": texts})
    | objects({"text": texts, "thought": True})
    | objects({"text": texts, "thoughtSignature": words}, thought=st.just(value=True))
    | objects(
        {"functionCall": objects({"name": words, "args": json_objects}, id=words)},
        thoughtSignature=words,
    )
    | objects({"inlineData": {"mimeType": "image/png", "data": "AA"}}, other=leaves)
    | objects({"executableCode": json_objects})
)
_CANDIDATES = objects(
    {
        "content": objects({"parts": st.lists(_PARTS, max_size=4).map(_apart)}, role=texts),
        "finishReason": st.sampled_from(["STOP", "MAX_TOKENS", "SAFETY", "OTHER"]),
    },
    safetyRatings=json_values,
    avgLogprobs=st.floats(-9, 0),
)
_GOOGLE = objects(
    {
        "candidates": st.lists(_CANDIDATES, min_size=1, max_size=2).map(
            lambda each: [{**one, "index": at} for at, one in enumerate(each)]
        )
    },
    modelVersion=texts,
    responseId=texts,
    usageMetadata=objects({"promptTokenCount": _COUNT}, thoughtsTokenCount=_COUNT),
    other=json_values,
) | objects({"promptFeedback": {"blockReason": "SAFETY"}}, usageMetadata=json_objects)

BODIES: dict[Protocol, Strategy] = {
    "chat": _CHAT, "responses": _RESPONSES, "anthropic": _ANTHROPIC, "google": _GOOGLE,
}  # fmt: skip
