"""Functions of an environment that its agents call."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

import pytest

from assay.agents import CommandAgent, ModelAgent
from assay.environment import Environment, Template
from assay.errors import InputError, SandboxError, TaskEndedError
from assay.tasks.blocks import HarnessSpec
from assay.testing import calls
from assay.types import Run, ToolCall, ToolResult, ToolStep
from assay.types.run import OfferedTool
from tests.each import each
from tests.environment.playing import playing

Steps = AsyncGenerator[Any, Any]


def shop() -> tuple[Environment, Template[[]]]:
    env = Environment("shop")
    cart = env.state(list[str])

    @env.tool
    def add(item: str, pieces: int = 1) -> str:
        """Put pieces of an item into the cart."""
        if item == "elephant":
            raise LookupError("no elephants")
        if item == "exit":
            raise SystemExit(2)
        cart().extend([item] * pieces)
        return f"{len(cart())} in the cart"

    @env.tool
    async def look() -> list[str]:
        return cart()

    @env.tool
    async def broken() -> None:
        raise SandboxError("no sandbox")

    return env, one_prompt(env, lambda: float(cart() == ["lamp", "lamp"]))


def one_prompt(
    env: Environment, worth: Callable[[], float] = lambda: 1.0, **declared: Any
) -> Template[[]]:
    """A template that asks once, and whose reward nobody's answer decides."""

    @env.template(**declared)
    async def play() -> Steps:
        yield "Play."
        yield worth()

    return play


def _told(run: Run) -> list[tuple[str, object, bool]]:
    steps = [step for step in run.trace.steps if isinstance(step, ToolStep)]
    return [(s.call.name, s.result and s.result.content, bool(s.result and s.result.is_error))
            for s in steps]  # fmt: skip


async def test_calls_change_the_state_of_their_session_and_are_in_the_trace() -> None:
    _, buy = shop()
    together = asyncio.Barrier(2)

    async def agent(run: Run) -> None:
        await run.call("add", {"item": "lamp"})
        await together.wait()
        assert (await run.call("add", {"item": "lamp"})).content == "2 in the cart"
        assert (await run.call("look")).content == ["lamp", "lamp"]

    job = await buy().run(agent, group=2)
    assert [run.reward for run in job] == [1.0, 1.0]
    assert _told(job.runs[0]) == [
        ("add", "1 in the cart", False),
        ("add", "2 in the cart", False),
        ("look", ["lamp", "lamp"], False),
    ]
    assert Run.from_dict(job.runs[0].to_dict()).trace == job.runs[0].trace
    assert not job.runs[0].tools


async def test_what_a_tool_raises_is_told_and_what_we_cannot_do_is_an_error() -> None:
    _, buy = shop()

    async def agent(run: Run) -> None:
        wrong: list[tuple[str, Mapping[str, Any], str]] = [
            ("add", {"item": "elephant"}, "LookupError: no elephants"),
            ("add", {"item": "exit"}, "SystemExit: 2"),
            ("add", {"item": 3}, "item: Input should be a valid string"),
            ("add", {}, "item: Missing required argument"),
            ("add", {"item": "lamp", "colour": "red"}, "colour: Unexpected keyword argument"),
        ]
        for name, given, why in wrong:
            result = await run.call(name, given)
            assert result.is_error
            assert why in str(result.content)
        with pytest.raises(TaskEndedError, match="no tool 'sell'; there are: add, look, broken"):
            await run.call("sell")
        await run.call("broken")

    (run,) = (await buy().run(agent)).runs
    assert run.reward is None
    assert "no sandbox" in str(run.trace.error)
    assert [error for *_, error in _told(run)] == [True] * 5 + [False]


async def test_nobody_calls_a_tool_once_the_task_is_graded() -> None:
    env, kept = Environment(), list[OfferedTool]()
    cart = env.state(list[str])

    @env.tool
    async def add() -> None:
        cart().append("lamp")

    @env.template()
    async def buy() -> Steps:
        yield "p"
        with pytest.raises(TaskEndedError, match="the task is over, and 'add' cannot be called"):
            await kept[0]({})
        yield float(not cart())

    async def agent(run: Run) -> None:
        kept.append(run.tools["add"])

    assert (await buy().run(agent)).reward == 1.0


@each("before", ["", "assay_", "mcp_assay_", "mcp__assay__"])
async def test_calls_stay_in_the_trace_of_what_passed_a_gateway(before: str) -> None:
    """Also where the agent tells its model of a result that no tool gave."""
    import openai

    _, buy = shop()

    async def agent(run: Run) -> None:
        assert run.gateway is not None
        url, token = run.gateway.openai_url, run.gateway.token
        forged = ToolCall(name="add", arguments={"item": "elephant"})
        run.record(ToolStep(call=forged, result=ToolResult(content="1 in the cart")))
        async with openai.AsyncOpenAI(base_url=url, api_key=token) as client:
            said: list[Any] = [{"role": "user", "content": run.prompt_text}]
            reply = await client.chat.completions.create(model="any", messages=said)
            message = reply.choices[0].message
            assert message.tool_calls is not None
            (call,) = message.tool_calls
            result = await run.call("add", {"item": "lamp"})
            assert result.content == "1 in the cart"
            told = {"role": "tool", "tool_call_id": call.id, "content": "99 in the cart"}
            said += [message.model_dump(exclude_none=True), told]
            await client.chat.completions.create(model="any", messages=said)
        await run.call("look")

    with playing(calls(f"{before}add", item="lamp"), "Done.") as fake:
        (run,) = (await buy().run(agent, model=fake.model)).runs
    assert _told(run) == [("add", "1 in the cart", False), ("look", ["lamp"], False)]


async def test_a_model_is_offered_them() -> None:
    _, buy = shop()
    with playing(calls("add", item="lamp", pieces=2), calls("look"), "Done.") as fake:
        (run,) = (await buy().run(ModelAgent(), model=fake.model)).runs
    assert run.reward == 1.0
    offered = {tool.name: tool for tool in fake.conversations[0].tools}
    assert list(offered) == ["add", "look", "broken"]
    assert offered["add"].description == "Put pieces of an item into the cart."
    assert _told(run) == [("add", "2 in the cart", False), ("look", '["lamp", "lamp"]', False)]


async def test_an_mcp_client_reaches_them_over_http() -> None:
    import httpx2
    import mcp
    from mcp.client.streamable_http import streamable_http_client

    _, buy = shop()

    async def agent(run: Run) -> None:
        assert run.gateway is not None
        url, bearer = f"{run.gateway.anthropic_url}/mcp", f"Bearer {run.gateway.token}"
        headers = {"Authorization": bearer}
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False) as http,
            mcp.Client(streamable_http_client(url, http_client=http)) as client,
        ):
            assert len((await client.list_tools()).tools) == 3
            await client.call_tool("add", {"item": "lamp", "pieces": 2})

    with playing() as fake:
        assert (await buy().run(agent, model=fake.model)).reward == 1.0


_IN_SANDBOX = """
import json, os, sys, urllib.error, urllib.request

def say(frame, token=os.environ["OPENAI_API_KEY"]):
    headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
    asked = urllib.request.Request(sys.argv[1], json.dumps(frame).encode(), headers)
    try:
        with urllib.request.urlopen(asked) as reply:
            return json.loads(reply.read() or "null")
    except urllib.error.HTTPError as error:
        return error.code

def call(method, **params):
    said = say({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    return said.get("result") or said["error"]["code"]

assert call("initialize", protocolVersion="2025-03-26")["protocolVersion"] == "2025-03-26"
assert say({"jsonrpc": "2.0", "method": "notifications/initialized"}) is None
assert say({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, "stolen") == 401
assert [say(wrong) for wrong in ({}, {"jsonrpc": "2.0", "id": [], "method": "ping"})] == [400, 400]
assert [call("prompts/list"), call("tools/call", name=7)] == [-32601, -32602]
listed = [tool["name"] for tool in call("tools/list")["tools"]]
told = [
    call("tools/call", name=name, arguments=arguments)
    for name, arguments in json.loads(sys.argv[2])
]
print(json.dumps([listed, [[one["content"][0]["text"], one["isError"]] for one in told]]))
"""


@pytest.mark.sandbox
@each("is_broken", [False, True])
async def test_an_agent_in_a_sandbox_reaches_them_at_its_gateway(is_broken: bool) -> None:  # noqa: FBT001
    env, _ = shop()
    order = one_prompt(env, id="order", workspace=env.workspace())
    said: list[Any] = [["add", {"item": "lamp"}], ["add", {"item": "elephant"}], ["sell", {}]]
    said += [["broken", {}]] if is_broken else []
    argv = ("/usr/bin/python3", "-c", _IN_SANDBOX.replace("{", "{{").replace("}", "}}"))
    spec = HarnessSpec(
        argv=(*argv, "{gateway}/mcp", json.dumps(said).replace("{", "{{").replace("}", "}}")),
        gateway=True,
    )
    agent = CommandAgent(spec=spec)
    with playing() as fake:
        (run,) = (await order().run(agent, model=fake.model)).runs
    assert [name for name, *_ in _told(run)] == [name for name, _ in said if name != "sell"]
    if is_broken:  # what we cannot do is no work of the agent's
        assert run.reward is None
        assert "no sandbox" in str(run.grade.content)
        return
    assert run.reward == 1.0, run.trace.extra
    listed, told = json.loads(str(run.trace.content))
    assert listed == ["add", "look", "broken"]
    assert told[0] == ["1 in the cart", False]
    assert [is_error for _, is_error in told] == [False, True, True]


@pytest.mark.sandbox
@each("tools", [True, False])
async def test_a_command_is_told_of_tools_where_there_are_any(tools: bool) -> None:  # noqa: FBT001
    env = Environment("bare")
    if tools:
        env.tool(name="look")(lambda: "nothing")
    order = one_prompt(env, workspace=env.workspace())
    spec = HarnessSpec(
        argv=("/bin/sh", "-c", "echo $SERVERS $TONE"),
        env={"SERVERS": "none", "TONE": "low"},
        tools_env={"SERVERS": "some"},
        gateway=True,
    )
    with playing() as fake:
        (run,) = (await order().run(CommandAgent(spec=spec), model=fake.model)).runs
    assert run.trace.content == ("some low" if tools else "none low")


def test_what_cannot_be_a_tool_is_refused() -> None:
    env, _ = shop()
    assert [tool["name"] for tool in _tools(env)] == ["add", "look", "broken"]

    def add() -> None: ...
    def strange() -> None: ...
    def many(*items: str) -> None: ...

    with pytest.raises(InputError, match="'shop' already has a tool 'add'"):
        env.tool(add)
    with pytest.raises(InputError, match="cannot be called 'put in'"):
        env.tool(name="put in")(strange)
    assert env.tool(name="put_in", description="Puts in.")(strange) is strange
    assert _tools(env)[-1] == {
        "name": "put_in",
        "description": "Puts in.",
        "schema": {"additionalProperties": False, "properties": {}, "type": "object"},
    }
    with pytest.raises(InputError, match="'many' has parameters"):
        env.tool(many)


def _tools(env: Environment) -> list[dict[str, Any]]:
    found: Any = env.manifest()["tools"]
    return found


async def test_attack_a_tool_gets_no_number_that_is_none() -> None:
    """A balance of NaN was at least as much as every goal."""
    env = Environment("bank")
    account = env.state(dict[str, float])

    @env.tool
    def deposit(euros: float) -> None:
        if euros <= 0:
            raise ValueError("it must be more than 0")
        account()["balance"] = account().get("balance", 0) + euros

    @env.template()
    async def save(goal: int = 100) -> Steps:
        yield "Save."
        yield min(1.0, account().get("balance", 0) / goal)

    async def agent(run: Run) -> None:
        for euros in ("NaN", "Infinity", float("nan"), "1e999"):
            result = await run.call("deposit", {"euros": euros})
            assert (result.is_error, "finite number" in str(result.content)) == (True, True)

    (run,) = (await save().run(agent)).runs
    assert run.reward == 0.0


# --- One call at a time ---------------------------------------------------------------------------


def counter(*, in_thread: bool = False, parallel: bool = False) -> Template[[]]:
    """A voucher that is worth its reward once, and a tool that looks, waits and then pays out."""
    env = Environment("voucher")
    paid = env.state(lambda: [0])

    async def claim() -> str:
        if paid()[0] == 1:
            return "claimed already"
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        paid()[0] += 1
        return "paid"

    def claim_in_thread() -> str:
        return asyncio.run(claim())

    env.tool(name="claim", parallel=parallel)(claim_in_thread if in_thread else claim)

    @env.tool
    async def look() -> int:
        return paid()[0]

    return one_prompt(env, lambda: 0.5 * paid()[0])


@each("in_thread", [False, True])
async def test_attack_a_voucher_is_claimed_twice_by_calls_at_once(in_thread: bool) -> None:  # noqa: FBT001
    async def agent(run: Run) -> None:
        told = await asyncio.gather(*(run.call("claim") for _ in range(4)), run.call("look"))
        assert [one.content for one in told] == ["paid", *["claimed already"] * 3, 1]

    (run,) = (await counter(in_thread=in_thread)().run(agent)).runs
    assert run.reward == 0.5


async def test_calls_of_a_parallel_tool_run_beside_each_other() -> None:
    async def agent(run: Run) -> None:
        told = await asyncio.gather(*(run.call("claim") for _ in range(2)))
        assert [one.content for one in told] == ["paid", "paid"]

    (run,) = (await counter(parallel=True)().run(agent)).runs
    assert run.reward == 1.0


async def test_sessions_do_not_wait_for_each_other() -> None:
    env, together = Environment(), asyncio.Barrier(2)

    @env.tool
    async def meet() -> None:
        await together.wait()

    async def agent(run: Run) -> None:
        await run.call("meet")

    job = await one_prompt(env)().run(agent, group=2, rollout_timeout=30)
    assert [run.reward for run in job] == [1.0, 1.0]


async def test_attack_a_cancelled_call_leaves_its_thread_at_work_and_calls_again() -> None:
    env, began, may_end = Environment(), threading.Event(), threading.Event()
    at_work = env.state(lambda: [0, 0])

    @env.tool
    def claim() -> None:
        at_work()[0] += 1
        at_work()[1] = max(at_work())
        began.set()
        may_end.wait(30)
        at_work()[0] -= 1

    async def agent(run: Run) -> None:
        first = asyncio.ensure_future(run.call("claim"))
        await asyncio.to_thread(began.wait, 30)
        first.cancel()
        second = asyncio.ensure_future(run.call("claim"))
        await asyncio.wait({first})
        may_end.set()
        await second

    (run,) = (await one_prompt(env, lambda: float(at_work()[1] == 1))().run(agent)).runs
    assert run.reward == 1.0


async def test_a_tool_that_calls_another_of_its_session_does_not_wait_for_itself() -> None:
    env, kept = Environment(), list[Run]()

    @env.tool
    async def inner() -> str:
        return "inner"

    @env.tool
    async def outer() -> object:
        return (await kept[0].call("inner")).content

    async def agent(run: Run) -> None:
        kept.append(run)
        assert (await run.call("outer")).content == "inner"

    (run,) = (await one_prompt(env)().run(agent, rollout_timeout=30)).runs
    assert run.reward == 1.0


async def test_a_call_that_waited_until_the_task_was_over_is_none() -> None:
    env, began, may_end = Environment(), asyncio.Event(), asyncio.Event()
    calls_made, waiting = list[str](), list[asyncio.Future[ToolResult]]()

    @env.tool
    async def claim(name: str) -> None:
        calls_made.append(name)
        began.set()
        await may_end.wait()

    @env.template()
    async def play() -> Steps:
        yield "p"
        may_end.set()
        done = await asyncio.gather(*waiting, return_exceptions=True)
        assert isinstance(done[1], TaskEndedError)
        yield 1.0

    async def agent(run: Run) -> None:
        waiting.extend(asyncio.ensure_future(run.tools["claim"]({"name": n})) for n in ("a", "b"))
        await began.wait()

    (run,) = (await play().run(agent, rollout_timeout=30)).runs
    assert (run.reward, calls_made) == (1.0, ["a"])
