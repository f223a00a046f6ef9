"""Graded items a second and core over HTTP, beside the reward servers that trainers are shown.

All compare the same completions by the same `exact_match`, and send the same bodies where they
speak the same form. Peers store nothing; of ours the endpoint does not either, the server does.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.batches import write_batches
from bench.peers import Peer
from bench.processes import OURS, ServerProcess, running
from bench.rows import MEASURES, Goal, Measure, Row

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import ClientSession

__all__ = ["reward_rows"]

_ITEMS, _CONNECTIONS = 64, 8
_LISTEN = """
opened = socket.create_server(("127.0.0.1", 0), backlog=1024)
print(json.dumps({"url": f"http://127.0.0.1:{opened.getsockname()[1]}"}), flush=True)
uvicorn.Server(uvicorn.Config(app, access_log=False, log_level="error")).run(sockets=[opened])
"""
_REWARDS = f"""
import json, socket, uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from assay.graders import exact_match
class Samples(BaseModel):
    query: list[str]
    prompts: list[str]
    labels: list[str]
class Rewards(BaseModel):
    rewards: list[float]
    scores: list[float]
    extra_logs: dict[str, list[float]]
app = FastAPI()
@app.post("/get_reward")
async def get_reward(samples: Samples) -> Rewards:
    answers = [q.removeprefix(p) for q, p in zip(samples.query, samples.prompts)]
    found = [exact_match(answer, label) for answer, label in zip(answers, samples.labels)]
    return Rewards(rewards=found, scores=found, extra_logs={{"graded": [1.0] * len(found)}})
{_LISTEN}"""
"""A remote reward server as TRL's and OpenRLHF's users write it."""
_VERIFY = f"""
import json, socket, uvicorn
from nemo_gym.base_resources_server import (
    BaseResourcesServerConfig, BaseVerifyRequest, BaseVerifyResponse, SimpleResourcesServer,
)
from nemo_gym.server_utils import ServerClient
from assay.graders import exact_match
class Asked(BaseVerifyRequest):
    expected_answer: str
class Exact(SimpleResourcesServer):
    async def verify(self, body: Asked) -> BaseVerifyResponse:
        said = body.response.output[-1].content[-1].text
        reward = exact_match(said, body.expected_answer)
        return BaseVerifyResponse(**body.model_dump(), reward=reward)
config = BaseResourcesServerConfig(name="exact", host="127.0.0.1", port=0, entrypoint="app.py")
server = Exact(config=config, server_client=ServerClient.model_construct())
app = server.setup_webserver()
server.setup_exception_middleware(app)
{_LISTEN}"""
"""A resources server of NeMo Gym, as its own run_webserver puts it together, without Ray."""


@dataclass(frozen=True, slots=True)
class _Side:
    """A server, and how it is asked.

    Attributes:
        what: What it is.
        server: The server.
        path: Where.
        bodies: What is sent, each by one request.
        items: In each body.
        headers: Beside it.
    """

    what: str
    server: ServerProcess
    path: str
    bodies: Sequence[bytes]
    items: int
    headers: Mapping[str, str]

    async def timed(self, session: ClientSession) -> dict[Measure, float]:
        """Seconds of an item: of the server's CPU, and until all were answered."""
        left = iter(self.bodies)

        async def connection() -> None:
            for body in left:
                async with session.post(
                    self.server.url + self.path, data=body, headers=self.headers
                ) as answer:
                    answer.raise_for_status()
                    await answer.read()

        cpu, began = self.server.cpu(), time.perf_counter()
        await asyncio.gather(*(connection() for _ in range(_CONNECTIONS)))
        count = self.items * len(self.bodies)
        wall = time.perf_counter() - began
        return {"CPU": (self.server.cpu() - cpu) / count, "wall": wall / count}


_Sample = Mapping[str, str]


def _samples(rows: Sequence[_Sample]) -> Any:  # noqa: ANN401 - JSON
    """Rows in the form of OpenRLHF's remote reward model."""
    return {
        "query": [f"{_PROMPT}{row['answer']}" for row in rows],
        "prompts": [_PROMPT] * len(rows),
        "labels": [row["expected"] for row in rows],
    }


_PROMPT = "What is it?\n"


def _rollout(rows: Sequence[_Sample]) -> Any:  # noqa: ANN401 - JSON
    """A row in the form of NeMo Gym's verify."""
    (row,) = rows
    content: list[Any] = [{"type": "output_text", "text": row["answer"], "annotations": []}]
    message: dict[str, Any] = {"id": "m", "type": "message", "role": "assistant"}
    message |= {"status": "completed", "content": content}
    return {
        "responses_create_params": {"input": [{"role": "user", "content": _PROMPT}]},
        "response": {
            "id": "r",
            "object": "response",
            "created_at": 0,
            "model": "policy",
            "output": [message],
            "parallel_tool_calls": False,
            "tool_choice": "auto",
            "tools": [],
        },
        "expected_answer": row["expected"],
    }


def _items(rows: Sequence[_Sample], *, record: bool) -> Any:  # noqa: ANN401 - JSON
    """Rows in assay's own form."""
    items = [{"id": str(number), **row} for number, row in enumerate(rows)]
    return {"items": items} if record else {"items": items, "record": False}


async def reward_rows(
    server: ServerProcess,
    path: str,
    *,
    key: Mapping[str, str],
    peers: Mapping[str, Peer],
    home: Path,
    rounds: int,
) -> list[Row]:
    """Measure a server with a stored grader, and an endpoint, beside reward servers of others.

    Args:
        server: The server.
        path: Of a grader there.
        key: The header that lets in.
        peers: Packages of others; without NeMo Gym's its server is left out.
        home: A directory for files.
        rounds: How often everything is measured, in turn.
    """
    import aiohttp

    file = home / "completions.json"
    write_batches(file)
    batches: list[list[_Sample]] = json.loads(file.read_text(encoding="utf-8"))[0]
    singles = [[row] for batch in batches[:12] for row in batch]
    async with AsyncExitStack() as opened:
        rewards = opened.enter_context(running(_REWARDS, [], home))
        endpoint = opened.enter_context(_endpoint(home))
        gym = None
        if (package := peers.get("nemo-gym")) is not None:
            gym = opened.enter_context(running(_VERIFY, [], home, package.python))

        def side(
            what: str, server: ServerProcess, path: str, write: Callable[..., Any], *, many: bool
        ) -> _Side:
            given = batches if many else singles
            bodies = [json.dumps(write(rows)).encode() for rows in given]
            headers = {"Content-Type": "application/json", **key}
            return _Side(what, server, path, bodies, len(given[0]), headers)

        def stored(*, record: bool, many: bool) -> _Side:
            what = "server, stored" if record else "server, not stored"
            return side(what, server, path, partial(_items, record=record), many=many)

        fastapi = {
            many: side("FastAPI", rewards, "/get_reward", _samples, many=many)
            for many in (True, False)
        }
        get_reward = partial(side, "endpoint", endpoint, "/get_reward", _samples)
        many, one = f"{_ITEMS} a request", "one a request"
        pairs = [
            (many, stored(record=True, many=True), fastapi[True]),
            (many, stored(record=False, many=True), fastapi[True]),
            (many, get_reward(many=True), fastapi[True]),
            (f"{many}, theirs one", stored(record=True, many=True), fastapi[False]),
            (one, stored(record=True, many=False), fastapi[False]),
            (one, get_reward(many=False), fastapi[False]),
        ]
        if gym is not None:
            verify = side("NeMo Gym", gym, "/verify", _rollout, many=False)
            ours = side("endpoint", endpoint, "/verify", _rollout, many=False)
            pairs += [
                (f"{many}, theirs one", stored(record=True, many=True), verify),
                (one, stored(record=True, many=False), verify),
                (one, ours, verify),
            ]
        rows: list[Row] = []
        session = await opened.enter_async_context(aiohttp.ClientSession())
        for what, own, peer in pairs:
            rows += await _compared(session, what, own, peer, rounds)
        return rows


_THRICE = Goal("times_less", 3.0)


async def _compared(
    session: ClientSession, what: str, own: _Side, peer: _Side, rounds: int
) -> list[Row]:
    found: dict[str, list[dict[Measure, float]]] = {"own": [], "peer": []}
    for number in range(rounds + 1):  # the first warms up
        sides = {"own": own, "peer": peer}
        for name in ("own", "peer") if number % 2 else ("peer", "own"):
            found[name].append(await sides[name].timed(session))
    return [
        Row(
            what=f"a graded item, {own.what}, {what}",
            measure=counted,
            unit="us",
            ours=[one[counted] for one in found["own"][1:]],
            peer=[one[counted] for one in found["peer"][1:]],
            beside=peer.what,
            goal=_THRICE if counted == "CPU" else None,
        )
        for counted in MEASURES
    ]


@contextmanager
def _endpoint(home: Path) -> Generator[ServerProcess]:
    file = home / "graders.yaml"
    file.write_text("- type: exact_match\n", encoding="utf-8")
    arguments = ["serve", "grader", str(file), "--port", "0"]
    with running(OURS, arguments, home) as process:
        yield process
