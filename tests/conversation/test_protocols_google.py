"""Google's generateContent, read and written; Google's own client is the oracle."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.conversation.messages import ReplyUsage
from assay.conversation.protocols import ProtocolError, addressed, codec_at, codec_of
from assay.conversation.protocols import google as module
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
from tests.protocol_bodies import (
    conversations,
    json_objects,
    json_values,
    leaves,
    objects,
    read_back,
    said,
    serving,
    texts,
    words,
)

if TYPE_CHECKING:
    from google import genai  # noqa: TC004 - imported by a fixture

codec = codec_of("google")
_PATH = "/v1/models/m:generateContent"


@pytest.fixture(autouse=True, scope="module")
def importing() -> None:
    """Seconds, for those who only collect, too."""
    globals()["genai"] = importlib.import_module("google.genai")


_TEXTS = objects({"text": texts}) | objects({"text": texts, "thought": True})
_BLOCKS = (
    objects({"text": texts, "thoughtSignature": words}, thought=st.just(value=True))
    | objects(
        {"functionCall": objects({"name": words, "args": json_objects}, id=words)},
        thoughtSignature=words,
    )
    | objects({"inlineData": {"mimeType": "image/png", "data": "AA"}}, other=leaves)
    | objects({"executableCode": json_objects})
)


def _apart(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Parts of which no two texts of a kind stand side by side: streamed they are one."""
    kept: list[dict[str, Any]] = []
    for part in parts:
        if not kept or part.keys() - {"text", "thought"} or part.keys() != kept[-1].keys():
            kept.append(part)
    return kept


_COUNT = st.integers(0, 99)
_CANDIDATES = objects(
    {
        "content": objects(
            {"parts": st.lists(_TEXTS | _BLOCKS, max_size=4).map(_apart)}, role=texts
        ),
        "finishReason": st.sampled_from(["STOP", "MAX_TOKENS", "SAFETY", "OTHER"]),
    },
    safetyRatings=json_values,
    avgLogprobs=st.floats(-9, 0),
)
_BODIES = objects(
    {
        "candidates": st.lists(_CANDIDATES, min_size=1, max_size=2).map(
            lambda each: [{**one, "index": at} for at, one in enumerate(each)]
        )
    },
    modelVersion=texts,
    responseId=texts,
    usageMetadata=objects({"promptTokenCount": _COUNT}, thoughtsTokenCount=_COUNT),
    other=json_values,
) | objects({"promptFeedback": {"blockReason": "SAFETY"}}, usageMetadata=json_objects)


@given(_BODIES, st.lists(st.integers(0, 99_999)), st.integers(1, 4))
def test_nothing_of_a_reply_is_lost_by_streaming(
    body: dict[str, Json], cuts: list[int], pieces: int
) -> None:
    assert read_back(codec, body, cuts, pieces) == body


def _shown(asked: Conversation) -> Conversation:
    """A conversation in which a result is one text with its pictures behind it."""

    def one(part: Part) -> Part:
        if not isinstance(part, Result):
            return part
        pictures = tuple(found for found in part.content if isinstance(found, Image))
        return dataclasses.replace(
            part, content=(*([Text(part.text)] if part.text else []), *pictures)
        )

    turns = tuple(Turn(turn.speaker, tuple(map(one, turn.parts))) for turn in asked.turns)
    return dataclasses.replace(asked, turns=turns, is_parallel=None)


@given(conversations())
def test_a_request_is_read_as_it_was_written(asked: Conversation) -> None:
    assert codec.read_request(codec.write_request(asked)) == _shown(asked)


@given(json_objects | json_values)
def test_any_json_is_a_request_or_refused_and_a_reply_or_none(body: Json) -> None:
    contents: Json = [{"parts": [{"text": "x"}]}]
    known: dict[str, Json] = {"model": "m", "contents": contents}
    values: list[Json] = [
        body,
        {**known, "contents": body},
        {**known, "contents": [{"role": "model", "parts": body}]},
        {**known, "contents": [{"role": "user", "parts": [body]}]},
        *({**known, "contents": [{"parts": [{kind: body}]}]} for kind in _KINDS),
        {**known, "systemInstruction": body, "generationConfig": body},
        {**known, "tools": [body], "toolConfig": {"functionCallingConfig": body}},
        {**known, "tools": [{"functionDeclarations": [{"name": "x", "parameters": body}]}]},
    ]
    for value in values:
        with contextlib.suppress(ProtocolError):
            codec.write_request(codec.read_request(value))
        with contextlib.suppress(ProtocolError):
            module.read_count(
                value if isinstance(value, dict) else {"generateContentRequest": value}
            )
    one_of_each: list[Json] = [{kind: body} for kind in _KINDS]
    said: list[Json] = [[body], one_of_each, body]
    for parts in said:
        codec.read_reply({"candidates": [{"content": {"parts": parts}}], "usageMetadata": body})
    codec.read_reply({"candidates": [body], "promptFeedback": body})
    codec.read_reply(body)


_KINDS = ("text", "thought", "functionCall", "functionResponse", "inlineData", "fileData")


def _client(served: Any) -> Any:
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


def test_a_reply_is_read_as_it_was_written() -> None:
    assert codec.read_reply(codec.write_reply(_REPLY, _ASKED)) == _REPLY
    refused = AssistantTurn(
        turn=Turn("assistant", ()), stop="refusal", refusal="I cannot.", stopped="SAFETY"
    )
    back = codec.read_reply(codec.write_reply(refused, _ASKED))
    assert back is not None
    assert (back.stop, back.refusal) == ("refusal", "I cannot.")


def test_googles_client_reads_a_reply_whole_and_streamed() -> None:
    body = codec.write_reply(_REPLY, _ASKED)
    with serving(codec, body) as served, _client(served) as client:
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


def test_what_googles_client_sends_is_read() -> None:
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
    with serving(codec, codec.write_reply(_REPLY, _ASKED)) as served, _client(served) as client:
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


_MALFORMED: list[tuple[dict[str, Json], str]] = [
    ({"model": ""}, "Missing required parameter: 'model'"),
    ({"contents": None}, "Missing required parameter: 'contents'"),
    ({"contents": []}, "Invalid 'contents': it must not be empty"),
    ({"contents": [{"role": "god", "parts": []}]}, "Invalid value: 'god'"),
    ({"contents": [{"parts": [{"text": 1}]}]}, "Invalid type for 'contents[0].parts[0].text'"),
    (
        {"contents": [{"parts": [{"functionCall": {}}]}]},
        "Missing required parameter: 'contents[0].parts[0].functionCall.name'",
    ),
    (
        {"generationConfig": {"temperature": "hot"}},
        "Invalid type for 'generationConfig",
    ),
    ({"generationConfig": {"candidateCount": 2}}, "Invalid 'candidateCount'"),
    ({"cachedContent": "cachedContents/1"}, "Invalid 'cachedContent'"),
    # Which one its server keeps to, nobody knows.
    (
        {"generationConfig": {"maxOutputTokens": 1, "max_output_tokens": 9}},
        "A field of generationConfig is given by both of its names",
    ),
    (
        {"generationConfig": {}, "generation_config": {}},
        "A field of the request is given by both of its names",
    ),
    ({"tools": [{"functionDeclarations": [{}]}]}, "Missing required parameter: 'tools[0]"),
    (
        {"toolConfig": {"functionCallingConfig": {"mode": "MAYBE"}}},
        "Invalid value: 'MAYBE'",
    ),
]


@pytest.mark.parametrize(("changed", "told"), _MALFORMED)
def test_a_malformed_request_is_refused_by_its_field(changed: dict[str, Json], told: str) -> None:
    body: dict[str, Json] = {"model": "m", "contents": [{"parts": [{"text": "x"}]}], **changed}
    with pytest.raises(ProtocolError) as error:
        codec.read_request(body)
    assert error.value.message.startswith(told)
    assert codec.write_error(error.value) == {
        "error": {"code": 400, "message": error.value.message, "status": "INVALID_ARGUMENT"}
    }


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


@pytest.mark.parametrize(
    ("mode", "allowed", "choice", "tools"),
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


def test_thoughts_and_seals_go_back_to_nobody_elses_model() -> None:
    theirs = (Thought("hm", "gAAA", "rs_1", "responses"), Thought("so", "x", protocol="anthropic"))
    ours = _TURN.parts
    body = codec.write_request(
        Conversation(model="m", turns=(Turn("assistant", (*theirs, *ours)),))
    )
    assert codec.read_request(body).turns[0].parts == ours
    anthropic = codec_of("anthropic").write_request(Conversation(model="m", turns=(_TURN,)))
    assert "c2ln" not in json.dumps(anthropic)


def test_nothing_is_said_in_place_of_what_only_another_protocol_can_say() -> None:
    turns = (
        Turn.of("user", "Go."),
        Turn("assistant", (Text(""), Unknown("responses", {"type": "local_shell_call"}))),
        Turn("assistant", (Text(""), Text("Done."))),
    )
    body = codec.write_request(Conversation(model="m", turns=turns))
    assert body["contents"] == [
        {"role": "user", "parts": [{"text": "Go."}]},
        {"role": "model", "parts": [{"text": "Done."}]},
    ]


def test_a_tool_that_takes_a_text_is_one_that_takes_an_object_with_it() -> None:
    patch = Tool(name="patch", kind="custom", schema={"definition": "start: x"})
    call = Call("c", "patch", "*** Begin", "custom")
    asked = Conversation(model="m", turns=(Turn("assistant", (call,)),), tools=(patch,))
    read = codec.read_request(codec.write_request(asked))
    assert read.turns[0].calls == (Call("c", "patch", '{"input": "*** Begin"}'),)
    assert "start: x" in read.tools[0].description


@pytest.mark.parametrize("reason", ["SAFETY", "PROHIBITED_CONTENT", "RECITATION"])
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


def test_an_error_in_a_stream_is_told_and_the_reply_is_not_whole() -> None:
    stream = codec.read_stream()
    body = codec.write_reply(AssistantTurn(turn=Turn.of("assistant", "one two")), _ASKED)
    first, *_ = codec.write_stream(body, pieces=2)
    stream.feed(first)
    stream.feed(codec.write_error_event(ProtocolError(503, "Overloaded")))
    assert stream.error() == {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}
    assert stream.body() is None
    reply = codec.read_reply(stream.partial())
    assert reply is not None
    assert reply.turn.text == "one"


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


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("/v1beta/models/gemini-2.5-pro:generateContent", "gemini-2.5-pro"),
        ("/v1/models/org/models/x:8b:streamGenerateContent", "org/models/x:8b"),
        ("/v1beta/models/m:embedContent", None),
        ("/v1beta/models/m:generateContent/more", None),
        ("/v1beta/models/m", None),
    ],
)
def test_the_model_stands_in_the_path(path: str, model: str | None) -> None:
    is_ours = codec_at(path) is codec
    assert is_ours == (model is not None)
    if model:
        streamed = "stream" in path
        assert addressed(path, {"model": "other"}) == {"model": model, "stream": streamed}


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


@pytest.mark.parametrize("how", ["in reverse", "never called", "allowed"])
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
