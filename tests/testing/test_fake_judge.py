"""`FakeJudge` as its users meet it: over a socket, in the forms of two providers.

That the providers' own clients read these forms: tests/conversation.
"""

from __future__ import annotations

import http.client
import importlib
import json
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import InputError
from assay.scoring.json_safe import Json
from assay.testing import Asked, FakeJudge, Fault
from tests.each import each

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"verdict": {"type": "string", "enum": ["MET", "UNMET"]}},
    "required": ["verdict"],
    "additionalProperties": False,
}
_MET = '{"verdict": "MET"}'
_BODY = b'{"model": "m", "messages": [{"role": "user", "content": "x"}]}'


def post(fake: FakeJudge, path: str, body: bytes, *, timeout: float = 60) -> tuple[int, Any]:
    """The status of a reply, and its JSON."""
    headers = {"Authorization": "Bearer sk-1"}
    request = urllib.request.Request(fake.root_url + path, body, headers)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def ask_openai(fake: FakeJudge, text: str = "Hi", **more: Any) -> Any:
    """A reply in OpenAI's form, or an error."""
    body = {"model": "any", "messages": [{"role": "user", "content": text}], **more}
    return post(fake, "/v1/chat/completions", json.dumps(body).encode())[1]


def ask_anthropic(fake: FakeJudge, text: str = "Hi", **more: Any) -> Any:
    """A reply in Anthropic's form, or an error."""
    asked = [{"role": "user", "content": text}]
    body = {"model": "any", "max_tokens": 1000, "messages": asked, **more}
    return post(fake, "/v1/messages", json.dumps(body).encode())[1]


def said(fake: FakeJudge, text: str = "Hi", **more: Any) -> str:
    """What it says in OpenAI's form."""
    return ask_openai(fake, text, **more)["choices"][0]["message"]["content"]


@pytest.fixture
def met() -> Iterator[FakeJudge]:
    with FakeJudge(lambda asked: _MET) as fake:
        yield fake


def test_a_reply_has_its_usage_in_both_forms(met: FakeJudge) -> None:
    reply = ask_openai(met, "x" * 400)
    choice, usage = reply["choices"][0], reply["usage"]
    assert (choice["message"]["content"], choice["finish_reason"]) == (_MET, "stop")
    assert (reply["model"], reply["system_fingerprint"]) == ("any", "fp_fake")
    told = [usage[name] for name in ("prompt_tokens", "completion_tokens", "total_tokens")]
    assert told == [100, 5, 105]
    other = ask_anthropic(met, "x" * 400, system="y" * 40)
    assert (other["content"][0]["text"], other["stop_reason"]) == (_MET, "end_turn")
    assert (other["usage"]["input_tokens"], other["usage"]["output_tokens"]) == (110, 5)
    assert met.requests[1].system == "y" * 40


def test_a_forced_tool_is_called_in_both_forms(met: FakeJudge) -> None:
    forced = {"type": "function", "function": {"name": "verdict"}}
    function = {"type": "function", "function": {"name": "verdict", "parameters": _SCHEMA}}
    one = ask_openai(met, tools=[function], tool_choice=forced)
    called = one["choices"][0]["message"]["tool_calls"][0]["function"]
    assert called == {"name": "verdict", "arguments": _MET}
    tool = {"name": "verdict", "input_schema": _SCHEMA}
    other = ask_anthropic(met, tools=[tool], tool_choice={"type": "tool", "name": "verdict"})
    block = other["content"][0]
    assert (other["stop_reason"], block["name"]) == ("tool_use", "verdict")
    assert block["input"] == {"verdict": "MET"}
    refused = ask_openai(met, tool_choice=forced)  # which is not there
    assert refused["error"]["param"] == "tool_choice"


def test_parts_are_read(met: FakeJudge) -> None:
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    messages = [{"role": "developer", "content": "S"}, {"role": "user", "content": parts}]
    assert said(met, messages=messages) == _MET
    assert (met.requests[0].system, met.requests[0].last_user) == ("S", "one\ntwo")


def test_more_than_max_tokens_is_cut(met: FakeJudge) -> None:
    assert ask_openai(met, max_tokens=2)["choices"][0]["finish_reason"] == "length"
    reply = ask_anthropic(met, max_tokens=2)
    assert (reply["stop_reason"], reply["content"][0]["text"]) == ("max_tokens", _MET[:8])


def test_a_longer_prompt_than_the_model_takes_is_refused() -> None:
    with FakeJudge(context_tokens=10) as fake:
        assert "choices" in ask_openai(fake, "x" * 40)
        refused = ask_openai(fake, "x" * 41)
        assert refused["error"]["code"] == "context_length_exceeded"
        refused = ask_anthropic(fake, "x" * 41)
        assert "prompt is too long" in refused["error"]["message"]
        _, refused = post(fake, "/v1/responses", b'{"model": "m", "input": "%s"}' % (b"x" * 41))
        assert refused["error"]["code"] == "context_length_exceeded"


def test_a_script_is_followed_in_order_and_ends() -> None:
    with FakeJudge(["one", {"verdict": "MET"}, Fault("401"), 3]) as fake:
        assert said(fake) == "one"
        assert ask_anthropic(fake)["content"][0]["text"] == _MET
        assert post(fake, "/v1/chat/completions", _BODY)[0] == 401
        assert said(fake) == "3"
        status, refused = post(fake, "/v1/chat/completions", _BODY)
        assert status == 400
        assert "the script has 4 replies" in refused["error"]["message"]
        assert fake.count == 5


def test_a_fault_takes_nothing_off_the_script() -> None:
    with FakeJudge(["one", "two"], faults=["500", "truncated", None, "length"]) as fake:
        assert post(fake, "/v1/chat/completions", _BODY)[0] == 500
        with pytest.raises(json.JSONDecodeError):
            post(fake, "/v1/chat/completions", _BODY)
        assert said(fake) == "one"
        assert ask_openai(fake)["choices"][0]["finish_reason"] == "length"
        assert said(fake) == "two"


def test_a_function_sees_what_was_asked_and_no_key() -> None:
    seen: list[Asked] = []

    def answer(asked: Asked) -> Json:
        seen.append(asked)
        return {"turn": asked.index}

    with FakeJudge(answer) as fake:
        ask_openai(fake, "Hi", temperature=0.5)
        assert ask_anthropic(fake)["content"][0]["text"] == '{"turn": 1}'
    assert (seen[0].last_user, seen[0].temperature, seen[0].model) == ("Hi", 0.5, "any")
    assert seen[0].headers["authorization"] == "[hidden]"
    assert "sk-1" not in repr(seen)


@each(
    ("path", "body", "status", "told"),
    [
        ("chat/completions", b"{", 400, "JSON body"),
        ("chat/completions", b"[]", 400, "JSON object"),
        ("chat/completions", b'{"messages": []}', 400, "model"),
        ("chat/completions", b'{"model": "m", "messages": []}', 400, "message"),
        ("messages", b'{"model": "m", "messages": [{"role": "user"}]}', 400, "max_tokens"),
        ("responses", b'{"model": "m"}', 400, "input"),
        ("embeddings", b"{}", 404, "/v1/embeddings"),
    ],
)
def test_what_a_provider_refuses_is_refused(
    met: FakeJudge, path: str, body: bytes, status: int, told: str
) -> None:
    found, answer = post(met, f"/v1/{path}", body)
    assert found == status
    assert told in answer["error"]["message"]
    assert met.count == 0


def test_all_calls_are_counted_and_few_are_kept(met: FakeJudge) -> None:
    connection = http.client.HTTPConnection(met.root_url.removeprefix("http://"), timeout=60)
    chunks = iter([_BODY[:10], _BODY[10:]])
    connection.request("POST", "/v1/chat/completions", chunks, encode_chunked=True)
    assert connection.getresponse().read()
    for _ in range(259):
        connection.request("POST", "/v1/chat/completions", _BODY)
        connection.getresponse().read()
    connection.close()
    assert (met.count, len(met.requests), met.requests[-1].index) == (260, 256, 259)


def test_nothing_is_left_when_it_stops_and_it_starts_again() -> None:
    before = set(threading.enumerate())
    with FakeJudge([_MET], faults=["hang"]) as fake:
        url = fake.root_url
        with pytest.raises(OSError, match="timed out"):
            post(fake, "/v1/chat/completions", _BODY, timeout=0.05)
    assert set(threading.enumerate()) <= before
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(url, timeout=60)
    fake.stop()
    with fake:
        assert said(fake) == _MET


@pytest.mark.slow
def test_other_programs_ask_it_by_the_environment(
    met: FakeJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their clients, told nothing else: each reads the environment when it is made."""
    for name, value in met.environment().items():
        monkeypatch.setenv(name, value)
    asked: Any = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
    # Imported here: it takes seconds, for those who only collect, too.
    openai, anthropic = (importlib.import_module(name) for name in ("openai", "anthropic"))
    with openai.OpenAI() as one, anthropic.Anthropic() as other:
        assert one.chat.completions.create(**asked).choices[0].message.content == _MET
        reply = other.messages.create(max_tokens=99, **asked)
        assert [part.text for part in reply.content] == [_MET]
        for client in (one, other):
            assert [model.id for model in client.models.list()] == ["fake-judge"]
    assert met.count == 2


def test_many_clients_at_once_are_each_answered_their_own() -> None:
    numbers = [str(number) for number in range(32)]
    with FakeJudge(lambda asked: asked.last_user) as fake, ThreadPoolExecutor(32) as threads:
        assert list(threads.map(partial(said, fake), numbers)) == numbers


def test_names_of_models_say_where_it_is_once_it_was_started() -> None:
    fake = FakeJudge(model="mine")
    for name in ("model", "anthropic_model", "base_url", "root_url"):
        with pytest.raises(InputError, match="was not started"):
            getattr(fake, name)
    with fake:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/v1", fake.base_url)
        assert fake.model == f"{fake.base_url}#mine"
        assert fake.anthropic_model == f"anthropic+{fake.root_url}#mine"


_MESSAGES: Json = [{"role": "user", "content": "x"}]


def judged(path: str, body: Json) -> tuple[FakeJudge, int, Any]:
    """What a judge that says "no JSON" makes of a request."""
    with FakeJudge(lambda asked: "no JSON") as fake:
        return fake, *post(fake, path, json.dumps(body).encode())


@each("choice", ["required", {"type": "function", "function": {"name": "second"}}])
def test_which_tool_is_forced(choice: Json) -> None:
    tools: Json = [
        {"type": "function", "function": {"name": name, "parameters": {"title": name}}}
        for name in ("first", "second")
    ]
    body: Json = {"model": "m", "messages": _MESSAGES, "tools": tools, "tool_choice": choice}
    fake, _, _ = judged("/v1/chat/completions", body)
    asked = fake.requests[0]
    assert asked.tool == ("first" if choice == "required" else "second")
    assert asked.schema == {"title": asked.tool}


@each(("choice", "tool"), [({"type": "auto"}, ""), ({"type": "tool", "name": "one"}, "one")])
def test_a_tool_is_not_called_with_what_is_no_object(choice: Json, tool: str) -> None:
    tools: Json = [{"name": "one", "input_schema": {}}]
    body: dict[str, Json] = {"model": "m", "max_tokens": 10, "messages": _MESSAGES}
    fake, _, reply = judged("/v1/messages", body | {"tools": tools, "tool_choice": choice})
    assert (fake.requests[0].tool, fake.requests[0].schema) == (tool, None)
    assert reply["stop_reason"] == "end_turn"
    assert [block["text"] for block in reply["content"]] == ["no JSON"]


_KEYS = st.sampled_from(["role", "content", "text", "type", "function", "name", "format"])
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=8,
)
_NAMES = ("model", "messages", "system", "tools", "tool_choice", "response_format", "max_tokens")


@given(body=st.fixed_dictionaries({}, optional=dict.fromkeys(_NAMES, _VALUES)) | _VALUES)
def test_any_body_is_read_or_refused(body: Any) -> None:
    for path in ("/v1/chat/completions", "/v1/messages"):
        _, status, _ = judged(path, body)
        assert status in (200, 400)
