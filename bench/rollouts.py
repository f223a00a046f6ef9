"""What a rollout costs beside its agent, and what a gateway adds to a call of a model.

Rollouts are of a task whose agent answers at once, in process and served over TCP and WebSocket,
beside hud's local runtime and its server on the same task; and some at once whose graders wait.
Calls go to a model that answers at once, beside a bare proxy of aiohttp, which reads a body, sends
it on and gives back what it gets.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from bench.peers import Peer
from bench.processes import ServerProcess, started
from bench.rows import MEASURES, Goal, Measure, Row
from bench.turns import clean_environment, in_turn

__all__ = ["measure"]

_TASK = """
import asyncio, json, resource, sys, time
{imports}
env = Environment("bench")

@env.template()
async def add(a: int = 2, b: int = 2):
    answer = yield f"What is {{a}} + {{b}}?"
    yield 1.0 if answer == str(a + b) else 0.0

@env.template()
async def judged():
    answer = yield "Wait for the judge."
    await asyncio.sleep(1)
    yield 1.0 if answer == "4" else 0.0

{agent}

async def main(runtime):
    while line := await asyncio.to_thread(sys.stdin.readline):
        name, count = line.split()
        task, count = {{"add": add, "judged": judged}}[name](), int(count)
        before, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        job = await task.run({run}, group=count, max_concurrent=8)
        took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
        cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        assert job.reward == 1.0
        print(json.dumps({{"CPU": cpu, "wall": took}}), flush=True)

if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
"""
_OURS = _TASK.format(
    imports="from assay.environment import Environment",
    agent="async def agent(run):\n    run.trace.content = '4'",
    run="agent, runtime=runtime",
)
_HUDS = _TASK.format(
    imports="from hud.agents.base import Agent\n"
    "from hud.environment import Environment\n"
    "from hud.eval import LocalRuntime, Runtime",
    agent="class Quick(Agent):\n"
    "    async def __call__(self, run):\n"
    "        run.trace.content = '4'\n\n"
    "def placed(runtime):\n"
    "    if runtime == 'live':\n"
    "        return None\n"
    "    return LocalRuntime(__file__) if runtime == 'local' else Runtime(runtime)",
    run="Quick(), runtime=placed(runtime)",
)
_ROLLOUTS = 128
_JUDGED = 4
_JUDGED_ROUNDS = 2

_MODEL = "import asyncio; from bench.judge_server import serve; asyncio.run(serve())"
_GATEWAY = """
import asyncio, json, sys
from assay.gateway import Gateway

async def main():
    async with Gateway(sys.argv[1] + "#instant") as gateway:
        print(json.dumps({"url": gateway.openai_url, "key": gateway.token}), flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""
_PROXY = """
import asyncio, json, sys
from aiohttp import ClientSession, TCPConnector, web

async def main():
    session = ClientSession(connector=TCPConnector(limit=0))
    url = sys.argv[1] + "/chat/completions"

    async def answer(request):
        body = await request.read()
        headers = {"Content-Type": "application/json"}
        async with session.post(url, data=body, headers=headers) as got:
            return web.Response(body=await got.read(), status=got.status, headers=headers)

    server = await asyncio.get_running_loop().create_server(web.Server(answer), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    print(json.dumps({"url": f"http://127.0.0.1:{port}", "key": "none"}), flush=True)
    await asyncio.Event().wait()
    await session.close()

asyncio.run(main())
"""
_CALLS = 400
_BODY = {
    "model": "instant",
    "messages": [
        {"role": "system", "content": "You mend programs. " * 40},
        {"role": "user", "content": "Mend the parser. " * 40},
    ],
}


def measure(peers: Mapping[str, Peer], scratch: Path, *, quick: bool) -> list[Row]:
    """Rollouts, then calls through a gateway."""
    rounds = 3 if quick else 9
    rows = _rollouts(peers.get("hud"), scratch, rounds)
    for connections in (1, 16):
        rows += _calls(scratch, connections, rounds)
    return rows


@dataclass(frozen=True, slots=True)
class _Placed:
    """A process that runs rollouts, and the one that serves their environment, if any.

    Attributes:
        worker: Is told which template to run and how often, and says what it took.
        server: Where its tasks are.
    """

    worker: subprocess.Popen[str]
    server: ServerProcess | None = None

    def once(self, template: str, count: int) -> dict[Measure, float]:
        """What it takes in all, the server's CPU included."""
        assert self.worker.stdin
        assert self.worker.stdout
        before = self.server.cpu() if self.server else 0.0
        self.worker.stdin.write(f"{template} {count}\n")
        self.worker.stdin.flush()
        took = cast("dict[Measure, float]", json.loads(self.worker.stdout.readline()))
        served = self.server.cpu() - before if self.server else 0.0
        return {"CPU": took["CPU"] + served, "wall": took["wall"]}


def _rollouts(hud: Peer | None, scratch: Path, rounds: int) -> list[Row]:
    ours, huds = scratch / "rollouts_assay.py", scratch / "rollouts_hud.py"
    ours.write_text(_OURS)
    huds.write_text(_HUDS)
    with ExitStack() as stack:

        def placed(python: str, file: Path, runtime: str, serve: Sequence[str] = ()) -> _Placed:
            server = _served([python, *serve, str(file)], scratch) if serve else None
            if server is not None:
                stack.callback(server.end)
                runtime += server.url
            worker = _started([python, "-P", str(file), runtime], scratch)
            stack.callback(_ended, worker)
            return _Placed(worker, server)

        serve = [
            "-c",
            "from assay.cli.main import main; main()",
            "serve",
            "env",
            "--set",
            "hud=true",
        ]
        places = {
            "ours": placed(sys.executable, ours, "local"),
            "ours, tcp": placed(sys.executable, ours, "tcp://", serve),
            "ours, ws": placed(sys.executable, ours, "ws://", serve),
        }
        if hud is not None:
            served = ["-m", "hud.environment.server"]
            places["hud, local"] = placed(hud.python, huds, "local")
            places["hud, live"] = placed(hud.python, huds, "live")
            places["hud, served"] = placed(hud.python, huds, "tcp://", served)

        def measured(
            template: str, count: int, rounds: int
        ) -> dict[str, list[dict[Measure, float]]]:
            things = {name: partial(each.once, template, count) for name, each in places.items()}
            return in_turn(rounds, things)

        quick = measured("add", _ROLLOUTS, rounds)
        judged = measured("judged", _JUDGED, min(rounds, _JUDGED_ROUNDS))
    rows = [
        Row(
            what=f"rollout of an agent that answers at once, {where}",
            measure=counted,
            unit="ms",
            ours=[one[counted] / _ROLLOUTS for one in quick[name]],
            peer=[one[counted] / _ROLLOUTS for one in quick.get(peer, [])],
            beside=peer,
            goal=Goal("times_less", 5) if counted == "wall" else None,
        )
        for where, name, peer in (
            ("in process", "ours", "hud, local"),
            ("over TCP", "ours, tcp", "hud, served"),
            ("over WebSocket", "ours, ws", "hud, served"),
        )
        for counted in MEASURES
    ]
    rows += [
        Row(
            what=f"{_JUDGED} rollouts at once whose graders take 1 s, {where}",
            measure="wall",
            unit="s",
            ours=[one["wall"] for one in judged[name]],
            peer=[one["wall"] for one in judged.get(peer, [])],
            beside=peer,
            goal=Goal("below", 1.2),
        )
        for where, name, peer in (
            ("in process", "ours", "hud, live"),
            ("over TCP", "ours, tcp", "hud, served"),
        )
    ]
    return rows


def _started(words: Sequence[str], scratch: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        words,
        cwd=scratch,
        env=clean_environment(scratch),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def _served(words: Sequence[str], scratch: Path) -> ServerProcess:
    """A server that says its port as HUD's does; its address has no scheme yet."""
    popen = _started(words, scratch)
    line = popen.stdout.readline() if popen.stdout else ""
    if not line.startswith("HUD_SERVE_PORT="):
        popen.kill()
        popen.communicate()
        raise RuntimeError(f"{' '.join(words[:3])} serves nothing")
    return ServerProcess(f"127.0.0.1:{line.strip().removeprefix('HUD_SERVE_PORT=')}", popen)


def _ended(worker: subprocess.Popen[str]) -> None:
    with suppress(BrokenPipeError):
        worker.communicate()


def _calls(scratch: Path, connections: int, rounds: int) -> list[Row]:
    with ExitStack() as stack:

        def start(code: str, *arguments: str) -> ServerProcess:
            process = started(code, list(arguments), scratch)
            stack.callback(process.end)
            return process

        model = f"{start(_MODEL).url}/assay/v1"
        ours, proxy = start(_GATEWAY, model), start(_PROXY, model)
        found = in_turn(
            rounds,
            {
                "ours": lambda: asyncio.run(_timed(ours, connections)),
                "proxy": lambda: asyncio.run(_timed(proxy, connections)),
            },
        )
    joined = "1 connection" if connections == 1 else f"{connections} connections"
    return [
        Row(
            what=f"a model's call through a gateway, {joined}",
            measure=counted,
            unit="ms",
            ours=[one[counted] for one in found["ours"]],
            peer=[one[counted] for one in found["proxy"]],
            beside="aiohttp proxy",
            goal=Goal("at_most", 1.5) if counted == "wall" else None,
            over=True,
        )
        for counted in MEASURES
    ]


async def _timed(process: ServerProcess, connections: int) -> dict[Measure, float]:
    import aiohttp

    headers = {"Authorization": f"Bearer {process.said['key']}", "Content-Type": "application/json"}
    left = iter(range(_CALLS))
    url = f"{process.url}/chat/completions"

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=connections)) as session:

        async def connection() -> None:
            for number in left:
                body: dict[str, Any] = {**_BODY, "user": f"agent {number}"}
                async with session.post(url, data=json.dumps(body), headers=headers) as answer:
                    answer.raise_for_status()
                    await answer.read()

        cpu, wall = process.cpu(), time.perf_counter()
        await asyncio.gather(*(connection() for _ in range(connections)))
        return {
            "CPU": (process.cpu() - cpu) / _CALLS,
            "wall": (time.perf_counter() - wall) / _CALLS,
        }
