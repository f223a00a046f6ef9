"""`ModelAgent` with a model on a real socket, and tools in a real sandbox."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pydantic
import pytest

from assay.agents import ModelAgent
from assay.agents import model as module
from assay.agents.tools import AgentTool, ToolOutcome, function_tool
from assay.conversation.turns import Call, Conversation, Image, Text, Thought, Tool
from assay.environment import Environment
from assay.errors import AgentError, AgentTimeoutError, InputError
from assay.gateway import Allowance, Gateway
from assay.models import ModelClient, ModelSettings, using
from assay.models.settings import ModelEntry
from assay.scoring.json_safe import Json
from assay.tasks.blocks import SimulatedUser
from assay.testing import FakeModel, calls, says
from assay.types.run import Run
from assay.types.submission import Workspace
from assay.types.trace import AgentStep, ToolStep
from tests.each import each
from tests.model_servers import Raw, Seen, error, scripted

_QUICK = ModelSettings(max_attempts=1, cache="off")


async def _work(
    agent: ModelAgent,
    script: Any,
    *,
    workspace: Path | None = None,
    prompt: Any = "Do it.",
    allowance: Allowance | None = None,
    faults: Any = None,
    protocol: str = "chat",
    **fake_options: Any,
) -> tuple[Run, FakeModel]:
    """A run of the agent against a model that answers by a script."""
    run = Run(prompt=prompt)
    if workspace is not None:
        run.workspace = Workspace(path=str(workspace))
    with FakeModel(script, faults=faults, **fake_options) as fake:
        client = ModelClient(_QUICK)
        models = {
            "chat": fake.model,
            "anthropic": fake.anthropic_model,
            "google": f"{fake.root_url}/v1beta/openai#{fake.model_name}",
        }
        async with Gateway(models[protocol], allowance=allowance, client=client) as gateway:
            run.gateway = gateway
            try:
                await agent(run)
            finally:
                run.gateway = None
                run.tokens = gateway.spent.tokens
    return run, fake


def _always(reply: object) -> Callable[[Conversation], object]:
    """A model that says one thing, whatever it is asked."""
    return lambda _: reply


def tool() -> str:
    return "fine"


def _turns(run: Run) -> list[AgentStep]:
    return [step for step in run.trace.steps if isinstance(step, AgentStep)]


def _tool_steps(run: Run) -> list[ToolStep]:
    return [step for step in run.trace.steps if isinstance(step, ToolStep)]


def _told(run: Run) -> list[Any]:
    """What each call was answered."""
    return [None if step.result is None else step.result.content for step in _tool_steps(run)]


_PROTOCOLS = each("protocol", ["chat", "anthropic", "google"])


@_PROTOCOLS
@pytest.mark.sandbox
async def test_a_model_works_on_files_until_it_says_that_it_is_done(
    tmp_path: Path, protocol: str
) -> None:
    script = [
        says("I write.", calls("write", path="a/b.txt", content="one\ntwo\n")),
        calls("edit", path="a/b.txt", old="two", new="three"),
        calls("bash", command="cat a/b.txt; exit 4"),
        "It is done.",
    ]
    run, fake = await _work(ModelAgent(), script, workspace=tmp_path, protocol=protocol)

    assert (tmp_path / "a/b.txt").read_text() == "one\nthree\n"
    assert (run.trace.content, run.trace.stop_reason) == ("It is done.", "done")
    assert _told(run)[2] == "one\nthree\n\n[exit status 4]"
    assert fake.conversations[-1].turns[-1].results[0].text == _told(run)[2]
    kinds = [step.TAG for step in run.trace.steps]
    assert kinds == ["step", "agent", "tool", "agent", "tool", "agent", "tool", "agent"]
    first = _turns(run)[0]
    assert (first.content, first.tool_calls[0].name, first.done) == ("I write.", "write", False)
    assert first.usage is not None
    assert first.usage.llm_call_count == 1


async def test_a_task_without_a_workspace_offers_no_tools_and_has_instructions_of_its_own() -> None:
    run, fake = await _work(ModelAgent(), ["42"])
    assert fake.conversations[0].tools == ()
    assert fake.conversations[0].system == ""
    assert [step.TAG for step in run.trace.steps] == ["agent"]
    assert run.trace.content == "42"

    run, fake = await _work(ModelAgent(system="Be brief."), ["Yes."])
    assert fake.conversations[0].system == "Be brief."
    assert run.trace.steps[0].messages == ({"role": "system", "content": "Be brief."},)


async def test_a_prompt_of_messages_keeps_its_roles_and_pictures() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    prompt = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "What is it?"}, picture]},
    ]
    _, fake = await _work(ModelAgent(), ["a dot"], prompt=prompt)
    asked = fake.conversations[0]
    assert asked.system == "Be brief."
    assert [part.TAG for part in asked.turns[-1].parts] == ["text", "image"]


async def test_functions_are_tools() -> None:
    async def weather(city: str, days: int = 1) -> dict[str, Any]:
        """The weather of a city."""
        return {"city": city, "days": days, "sun": True}

    def broken() -> str:
        raise RuntimeError("no such luck")

    script = [
        says(calls("weather", city="Oslo"), calls("weather", town="Oslo"), calls("broken")),
        "Sunny.",
    ]
    run, fake = await _work(ModelAgent(tools=[weather, broken]), script)
    told = _told(run)
    assert json.loads(told[0]) == {"city": "Oslo", "days": 1, "sun": True}
    assert '"city" is a required property' in told[1]
    assert told[2] == "error: RuntimeError: no such luck"
    assert [step.result.is_error for step in _tool_steps(run) if step.result] == [False, True, True]
    declared = fake.conversations[0].tools[0]
    assert (declared.name, declared.description) == ("weather", "The weather of a city.")
    assert declared.schema["required"] == ["city"]


async def test_a_tool_that_hangs_is_told_and_the_work_goes_on() -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    agent = ModelAgent(tools=[wait], tool_seconds=0.01)
    run, _ = await _work(agent, [calls("wait"), "Too slow."])
    assert _told(run) == ["error: it took longer than 0.01 s"]
    assert run.trace.content == "Too slow."


@each("bad", [calls("nothing"), calls("tool", number="x"), Call("", "tool", '{"a": ')])
async def test_calls_that_cannot_be_made_end_the_work_when_they_come_again(bad: Any) -> None:
    def tool(number: int = 1) -> str:
        return "fine"

    run, _ = await _work(ModelAgent(tools=[tool]), [bad, bad, "never said"])
    assert run.trace.stop_reason == "malformed_tool_call"
    assert len(_tool_steps(run)) == 2

    run, _ = await _work(ModelAgent(tools=[tool]), [bad, calls("tool"), bad, "said"])
    assert (run.trace.stop_reason, run.trace.content) == ("done", "said")


async def test_a_limit_of_steps_or_of_the_gateway_ends_the_work_and_not_the_run() -> None:
    run, fake = await _work(ModelAgent(tools=[tool], steps=3), _always(calls("tool")))
    assert (run.trace.stop_reason, fake.count) == ("max_steps", 3)

    agent = ModelAgent(tools=[tool])
    run, fake = await _work(agent, _always(calls("tool")), allowance=Allowance(calls=2))
    assert (run.trace.stop_reason, fake.count) == ("max_steps", 2)
    assert run.trace.steps[-1].error == "the limit of 2 model calls is reached"

    run, _ = await _work(agent, _always(calls("tool")), allowance=Allowance(tokens=2_000))
    assert run.trace.stop_reason == "length"


async def test_how_a_reply_ends_is_a_stop_reason() -> None:
    run, _ = await _work(ModelAgent(), ["The answer is for"], faults=["length"])
    assert run.trace.stop_reason == "length"
    run, _ = await _work(ModelAgent(), ["never said"], faults=["refusal"])
    assert _turns(run)[-1].refusal
    assert run.trace.stop_reason == "done"  # it has answered

    def tool() -> str:
        return "word " * 1_000

    run, _ = await _work(
        ModelAgent(tools=[tool]), _always(says("On.", calls("tool"))), context_tokens=3_000
    )
    assert (run.trace.stop_reason, run.trace.content) == ("length", "On.")


async def test_a_model_that_cannot_be_asked_gives_no_reward() -> None:
    with pytest.raises(AgentError, match="its model gave no reply"):
        await _work(ModelAgent(), ["never"], faults=["500"])


async def test_the_time_of_the_agent_is_limited() -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    run = Run(prompt="wait")
    with FakeModel([says("First.", calls("wait"))]) as fake, using(ModelClient(_QUICK)):
        agent = ModelAgent(model=fake.model, tools=[wait], seconds=0.3)
        with pytest.raises(AgentTimeoutError, match=r"longer than 0\.3 s"):
            await agent(run)
    assert run.trace.content == "First."
    assert _told(run) == [None]  # it never finished
    assert run.tokens


@each("protocol", ["anthropic", "google"])
async def test_what_a_model_thinks_is_recorded_and_sent_back(protocol: str) -> None:
    script = [says(Thought("I need the tool.", "sealed"), calls("tool")), "Done."]
    run, fake = await _work(ModelAgent(tools=[tool]), script, protocol=protocol)
    assert {asked.protocol for asked in fake.requests} == {protocol}
    assert _turns(run)[0].reasoning == "I need the tool."
    sent = fake.conversations[1].turns[-2].parts[0]
    assert isinstance(sent, Thought)
    assert sent.sealed == "sealed"


async def test_anthropic_is_told_to_keep_what_is_read_again() -> None:
    _, fake = await _work(ModelAgent(tools=[tool]), [calls("tool"), "Done."], protocol="anthropic")
    kept: list[Any] = [asked.body["messages"] for asked in fake.requests]
    assert [messages[-1]["content"][-1]["cache_control"] for messages in kept] == [
        {"type": "ephemeral"},
        {"type": "ephemeral"},
    ]
    assert str(kept[1]).count("cache_control") == 1

    _, fake = await _work(ModelAgent(), ["42"], protocol="anthropic")
    assert "cache_control" not in str(fake.requests[0].body)


def _with_responses(base_url: str) -> ModelClient:
    """A client whose model ``m`` is where OpenAI's responses are spoken, too."""
    endpoint = ModelEntry(base_url=base_url, responses=True)
    return ModelClient(replace(_QUICK, endpoints={"m": endpoint}))


async def test_a_model_is_asked_in_responses_where_they_are_spoken() -> None:
    """OpenAI's newer models take tools nowhere else, and there thoughts last from step to step."""

    script = [says(Thought("I need it.", "sealed", "rs_1"), calls("tool")), "Done."]
    run = Run(prompt="Do it.")
    with FakeModel(script) as fake, using(_with_responses(fake.base_url)):
        await ModelAgent(model="m", tools=[tool])(run)
    assert {asked.protocol for asked in fake.requests} == {"responses"}
    kept = [part for turn in fake.conversations[1].turns for part in turn.parts]
    assert [part.sealed for part in kept if isinstance(part, Thought)] == ["sealed"]
    assert run.trace.content == "Done."


async def test_a_model_that_has_no_thoughts_to_give_is_not_asked_for_them_again() -> None:
    reply: dict[str, Any] = {
        "id": "r",
        "object": "response",
        "status": "completed",
        "output": [
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Hello.", "annotations": []}],
            }
        ],
    }

    def answer(seen: Seen) -> Raw:
        if seen.body.get("include"):
            return error(400, "Encrypted content is not supported with this model.")
        return Raw(reply)

    async with scripted(answer) as server:
        with using(_with_responses(f"{server.root}/v1")):
            for _ in range(2):
                run = Run(prompt="Hi.")
                await ModelAgent(model="m")(run)
                assert run.trace.content == "Hello."
    assert [seen.path for seen in server.seen] == ["/v1/responses"] * 3


async def test_readers_work_at_once_and_writers_in_order() -> None:
    log: list[str] = []
    both = asyncio.Barrier(2)

    def one(name: str) -> AgentTool:
        async def use(given: Any) -> ToolOutcome:
            if name == "r":
                await both.wait()  # two at once, or for ever
            log.append(name)
            return ToolOutcome.said(name)

        return AgentTool(declared=Tool(name=name), use=use, reads_only=name == "r")

    tools = {name: one(name) for name in "rwv"}
    run = Run()
    async with Gateway("openai:gpt-5") as gateway:
        work = module._Work(ModelAgent(), run, gateway, tools)
        names = ["r", "r", "w", "v", "r", "r"]
        outcomes = await work._outcomes([Call(str(n), name, "{}") for n, name in enumerate(names)])
    assert log == names
    assert [outcome.to_json() for outcome in outcomes] == names
    assert [step.call.name for step in _tool_steps(run)] == names


# --- Typed answers -------------------------------------------------------------------------------


class City(pydantic.BaseModel):
    name: str
    people: int = pydantic.Field(gt=0)


@_PROTOCOLS
async def test_a_typed_answer_is_submitted(protocol: str) -> None:
    script = [
        calls("submit", name="Oslo", people=-3),
        calls("submit", name="Oslo", people=700_000),
    ]
    run, _ = await _work(ModelAgent(returns=City), script, protocol=protocol)
    assert json.loads(run.trace.content or "") == {"name": "Oslo", "people": 700_000}
    assert run.trace.stop_reason == "done"


@each(
    "returns, given",
    [(list[City], [{"name": "Oslo", "people": 3}]), (int, 7), (Literal["a", "b"], "b")],
)
async def test_an_answer_that_is_no_object_can_be_submitted(returns: Any, given: Any) -> None:
    run, _ = await _work(ModelAgent(returns=returns), [calls("submit", answer=given)])
    assert json.loads(run.trace.content or "") == given


class Even(pydantic.BaseModel):
    number: int

    @pydantic.field_validator("number")
    @classmethod
    def be_even(cls, number: int) -> int:
        if number % 2:
            raise ValueError("it is odd")
        return number


async def test_an_answer_that_the_type_itself_refuses_is_told_why() -> None:
    script = [calls("submit", number=3), calls("submit", number=4)]
    run, _ = await _work(ModelAgent(returns=Even), script)
    assert _told(run) == ["error: it was not accepted: number: Value error, it is odd", "accepted"]
    assert run.trace.content == '{"number": 4}'


async def test_a_typed_answer_may_be_said_and_is_asked_for_if_it_is_not() -> None:
    run, _ = await _work(ModelAgent(returns=int), ["7"])
    assert run.trace.content == "7"

    run, fake = await _work(ModelAgent(returns=int), ["Let me think.", calls("submit", answer=7)])
    assert run.trace.content == "7"
    assert "submit" in fake.conversations[1].turns[-1].text

    run, fake = await _work(ModelAgent(returns=int), _always(says(Thought("no"), "No.")))
    assert (run.trace.content, fake.count) == ("No.", 3)


async def test_a_typed_task_gets_a_typed_answer() -> None:
    env = Environment("cities")

    @env.template(returns=City)
    async def biggest() -> AsyncGenerator[Any, Any]:
        answer = yield "Which is the biggest city of Norway?"
        yield float(answer.ok and answer.content.name == "Oslo")

    with (
        FakeModel(_always(calls("submit", name="Oslo", people=1))) as fake,
        using(ModelClient(_QUICK)),
    ):
        job = await biggest().run(ModelAgent(model=fake.model), group=2)
    assert [(run.reward, run.model) for run in job.runs] == [(1.0, fake.model)] * 2
    assert all(run.tokens and run.trace.extra["usage"] for run in job.runs)


async def test_a_sample_of_tokens_is_kept_where_it_is_asked_for_and_so_is_what_is_cited() -> None:
    run, _ = await _work(ModelAgent(samples=True), ["A word or two."])
    sample = _turns(run)[-1].sample
    assert sample is not None
    assert sample.prompt_token_ids
    assert len(sample.output_token_ids) == len(sample.output_logprobs) > 0

    cited: dict[str, Json] = {
        "type": "char_location",
        "cited_text": "milk",
        "document_index": 0,
        "document_title": "list",
        "start_char_index": 0,
        "end_char_index": 4,
    }
    run, _ = await _work(ModelAgent(), [says(Text("Buy milk.", (cited,)))], protocol="anthropic")
    citations = _turns(run)[-1].citations
    assert citations is not None
    assert (citations[0].text, citations[0].title) == ("milk", "list")


# --- Several turns -------------------------------------------------------------------------------


async def test_what_the_user_says_further_is_sent_when_the_model_has_stopped() -> None:
    agent = ModelAgent(tools=[tool], turns=("And then?", "Thanks."))
    run, fake = await _work(agent, ["First.", calls("tool"), "Second.", "Bye."])
    said = [step.messages[0] for step in run.trace.steps if step.source == "user"]
    assert [message["content"] for message in said if isinstance(message, dict)] == [
        "And then?",
        "Thanks.",
    ]
    assert (run.trace.content, fake.count, run.trace.stop_reason) == ("Bye.", 4, "done")


async def test_a_user_whom_a_model_plays_answers_until_they_are_satisfied() -> None:
    user = SimulatedUser(persona="You want a red cap. Your size is 57.")

    def answer(asked: Conversation) -> object:
        if "You play a user" not in asked.system:
            return "Which size?" if len(asked.turns) < 3 else "Here it is."
        is_done = "Here it is." in asked.turns[-1].text
        return {"is_satisfied": is_done, "message": "" if is_done else "57, please."}

    run, fake = await _work(ModelAgent(user=user), answer, prompt="I want a cap.")
    assert run.trace.content == "Here it is."
    said = [step for step in run.trace.steps if step.source == "user"]
    assert [step.messages for step in said] == [({"role": "user", "content": "57, please."},)]
    played = [asked for asked in fake.conversations if "You play a user" in asked.system]
    assert played[0].turns[-2].text == "I want a cap."
    assert played[0].turns[-1].text.startswith("Which size?")
    assert len(_turns(run)) == 2


async def test_a_user_who_is_never_satisfied_has_a_last_word() -> None:
    user = SimulatedUser(persona="You always want more.", most_turns=2)

    def answer(asked: Conversation) -> object:
        plays = "You play a user" in asked.system
        return {"is_satisfied": False, "message": "More!"} if plays else "Here."

    run, _ = await _work(ModelAgent(user=user), answer)
    assert len([step for step in run.trace.steps if step.source == "user"]) == 2
    assert run.trace.stop_reason == "done"


async def test_what_no_text_can_hold_is_told_as_far_as_it_can_be() -> None:
    def odd() -> str:
        return "half \ud83d of it"

    def empty() -> str:
        return ""

    script = [says(calls("odd"), calls("empty")), "", "Still \ud800 here."]
    run, fake = await _work(ModelAgent(tools=[odd, empty], turns=("Well?",)), script)
    assert _told(run) == ["half ? of it", "(nothing)"]
    assert fake.count == 3
    assert "here." in (run.trace.content or "")


async def test_a_user_who_cannot_be_played_gives_no_reward() -> None:
    def answer(asked: Conversation) -> object:
        return "no JSON" if "You play a user" in asked.system else "Hello " * 9_000

    agent = ModelAgent(user=SimulatedUser(persona="You are a cook."))
    with pytest.raises(AgentError, match="the user could not be played"):
        await _work(agent, answer)


async def test_a_thousand_calls_in_a_reply_are_not_made() -> None:
    made: list[int] = []

    def tool(number: int) -> None:
        made.append(number)

    reply = says(*(calls("tool", number=n) for n in range(100)))
    run, _ = await _work(ModelAgent(tools=[tool]), [reply, "Done."])
    assert made == list(range(64))
    assert len(_tool_steps(run)) == 100


async def test_what_a_function_gives_is_told_as_it_is() -> None:
    def long() -> str:
        return "x" * 100_000

    def picture() -> Image:
        return Image("data:image/png;base64,AAAA")

    def whole(count: int) -> int:
        return count

    script = [says(calls("long"), calls("picture"), calls("whole", count="3")), "Done."]
    run, fake = await _work(ModelAgent(tools=[long, picture, whole]), script)
    told = _told(run)
    assert len(told[0]) < 40_000
    assert "characters cut" in told[0]
    assert told[1][0]["type"] == "image_url"
    assert "do not fit" in told[2]
    assert fake.conversations[-1].turns[-1].results[1].content == (
        Image("data:image/png;base64,AAAA"),
    )


async def test_two_tools_of_one_name_and_one_that_no_model_can_call_are_refused(
    tmp_path: Path,
) -> None:
    def bash() -> None: ...

    def odd(*args: int) -> None: ...

    with pytest.raises(InputError, match="the tool 'odd'"):
        function_tool(odd, seconds=1.0)
    with pytest.raises(InputError, match="two tools 'bash'"):
        await _work(ModelAgent(tools=["bash", bash]), ["x"], workspace=tmp_path)


# --- Refused before anything is asked ------------------------------------------------------------


@each(
    "options, why",
    [
        ({"tools": ["shell"]}, "there is no tool 'shell'"),
        ({"steps": 0}, "steps must be more than 0"),
        ({"tool_seconds": 0.0}, "tool_seconds must be more than 0"),
    ],
)
def test_an_agent_that_makes_no_sense_is_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        ModelAgent(**options)


async def test_a_run_without_a_model_or_with_two_is_no_reward() -> None:
    with pytest.raises(AgentError, match="nothing says which model"):
        await ModelAgent()(Run(prompt="x"))
    with pytest.raises(AgentError, match="and its run"):
        await _work(ModelAgent(model="openai:gpt-5"), ["x"])
