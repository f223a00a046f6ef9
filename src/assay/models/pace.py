"""How fast an endpoint is asked: requests in flight, pauses, rates, and when to stop asking.

Shared by all event loops and threads of the process are an endpoint's cool-down (it said that it
was asked too much: everybody waits), its breaker (it failed many times in a row: nobody asks for a
while) and its rates. The number of requests in flight is a loop's own, and adapts: one more after
as many good replies as are in flight, half as many when the endpoint says it is too much.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
import weakref
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from assay.errors import ModelError

__all__ = ["Bucket", "Gate", "Limiter", "Timing", "gate_of"]

_OPEN_SECONDS = 30.0
_LONGEST_COOLING = 600.0
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
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

    def backoff(self, tries: int) -> float:
        """Seconds to wait after so many tries: anything up to a bound that doubles."""
        return self.uniform(0.0, min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(tries - 1, 16)))


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
        """Take a place if there is one; while anybody waits there is none."""
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
        """It was too much; several replies to one burst count once.

        Args:
            epoch: What `epoch` was when the request was sent.
        """
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


@dataclass(slots=True)
class Bucket:
    """So much a minute; for all threads.

    A tenth of a minute's worth may be taken at once. What is taken beyond is waited for, in turn.

    Attributes:
        per_minute: How much.
        clock: Seconds that only grow.
    """

    per_minute: float
    clock: Callable[[], float]
    _level: float = field(default=0.0, init=False)
    _at: float = field(default=0.0, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def __post_init__(self) -> None:
        self._level, self._at = self._most, self.clock()

    @property
    def _most(self) -> float:
        return max(1.0, self.per_minute / 10.0)

    def take(self, amount: float) -> float:
        """Take some, or give it back if it is negative.

        Returns:
            Seconds to wait before it may be used.
        """
        with self._lock:
            now = self.clock()
            self._level += (now - self._at) * self.per_minute / 60.0
            self._at = now
            self._level = min(self._most, self._level) - amount
            return max(0.0, -self._level * 60.0 / self.per_minute)


class Gate:
    """One endpoint, as all loops and threads of the process see it.

    Args:
        name: Its address, for messages.
        breaker_after: Failures in a row after which it is left alone.
        timing: Clock and chance.
        requests_per_minute: None for no such limit.
        tokens_per_minute: None for no such limit.
    """

    def __init__(
        self,
        name: str,
        *,
        breaker_after: int,
        timing: Timing,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
    ) -> None:
        self.name = name
        self.timing = timing
        self.requests = _bucket(requests_per_minute, timing)
        self.tokens = _bucket(tokens_per_minute, timing)
        self.is_calm = True
        """Whether nothing has to be waited for or asked about: the fast path."""
        self._breaker_after = breaker_after
        self._cool_until = 0.0
        self._failures = 0
        self._opened_at: float | None = None
        self._is_probed = False
        self._last = ModelError("")
        self._lock = threading.Lock()
        self._limiters: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Limiter] = (
            weakref.WeakKeyDictionary()
        )
        self._settle()

    def limiter(self, first: int, most: int) -> Limiter:
        """The running loop's limiter."""
        loop = asyncio.get_running_loop()
        limiter = self._limiters.get(loop)
        if limiter is None:
            with self._lock:
                limiter = self._limiters[loop] = Limiter(min(first, most), most)
        return limiter

    def cool(self, seconds: float) -> None:
        """Everybody waits; not for ever, whatever a server says."""
        with self._lock:
            until = self.timing.clock() + min(seconds, _LONGEST_COOLING)
            self._cool_until = max(self._cool_until, until)
            self.is_calm = False

    def cooling(self) -> float:
        """Seconds for which everybody waits still."""
        return max(0.0, self._cool_until - self.timing.clock()) if self._cool_until else 0.0

    def check(self) -> None:
        """Refuse what would be asked in vain.

        Raises:
            ModelError: While the breaker is open; its kind is that of the last failure.
        """
        with self._lock:
            if self._opened_at is None:
                return
            since = self.timing.clock() - self._opened_at
            if since >= _OPEN_SECONDS and not self._is_probed:
                self._is_probed = True  # this one finds out for all
                return
            last, left = self._last, max(1.0, _OPEN_SECONDS - since)
        raise ModelError(
            f"{self.name} failed {self._failures} times in a row and is not asked for "
            f"{left:.0f} seconds; the last time: {last.message}",
            kind=last.kind,
            status=last.status,
            hint=last.hint,
        )

    def succeeded(self) -> None:
        """A request was answered."""
        if self._failures or self._opened_at is not None:
            with self._lock:
                self._failures = 0
                self._opened_at, self._is_probed = None, False
                self._settle()

    def failed(self, error: ModelError) -> None:
        """A request was given up for a reason that is the endpoint's."""
        with self._lock:
            self._failures += 1
            self._last = error
            if self._failures >= self._breaker_after:
                self._opened_at, self._is_probed = self.timing.clock(), False
                self.is_calm = False

    def given_up(self) -> None:
        """A request ended without telling anything of the endpoint: another may find out."""
        self._is_probed = False

    async def wait(self, tokens: int, patience: float) -> float:
        """Wait until a request may be sent.

        Args:
            tokens: That it is thought to need, read and written.
            patience: Seconds that are too long to wait for an endpoint to cool down.

        Returns:
            Seconds waited.

        Raises:
            ModelError: If the breaker is open, or it would take too long.
        """
        waited = 0.0
        self.check()
        while (left := self.cooling()) > 0.0:
            if left > patience:
                raise ModelError(
                    f"{self.name} asks to wait {left:.0f} seconds",
                    kind="rate_limited",
                    status=429,
                )
            left += self.timing.uniform(0.0, min(1.0, left / 4.0))  # not all in the same moment
            await self.timing.sleep(left)
            waited += left
        rate = max(
            self.requests.take(1.0) if self.requests else 0.0,
            self.tokens.take(tokens) if self.tokens else 0.0,
        )
        if rate > 0.0:
            await self.timing.sleep(rate)
        self._calm_down()
        return waited + rate

    def _calm_down(self) -> None:
        if self._cool_until and self.cooling() == 0.0:
            with self._lock:
                if self.cooling() == 0.0:
                    self._cool_until = 0.0
                    self._settle()

    def _settle(self) -> None:
        self.is_calm = (
            self.requests is None
            and self.tokens is None
            and not self._cool_until
            and self._opened_at is None
        )


def _bucket(per_minute: float | None, timing: Timing) -> Bucket | None:
    return Bucket(per_minute, timing.clock) if per_minute else None


_GATES: weakref.WeakValueDictionary[tuple[object, ...], Gate] = weakref.WeakValueDictionary()
_GATES_LOCK = threading.Lock()


def gate_of(address: tuple[object, ...], make: Callable[[], Gate]) -> Gate:
    """The process's gate of an address; forgotten when no client holds it any more."""
    with _GATES_LOCK:
        gate = _GATES.get(address)
        if gate is None:
            gate = _GATES[address] = make()
        return gate
