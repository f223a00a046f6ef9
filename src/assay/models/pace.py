"""How fast an endpoint is asked: requests in flight, pauses, rates, and when to stop asking.

Shared by all that ask an endpoint are its cool-down (it said that it was asked too much: everybody
waits) and its breaker (it failed many times in a row: nobody asks for a while). That is its `Gate`.
A `Lane` through it has the limits of a settings entry, or of the settings: its rates, which all
event loops and threads of the process share, and the number of requests in flight, which is a
loop's own, and adapts: one more after as many good replies as are in flight, half as many when the
endpoint says it is too much.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from assay.errors import ModelError
from assay.frozen import frozen
from assay.models.forking import ForkSafe

OPEN_SECONDS = 30.0
_LONGEST_COOLING = 600.0
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0


@frozen(kw_only=True)
class Timing:
    """Where time and chance are taken from; tests bring their own.

    Attributes:
        sleep: Waits.
        uniform: A random number between two.
        clock: Seconds that only grow.
        now: Unix time in seconds, for dates in ``Retry-After``.
    """

    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    uniform: Callable[[float, float], float] = random.uniform
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time

    def backoff(
        self, tries: int, first: float = FIRST_PAUSE, longest: float = LONGEST_PAUSE
    ) -> float:
        """Seconds to wait after so many tries: anything up to a bound that doubles."""
        return self.uniform(0.0, min(longest, first * 2.0 ** min(tries - 1, 16)))


def asked_pause(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that a reply asks to wait: ``retry-after-ms``, or ``Retry-After`` in either form."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if not value:
            continue
        try:
            seconds = float(value[:30]) * unit
        except ValueError:
            seconds = _until(value, now)
        if math.isfinite(seconds):
            return max(0.0, seconds)
    return None


def _until(date: str, now: float) -> float:
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(date).timestamp() - now
    except (ValueError, TypeError, OverflowError):
        return math.nan


class EndpointClosedError(ModelError):
    """The breaker is open: the endpoint was not asked, so this says nothing new of it."""


class Gate(ForkSafe):
    """One endpoint, as all loops and threads of the process see it.

    Args:
        name: Its address, for messages.
        timing: Clock and chance.
    """

    def __init__(self, name: str, *, timing: Timing) -> None:
        self.name = name
        self.timing = timing
        self.is_calm = True
        """Whether nothing has to be waited for or asked about: the fast path."""
        self._cool_until = 0.0
        self._failures = 0
        self._opened_at: float | None = None
        self._prober: object = None
        self._last = ModelError("")
        super().__init__()

    def renew(self) -> None:
        """The parent's requests tell this process nothing."""
        super().renew()
        self._prober = None

    def cool(self, seconds: float) -> None:
        """Everybody waits; not for ever, whatever a server says."""
        with self.lock:
            until = self.timing.clock() + min(seconds, _LONGEST_COOLING)
            self._cool_until = max(self._cool_until, until)
            self.is_calm = False

    def cooling(self) -> float:
        """Seconds for which everybody waits still."""
        return max(0.0, self._cool_until - self.timing.clock()) if self._cool_until else 0.0

    def check(self, asker: object) -> None:
        """Refuse what would be asked in vain.

        Args:
            asker: The request. When the time has come one of them finds out for all, with as many
                tries as it takes, until it says that it ended.

        Raises:
            EndpointClosedError: While the breaker is open; its kind is that of the last failure.
        """
        with self.lock:
            if self._opened_at is None:
                return
            since = self.timing.clock() - self._opened_at
            if since >= OPEN_SECONDS and self._prober in (None, asker):
                self._prober = asker
                return
            last, left = self._last, max(1.0, OPEN_SECONDS - since)
        raise EndpointClosedError(
            f"{self.name} failed {self._failures} times in a row and is not asked for "
            f"{left:.0f} seconds; the last time: {last.message}",
            kind=last.kind,
            status=last.status,
            hint=last.hint,
        )

    def succeeded(self) -> None:
        """A request was answered."""
        if self._failures or self._opened_at is not None:
            with self.lock:
                self._failures = 0
                self._opened_at, self._prober = None, None
                self._settle()

    def failed(self, error: ModelError, *, breaker_after: int) -> None:
        """A request was given up for a reason that is the endpoint's."""
        with self.lock:
            self._failures += 1
            self._last = error
            if self._failures >= breaker_after:
                self._opened_at, self._prober = self.timing.clock(), None
                self.is_calm = False

    def ended(self, asker: object) -> None:
        """A request ended: if it was to find out for all and did not, another one may."""
        with self.lock:
            if self._prober is asker:
                self._prober = None

    async def wait(self, asker: object, patience: float) -> float:
        """Wait until the endpoint may be asked.

        Raises:
            ModelError: If the breaker is open, or it would take too long.
        """
        waited = 0.0
        self.check(asker)
        while (left := self.cooling()) > 0.0:
            if left > patience:
                message = f"{self.name} asks to wait {left:.0f} seconds"
                raise ModelError(message, kind="rate_limited", status=429)
            left += self.timing.uniform(0.0, min(1.0, left / 4.0))  # not all in the same moment
            await self.timing.sleep(left)
            waited += left
            self.check(asker)  # it may have failed meanwhile
        if self._cool_until:
            with self.lock:
                if self.cooling() == 0.0:
                    self._cool_until = 0.0
                    self._settle()
        return waited

    def _settle(self) -> None:
        self.is_calm = not self._cool_until and self._opened_at is None


class Lane(ForkSafe):
    """A way through a gate with limits of its own, for all loops and threads of the process.

    Args:
        gate: The endpoint's.
        first: Requests in flight at first, in each loop.
        most: Most of them.
        breaker_after: Failures in a row after which the endpoint is left alone.
        requests_per_minute: None for no such limit.
        tokens_per_minute: None for no such limit.
    """

    def __init__(
        self,
        gate: Gate,
        *,
        first: int = 16,
        most: int = 256,
        breaker_after: int = 20,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
    ) -> None:
        self.gate = gate
        self.requests = _bucket(requests_per_minute, gate.timing)
        self.tokens = _bucket(tokens_per_minute, gate.timing)
        self._first, self._most = min(first, most), most
        self._breaker_after = breaker_after
        self._shares = 1
        self._has_rates = self.requests is not None or self.tokens is not None
        super().__init__()
        self._limiters: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Limiter] = (
            weakref.WeakKeyDictionary()
        )

    def renew(self) -> None:
        """A forked process has none of the requests that its parent has in flight."""
        super().renew()
        self._limiters = weakref.WeakKeyDictionary()

    @property
    def is_free(self) -> bool:
        """Whether nothing has to be waited for or asked about: the fast path."""
        return self.gate.is_calm and not self._has_rates

    def limiter(self) -> Limiter:
        """The running loop's limiter."""
        loop = asyncio.get_running_loop()
        limiter = self._limiters.get(loop)
        if limiter is None:
            with self.lock:
                first, most = (max(1, each // self._shares) for each in (self._first, self._most))
                limiter = self._limiters[loop] = Limiter(first, most)
        return limiter

    def failed(self, error: ModelError) -> None:
        """A request was given up for a reason that is the endpoint's."""
        self.gate.failed(error, breaker_after=self._breaker_after)

    async def wait(self, asker: object, tokens: int, patience: float) -> float:
        """Wait until a request may be sent.

        Raises:
            ModelError: If the breaker is open, or it would take too long.
        """
        waited = await self.gate.wait(asker, patience)
        delay = max(
            self.requests.take(1.0) if self.requests else 0.0,
            self.tokens.take(tokens) if self.tokens else 0.0,
        )
        if delay > 0.0:
            await self.gate.timing.sleep(delay)
        return waited + delay

    def keep_to(self, shares: int) -> None:
        """Keep to one of so many equal parts of the limits; one request may always be in flight."""
        with self.lock:
            self._shares = shares
            for bucket in (self.requests, self.tokens):
                if bucket is not None:
                    bucket.keep_to(shares)
            for limiter in self._limiters.values():
                limiter.most = max(1, self._most // shares)
                limiter.limit = min(limiter.limit, limiter.most)


def _bucket(per_minute: float | None, timing: Timing) -> Bucket | None:
    return Bucket(per_minute, timing.clock) if per_minute else None


_GATES: weakref.WeakValueDictionary[tuple[object, ...], Gate] = weakref.WeakValueDictionary()
_LANES: weakref.WeakValueDictionary[tuple[object, ...], Lane] = weakref.WeakValueDictionary()


_LOCK = ForkSafe(reentrant=True)
_SHARES = [1]


def gate_of(address: tuple[object, ...], make: Callable[[], Gate]) -> Gate:
    """The process's gate of an address; forgotten when no client holds it any more."""
    with _LOCK.lock:
        gate = _GATES.get(address)
        if gate is None:
            gate = _GATES[address] = make()
        return gate


def lane_of(limits: tuple[object, ...], make: Callable[[], Lane]) -> Lane:
    """The process's lane with these limits; forgotten when no client holds it any more."""
    with _LOCK.lock:
        lane = _LANES.get(limits)
        if lane is None:
            lane = _LANES[limits] = make()
            lane.keep_to(_SHARES[0])
        return lane


def share_limits(processes: int) -> None:
    """Have this process keep to its part of all limits: it is one of so many that ask alike."""
    with _LOCK.lock:
        _SHARES[0] = processes
        for lane in list(_LANES.values()):
            lane.keep_to(processes)


@dataclass(slots=True)
class Limiter:
    """How many requests one loop has in flight at one endpoint; first come, first served.

    Attributes:
        limit: How many there may be.
        most: Highest limit.
        busy: How many there are.
        epoch: Grows whenever the limit is halved; what was sent before says nothing new.
    """

    limit: int
    most: int
    busy: int = 0
    epoch: int = 0
    _waiting: deque[asyncio.Future[None]] = field(
        default_factory=deque["asyncio.Future[None]"], init=False, repr=False
    )
    _good: int = field(default=0, init=False, repr=False)

    def try_acquire(self) -> bool:
        """Take a place if there is one.

        Nobody who waits is overtaken: a place that becomes free, or is new, is handed on in the
        same moment, so there is none to take while anybody waits.
        """
        if self.busy >= self.limit:
            return False
        self.busy += 1
        return True

    async def acquire(self) -> None:
        """Take a place, or wait for one."""
        if self.try_acquire():
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()  # the place was given in the same moment
            raise  # else `_wake` passes it over

    def release(self) -> None:
        """Give a place back."""
        self.busy -= 1
        self._wake()

    def succeeded(self) -> None:
        """A good reply came."""
        self._good += 1
        if self._good >= self.limit:
            self._good = 0
            # What was never filled says nothing of how much is taken.
            if self.limit < self.most and (self._waiting or self.busy >= self.limit):
                self.limit += 1
                self._wake()

    def crowded(self, epoch: int) -> None:
        """It was too much; several replies to one burst count once."""
        self._good = 0
        if epoch == self.epoch:
            self.epoch += 1
            self.limit = max(1, self.limit // 2)

    def _wake(self) -> None:
        while self._waiting and self.busy < self.limit:
            turn = self._waiting.popleft()
            if not turn.done():
                self.busy += 1
                turn.set_result(None)


class Bucket(ForkSafe):
    """So much a minute; for all threads.

    A tenth of a minute's worth may be taken at once. What is taken beyond is waited for, in turn.

    Args:
        per_minute: How much.
        clock: Seconds that only grow.
    """

    def __init__(self, per_minute: float, clock: Callable[[], float]) -> None:
        super().__init__()
        self.per_minute = per_minute
        self.clock = clock
        self._shares = 1
        self._level, self._at = self._most, clock()

    @property
    def _most(self) -> float:
        return max(1.0, self.per_minute / 10.0) / self._shares

    def keep_to(self, shares: int) -> None:
        """Have one of so many equal parts from now on."""
        self.take(0.0)
        with self.lock:
            self._shares = shares
            self._level = min(self._most, self._level)

    def take(self, amount: float) -> float:
        """Take some, or give it back if it is negative."""
        with self.lock:
            now = self.clock()
            self._level += (now - self._at) * self.per_minute / self._shares / 60.0
            self._at = now
            self._level = min(self._most, self._level) - amount
            return max(0.0, -self._level * 60.0 * self._shares / self.per_minute)
