"""Google's generateContent, read and written; Google's own client is the oracle."""

from __future__ import annotations

import json
import sys
from types import ModuleType
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from assay.conversation.messages import ReplyUsage
from assay.conversation.protocols import addressed, codec_at, codec_of
from assay.conversation.protocols import google as module
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
from tests.each import each
from tests.protocol_bodies import Served, read_back, said, serving

codec = codec_of("google")
_PATH = "/v1/models/m:generateContent"


def _client(genai: ModuleType, served: Served) -> Any:
    return genai.Client(
        api_key="k", http_options={"base_url": served.root_url, "retry_options": {"attempts": 1}}
    )


_TURN = Turn(
    "assistant",
    (
        Thought("I have to look.", protocol="google"),
        Text("I look at both."),
        Thought("", "c2ln", "behind", "google"),
        Call("c1", "ls", '{"path": "ü"}'),
        Call("c2", "ls", "{}"),
        Thought("", "ZW5k", protocol="google"),
    ),
)
_REPLY = AssistantTurn(
    turn=_TURN,
    stop="tool",
    model="m",
    usage=ReplyUsage(input_tokens=3, cached_tokens=1, output_tokens=2, reasoning_tokens=1),
    id="r",
    tokens=Tokens(output_ids=(3, 4), logprobs=(-0.5, -1.0)),
    stopped="STOP",
)
_ASKED = Conversation(model="m", turns=(), wants_logprobs=True)


def test_googles_client_reads_a_reply_whole_and_streamed(genai: ModuleType) -> None:
    body = codec.write_reply(_REPLY, _ASKED)
    with serving(codec, body) as served, _client(genai, served) as client:
        whole: Any = client.models.generate_content(model="m", contents="Hi")
        chunks: list[Any] = list(client.models.generate_content_stream(model="m", contents="Hi"))

    assert served.paths == [_PATH, _PATH.replace("generate", "streamGenerate")]
    assert all(codec_at(path) is codec for path in served.paths)
    assert whole.text == "".join(chunk.text or "" for chunk in chunks) == "I look at both."
    calls: list[Any] = []
    for chunk in chunks:
        calls += chunk.function_calls or []
    assert calls == whole.function_calls
    assert [(call.id, call.name, call.args) for call in calls] == [
        ("c1", "ls", {"path": "ü"}),
        ("c2", "ls", {}),
    ]
    for last in (whole, chunks[-1]):
        assert last.candidates[0].finish_reason == "STOP"
        assert last.usage_metadata.candidates_token_count == 1
        assert last.usage_metadata.thoughts_token_count == 1
        assert last.usage_metadata.cached_content_token_count == 1
        assert (last.response_id, last.model_version) == ("r", "m")
    parts = whole.candidates[0].content.parts
    assert [part.thought_signature for part in parts] == [None, None, b"sig", None, b"end"]
    told = whole.candidates[0].logprobs_result.chosen_candidates
    assert [(one.token_id, one.log_probability) for one in told] == [(3, -0.5), (4, -1.0)]


def test_what_googles_client_sends_is_read(genai: ModuleType) -> None:
    types: Any = genai.types
    look = types.FunctionDeclaration(
        name="ls",
        description="lists",
        parameters=types.Schema(
            type=types.Type.OBJECT,
            properties={
                "type": types.Schema(type=types.Type.STRING, nullable=True, enum=["a", "b"]),
                "many": types.Schema(type="ARRAY", items=types.Schema(type="INTEGER"), min_items=2),
            },
            required=["type"],
        ),
    )
    plain = {"type": "object", "properties": {"type": {"type": "string"}}}
    cat = types.FunctionDeclaration(name="cat", parameters_json_schema=plain)
    picture = types.Part.from_bytes(data=b"\0", mime_type="image/png")
    answered = types.Part.from_function_response(name="ls", response={"error": "no such file"})
    contents = [
        types.Content(role="user", parts=[types.Part(text="What is it?"), picture]),
        types.Content(
            role="model",
            parts=[
                types.Part(text="hm", thought=True),
                types.Part(
                    function_call=types.FunctionCall(name="ls", args={"type": "a"}),
                    thought_signature=b"sig",
                ),
                types.Part(function_call=types.FunctionCall(id="x", name="cat", args={})),
            ],
        ),
        types.Content(
            role="user",
            parts=[
                types.Part.from_function_response(name="cat", response={"rows": [1]}),
                answered,
                types.Part(text="Go on."),
            ],
        ),
    ]
    config = types.GenerateContentConfig(
        system_instruction="Be brief.",
        temperature=0.5,
        top_p=0.25,
        seed=7,
        max_output_tokens=9,
        stop_sequences=["END"],
        response_mime_type="application/json",
        response_schema={"type": "OBJECT", "properties": {"a": {"type": "NUMBER"}}},
        tools=[
            types.Tool(function_declarations=[look, cat]),
            types.Tool(google_search=types.GoogleSearch()),
        ],
        tool_config=types.ToolConfig(
            function_calling_config=types.FunctionCallingConfig(
                mode="ANY", allowed_function_names=["ls"]
            )
        ),
        thinking_config=types.ThinkingConfig(thinking_level="HIGH"),
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    with (
        serving(codec, codec.write_reply(_REPLY, _ASKED)) as served,
        _client(genai, served) as client,
    ):
        client.models.generate_content(model="org/m:1", contents=contents, config=config)

    asked = codec.read_request(addressed(served.paths[0], served.requests[0]))
    assert asked.model == "org/m:1"
    assert asked.system == "Be brief."
    assert [turn.speaker for turn in asked.turns] == ["system", "user", "assistant", "tool", "user"]
    assert asked.turns[1].parts == (Text("What is it?"), Image("data:image/png;base64,AA=="))
    assert asked.turns[2].parts == (
        Thought("hm", protocol="google"),
        Thought("", "c2ln", "behind", "google"),
        Call("ls:1", "ls", '{"type": "a"}'),
        Call("x", "cat", "{}"),
    )
    # Each is joined to the call of its tool, whether that had an id or not.
    first, second = asked.turns[3].results
    assert (first.id, first.text, first.is_error) == ("x", '{"rows": [1]}', False)
    assert (second.id, second.text, second.is_error) == ("ls:1", "no such file", True)
    assert [tool.name for tool in asked.tools] == ["googleSearch", "ls", "cat"]
    assert asked.tools[0].own == {"googleSearch": {}, "protocol": "google"}
    assert asked.tools[1].schema == {
        "type": "object",
        "properties": {
            "type": {"type": ["string", "null"], "enum": ["a", "b", None]},
            "many": {"type": "array", "items": {"type": "integer"}, "minItems": 2},
        },
        "required": ["type"],
    }
    assert asked.tools[2].schema == plain
    assert (asked.choice, asked.stop, asked.seed, asked.effort) == ("ls", ("END",), 7, "high")
    assert (asked.max_tokens, asked.temperature, asked.top_p) == (9, 0.5, 0.25)
    assert asked.schema == {"type": "object", "properties": {"a": {"type": "number"}}}
    assert codec.read_request(codec.write_request(asked)) == asked


def test_fields_by_their_other_names_are_read_and_limited() -> None:
    asked: dict[str, Json] = {
        "model": "models/m",
        "system_instruction": {"parts": [{"text": "s"}]},
        "contents": {"parts": [{"inline_data": {"mime_type": "image/png", "data": "AA"}}]},
        "generation_config": {"max_output_tokens": 99},
    }
    read = codec.read_request(asked)
    assert (read.model, read.system, read.max_tokens) == ("m", "s", 99)
    assert read.turns[1].parts == (Image("data:image/png;base64,AA"),)
    assert codec.read_request(module.limited(asked, 5)).max_tokens == 5
    bare: dict[str, Json] = {"model": "m", "contents": asked["contents"]}
    assert codec.read_request(module.limited(bare, 5)).max_tokens == 5


@each(
    "mode, allowed, choice, tools",
    [
        ("AUTO", None, "auto", ["a", "b", "c"]),
        ("NONE", None, "none", ["a", "b", "c"]),
        ("ANY", None, "required", ["a", "b", "c"]),
        ("ANY", ["a", "b"], "required", ["a", "b"]),
        ("VALIDATED", ["a"], "auto", ["a"]),
    ],
)
def test_which_tools_may_be_called(
    mode: str, allowed: list[str] | None, choice: str, tools: list[str]
) -> None:
    calling: dict[str, Json] = {"mode": mode}
    if allowed:
        calling["allowedFunctionNames"] = list[Json](allowed)
    asked = codec.read_request(
        {
            "model": "m",
            "contents": [{"parts": [{"text": "x"}]}],
            "tools": [{"functionDeclarations": [{"name": name} for name in "abc"]}],
            "toolConfig": {"functionCallingConfig": calling},
        }
    )
    assert (asked.choice, [tool.name for tool in asked.tools]) == (choice, tools)


def _answers(*names: str, **ids: str) -> Json:
    parts: list[Json] = [
        {"functionResponse": {"id": ids.get(name, ""), "name": "ls",
                              "response": {"output": name}}}
        for name in names
    ]  # fmt: skip
    return {"role": "user", "parts": parts}


def test_results_are_joined_to_calls_by_id_else_in_order() -> None:
    calls: Json = {
        "role": "model",
        "parts": [
            {"functionCall": {"name": "ls", "id": "A"}},
            {"functionCall": {"name": "ls"}},
            {"functionCall": {"name": "ls"}},
        ],
    }
    user: Json = {"parts": [{"text": "x"}]}

    def read(*contents: Json) -> list[tuple[str, str]]:
        asked = codec.read_request({"model": "m", "contents": [user, *contents]})
        return [(one.id, one.text) for turn in asked.turns for one in turn.results]

    assert read(calls, _answers("one", "two", "a", a="A")) == [
        ("A", "one"),
        ("ls:2", "two"),
        ("ls:3", "a"),
    ]
    assert read(calls, _answers("a", "one", "two", a="A")) == [
        ("A", "a"),
        ("ls:2", "one"),
        ("ls:3", "two"),
    ]
    # What is told twice is told once, and is never another call's.
    assert read(calls, _answers("a", "a", "one", a="A")) == [("A", "a"), ("ls:2", "one")]
    assert read(_answers("of nobody")) == [("ls:0", "of nobody")]


@each("reason", ["SAFETY", "PROHIBITED_CONTENT", "RECITATION"])
def test_what_was_blocked_is_a_refusal(reason: str) -> None:
    reply = codec.read_reply({"candidates": [{"finishReason": reason, "index": 0}]})
    assert reply is not None
    assert (reply.stop, reply.refusal, reply.stopped) == ("refusal", reason, reason)
    prompt: Json = {"promptFeedback": {"blockReason": reason}, "usageMetadata": {}}
    stream = codec.read_stream()
    stream.feed(f"data: {json.dumps(prompt)}\n\n".encode())
    asked = codec.read_reply(stream.body())
    assert asked is not None
    assert (asked.stop, asked.refusal) == ("refusal", reason)


@given(st.lists(said, min_size=2, max_size=3))
def test_texts_that_are_streamed_side_by_side_are_one(pieces: list[str]) -> None:
    parts: Json = [{"text": piece} for piece in pieces]
    body: dict[str, Json] = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}
    whole = read_back(codec, body, [], 1)
    reply = codec.read_reply(whole)
    assert reply is not None
    assert reply.turn.parts == (Text("".join(pieces)),)


def test_what_tokens_are_counted_of() -> None:
    contents: Json = [{"parts": [{"text": "x"}]}]
    whole: Json = {"model": "models/n", "contents": contents}
    bodies: list[dict[str, Json]] = [
        {"model": "m", "contents": contents},
        {"model": "m", "generateContentRequest": whole},
    ]
    for body in bodies:
        assert module.read_count(body).turns == (Turn.of("user", "x"),)


def _effort(body: Json) -> int:
    """How many functions are called to read a request."""
    count = 0

    def called(_frame: object, event: str, _given: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        codec.read_request(body)
    finally:
        sys.setprofile(before)
    return count


@each("how", ["in reverse", "never called", "allowed"])
def test_attack_many_calls_take_no_longer_each(how: str) -> None:
    # A request of 1 MiB kept the gateways of all cells from answering for a minute.
    def asked(count: int) -> Json:
        named: list[dict[str, Json]] = [{"name": f"f{at}", "id": f"{at}"} for at in range(count)]
        calls: list[Json] = [{"functionCall": one} for one in named]
        results: list[Json] = [{"functionResponse": one} for one in reversed(named)]
        names: list[Json] = [one["name"] for one in named]
        declared: list[Json] = [{"name": one} for one in names]
        choice: Json = {"mode": "ANY", "allowedFunctionNames": names}
        said: Json = [{"role": "model", "parts": calls if how == "in reverse" else []}]
        return {
            "model": "m",
            "contents": [*said, {"role": "user", "parts": results}],
            "tools": [{"functionDeclarations": declared}] if how == "allowed" else [],
            "toolConfig": {"functionCallingConfig": choice},
        }

    assert _effort(asked(200)) < 2.5 * _effort(asked(100))
