"""OpenEnv's wire: what its clients are told here, and what its servers' words are worth here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest
from aiohttp import web

from assay import EvaluationResult
from assay.environment import openenv
from assay.environment.channel.serve import serve
from assay.environment.channel.sessions import ChannelLimits
from assay.environment.openenv import FinishedEpisode
from assay.errors import InputError
from assay.scoring.json_safe import Json
from assay.types import Run
from tests.children import Children, until
from tests.each import each
from tests.served_environment import ServedProcess, serve_process, write_env


@pytest.fixture
def served_alone(children: Children, tmp_path: Path) -> ServedProcess:
    """A server whose audit has lines of one test alone: others' may come late."""
    write_env(tmp_path)
    return serve_process(children, tmp_path, "--workers", "1", "--openenv")


class Peer:
    """One client, which says what it likes."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket

    async def read(self) -> dict[str, Any]:
        return cast("dict[str, Any]", json.loads(await self.socket.receive_str(timeout=60)))

    async def ask(self, kind: str, data: Json = None) -> dict[str, Any]:
        message = {"type": kind} if data is None else {"type": kind, "data": data}
        await self.socket.send_str(json.dumps(message))
        return await self.read()

    async def seen(self, kind: str, data: Json) -> dict[str, Any]:
        reply = await self.ask(kind, data)
        assert reply["type"] == "observation", reply
        return cast("dict[str, Any]", reply["data"])

    async def error(self, kind: str, data: Json = None) -> tuple[str, str]:
        reply = await self.ask(kind, data)
        assert reply["type"] == "error", reply
        return reply["data"]["code"], reply["data"]["message"]


def _http(served: ServedProcess) -> str:
    return f"http://127.0.0.1:{served.port}"


@asynccontextmanager
async def peer(url: str, query: str = "", **options: Any) -> AsyncGenerator[Peer]:
    async with (
        aiohttp.ClientSession(**options) as session,
        session.ws_connect(f"{url}/ws{query}") as socket,
    ):
        yield Peer(socket)


# What its clients are told here.


_STATE = {"episode_id": None, "step_count": 0, "task": None, "max_steps": 1, "done": False}


async def test_an_episode_is_a_prompt_an_answer_and_one_reward(served: ServedProcess) -> None:
    async with peer(_http(served)) as client:
        assert await client.ask("state") == {"type": "state", "data": _STATE}
        begin: Json = {"task": "add", "args": {"a": 3}, "episode_id": "e", "seed": 1}
        first = await client.seen("reset", begin)
        assert first["observation"]["content"] == "What is 3 + 2?"
        assert (first["reward"], first["done"]) == (None, False)
        last = await client.seen("step", {"answer": "5", "metadata": {}})
        assert (last["reward"], last["done"]) == (1.0, True)
        (value,) = last["metadata"]["grade"]["subscores"]
        assert (value["name"], value["value"]) == ("value", 1.0)
        assert last["observation"]["metadata"] == last["metadata"]
        for action in ({"answer": "5"}, {"answer": "6"}, {"action": "5"}):
            code, message = await client.error("step", cast("Json", action))
            assert (code, message) == ("EXECUTION_ERROR", "the episode is done (reset)")
        state = (await client.ask("state"))["data"]
        assert state == _STATE | {"episode_id": "e", "step_count": 1, "task": "add", "done": True}
        await client.seen("reset", {"task": "add"})
        assert (await client.seen("step", {"action": "4"}))["reward"] == 0.0


@each(
    "task, action, reward",
    [
        ("typed", {"answer": {"a": 1}}, 1.0),
        ("typed", {"answer": '{"a": 1}'}, 1.0),
        ("typed", {"action": {"a": 2}}, 0.0),
        ("add", {"answer": None}, 0.0),
        ("guess", {"answer": "7"}, 1.0),
        ("guess", {"answer": "1"}, 0.0),  # ends in the midst of it
    ],
)
async def test_answers_that_are_json_or_come_early(
    served: ServedProcess, task: str, action: Json, reward: float
) -> None:
    async with peer(_http(served)) as client:
        await client.seen("reset", {"task": task})
        last = await client.seen("step", action)
    assert (last["reward"], last["done"]) == (reward, True)


async def test_steps_have_their_rewards_and_the_last_has_the_grade(served: ServedProcess) -> None:
    async with peer(_http(served)) as client:
        first = await client.seen("reset", {"task": "guess", "seed": 3})
        assert first["observation"]["content"] == "Guess. (3)"
        assert first["metadata"]["max_steps"] == 4
        second = await client.seen("step", {"action": "5"})
        assert (second["observation"]["content"], second["reward"]) == ("higher", -0.5)
        assert second["metadata"] == {"info": {"secret": 7}}
        assert "secret" not in json.dumps((await client.ask("state"))["data"])
        code, message = await client.error("step", {"action": None})
        assert (code, message[:17]) == ("VALIDATION_ERROR", "an action is null")
        last = await client.seen("step", {"action": 7})
        assert (last["observation"]["content"], last["reward"]) == ("right", 1.0)
        assert (last["done"], last["metadata"]["step_reward"]) == (True, 0.5)
        await client.seen("reset", {"task": "guess"})
        for number in range(4):
            last = await client.seen("step", {"action": "1"})
            assert last["done"] is (number == 3)
        assert last["reward"] == 0.0  # not finished in as many steps as there are


@each(
    "task, action, said",
    [
        ("fails", {"answer": "x"}, {"type": "ungraded", "message": "the judge is down"}),
        ("raises", {"answer": "x"}, {"type": "ValueError", "message": "boom", "hint": ""}),
        ("breaks", {"action": "x"}, {"type": "ValueError", "message": "in the midst", "hint": ""}),
    ],
)
async def test_what_could_not_be_graded_has_no_reward_rather_than_a_0(
    served: ServedProcess, task: str, action: Json, said: Json
) -> None:
    async with peer(_http(served)) as client:
        await client.seen("reset", {"task": task})
        last = await client.seen("step", action)
        assert (last["reward"], last["done"], last["observation"]["error"]) == (None, True, said)
        assert (await client.error("step", action))[0] == "EXECUTION_ERROR"
        code, message = await client.error("reset", {"task": "elsewhere"})
        assert (code, message) == ("EXECUTION_ERROR", "not on this machine")


async def test_tools_are_actions_of_an_episode(served: ServedProcess) -> None:
    call = {"type": "call_tool", "tool_name": "double"}
    async with peer(_http(served)) as client:
        tool, _ = (await client.seen("step", {"type": "list_tools"}))["observation"]["tools"]
        assert (tool["name"], tool["description"]) == ("double", "Twice a number.")
        assert tool["input_schema"]["required"] == ["number"]
        assert (await client.error("step", {**call, "arguments": {"number": 4}}))[0] == (
            "EXECUTION_ERROR"
        )
        await client.seen("reset", {"task": "add"})
        for more, result, kind in (
            ({"arguments": {"number": 4}}, 8, None),
            ({"arguments": {"number": "x"}}, None, "execution_error"),
            ({}, None, "execution_error"),
            ({"tool_name": "triple"}, None, "tool_not_found"),
        ):
            seen = await client.seen("step", cast("Json", {**call, **more}))
            said = seen["observation"]
            assert (said["result"], (said["error"] or {}).get("error_type")) == (result, kind)
            assert (seen["reward"], seen["done"]) == (None, False)
        rpc: dict[str, Json] = {"jsonrpc": "2.0", "id": 5}
        params: Json = {"name": "double", "arguments": {"number": 5}}
        reply = await client.ask("mcp", {**rpc, "method": "tools/call", "params": params})
        assert reply["data"] == {**rpc, "result": {"data": 10, "isError": False}}
        await client.seen("step", {"answer": "3"})
        code, message = await client.error("step", {**call, "arguments": {"number": 4}})
        assert (code, message) == ("EXECUTION_ERROR", "the episode is done (reset)")
        await client.seen("reset", {"task": "add"})
        seen = await client.seen("step", {**call, "tool_name": "lose"})  # our own fault
        assert seen["observation"]["error"]["message"] == "it is gone"
        assert (seen["reward"], seen["done"]) == (None, True)
        assert (await client.error("step", {"answer": "3"}))[0] == "EXECUTION_ERROR"


_INVALID = "VALIDATION_ERROR"


@each(
    "message, code, said",
    [
        ("{", "INVALID_JSON", "a frame is not JSON"),
        ('{"type": "state", "type": "close"}', "INVALID_JSON", "twice"),
        ("[]", "EXECUTION_ERROR", "a frame is a list"),
        ('{"type": "restart"}', "UNKNOWN_TYPE", "restart"),
        ('{"type": "state", "data": {}}', _INVALID, "state has no 'data'"),
        ('{"type": "step"}', _INVALID, "'data' must be an object"),
        ('{"type": "step", "data": {"answer": "1"}}', "EXECUTION_ERROR", "no episode has begun"),
        ('{"type": "step", "data": {}}', _INVALID, "one of them"),
        ('{"type": "step", "data": {"answer": "1", "action": "2"}}', _INVALID, "one of them"),
        ('{"type": "step", "data": {"anwser": "1"}}', _INVALID, "answer"),
        ('{"type": "step", "data": {"type": "call_tool"}}', _INVALID, "tool_name"),
        ('{"type": "step", "data": {"type": "shell"}}', _INVALID, "'shell'"),
        ('{"type": "reset"}', _INVALID, "which task"),
        ('{"type": "reset", "data": {"task": "ad"}}', _INVALID, "did you mean 'add'?"),
        ('{"type": "reset", "data": {"task": 1}}', _INVALID, "unknown task"),
        ('{"type": "reset", "data": {"task": "add", "a": 3}}', _INVALID, "goes into args"),
        ('{"type": "reset", "data": {"task": "add", "args": []}}', _INVALID, "'args'"),
        ('{"type": "reset", "data": {"task": "add", "args": {"c": 1}}}', _INVALID, "'c'"),
        ('{"type": "reset", "data": {"task": "add", "seed": -1}}', _INVALID, "'seed'"),
        ('{"type": "reset", "data": {"task": "add", "episode_id": 1}}', _INVALID, "'episode_id'"),
    ],
)
async def test_what_is_said_wrong_is_named_and_the_client_stays(
    served: ServedProcess, message: str, code: str, said: str
) -> None:
    async with peer(_http(served)) as client:
        await client.socket.send_str(message)
        reply = await client.read()
        assert (reply["type"], reply["data"]["code"]) == ("error", code), reply
        assert said in reply["data"]["message"]
        assert (await client.seen("reset", {"task": "add"}))["done"] is False


async def test_single_calls_belong_together_by_a_secret(served: ServedProcess) -> None:
    base = _http(served)
    async with aiohttp.ClientSession(base) as session:

        async def get(path: str) -> tuple[int, Any]:
            async with session.get(path) as response:
                return response.status, await response.json()

        async def post(path: str, **body: Json) -> tuple[int, Any]:
            async with session.post(path, json=body) as response:
                return response.status, await response.json()

        assert await get("/health") == (200, {"status": "healthy"})
        assert (await get("/metadata"))[1]["version"] == "1.2.3"
        assert set((await get("/schema"))[1]) == {"action", "observation", "state"}
        assert await get("/list_environments") == (200, ["demo"])
        assert await get("/demo/splits") == (200, [{"name": "tasks", "type": "validation"}])
        _, listed = await post("/demo/tasks", split="tasks")
        assert listed["tasks"][0] == {"task": "add", "args": {}}
        assert {"task": "held", "args": {}} not in listed["tasks"]  # it needs arguments
        count = len(listed["tasks"])
        assert await post("/demo/num_tasks", split="tasks") == (200, {"num_tasks": count})
        assert (await post("/demo/task", split="tasks", index=count))[0] == 422
        spec = (await post("/demo/task", split="tasks", index=0))[1]["task"]
        part = await post("/demo/task_range", split="tasks", start=1, stop=2)
        assert part == (200, {"tasks": listed["tasks"][1:2]})
        assert (await post("/demo/tasks", split="train"))[0] == 422
        assert (await get("/nowhere"))[0] == 404

        status, first = await post("/reset", **spec)
        key = first["metadata"]["session_id"]
        assert (status, first["observation"]["content"]) == (200, "What is 1 + 2?")
        assert (await get(f"/state?session_id={key}"))[1]["task"] == "add"
        action: Json = {"answer": "3"}
        assert (await post("/step", action=action))[0] == 422
        assert (await post("/step", action=action, session_id="0" * 32))[0] == 404
        episode = first["metadata"]["episode_id"]
        assert (await post("/step", action=action, session_id=episode))[0] == 404
        assert (await post("/step", action=action, session_id=key))[1]["reward"] == 1.0
        assert (await post("/step", action=action, session_id=key))[0] == 409
        assert (await post("/reset", task="ad"))[0] == 422
        async with session.get("/ws") as response:
            assert response.status == 426
        page = {"Origin": "http://evil.example"}  # in a browser
        async with session.post("/reset", json=spec, headers=page) as response:
            assert response.status == 403


class Held:
    """A task that is graded for as long as its gate is shut, and marks each grading."""

    def __init__(self, folder: Path) -> None:
        self.gate, self.marks = folder / "gate", folder / "marks"
        args: Json = {"gate": str(self.gate), "marks": str(self.marks)}
        self.reset: dict[str, Json] = {"task": "held", "args": args}

    async def begun(self) -> None:
        await asyncio.to_thread(until, Path(f"{self.gate}.begun").exists)


async def test_two_steps_at_once_are_one_grade(served: ServedProcess, tmp_path: Path) -> None:
    held = Held(tmp_path)
    async with aiohttp.ClientSession(_http(served)) as session:
        async with session.post("/reset", json=held.reset) as response:
            key = (await response.json())["metadata"]["session_id"]
        body = {"action": {"answer": "yes"}, "session_id": key}

        async def step() -> tuple[int, Any]:
            async with session.post("/step", json=body) as response:
                return response.status, await response.json()

        first = asyncio.create_task(step())
        await held.begun()
        status, refused = await step()
        assert (status, refused["detail"]) == (409, "a call of this episode is still running")
        held.gate.touch()
        assert (await first)[1]["reward"] == 1.0
    assert held.marks.read_text() == "graded\n"


async def test_who_hangs_up_while_it_is_graded_has_no_grade(
    served_alone: ServedProcess, tmp_path: Path
) -> None:
    held = Held(tmp_path)
    async with peer(_http(served_alone)) as client:
        await client.seen("reset", held.reset)
        await client.socket.send_str('{"type": "step", "data": {"answer": "yes"}}')
        await held.begun()
    await asyncio.to_thread(until, served_alone.audited)
    (line,) = served_alone.audited()
    assert (line["task"], line["ended"], line["reward"]) == ("held", "cancelled", None)
    held.gate.touch()


async def test_a_ping_is_answered_while_it_is_graded(served: ServedProcess, tmp_path: Path) -> None:
    held = Held(tmp_path)
    async with (
        aiohttp.ClientSession(_http(served)) as session,
        session.ws_connect("/ws", autoping=False) as socket,
    ):
        client = Peer(socket)
        await client.seen("reset", held.reset)
        await socket.send_str('{"type": "step", "data": {"answer": "yes"}}')
        await held.begun()
        await socket.ping()
        assert (await socket.receive(30)).type is aiohttp.WSMsgType.PONG
        held.gate.touch()
        assert (await client.read())["data"]["reward"] == 1.0


async def test_a_session_for_tools_is_shared_with_whoever_knows_it(served: ServedProcess) -> None:
    async with aiohttp.ClientSession(_http(served)) as session:

        async def rpc(method: str, **params: Json) -> dict[str, Any]:
            frame = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            async with session.post("/mcp", json=frame) as response:
                return cast("dict[str, Any]", await response.json())

        key = (await rpc("openenv/session/create"))["result"]["session_id"]
        call: dict[str, Json] = {"name": "double", "arguments": {"number": 4}}
        async with peer(_http(served), f"?session_id={key}") as client:
            await client.seen("reset", {"task": "add"})
            async with peer(_http(served), f"?session_id={key}") as second:
                assert (await second.read())["data"]["message"] == "the session has a WebSocket"
            assert (await rpc("tools/call", **call, session_id=key))["result"]["data"] == 8
            for wrong in ({}, {"session_id": "0" * 32}):
                assert "error" in await rpc("tools/call", **call, **cast("Any", wrong))
            assert (await client.seen("step", {"answer": "3"}))["reward"] == 1.0
        assert (await rpc("openenv/session/close", session_id=key))["result"]["closed"] is True
        assert "error" in await rpc("openenv/session/close", session_id=key)
        assert len((await rpc("tools/list"))["result"]["tools"]) == 2
        assert (await rpc("resources/list"))["error"]["code"] == -32601
        async with peer(_http(served), f"?session_id={key}") as late:
            assert (await late.read())["data"]["code"] == "SESSION_ERROR"


async def test_a_token_and_a_number_of_sessions(tmp_path: Path) -> None:
    audit: list[dict[str, Json]] = []
    limits = ChannelLimits(sessions=1, moves=1)
    file = str(write_env(tmp_path))
    async with serve(
        file, workers=1, token="s" * 16, limits=limits, audit=audit.append, openenv=True
    ) as served:
        url = served.openenv
        async with aiohttp.ClientSession(url) as stranger:
            for path, status in (("/health", 200), ("/metadata", 401), ("/ws", 401)):
                async with stranger.get(path) as response:
                    assert response.status == status
            async with stranger.post("/reset", json={"task": "add"}) as response:
                assert response.status == 401
        known: Any = {"headers": {"Authorization": "Bearer " + "s" * 16}}
        async with peer(url, **known) as first:
            await first.seen("reset", {"task": "add"})
            async with peer(url, **known) as second:
                assert (await second.read())["data"]["code"] == "CAPACITY_REACHED"
            await first.seen("reset", {"task": "guess"})
            await first.seen("step", {"action": "1"})
            code, message = await first.error("step", {"action": "7"})
            assert (code, message) == ("EXECUTION_ERROR", "a task takes 1 moves here")
            assert (await first.seen("step", {"answer": "7"}))["reward"] == 1.0
            for _ in range(3):  # each episode is a session, and none is left behind
                await first.seen("reset", {"task": "add"})
            env = openenv.environment(url, token="wrong")
            (run,) = (await env.task("episode").run(_says("x"))).runs
            assert run.reward is None
            assert "the token is wrong" in str(run.trace.error)
    ended = ["cancelled", "graded", "cancelled", "cancelled", "abandoned"]
    assert [line["ended"] for line in audit] == ended


# What its servers' words are worth here.


def _says(*texts: str) -> Callable[[Run], Awaitable[None]]:
    async def agent(run: Run) -> None:
        for text in texts:
            if (await run.step(text)).done:
                return

    return agent


async def test_what_is_served_here_is_an_environment_there(served: ServedProcess) -> None:
    env = openenv.environment(_http(served), max_steps=3)
    task = env.task("episode", reset={"task": "guess", "args": {"secret": 3}})
    (run,) = (await task.run(_says('{"action": "1"}', "?", '{"action": "3"}'))).runs
    assert str(run.prompt).startswith("Guess. (0)\n\nEach action is a JSON object: {")
    assert (run.reward, run.trace.error) == (0.5, None)
    assert run.grade.info == {
        "reward_from": "the sum of the server's rewards",
        "rewards": [-0.5, 1.0],
        "steps": 2,
    }
    (run,) = (await env.task("episode", reset={"task": "raises"}).run(_says('{"answer": 1}'))).runs
    assert (run.reward, run.grade.is_error) == (None, True)


_Reply = dict[str, Any] | str | None


def _seen(reward: Json = None, *, done: bool = False, **observation: Json) -> dict[str, Any]:
    data = {"observation": observation or {"text": "on"}, "reward": reward, "done": done}
    return {"type": "observation", "data": data}


@asynccontextmanager
async def _server(
    *steps: _Reply, first: _Reply = None, schema: Mapping[str, Json] | None = None
) -> AsyncGenerator[tuple[str, list[Any]]]:
    """A server that answers what it is told to; None is that it hangs up."""
    heard: list[Any] = []

    async def talk(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        replies = iter(steps)
        async for message in socket:
            said = json.loads(message.data)
            heard.append(said)
            if said["type"] == "close":
                break
            if said["type"] == "state":
                await socket.send_json({"type": "state", "data": {"step_count": 3}})
                continue
            reply = (first or _seen()) if said["type"] == "reset" else next(replies)
            if reply is None:
                break
            await socket.send_str(reply if isinstance(reply, str) else json.dumps(reply))
        await socket.close()
        return socket

    async with _serving(talk, schema) as url:
        yield url, heard


@asynccontextmanager
async def _serving(
    talk: Callable[[web.Request], Awaitable[web.StreamResponse]],
    schema: Mapping[str, Json] | None = None,
) -> AsyncGenerator[str]:
    async def describe(_: web.Request) -> web.Response:
        return web.json_response({"action": dict(schema or {})})

    app = web.Application()
    app.add_routes([web.get("/ws", talk), web.get("/schema", describe)])
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{cast('Any', runner.addresses)[0][1]}"
    finally:
        await runner.cleanup()


@each(
    "steps, how, reward",
    [
        ([_seen(0.5), _seen(None), _seen(1, done=True)], "sum", 1.5),
        ([_seen(0.5), _seen(None), _seen(1, done=True)], "last", 1.0),
        ([_seen(), _seen(), _seen(True, done=True)], "sum", 1.0),
        ([_seen(), _seen(), _seen(False, done=True)], "last", 0.0),
        ([_seen(-3), _seen(-2), _seen(0.0)], "sum", -5.0),
        ([_seen(0.5), _seen(0.25), _seen(0.75)], "last", 0.0),  # the one that counts never came
        ([_seen(-1), _seen(0.5), _seen(-2)], "last", -2.0),
        ([_seen(), _seen(), _seen()], "sum", 0.0),  # unfinished, and nothing earned
    ],
)
async def test_an_episode_is_worth_what_its_server_gave(
    steps: list[_Reply], how: Any, reward: float
) -> None:
    async with _server(*steps) as (url, _):
        env = openenv.environment(url, reward=how)
        (run,) = (await env.task("episode").run(_says("{}", "{}", "{}"))).runs
    assert (run.reward, run.trace.error) == (reward, None)


_ERROR: _Reply = {"type": "error", "data": {"message": "broke", "code": "EXECUTION_ERROR"}}


@each(
    "reply, said",
    [
        (None, "hung up"),
        (_ERROR, "step: broke"),
        ({"type": "error"}, "it did not say why"),
        ({"type": "state", "data": {}}, "no observation"),
        ({"type": "observation", "data": {"observation": "on"}}, "no observation"),
        ({"type": "observation", "data": {"observation": {}, "done": "yes"}}, "`done`"),
        (_seen("1", done=True), "the server's reward"),
        (_seen(done=True), "gave no reward"),
        ("no JSON", "not JSON"),
        ('{"type":"observation","data":{"observation":{},"reward":NaN,"done":true}}', "NaN"),
        ('{"type":"observation","data":{"observation":{},"reward":1e999,"done":true}}', ""),
    ],
)
async def test_a_fault_of_the_server_is_an_error_and_never_a_reward(
    reply: _Reply, said: str
) -> None:
    async with _server(reply) as (url, _):
        (run,) = (await openenv.environment(url).task("episode").run(_says("{}"))).runs
    assert (run.reward, run.grade.is_error, run.trace.status) == (None, True, "error")
    assert said in str(run.trace.error)


@each("first, said", [(_seen(1.0, done=True), "over when it began"), (_ERROR, "reset: broke")])
async def test_an_episode_that_does_not_begin_is_an_error(first: _Reply, said: str) -> None:
    async with _server(first=first) as (url, _):
        (run,) = (await openenv.environment(url).task("episode").run(_says("{}"))).runs
    assert (run.reward, run.prompt) == (None, None)
    assert said in str(run.trace.error)
    (run,) = (await openenv.environment(url).task("episode").run(_says("{}"))).runs
    assert "cannot reach" in str(run.trace.error)


async def test_an_action_that_is_none_is_told_to_the_agent() -> None:
    wrong = {"loc": ["number"], "msg": "Field required"}
    refused = {"message": "Invalid message", "code": "VALIDATION_ERROR", "errors": [wrong]}
    told: list[object] = []

    async def agent(run: Run) -> None:
        texts = ("go", "[]", '{"x": 1}', 'I say\n```json\n{"number": 1}\n```')
        told.extend([(await run.step(text)).content for text in texts])

    steps: list[_Reply] = [{"type": "error", "data": cast("Any", refused)}, _seen(1, done=True)]
    async with _server(*steps) as (url, heard):
        (run,) = (await openenv.environment(url).task("episode").run(agent)).runs
    assert told[:2] == ["error: an action is a JSON object, and this is none"] * 2
    assert told[2:] == ["error: Invalid message; number: Field required", "on"]
    assert run.reward == 1.0
    sent = [said["data"] for said in heard if said["type"] == "step"]
    assert sent == [{"x": 1}, {"number": 1}]


async def test_a_ping_is_answered_while_the_agent_thinks() -> None:
    answered = asyncio.Event()

    async def talk(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(autoping=False)
        await socket.prepare(request)
        await socket.receive()
        await socket.send_json(_seen())
        await socket.ping()
        if (await socket.receive()).type is web.WSMsgType.PONG:
            answered.set()
        await socket.receive()
        await socket.send_json(_seen(1, done=True))
        await socket.receive()
        return socket

    async def agent(run: Run) -> None:
        async with asyncio.timeout(30):
            await answered.wait()
        await run.step("{}")

    async with _serving(talk) as url:
        (run,) = (await openenv.environment(url).task("episode").run(agent)).runs
    assert run.reward == 1.0


async def test_texts_are_made_as_they_are_said_to_be() -> None:
    text: Json = {"type": "string"}
    schema: dict[str, Json] = {"required": ["message"], "properties": {"message": text}}
    steps = [_seen(1, done=True, text="bye", metadata={"x": 1})]
    async with _server(*steps, schema=schema, first=_seen(text="hi", n=None)) as (url, heard):
        env = openenv.environment(url)
        (run,) = (await env.task("episode", reset={"seed": 7}).run(_says("hello {}"))).runs
    assert (run.prompt, run.reward) == ("hi", 1.0)
    assert [said.get("data") for said in heard] == [{"seed": 7}, {"message": "hello {}"}, None]
    async with _server(*steps, schema=schema) as (url, heard):
        env = openenv.environment(
            url,
            prompt=lambda seen: [{"role": "user", "content": f"See {seen['text']}"}],
            observation=lambda seen: f"saw {seen['text']}",
            action=lambda said: {"number": int(said)},
        )
        seen: list[object] = []

        async def agent(run: Run) -> None:
            seen.extend([(await run.step("x")).content, (await run.step("3")).content])

        (run,) = (await env.task("episode").run(agent)).runs
    assert run.prompt_text == "See on"
    assert seen == ["error: invalid literal for int() with base 10: 'x'", "saw bye"]
    assert heard[1] == {"type": "step", "data": {"number": 3}}


async def test_an_episode_is_graded_by_a_grader_of_ones_own() -> None:
    given: list[FinishedEpisode] = []

    async def grade(episode: FinishedEpisode) -> EvaluationResult:
        given.append(episode)
        return EvaluationResult(reward=0.5 if episode.is_finished else 0.25)

    async with _server(_seen(-1), _seen(9, done=True, text="end")) as (url, _):
        env = openenv.environment(url, grade=grade)
        (run,) = (await env.task("episode").run(_says("{}", '{"a": 1}'))).runs
        (early,) = (await env.task("episode").run(_says("{}"))).runs
    assert (run.reward, early.reward) == (0.5, 0.25)
    episode = given[0]
    assert (episode.first, episode.rewards) == ({"text": "on"}, [-1.0, 9.0])
    assert episode.state == {"step_count": 3}
    assert (episode.turns[1].action, episode.turns[1].observation) == ({"a": 1}, {"text": "end"})
    async with _server(_seen(9, done=True)) as (url, _):
        broken = openenv.environment(url, grade=lambda _: float("nan"))
        (run,) = (await broken.task("episode").run(_says("{}"))).runs
    assert (run.reward, run.grade.is_error) == (None, True)


@each(
    "url, options",
    [
        ("tcp://localhost:1", {}),
        ("localhost:8000", {}),
        ("http://[", {}),
        ("http://user:secret@localhost:1", {}),
        ("http://localhost:1", {"reward": "mean"}),
        ("http://localhost:1", {"max_steps": 0}),
    ],
)
def test_what_is_no_server_is_refused_at_once(url: str, options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        openenv.environment(url, **options)
