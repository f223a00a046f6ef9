"""What holds in every protocol: what was written is read, and anything else harms nobody."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from assay.conversation.messages import ReplyUsage
from assay.conversation.protocols import Protocol, ProtocolError, codec_of
from assay.conversation.protocols import google as googles
from assay.conversation.protocols.shapes import decode_body
from assay.conversation.turns import (
    AssistantTurn,
    Call,
    Conversation,
    Image,
    Part,
    Result,
    Text,
    Thought,
    Tokens,
    Tool,
    Turn,
    Unknown,
)
from assay.scoring.json_safe import Json
from tests.conversation.reply_bodies import BODIES
from tests.each import each
from tests.protocol_bodies import conversations, json_objects, json_values, read_back

_NAMES: list[Protocol] = ["chat", "responses", "anthropic", "google"]
_GRAMMAR: dict[str, Json] = {"type": "grammar", "syntax": "lark", "definition": "start: x"}
_USAGE = ReplyUsage(input_tokens=9, cached_tokens=1, output_tokens=2, reasoning_tokens=1)


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


def _read_back(name: Protocol, asked: Conversation) -> Conversation:
    codec = codec_of(name)
    return codec.read_request(codec.write_request(asked))


def _given_back(name: Protocol, reply: AssistantTurn, **asked: Any) -> AssistantTurn:
    codec = codec_of(name)
    back = codec.read_reply(codec.write_reply(reply, _asked(name, **asked)))
    assert back is not None
    return back


# --- Anything ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", _NAMES)
@given(st.data(), st.lists(st.integers(0, 99_999)), st.integers(1, 4))
def test_nothing_of_a_reply_is_lost_by_streaming(
    name: Protocol, data: st.DataObject, cuts: list[int], pieces: int
) -> None:
    body = data.draw(BODIES[name])
    assert read_back(codec_of(name), body, cuts, pieces) == body


@given(conversations(), st.permutations(["chat", "responses", "anthropic"]))
def test_a_conversation_is_the_same_in_every_protocol(
    asked: Conversation, names: list[Any]
) -> None:
    said = asked
    for name in names:
        said = _read_back(name, said)
        assert said == asked
    assert _read_back("google", asked) == _shown(asked)


def _shown(asked: Conversation) -> Conversation:
    """A conversation as Google has it: a result is one text with its pictures behind it."""

    def one(part: Part) -> Part:
        if not isinstance(part, Result):
            return part
        pictures = tuple(found for found in part.content if isinstance(found, Image))
        return dataclasses.replace(
            part, content=(*([Text(part.text)] if part.text else []), *pictures)
        )

    turns = tuple(Turn(turn.speaker, tuple(map(one, turn.parts))) for turn in asked.turns)
    return dataclasses.replace(asked, turns=turns, is_parallel=None)


_KINDS = ("text", "thought", "functionCall", "functionResponse", "inlineData", "fileData")


def _requests(body: Json) -> dict[Protocol, list[Json]]:
    """Requests of each protocol in which something stands where another thing belongs."""
    user: Json = [{"role": "user", "content": "x"}]
    chat: dict[str, Json] = {"model": "m", "messages": user}
    responses: dict[str, Json] = {"model": "m", "input": "x"}
    anthropic: dict[str, Json] = {**chat, "max_tokens": 1}
    google: dict[str, Json] = {"model": "m", "contents": [{"parts": [{"text": "x"}]}]}
    return {
        "chat": [
            body,
            {**chat, "messages": [body]},
            {**chat, "messages": body},
            {**chat, "messages": [{"role": "assistant", "content": body, "tool_calls": body}]},
            {**chat, "tools": body},
            {**chat, "tool_choice": body},
        ],
        "responses": [
            body,
            {**responses, "input": body},
            {**responses, "input": [body]},
            {**responses, "input": [{"role": "user", "content": [body]}]},
            {**responses, "input": [{"type": "function_call_output", "output": body}]},
            {**responses, "tools": [body], "tool_choice": body, "include": body},
        ],
        "anthropic": [
            body,
            {**anthropic, "messages": body},
            {**anthropic, "messages": [{"role": "user", "content": body}]},
            {**anthropic, "messages": [{"role": "user", "content": [body]}]},
            {**anthropic, "system": body},
            {**anthropic, "tools": [body], "tool_choice": body},
        ],
        "google": [
            body,
            {**google, "contents": body},
            {**google, "contents": [{"role": "model", "parts": body}]},
            {**google, "contents": [{"role": "user", "parts": [body]}]},
            *({**google, "contents": [{"parts": [{kind: body}]}]} for kind in _KINDS),
            {**google, "systemInstruction": body, "generationConfig": body},
            {**google, "tools": [body], "toolConfig": {"functionCallingConfig": body}},
            {**google, "tools": [{"functionDeclarations": [{"name": "x", "parameters": body}]}]},
        ],
    }


def _replies(body: Json) -> dict[Protocol, list[Json]]:
    one_of_each: Json = [{kind: body} for kind in _KINDS]
    said: list[Json] = [[body], one_of_each, body]
    return {
        "chat": [{"choices": [{"message": body}]}, {"choices": body, "usage": body}],
        "responses": [{"output": [body], "usage": body}],
        "anthropic": [{"content": [body], "usage": body}],
        "google": [
            {"candidates": [body], "promptFeedback": body},
            *({"candidates": [{"content": {"parts": parts}}]} for parts in said),
            {"candidates": [{"content": {"parts": body}}], "usageMetadata": body},
        ],
    }


@given(json_objects | json_values)
def test_any_json_is_a_request_or_refused_and_a_reply_or_none(body: Json) -> None:
    for name, requests in _requests(body).items():
        codec = codec_of(name)
        for request in requests:
            with contextlib.suppress(ProtocolError):
                codec.write_request(codec.read_request(request))
            with contextlib.suppress(ProtocolError):
                whole: dict[str, Json] = {"generateContentRequest": request}
                googles.read_count(request if isinstance(request, dict) else whole)
        for reply in (body, *_replies(body)[name]):
            codec.read_reply(reply)


# --- Requests ------------------------------------------------------------------------------------


@each("name", _NAMES)
def test_settings_and_parts_of_ones_own_are_kept(name: Protocol) -> None:
    for choice in ("auto", "required", "ls"):
        asked = _asked(name, choice=choice)
        assert _read_back(name, asked) == asked


@each("name", _NAMES)
def test_parts_and_tools_of_other_protocols_are_left_out(name: Protocol) -> None:
    read = _read_back(name, _asked("anthropic" if name != "anthropic" else "chat"))
    parts = [part for turn in read.turns for part in turn.parts]
    assert not any(isinstance(part, Unknown) for part in parts)
    assert [tool.name for tool in read.tools] == ["ls"]


@each("name", ["anthropic", "google"])
def test_nothing_is_said_in_place_of_what_only_another_protocol_can_say(name: Protocol) -> None:
    turns = (
        Turn.of("user", "Go."),
        Turn("assistant", (Text(""), Unknown("responses", {"type": "local_shell_call"}))),
        Turn("tool", (Unknown("responses", {"type": "local_shell_call_output"}),)),
        Turn("assistant", (Text(""), Text("Done."))),
    )
    body = codec_of(name).write_request(Conversation(model="m", turns=turns))
    said = {
        "anthropic": [
            {"role": "user", "content": "Go."},
            {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
        ],
        "google": [
            {"role": "user", "parts": [{"text": "Go."}]},
            {"role": "model", "parts": [{"text": "Done."}]},
        ],
    }
    assert body["contents" if name == "google" else "messages"] == said[name]


@each("name", ["chat", "responses"])
def test_tools_that_take_text_are_kept(name: Protocol) -> None:
    turn = Turn("assistant", (Call("c2", "patch", "*** Begin", "custom"),))
    tools = (
        Tool(name="patch", description="d", kind="custom", schema=_GRAMMAR),
        Tool(name="say", kind="custom"),
    )
    asked = _asked(name, turns=(turn,), tools=tools, choice="patch")
    assert _read_back(name, asked) == asked
    reply = AssistantTurn(turn=turn, stop="tool")
    assert _given_back(name, reply, tools=tools, choice="patch").turn == turn


@each("name", ["anthropic", "google"])
def test_a_tool_that_takes_a_text_is_one_that_takes_an_object_with_it(name: Protocol) -> None:
    call = Call("c", "patch", "*** Begin", "custom")
    patch = Tool(name="patch", description="d", kind="custom", schema={"definition": "start: x"})
    asked = Conversation(model="m", turns=(Turn("assistant", (call,)),), tools=(patch,))
    read = _read_back(name, asked)
    assert read.turns[0].calls == (Call("c", "patch", '{"input": "*** Begin"}'),)
    assert "start: x" in read.tools[0].description
    reply = AssistantTurn(turn=read.turns[0], stop="tool")
    assert _given_back("chat", reply, tools=(patch,)).turn.calls == (call,)


def test_only_chat_has_seeds_stops_and_token_ids() -> None:
    asked = _asked(
        "chat", seed=3, stop=("END",), wants_logprobs=True, wants_token_ids=True, wants_usage=False
    )
    assert _read_back("chat", asked) == asked


@each("name", _NAMES)
def test_a_thought_goes_back_to_where_it_came_from_and_to_nobody_else(name: Protocol) -> None:
    own: dict[Protocol, tuple[Thought, ...]] = {
        "chat": (Thought("hm", protocol="chat"),),
        "responses": (Thought("hm", "c2ln", "rs_1", "responses"),),
        "anthropic": (Thought("hm", "c2ln", protocol="anthropic"),),
        "google": _GOOGLES,
    }
    said = Turn("assistant", (*itertools.chain(*own.values()), Text("So.")))
    kept = (Turn("assistant", (*own[name], Text("So."))),)
    assert _read_back(name, _asked(name, turns=(said,))).turns == kept


@each("name", _NAMES)
def test_pictures_are_kept_wherever_they_are(name: Protocol) -> None:
    pictures = (Image("https://host/a.png"), Image("data:image/png;base64,AA"))
    turns = (Turn("user", pictures), Turn("tool", (Result("c", pictures, is_error=False),)))
    assert _read_back(name, _asked(name, turns=turns)).turns == turns


def _each(field: str, *values: Json) -> list[Json]:
    return [{field: value} for value in values]


_REFUSED: dict[Protocol, list[Json]] = {
    "chat": [
        [],
        *_each("model", None, ""),
        *_each("messages", None, [], ["x"], [{"role": "god"}], [{"role": "user"}]),
        *_each("messages", [{"role": "user", "content": 3}], [{"role": "tool", "content": "x"}]),
        {"messages": [{"role": "function", "name": "f", "content": "x"}]},
        {"tools": [{"type": "function"}]},
        {"tool_choice": "maybe"},
        {"functions": [{"name": "f"}]},
        {"function_call": {"name": "f"}},
        *_each("max_tokens", 0, True),
        {"temperature": 3},
        {"stop": [3]},
        {"stream": "yes"},
        {"n": 2},
    ],
    "responses": [
        {"model": ""},
        *_each("input", None, 3, [{"content": "x"}], [{"role": "user"}]),
        *_each("input", [{"role": "god", "content": "x"}], [{"type": "item_reference", "id": "x"}]),
        {"input": [{"type": "function_call"}]},
        {"input": [{"type": "function_call_output", "call_id": "c"}]},
        {"tool_choice": "maybe"},
        {"conversation": "c"},
        {"background": True},
    ],
    "anthropic": [
        {"model": ""},
        *_each("max_tokens", None, 0),
        *_each("messages", [], [{"role": "user"}]),
        {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
        {"messages": [{"role": "god", "content": "x"}]},
        {"system": 3},
        {"temperature": "hot"},
        {"tools": [{"name": "x"}]},
        {"tool_choice": {"type": "maybe"}},
    ],
    "google": [
        {"model": ""},
        *_each("contents", None, [], [{"role": "god", "parts": []}], [{"parts": ["x"]}]),
        *_each("contents", [{"parts": [{"text": 1}]}], [{"parts": [{"functionCall": {}}]}]),
        {"systemInstruction": 3},
        *_each("generationConfig", {"temperature": "hot"}, {"candidateCount": 2}),
        *_each("generationConfig", {"maxOutputTokens": 0}, {"stopSequences": [3]}),
        # Which one its server keeps to, nobody knows.
        {"generationConfig": {"maxOutputTokens": 1, "max_output_tokens": 9}},
        {"generationConfig": {}, "generation_config": {}},
        {"cachedContent": "cachedContents/1"},
        {"tools": [{"functionDeclarations": [{}]}]},
        {"toolConfig": {"functionCallingConfig": {"mode": "MAYBE"}}},
    ],
}


@each("name", _NAMES)
def test_what_no_server_takes_is_refused_by_its_field(
    name: Protocol, snapshot: SnapshotAssertion
) -> None:
    known: dict[str, Json] = {"model": "m", "input": "x", "max_tokens": 9}
    known["messages"] = [{"role": "user", "content": "x"}]
    known["contents"] = [{"parts": [{"text": "x"}]}]
    codec = codec_of(name)
    codec.read_request(known)
    told: list[str] = []
    for changed in _REFUSED[name]:
        with pytest.raises(ProtocolError) as error:
            codec.read_request({**known, **changed} if isinstance(changed, dict) else changed)
        assert error.value.status == 400
        told.append(f"{error.value.parameter}: {json.dumps(codec.write_error(error.value))}")
    assert "\n".join(told) == snapshot(name=name)


# --- Replies -------------------------------------------------------------------------------------

_GOOGLES = (Thought("hm", protocol="google"), Thought("", "c2ln", "behind", "google"))
_CALL = Call("c", "ls", '{"path": "ü"}')
_WHOLE: dict[Protocol, AssistantTurn] = {
    "chat": AssistantTurn(
        turn=Turn("assistant", (Thought("hm", protocol="chat"), Text("Hi"), _CALL)),
        usage=_USAGE,
        tokens=Tokens(prompt_ids=(1, 2), output_ids=(3, 4), logprobs=(-0.5, -1.0)),
        stopped="tool_calls",
    ),
    "responses": AssistantTurn(
        turn=Turn("assistant", (Thought("hm", "gAAA", "rs_1", "responses"), Text("Hi"), _CALL)),
        usage=_USAGE,
        tokens=Tokens(logprobs=(-0.5, -1.0)),
        stopped="completed",
    ),
    "anthropic": AssistantTurn(
        turn=Turn("assistant", (Thought("hm", "c2ln", protocol="anthropic"), Text("Hi"), _CALL)),
        usage=dataclasses.replace(_USAGE, stored_tokens=2, stored_hour_tokens=3),
        stopped="tool_use",
    ),
    "google": AssistantTurn(
        turn=Turn("assistant", (*_GOOGLES, Text("Hi"), _CALL, Thought("", "ZW5k", "", "google"))),
        usage=_USAGE,
        tokens=Tokens(output_ids=(3, 4), logprobs=(-0.5, -1.0)),
        stopped="STOP",
    ),
}


@each("name", _NAMES)
def test_a_reply_is_read_as_it_was_written(name: Protocol) -> None:
    reply = dataclasses.replace(_WHOLE[name], stop="tool", id="r", model="m")
    assert _given_back(name, reply, wants_logprobs=True, wants_token_ids=True) == reply


@each("name", _NAMES)
def test_why_a_reply_ended_is_kept(name: Protocol) -> None:
    for stop, refusal in (("length", ""), ("refusal", "No.")):
        ended: Any = stop
        reply = AssistantTurn(turn=Turn("assistant", ()), stop=ended, refusal=refusal)
        back = _given_back(name, reply)
        assert (back.stop, back.refusal) == (stop, refusal)
        if name in ("chat", "responses"):  # which have a place for it: it is none of the text
            assert back.turn.text == ""


_CITATIONS: dict[Protocol, dict[str, Json]] = {
    "chat": {"type": "url_citation", "url_citation": {"url": "u"}},
    "responses": {"type": "url_citation", "url": "u"},
    "anthropic": {"type": "page_location", "cited_text": "x"},
}


@each("name", list(_CITATIONS))
def test_only_citations_in_its_own_form_are_given_back(name: Protocol) -> None:
    text = Text("So.", tuple(_CITATIONS.values()))
    back = _given_back(name, AssistantTurn(turn=Turn("assistant", (text,))))
    assert back.turn.parts == (Text("So.", (_CITATIONS[name],)),)


_ERRORS: dict[Protocol, Json] = {
    "chat": {"message": "out", "type": "overloaded_error", "param": None, "code": None},
    "responses": {"message": "out", "param": None, "code": None},
    "anthropic": {"message": "out", "type": "overloaded_error"},
    "google": {"message": "out", "code": 529, "status": "UNAVAILABLE"},
}


@each("name", _NAMES)
def test_an_error_in_a_stream_is_told_and_the_reply_is_not_whole(name: Protocol) -> None:
    codec = codec_of(name)
    body = codec.write_reply(AssistantTurn(turn=Turn.of("assistant", "one two")), _asked(name))
    events = list(codec.write_stream(body, pieces=2))
    begun = next(at for at, event in enumerate(events) if b"one" in event) + 1
    stream = codec.read_stream()
    stream.feed(b"".join(events[:begun]))
    assert stream.body() is None
    stream.feed(codec.write_error_event(ProtocolError(529, "out")))
    stream.feed(b"data: [DONE]\n\n")
    assert stream.error() == _ERRORS[name]
    assert stream.body() is None
    reply = codec.read_reply(stream.partial())
    assert reply is not None
    assert reply.turn.text == "one"


# --- Servers and agents that send anything: it is refused, or nothing is made of it -------------

_EVENT_KINDS = (
    *("message_start", "content_block_start", "content_block_delta", "message_delta"),
    *("message_stop", "response.created", "response.output_item.added"),
    *("response.content_part.added", "response.reasoning_summary_part.added"),
    *("response.output_text.delta", "response.function_call_arguments.delta"),
    *("response.output_item.done", "response.completed", "error"),
)
_EVENT_KEYS = st.sampled_from(
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
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_EVENT_KEYS, inner, max_size=4),
    max_leaves=8,
)


def _event(kind: str, fields: dict[str, Json]) -> dict[str, Json]:
    return {"type": kind, **fields}


_EVENTS = st.lists(
    st.builds(
        _event, st.sampled_from(_EVENT_KINDS), st.dictionaries(_EVENT_KEYS, _INSIDE, max_size=4)
    ),
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
