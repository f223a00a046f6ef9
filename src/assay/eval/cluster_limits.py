"""Models asked from a cluster: within one set of limits and one budget, and on one account.

An actor on the driver's machine keeps the limits (see `assay.models.office`). It ends with the
driver, and is not restarted if it dies, because what was spent would be forgotten. From then on no
model is asked, and what needs one is an error.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from assay.eval.actors import DEPTH, Actors, Prepares, ray
from assay.eval.cluster import Cluster
from assay.models import ModelSettings, current_client

if TYPE_CHECKING:
    from assay.models import ModelClient
    from assay.models.ledger import Budget, Entry, Ledger
    from assay.models.office import Answer, Ask, Note
    from assay.models.shared import Courier

__all__ = ["Limits", "WithinLimits", "cluster_limits", "for_others", "limited_actors"]

_REPORT_SECONDS = 0.5
_ANSWER_SECONDS = 20.0
"""How long the office may take to answer; it waits for nobody, so that this is its machine's."""


_Office: TypeAlias = Any
"""Ray's handle of the actor that has an `assay.models.office.Office`."""


class Limits:
    """The limits of one piece of work on a cluster.

    Args:
        name: By which workers find the actor that keeps them.
        office: The actor.
        settings: How models are reached, from every machine.
        telling: Ends when the actor does.
    """

    def __init__(
        self, name: str, office: _Office, settings: ModelSettings, telling: asyncio.Task[None]
    ) -> None:
        self._name = name
        self._office = office
        self._settings = settings
        self._telling = telling

    def when_gone(self, call: Callable[[], object]) -> None:
        """Call something once the actor that keeps them has died and no model can be asked."""

        def ended(telling: asyncio.Task[None]) -> None:
            if not telling.cancelled():
                call()

        self._telling.add_done_callback(ended)

    async def are_kept(self) -> bool:
        """Whether the actor that keeps them is alive; without it, asking a model is an error."""
        from ray.exceptions import RayError

        try:
            await self._office.exchange.remote("the driver", [], [])
        except RayError:
            return False
        return True

    def end(self) -> None:
        """Let nobody ask a model any more."""
        ray().kill(self._office)

    def within(self, work: Callable[..., object]) -> WithinLimits:
        """The work, whose models are asked within these limits wherever it is done."""
        return WithinLimits(work, self._name, self._settings)


class WithinLimits:
    """Work for `assay.eval.cluster.Actors` that asks models within the limits of the cluster.

    Args:
        work: What is done.
        office: The name of the actor that keeps the limits.
        settings: How models are reached.
    """

    def __init__(self, work: Callable[..., object], office: str, settings: ModelSettings) -> None:
        self._work = work
        self._office = office
        self._settings = settings
        self._found: _Office = None
        self._courier: Courier | None = None
        self._client: ModelClient | None = None

    async def prepare(self) -> None:
        """Make the process's client, and make ready what the work needs."""
        from assay.models import ModelClient
        from assay.models.shared import Courier

        self._courier = Courier(self._exchange)
        settings = self._settings.with_keys(os.environ)
        self._client = ModelClient(settings, courier=self._courier)
        work: object = self._work
        if isinstance(work, Prepares) and (waited := work.prepare()) is not None:
            await waited

    async def __call__(self, request: object) -> object:
        """What comes of a request; whatever was paid for it is on the account by then."""
        from assay.errors import ModelError
        from assay.models import using

        assert self._client is not None, "an actor prepares its work"
        assert self._courier is not None, "with the client"
        with using(self._client):
            done = self._work(request)
            done = await cast("Awaitable[object]", done) if inspect.isawaitable(done) else done
        if self._client.ledger.summary().groups:
            with suppress(ModelError):  # what it asked for says so itself
                await self._courier.flush()
        return done

    def _exchange(self, who: str, notes: Sequence[Note], asks: Sequence[Ask]) -> list[Answer]:
        if self._found is None:
            self._found = ray().get_actor(self._office)
        reply = self._found.exchange.remote(who, list(notes), list(asks))
        return cast("list[Answer]", ray().get(reply, timeout=_ANSWER_SECONDS))


@asynccontextmanager
async def limited_actors(
    cluster: Cluster,
    work: Callable[..., object],
    count: int = 0,
    *,
    asks: bool,
    depth: int = DEPTH,
    patience: float | None = None,
    blocks: float = 0.0,
) -> AsyncGenerator[Actors]:
    """A pool of actors, as `Cluster.actors`; with ``asks``, within one set of limits of models."""
    if not asks:
        with cluster.actors(work, count, depth=depth, patience=patience, blocks=blocks) as pool:
            yield pool
        return
    async with cluster_limits() as limits:
        within = limits.within(work)
        with cluster.actors(within, count, depth=depth, patience=patience, blocks=blocks) as pool:
            yield pool


@asynccontextmanager
async def cluster_limits(client: ModelClient | None = None) -> AsyncGenerator[Limits]:
    """Limits for work on the cluster that this process is connected to.

    What is asked there is on the account of the client, as it happens and whole at the end, and
    takes from its budget. Its rates are not the ones of what this process asks itself.

    Args:
        client: Whose settings, budget and account hold; that of the process by default.
    """
    from ray.exceptions import RayError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    from assay.models.ledger import Budget
    from assay.models.office import Office

    client = client or current_client()
    ledger, budget = client.ledger, client.ledger.budget
    if budget is not None:
        left = max(0.0, budget.max_cost_usd - ledger.summary().spent_usd)
        budget = Budget(left, allow_unknown=budget.allow_unknown)
    name = f"assay-limits-{secrets.token_hex(8)}"
    here = NodeAffinitySchedulingStrategy(ray().get_runtime_context().get_node_id(), soft=True)
    new = ray().remote(num_cpus=0, max_restarts=0, scheduling_strategy=here, name=name)
    office = new(Office).remote(budget)
    telling = asyncio.create_task(_tell(office, ledger))
    limits = Limits(name, office, for_others(client.settings, budget), telling)
    try:
        yield limits
    finally:
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)
        with suppress(RayError):
            await _take_over(office, ledger)
        limits.end()


def for_others(settings: ModelSettings, budget: Budget | None) -> ModelSettings:
    """Settings that mean the same in another directory; what is there is each machine's own.

    Keys are, too: what travels through a cluster may be kept on its disks.
    """
    prices = settings.prices_file
    return replace(
        settings.without_keys(),
        cache_file=str(Path(settings.cache_file).absolute()),
        prices_file=str(Path(prices).absolute()) if prices else "",
        max_cost_usd=None if budget is None else budget.max_cost_usd,
    )


async def _tell(office: _Office, ledger: Ledger) -> None:
    from ray.exceptions import RayError

    while True:
        await asyncio.sleep(_REPORT_SECONDS)
        try:
            await _take_over(office, ledger)
        except RayError:  # whoever asks a model is told
            return


async def _take_over(office: _Office, ledger: Ledger) -> None:
    """Add what was asked on the cluster since the last time to the account here."""
    entries, spent = cast("tuple[list[Entry], float]", await office.report.remote())
    for entry in entries:
        ledger.record(entry)
    ledger.settle(0.0, spent)
