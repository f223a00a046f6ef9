"""`FakeJudge` as its users meet it: through the providers' own clients, and by hand."""

from __future__ import annotations

import asyncio
import http.client
import importlib
import json
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

import pytest

from assay.errors import InputError
from assay.scoring.json_safe import Json
from assay.testing import Asked, FakeJudge, Fault
from tests.each import each
from tests.testing.asking import replied

if TYPE_CHECKING:
    import anthropic  # noqa: TC004 - imported by a fixture
    import openai  # noqa: TC004 - imported by a fixture


@pytest.fixture(autouse=True, scope="module")
def importing() -> None:
    """Seconds, for those who only collect, too."""
    for name in ("anthropic", "openai"):
        globals()[name] = importlib.import_module(name)


_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"verdict": {"type": "string", "enum": ["MET", "UNMET"]}},
    "required": ["verdict"],
    "additionalProperties": False,
}
_MET = '{"verdict": "MET"}'
_BODY = b'{"model": "m", "messages": [{"role": "user", "content": "x"}]}'


def ask_openai(fake: FakeJudge, text: str = "Hi", **more: Any) -> Any:
    with openai.OpenAI(base_url=fake.base_url, api_key="sk-test", max_retries=0) as client:
        create = cast("Callable[..., object]", client.chat.completions.create)
        return create(**{"model": "any", "messages": [{"role": "user", "content": text}], **more})


def ask_anthropic(fake: FakeJudge, text: str = "Hi", **more: Any) -> Any:
    given: dict[str, Any] = {"max_tokens": 1000, **more}
    with anthropic.Anthropic(base_url=fake.root_url, api_key="sk-test", max_retries=0) as client:
        create = cast("Callable[..., object]", client.messages.create)
        return create(model="any", messages=[{"role": "user", "content": text}], **given)


@pytest.fixture
def met() -> Iterator[FakeJudge]:
    with FakeJudge(lambda asked: _MET) as fake:
        yield fake


def test_both_clients_read_a_reply_and_its_usage(met: FakeJudge) -> None:
    reply = ask_openai(met, "x" * 400)
    assert reply.choices[0].message.content == _MET
    assert reply.choices[0].finish_reason == "stop"
    assert (reply.model, reply.system_fingerprint) == ("any", "fp_fake")
    usage = reply.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (100, 5, 105)
    other = ask_anthropic(met, "x" * 400, system="y" * 40)
    assert (other.content[0].text, other.stop_reason) == (_MET, "end_turn")
    assert (other.usage.input_tokens, other.usage.output_tokens) == (110, 5)
    assert met.requests[1].system == "y" * 40


def test_a_schema_is_seen_in_both_forms(met: FakeJudge) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "v", "strict": True, "schema": _SCHEMA}}
    ask_openai(met, response_format=form)
    ask_anthropic(met, output_config={"format": {"type": "json_schema", "schema": _SCHEMA}})
    assert [asked.schema for asked in met.requests] == [_SCHEMA, _SCHEMA]
    assert [asked.protocol for asked in met.requests] == ["openai", "anthropic"]


def test_a_forced_tool_is_called_in_both_forms(met: FakeJudge) -> None:
    forced = {"type": "function", "function": {"name": "verdict"}}
    function = {"type": "function", "function": {"name": "verdict", "parameters": _SCHEMA}}
    one = ask_openai(met, tools=[function], tool_choice=forced)
    called = one.choices[0].message.tool_calls[0].function
    assert (called.name, called.arguments) == ("verdict", _MET)
    tool = {"name": "verdict", "input_schema": _SCHEMA}
    other = ask_anthropic(met, tools=[tool], tool_choice={"type": "tool", "name": "verdict"})
    assert (other.stop_reason, other.content[0].name) == ("tool_use", "verdict")
    assert other.content[0].input == {"verdict": "MET"}
    assert [asked.tool for asked in met.requests] == ["verdict", "verdict"]
    with pytest.raises(openai.BadRequestError, match="tool_choice"):
        ask_openai(met, tool_choice=forced)  # which is not there


def test_parts_are_read(met: FakeJudge) -> None:
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    messages = [{"role": "developer", "content": "S"}, {"role": "user", "content": parts}]
    assert ask_openai(met, messages=messages).choices[0].message.content == _MET
    assert (met.requests[0].system, met.requests[0].last_user) == ("S", "one\ntwo")


def test_more_than_max_tokens_is_cut(met: FakeJudge) -> None:
    assert ask_openai(met, max_tokens=2).choices[0].finish_reason == "length"
    reply = ask_anthropic(met, max_tokens=2)
    assert (reply.stop_reason, reply.content[0].text) == ("max_tokens", _MET[:8])


def test_a_longer_prompt_than_the_model_takes_is_refused() -> None:
    with FakeJudge(context_tokens=10) as fake:
        ask_openai(fake, "x" * 40)
        with pytest.raises(openai.BadRequestError) as told:
            ask_openai(fake, "x" * 41)
        assert told.value.code == "context_length_exceeded"
        with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
            ask_anthropic(fake, "x" * 41)
        _, refused = replied(
            f"{fake.root_url}/v1/responses", b'{"model": "m", "input": "%s"}' % (b"x" * 41)
        )
        assert refused["error"]["code"] == "context_length_exceeded"


def test_a_script_is_followed_in_order_and_ends() -> None:
    with FakeJudge(["one", {"verdict": "MET"}, Fault("401"), 3]) as fake:
        assert ask_openai(fake).choices[0].message.content == "one"
        assert ask_anthropic(fake).content[0].text == _MET
        with pytest.raises(openai.AuthenticationError):
            ask_openai(fake)
        assert ask_openai(fake).choices[0].message.content == "3"
        with pytest.raises(openai.BadRequestError, match="the script has 4 replies"):
            ask_openai(fake)
        assert fake.count == 5


def test_a_fault_takes_nothing_off_the_script() -> None:
    with FakeJudge(["one", "two"], faults=["500", "truncated", None, "length"]) as fake:
        with pytest.raises(openai.InternalServerError):
            ask_openai(fake)
        with pytest.raises(json.JSONDecodeError):
            replied(f"{fake.root_url}/v1/chat/completions", _BODY)
        assert ask_openai(fake).choices[0].message.content == "one"
        assert ask_openai(fake).choices[0].finish_reason == "length"
        assert ask_openai(fake).choices[0].message.content == "two"


def test_a_function_sees_what_was_asked_and_no_key() -> None:
    seen: list[Asked] = []

    def answer(asked: Asked) -> Json:
        seen.append(asked)
        return {"turn": asked.index}

    with FakeJudge(answer) as fake:
        ask_openai(fake, "Hi", temperature=0.5)
        assert ask_anthropic(fake).content[0].text == '{"turn": 1}'
    assert (seen[0].last_user, seen[0].temperature, seen[0].model) == ("Hi", 0.5, "any")
    assert seen[0].headers["authorization"] == "[hidden]"
    assert "sk-test" not in repr(seen)


def test_a_coroutine_function_answers() -> None:
    async def answer(asked: Asked) -> Json:
        await asyncio.sleep(0)
        return asked.last_user.upper()

    with FakeJudge(answer) as fake:
        assert ask_openai(fake, "abc").choices[0].message.content == "ABC"


def test_clients_try_again_after_what_they_are_told() -> None:
    plan = [Fault("429", retry_after_ms=1), Fault("529", retry_after_ms=1)]
    with (
        FakeJudge([_MET, _MET], faults=plan) as fake,
        openai.OpenAI(base_url=fake.base_url, api_key="k", max_retries=2) as client,
    ):
        reply = client.chat.completions.create(
            model="any", messages=[{"role": "user", "content": "Hi"}]
        )
        assert reply.choices[0].message.content == _MET
        assert fake.count == 3


def test_models_are_listed_for_both_clients(met: FakeJudge) -> None:
    with openai.OpenAI(base_url=met.base_url, api_key="k", max_retries=0) as client:
        assert [model.id for model in client.models.list()] == ["fake-judge"]
    with anthropic.Anthropic(base_url=met.root_url, api_key="k", max_retries=0) as client:
        assert [model.id for model in client.models.list()] == ["fake-judge"]
    assert met.count == 0


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
    found, answer = replied(f"{met.root_url}/v1/{path}", body)
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
        with pytest.raises(openai.APITimeoutError):
            ask_openai(fake, timeout=0.05)
    assert set(threading.enumerate()) <= before
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(url, timeout=60)
    fake.stop()
    with fake:
        assert ask_openai(fake).choices[0].message.content == _MET


def test_other_programs_ask_it_by_the_environment(
    met: FakeJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their clients, told nothing else: each reads the environment when it is made."""
    for name, value in met.environment().items():
        monkeypatch.setenv(name, value)
    with openai.OpenAI() as one, anthropic.Anthropic() as other:
        said = one.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
        assert said.choices[0].message.content == _MET
        reply = other.messages.create(
            model="m", max_tokens=99, messages=[{"role": "user", "content": "x"}]
        )
        assert [part.text for part in reply.content if part.type == "text"] == [_MET]


def test_many_clients_at_once_are_each_answered_their_own() -> None:
    async def ask_all(fake: FakeJudge) -> list[str]:
        async with openai.AsyncOpenAI(base_url=fake.base_url, api_key="k") as client:

            async def ask(number: int) -> str:
                reply = await client.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": str(number)}]
                )
                return cast("str", reply.choices[0].message.content)

            return list(await asyncio.gather(*map(ask, range(32))))

    with FakeJudge(lambda asked: asked.last_user) as fake:
        assert asyncio.run(ask_all(fake)) == [str(number) for number in range(32)]


def test_names_of_models_say_where_it_is_once_it_was_started() -> None:
    fake = FakeJudge(model="mine")
    for name in ("model", "anthropic_model", "base_url", "root_url"):
        with pytest.raises(InputError, match="was not started"):
            getattr(fake, name)
    with fake:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/v1", fake.base_url)
        assert fake.model == f"{fake.base_url}#mine"
        assert fake.anthropic_model == f"anthropic+{fake.root_url}#mine"
