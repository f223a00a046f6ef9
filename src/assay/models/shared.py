"""A process whose limits are those of several: whatever it may do, it asks an `Office` for.

Where that is, and how it is reached, is nobody's business here: a `Courier` is given a function.
One thread of the process takes all that has come together there and back, so that a thousand
requests cost as many exchanges as there is time for, not a thousand. Where the office does not
answer nothing is asked: that is a fault, never an unlimited request.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeAlias

from assay.errors import ModelError
from assay.models.forking import ForkSafe
from assay.models.ledger import Budget, Entry, Ledger, Reservation
from assay.models.office import (
    LEASE_SECONDS,
    Answer,
    Ask,
    Money,
    Note,
    NoteKind,
    Pass,
    Places,
    Terms,
)
from assay.models.pace import EndpointClosedError, Gate, Lane, Limiter, Timing

if TYPE_CHECKING:
    from assay.models.prices import Prices

__all__ = ["Courier", "Exchange", "SharedLane", "SharedLedger"]

Exchange: TypeAlias = Callable[[str, "Sequence[Note]", "Sequence[Ask]"], "list[Answer]"]
"""Goes to `Office.exchange`, from a thread that may wait; raises whatever it likes without it."""


class Courier(ForkSafe):
    """Takes what the process asks and tells to the office, from any loop and thread.

    Args:
        exchange: The way there.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._numbers = itertools.count(1)
        super().__init__()
        self._begin()

    def renew(self) -> None:
        """A forked process is another one, and has nothing."""
        super().renew()
        self._begin()

    def _begin(self) -> None:
        self._who = secrets.token_hex(8)
        self._changed = threading.Condition(self.lock)
        self._thread: threading.Thread | None = None
        self._notes: list[Note] = []
        self._asks: list[tuple[Pass | Money, Future[Answer]]] = []
        self._turns: dict[Terms, deque[Future[Answer]]] = {}
        self._is_new = False
        self._held = 0

    def number(self) -> int:
        """A number that nothing else of this process has."""
        return next(self._numbers)

    def tell(self, kind: NoteKind, terms: Terms | None, what: object = None) -> None:
        """Tell the office something, soon."""
        with self._changed:
            self._notes.append((kind, terms, what))
            self._held -= kind == "back"
            self._wake()

    async def ask(self, ask: Pass | Money) -> Answer:
        """What the office answers.

        Raises:
            ModelError: If it does not.
        """
        answer = Future[Answer]()
        with self._changed:
            self._asks.append((ask, answer))
            self._wake()
        try:
            return await asyncio.wrap_future(answer)
        except asyncio.CancelledError:
            if not answer.cancel():  # answered in the same moment
                self._give_back(ask, answer.result())
            raise

    async def flush(self) -> None:
        """Wait until the office has taken in all that it was told.

        Raises:
            ModelError: If it does not answer.
        """
        await self.ask(Money(0.0, "", is_look=True))

    async def place(self, terms: Terms) -> int:
        """Wait for a place in a lane; first come, first served. Gives the epoch of its limit.

        Raises:
            ModelError: If the office does not answer.
        """
        turn = Future[Answer]()
        with self._changed:
            self._turns.setdefault(terms, deque()).append(turn)
            self._is_new = True
            self._wake()
        try:
            return (await asyncio.wrap_future(turn)).epoch
        except asyncio.CancelledError:
            if not turn.cancel() and turn.exception() is None:  # given in the same moment
                self.tell("back", terms)
            raise

    def _wake(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="assay-limits", daemon=True)
            self._thread.start()
        self._changed.notify()

    def _run(self) -> None:
        pause = LEASE_SECONDS / 4
        while True:
            with self._changed:
                waits = pause if self._held or any(self._turns.values()) else None
                self._changed.wait_for(lambda: self._notes or self._asks or self._is_new, waits)
                notes, self._notes = self._notes, []
                asks, self._asks = self._asks, []
                self._is_new = False
                turns = {terms: line for terms, line in self._turns.items() if line}
                wanted = [Places(terms, len(line)) for terms, line in turns.items()]
                who = self._who
            try:
                answers = self._exchange(who, notes, [*wanted, *(ask for ask, _ in asks)])
            except Exception:  # the boundary to the way there: whoever asked is told
                self._fail([answer for _, answer in asks])
                continue
            for (ask, waiting), answer in zip(asks, answers[len(wanted) :], strict=True):
                if waiting.set_running_or_notify_cancel():
                    waiting.set_result(answer)
                else:
                    self._give_back(ask, answer)
            pause = self._give(wanted, answers[: len(wanted)])

    def _give(self, wanted: Sequence[Places], answers: Sequence[Answer]) -> float:
        """Hand places on; gives the seconds after which to ask again or to give a sign of life."""
        pause = LEASE_SECONDS / 4
        for places, answer in zip(wanted, answers, strict=True):
            with self._changed:
                line = self._turns[places.terms]
                for _ in range(answer.count):
                    self._held += 1
                    while line and not line[0].set_running_or_notify_cancel():
                        line.popleft()
                    if line:
                        line.popleft().set_result(answer)
                    else:  # who waited has gone meanwhile
                        self._notes.append(("back", places.terms, None))
                        self._held -= 1
                if line:
                    pause = min(pause, answer.seconds)
        return pause

    def _give_back(self, ask: Pass | Money, answer: Answer) -> None:
        """Money that was set aside for somebody who has gone."""
        if isinstance(ask, Money) and not ask.is_look and answer.says == "yes":
            self.tell("settled", None, (ask.amount or 0.0, 0.0))

    def _fail(self, answers: list[Future[Answer]]) -> None:
        with self._changed:
            # What was told may be lost, so what it has is left to run out with its name.
            self._who, self._held = secrets.token_hex(8), 0
            for line in self._turns.values():
                answers += line
                line.clear()
        for answer in answers:
            if answer.set_running_or_notify_cancel():
                answer.set_exception(_gone())


def _gone() -> ModelError:
    return ModelError(
        "the actor that keeps the cluster's limits does not answer, and without it no model is "
        "asked",
        kind="unreachable",
        hint="start the command again: it resumes",
    )


class SharedGate(Gate):
    """A gate that the office keeps."""

    def __init__(self, terms: Terms, courier: Courier, timing: Timing) -> None:
        super().__init__(terms.name, timing=timing)
        self.is_calm = False  # there is always somebody to ask
        self._terms = terms
        self._courier = courier

    def cool(self, seconds: float) -> None:
        """All processes wait."""
        self._courier.tell("cool", self._terms, seconds)

    def succeeded(self) -> None:
        """The limiter tells it."""

    def failed(self, error: ModelError, *, breaker_after: int) -> None:
        """A request of this process was given up for a reason that is the endpoint's."""
        del breaker_after
        self._courier.tell("failed", self._terms, error)

    def ended(self, asker: object) -> None:
        """A request ended."""
        self._courier.tell("ended", self._terms, id(asker))


class SharedLimiter(Limiter):
    """The places of a lane that the office keeps; of all loops of the process."""

    def __init__(self, terms: Terms, courier: Courier) -> None:
        super().__init__(0, terms.most)
        self._terms = terms
        self._courier = courier

    def try_acquire(self) -> bool:
        """Never: it has to be waited for."""
        return False

    async def acquire(self) -> None:
        """Wait for a place."""
        self.epoch = await self._courier.place(self._terms)

    def release(self) -> None:
        """Give a place back."""
        self._courier.tell("back", self._terms)

    def succeeded(self) -> None:
        """A good reply came."""
        self._courier.tell("good", self._terms)

    def crowded(self, epoch: int) -> None:
        """It was too much."""
        self._courier.tell("crowded", self._terms, epoch)


class SharedLane(Lane):
    """A lane that the office keeps.

    Args:
        terms: Which one.
        courier: The way to the office.
        timing: Clock and chance.
    """

    def __init__(self, terms: Terms, courier: Courier, timing: Timing) -> None:
        super().__init__(SharedGate(terms, courier, timing), breaker_after=terms.breaker_after)
        self._limiter = SharedLimiter(terms, courier)
        self._terms = terms
        self._courier = courier

    def limiter(self) -> Limiter:
        """That of all loops."""
        return self._limiter

    async def wait(self, asker: object, tokens: int, patience: float) -> float:
        """Wait until a request may be sent.

        Raises:
            ModelError: If the breaker is open, it would take too long, or the office is gone.
        """
        waited = 0.0
        ask = Pass(self._terms, id(asker), tokens)
        while (answer := await self._courier.ask(ask)).says == "later":
            waited += await self.gate.rest(answer.seconds, patience)
        if answer.error is not None:
            error = answer.error
            raise EndpointClosedError(
                error.message, kind=error.kind, status=error.status, hint=error.hint
            )
        if answer.seconds > 0.0:
            await self.gate.timing.sleep(answer.seconds)
        return waited + answer.seconds


class SharedLedger(Ledger):
    """The account of a process whose budget is that of several; it has its own entries alone.

    Args:
        courier: The way to the office.
        budget: The one that the office keeps.
        prices: As of `Ledger`.
    """

    def __init__(
        self, courier: Courier, budget: Budget | None = None, prices: Prices | None = None
    ) -> None:
        super().__init__(budget, prices)
        self._courier = courier

    async def wait_for(
        self, estimate_usd: float | None, sleep: Callable[[float], Awaitable[object]]
    ) -> None:
        """As of `Ledger`."""
        if self.budget is not None:
            look = Money(estimate_usd, "", is_look=True)
            while (answer := await self._courier.ask(look)).says == "later":
                await sleep(answer.seconds)

    async def set_aside(self, estimate_usd: float | None, what: str) -> Reservation:
        """As of `Ledger`.

        Raises:
            ModelError: As `reserve` says; or if the office is gone.
        """
        if self.budget is None:
            return Reservation(self, 0.0)
        ask = Money(estimate_usd, what)
        answer = await self._courier.ask(ask)
        while answer.says == "later":
            await asyncio.sleep(answer.seconds)
            answer = await self._courier.ask(ask)
        if answer.error is not None:
            raise answer.error
        return Reservation(self, estimate_usd or 0.0)

    def settle(self, reserved: float, spent: float) -> None:
        """Turn money set aside into money spent."""
        super().settle(0.0, spent)
        self._courier.tell("settled", None, (reserved, spent))

    def record(self, entry: Entry) -> None:
        """Count an entry, and tell of it."""
        super().record(entry)
        self._courier.tell("entry", None, entry)
