"""The four protocols at a gateway, whole and streamed, in front of a model of either protocol.

The libraries of providers are imported where they are used: that takes seconds of every worker.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from assay.conversation.protocols import codec_of
from assay.conversation.turns import Conversation, Thought
from assay.gateway import Allowance, Gateway
from assay.models import ModelClient, ModelSettings
from assay.models.settings import ModelEntry
from assay.scoring.json_safe import Json
from assay.testing import FakeModel, Fault, calls, says, through_shell
from assay.types.trace import AgentStep, Step, ToolStep
from tests.each import each
from tests.protocol_bodies import serving

_SCHEMA: Any = {
    "type": "object",
    "properties": {"command": {"type": "string"}},
    "required": ["command"],
}
_LINES = ["ls", "cat a.py"]


def _openai(gateway: Gateway) -> Any:
    import openai

    return openai.AsyncOpenAI(
        base_url=gateway.openai_url,
        api_key=gateway.token,
        max_retries=0,
        http_client=openai.DefaultAsyncHttpxClient(verify=False),
    )


def _anthropic(gateway: Gateway) -> Any:
    import anthropic

    return anthropic.AsyncAnthropic(
        base_url=gateway.anthropic_url,
        api_key=gateway.token,
        max_retries=0,
        http_client=anthropic.DefaultAsyncHttpxClient(verify=False),
    )


@asynccontextmanager
async def _google(gateway: Gateway) -> AsyncGenerator[Any]:
    from google import genai

    async with httpx.AsyncClient(verify=False) as http:
        options: Any = {
            "base_url": gateway.anthropic_url,
            "retry_options": {"attempts": 1},
            "httpx_async_client": http,
        }
        async with genai.Client(api_key=gateway.token, http_options=options).aio as client:
            yield client


async def _chat(gateway: Gateway, *, streamed: bool) -> str:
    tools: Any = [{"type": "function", "function": {"name": "bash", "parameters": _SCHEMA}}]
    messages: Any = [{"role": "user", "content": "look"}]
    async with _openai(gateway) as client:
        while True:
            if streamed:
                more = client.chat.completions.stream(model="x", messages=messages, tools=tools)
                async with more as events:
                    reply: Any = await events.get_final_completion()
            else:
                reply = await client.chat.completions.create(
                    model="x", messages=messages, tools=tools
                )
            said = reply.choices[0].message
            messages.append(said.model_dump(exclude_none=True))
            if not said.tool_calls:
                return said.content
            messages += [
                {"role": "tool", "tool_call_id": call.id, "content": "fine"}
                for call in said.tool_calls
            ]


async def _responses(gateway: Gateway, *, streamed: bool) -> str:
    tools: Any = [{"type": "function", "name": "bash", "parameters": _SCHEMA}]
    items: Any = [{"role": "user", "content": "look"}]
    async with _openai(gateway) as client:
        while True:
            if streamed:
                async with client.responses.stream(model="x", input=items, tools=tools) as events:
                    reply: Any = await events.get_final_response()
            else:
                reply = await client.responses.create(model="x", input=items, tools=tools)
            items += [item.model_dump(exclude_none=True) for item in reply.output]
            called = [item for item in reply.output if item.type == "function_call"]
            if not called:
                return reply.output_text
            items += [
                {"type": "function_call_output", "call_id": call.call_id, "output": "fine"}
                for call in called
            ]


async def _messages(gateway: Gateway, *, streamed: bool) -> str:
    tools: Any = [{"name": "bash", "input_schema": _SCHEMA}]
    messages: Any = [{"role": "user", "content": "look"}]
    asked: Any = {"model": "x", "max_tokens": 500, "tools": tools}
    async with _anthropic(gateway) as client:
        while True:
            if streamed:
                async with client.messages.stream(messages=messages, **asked) as events:
                    reply: Any = await events.get_final_message()
            else:
                reply = await client.messages.create(messages=messages, **asked)
            blocks = [block.model_dump(exclude_none=True) for block in reply.content]
            messages.append({"role": "assistant", "content": blocks})
            called = [block for block in reply.content if block.type == "tool_use"]
            if not called:
                return reply.content[-1].text
            results = [
                {"type": "tool_result", "tool_use_id": call.id, "content": "fine"}
                for call in called
            ]
            messages.append({"role": "user", "content": results})


async def _contents(gateway: Gateway, *, streamed: bool) -> str:
    from google.genai import types as google_types

    types: Any = google_types
    shell = types.FunctionDeclaration(name="bash", parameters_json_schema=_SCHEMA)
    asked: Any = {
        "model": "x",
        "config": types.GenerateContentConfig(
            tools=[types.Tool(function_declarations=[shell])],
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        ),
    }
    contents: Any = [types.Content(role="user", parts=[types.Part(text="look")])]
    async with _google(gateway) as client:
        while True:
            parts: Any = []
            if streamed:
                async for chunk in await client.models.generate_content_stream(
                    contents=contents, **asked
                ):
                    parts += chunk.candidates[0].content.parts
            else:
                reply = await client.models.generate_content(contents=contents, **asked)
                parts = reply.candidates[0].content.parts
            contents.append(types.Content(role="model", parts=parts))
            called = [part.function_call for part in parts if part.function_call]
            if not called:
                return "".join(part.text for part in parts)
            # As its clients do: ids are optional in this protocol.
            results = [
                types.Part.from_function_response(name=call.name, response={"output": "fine"})
                for call in called
            ]
            contents.append(types.Content(role="user", parts=results))


_AGENTS: dict[str, Callable[..., Awaitable[str]]] = {
    "chat": _chat, "responses": _responses, "messages": _messages,
    "contents": _contents,
}  # fmt: skip


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


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("upstream", ["openai", "anthropic"])
@pytest.mark.parametrize("protocol", _AGENTS)
async def test_every_protocol_gives_the_same_trace(
    protocol: str, upstream: str, *, streamed: bool
) -> None:
    with FakeModel(through_shell(*_LINES)) as fake:
        model = fake.model if upstream == "openai" else fake.anthropic_model
        async with Gateway(model, client=ModelClient(ModelSettings())) as gateway:
            assert await _AGENTS[protocol](gateway, streamed=streamed) == "Done."
            found = gateway.recorded()

    assert _told(found.trace.steps) == [
        ("is told", "look"),
        ("says", "None", "ls"),
        ("does", "ls", "fine"),
        ("says", "None", "cat a.py"),
        ("does", "cat a.py", "fine"),
        ("says", "Done."),
    ]
    assert found.usage.prompt_tokens
    assert found.usage.completion_tokens
    assert found.flags == ()


async def test_an_endpoint_that_speaks_responses_is_asked_in_them() -> None:
    with FakeModel(through_shell(*_LINES)) as fake:
        entry = ModelEntry(base_url=fake.base_url, responses=True)
        settings = ModelSettings(endpoints={"mine": entry})
        async with Gateway("mine", client=ModelClient(settings)) as gateway:
            assert await _responses(gateway, streamed=True) == "Done."

        assert {asked.protocol for asked in fake.requests} == {"responses"}


@each("protocol", _AGENTS)
async def test_a_refusal_has_the_protocols_own_form(protocol: str) -> None:
    import anthropic
    import openai
    from google.genai import errors as google_errors

    with FakeModel(through_shell(*_LINES)) as fake:
        allowance = Allowance(calls=1)
        async with Gateway(fake.model, allowance=allowance, client=ModelClient()) as gateway:
            refused = (
                openai.PermissionDeniedError,
                anthropic.PermissionDeniedError,
                google_errors.ClientError,
            )
            with pytest.raises(refused, match="the limit of 1 model calls is reached"):
                await _AGENTS[protocol](gateway, streamed=False)
            assert gateway.stop == "max_steps"


async def test_a_reply_is_shortened_to_the_tokens_that_are_left() -> None:
    asked: list[Conversation] = []

    def answer(one: Conversation) -> str:
        asked.append(one)
        return "Done."

    with FakeModel(answer) as fake:
        gateway = Gateway(
            fake.anthropic_model, allowance=Allowance(tokens=200), client=ModelClient()
        )
        async with gateway:
            await _messages(gateway, streamed=False)

    assert 0 < (asked[0].max_tokens or 0) < 200


async def test_token_ids_and_log_probabilities_are_kept() -> None:
    with FakeModel(["four words of it"]) as fake:
        async with Gateway(fake.model, client=ModelClient()) as gateway:
            async with _openai(gateway) as client:
                await client.chat.completions.create(
                    model="x", messages=[{"role": "user", "content": "look"}], logprobs=True
                )
            step = gateway.recorded().trace.steps[-1]

    assert isinstance(step, AgentStep)
    assert step.sample is not None
    assert len(step.sample.output_logprobs) == 4


@each("protocol", _AGENTS)
async def test_a_fault_of_the_model_is_told_in_the_protocols_own_form(protocol: str) -> None:
    import anthropic
    import openai
    from google.genai import errors as google_errors

    with FakeModel(through_shell(*_LINES), faults=[Fault("401")]) as fake:
        client = ModelClient(ModelSettings(max_attempts=1))
        async with Gateway(fake.model, client=client) as gateway:
            failed = (
                openai.InternalServerError,
                anthropic.InternalServerError,
                google_errors.ServerError,
            )
            with pytest.raises(failed, match=r"the model gave no reply \(auth\)"):
                await _AGENTS[protocol](gateway, streamed=False)
            assert gateway.failure is not None


async def test_who_counts_tokens_beforehand_is_told_about_how_many() -> None:
    with FakeModel(["yes"]) as fake:
        gateway = Gateway(fake.model, client=ModelClient())
        async with gateway, _anthropic(gateway) as client:
            counted = await client.messages.count_tokens(
                model="x", messages=[{"role": "user", "content": "x" * 400}]
            )
            listed = [model.id async for model in client.models.list()]

    assert counted.input_tokens == 100
    assert listed == [fake.model]


def _acts(request: Any) -> list[Any]:
    """The calls that a request of Google's tells of."""
    parts = (part for content in request["contents"] for part in content["parts"])
    return [part for part in parts if "functionCall" in part]


async def _without_ids(gateway: Gateway) -> None:
    """Ask as clients do that know of no ids."""
    contents: Any = [{"role": "user", "parts": [{"text": "look"}]}]
    url = f"{gateway.anthropic_url}/v1beta/models/m:generateContent?key={gateway.token}"
    async with httpx.AsyncClient() as http:
        while True:
            reply: Any = (await http.post(url, json={"contents": contents})).json()
            said: Any = reply["candidates"][0]["content"]
            contents.append(said)
            if not (called := _acts({"contents": [said]})):
                return
            for part in called:
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
            assert await _contents(gateway, streamed=True) == "Done."
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


@each("protocol", ["chat", "responses", "messages"])
async def test_who_asks_google_otherwise_is_answered_in_openais_form(protocol: str) -> None:
    with FakeModel(through_shell(*_LINES)) as fake:
        async with Gateway(_at_googles(fake), client=ModelClient()) as gateway:
            assert await _AGENTS[protocol](gateway, streamed=True) == "Done."

        assert {asked.protocol for asked in fake.requests} == {"openai"}


async def test_a_reply_of_googles_is_shortened_to_the_tokens_that_are_left() -> None:
    with FakeModel(["Done."]) as fake:
        allowance = Allowance(tokens=200)
        async with Gateway(_at_googles(fake), allowance=allowance, client=ModelClient()) as gateway:
            await _contents(gateway, streamed=False)
        (asked,) = fake.conversations

    assert 0 < (asked.max_tokens or 0) < 200


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
            if names == "call ids":
                assert await _contents(gateway, streamed=True) == "Done."
            else:
                await _without_ids(gateway)
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


@pytest.mark.parametrize("given", ["header", "query", "none"])
async def test_googles_clients_give_the_token_either_way(given: str) -> None:
    with FakeModel(["Done."]) as fake:
        async with (
            Gateway(fake.model, client=ModelClient()) as gateway,
            httpx.AsyncClient() as http,
        ):
            headers = {"x-goog-api-key": gateway.token} if given == "header" else {}
            query = {"key": gateway.token} if given == "query" else {}
            url = f"{gateway.anthropic_url}/v1beta/models/m"
            contents = {"contents": [{"parts": [{"text": "x" * 400}]}]}

            async def post(method: str) -> httpx.Response:
                where = f"{url}:{method}"
                return await http.post(where, json=contents, headers=headers, params=query)

            answered = await post("generateContent")
            counted = await post("countTokens")
            url = url.replace("/v1beta/", "/v1/")
            unknown = await post("embedContent")
            listed = await http.get(url.removesuffix("/m"), headers=headers, params=query)
            denials = gateway.denials

    if given == "none":
        assert denials == 4
        assert answered.json()["error"]["status"] == "UNAUTHENTICATED"
        assert answered.status_code == counted.status_code == listed.status_code == 401
        return
    assert answered.json()["candidates"][0]["content"]["parts"] == [{"text": "Done."}]
    assert counted.json() == {"totalTokens": 100}
    assert (unknown.status_code, unknown.json()["error"]["status"]) == (404, "NOT_FOUND")
    assert listed.json()["models"][0]["name"] == f"models/{fake.model}"
