"""OpenAI's chat completions, read and written; OpenAI's own client is the oracle."""

from __future__ import annotations

import contextlib
import importlib
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.conversation.messages import ReplyUsage
from assay.conversation.protocols import ProtocolError, codec_at, codec_of
from assay.conversation.turns import (
    AssistantTurn,
    Call,
    Conversation,
    Image,
    Text,
    Thought,
    Tokens,
    Turn,
)
from assay.scoring.json_safe import Json
from tests.protocol_bodies import (
    conversations,
    json_objects,
    json_values,
    leaves,
    objects,
    read_back,
    serving,
    texts,
    words,
)

if TYPE_CHECKING:
    import openai  # noqa: TC004 - imported by a fixture

chat = codec_of("chat")


@pytest.fixture(autouse=True, scope="module")
def importing() -> None:
    """Seconds, for those who only collect, too."""
    globals()["openai"] = importlib.import_module("openai")


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
    token_ids=st.none() | st.lists(st.integers(0, 99), max_size=9),
    stop_reason=leaves,
)
_BODIES = st.builds(
    _numbered,
    st.lists(_CHOICES, min_size=1, max_size=2),
    objects(
        {},
        id=texts,
        created=st.integers(0, 9),
        model=texts,
        usage=st.dictionaries(words, st.integers(0, 99), min_size=1),
        prompt_token_ids=st.lists(st.integers(0, 99), max_size=5),
        service_tier=st.none() | texts,
        other=json_objects,
    ),
)


@given(_BODIES, st.lists(st.integers(0, 99_999)), st.integers(1, 4))
def test_nothing_of_a_reply_is_lost_by_streaming(
    body: dict[str, Json], cuts: list[int], pieces: int
) -> None:
    assert read_back(chat, body, cuts, pieces) == body


@given(conversations())
def test_a_request_is_read_as_it_was_written(asked: Conversation) -> None:
    assert chat.read_request(chat.write_request(asked)) == asked


@given(json_objects | json_values)
def test_any_json_is_a_request_or_refused_and_a_reply_or_none(body: Json) -> None:
    values: list[Json] = [
        body,
        {"model": "m", "messages": [body]},
        {"model": "m", "messages": body},
        {"model": "m", "messages": [{"role": "assistant", "content": body, "tool_calls": body}]},
        {"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": body},
        {"model": "m", "messages": [{"role": "user", "content": "x"}], "tool_choice": body},
    ]
    for value in values:
        with contextlib.suppress(ProtocolError):
            chat.read_request(value)
    chat.read_reply({"choices": [{"message": body}]})
    chat.read_reply({"choices": body, "usage": body})
    chat.read_reply(body)


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


def _called(number: int, name: str, arguments: str) -> Json:
    inner: Json = {"name": name, "arguments": arguments}
    return {"id": f"call_{number}", "type": "function", "function": inner}


_TWO_CALLS: Json = [_called(1, "ls", '{"path": "a"}'), _called(2, "ls", '{"path": "ü"}')]


def test_openais_client_puts_a_stream_together_as_the_whole_reply() -> None:
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


def test_what_openais_client_sends_is_read() -> None:
    messages: Any = [
        {"role": "developer", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is it?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}},
            ],
        },
        {"role": "assistant", "content": "I look.", "tool_calls": _TWO_CALLS},
        {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "one"}]},
        {"role": "tool", "tool_call_id": "call_2", "content": "two"},
    ]
    tools: Any = [
        {"type": "function", "function": {"name": "ls", "parameters": {"type": "object"}}},
        {
            "type": "custom",
            "custom": {
                "name": "patch",
                "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "x"}},
            },
        },
    ]
    with (
        serving(chat, _reply(content="ok")) as served,
        openai.OpenAI(base_url=served.root_url, api_key="k", max_retries=0) as client,
    ):
        client.chat.completions.create(
            model="m",
            messages=messages,
            tools=tools,
            tool_choice={"type": "function", "function": {"name": "ls"}},
            parallel_tool_calls=False,
            max_tokens=10,
            reasoning_effort="low",
            stop="END",
            logprobs=True,
        )
    asked = chat.read_request(served.requests[0])
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


@pytest.mark.parametrize(
    ("body", "parameter", "told"),
    [
        ([], "", "JSON object"),
        ({"messages": []}, "model", "Missing required parameter"),
        ({"model": "m"}, "messages", "Missing required parameter"),
        ({"model": "m", "messages": []}, "messages", "must not be empty"),
        ({"model": "m", "messages": ["x"]}, "messages[0]", "expected object, but got string"),
        ({"model": "m", "messages": [{"role": "god"}]}, "messages[0].role", "'god'"),
        (
            {"model": "m", "messages": [{"role": "user", "content": 3}]},
            "messages[0].content",
            "integer",
        ),
        (
            {"model": "m", "messages": [{"role": "tool", "content": "x"}]},
            "messages[0].tool_call_id",
            "Missing",
        ),
        (
            {"model": "m", "messages": [{"role": "user", "content": "x"}], "temperature": 3},
            "temperature",
            "at most 2",
        ),
        (
            {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": "yes"},
            "stream",
            "expected null or boolean",
        ),
        (
            {"model": "m", "messages": [{"role": "user", "content": "x"}], "n": 2},
            "n",
            "one at a time",
        ),
    ],
)
def test_a_malformed_request_is_refused_by_its_field(body: Any, parameter: str, told: str) -> None:
    with pytest.raises(ProtocolError, match=told.replace("(", r"\(")) as error:
        chat.read_request(body)
    assert error.value.parameter == parameter


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


def test_a_stream_that_breaks_off_is_partial_and_never_whole() -> None:
    events = list(chat.write_stream(_reply(content="one two"), pieces=2))
    stream = chat.read_stream()
    stream.feed(b"".join(events[:3]))
    assert stream.body() is None
    reply = chat.read_reply(stream.partial())
    assert reply is not None
    assert reply.turn.text == "one two"[: len(reply.turn.text)] != ""
    stream.feed(chat.write_error_event(ProtocolError(500, "out")))
    stream.feed(b"data: [DONE]\n\n")
    assert stream.body() is None
    assert stream.error() == {
        "message": "out",
        "type": "server_error",
        "param": None,
        "code": None,
    }


@pytest.mark.parametrize(
    "line", [b'data: {"a": 1, "a": 2}', b"data: nonsense", b"data: \xff", b"data: " + b"[" * 5000]
)
def test_an_event_that_means_nothing_spoils_the_stream(line: bytes) -> None:
    stream = chat.read_stream()
    stream.feed(line + b"\n\n")
    stream.feed(b"".join(chat.write_stream(_reply(content="x"))))
    assert stream.body() is None
    assert chat.read_reply(stream.partial()) is not None


def test_a_reply_is_read_as_it_was_written() -> None:
    asked = Conversation(
        model="m", turns=(Turn.of("user", "x"),), wants_logprobs=True, wants_token_ids=True
    )
    reply = AssistantTurn(
        turn=Turn(
            "assistant",
            (Thought("hm", protocol="chat"), Text("Hi"), Call("c", "ls", '{"a":1}')),
        ),
        stop="tool",
        model="m",
        usage=ReplyUsage(input_tokens=3, cached_tokens=1, output_tokens=2, reasoning_tokens=1),
        id="r",
        tokens=Tokens(prompt_ids=(1, 2), output_ids=(3, 4), logprobs=(-0.5, -1.0)),
        stopped="tool_calls",
    )
    assert chat.read_reply(chat.write_reply(reply, asked)) == reply
    plain = Conversation(model="m", turns=asked.turns)
    assert "token_ids" not in json.dumps(chat.write_reply(reply, plain))


def test_a_refusal_is_none_of_the_text() -> None:
    reply = AssistantTurn(
        turn=Turn("assistant", ()), stop="refusal", refusal="No.", id="r", model="m"
    )
    body = chat.write_reply(reply, Conversation(model="m", turns=()))
    back = chat.read_reply(body)
    assert back is not None
    assert (back.stop, back.refusal, back.turn.text) == ("refusal", "No.", "")


def test_logprobs_that_cannot_be_are_none() -> None:
    body: Any = _reply(content="x")
    body["choices"][0]["logprobs"] = {"content": [{"logprob": -1.0}, {"logprob": "0"}]}
    reply = chat.read_reply(body)
    assert reply is not None
    assert reply.tokens is None


def test_a_codec_is_found_by_the_path() -> None:
    assert codec_at("/v1/chat/completions/") is chat
    assert codec_at("/v1/embeddings") is None
