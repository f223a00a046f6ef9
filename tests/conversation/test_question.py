"""A question to a model: what is sent in each protocol, and what of a reply is believed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.conversation import question
from assay.conversation.capability import Capability
from assay.conversation.messages import Message, ReplyUsage, Request
from assay.conversation.protocols import Codec, codec_of
from assay.conversation.schemas import shape_of
from assay.conversation.wire import TWICE, RawReply, parsed
from assay.errors import InputError
from assay.models.resolving import Endpoint, first_capability
from assay.scoring.json_safe import Json
from tests.each import each
from tests.model_servers import MET, SCHEMA

OPENAI, ANTHROPIC = codec_of("chat"), codec_of("anthropic")
IMAGE = "data:image/png;base64,aGk="
PARTS: tuple[dict[str, Any], ...] = (
    {"type": "text", "text": "look"},
    {"type": "image_url", "image_url": {"url": IMAGE}},
)


def endpoint(protocol: Any, **values: Any) -> Endpoint:
    known: dict[str, Any] = {"base_url": "http://h", "model": "m", "name": "n"}
    return Endpoint(protocol=protocol, **(known | values))


def sent(protocol: str, *, shaped: bool = True, rung: Any = None, **values: Any) -> dict[str, Any]:
    known: dict[str, Any] = {"messages": (Message("system", "S"), Message("user", "U"))}
    request = Request(model="x", max_tokens=100, **(known | values))
    capability = first_capability(endpoint(protocol))
    capability.rung = rung or capability.rung
    body = question.body(
        OPENAI if protocol == "openai" else ANTHROPIC,
        request,
        model="m",
        capability=capability,
        shape=shape_of(SCHEMA) if shaped else None,
    )
    return json.loads(body)


def test_openai_is_sent_a_strict_schema() -> None:
    body = sent("openai", seed=3, top_p=0.5, reasoning_effort="low")
    assert body["messages"] == [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "U"},
    ]
    schema = body["response_format"]["json_schema"]
    assert (schema["name"], schema["strict"]) == ("verdict", True)
    assert list(schema["schema"]["properties"]) == ["reasoning", "verdict"]  # reasons come first
    assert (body["max_tokens"], body["temperature"], body["seed"]) == (100, 0.0, 3)
    assert (body["top_p"], body["reasoning_effort"], body["model"]) == (0.5, "low", "m")


def test_openai_is_asked_by_tool_by_json_mode_and_by_words() -> None:
    tool = sent("openai", rung="tool")
    assert tool["tools"][0]["function"]["parameters"]["required"] == ["reasoning", "verdict"]
    assert tool["tools"][0]["function"]["strict"] is True  # the provider holds the model to it
    assert tool["tool_choice"]["function"]["name"] == "verdict"
    assert sent("openai", rung="json_object")["response_format"] == {"type": "json_object"}
    assert not {"tools", "response_format"} & sent("openai", rung="text").keys()
    assert "response_format" not in sent("openai", shaped=False)
    shape = shape_of({"type": "object", "additionalProperties": {"type": "string"}})
    assert first_capability(endpoint("openai")).rung_for(shape) == "tool"  # keys are open


def test_anthropic_is_sent_an_output_format() -> None:
    body = sent("anthropic", seed=3, reasoning_effort="low")
    assert body["system"] == "S"
    assert body["messages"] == [{"role": "user", "content": "U"}]
    assert body["output_config"]["effort"] == "low"
    assert body["output_config"]["format"]["type"] == "json_schema"
    assert "seed" not in body
    tool = sent("anthropic", rung="tool")
    assert tool["tools"][0]["name"] == tool["tool_choice"]["name"] == "verdict"
    assert "output_config" not in tool
    assert "output_config" not in sent("anthropic", shaped=False)
    messages = (Message("system", "S"), Message("system", "T"), Message("user", "U"))
    assert sent("anthropic", messages=messages)["system"] == "S\n\nT"


def test_parts_are_sent_in_each_protocols_form() -> None:
    def content(protocol: str, *parts: Any) -> Any:
        return sent(protocol, messages=(Message("user", parts),))["messages"][0]["content"]

    assert content("openai", *PARTS) == list(PARTS)
    detailed = {"type": "image_url", "image_url": {"url": IMAGE, "detail": "low"}}
    assert content("openai", detailed) == [detailed]  # who speaks its form is sent all of it
    blocks = content("anthropic", *PARTS)
    assert blocks[0] == {"type": "text", "text": "look"}
    assert blocks[1]["source"] == {"type": "base64", "media_type": "image/png", "data": "aGk="}
    blocks = content("anthropic", {"type": "image_url", "image_url": "https://h/x.png"})
    assert blocks[0]["source"] == {"type": "url", "url": "https://h/x.png"}
    with pytest.raises(InputError, match="base64"):
        content("anthropic", {"type": "image_url", "image_url": "data:image/png,hi"})


def test_half_a_surrogate_pair_can_be_sent_and_a_temperature_that_is_no_number_cannot() -> None:
    assert sent("openai", messages=(Message("user", "a\ud800b"),))["messages"][0]["content"]
    with pytest.raises(InputError, match="not JSON"):
        sent("openai", temperature=float("nan"))


# --- What is read --------------------------------------------------------------------------------

UNMET: dict[str, Json] = {**MET, "verdict": "UNMET"}
MET_TEXT, UNMET_TEXT = json.dumps(MET), json.dumps(UNMET)
TWICE_TEXT = '{"reasoning": "x", "verdict": "UNMET", "verdict": "MET"}'


def read(codec: Codec, body: Any) -> RawReply:
    raw = question.read(codec, body)
    assert raw is not None
    return raw


def call(arguments: Any, name: str | None = "verdict") -> dict[str, Any]:
    named = {} if name is None else {"name": name}
    return {"type": "function", "function": {**named, "arguments": arguments}}


def use(given: Any, name: str = "verdict") -> dict[str, Any]:
    return {"type": "tool_use", "id": "t", "name": name, "input": given}


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "text": content}


def choice(content: Any, finish: Any = "stop", **more: Any) -> dict[str, Any]:
    return {"finish_reason": finish, "message": {"content": content, **more}}


def chat(*choices: Any, **more: Any) -> dict[str, Any]:
    return {"model": "served", "choices": list(choices), **more}


def message(*content: Any, stop: Any = "tool_use", **more: Any) -> dict[str, Any]:
    return {"type": "message", "content": list(content), "stop_reason": stop, **more}


@each(
    "message, finish, expected",
    [
        ({"content": "hi"}, "stop", ("hi", "stop")),
        ({"content": [{"type": "text", "text": "h"}, {"text": "i"}]}, "stop", ("hi", "stop")),
        ({"content": None, "refusal": "no"}, "stop", ("", "refusal")),
        ({"content": None, "tool_calls": [call("{}")]}, "tool_calls", ("{}", "tool")),
        ({"content": 7}, "stop", ("", "stop")),
        ({"content": None, "tool_calls": "x"}, None, ("", "stop")),
        *(
            ({"content": [{"type": kind, "text": UNMET_TEXT}, text("hi")]}, "stop", ("hi", "stop"))
            for kind in ("thinking", "reasoning", "refusal")  # no part of what it says
        ),
        *(
            ({"content": "h"}, finish, ("h", known))
            for known, finishes in {
                "stop": (None, "EOS", "eos_token", "end_turn", "", "<|eot_id|>", "normal", 7),
                "length": ("length", "model_length", "max_new_tokens"),
                "refusal": ("content_filter", "content_filter: PROHIBITED_CONTENT", "SAFETY"),
                "tool": ("tool_calls",),
            }.items()
            for finish in finishes
        ),
    ],
)
def test_openais_reply_is_read(message: Any, finish: Any, expected: tuple[str, str]) -> None:
    raw = read(OPENAI, chat({"message": message, "finish_reason": finish}))
    assert (raw.text, raw.finish, raw.wrong) == (*expected, "")


@each(
    "content, stop, expected",
    [
        ([text("hi")], "end_turn", ("hi", "stop")),
        ([{"type": "thinking", "thinking": "x"}, text("hi")], "end_turn", ("hi", "stop")),
        ([text("h")], "max_tokens", ("h", "length")),
        ([], "refusal", ("", "refusal")),
        (
            [text("so"), {"type": "tool_use", "input": {"a": "é"}}],
            *("tool_use", ('{"a": "é"}', "tool")),
        ),
        ([7, "x", None], "end_turn", ("", "stop")),
    ],
)
def test_anthropics_reply_is_read(content: Any, stop: str, expected: tuple[str, str]) -> None:
    raw = read(ANTHROPIC, message(*content, stop=stop))
    assert (raw.text, raw.finish) == expected


def called(*calls: Any, content: Any = None, **more: Any) -> tuple[Codec, Any]:
    return OPENAI, chat(choice(content, tool_calls=list(calls), **more))


@each(
    "codec, body",
    [
        called(call(MET_TEXT), content="I give the reply.", finish="tool_calls"),
        *(called(call(MET_TEXT, name), content="") for name in ("", "functions.verdict")),
        (OPENAI, chat(choice(MET_TEXT), choice(MET_TEXT))),
        called(call(MET_TEXT), content=UNMET_TEXT),
        called(call(MET)),
        called(call(MET_TEXT, None)),
        called(call(MET_TEXT), call(MET)),
        called(call(UNMET_TEXT, "search"), call(MET_TEXT)),
        called(call(UNMET_TEXT, "search"), content=MET_TEXT),
        (OPENAI, chat(choice(None, function_call={"name": "verdict", "arguments": MET_TEXT}))),
        (OPENAI, chat(choice(MET_TEXT, tool_calls=None, function_call=None))),
        (ANTHROPIC, message(text("I give the reply."), use(MET))),
        (ANTHROPIC, message(use(MET), use(dict(reversed(MET.items()))))),
        (ANTHROPIC, message(use(UNMET, "search"), use(MET))),
        (ANTHROPIC, message(text(MET_TEXT), stop="stop_sequence")),
        (ANTHROPIC, message(text(MET_TEXT), stop=None)),
    ],
)
def test_calls_of_our_tool_are_the_reply(codec: Codec, body: Any) -> None:
    raw = read(codec, body)
    assert (json.loads(raw.text), raw.wrong) == (MET, "")
    # Those of another tool are none.
    assert read(*called(call(MET_TEXT, "search"))).text == ""
    assert read(ANTHROPIC, message(use(MET, "search"))).text == ""


@each(
    "codec, body",
    [
        *(called(call(MET_TEXT), call(other)) for other in (UNMET_TEXT, UNMET, "", TWICE_TEXT)),
        called(call(MET_TEXT), function_call=call(UNMET_TEXT)["function"]),
        (OPENAI, chat(choice(MET_TEXT), choice(UNMET_TEXT))),
        (OPENAI, chat(choice(MET_TEXT, "pause_turn"))),
        (ANTHROPIC, message(use(MET), use(UNMET))),
        (ANTHROPIC, message(text(MET_TEXT), stop="pause_turn")),
        (ANTHROPIC, message(use(MET), stop="pause_turn")),
        (ANTHROPIC, message(text(MET_TEXT), stop="compaction")),
    ],
)
def test_attack_a_reply_that_contradicts_itself_or_ended_no_turn(codec: Codec, body: Any) -> None:
    assert read(codec, body).wrong


@each(
    "body",
    [
        *(chat(choice(MET_TEXT), error=one) for one in ({"message": "x"}, "it failed", True)),
        chat({**choice(MET_TEXT), "error": {"code": 503, "message": "x"}}),
        chat(choice(MET_TEXT, "error")),
        chat(choice(MET_TEXT, "abort")),
        chat(choice(MET_TEXT), choice("", "error")),
        message(text(MET_TEXT), stop="end_turn", error={"type": "api_error", "message": "x"}),
    ],
)
def test_attack_an_error_beside_a_verdict_is_found(body: Any) -> None:
    assert question.error(body)
    for nothing in (None, "", {}, False, {"code": None, "message": None}, {"code": 0}):
        assert not question.error(chat({**choice(MET_TEXT), "error": nothing}, error=nothing))


MET_SAID, MET_BLOCK = json.dumps(MET_TEXT), json.dumps(text(MET_TEXT))
MET_CHOICE, UNMET_CHOICE = json.dumps(choice(MET_TEXT)), json.dumps(choice(UNMET_TEXT))


@each(
    "body",
    [
        f'{{"choices": [{UNMET_CHOICE}], "choices": [{MET_CHOICE}]}}',
        f'{{"choices": [{{"message": {{}}, "message": {{"content": {MET_SAID}}}}}]}}',
        f'{{"choices": [{{"message": {{"content": "no", "content": {MET_SAID}}}}}]}}',
        json.dumps(chat(choice("x", "7"))).replace('"finish', '"finish_reason": "error", "finish'),
        f'{{"error": {{"code": 500}}, "error": null, "choices": [{MET_CHOICE}]}}',
        json.dumps(chat(choice(None, tool_calls=[call(7)]))).replace("7", TWICE_TEXT),
        json.dumps(message(use(7))).replace("7", TWICE_TEXT),
        json.dumps(message(use({**MET, "x": 7}))).replace("7", '{"a": 1, "a": 2}'),
        f'{{"content": [], "content": [{{"type": "text", "text": {MET_SAID}}}]}}',
        f'{{"stop_reason": "pause_turn", "stop_reason": "end_turn", "content": [{MET_BLOCK}]}}',
    ],
)
def test_attack_a_key_given_twice_does_not_decide_by_its_last_value(body: str) -> None:
    assert parsed(body.encode())[1] == TWICE


def test_a_body_is_parsed_in_any_of_jsons_encodings() -> None:
    data = {"choices": [{"message": {"content": "é"}}]}
    written = json.dumps(data, ensure_ascii=False)
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-32"):
        assert parsed(written.encode(encoding)) == (data, "")
    for broken in (b"", b"{", b"\xff\xff", b"[" * 100_000, b"9" * 5_000):
        assert parsed(broken) == (None, "")
    # Nothing is decided by it.
    twice = b'{"choices": [], "usage": {"prompt_tokens": 1, "prompt_tokens": 2}}'
    assert parsed(twice)[1] == ""


def test_tokens_are_counted_alike() -> None:
    openai = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    anthropic = {
        "input_tokens": 5,
        "cache_read_input_tokens": 4,
        "cache_creation_input_tokens": 1,
        "output_tokens": 5,
        "output_tokens_details": {"thinking_tokens": 2},
    }
    expected = ReplyUsage(input_tokens=10, cached_tokens=4, output_tokens=5, reasoning_tokens=2)
    assert read(OPENAI, chat(choice("hi"), usage=openai)).usage == expected
    told = read(ANTHROPIC, message(usage=anthropic)).usage
    assert told == replace(expected, stored_tokens=1)
    # A server cannot refill the budget with odd ones.
    for tokens in (-5, True, 1e9, 10**12, "7", None, [1]):
        usage = {"prompt_tokens": tokens, "completion_tokens": tokens}
        assert read(OPENAI, chat(choice("hi"), usage=usage)).usage == ReplyUsage()


KEYS = ("choices", "message", "content", "usage", "error", "type", "tool_calls")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_json_is_read_or_known_to_be_no_reply(data: Any) -> None:
    assert parsed(json.dumps(data).encode()) == (data, "")
    question.read(OPENAI, data)
    question.read(ANTHROPIC, data)
    question.error(data)


# --- What refusals teach -------------------------------------------------------------------------


REFUSALS: list[tuple[str, dict[str, str], str, dict[str, Any]]] = [
    (
        "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
        {"param": "max_tokens"},
        "max_tokens",
        {"token_field": "max_completion_tokens"},
    ),
    (
        "max_tokens is too large: 100000. This model supports at most 16384 tokens",
        *({}, "max_tokens", {"most_tokens": 16384}),
    ),
    (
        "max_tokens: 99999 > 8192, which is the maximum allowed number of output tokens",
        *({}, "max_tokens", {"most_tokens": 8192}),
    ),
    (
        "'temperature' does not support 0",
        *({"param": "temperature"}, "temperature", {"refused": frozenset({"temperature"})}),
    ),
    ("bad value", {"param": "seed"}, "seed", {"refused": frozenset({"seed"})}),
    ("Unrecognized request argument: response_format", {}, "json_schema", {"rung": "tool"}),
    ("Invalid schema for response_format", {}, "json_schema", {"rung": "json_schema"}),
    ("the moon is full", {}, "", {"version": 0}),
]


@each("message, more, lesson, changed", REFUSALS)
def test_a_refusal_teaches_what_to_leave_out(
    message: str, more: dict[str, str], lesson: str, changed: dict[str, Any]
) -> None:
    capability = first_capability(endpoint("openai"))
    request = Request(model="x", messages=(), seed=1)
    said = f"{message} {more.get('param', '')}".lower()
    shape = shape_of(SCHEMA)
    assert capability.learn(said, request, shape) == lesson
    assert {name: getattr(capability, name) for name in changed} == changed
    if message.startswith("Invalid schema"):
        assert capability.rung_for(shape) == "tool"
        assert capability.rung_for(shape_of({"type": "object", "properties": {}})) == "json_schema"


@given(st.text(max_size=80))
def test_learning_ends_whatever_a_server_says(text: str) -> None:
    everything = "temperature top_p seed reasoning_effort max_tokens max_completion_tokens "
    everything += "response_format json_object tools at most 10 " + text
    capability = first_capability(endpoint("openai"))
    request = Request(model="x", messages=(), seed=1, top_p=1.0, reasoning_effort="low")
    lessons = 0
    while capability.learn(everything, request, shape_of(SCHEMA)):
        lessons += 1
        assert lessons < 20
    assert capability.rung == "text"


def test_a_model_of_ones_own_has_one_rung() -> None:
    request = Request(model="x", messages=())
    assert Capability(("text",), "text").learn("schema", request, None) == ""
