"""All that a request can say, in each protocol: read as it was written."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from assay.conversation.protocols import Protocol, ProtocolError, codec_of
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

_NAMES: list[Protocol] = ["chat", "responses", "anthropic", "google"]
_GRAMMAR: dict[str, Json] = {"type": "grammar", "syntax": "lark", "definition": "start: x"}


def _asked(name: Protocol, **changes: Any) -> Conversation:
    own: dict[str, Json] = {"type": "search_20250101", "name": "search", "protocol": name}
    if name == "google":
        own = {"search": {"type": "search_20250101"}, "protocol": name}
    known = Conversation(
        model="m",
        turns=(
            Turn("system", (Text("Be brief."), Text("Be kind."))),
            Turn("user", (Text("What?"), Unknown(name, {"type": "file", "id": "f"}))),
            Turn("assistant", (Text("I look."), Call("c1", "ls", "{}"))),
            Turn("tool", (Result("c1", (Text("a"), Unknown(name, {"type": "doc"}))),)),
        ),
        tools=(Tool(name="ls", schema={"type": "object"}), Tool(name="search", own=own)),
        max_tokens=9,
        temperature=0.5,
        top_p=0.5,
        effort="low",
        schema={"type": "object"},
        is_streamed=True,
    )
    return dataclasses.replace(known, **changes)


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize("choice", ["auto", "required", "ls"])
def test_settings_and_parts_of_ones_own_are_kept(name: Protocol, choice: str) -> None:
    codec = codec_of(name)
    asked = _asked(name, choice=choice)
    assert codec.read_request(codec.write_request(asked)) == asked


@pytest.mark.parametrize("name", _NAMES)
def test_parts_and_tools_of_other_protocols_are_left_out(name: Protocol) -> None:
    codec = codec_of(name)
    other: Protocol = "anthropic" if name != "anthropic" else "chat"
    read = codec.read_request(codec.write_request(_asked(other)))
    parts = [part for turn in read.turns for part in turn.parts]
    assert not any(isinstance(part, Unknown) for part in parts)
    assert [tool.name for tool in read.tools] == ["ls"]


@pytest.mark.parametrize("name", ["chat", "responses"])
def test_tools_that_take_text_are_kept(name: Protocol) -> None:
    codec = codec_of(name)
    call = Call("c2", "patch", "*** Begin", "custom")
    tools = (
        Tool(name="patch", description="d", kind="custom", schema=_GRAMMAR),
        Tool(name="say", kind="custom"),
    )
    turns = (Turn("assistant", (call,)),)
    asked = _asked(name, turns=turns, tools=tools, choice="patch")
    assert codec.read_request(codec.write_request(asked)) == asked
    reply = AssistantTurn(turn=Turn("assistant", (call,)), stop="tool", id="r", model="m")
    back = codec.read_reply(codec.write_reply(reply, asked))
    assert back is not None
    assert back.turn == reply.turn


def test_only_chat_has_seeds_stops_and_token_ids() -> None:
    codec = codec_of("chat")
    asked = _asked(
        "chat", seed=3, stop=("END",), wants_logprobs=True, wants_token_ids=True, wants_usage=False
    )
    assert codec.read_request(codec.write_request(asked)) == asked


@pytest.mark.parametrize("name", _NAMES)
def test_a_thought_goes_back_to_where_it_came_from(name: Protocol) -> None:
    codec = codec_of(name)
    ids = {"responses": "rs_1"}
    thought = Thought("hm", "" if name == "chat" else "c2ln", ids.get(name, ""), name)
    asked = _asked(name, turns=(Turn("assistant", (thought, Text("So."))),))
    assert codec.read_request(codec.write_request(asked)).turns == asked.turns


def test_a_hidden_thought_stays_sealed() -> None:
    codec = codec_of("anthropic")
    body: dict[str, Json] = {
        "content": [{"type": "redacted_thinking", "data": "aGlk"}, {"type": "x", "y": 1}]
    }
    reply = codec.read_reply(body)
    assert reply is not None
    written = codec.write_reply(reply, _asked("anthropic"))
    assert written["content"] == body["content"]
    again = codec.write_request(Conversation(model="m", turns=(reply.turn,)))
    assert codec.read_request(again).turns == (reply.turn,)


@pytest.mark.parametrize("name", _NAMES)
def test_pictures_are_kept_wherever_they_are(name: Protocol) -> None:
    codec = codec_of(name)
    pictures = (Image("https://host/a.png"), Image("data:image/png;base64,AA"))
    turns = (Turn("user", pictures), Turn("tool", (Result("c", pictures, is_error=False),)))
    asked = _asked(name, turns=turns)
    assert codec.read_request(codec.write_request(asked)).turns == turns


_CITATIONS: dict[Protocol, dict[str, Json]] = {
    "chat": {"type": "url_citation", "url_citation": {"url": "u"}},
    "responses": {"type": "url_citation", "url": "u"},
    "anthropic": {"type": "page_location", "cited_text": "x"},
}


@pytest.mark.parametrize("name", _CITATIONS)
def test_only_citations_in_its_own_form_are_given_back(name: Protocol) -> None:
    codec = codec_of(name)
    text = Text("So.", tuple(_CITATIONS.values()))
    reply = AssistantTurn(turn=Turn("assistant", (text,)), id="r", model="m")
    back = codec.read_reply(codec.write_reply(reply, _asked(name)))
    assert back is not None
    assert back.turn.parts == (Text("So.", (_CITATIONS[name],)),)


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize("stop", ["length", "refusal"])
def test_why_a_reply_ended_is_kept(name: Protocol, stop: Any) -> None:
    codec = codec_of(name)
    refusal = "No." if stop == "refusal" else ""
    reply = AssistantTurn(turn=Turn("assistant", ()), stop=stop, refusal=refusal)
    back = codec.read_reply(codec.write_reply(reply, _asked(name)))
    assert back is not None
    assert (back.stop, back.refusal) == (stop, refusal)


_SAY: Json = [{"role": "user", "content": "x"}]
_FORCED: Json = {"type": "allowed_tools", "allowed_tools": {"mode": "required"}}


def test_other_ways_to_say_the_same_to_chat() -> None:
    body: dict[str, Json] = {
        "model": "m",
        "messages": [
            {"role": "user", "content": [{"type": "image_url", "image_url": "https://h/a.png"}]},
            {
                "role": "assistant",
                "content": [{"type": "refusal", "refusal": "No."}],
                "refusal": "Never.",
                "tool_calls": [
                    {"id": "c", "type": "custom", "custom": {"name": "p", "input": "x"}}
                ],
            },
        ],
    }
    asked = codec_of("chat").read_request(body)
    assert asked.turns[0].parts == (Image("https://h/a.png"),)
    assert asked.turns[1].text == "No.Never."
    assert asked.turns[1].calls == (Call("c", "p", "x", "custom"),)
    reply = codec_of("chat").read_reply(
        {
            "choices": [
                {
                    "message": {
                        "content": [{"type": "text", "text": "a"}],
                        "function_call": {"name": "f", "arguments": "{}"},
                    }
                }
            ]
        }
    )
    assert reply is not None
    assert (reply.turn.text, reply.turn.calls) == ("a", (Call("f", "f", "{}"),))
    forced = codec_of("chat").read_request({"model": "m", "messages": _SAY, "tool_choice": _FORCED})
    assert forced.choice == "required"


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("chat", {"model": ""}),
        ("chat", {"messages": [{"role": "user"}]}),
        ("chat", {"tools": [{"type": "function"}]}),
        ("chat", {"tool_choice": "maybe"}),
        ("chat", {"max_tokens": 0}),
        ("chat", {"max_tokens": True}),
        ("chat", {"stop": [3]}),
        ("chat", {"functions": [{"name": "f"}]}),
        ("chat", {"function_call": {"name": "f"}}),
        ("chat", {"messages": [{"role": "function", "name": "f", "content": "x"}]}),
        ("responses", {"model": ""}),
        ("responses", {"input": [{"content": "x"}]}),
        ("responses", {"input": [{"role": "user"}]}),
        ("responses", {"input": [{"type": "function_call_output", "call_id": "c"}]}),
        ("anthropic", {"model": ""}),
        ("anthropic", {"system": 3}),
        ("anthropic", {"tool_choice": {"type": "maybe"}}),
        ("anthropic", {"max_tokens": 0}),
        ("google", {"model": ""}),
        ("google", {"systemInstruction": 3}),
        ("google", {"contents": [{"parts": ["x"]}]}),
        ("google", {"generationConfig": {"maxOutputTokens": 0}}),
        ("google", {"generationConfig": {"stopSequences": [3]}}),
    ],
)
def test_what_no_server_takes_is_refused(name: Protocol, changed: dict[str, Json]) -> None:
    body: dict[str, Json] = {"model": "m", "messages": _SAY, "input": "x", "max_tokens": 9}
    body["contents"] = [{"parts": [{"text": "x"}]}]
    codec = codec_of(name)
    codec.read_request(body)
    with pytest.raises(ProtocolError) as error:
        codec.read_request({**body, **changed})
    assert error.value.status == 400
    assert codec.write_error(error.value)["error"]


def test_choices_of_responses_tools() -> None:
    codec = codec_of("responses")
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


@pytest.mark.parametrize(
    ("body", "stop"),
    [
        ({"output": [{"type": "local_shell_call"}], "status": "completed"}, "tool"),
        ({"output": [{"type": "web_search_call"}], "status": "completed"}, "stop"),
        ({"output": [], "status": "incomplete"}, "length"),
        (
            {
                "output": [],
                "status": "incomplete",
                "incomplete_details": {"reason": "content_filter"},
            },
            "refusal",
        ),
    ],
)
def test_why_a_response_ended(body: dict[str, Json], stop: str) -> None:
    codec = codec_of("responses")
    reply = codec.read_reply(body)
    assert reply is not None
    assert reply.stop == stop
    written: Any = codec.write_reply(reply, _asked("responses"))["output"]
    assert len(written) == len(reply.turn.parts)
