"""The four protocols at a gateway, whole and streamed, in front of a model of either protocol.

The agent here writes and reads each with its codec, of which the providers' own clients are the
oracles in `tests/conversation`; agents of others are in `tests/real`.
"""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import pytest

from assay.conversation.protocols import Protocol, codec_of
from assay.conversation.turns import Conversation, Result, Text, Thought, Tool, Turn
from assay.gateway import Allowance, Gateway
from assay.models import ModelClient, ModelSettings
from assay.models.settings import ModelEntry
from assay.scoring.json_safe import Json
from assay.testing import FakeModel, Fault, calls, says, through_shell
from assay.types.trace import AgentStep, Step, ToolStep
from tests.each import each
from tests.gateway.asking import RefusedError, ask
from tests.protocol_bodies import serving

_SHELL = Tool(
    name="bash",
    schema={
        "type": "object",
        "properties": {"command": {"type": "string"}},
        "required": ["command"],
    },
)
_LINES = ["ls", "cat a.py"]
_PROTOCOLS: list[Protocol] = ["chat", "responses", "anthropic", "google"]


async def _work(gateway: Gateway, protocol: Protocol, *, streamed: bool = False) -> str:
    """An agent that does what it is told until there is nothing more to do."""
    turns = [Turn.of("user", "look")]
    while True:
        asked = Conversation(
            model="x", turns=tuple(turns), tools=(_SHELL,), max_tokens=500, is_streamed=streamed
        )
        said = (await ask(gateway, protocol, asked)).turn
        if not said.calls:
            return said.text
        turns += [said, Turn("tool", tuple(Result(one.id, (Text("fine"),)) for one in said.calls))]


def _told(steps: Any) -> list[tuple[str, ...]]:
    """What a trace tells, without what differs from run to run."""
    told: list[tuple[str, ...]] = []
    for step in steps:
        if isinstance(step, AgentStep):
            calls = [str(call.arguments["command"]) for call in step.tool_calls]
            told.append(("says", str(step.content), *calls))
        elif isinstance(step, ToolStep):
            assert step.result is not None
            told.append(("does", str(step.call.arguments["command"]), str(step.result.content)))
        elif isinstance(step, Step):
            shown: Any = step.messages
            told.append(("is told", *(str(message["content"]) for message in shown)))
    return told


@each("streamed", [False, True])
@each("upstream", ["openai", "anthropic"])
@each("protocol", _PROTOCOLS)
async def test_every_protocol_gives_the_same_trace(
    protocol: Protocol, upstream: str, *, streamed: bool
) -> None:
    with FakeModel(through_shell(*_LINES)) as fake:
        model = fake.model if upstream == "openai" else fake.anthropic_model
        async with Gateway(model, client=ModelClient(ModelSettings())) as gateway:
            assert await _work(gateway, protocol, streamed=streamed) == "Done."
            found = gateway.recorded()

    assert _told(found.trace.steps) == [
        ("is told", "look"),
        ("says", "None", "ls"),
        ("does", "ls", "fine"),
        ("says", "None", "cat a.py"),
        ("does", "cat a.py", "fine"),
        ("says", "Done."),
    ]
    assert found.usage.llm_call_count == 3
    assert found.usage.prompt_tokens
    assert found.usage.completion_tokens
    assert found.flags == ()


async def test_an_endpoint_that_speaks_responses_is_asked_in_them() -> None:
    with FakeModel(through_shell(*_LINES)) as fake:
        entry = ModelEntry(base_url=fake.base_url, responses=True)
        settings = ModelSettings(endpoints={"mine": entry})
        async with Gateway("mine", client=ModelClient(settings)) as gateway:
            assert await _work(gateway, "responses", streamed=True) == "Done."

        assert {asked.protocol for asked in fake.requests} == {"responses"}


_FORMS: dict[Protocol, set[str]] = {
    "chat": {"message", "type", "param", "code"},
    "responses": {"message", "type", "param", "code"},
    "anthropic": {"message", "type"},
    "google": {"message", "code", "status"},
}


@each("protocol", _PROTOCOLS)
async def test_a_refusal_and_a_fault_of_the_model_have_the_protocols_own_form(
    protocol: Protocol,
) -> None:
    with FakeModel(through_shell(*_LINES), faults=[Fault("401", at=1)]) as fake:
        client, allowance = ModelClient(ModelSettings(max_attempts=1)), Allowance(calls=2)
        async with Gateway(fake.model, allowance=allowance, client=client) as gateway:
            with pytest.raises(RefusedError, match=r"the model gave no reply \(auth\)") as failed:
                await _work(gateway, protocol)
            assert gateway.failure is not None
            with pytest.raises(RefusedError, match="the limit of 2 model calls is reached") as past:
                await _work(gateway, protocol)
            assert gateway.stop == "max_steps"
    assert (failed.value.status, past.value.status) == (503, 403)
    assert failed.value.told.keys() == past.value.told.keys() == _FORMS[protocol]


async def test_a_reply_is_shortened_to_the_tokens_that_are_left() -> None:
    with FakeModel(["Done."] * 2) as fake:
        models: dict[Protocol, str] = {
            "anthropic": fake.anthropic_model,
            "google": _at_googles(fake),
        }
        for protocol, model in models.items():
            allowance = Allowance(tokens=200)
            async with Gateway(model, allowance=allowance, client=ModelClient()) as gateway:
                await _work(gateway, protocol)
        assert [0 < (one.max_tokens or 0) < 200 for one in fake.conversations] == [True] * 2


async def test_token_ids_and_log_probabilities_are_kept() -> None:
    with FakeModel(["four words of it"]) as fake:
        async with Gateway(fake.model, client=ModelClient()) as gateway:
            turns = (Turn.of("user", "look"),)
            await ask(gateway, "chat", Conversation(model="x", turns=turns, wants_logprobs=True))
            step = gateway.recorded().trace.steps[-1]

    assert isinstance(step, AgentStep)
    assert step.sample is not None
    assert len(step.sample.output_logprobs) == 4


async def test_who_counts_tokens_beforehand_is_told_about_how_many() -> None:
    said = [{"role": "user", "content": "x" * 400}]
    with FakeModel(["yes"]) as fake:
        gateway = Gateway(fake.model, client=ModelClient())
        headers = {"x-api-key": gateway.token, "anthropic-version": "2023-06-01"}
        async with gateway, aiohttp.ClientSession(headers=headers) as session:
            url = f"{gateway.anthropic_url}/v1"
            body = {"model": "x", "messages": said}
            async with session.post(f"{url}/messages/count_tokens", json=body) as response:
                assert await response.json() == {"input_tokens": 100}
            async with session.get(f"{url}/models") as response:
                listed = await response.json()

    assert [model["id"] for model in listed["data"]] == [fake.model]
    assert listed["has_more"] is False


def _acts(request: Any) -> list[Any]:
    """The calls that a request of Google's tells of."""
    parts = (part for content in request["contents"] for part in content["parts"])
    return [part for part in parts if "functionCall" in part]


async def _without_ids(gateway: Gateway, *, keeps: bool) -> None:
    """Ask as Google's clients do, whose results have no ids, or as those that know of none."""
    contents: Any = [{"role": "user", "parts": [{"text": "look"}]}]
    url = f"{gateway.anthropic_url}/v1beta/models/m:generateContent?key={gateway.token}"
    async with aiohttp.ClientSession() as session:
        while True:
            async with session.post(url, json={"contents": contents}) as response:
                said: Any = (await response.json())["candidates"][0]["content"]
            contents.append(said)
            if not (called := _acts({"contents": [said]})):
                return
            for part in called:
                if not keeps:
                    part["functionCall"].pop("id", None)
            answer = {"name": "bash", "response": {"output": "fine"}}
            contents.append({"role": "user", "parts": [{"functionResponse": answer}] * len(called)})


def _at_googles(fake: FakeModel) -> str:
    return f"{fake.root_url}/v1beta/openai#{fake.model_name}"


async def test_googles_own_models_are_asked_as_the_agent_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ASSAY_MODEL_KEY", "k-secret")
    thoughtful = says(Thought("", "c2ln", "behind", "google"), calls("bash", command="ls"))
    with FakeModel([thoughtful, "Done."]) as fake:
        async with Gateway(_at_googles(fake), client=ModelClient()) as gateway:
            assert await _work(gateway, "google", streamed=True) == "Done."
            found = gateway.recorded()
        first, second = fake.requests

    assert {first.protocol, second.protocol} == {"google"}
    assert (first.model, first.body["stream"]) == ("fake-model", False)
    # Google's servers take a key in `Authorization` for something else.
    assert "x-goog-api-key" in first.headers
    assert "authorization" not in first.headers
    assert gateway.token not in str(fake.requests)
    # Without its seal its newer models refuse what follows a call.
    assert '"thoughtSignature": "c2ln"' in json.dumps(second.body)
    assert [told[0] for told in _told(found.trace.steps)] == ["is told", "says", "does", "says"]


@each("protocol", ["chat", "responses", "anthropic"])
async def test_who_asks_google_otherwise_is_answered_in_openais_form(protocol: Protocol) -> None:
    with FakeModel(through_shell(*_LINES)) as fake:
        async with Gateway(_at_googles(fake), client=ModelClient()) as gateway:
            assert await _work(gateway, protocol, streamed=True) == "Done."

        assert {asked.protocol for asked in fake.requests} == {"openai"}


@each("names", ["call ids", "nothing"])
async def test_calls_without_ids_are_joined_to_their_results(names: str) -> None:
    def act(command: str) -> Json:
        return {"functionCall": {"name": "bash", "args": {"command": command}}}

    def reply(asked: Json) -> dict[str, Json]:
        is_begun = "functionResponse" in json.dumps(asked)
        parts: list[Json] = [{"text": "Done."}] if is_begun else [act("ls"), act("cat a.py")]
        content: Json = {"role": "model", "parts": parts}
        return {"candidates": [{"content": content, "finishReason": "STOP"}], "responseId": "r"}

    with serving(codec_of("google"), reply) as served:
        model = f"{served.root_url}/v1beta/openai#m"
        async with Gateway(model, client=ModelClient()) as gateway:
            await _without_ids(gateway, keeps=names == "call ids")
            steps = gateway.recorded().trace.steps

    # Given ids here, so that who tells of a call by its id tells of this one.
    assert [call["functionCall"].get("id", "") for call in _acts(served.requests[-1])] == (
        ["bash:r:0", "bash:r:1"] if names == "call ids" else ["", ""]
    )
    assert _told(steps) == [
        ("is told", "look"),
        ("says", "None", "ls", "cat a.py"),
        ("does", "ls", "fine"),
        ("does", "cat a.py", "fine"),
        ("says", "Done."),
    ]


@each("given", ["header", "query", "none"])
async def test_googles_clients_give_the_token_either_way(given: str) -> None:
    contents = {"contents": [{"parts": [{"text": "x" * 400}]}]}
    with FakeModel(["Done."]) as fake:
        async with Gateway(fake.model, client=ModelClient()) as gateway:
            headers = {"x-goog-api-key": gateway.token} if given == "header" else {}
            query = {"key": gateway.token} if given == "query" else {}

            async with aiohttp.ClientSession(headers=headers) as session:

                async def told(method: str, path: str, **more: Any) -> tuple[int, Any]:
                    url = gateway.anthropic_url + path
                    async with session.request(method, url, params=query, **more) as response:
                        return response.status, await response.json()

                answered = await told("POST", "/v1beta/models/m:generateContent", json=contents)
                counted = await told("POST", "/v1beta/models/m:countTokens", json=contents)
                unknown = await told("POST", "/v1/models/m:embedContent", json=contents)
                listed = await told("GET", "/v1/models")
            denials = gateway.denials

    if given == "none":
        assert denials == 4
        assert answered[1]["error"]["status"] == "UNAUTHENTICATED"
        assert answered[0] == counted[0] == listed[0] == 401
        return
    assert answered[1]["candidates"][0]["content"]["parts"] == [{"text": "Done."}]
    assert counted[1] == {"totalTokens": 100}
    assert (unknown[0], unknown[1]["error"]["status"]) == (404, "NOT_FOUND")
    assert listed[1]["models"][0]["name"] == f"models/{fake.model}"
