"""Models asked from a cluster: within one set of limits and one budget, and on one account.

The limits are divided among the workers, so that none has to ask another. Rates and requests in
flight: each keeps to its part (`assay.models.pace.share_limits`). The budget: each piece of work is
sent with a slice, and what it leaves comes back with its result. A piece whose worker died, or that
was cancelled, may have paid for what nobody knows of, so all of its slice counts as spent.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from assay.errors import ModelError
from assay.eval.cluster.actors import Prepares
from assay.models import ModelSettings, current_client, using
from assay.models.ledger import Budget, Entry, Ledger, Reservation

if TYPE_CHECKING:
    from assay.models import ModelClient
    from assay.models.prices import Prices

_LOOK_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class _Sent:
    """A piece of work with its slice, and of which budget that is; None without one."""

    request: object
    slice: Budget | None
    whole_usd: float


@dataclass(frozen=True, slots=True)
class _Done:
    """A piece of work that is done.

    Attributes:
        made: What came of it.
        entries: What was asked.
        spent_usd: Of the slice.
        short_usd: What the dearest question may cost that the slice was too small for; else 0.
    """

    made: object
    entries: Sequence[Entry]
    spent_usd: float
    short_usd: float


class ClusterLimits:
    """The budget and the account of one piece of work on a cluster.

    What is asked there is on the account of the client when a piece is done, and takes from its
    budget. Its rates are not those of what this process asks itself.

    Args:
        client: Whose settings, budget and account hold; that of the process by default.
        may_repeat: Whether a piece that could ask nothing, since its slice was too small, is sent
            again with a larger one.
    """

    def __init__(self, client: ModelClient | None = None, *, may_repeat: bool = True) -> None:
        client = client or current_client()
        self._settings, self._ledger = client.settings, client.ledger
        self._may_repeat = may_repeat
        self._dearest = 0.0
        self._lent = 0
        self._turn = asyncio.Lock()  # one looks whether money has come back, not thousands

    def within(self, work: Callable[..., object]) -> WithinLimits:
        """The work, whose models are asked within these limits wherever it is done."""
        return WithinLimits(work, for_others(self._settings))

    async def lend(
        self,
        send: Callable[[object], Awaitable[object]],
        request: object,
        pieces: Callable[[], int],
    ) -> object:
        """Send a piece of work with a slice, and take back what it leaves.

        Args:
            send: Has a worker do `within`; raises if that died.
            request: The piece.
            pieces: How many are with workers or soon will be, this one included.
        """
        budget = self._ledger.budget
        while True:
            with await self._slice(pieces) as lent:
                amount = None if budget is None else replace(budget, max_cost_usd=lent.amount)
                whole = 0.0 if budget is None else budget.max_cost_usd
                self._lent += 1
                try:
                    done = cast("_Done", await send(_Sent(request, amount, whole)))
                finally:
                    self._lent -= 1
                lent.settle(done.spent_usd)
            for entry in done.entries:
                self._ledger.record(entry)
            is_in_vain = done.spent_usd > 0 or done.short_usd > self._left()[1]
            if not done.short_usd or is_in_vain or not self._may_repeat:
                return done.made
            self._dearest = max(self._dearest, done.short_usd)

    async def _slice(self, pieces: Callable[[], int]) -> Reservation:
        """An equal part of what is left, but enough for a question; waits for what is lent."""
        if self._ledger.budget is None:
            return Reservation(self._ledger, 0.0)
        async with self._turn:
            while True:
                left, in_all = self._left()
                least = self._dearest if self._dearest <= in_all else 0.0
                if left >= in_all or (left > 0.0 and left >= least):
                    break
                await asyncio.sleep(_LOOK_SECONDS)
            if left <= 0.0:
                return Reservation(self._ledger, 0.0)
            part = left / max(1, pieces() - self._lent)
            lent = self._ledger.reserve(min(left, max(part, least)), "work on a cluster")
            lent.sent()
            return lent

    def _left(self) -> tuple[float, float]:
        """US dollars of the budget that nobody has; and if nothing of what is lent were spent."""
        now = self._ledger.summary()
        in_all = (now.max_cost_usd or 0.0) - now.spent_usd
        return in_all - now.reserved_usd, in_all


class WithinLimits:
    """Work for `Actors` that asks models within the limits of the cluster.

    Args:
        work: What is done.
        settings: How models are reached.
    """

    def __init__(self, work: Callable[..., object], settings: ModelSettings) -> None:
        self._work = work
        self._settings = settings
        self._client: ModelClient | None = None

    async def prepare(self) -> None:
        """Make the process's client, and make ready what the work needs."""
        from assay.models import ModelClient

        self._client = ModelClient(self._settings.with_keys(os.environ))
        work: object = self._work
        if isinstance(work, Prepares) and (waited := work.prepare()) is not None:
            await waited

    async def __call__(self, request: object) -> _Done:
        """What comes of a piece of work, and what it asked and spent."""
        assert self._client is not None, "an actor prepares its work"
        sent, entries = cast("_Sent", request), list[Entry]()
        ledger = _Slice(sent, self._client.ledger.prices, entries.append)
        with using(self._client.on_account(ledger)):
            done = self._work(sent.request)
            done = await cast("Awaitable[object]", done) if inspect.isawaitable(done) else done
        now = ledger.summary()
        return _Done(done, entries, now.spent_usd + now.reserved_usd, ledger.short_usd)


class _Slice(Ledger):
    """The account of a piece of work, which knows for what its slice was too small."""

    def __init__(
        self, sent: _Sent, prices: Prices | None, listener: Callable[[Entry], None]
    ) -> None:
        super().__init__(sent.slice, prices, listener)
        self.short_usd = 0.0
        self._whole_usd = sent.whole_usd

    def reserve(self, estimate_usd: float | None, what: str) -> Reservation:
        """As of `Ledger`.

        Raises:
            ModelError: Likewise; it names the whole budget, which is the one that people know.
        """
        try:
            return super().reserve(estimate_usd, what)
        except ModelError as error:
            self.short_usd = max(self.short_usd, estimate_usd or 0.0)
            raise ModelError(
                f"this worker's part of the budget of ${self._whole_usd:,.2f}: {error.message}",
                kind=error.kind,
                hint=error.hint,
            ) from None


def for_others(settings: ModelSettings) -> ModelSettings:
    """Settings that mean the same in another directory; what is there is each machine's own.

    Keys are, too: what travels through a cluster may be kept on its disks. The budget is not one of
    theirs: it comes in slices.
    """
    prices = settings.prices_file
    return replace(
        settings.without_keys(),
        cache_file=str(Path(settings.cache_file).absolute()),
        prices_file=str(Path(prices).absolute()) if prices else "",
        max_cost_usd=None,
    )
