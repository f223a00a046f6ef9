"""OpenAI's responses, read and written; OpenAI's own client is the oracle."""

from __future__ import annotations

import contextlib
import importlib
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
    Result,
    Text,
    Thought,
    Tokens,
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
    import openai  # noqa: TC004 - imported by a fixture

codec = codec_of("responses")


@pytest.fixture(autouse=True, scope="module")
def importing() -> None:
    """Seconds, for those who only collect, too."""
    globals()["openai"] = importlib.import_module("openai")


_LOGPROB = objects({"token": texts, "logprob": -0.5})
_TEXT = objects(
    {"type": "output_text", "text": texts},
    annotations=st.lists(json_objects, max_size=2),
    logprobs=st.none() | st.lists(_LOGPROB, max_size=4),
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
_BODIES = objects(
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


@given(_BODIES, st.lists(st.integers(0, 99_999)), st.integers(1, 4))
def test_nothing_of_a_reply_is_lost_by_streaming(
    body: dict[str, Json], cuts: list[int], pieces: int
) -> None:
    assert read_back(codec, body, cuts, pieces) == body


@given(_BODIES, st.integers(1, 4))
def test_a_reply_without_its_last_event_is_known_from_its_pieces(
    body: dict[str, Json], pieces: int
) -> None:
    whole = list(codec.write_stream(body, pieces=pieces))
    kept = [one for one in whole[:-1] if b"output_item.done" not in one]
    stream = codec.read_stream()
    stream.feed(b"".join(kept))
    assert stream.body() is None
    for item, expected in zip(
        _list(stream.partial().get("output")), _list(body["output"]), strict=True
    ):
        known = {key: item[key] for key in item if key != "status"}
        assert known == {key: expected[key] for key in expected if key != "status"}


def _list(value: Any) -> list[dict[str, Json]]:
    return value


@given(conversations())
def test_a_request_is_read_as_it_was_written(asked: Conversation) -> None:
    assert codec.read_request(codec.write_request(asked)) == asked


@given(json_objects | json_values)
def test_any_json_is_a_request_or_refused_and_a_reply_or_none(body: Json) -> None:
    values: list[Json] = [
        body,
        {"model": "m", "input": body},
        {"model": "m", "input": [body]},
        {"model": "m", "input": [{"role": "user", "content": [body]}]},
        {"model": "m", "input": [{"type": "function_call_output", "output": body}]},
        {"model": "m", "input": "x", "tools": [body], "tool_choice": body, "include": body},
    ]
    for value in values:
        with contextlib.suppress(ProtocolError):
            codec.read_request(value)
    codec.read_reply({"output": [body], "usage": body})
    codec.read_reply(body)


_ASKED = Conversation(model="m", turns=(Turn.of("user", "Hi"),))


def _reply() -> AssistantTurn:
    parts = (
        Thought("I have to look.", "gAAA", "rs_1", "responses"),
        Text("I look at both."),
        Call("call_1", "ls", '{"path": "ü"}'),
        Call("call_2", "ls", "{}"),
        Call("call_3", "patch", "*** Begin Patch", "custom"),
    )
    return AssistantTurn(
        turn=Turn("assistant", parts),
        stop="tool",
        model="m",
        usage=ReplyUsage(input_tokens=3, cached_tokens=1, output_tokens=2, reasoning_tokens=1),
        id="resp_1",
        stopped="completed",
    )


def test_a_reply_is_read_as_it_was_written() -> None:
    assert codec.read_reply(codec.write_reply(_reply(), _ASKED)) == _reply()
    asked = Conversation(model="m", turns=(), wants_logprobs=True)
    turn = Turn.of("assistant", "Hi there")
    reply = AssistantTurn(turn=turn, tokens=Tokens(logprobs=(-0.5, -1.0)))
    back = codec.read_reply(codec.write_reply(reply, asked))
    assert back is not None
    assert back.tokens == reply.tokens


def test_openais_client_puts_a_stream_together_as_the_whole_reply() -> None:
    body = codec.write_reply(_reply(), _ASKED)
    with (
        serving(codec, body) as served,
        openai.OpenAI(base_url=served.root_url, api_key="k", max_retries=0) as client,
    ):
        create: Callable[..., Any] = client.responses.create
        whole = create(model="m", input="Hi")
        with client.responses.stream(model="m", input="Hi") as events:
            kinds = [event.type for event in events]
            streamed: Any = events.get_final_response()
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"
    assert "response.reasoning_summary_text.delta" in kinds
    assert "response.custom_tool_call_input.done" in kinds
    for response in (whole, streamed):
        data: Any = response.to_dict()
        for item in data["output"]:
            item.pop("parsed_arguments", None)
            for part in _list(item.get("content") or []):
                part.pop("parsed", None)
        assert data["output"] == body["output"]
        assert data["usage"] == body["usage"]
        assert response.output_text == "I look at both."
    assert codec_at(served.paths[0]) is codec


def test_what_openais_client_sends_is_read() -> None:
    given_items: Any = [
        {"role": "developer", "content": "Be brief."},
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "What is it?"},
                {"type": "input_image", "image_url": "data:image/png;base64,AA", "detail": "low"},
                {"type": "input_file", "file_id": "f"},
            ],
        },
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
        },
        {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "text"},
        {
            "type": "local_shell_call",
            "id": "l1",
            "call_id": "c3",
            "status": "completed",
            "action": {"type": "exec", "command": ["ls"], "env": {}},
        },
        {
            "type": "function_call_output",
            "call_id": "c1",
            "output": [{"type": "input_text", "text": "one"}],
        },
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "two"},
        {"type": "local_shell_call_output", "id": "c3", "output": "three"},
    ]
    tools: Any = [
        {"type": "function", "name": "ls", "parameters": {"type": "object"}, "strict": False},
        {
            "type": "custom",
            "name": "patch",
            "format": {"type": "grammar", "syntax": "lark", "definition": "x"},
        },
        {"type": "local_shell"},
    ]
    with (
        serving(codec, codec.write_reply(_reply(), _ASKED)) as served,
        openai.OpenAI(base_url=served.root_url, api_key="k", max_retries=0) as client,
    ):
        client.responses.create(
            model="m",
            instructions="You are kind.",
            input=given_items,
            tools=tools,
            tool_choice={"type": "function", "name": "ls"},
            parallel_tool_calls=False,
            max_output_tokens=20,
            reasoning={"effort": "low"},
            include=["message.output_text.logprobs"],
            previous_response_id="resp_0",
        )
    asked = codec.read_request(served.requests[0])
    speakers = [turn.speaker for turn in asked.turns]
    assert speakers == ["system", "system", "user", "assistant", "tool"]
    assert asked.system == "You are kind.\n\nBe brief."
    assert asked.turns[2].parts[1] == Image("data:image/png;base64,AA")
    assert [type(part) for part in asked.turns[3].parts] == [Thought, Text, Call, Call, Unknown]
    assert asked.turns[3].calls[1] == Call("c2", "patch", "text", "custom")
    assert asked.turns[4].results == (
        Result("c1", (Text("one"),)),
        Result("c2", (Text("two"),), kind="custom"),
    )
    assert asked.tools[1] == Tool(
        name="patch",
        kind="custom",
        schema={"type": "grammar", "syntax": "lark", "definition": "x"},
    )
    assert asked.tools[2].own == {"type": "local_shell", "protocol": "responses"}
    assert (asked.choice, asked.is_parallel, asked.max_tokens) == ("ls", False, 20)
    assert (asked.effort, asked.wants_logprobs, asked.follows) == ("low", True, "resp_0")
    assert codec.read_request(codec.write_request(asked)) == asked


@pytest.mark.parametrize(
    ("changed", "parameter", "told"),
    [
        ({"input": None}, "input", "Missing required parameter"),
        ({"input": 3}, "input", "but got integer"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0]", "send the item itself"),
        ({"conversation": "c"}, "conversation", "send what was said"),
        ({"background": True}, "background", "wait for the reply"),
        ({"input": [{"role": "god", "content": "x"}]}, "input[0].role", "'god'"),
        ({"input": [{"type": "function_call"}]}, "input[0].call_id", "Missing"),
        ({"tool_choice": "maybe"}, "tool_choice", "Supported values"),
    ],
)
def test_a_malformed_request_is_refused_by_its_field(
    changed: dict[str, Json], parameter: str, told: str
) -> None:
    with pytest.raises(ProtocolError, match=told) as error:
        codec.read_request({"model": "m", "input": "x", **changed})
    assert error.value.parameter == parameter


@pytest.mark.parametrize("fails", [False, True])
def test_an_error_in_a_stream_is_told(*, fails: bool) -> None:
    stream = codec.read_stream()
    body = codec.write_reply(_reply(), _ASKED)
    error: Json = {"code": "server_error", "message": "out"}
    if fails:
        body |= {"status": "failed", "error": error}
        stream.feed(b"".join(codec.write_stream(body)))
        assert stream.error() == error
        assert codec.read_reply(stream.body()) is None
        return
    stream.feed(b"".join(list(codec.write_stream(body))[:-1]))
    stream.feed(codec.write_error_event(ProtocolError(500, "out")))
    assert stream.error() == {"code": None, "message": "out", "param": None}
    assert stream.body() is None
    partial = codec.read_reply(stream.partial())
    assert partial is not None
    assert partial.turn == _reply().turn


def test_a_last_event_that_leaves_the_output_out_is_completed() -> None:
    body = codec.write_reply(_reply(), _ASKED)
    events = list(codec.write_stream(body))
    stream = codec.read_stream()
    stream.feed(b"".join(events[:-1]))
    stream.feed(list(codec.write_stream({**body, "output": []}))[-1])
    assert stream.body() == body


@given(
    conversations(),
    st.permutations(["chat", "responses", "anthropic"]),
)
def test_a_conversation_is_the_same_in_every_protocol(
    asked: Conversation, names: list[Any]
) -> None:
    said = asked
    for one in names:
        known = codec_of(one)
        said = known.read_request(known.write_request(said))
    assert said == asked
