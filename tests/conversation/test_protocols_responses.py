"""OpenAI's responses, read and written; OpenAI's own client is the oracle."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from assay.conversation.messages import ReplyUsage
from assay.conversation.protocols import codec_at, codec_of
from assay.conversation.turns import (
    AssistantTurn,
    Call,
    Conversation,
    Image,
    Result,
    Text,
    Thought,
    Tool,
    Turn,
    Unknown,
)
from assay.scoring.json_safe import Json
from tests.conversation.reply_bodies import BODIES
from tests.protocol_bodies import serving

codec = codec_of("responses")


@given(BODIES["responses"], st.integers(1, 4))
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


def test_openais_client_puts_a_stream_together_as_the_whole_reply(openai: ModuleType) -> None:
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


def _message(role: str, *content: Json, **more: Json) -> Json:
    return {"type": "message", "role": role, "content": list(content), **more}


def test_a_whole_request_is_read() -> None:
    """As OpenAI's client sends it: what it is given, it passes on."""
    data = "data:image/png;base64,AA"
    picture: Json = {"type": "input_image", "image_url": data, "detail": "low"}
    grammar: Json = {"type": "grammar", "syntax": "lark", "definition": "x"}
    said: Json = {"type": "output_text", "text": "I look.", "annotations": []}
    acted: Json = {"type": "exec", "command": ["ls"], "env": {}}
    shell: Json = {"type": "local_shell_call", "id": "l1", "call_id": "c3", "action": acted}
    asked = codec.read_request(
        {
            "model": "m",
            "instructions": "You are kind.",
            "input": [
                {"role": "developer", "content": "Be brief."},
                _message(
                    "user",
                    _text("What is it?"),
                    picture,
                    {"type": "input_file", "file_id": "f"},
                ),
                {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
                _message("assistant", said, id="msg_1", status="completed"),
                {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": "{}"},
                {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "text"},
                shell,
                _output("function_call", call_id="c1", output=[_text("one")]),
                _output("custom_tool_call", call_id="c2", output="two"),
                _output("local_shell_call", id="c3", output="three"),
            ],
            "tools": [
                {"type": "function", "name": "ls", "parameters": {"type": "object"}},
                {"type": "custom", "name": "patch", "format": grammar},
                {"type": "local_shell"},
            ],
            "tool_choice": {"type": "function", "name": "ls"},
            "parallel_tool_calls": False,
            "max_output_tokens": 20,
            "reasoning": {"effort": "low"},
            "include": ["message.output_text.logprobs"],
            "previous_response_id": "resp_0",
        }
    )
    speakers = [turn.speaker for turn in asked.turns]
    assert speakers == ["system", "system", "user", "assistant", "tool"]
    assert asked.system == "You are kind.\n\nBe brief."
    assert asked.turns[2].parts[1] == Image(data)
    assert [type(part) for part in asked.turns[3].parts] == [Thought, Text, Call, Call, Unknown]
    assert asked.turns[3].calls[1] == Call("c2", "patch", "text", "custom")
    assert asked.turns[4].results == (
        Result("c1", (Text("one"),)),
        Result("c2", (Text("two"),), kind="custom"),
    )
    assert asked.tools[1] == Tool(name="patch", kind="custom", schema=grammar)
    assert asked.tools[2].own == {"type": "local_shell", "protocol": "responses"}
    assert (asked.choice, asked.is_parallel, asked.max_tokens) == ("ls", False, 20)
    assert (asked.effort, asked.wants_logprobs, asked.follows) == ("low", True, "resp_0")
    assert codec.read_request(codec.write_request(asked)) == asked


def _text(text: str) -> Json:
    return {"type": "input_text", "text": text}


def _output(call: str, **more: Json) -> Json:
    return {"type": f"{call}_output", **more}


def test_a_response_that_failed_is_an_error_and_no_reply() -> None:
    error: Json = {"code": "server_error", "message": "out"}
    body = codec.write_reply(_reply(), _ASKED) | {"status": "failed", "error": error}
    stream = codec.read_stream()
    stream.feed(b"".join(codec.write_stream(body)))
    assert stream.error() == error
    assert codec.read_reply(stream.body()) is None


def test_a_last_event_that_leaves_the_output_out_is_completed() -> None:
    body = codec.write_reply(_reply(), _ASKED)
    events = list(codec.write_stream(body))
    stream = codec.read_stream()
    stream.feed(b"".join(events[:-1]))
    stream.feed(list(codec.write_stream({**body, "output": []}))[-1])
    assert stream.body() == body


def test_choices_of_responses_tools() -> None:
    body: dict[str, Json] = {"model": "m", "input": "x"}
    chosen: list[tuple[Json, str]] = [
        ({"type": "allowed_tools", "mode": "required"}, "required"),
        ({"type": "local_shell"}, "local_shell"),
        ({"type": "custom", "name": "p"}, "p"),
    ]
    for choice, expected in chosen:
        assert codec.read_request({**body, "tool_choice": choice}).choice == expected
    own: dict[str, Json] = {"type": "local_shell", "protocol": "responses"}
    asked = Conversation(
        model="m",
        turns=(Turn("user", ()),),
        tools=(Tool(name="local_shell", own=own),),
        choice="local_shell",
        follows="resp_1",
    )
    assert codec.read_request(codec.write_request(asked)) == asked


def test_why_a_response_ended() -> None:
    filtered: Json = {"reason": "content_filter"}
    bodies: list[tuple[dict[str, Json], str]] = [
        ({"output": [{"type": "local_shell_call"}], "status": "completed"}, "tool"),
        ({"output": [{"type": "web_search_call"}], "status": "completed"}, "stop"),
        ({"output": [], "status": "incomplete"}, "length"),
        ({"output": [], "status": "incomplete", "incomplete_details": filtered}, "refusal"),
    ]
    for body, stop in bodies:
        reply = codec.read_reply(body)
        assert reply is not None
        assert reply.stop == stop
        written: Any = codec.write_reply(reply, _ASKED)["output"]
        assert len(written) == len(reply.turn.parts)
