"""`FakeJudge` as its users meet it: through the providers' own clients, and by hand."""

from __future__ import annotations

import asyncio
import importlib
import json
import subprocess
import sys
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


def ask_openai(fake: FakeJudge, text: str = "Hi", **more: Any) -> Any:
    with openai.OpenAI(base_url=fake.base_url, api_key="sk-test", max_retries=0) as client:
        create = cast("Callable[..., object]", client.chat.completions.create)
        return create(model="any", messages=[{"role": "user", "content": text}], **more)


def ask_anthropic(fake: FakeJudge, text: str = "Hi", **more: Any) -> Any:
    given: dict[str, Any] = {"max_tokens": 1000, **more}
    with anthropic.Anthropic(base_url=fake.root_url, api_key="sk-test", max_retries=0) as client:
        create = cast("Callable[..., object]", client.messages.create)
        return create(model="any", messages=[{"role": "user", "content": text}], **given)


def post(fake: FakeJudge, path: str, body: bytes, **headers: str) -> tuple[int, Any]:
    request = urllib.request.Request(fake.root_url + path, body, headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


@pytest.fixture
def met() -> Iterator[FakeJudge]:
    with FakeJudge(lambda asked: _MET) as fake:
        yield fake


def test_openais_client_reads_a_reply_and_its_usage(met: FakeJudge) -> None:
    reply = ask_openai(met, "x" * 400)
    assert reply.choices[0].message.content == _MET
    assert reply.choices[0].finish_reason == "stop"
    assert (reply.model, reply.system_fingerprint) == ("any", "fp_fake")
    usage = reply.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (100, 5, 105)


def test_anthropics_client_reads_a_reply_and_its_usage(met: FakeJudge) -> None:
    reply = ask_anthropic(met, "x" * 400, system="y" * 40)
    assert reply.content[0].text == _MET
    assert (reply.stop_reason, reply.usage.input_tokens, reply.usage.output_tokens) == (
        "end_turn",
        110,
        5,
    )
    assert met.requests[0].system == "y" * 40


def test_a_schema_is_seen_in_both_forms(met: FakeJudge) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "v", "strict": True, "schema": _SCHEMA}}
    ask_openai(met, response_format=form)
    ask_anthropic(met, output_config={"format": {"type": "json_schema", "schema": _SCHEMA}})
    assert [asked.schema for asked in met.requests] == [_SCHEMA, _SCHEMA]
    assert [asked.protocol for asked in met.requests] == ["openai", "anthropic"]


def test_a_forced_tool_is_called_in_both_forms(met: FakeJudge) -> None:
    function = {"name": "verdict", "parameters": _SCHEMA}
    one = ask_openai(
        met,
        tools=[{"type": "function", "function": function}],
        tool_choice={"type": "function", "function": {"name": "verdict"}},
    )
    called = one.choices[0].message.tool_calls[0].function
    assert (called.name, called.arguments) == ("verdict", _MET)
    other = ask_anthropic(
        met,
        tools=[{"name": "verdict", "input_schema": _SCHEMA}],
        tool_choice={"type": "tool", "name": "verdict"},
    )
    assert (other.stop_reason, other.content[0].name) == ("tool_use", "verdict")
    assert other.content[0].input == {"verdict": "MET"}
    assert [asked.tool for asked in met.requests] == ["verdict", "verdict"]


def test_a_tool_that_is_not_there_cannot_be_forced(met: FakeJudge) -> None:
    with pytest.raises(openai.BadRequestError, match="tool_choice"):
        ask_openai(met, tool_choice={"type": "function", "function": {"name": "verdict"}})


def test_parts_are_read(met: FakeJudge) -> None:
    with openai.OpenAI(base_url=met.base_url, api_key="k", max_retries=0) as client:
        parts: Any = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
        reply = client.chat.completions.create(
            model="any",
            messages=[{"role": "developer", "content": "S"}, {"role": "user", "content": parts}],
        )
    assert reply.choices[0].message.content == _MET
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
        assert post_status(fake) == "broken"
        assert ask_openai(fake).choices[0].message.content == "one"
        assert ask_openai(fake).choices[0].finish_reason == "length"
        assert ask_openai(fake).choices[0].message.content == "two"


def post_status(fake: FakeJudge) -> str:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}]}).encode()
    try:
        post(fake, "/v1/chat/completions", body)
    except ValueError:
        return "broken"
    return "whole"


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


@pytest.mark.parametrize("kind", ["plain", "coroutine"])
def test_a_failing_function_is_told_and_not_tried_again(kind: str) -> None:
    def plain(asked: Asked) -> Json:
        raise KeyError(asked.last_user)

    async def coroutine(asked: Asked) -> Json:
        raise KeyError(asked.last_user)

    with (
        FakeJudge(plain if kind == "plain" else coroutine) as fake,
        pytest.raises(openai.BadRequestError, match="answer function failed: KeyError: 'Hi'"),
    ):
        ask_openai(fake)


@each(
    ("fault", "error"),
    [
        ("400", "BadRequestError"),
        ("401", "AuthenticationError"),
        ("402", "APIStatusError"),
        ("403", "PermissionDeniedError"),
        ("429", "RateLimitError"),
        ("500", "InternalServerError"),
        ("529", "InternalServerError"),
        ("quota", "RateLimitError"),
        ("reset", "APIConnectionError"),
    ],
)
def test_faults_are_the_clients_own_errors(fault: str, error: str) -> None:
    with FakeJudge(faults=[f"{fault}x2"]) as fake:
        with pytest.raises(getattr(openai, error)):
            ask_openai(fake)
        with pytest.raises(getattr(anthropic, error)):
            ask_anthropic(fake)
        assert fake.count == 2


def test_clients_try_again_after_what_they_are_told() -> None:
    plan = [Fault("429", retry_after_ms=1), Fault("529", retry_after=0), Fault("429")]
    with FakeJudge([_MET, _MET], faults=plan[:2]) as fake:
        with openai.OpenAI(base_url=fake.base_url, api_key="k", max_retries=2) as client:
            reply = client.chat.completions.create(
                model="any", messages=[{"role": "user", "content": "Hi"}]
            )
        assert reply.choices[0].message.content == _MET
        assert fake.count == 3


def test_a_script_of_texts_is_no_text() -> None:
    with pytest.raises(InputError, match="a script is a list"):
        FakeJudge("MET")


def test_models_are_listed_for_both_clients(met: FakeJudge) -> None:
    with openai.OpenAI(base_url=met.base_url, api_key="k", max_retries=0) as client:
        assert [model.id for model in client.models.list()] == ["fake-judge"]
    with anthropic.Anthropic(base_url=met.root_url, api_key="k", max_retries=0) as client:
        assert [model.id for model in client.models.list()] == ["fake-judge"]
    assert met.count == 0


@pytest.mark.parametrize(
    ("path", "body", "status", "told"),
    [
        ("/v1/chat/completions", b"{", 400, "JSON body"),
        ("/v1/chat/completions", b"[]", 400, "JSON object"),
        ("/v1/chat/completions", b'{"messages": []}', 400, "model"),
        ("/v1/chat/completions", b'{"model": "m", "messages": []}', 400, "message"),
        ("/v1/messages", b'{"model": "m", "messages": [{"role": "user"}]}', 400, "max_tokens"),
        ("/v1/embeddings", b"{}", 404, "/v1/embeddings"),
    ],
)
def test_what_a_provider_refuses_is_refused(
    met: FakeJudge, path: str, body: bytes, status: int, told: str
) -> None:
    found, answer = post(met, path, body)
    assert found == status
    assert told in answer["error"]["message"]


def test_a_chunked_body_is_read(met: FakeJudge) -> None:
    import http.client

    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}]}).encode()
    host = met.root_url.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=60)
    parts = iter([body[:10], body[10:]])
    connection.request("POST", "/v1/chat/completions", parts, encode_chunked=True)
    assert connection.getresponse().status == 200
    connection.close()


def test_all_calls_are_counted_and_few_are_kept(met: FakeJudge) -> None:
    import http.client

    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}]}).encode()
    connection = http.client.HTTPConnection(met.root_url.removeprefix("http://"), timeout=60)
    for _ in range(600):
        connection.request("POST", "/v1/chat/completions", body)
        connection.getresponse().read()
    connection.close()
    assert met.count == 600
    assert len(met.requests) == 256
    assert met.requests[-1].index == 599


def test_nothing_is_left_when_it_stops() -> None:
    before = set(threading.enumerate())
    with FakeJudge(faults=["hang"]) as fake:
        url = fake.root_url
        with (
            openai.OpenAI(base_url=fake.base_url, api_key="k", max_retries=0) as client,
            pytest.raises(openai.APITimeoutError),
        ):
            client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "x"}], timeout=0.05
            )
    assert set(threading.enumerate()) <= before
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(url, timeout=60)
    fake.stop()


def test_it_starts_again(met: FakeJudge) -> None:
    fake = FakeJudge([_MET, _MET])
    for _ in range(2):
        fake.start()
        assert ask_openai(fake).choices[0].message.content == _MET
        fake.stop()


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


def test_names_of_models_say_where_it_is() -> None:
    with FakeJudge(model="mine") as fake:
        assert fake.model == f"{fake.base_url}#mine"
        assert fake.anthropic_model == f"anthropic+{fake.root_url}#mine"


def test_it_needs_the_standard_library_alone() -> None:
    code = (
        "import sys, assay.testing\n"
        "print([m for m in ('aiohttp', 'pydantic', 'openai', 'anthropic') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_many_clients_at_once_are_each_answered_their_own(met: FakeJudge) -> None:
    def echo(asked: Asked) -> Json:
        return asked.last_user

    async def ask_all(fake: FakeJudge) -> list[str]:
        async with openai.AsyncOpenAI(base_url=fake.base_url, api_key="k") as client:

            async def ask(number: int) -> str:
                reply = await client.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": str(number)}]
                )
                return cast("str", reply.choices[0].message.content)

            return list(await asyncio.gather(*map(ask, range(64))))

    with FakeJudge(echo) as fake:
        assert asyncio.run(ask_all(fake)) == [str(number) for number in range(64)]


@each("name", ["model", "anthropic_model", "base_url", "root_url"])
def test_without_a_start_there_is_no_address(name: str) -> None:
    fake = FakeJudge()
    with pytest.raises(InputError, match="was not started"):
        getattr(fake, name)
    with fake:
        assert "127.0.0.1" in getattr(fake, name)
