"""The limits of several processes, kept in one place: `Office`.

It has the real gates, lanes and ledger. What the processes tell it and ask of it comes in
exchanges, each with all that has come together since the last one (see `assay.models.shared`), and
is answered at once: whoever has to wait is told for how long. So it waits for nobody, and whoever
dies leaves nothing behind but places, which are freed when its lease has run out, and money, which
then counts as spent.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, cast

from assay.errors import ModelError
from assay.frozen import frozen
from assay.models.ledger import Budget, Entry, Ledger
from assay.models.pace import EndpointClosedError, Gate, Lane, Limiter, Timing

__all__ = ["LEASE_SECONDS", "Answer", "Ask", "Money", "Note", "Office", "Pass", "Places", "Terms"]

LEASE_SECONDS = 30.0
"""How long a process keeps what it was given without a sign of life."""

_HEARD_SECONDS = 1.0
"""How long a place is kept for a process that waits for one and was just heard of."""

_EXCHANGES_A_SECOND = 200.0
_SHORTEST_PAUSE = 0.05


@frozen(kw_only=True)
class Terms:
    """A lane, as all processes know it: equal terms are one lane, equal addresses one gate.

    Attributes:
        address: Of the gate: the endpoint, and a digest of the key that pays.
        name: The endpoint, for messages.
        limits_of: The settings entry that the limits are of.
        first: Requests in flight at first, of all processes together.
        most: Most of them.
        breaker_after: Failures in a row after which the endpoint is left alone.
        requests_per_minute: Of all processes together; None for no such limit.
        tokens_per_minute: Likewise.
    """

    address: str
    name: str
    limits_of: str
    first: int
    most: int
    breaker_after: int
    requests_per_minute: float | None
    tokens_per_minute: float | None


@frozen
class Places:
    """So many more requests want to be in flight."""

    terms: Terms
    count: int


@frozen
class Pass:
    """One request wants to be sent.

    Attributes:
        terms: Its lane.
        asker: A number of its own within its process, for the breaker's sake.
        tokens: How many it is thought to need.
    """

    terms: Terms
    asker: int
    tokens: int


@frozen
class Money:
    """US dollars to be set aside, or only looked at, for what is asked.

    Attributes:
        amount: How many; None if that is not known.
        what: What is asked.
        is_look: Whether the answer is only whether there may be enough later.
    """

    amount: float | None
    what: str
    is_look: bool = False


Ask: TypeAlias = Places | Pass | Money


@frozen
class Answer:
    """To one thing that was asked.

    Attributes:
        says: ``yes``; ``later``, ask again; ``no``, and why; ``closed``, the breaker's no.
        seconds: To wait: before it is sent, or before it is asked for again.
        count: Places that were given.
        epoch: Of the lane's limit, see `Limiter`.
        error: Why not.
    """

    says: Literal["yes", "later", "no", "closed"]
    seconds: float = 0.0
    count: int = 0
    epoch: int = 0
    error: ModelError | None = None


NoteKind: TypeAlias = Literal[
    "back", "good", "crowded", "cool", "failed", "ended", "settled", "entry"
]

Note: TypeAlias = tuple[NoteKind, Terms | None, object]
"""What a process tells: of a lane, and what of it."""


@dataclass(slots=True)
class _Holder:
    """A process, and what it has."""

    heard: float
    places: Counter[Terms] = field(default_factory=Counter[Terms])
    money: float = 0.0


@dataclass(slots=True)
class _Shared:
    """A lane, and who waits for places in it: how many, since when."""

    lane: Lane
    limiter: Limiter
    waiting: dict[str, tuple[int, float]] = field(default_factory=dict[str, tuple[int, float]])


class Office:
    """The one account of several processes; for all threads.

    Args:
        budget: How much they may spend together; None for no bound.
        timing: Clock and chance.
        lease_seconds: How long a process keeps what it was given without a sign of life.
    """

    def __init__(
        self,
        budget: Budget | None = None,
        *,
        timing: Timing | None = None,
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        self.ledger = Ledger(budget)
        self._timing = timing or Timing()
        self._lease = lease_seconds
        self._lock = threading.Lock()
        self._gates: dict[str, Gate] = {}
        self._lanes: dict[Terms, _Shared] = {}
        self._holders: dict[str, _Holder] = {}
        self._entries: list[Entry] = []
        self._told = 0.0

    def exchange(self, who: str, notes: Iterable[Note], asks: Sequence[Ask]) -> list[Answer]:
        """Take in what a process tells, and answer each thing that it asks for, without waiting.

        Args:
            who: The process, under a name that it takes once: what is given is lent to that name.
            notes: What happened since, in order.
            asks: What it wants; of places, all that it still waits for.
        """
        with self._lock:
            now = self._timing.clock()
            self._end_those_not_heard(now)
            holder = self._holders.setdefault(who, _Holder(now))
            holder.heard = now
            for note in notes:
                self._take_in(who, holder, *note)
            wanted = {ask.terms for ask in asks if isinstance(ask, Places)}
            for terms, shared in self._lanes.items():
                if terms not in wanted:
                    shared.waiting.pop(who, None)
            return [self._answer(who, holder, ask, now) for ask in asks]

    def report(self) -> tuple[list[Entry], float]:
        """The entries that were recorded since the last report, and the dollars spent since."""
        with self._lock:
            entries, self._entries = self._entries, []
            spent = self.ledger.summary().spent_usd
            since, self._told = spent - self._told, spent
            return entries, since

    # What is told

    def _take_in(
        self, who: str, holder: _Holder, kind: NoteKind, terms: Terms | None, told: object
    ) -> None:
        if terms is None:
            if kind == "entry":
                self._entries.append(cast("Entry", told))
            else:
                self._settle(holder, *cast("tuple[float, float]", told))
            return
        shared = self._shared(terms)
        lane, limiter = shared.lane, shared.limiter
        match kind:
            case "back":
                if holder.places[terms]:  # else its lease ran out, and it was taken back
                    holder.places[terms] -= 1
                    limiter.release()
            case "good":
                limiter.succeeded()
                lane.gate.succeeded()
            case "crowded":
                limiter.crowded(cast("int", told))
            case "cool":
                lane.gate.cool(cast("float", told))
            case "failed":
                lane.failed(cast("ModelError", told))
            case _:
                lane.gate.ended(_asker(who, cast("int", told)))

    def _settle(self, holder: _Holder, reserved: float, spent: float) -> None:
        reserved = min(reserved, holder.money)
        holder.money -= reserved
        self.ledger.settle(reserved, spent)

    def _end_those_not_heard(self, now: float) -> None:
        """Take back the places of who is gone. Money set aside counts: it may have been paid."""
        late = [who for who, one in self._holders.items() if now - one.heard > self._lease]
        for who in late:
            holder = self._holders.pop(who)
            self.ledger.settle(holder.money, holder.money)
            for terms, count in holder.places.items():
                for _ in range(count):
                    self._lanes[terms].limiter.release()

    # What is asked

    def _answer(self, who: str, holder: _Holder, ask: Ask, now: float) -> Answer:
        if isinstance(ask, Money):
            return self._money(holder, ask)
        shared = self._shared(ask.terms)
        if isinstance(ask, Places):
            given = self._places(who, shared, ask, now)
            for _ in range(given):
                shared.limiter.try_acquire()
            holder.places[ask.terms] += given
            pause = max(_SHORTEST_PAUSE, len(shared.waiting) / _EXCHANGES_A_SECOND)
            says = "yes" if given == ask.count else "later"
            return Answer(says, pause, given, shared.limiter.epoch)
        gate = shared.lane.gate
        try:
            gate.check(_asker(who, ask.asker))
        except EndpointClosedError as error:
            return Answer("closed", error=error)
        if left := gate.cooling():
            return Answer("later", left)
        gate.calm_down()
        return Answer("yes", shared.lane.delay(ask.tokens))

    def _places(self, who: str, shared: _Shared, ask: Places, now: float) -> int:
        """How many of the free places are its: each is of the process that has the fewest.

        Without that whoever gives a place back and asks for one in the same exchange would have it
        again and again. The others' shares are kept for them until they ask again.
        """
        waiting, limiter = shared.waiting, shared.limiter
        waiting[who] = (ask.count, waiting[who][1] if who in waiting else now)
        for other in [one for one in waiting if self._is_quiet(one, now)]:
            del waiting[other]
        has = {one: self._holders[one].places[ask.terms] for one in waiting}
        wants = {one: count for one, (count, _) in waiting.items()}
        given = 0
        for _ in range(limiter.limit - limiter.busy):
            if not wants:
                break
            first = min(wants, key=lambda one: (has[one], waiting[one][1]))
            has[first] += 1
            wants[first] -= 1
            given += first == who
            if not wants[first]:
                del wants[first]
        if given == ask.count:
            del waiting[who]
        return given

    def _is_quiet(self, who: str, now: float) -> bool:
        holder = self._holders.get(who)
        return holder is None or now - holder.heard > _HEARD_SECONDS

    def _money(self, holder: _Holder, ask: Money) -> Answer:
        if ask.is_look or self.ledger.may_suffice_later(ask.amount):
            later = self.ledger.may_suffice_later(ask.amount)
            return Answer("later", _SHORTEST_PAUSE) if later else Answer("yes")
        try:
            self.ledger.reserve(ask.amount, ask.what)
        except ModelError as error:
            return Answer("no", error=error)
        holder.money += ask.amount or 0.0
        return Answer("yes")

    def _shared(self, terms: Terms) -> _Shared:
        shared = self._lanes.get(terms)
        if shared is None:
            gate = self._gates.get(terms.address)
            if gate is None:
                gate = self._gates[terms.address] = Gate(terms.name, timing=self._timing)
            lane = Lane(
                gate,
                breaker_after=terms.breaker_after,
                requests_per_minute=terms.requests_per_minute,
                tokens_per_minute=terms.tokens_per_minute,
            )
            limiter = Limiter(min(terms.first, terms.most), terms.most)
            shared = self._lanes[terms] = _Shared(lane, limiter)
        return shared


def _asker(who: str, number: int) -> str:
    """One object for each request, since a gate goes by identity."""
    return sys.intern(f"{who} {number}")
