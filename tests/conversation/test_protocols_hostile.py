"""Servers and agents that send anything: a codec refuses it, or makes nothing of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.conversation.protocols import Protocol, ProtocolError, codec_of
from assay.conversation.protocols.shapes import decode_body
from assay.scoring.json_safe import Json
from tests.each import each
from tests.protocol_bodies import json_values

_NAMES: list[Protocol] = ["chat", "responses", "anthropic", "google"]
_KINDS = (
    *("message_start", "content_block_start", "content_block_delta", "message_delta"),
    *("message_stop", "response.created", "response.output_item.added"),
    *("response.content_part.added", "response.reasoning_summary_part.added"),
    *("response.output_text.delta", "response.function_call_arguments.delta"),
    *("response.output_item.done", "response.completed", "error"),
)
_KEYS = st.sampled_from(
    (
        *("choices", "candidates", "parts", "functionCall", "functionResponse", "content"),
        *("thoughtSignature", "finishReason", "usageMetadata", "usage", "error", "response"),
        *("message", "item", "part", "delta", "content_block", "index", "output_index"),
        *("content_index", "summary_index", "tool_calls", "function", "arguments", "logprobs"),
        *("output", "citation", "partial_json", "finish_reason", "text", "id"),
    )
)
_INSIDE = st.recursive(
    json_values,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=8,
)


def _event(kind: str, fields: dict[str, Json]) -> dict[str, Json]:
    return {"type": kind, **fields}


_EVENTS = st.lists(
    st.builds(_event, st.sampled_from(_KINDS), st.dictionaries(_KEYS, _INSIDE, max_size=4)),
    max_size=5,
)


@pytest.mark.parametrize("name", _NAMES)
@given(_EVENTS)
def test_no_event_breaks_a_reader(name: Protocol, events: list[dict[str, Json]]) -> None:
    codec = codec_of(name)
    stream = codec.read_stream()
    for one in events:
        stream.feed(f"data: {json.dumps(one)}\n\n".encode())
    stream.feed(b"data: [DONE]\n\n")
    for body in (stream.body(), stream.partial()):
        codec.read_reply(body)
        if body is not None:
            b"".join(codec.write_stream(body, pieces=2))
    stream.error()


@pytest.mark.parametrize("name", _NAMES)
@given(st.lists(st.binary(max_size=30), max_size=5))
def test_no_bytes_break_a_reader(name: Protocol, received: list[bytes]) -> None:
    stream = codec_of(name).read_stream()
    for one in received:
        stream.feed(b"data: " + one + b"\r")
        stream.feed(b"\n\r\n")
    assert stream.body() is None


@each(
    "body",
    [
        b"{",
        b"[" * 100_000,
        b'{"a":' * 200 + b"1" + b"}" * 200,
        b'{"model": "m", "model": "n"}',
        b'{"temperature": NaN}',
        b'{"seed": 1' + b"0" * 5000 + b"}",
        b"\xff\xfe\xff",
        b"",
    ],
)
def test_a_body_that_is_no_json_or_means_two_things_is_refused(body: bytes) -> None:
    with pytest.raises(ProtocolError) as error:
        decode_body(body)
    assert error.value.status == 400


def test_thousands_of_results_are_one_turn() -> None:
    messages: list[Json] = [
        {"role": "tool", "tool_call_id": "c", "content": "x"} for _ in range(5_000)
    ]
    asked = codec_of("chat").read_request({"model": "m", "messages": messages})
    assert [len(turn.results) for turn in asked.turns] == [5_000]


def test_an_event_without_a_name_or_with_comments_is_read() -> None:
    codec = codec_of("chat")
    stream = codec.read_stream()
    chunk: dict[str, Any] = {"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]}
    stream.feed(f": hello\r\rid: 1\revent: x\rdata:{json.dumps(chunk)}\r\r".encode())
    stream.feed(b"\r")
    reply = codec.read_reply(stream.body())
    assert reply is not None
    assert reply.turn.text == "x"
