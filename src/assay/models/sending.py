"""`Sending`: one request on its way to a reply of whatever kind: its turn, its tries, its money."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, fields, replace
from typing import Protocol, TypeVar

from assay.conversation.messages import Attempt, Purpose, ReplyUsage
from assay.errors import ModelError
from assay.models.faults import ENDPOINT_FAULTS, CallFault
from assay.models.ledger import Entry, EntryKind, Ledger
from assay.models.pace import EndpointClosedError, Limiter, Timing
from assay.models.prices import Prices
from assay.models.routes import Route
from assay.turns import queueing


class Got(Protocol):
    """What came back, as far as it is paid for."""

    @property
    def usage(self) -> ReplyUsage:
        """Tokens."""
        ...

    @property
    def model(self) -> str:
        """The model that the provider says answered."""
        ...


G = TypeVar("G", bound=Got)
P = TypeVar("P")
T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class Sending:
    """One request on its way.

    Attributes:
        model: The reference, for the ledger.
        purpose: For whom it is paid.
        route: Where it goes.
        ledger: What is paid.
        prices: What it costs.
        max_attempts: Tries.
        timing: Clock and chance.
        digest: Of the request.
        seconds: For the reply and all tries together; waiting for a turn is not in it.
        tokens: How many it is thought to need, for rates.
        attempts: The tries that failed.
        usage: Tokens of all replies; None before the first.
        cost: US dollars paid so far; None if a price is not known.
    """

    model: str
    purpose: Purpose
    route: Route
    ledger: Ledger
    prices: Prices | None
    max_attempts: int
    timing: Timing
    digest: str
    seconds: float
    tokens: int
    attempts: list[Attempt] = field(default_factory=list[Attempt], init=False)
    usage: ReplyUsage | None = field(default=None, init=False)
    cost: float | None = field(default=0.0, init=False)
    _begun: float = field(default=0.0, init=False)
    _deadline: float = field(default=0.0, init=False)

    @property
    def taken(self) -> float:
        """Seconds since it began to wait for its turn."""
        return self.timing.clock() - self._begun

    async def run(
        self, converse: Callable[[Limiter], Awaitable[T]], estimate: Callable[[], float | None]
    ) -> T:
        """Wait for a turn, then converse within one deadline.

        Args:
            converse: Sends, as often as it wants.
            estimate: What its first request may cost, asked for only where there is a budget.

        Raises:
            ModelError: If there is no usable reply.
        """
        lane = self.route.lane
        self._begun = self.timing.clock()
        limiter = lane.limiter()
        if not limiter.try_acquire():
            with queueing():
                await limiter.acquire()
        try:
            if not lane.is_free:
                with queueing():
                    await lane.wait(self, self.tokens, self.seconds)
            if self.ledger.budget is not None:
                with queueing():
                    await self.ledger.wait_for(estimate(), self.timing.sleep)
            return await self._within_deadline(converse, limiter)
        finally:
            limiter.release()
            if not lane.gate.is_calm:
                lane.gate.ended(self)

    async def _within_deadline(
        self, converse: Callable[[Limiter], Awaitable[T]], limiter: Limiter
    ) -> T:
        lane = self.route.lane
        self._deadline = asyncio.get_running_loop().time() + self.seconds
        try:
            async with asyncio.timeout_at(self._deadline):
                return await converse(limiter)
        except TimeoutError:
            before = f"; before that: {self.attempts[-1].reason}" if self.attempts else ""
            message = f"gave no reply within {self.seconds:g} seconds{before}"
            error = ModelError(f"{self.route.name} {message}", kind="timeout")
            lane.failed(error)
            raise error from None
        except EndpointClosedError:
            raise
        except ModelError as error:
            if error.kind in ENDPOINT_FAULTS:
                lane.failed(error)
            raise

    async def send(
        self,
        limiter: Limiter,
        *,
        prepare: Callable[[], P],
        post: Callable[[P, Callable[[], None]], Awaitable[G | CallFault]],
        kind: EntryKind = "call",
        estimate: float | None = None,
        learn: Callable[[CallFault], str] = lambda _: "",
    ) -> G:
        """Send until there is a reply of whatever kind, and pay it.

        Args:
            limiter: Of the turn.
            prepare: Makes the request, again whenever something was learned of the model.
            post: Sends it once; calls its second argument when it begins to go out.
            kind: What the ledger calls it.
            estimate: US dollars that it may cost.
            learn: Says what a refusal taught, which is left out of the next try.

        Raises:
            ModelError: If there is none.
        """
        capability = self.route.capability
        tries, version = 0, capability.version
        prepared = prepare()
        while True:
            if version != capability.version:
                version, prepared = capability.version, prepare()
            epoch, begun = limiter.epoch, self.timing.clock()
            got = await self._try(lambda sent, it=prepared: post(it, sent), estimate, kind, begun)
            if not isinstance(got, CallFault):
                limiter.succeeded()
                self.route.gate.succeeded()
                return got
            if got.may_teach and self._learned(got, version, learn):
                continue
            tries += 1
            if not got.may_be_paid:
                self._count(None, "retry", 0.0, begun, self._why(got))
            await self._pause(got, tries, epoch, limiter)

    async def _try(
        self,
        post: Callable[[Callable[[], None]], Awaitable[G | CallFault]],
        estimate: float | None,
        kind: EntryKind,
        begun: float,
    ) -> G | CallFault:
        """Send once, and pay: also what was sent and lost, which may have been worked on."""
        with self.ledger.reserve(estimate, self.route.name) as reservation:
            try:
                got = await post(reservation.sent)
            except BaseException:  # above all when it is cancelled, as by the deadline
                if reservation.is_sent:
                    self._count(None, "lost", None, begun)
                raise
            if not isinstance(got, CallFault):
                reservation.settle(self._pay(got, kind, begun))
            elif got.may_be_paid:
                reservation.settle(None)
                self._count(None, "lost", None, begun, self._why(got))
            else:
                reservation.release()
        return got

    def _learned(self, fault: CallFault, version: int, learn: Callable[[CallFault], str]) -> bool:
        """Whether what was refused will be left out of the next try."""
        if self.route.capability.version != version:
            return True  # another request has learned something meanwhile
        lesson = learn(fault)
        if lesson:
            self.attempts.append(Attempt(f"refused {lesson}", fault.status, 0.0))
        return bool(lesson)

    async def _pause(self, fault: CallFault, tries: int, epoch: int, limiter: Limiter) -> None:
        """Wait before the next try, or give up."""
        gate = self.route.gate
        is_too_much = fault.kind == "rate_limited" or fault.is_crowded
        if is_too_much:
            limiter.crowded(epoch)
        # Too much takes longer to pass than a fault does.
        wait = self.timing.backoff(tries + is_too_much) if fault.pause is None else fault.pause
        if fault.kind == "rate_limited" or fault.pause is not None:
            gate.cool(wait)
        if not fault.may_repeat or tries >= self.max_attempts:
            raise fault.error(self.route.name, tries)
        left = self._deadline - asyncio.get_running_loop().time()
        if wait > left:
            message = f"{fault.message}, and asks to wait {wait:.0f} seconds: beyond the deadline"
            raise replace(fault, message=message).error(self.route.name, tries)
        if self.route.lane.is_free:
            await self.timing.sleep(wait)
        else:
            with queueing():
                wait = await self.route.lane.wait(self, self.tokens, left)
        self.attempts.append(Attempt(fault.reason, fault.status, wait))

    def _pay(self, got: Got, kind: EntryKind, begun: float) -> float | None:
        usage = got.usage
        cost = self.prices.cost(self.route.priced, usage) if self.prices is not None else None
        self.cost = None if cost is None or self.cost is None else self.cost + cost
        self.usage = usage if self.usage is None else _sum(self.usage, usage)
        self._count(got, kind, cost, begun)
        return cost

    def _why(self, fault: CallFault) -> str:
        return f"{self.route.name} {fault.message}"

    def _count(
        self, got: Got | None, kind: EntryKind, cost: float | None, begun: float, why: str = ""
    ) -> None:
        self.ledger.record(
            Entry(
                model=self.model,
                served="" if got is None else got.model,
                purpose=self.purpose,
                kind=kind,
                usage=ReplyUsage() if got is None else got.usage,
                cost_usd=cost,
                seconds=self.timing.clock() - begun,
                digest=self.digest,
                why=why,
            )
        )


def _sum(one: ReplyUsage, other: ReplyUsage) -> ReplyUsage:
    names = (each.name for each in fields(ReplyUsage))
    return ReplyUsage(**{name: _plus(getattr(one, name), getattr(other, name)) for name in names})


def _plus(one: int | None, other: int | None) -> int | None:
    return None if one is None and other is None else (one or 0) + (other or 0)
