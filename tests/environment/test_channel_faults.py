"""The client of a served environment whose connection breaks, or whose server is gone or lies."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import cast

import pytest

import assay
from assay.environment import Environment
from assay.environment.channel import Address, link
from assay.environment.channel.link import Channel
from assay.environment.channel.remote import RemoteSession, grade_of
from assay.environment.channel.serve import serve
from assay.errors import ChannelError
from assay.scoring.json_safe import Json
from assay.types import Run, Submission
from tests.children import Children, until
from tests.each import each
from tests.processes import living
from tests.served_environment import Relay, ServedProcess, serve_process, three, write_env


@each("lost", [b"What is", b'"score"', b"cancelled"])
@each("scheme", ["tcp", "ws"])
async def test_a_lost_reply_is_asked_for_again(
    served: ServedProcess, scheme: str, lost: bytes
) -> None:
    async with Relay(served.port).listening() as relay:
        url = f"{scheme}://127.0.0.1:{relay.port}"
        async with assay.connect(url, patience=10) as client:
            relay.drop_after = lost
            async with client.run("add") as run:
                run.trace.content = "3"
            assert run.reward == 1.0
            await client.cancel(run)
            assert relay.connections == 2


async def test_a_connection_that_breaks_during_an_action_costs_nothing(
    games: ServedProcess, tmp_path: Path
) -> None:
    gate, begun = tmp_path / "gate", tmp_path / "gate.begun"
    async with (
        Relay(games.port).listening() as relay,
        Channel.open(Address(f"tcp://127.0.0.1:{relay.port}"), patience=10) as channel,
    ):
        session = await RemoteSession.begin(channel, "slow", {"gate": str(gate)})
        step = asyncio.create_task(session.step("x"))
        await asyncio.to_thread(until, begun.exists)
        relay.hang_up()
        await asyncio.to_thread(until, lambda: relay.connections == 2)
        gate.touch()
        assert (await step).content == "seen"
        assert (await session.grade(Submission(answer="y"))).reward == 1.0
    assert begun.read_text() == "x"


async def test_a_server_that_is_gone_is_an_error_and_no_reward(
    children: Children, tmp_path: Path
) -> None:
    write_env(tmp_path)
    served = serve_process(children, tmp_path, "--workers", "1")
    async with assay.connect(served.url, patience=0.3) as client:
        run = client.run("add")
        await run.__aenter__()
        run.trace.content = "3"
        os.kill(served.pid, signal.SIGKILL)
        with pytest.raises(ChannelError, match="cannot reach"):
            await run.__aexit__(None, None, None)
        assert run.reward is None
    await asyncio.to_thread(
        until, lambda: not living(str(tmp_path / "env.py"))
    )  # they end with their front


@each("scheme", ["tcp", "ws"])
async def test_a_wrong_port_is_said_soon(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "_FIRST_SECONDS", 0.1)
    address, elsewhere = f"{scheme}://127.0.0.1:1", Environment("w")

    @elsewhere.template()
    async def t() -> AsyncGenerator[object, object]:
        yield "p"
        yield 1.0

    async with asyncio.timeout(20):
        with pytest.raises(ChannelError, match=f"cannot reach {address}: "):
            await _reach(address)
        job = await t().run(three, group=2, runtime=address)
        assert "cannot reach" in str(job.runs[0].grade.content)


async def test_what_is_no_environment_is_said_by_its_url() -> None:
    async with lying(lambda _: b"HTTP/1.0 400 Bad request") as url:
        with pytest.raises(ChannelError, match=f"what answers at {url} is no environment"):
            await _reach(url)


async def _reach(url: str) -> None:
    async with assay.connect(url):
        pass


async def test_a_session_that_the_server_has_forgotten_is_lost(tmp_path: Path) -> None:
    """A new server at the same port knows nothing of it: no grade is made up."""
    file = write_env(tmp_path)
    async with serve(str(file), workers=1) as first:
        context = Channel.open(Address(first.url), patience=10)
        channel = await context.__aenter__()
        session = await RemoteSession.begin(channel, "add", {})
        at_rest = assay.connect(first.url, patience=10)
        client = await at_rest.__aenter__()
        assert (await client.task("add").run(three)).reward == 1.0
    async with serve(str(file), workers=1, port=first.port):
        with pytest.raises(ChannelError, match="the session is lost") as caught:
            await session.grade(Submission(answer="3"))
        assert caught.value.kind == "SessionLostError"
        await context.__aexit__(None, None, None)
        # One that rests may be lost: another is begun.
        assert (await client.task("add").run(three, group=2)).coverage == (2, 2)
        await at_rest.__aexit__(None, None, None)


# Servers that lie.


@each(
    "frame",
    [
        {},
        {"score": True},
        {"score": "1.0"},
        {"reward": 1.0},
        {"score": 1.0, "isError": "true"},
        {"score": 1.0, "is_error": True},
        {"score": 1.0, "done": "no"},
        {"score": 1.0, "content": 5},
        {"score": 1.0, "info": []},
        {"score": 1.0, "subscores": {}},
        {"score": 1.0, "subscores": [1]},
        {"score": 1.0, "subscores": [{"name": "a", "value": 2.0}]},
        {"score": 1.0, "subscores": [{"name": "", "value": 1.0}]},
        {"score": 1.0, "subscores": [{"name": "a", "value": True}]},
        {"score": 1.0, "subscores": [{"name": "a", "value": 1.0, "weight": 1e200}]},
        {"score": 10**400},
        {"score": 1.0, "isError": True},
    ],
)
def test_what_is_no_grade_is_no_reward(frame: dict[str, Json]) -> None:
    reward: float | None = None
    with suppress(ChannelError):
        reward = grade_of(frame).reward
    assert reward is None


Answering = Callable[[Mapping[str, Json]], "Json | bytes | None"]


@asynccontextmanager
async def lying(answer: Answering) -> AsyncGenerator[str]:
    """A server that says what it is told to; None hangs up."""

    accepted: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.add(cast("asyncio.Task[None]", asyncio.current_task()))
        while line := await reader.readline():
            frame = cast("dict[str, Json]", json.loads(line))
            said = answer(frame)
            if said is None:
                break
            if not isinstance(said, bytes):
                said = json.dumps({"jsonrpc": "2.0", "id": frame["id"], "result": said}).encode()
            writer.write(said + b"\n")
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await asyncio.wait(accepted)


@each(
    "method, said, message",
    [
        ("hello", {}, "names no session"),
        ("hello", b"[]", "a frame is a list"),
        ("hello", b"SSH-2.0-OpenSSH", "not JSON"),
        ("hello", b'{"id": 1, "result": 5}', "the reply is no object"),
        ("tasks.list", {"tasks": [{"id": 5}]}, "a task has no id"),
        ("tasks.start", {"prompt": 5}, "neither text nor chat"),
        ("tasks.grade", b'{"id": 4, "result": {"score": NaN}}', "not JSON"),
        ("tasks.grade", b'{"id": 4, "result": {"score": 1e999}}', "not JSON"),
        ("tasks.grade", b'{"id": 4, "result": {"score": 0.0, "score": 1.0}}', "stands twice"),
        ("tasks.grade", {"score": True}, "no grade"),
        ("tasks.grade", None, "broke off|cannot reach"),
    ],
)
async def test_a_server_that_lies_gives_no_reward(
    method: str, said: Json | bytes, message: str
) -> None:
    honest: dict[str, Json] = {
        "hello": {"session_id": "sess-1", "env": {"name": "e", "version": "1"}, "bindings": []},
        "tasks.list": {"tasks": [{"id": "t"}]},
        "tasks.start": {"prompt": "p"},
        "tasks.grade": {"score": 1.0},
        "tasks.cancel": {"cancelled": True},
        "bye": {"goodbye": True},
    }

    def answer(frame: Mapping[str, Json]) -> Json | bytes | None:
        asked = str(frame["method"])
        return said if asked == method else honest[asked]

    async with lying(answer) as url:
        runs: list[Run] = []

        async def ask() -> None:
            async with assay.connect(url, patience=0.2) as client:
                runs.append(client.run("t"))
                async with runs[0] as run:
                    run.trace.content = "x"

        with pytest.raises(ChannelError, match=message):
            await ask()
        assert [run.reward for run in runs] in ([], [None])
