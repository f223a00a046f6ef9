"""Judges asked from the actors of a real cluster: one set of limits, one budget, one account."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from assay.errors import ModelError
from assay.eval.cluster.actors import Actors
from assay.eval.cluster.joining import Cluster, connected
from assay.eval.cluster.limits import ClusterLimits
from assay.models import ModelClient, ModelSettings, current_client
from tests.model_servers import Raw, Scripted, Seen, question, scripted, verdict

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def cluster(alone_with_ray: None) -> Generator[Cluster]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ADDRESS", "local")
        with connected("ray") as found:
            yield found


@dataclass(frozen=True)
class Asks:
    """Asks a model once for each request; says by which process and how that ended."""

    model: str

    async def __call__(self, number: object) -> tuple[int, str]:
        if number is None:
            return os.getpid(), "nothing asked"
        try:
            await current_client().ask(question(self.model, seed=number, max_tokens=100))
        except ModelError as failure:
            return os.getpid(), failure.kind
        return os.getpid(), "answered"


@asynccontextmanager
async def asking(client: ModelClient, server: Scripted) -> AsyncGenerator[Actors]:
    with Actors(Asks(server.model), 2, depth=64, limits=ClusterLimits(client)) as pool:
        there = set[object]()
        while len(there) < 2:  # the second one is still starting
            there = set(await asyncio.gather(pool(None), pool(None)))
        yield pool


async def ask(pool: Actors, count: int) -> list[tuple[int, str]]:
    found = await asyncio.gather(*(pool(number) for number in range(count)))
    return [one for one in found if isinstance(one, tuple)]


async def test_actors_ask_no_faster_than_one_process_may(cluster: Cluster) -> None:
    arrived: list[float] = []

    def judge(seen: Seen) -> Raw:
        del seen
        arrived.append(time.monotonic())
        return verdict()

    async with scripted(judge) as server:
        client = ModelClient(ModelSettings(requests_per_minute=600.0))
        async with asking(client, server) as pool:
            begun = time.monotonic()
            ended = await ask(pool, 80)
    assert {said for _, said in ended} == {"answered"}
    assert len({process for process, _ in ended}) == 2
    # A tenth of a minute's worth at once, then ten a second.
    for number, at in enumerate(sorted(arrived), 1):
        assert number <= 60 + 10 * (at - begun) + 1
    assert client.ledger.summary().total(kind="call").count == 80


async def test_no_more_are_in_flight_from_all_actors_than_the_limit(cluster: Cluster) -> None:
    busy = most = 0
    together = asyncio.Barrier(4)

    async def hold() -> None:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        await together.wait()
        await asyncio.sleep(0.05)  # in which a fifth one would come
        busy -= 1

    async with scripted([verdict()]) as server:
        server.hold = hold
        client = ModelClient(ModelSettings(first_concurrency=4, max_concurrency=4))
        async with asking(client, server) as pool:
            ended = await ask(pool, 60)
    assert most == 4
    assert {said for _, said in ended} == {"answered"}
    assert len({process for process, _ in ended}) == 2


async def test_a_budget_is_not_overspent_by_all_actors_together(
    cluster: Cluster, tmp_path: Path
) -> None:
    async with scripted([verdict()]) as server:
        prices = tmp_path / "prices.json"
        # Five tokens are written, for 0.002 dollars, of the hundred that are set aside.
        rows = [{"model": server.model, "input": 0, "output": 400}]
        prices.write_text(json.dumps({"prices": rows}))
        client = ModelClient(ModelSettings(prices_file=str(prices), max_cost_usd=0.1))
        async with asking(client, server) as pool:
            ended = await ask(pool, 60)
        summary = client.ledger.summary()
        assert {said for _, said in ended} == {"answered", "budget"}
        assert len(server.seen) == summary.total(kind="call").count
        assert summary.spent_usd == pytest.approx(0.002 * len(server.seen))
        assert 0.05 < summary.spent_usd <= 0.1
