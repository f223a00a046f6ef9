"""Anthropic's messages, read and written; Anthropic's own client is the oracle."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

from assay.conversation.protocols import codec_at, codec_of
from assay.conversation.turns import Call, Conversation, Image, Text, Turn, Unknown
from assay.scoring.json_safe import Json
from tests.protocol_bodies import serving

codec = codec_of("anthropic")


def _reply(*content: Json, stop: str = "end_turn") -> dict[str, Json]:
    cached = {"cache_read_input_tokens": 3, "cache_creation_input_tokens": 0}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": list(content),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 5, "output_tokens": 7, **cached},
    }


def _text(text: str, **more: Json) -> Json:
    return {"type": "text", "text": text, **more}


_PAGE: Json = {
    "type": "page_location",
    "cited_text": "x",
    "document_index": 0,
    "start_page_number": 1,
    "end_page_number": 2,
    "document_title": None,
}


def test_anthropics_client_puts_a_stream_together_as_the_whole_reply(
    anthropic: ModuleType,
) -> None:
    body = _reply(
        {"type": "thinking", "thinking": "I have to look.", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "aGlkZGVu"},
        {"type": "text", "text": "I look at both.", "citations": [_PAGE]},
        {"type": "tool_use", "id": "toolu_1", "name": "ls", "input": {"path": "ü"}},
        {"type": "tool_use", "id": "toolu_2", "name": "ls", "input": {}},
        stop="tool_use",
    )
    asked: Any = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
    with (
        serving(codec, body) as served,
        anthropic.Anthropic(base_url=served.root_url, api_key="k", max_retries=0) as client,
    ):
        create: Callable[..., Any] = client.messages.create
        whole = create(**asked)
        with client.messages.stream(**asked) as events:
            streamed: Any = events.get_final_message()
    for message in (whole, streamed):
        assert _known(message.to_dict()) == body
    assert codec_at(served.paths[0]) is codec


def _known(message: dict[str, Any]) -> dict[str, Any]:
    """A message without what the client adds, which is nothing."""
    for block in message["content"]:
        for key in [key for key in block if block[key] is None]:
            del block[key]
    message["usage"] = {key: value for key, value in message["usage"].items() if value is not None}
    added = ("container", "stop_details", "diagnostics")
    return {key: value for key, value in message.items() if key not in added}


def test_a_whole_request_is_read() -> None:
    """As Anthropic's client sends it: what it is given, it passes on."""
    kept: Json = {"type": "ephemeral"}
    png: Json = {"type": "base64", "media_type": "image/png", "data": "AA"}
    picture: Json = {"type": "image", "source": png}
    asked = codec.read_request(
        {
            "model": "m",
            "max_tokens": 9,
            "system": [_text("Be brief.", cache_control=kept)],
            "messages": [
                {
                    "role": "user",
                    "content": [
                        _text("What is it?", cache_control=kept),
                        picture,
                        {"type": "document", "source": {"type": "url", "url": "https://x/y.pdf"}},
                    ],
                },
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                        {"type": "redacted_thinking", "data": "aGlk"},
                        _text("I look."),
                        {"type": "tool_use", "id": "t1", "name": "ls", "input": {"path": "a"}},
                        {"type": "tool_use", "id": "t2", "name": "ls", "input": {}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        _result("t1", [_text("one"), picture]),
                        _result("t2", "no", is_error=True),
                        _text("Go on."),
                    ],
                },
            ],
            "tools": [
                {"name": "ls", "description": "lists", "input_schema": {"type": "object"}},
                {"type": "bash_20250124", "name": "bash"},
            ],
            "tool_choice": {"type": "tool", "name": "ls", "disable_parallel_tool_use": True},
            "stop_sequences": ["END"],
        }
    )
    assert asked.system == "Be brief."
    speakers = [turn.speaker for turn in asked.turns]
    assert speakers == ["system", "user", "assistant", "tool", "user"]
    assert asked.turns[1].parts[:2] == (Text("What is it?"), Image("data:image/png;base64,AA"))
    assert isinstance(asked.turns[1].parts[2], Unknown)
    assert asked.turns[2].thought == "hm"
    assert [call.given for call in asked.turns[2].calls] == [{"path": "a"}, {}]
    first, second = asked.turns[3].results
    assert (first.text, first.content[1]) == ("one", Image("data:image/png;base64,AA"))
    assert (second.text, second.is_error) == ("no", True)
    assert asked.tools[1].own == {"type": "bash_20250124", "name": "bash", "protocol": "anthropic"}
    assert (asked.choice, asked.is_parallel, asked.stop) == ("ls", False, ("END",))
    assert codec.read_request(codec.write_request(asked)) == asked


def _result(call: str, content: Json, **more: Json) -> Json:
    return {"type": "tool_result", "tool_use_id": call, "content": content, **more}


def test_a_call_that_broke_off_is_kept_as_it_was_written() -> None:
    stream = codec.read_stream()
    body = _reply({"type": "tool_use", "id": "t", "name": "write", "input": '{"text": "so f'})
    stream.feed(b'event: ping\ndata: {"type": "ping"}\n\n')
    stream.feed(b"".join(codec.write_stream(body, pieces=3)))
    reply = codec.read_reply(stream.body())
    assert reply is not None
    assert reply.turn.calls == (Call("t", "write", '{"text": "so f'),)
    turn = Turn("assistant", reply.turn.calls)
    again = codec.write_request(Conversation(model="m", turns=(turn,)))
    assert "INVALID_JSON" in json.dumps(again)


def test_a_hidden_thought_stays_sealed() -> None:
    body: dict[str, Json] = {
        "content": [{"type": "redacted_thinking", "data": "aGlk"}, {"type": "x", "y": 1}]
    }
    reply = codec.read_reply(body)
    assert reply is not None
    written = codec.write_reply(reply, Conversation(model="m", turns=()))
    assert written["content"] == body["content"]
    again = codec.write_request(Conversation(model="m", turns=(reply.turn,)))
    assert codec.read_request(again).turns == (reply.turn,)
