"""A budget that is handed out to the workers of a cluster in slices; here they are tasks."""

from __future__ import annotations

import asyncio
import json
import pickle
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from assay.errors import ModelError
from assay.eval.cluster.actors import EndsWorkersError
from assay.eval.cluster.limits import ClusterLimits
from assay.models import ModelClient, ModelSettings, current_client
from tests.model_servers import Scripted, question, scripted, verdict

_CENT = 0.01
"""What a question is thought to cost; its answer costs a twentieth of it."""


@dataclass(frozen=True)
class Asks:
    """Asks a model as often as it is told to; says how that ended."""

    model: str

    async def __call__(self, request: object) -> str:
        number, times = cast("tuple[int, int]", request)
        try:
            for time in range(times):
                seed = number * 1_000 + time
                await current_client().ask(question(self.model, seed=seed, max_tokens=100))
        except ModelError as error:
            return f"{error.kind}: {error.message}"
        return "answered"


class Cluster:
    """Has pieces of work done within limits, all at once."""

    def __init__(self, client: ModelClient, server: Scripted, *, may_repeat: bool = True) -> None:
        self.limits = ClusterLimits(client, may_repeat=may_repeat)
        self.within = self.limits.within(Asks(server.model))
        self.sent = 0
        self.to_come = 0
        self.before: Callable[[object], object] = lambda _: None

    async def send(self, sent: object) -> object:
        self.sent += 1
        self.before(sent)
        return pickle.loads(pickle.dumps(await self.within(sent)))

    async def do(self, *requests: object) -> list[object]:
        await self.within.prepare()
        self.to_come = len(requests)

        async def one(request: object) -> object:
            try:
                return await self.limits.lend(self.send, request, lambda: self.to_come)
            finally:
                self.to_come -= 1

        return list(await asyncio.gather(*map(one, requests), return_exceptions=True))


@asynccontextmanager
async def budget(place: Path, dollars: float) -> AsyncGenerator[tuple[ModelClient, Scripted]]:
    async with scripted([verdict()]) as server:
        prices = place / "prices.json"
        prices.write_text(
            json.dumps({"prices": [{"model": server.model, "input": 0, "output": 100}]})
        )
        settings = ModelSettings(prices_file=str(prices), max_cost_usd=dollars)
        yield ModelClient(settings), server


def kinds(ended: list[object]) -> Counter[str]:
    return Counter(str(one).partition(":")[0] for one in ended)


async def test_pieces_that_could_ask_nothing_are_sent_again_until_the_budget_is_used_up(
    tmp_path: Path,
) -> None:
    async with budget(tmp_path, 3 * _CENT) as (client, server):
        cluster = Cluster(client, server)
        ended = await cluster.do(*((number, 1) for number in range(60)))
    spent = client.ledger.summary()
    assert kinds(ended) == {"answered": 41, "budget": 19}
    assert len(server.seen) == spent.total(kind="call").count == 41
    assert spent.spent_usd == pytest.approx(41 * _CENT / 20)
    assert spent.reserved_usd == pytest.approx(0.0, abs=1e-9)
    assert spent.spent_usd + _CENT > 3 * _CENT  # no further question would be within it


async def test_a_piece_that_may_not_be_repeated_has_an_equal_part_and_says_so(
    tmp_path: Path,
) -> None:
    async with budget(tmp_path, 4 * _CENT) as (client, server):
        cluster = Cluster(client, server, may_repeat=False)
        ended = await cluster.do((1, 30), (2, 30))
        assert kinds(ended) == {"budget": 2}
        assert cluster.sent == 2
        # Two cents each: after twenty-one of a twentieth there is no whole one left.
        assert len(server.seen) == 2 * 21
        assert str(ended[0]).startswith("budget: this worker's part of the budget of $0.04: ")


async def test_what_a_piece_leaves_is_there_for_the_next(tmp_path: Path) -> None:
    async with budget(tmp_path, 2 * _CENT) as (client, server):
        cluster = Cluster(client, server, may_repeat=False)
        for number in range(10):
            assert await cluster.do((number, 2)) == ["answered"]
        assert client.ledger.summary().spent_usd == pytest.approx(_CENT)


async def test_the_slice_of_a_piece_whose_worker_died_is_spent(tmp_path: Path) -> None:
    def dies(sent: object) -> None:
        if cluster.sent == 1:
            raise EndsWorkersError("it died")

    async with budget(tmp_path, 4 * _CENT) as (client, server):
        cluster = Cluster(client, server)
        cluster.before = dies
        ended = await cluster.do((1, 1), (2, 1))
        assert kinds(ended) == {"it died": 1, "answered": 1}
        assert client.ledger.summary().spent_usd == pytest.approx(2 * _CENT + _CENT / 20)


async def test_without_a_budget_all_that_is_asked_is_on_the_account() -> None:
    async with scripted([verdict()]) as server:
        client = ModelClient(ModelSettings())
        assert kinds(await Cluster(client, server).do(*((number, 1) for number in range(9)))) == {
            "answered": 9
        }
    assert client.ledger.summary().total(kind="call").count == 9
