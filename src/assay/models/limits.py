"""Two bounds on asking: how many requests are in flight, and how much is asked a minute."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["Bucket", "Limiter"]


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

    def renew(self) -> None:
        """Take a new lock; see `forking`."""
        self._lock = threading.Lock()
