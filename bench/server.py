"""What the server costs: grading over HTTP beside a bare FastAPI echo, and reward servers.

Both send small replies at once (``TCP_NODELAY``): waiting for the acknowledgement of the one before
would cost either 40 ms a request, and hide all else.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.batches import HERE, batch_rows, write_batches
from bench.peers import Peer
from bench.processes import OURS, SERVE, ServerProcess, new_key, running
from bench.reward_servers import reward_rows
from bench.rows import MEASURES, Goal, Measure, Row

if TYPE_CHECKING:
    from aiohttp import ClientSession

__all__ = ["measure"]

_PROJECT = "/api/v1/projects/default"
_GRADE = f"{_PROJECT}/graders/exact/grade"
_EXACT = {"key": "exact", "kind": "declared", "definition": {"graders": [{"type": "exact_match"}]}}


@dataclass(frozen=True, slots=True)
class _Load:
    """What is asked of both.

    Attributes:
        items: In each request.
        connections: Each sends its next request when it has the reply to the one before.
        requests: In each round; the clock of CPU time ticks a hundred times a second.
        goal: For the CPU time, if there is one.
    """

    items: int
    connections: int
    requests: int
    goal: Goal | None = None

    @property
    def what(self) -> str:
        """How tables call it."""
        items = "one item" if self.items == 1 else f"{self.items} items"
        joined = "1 connection" if self.connections == 1 else f"{self.connections} connections"
        return f"grade and store {items}, {joined}"


_THRICE = Goal("at_most", 3.0)
_LOADS = (
    _Load(1, 1, 400, _THRICE),
    _Load(1, 16, 800, _THRICE),
    _Load(1, 128, 1_280, _THRICE),
    _Load(100, 8, 20),
)

_ECHO = """
import json, socket, uvicorn
from fastapi import Body, FastAPI
app = FastAPI()
@app.post("/echo")
async def echo(body: dict = Body()):
    return body
# asyncio sets TCP_NODELAY only where the protocol is named, which socket.create_server does not
with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as opened:
    opened.bind(("127.0.0.1", 0))
    opened.listen(1024)
    print(json.dumps({"url": f"http://127.0.0.1:{opened.getsockname()[1]}"}), flush=True)
    uvicorn.Server(uvicorn.Config(app, access_log=False, log_level="error")).run(sockets=[opened])
"""


def measure(peers: Mapping[str, Peer], scratch: Path, *, quick: bool) -> list[Row]:
    """Requests of one item, of a hundred, and of a trainer's batches; all scores are stored."""
    home = scratch / "server"
    home.mkdir()
    headers = {"Authorization": f"Bearer {new_key(home)}"}
    rounds, file = 2 if quick else 7, scratch / "batches.json"
    write_batches(file)
    with running(OURS, SERVE, home) as ours:
        with running(_ECHO, [], home) as echo:
            rows = asyncio.run(_compared(ours, echo, headers, rounds=rounds))
        with running(HERE, [str(file)], home) as here:
            rows += asyncio.run(_batches(ours, here, headers, file, rounds))
        return rows + asyncio.run(
            reward_rows(ours, _GRADE, key=headers, peers=peers, home=home, rounds=rounds)
        )


async def _batches(
    ours: ServerProcess, here: ServerProcess, headers: Mapping[str, str], file: Path, rounds: int
) -> list[Row]:
    import aiohttp

    async with aiohttp.ClientSession(headers=dict(headers)) as session:
        return await batch_rows(session, _PROJECT, (ours, here), file, rounds)


async def _compared(
    ours: ServerProcess, echo: ServerProcess, headers: Mapping[str, str], *, rounds: int
) -> list[Row]:
    import aiohttp

    async with (
        aiohttp.ClientSession(headers=dict(headers)) as session,
        session.post(f"{ours.url}{_PROJECT}/graders", json=_EXACT) as answer,
    ):
        answer.raise_for_status()
    rows: list[Row] = []
    for load in _LOADS:
        # as many connections as are said, and no more, which stay open from round to round
        connector = aiohttp.TCPConnector(limit=load.connections)
        async with aiohttp.ClientSession(headers=dict(headers), connector=connector) as session:
            rows += await _rows(session, load, ours, echo, rounds)
    return rows


async def _rows(
    session: ClientSession, load: _Load, ours: ServerProcess, echo: ServerProcess, rounds: int
) -> list[Row]:
    items = [{"id": str(n), "answer": "4", "expected": "4"} for n in range(load.items)]
    body = json.dumps({"items": items}).encode()
    sides = [(ours, _GRADE), (echo, "/echo")]
    figures: dict[str, list[dict[Measure, float]]] = {ours.url: [], echo.url: []}
    for number in range(rounds + 1):  # the first warms up
        for process, path in sides if number % 2 else sides[::-1]:
            figures[process.url].append(await _timed(session, process, path, body, load))
    return [
        Row(
            what=load.what,
            measure=counted,
            unit="ms",
            ours=[one[counted] for one in figures[ours.url][1:]],
            peer=[one[counted] for one in figures[echo.url][1:]],
            beside="FastAPI echo",
            goal=load.goal if counted == "CPU" else None,
            over=True,
        )
        for counted in MEASURES
    ]


async def _timed(
    session: ClientSession, process: ServerProcess, path: str, body: bytes, load: _Load
) -> dict[Measure, float]:
    """Seconds for each request."""
    url, headers = process.url + path, {"Content-Type": "application/json"}
    left = iter(range(load.requests))

    async def connection() -> None:
        for _ in left:
            async with session.post(url, data=body, headers=headers) as answer:
                answer.raise_for_status()
                await answer.read()

    cpu, wall = process.cpu(), time.perf_counter()
    await asyncio.gather(*(connection() for _ in range(load.connections)))
    return {
        "CPU": (process.cpu() - cpu) / load.requests,
        "wall": (time.perf_counter() - wall) / load.requests,
    }
