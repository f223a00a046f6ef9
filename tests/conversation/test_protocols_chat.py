"""OpenAI's chat completions, read and written; OpenAI's own client is the oracle."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

from assay.conversation.protocols import codec_at, codec_of
from assay.conversation.turns import Call, Image, Text
from assay.scoring.json_safe import Json
from tests.each import each
from tests.protocol_bodies import serving

chat = codec_of("chat")


def _reply(**message: Json) -> dict[str, Json]:
    known: dict[str, Json] = {"role": "assistant", "content": None, "refusal": None, **message}
    finish = "tool_calls" if "tool_calls" in message else "stop"
    choice: Json = {"index": 0, "message": known, "logprobs": None, "finish_reason": finish}
    usage: Json = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
        "usage": usage,
    }


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _called(number: int, name: str, arguments: str) -> Json:
    inner: Json = {"name": name, "arguments": arguments}
    return {"id": f"call_{number}", "type": "function", "function": inner}


_TWO_CALLS: Json = [_called(1, "ls", '{"path": "a"}'), _called(2, "ls", '{"path": "ü"}')]


def test_openais_client_puts_a_stream_together_as_the_whole_reply(openai: ModuleType) -> None:
    body = _reply(content="I look at both.", tool_calls=_TWO_CALLS)
    with (
        serving(chat, body) as served,
        openai.OpenAI(base_url=served.root_url, api_key="k", max_retries=0) as client,
    ):
        asked: Any = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
        create: Callable[..., Any] = client.chat.completions.create
        whole = create(**asked)
        with client.chat.completions.stream(
            **asked, stream_options={"include_usage": True}
        ) as events:
            streamed: Any = events.get_final_completion()
    kept = {"id", "content", "tool_calls", "usage", "finish_reason", "role"}
    for one in (whole, streamed):
        message = one.choices[0].message.model_dump(include=kept, exclude_none=True)
        for call in message["tool_calls"]:
            call["function"].pop("parsed_arguments", None)
            call.pop("index", None)
        expected = {"content": "I look at both.", "role": "assistant", "tool_calls": _TWO_CALLS}
        assert message == expected
        assert one.usage.total_tokens == 7
    assert chat.read_request(served.requests[1]).wants_usage


def test_usage_that_nobody_asked_for_is_not_streamed() -> None:
    body = _reply(content="Hi")
    events = b"".join(chat.write_stream(body, wants_usage=False))
    assert b"usage" not in events
    request: Json = {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": True}
    assert not chat.read_request(request).wants_usage
    assert codec_at("/v1/chat/completions/") is chat
    assert codec_at("/v1/embeddings") is None


def test_a_whole_request_is_read() -> None:
    """As OpenAI's client sends it: what it is given, it passes on."""
    picture: Json = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
    grammar: Json = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "x"}}
    asked = chat.read_request(
        {
            "model": "m",
            "messages": [
                {"role": "developer", "content": "Be brief."},
                {"role": "user", "content": [{"type": "text", "text": "What is it?"}, picture]},
                {"role": "assistant", "content": "I look.", "tool_calls": _TWO_CALLS},
                {"role": "tool", "tool_call_id": "call_1", "content": [_text("one")]},
                {"role": "tool", "tool_call_id": "call_2", "content": "two"},
            ],
            "tools": [
                {"type": "function", "function": {"name": "ls", "parameters": {"type": "object"}}},
                {"type": "custom", "custom": {"name": "patch", "format": grammar}},
            ],
            "tool_choice": {"type": "function", "function": {"name": "ls"}},
            "parallel_tool_calls": False,
            "max_tokens": 10,
            "reasoning_effort": "low",
            "stop": "END",
            "logprobs": True,
        }
    )
    assert [turn.speaker for turn in asked.turns] == ["system", "user", "assistant", "tool"]
    assert asked.turns[1].parts == (Text("What is it?"), Image("data:image/png;base64,AA"))
    assert [call.given for call in asked.turns[2].calls] == [{"path": "a"}, {"path": "ü"}]
    assert [result.text for result in asked.turns[3].results] == ["one", "two"]
    assert [(tool.name, tool.kind) for tool in asked.tools] == [
        ("ls", "function"),
        ("patch", "custom"),
    ]
    assert asked.tools[1].schema["definition"] == "x"
    assert (asked.choice, asked.is_parallel, asked.max_tokens) == ("ls", False, 10)
    assert (asked.effort, asked.stop, asked.wants_logprobs) == ("low", ("END",), True)
    assert chat.read_request(chat.write_request(asked)) == asked


def test_servers_that_number_all_calls_alike_are_understood() -> None:
    stream = chat.read_stream()
    for number, name in ((1, "a"), (2, "b")):
        call: Json = {"index": 0, "id": f"call_{number}", "function": {"name": name}}
        rest: Json = {"index": 0, "function": {"arguments": f'{{"n": {number}}}'}}
        for part in (call, rest):
            chunk = {"choices": [{"index": 0, "delta": {"tool_calls": [part]}}]}
            stream.feed(f"data: {json.dumps(chunk)}\r\n\r\n".encode())
    assert stream.body() is None
    stream.feed(b": ping\n\ndata: [DONE]\n\n")
    reply = chat.read_reply(stream.body())
    assert reply is not None
    assert reply.turn.calls == (
        Call("call_1", "a", '{"n": 1}'),
        Call("call_2", "b", '{"n": 2}'),
    )
    assert reply.stop == "tool"


@each(
    "line", [b'data: {"a": 1, "a": 2}', b"data: nonsense", b"data: \xff", b"data: " + b"[" * 5000]
)
def test_an_event_that_means_nothing_spoils_the_stream(line: bytes) -> None:
    stream = chat.read_stream()
    stream.feed(line + b"\n\n")
    stream.feed(b"".join(chat.write_stream(_reply(content="x"))))
    assert stream.body() is None
    assert chat.read_reply(stream.partial()) is not None


def test_logprobs_that_cannot_be_are_none() -> None:
    body: Any = _reply(content="x")
    body["choices"][0]["logprobs"] = {"content": [{"logprob": -1.0}, {"logprob": "0"}]}
    reply = chat.read_reply(body)
    assert reply is not None
    assert reply.tokens is None


def test_other_ways_to_say_the_same_to_chat() -> None:
    custom: Json = {"id": "c", "type": "custom", "custom": {"name": "p", "input": "x"}}
    refused: dict[str, Json] = {
        "role": "assistant",
        "content": [{"type": "refusal", "refusal": "No."}],
        "refusal": "Never.",
        "tool_calls": [custom],
    }
    picture: Json = [{"type": "image_url", "image_url": "https://h/a.png"}]
    said: Json = {"role": "user", "content": picture}
    forced: Json = {"type": "allowed_tools", "allowed_tools": {"mode": "required"}}
    asked = chat.read_request({"model": "m", "messages": [said, refused], "tool_choice": forced})
    assert asked.turns[0].parts == (Image("https://h/a.png"),)
    assert asked.turns[1].text == "No.Never."
    assert asked.turns[1].calls == (Call("c", "p", "x", "custom"),)
    assert asked.choice == "required"
    called: Json = {"content": [_text("a")], "function_call": {"name": "f", "arguments": "{}"}}
    reply = chat.read_reply({"choices": [{"message": called}]})
    assert reply is not None
    assert (reply.turn.text, reply.turn.calls) == ("a", (Call("f", "f", "{}"),))
