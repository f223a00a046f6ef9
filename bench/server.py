"""What the server costs: grading over HTTP beside a bare FastAPI echo, and reward servers.

Both send small replies at once (``TCP_NODELAY``): waiting for the acknowledgement of the one before
would cost either 40 ms a request, and hide all else.

``python -m bench.server`` is another thing: clients grade and submit jobs while the server is
killed and started again, and whatever was acknowledged is looked for afterwards.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.batches import HERE, batch_rows, write_batches
from bench.peers import Peer
from bench.processes import OURS, ServerProcess, running, started
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


def _key(home: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", OURS, "server", "create", "keys", "bench", "--role", "admin",
         "--project", "*", "--json"],
        env={**os.environ, "ASSAY_DB": str(home)},
        capture_output=True,
        text=True,
        check=True,
    )  # fmt: skip
    return str(json.loads(done.stdout)["token"])


_SERVE = ["serve", "--port", "0", "--json", "--set", "quiet=true"]


def measure(peers: Mapping[str, Peer], scratch: Path, *, quick: bool) -> list[Row]:
    """Requests of one item, of a hundred, and of a trainer's batches; all scores are stored."""
    home = scratch / "server"
    home.mkdir()
    headers = {"Authorization": f"Bearer {_key(home)}"}
    rounds, file = 2 if quick else 7, scratch / "batches.json"
    write_batches(file)
    with running(OURS, _SERVE, home) as ours:
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


@dataclass(slots=True)
class _Acknowledged:
    """What the server has said it keeps."""

    grades: set[str] = field(default_factory=set[str])
    jobs: set[str] = field(default_factory=set[str])


class _Siege:
    """Clients that never give up, and a server that is killed under them."""

    def __init__(self, home: Path, *, clients: int, seconds: float, kills: int) -> None:
        self._home = home
        self._clients = clients
        self._seconds = seconds
        self._kills = kills
        self._token = _key(home)
        self._server = started(OURS, _SERVE, home)
        self._ends = 0.0
        self._kept = _Acknowledged()

    async def run(self) -> int:
        """Load, kill, and look.

        Returns:
            How many acknowledged things are missing.
        """
        import aiohttp

        headers = {"Authorization": f"Bearer {self._token}"}
        async with aiohttp.ClientSession(headers=headers) as session:
            await self._send(session, "/graders", _EXACT, "grader")
            rows = b'{"answer": "4", "expected": "4"}\n' * 50
            async with session.post(
                f"{self._server.url}{_PROJECT}/datasets/d",
                data=rows,
                headers={"Content-Type": "application/x-ndjson"},
            ) as answer:
                answer.raise_for_status()
            self._ends = time.monotonic() + self._seconds
            await asyncio.gather(
                self._killing(), *(self._client(session, n) for n in range(self._clients))
            )
            missing = await self._missing(session)
        self._server.end()
        print(
            f"{len(self._kept.grades)} grades and {len(self._kept.jobs)} jobs acknowledged by "
            f"{self._clients} clients in {self._seconds:g} s with {self._kills} kills; "
            f"{missing} missing"
        )
        return missing

    async def _killing(self) -> None:
        for _ in range(self._kills):
            await asyncio.sleep(self._seconds / (self._kills + 1))
            await asyncio.to_thread(self._server.end, signal.SIGKILL)
            self._server = await asyncio.to_thread(started, OURS, _SERVE, self._home)

    async def _client(self, session: ClientSession, number: int) -> None:
        turn = 0
        while time.monotonic() < self._ends:
            turn += 1
            item = f"c{number}-{turn}"
            body = {"items": [{"id": item, "answer": "4", "expected": "4"}]}
            await self._send(session, "/graders/exact/grade", body, item)
            self._kept.grades.add(item)
            if turn % 20 == 0:
                job = await self._send(
                    session, "/jobs", {"grader": "exact", "dataset": "d"}, f"job {item}"
                )
                self._kept.jobs.add(str(job["id"]))

    async def _send(
        self, session: ClientSession, path: str, body: object, key: str
    ) -> dict[str, Any]:
        """Send until it is acknowledged; the same key each time, so that it is done once."""
        import aiohttp

        while True:
            try:
                async with session.post(
                    f"{self._server.url}{_PROJECT}{path}",
                    json=body,
                    headers={"Idempotency-Key": f"{key} {self._token[-8:]}"},
                ) as answer:
                    if answer.status < 500:
                        answer.raise_for_status()
                        return dict(await answer.json())
            except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError):
                pass
            await asyncio.sleep(0.05)

    async def _missing(self, session: ClientSession) -> int:
        scores = await self._all(session, "/scores", lambda one: str(one["item"]))
        jobs = await self._all(session, "/jobs", lambda one: str(one["id"]))
        return len(self._kept.grades - set(scores)) + len(self._kept.jobs - set(jobs))

    async def _all(
        self,
        session: ClientSession,
        path: str,
        name: Callable[[dict[str, Any]], str],
    ) -> list[str]:
        found: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            query = {"limit": "200", **({"after": cursor} if cursor else {})}
            async with session.get(f"{self._server.url}{_PROJECT}{path}", params=query) as answer:
                answer.raise_for_status()
                page = await answer.json()
            found += [name(one) for one in page["items"]]
            cursor = page["next"]
        return found


def main() -> int:
    """Run the load.

    Returns:
        0 if nothing that was acknowledged is missing, else 1.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.server", description=main.__doc__)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--kills", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="assay-load-") as home:
        siege = _Siege(Path(home), clients=given.clients, seconds=given.seconds, kills=given.kills)
        return 1 if asyncio.run(siege.run()) else 0


if __name__ == "__main__":
    sys.exit(main())
