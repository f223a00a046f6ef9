"""The two protocols: what is sent, what is read, and what refusals mean."""

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
from assay.conversation.protocols import codec_of
from assay.conversation.schemas import shape_of
from assay.errors import InputError
from assay.models.faults import asked_pause, broken_reply, fault_of, redacted
from assay.models.resolving import Endpoint, first_capability
from tests.model_servers import SCHEMA

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
    request = Request(model="x", **(known | values))
    capability = first_capability(endpoint(protocol))
    capability.rung = rung or capability.rung
    body = question.body(
        OPENAI if protocol == "openai" else ANTHROPIC,
        request,
        request.messages,
        most_tokens=100,
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
    assert tool["tool_choice"]["function"]["name"] == "verdict"
    assert sent("openai", rung="json_object")["response_format"] == {"type": "json_object"}
    assert not {"tools", "response_format"} & sent("openai", rung="text").keys()
    assert "response_format" not in sent("openai", shaped=False)


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


def test_parts_are_sent_in_each_protocols_form() -> None:
    messages = (Message("user", PARTS),)
    assert sent("openai", messages=messages)["messages"][0]["content"] == list(PARTS)
    blocks = sent("anthropic", messages=messages)["messages"][0]["content"]
    assert blocks[0] == {"type": "text", "text": "look"}
    assert blocks[1]["source"] == {"type": "base64", "media_type": "image/png", "data": "aGk="}
    linked = ({"type": "image_url", "image_url": "https://h/x.png"},)
    blocks = sent("anthropic", messages=(Message("user", linked),))["messages"][0]["content"]
    assert blocks[0]["source"] == {"type": "url", "url": "https://h/x.png"}
    broken = (Message("user", ({"type": "image_url", "image_url": "data:image/png,hi"},)),)
    with pytest.raises(InputError, match="base64"):
        sent("anthropic", messages=broken)


def test_what_a_part_says_besides_is_sent_to_who_speaks_its_form() -> None:
    part: dict[str, Any] = {"type": "image_url", "image_url": {"url": IMAGE, "detail": "low"}}
    assert sent("openai", messages=(Message("user", (part,)),))["messages"][0]["content"] == [part]


def test_a_tool_says_whether_the_provider_holds_the_model_to_its_schema() -> None:
    assert sent("openai", rung="tool")["tools"][0]["function"]["strict"] is True


def test_anthropics_system_prompt_is_one() -> None:
    messages = (Message("system", "S"), Message("system", "T"), Message("user", "U"))
    assert sent("anthropic", messages=messages)["system"] == "S\n\nT"


@pytest.mark.parametrize("kind", ["thinking", "reasoning", "refusal"])
def test_attack_what_a_model_thought_is_no_part_of_its_reply(kind: str) -> None:
    content: Any = [{"type": kind, "text": '{"verdict": "MET"}'}, {"type": "text", "text": "hi"}]
    raw = question.read(OPENAI, {"choices": [{"message": {"content": content}}]})
    assert raw is not None
    assert raw.text == "hi"


def test_half_a_surrogate_pair_can_be_sent() -> None:
    assert sent("openai", messages=(Message("user", "a\ud800b"),))["messages"][0]["content"]


def test_a_temperature_that_is_no_number_is_refused() -> None:
    with pytest.raises(InputError, match="not JSON"):
        sent("openai", temperature=float("nan"))


def test_a_schema_with_open_keys_is_not_promised_as_strict() -> None:
    shape = shape_of({"type": "object", "additionalProperties": {"type": "string"}})
    capability = first_capability(endpoint("openai"))
    assert capability.rung_for(shape) == "tool"


CHAT: dict[str, Any] = {"content": "hi"}


@pytest.mark.parametrize(
    ("message", "finish", "expected"),
    [
        ({"content": "hi"}, "stop", ("hi", "stop")),
        ({"content": [{"type": "text", "text": "h"}, {"text": "i"}]}, "stop", ("hi", "stop")),
        ({"content": "h"}, "length", ("h", "length")),
        ({"content": None}, "content_filter", ("", "refusal")),
        ({"content": None, "refusal": "no"}, "stop", ("", "refusal")),
        (
            {"content": None, "tool_calls": [{"function": {"arguments": "{}"}}]},
            "tool_calls",
            ("{}", "tool"),
        ),
        ({"content": 7}, "stop", ("", "stop")),
        ({"content": None, "tool_calls": "x"}, None, ("", "stop")),
    ],
)
def test_openais_reply_is_read(message: Any, finish: Any, expected: tuple[str, str]) -> None:
    raw = question.read(OPENAI, {"choices": [{"message": message, "finish_reason": finish}]})
    assert raw is not None
    assert (raw.text, raw.finish) == expected


@pytest.mark.parametrize(
    ("content", "stop", "expected"),
    [
        ([{"type": "text", "text": "hi"}], "end_turn", ("hi", "stop")),
        (
            [{"type": "thinking", "thinking": "x"}, {"type": "text", "text": "hi"}],
            "end_turn",
            ("hi", "stop"),
        ),
        ([{"type": "text", "text": "h"}], "max_tokens", ("h", "length")),
        ([], "refusal", ("", "refusal")),
        (
            [{"type": "text", "text": "so"}, {"type": "tool_use", "input": {"a": "é"}}],
            "tool_use",
            ('{"a": "é"}', "tool"),
        ),
        ([7, "x", None], "end_turn", ("", "stop")),
    ],
)
def test_anthropics_reply_is_read(content: Any, stop: str, expected: tuple[str, str]) -> None:
    raw = question.read(ANTHROPIC, {"content": content, "stop_reason": stop})
    assert raw is not None
    assert (raw.text, raw.finish) == expected


def test_tokens_are_counted_alike() -> None:
    openai = question.read(
        OPENAI,
        {
            "choices": [{"message": CHAT}],
            "usage": {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": 4},
                "completion_tokens_details": {"reasoning_tokens": 2},
            },
        },
    )
    anthropic = question.read(
        ANTHROPIC,
        {
            "content": [],
            "usage": {
                "input_tokens": 5,
                "cache_read_input_tokens": 4,
                "cache_creation_input_tokens": 1,
                "output_tokens": 5,
                "output_tokens_details": {"thinking_tokens": 2},
            },
        },
    )
    expected = ReplyUsage(input_tokens=10, cached_tokens=4, output_tokens=5, reasoning_tokens=2)
    assert openai is not None
    assert anthropic is not None
    assert openai.usage == expected
    assert anthropic.usage == replace(expected, stored_tokens=1)


@pytest.mark.parametrize("tokens", [-5, True, 1e9, 10**12, "7", None, [1]])
def test_a_server_cannot_refill_the_budget_with_odd_counts(tokens: Any) -> None:
    usage = {"prompt_tokens": tokens, "completion_tokens": tokens}
    raw = question.read(OPENAI, {"choices": [{"message": CHAT}], "usage": usage})
    assert raw is not None
    assert raw.usage == ReplyUsage()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "message", "content", "usage", "error", "type", "tool_calls"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_json_is_read_or_known_to_be_no_reply(data: Any) -> None:
    question.read(OPENAI, data)
    question.read(ANTHROPIC, data)
    body = json.dumps(data).encode()
    fault_of(400, {}, body, now=0.0, secrets=("key",))
    broken_reply("application/json", body, secrets=())


def fault(status: int, message: str = "", *, headers: Any = None, **more: Any) -> Any:
    body = json.dumps({"error": {"message": message, **more}}).encode()
    return fault_of(status, headers or {}, body, now=0.0, secrets=("sk-1",))


@pytest.mark.parametrize(
    ("status", "message", "code", "kind", "again"),
    [
        (400, "no such thing", "", "rejected", False),
        (400, "maximum context length is 8192 tokens", "", "overflow", False),
        (400, "x", "context_length_exceeded", "overflow", False),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", "", "overflow", False),
        (413, "too big", "", "overflow", False),
        (400, "Your credit balance is too low", "", "quota", False),
        (400, "filtered", "content_filter", "refused", False),
        (401, "bad key", "", "auth", False),
        (403, "not you", "", "auth", False),
        (402, "pay", "", "quota", False),
        (404, "no model", "", "rejected", False),
        (302, "", "", "rejected", False),
        (408, "", "", "overloaded", True),
        (409, "", "", "overloaded", True),
        (429, "slow down", "", "rate_limited", True),
        (429, "x", "insufficient_quota", "quota", False),
        (429, "You exceeded your current quota, see billing", "", "rate_limited", True),
        (500, "oops", "", "overloaded", True),
        (501, "never", "", "rejected", False),
        (503, "", "", "overloaded", True),
        (529, "", "overloaded_error", "overloaded", True),
    ],
)
def test_a_refusal_is_told_by_its_kind(
    status: int, message: str, code: str, kind: str, *, again: bool
) -> None:
    found = fault(status, message, code=code)
    assert (found.kind, found.may_repeat) == (kind, again)


def test_an_error_that_is_not_to_be_retried_is_not() -> None:
    assert not fault(500, "x", headers={"x-should-retry": "false"}).may_repeat


@pytest.mark.parametrize(
    ("headers", "pause"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:30 GMT"}, 10.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:01 GMT"}, 0.0),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after-ms": "x", "retry-after": "2"}, 2.0),
    ],
)
def test_how_long_to_wait_is_read(headers: dict[str, str], pause: float | None) -> None:
    assert asked_pause(headers, 20.0) == pause


def test_a_pause_that_stands_in_the_message_is_read() -> None:
    assert fault(429, "Please retry in 36.5s.").pause == 36.5
    assert fault(429, "Please try again in 20ms", headers={"retry-after": "3"}).pause == 3.0
    assert fault(429, "try again in 20ms").pause == pytest.approx(0.02)


def test_hostile_error_text_is_one_bounded_line_without_the_key() -> None:
    text = "a\n\x1b[31mred\x07 sk-1 \u202e" + "x" * 5_000
    for body in (json.dumps({"error": {"message": text}}), text, json.dumps([{"error": text}])):
        found = fault_of(401, {}, body.encode(), now=0.0, secrets=("sk-1",))
        assert found.message.isprintable()
        assert len(found.message) < 400
        assert "sk-1" not in found.message
        assert "[redacted]" in found.message


def test_a_key_that_straddles_the_cut_is_redacted_first() -> None:
    assert "sk-" not in redacted("x" * 294 + "sk-secret", "sk-secret")


def test_a_page_of_html_is_told_without_its_tags() -> None:
    page = b"<html><style>p{}</style><body><h1>502 Bad Gateway</h1></body></html>"
    assert fault_of(502, {}, page, now=0.0, secrets=()).message == ("answered 502: 502 Bad Gateway")


@pytest.mark.parametrize(
    ("message", "more", "lesson", "changed"),
    [
        (
            "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
            {"param": "max_tokens"},
            "max_tokens",
            {"token_field": "max_completion_tokens"},
        ),
        (
            "max_tokens is too large: 100000. This model supports at most 16384 tokens",
            {},
            "max_tokens",
            {"most_tokens": 16384},
        ),
        (
            "max_tokens: 99999 > 8192, which is the maximum allowed number of output tokens",
            {},
            "max_tokens",
            {"most_tokens": 8192},
        ),
        (
            "'temperature' does not support 0",
            {"param": "temperature"},
            "temperature",
            {"refused": frozenset({"temperature"})},
        ),
        ("bad value", {"param": "seed"}, "seed", {"refused": frozenset({"seed"})}),
        (
            "Unrecognized request argument: response_format",
            {},
            "json_schema",
            {"rung": "tool"},
        ),
        ("Invalid schema for response_format", {}, "json_schema", {"rung": "json_schema"}),
        ("the moon is full", {}, "", {"version": 0}),
    ],
)
def test_a_refusal_teaches_what_to_leave_out(
    message: str, more: dict[str, str], lesson: str, changed: dict[str, Any]
) -> None:
    capability = first_capability(endpoint("openai"))
    request = Request(model="x", messages=(), seed=1)
    said = fault(400, message, **more).said
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
    assert (
        Capability(("text",), "text").learn("schema", Request(model="x", messages=()), None) == ""
    )
