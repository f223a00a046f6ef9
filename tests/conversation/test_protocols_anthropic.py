"""Anthropic's messages, read and written; Anthropic's own client is the oracle."""

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
    Tool,
    Turn,
    Unknown,
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
    import anthropic  # noqa: TC004 - imported by a fixture

codec = codec_of("anthropic")


@pytest.fixture(autouse=True, scope="module")
def importing() -> None:
    """Seconds, for those who only collect, too."""
    globals()["anthropic"] = importlib.import_module("anthropic")


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
_COUNT = st.integers(0, 99)
_BODIES = objects(
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


@given(_BODIES, st.lists(st.integers(0, 99_999)), st.integers(1, 4))
def test_nothing_of_a_reply_is_lost_by_streaming(
    body: dict[str, Json], cuts: list[int], pieces: int
) -> None:
    assert read_back(codec, body, cuts, pieces) == body


@given(conversations("toolu_"))
def test_a_request_is_read_as_it_was_written(asked: Conversation) -> None:
    assert codec.read_request(codec.write_request(asked)) == asked


@given(json_objects | json_values)
def test_any_json_is_a_request_or_refused_and_a_reply_or_none(body: Json) -> None:
    known: dict[str, Json] = {"model": "m", "max_tokens": 1}
    messages: Json = [{"role": "user", "content": "x"}]
    values: list[Json] = [
        body,
        {**known, "messages": body},
        {**known, "messages": [{"role": "user", "content": body}]},
        {**known, "messages": [{"role": "user", "content": [body]}]},
        {**known, "messages": messages, "system": body},
        {**known, "messages": messages, "tools": [body], "tool_choice": body},
    ]
    for value in values:
        with contextlib.suppress(ProtocolError):
            codec.read_request(value)
    codec.read_reply({"content": [body], "usage": body})
    codec.read_reply(body)


_USAGE: dict[str, Json] = {
    "input_tokens": 5,
    "output_tokens": 7,
    "cache_read_input_tokens": 3,
    "cache_creation_input_tokens": 0,
}


def _reply(*content: Json, stop: str = "end_turn") -> dict[str, Json]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": list(content),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": dict(_USAGE),
    }


_PAGE: Json = {
    "type": "page_location",
    "cited_text": "x",
    "document_index": 0,
    "start_page_number": 1,
    "end_page_number": 2,
    "document_title": None,
}


def test_anthropics_client_puts_a_stream_together_as_the_whole_reply() -> None:
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


def test_what_anthropics_client_sends_is_read() -> None:
    kept = {"type": "ephemeral"}
    png = {"type": "base64", "media_type": "image/png", "data": "AA"}
    messages: Any = [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is it?", "cache_control": kept},
                {"type": "image", "source": png},
                {"type": "document", "source": {"type": "url", "url": "https://x/y.pdf"}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                {"type": "redacted_thinking", "data": "aGlk"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "t1", "name": "ls", "input": {"path": "a"}},
                {"type": "tool_use", "id": "t2", "name": "ls", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t1",
                    "content": [{"type": "text", "text": "one"}, {"type": "image", "source": png}],
                },
                {"type": "tool_result", "tool_use_id": "t2", "content": "no", "is_error": True},
                {"type": "text", "text": "Go on."},
            ],
        },
    ]
    tools: Any = [
        {"name": "ls", "description": "lists", "input_schema": {"type": "object"}},
        {"type": "bash_20250124", "name": "bash"},
    ]
    with (
        serving(codec, _reply({"type": "text", "text": "ok"})) as served,
        anthropic.Anthropic(base_url=served.root_url, api_key="k", max_retries=0) as client,
    ):
        client.messages.create(
            model="m",
            max_tokens=9,
            messages=messages,
            system=[{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
            tools=tools,
            tool_choice={"type": "tool", "name": "ls", "disable_parallel_tool_use": True},
            stop_sequences=["END"],
        )
    asked = codec.read_request(served.requests[0])
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


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"max_tokens": None}, "Missing required parameter: 'max_tokens'"),
        ({"messages": []}, "Invalid 'messages': it must not be empty"),
        ({"messages": [{"role": "user"}]}, "Missing required parameter: 'messages[0].content'"),
        (
            {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
            "Missing required parameter: 'messages[0].content[0].text'",
        ),
        ({"messages": [{"role": "god", "content": "x"}]}, "Invalid value: 'god'"),
        ({"temperature": "hot"}, "Invalid type for 'temperature'"),
        ({"tools": [{"name": "x"}]}, "Missing required parameter: 'tools[0].input_schema'"),
    ],
)
def test_a_malformed_request_is_refused_by_its_field(changed: dict[str, Json], told: str) -> None:
    body: dict[str, Json] = {
        "model": "m",
        "max_tokens": 1,
        "messages": [{"role": "user", "content": "x"}],
        **changed,
    }
    with pytest.raises(ProtocolError) as error:
        codec.read_request(body)
    assert error.value.message.startswith(told)
    assert codec.write_error(error.value)["type"] == "error"


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


def test_an_error_in_a_stream_is_told_and_the_reply_is_not_whole() -> None:
    stream = codec.read_stream()
    events = list(codec.write_stream(_reply({"type": "text", "text": "one two"}), pieces=2))
    stream.feed(b"".join(events[:3]))
    stream.feed(codec.write_error_event(ProtocolError(529, "Overloaded")))
    assert stream.error() == {"type": "overloaded_error", "message": "Overloaded"}
    assert stream.body() is None
    reply = codec.read_reply(stream.partial())
    assert reply is not None
    assert reply.turn.text == "one"


def test_a_reply_is_read_as_it_was_written() -> None:
    asked = Conversation(model="m", turns=())
    parts = (
        Thought("hm", "c2ln", protocol="anthropic"),
        Text("Hi"),
        Call("c", "ls", '{"a": 1}'),
    )
    reply = AssistantTurn(
        turn=Turn("assistant", parts),
        stop="tool",
        model="m",
        usage=ReplyUsage(
            input_tokens=9,
            cached_tokens=1,
            output_tokens=2,
            reasoning_tokens=1,
            stored_tokens=2,
            stored_hour_tokens=3,
        ),
        id="r",
        stopped="tool_use",
    )
    assert codec.read_reply(codec.write_reply(reply, asked)) == reply


def test_a_thought_goes_back_to_nobody_elses_model() -> None:
    thoughts = (Thought("hm", "gAAA", "rs_1", "responses"), Thought("so", protocol="chat"))
    turn = Turn("assistant", (*thoughts, Text("Hi")))
    body = codec.write_request(Conversation(model="m", turns=(turn,)))
    assert body["messages"] == [{"role": "assistant", "content": [{"type": "text", "text": "Hi"}]}]


def test_nothing_is_said_in_place_of_what_only_another_protocol_can_say() -> None:
    turns = (
        Turn.of("user", "Go."),
        Turn("assistant", (Text(""), Unknown("responses", {"type": "local_shell_call"}))),
        Turn("tool", (Unknown("responses", {"type": "local_shell_call_output"}),)),
        Turn("assistant", (Text(""), Text("Done."))),
    )
    body = codec.write_request(Conversation(model="m", turns=turns))
    assert body["messages"] == [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
    ]


def test_a_tool_that_takes_a_text_is_one_that_takes_an_object_with_it() -> None:
    patch = Tool(name="patch", description="d", kind="custom", schema={"definition": "start: x"})
    call = Call("c", "patch", "*** Begin", "custom")
    asked = Conversation(model="m", turns=(Turn("assistant", (call,)),), tools=(patch,))
    read = codec.read_request(codec.write_request(asked))
    assert read.turns[0].calls == (Call("c", "patch", '{"input": "*** Begin"}'),)
    assert "start: x" in read.tools[0].description
    reply = AssistantTurn(turn=read.turns[0], stop="tool")
    back = codec_of("chat").read_reply(codec_of("chat").write_reply(reply, asked))
    assert back is not None
    assert back.turn.calls == (call,)
