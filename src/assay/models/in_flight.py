"""Equal requests of this process that are under way at the same time are asked once.

The first one asks; the others wait until it is done and find its reply in the cache. Where it
leaves no reply because the endpoint failed, those that waited fail with it: asked one after the
other they would wait for the same again and again. Where its reply was invalid, the next one asks.
Requests may be in different event loops and threads.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Self

from assay.errors import ModelError
from assay.models.faults import ENDPOINT_FAULTS
from assay.models.forking import ForkSafe

__all__ = ["InFlight", "Turn"]

_SHARED = ENDPOINT_FAULTS | {"rate_limited"}
# A request and one that waits for it have the same deadline: the one that waits hears of it first.
_GRACE_SECONDS = 1.0


class InFlight(ForkSafe):
    """Who asks, and who waits, for each digest."""

    def __init__(self) -> None:
        super().__init__()
        self._slots: dict[str, _Slot] = {}

    def renew(self) -> None:
        """Nobody asks in a forked process what its parent asks."""
        super().renew()
        self._slots = {}

    def sharing(self, digest: str, patience: float) -> Turn:
        """Wait for the turn to ask; in the block, look into the cache first.

        Args:
            digest: The request's.
            patience: Seconds that it may take to be answered, once it is asked. Who has waited for
                so long while others asked does not wait for one more: it asks beside them.
        """
        return Turn(self, digest, patience)

    def answered(self, digest: str) -> None:
        """The reply can be found: whoever waits may look, all at once."""
        with self.lock:
            if slot := self._slots.get(digest):
                slot.is_answered = True

    def asked(self, digest: str) -> None:
        """Whoever has the slot is being asked from now on, and does not wait for a turn itself."""
        with self.lock:
            if (slot := self._slots.get(digest)) and slot.asked_at is None:
                slot.asked_at = time.monotonic()

    def enter(self, digest: str, turn: Turn) -> asyncio.Future[None] | None:
        """Take the slot, or a place in its queue."""
        with self.lock:
            slot = self._slots.get(digest)
            if slot is None:
                self._slots[digest] = _Slot()
                turn.is_asking = True
                return None
            turn.loop = asyncio.get_running_loop()
            turn.wake = turn.loop.create_future()
            slot.waiting.append(turn)
            return turn.wake

    def leave(self, digest: str, turn: Turn, error: BaseException | None = None) -> None:
        """Give up the slot, or the place in its queue."""
        with self.lock:
            slot = self._slots.get(digest)
            if slot is None or not turn.is_asking:
                if slot is not None and turn in slot.waiting:
                    slot.waiting.remove(turn)
                return
            turn.is_asking = False
            if slot.is_answered:
                del self._slots[digest]
                for waiting in slot.waiting:
                    waiting.call()
                return
            if isinstance(error, ModelError) and error.kind in _SHARED:
                slot.fail(error, turn.patience)
            while slot.waiting:
                following = slot.waiting.popleft()
                following.is_asking = True
                if following.call():
                    return
                following.is_asking = False
            del self._slots[digest]

    def has_to_wait(self, digest: str, turn: Turn, since: float) -> float:
        """Seconds that one who waits still has to; at 0 it has left the queue."""
        with self.lock:
            slot = self._slots.get(digest)
            if slot is None or turn not in slot.waiting:
                return 0.0  # it was called in this moment
            if slot.asked_at is None:
                return turn.patience
            ends = max(since, slot.asked_at) + turn.patience + _GRACE_SECONDS
            if (left := ends - time.monotonic()) <= 0.0:
                slot.waiting.remove(turn)
            return max(0.0, left)


class _Slot:
    """A digest that somebody asks for."""

    __slots__ = ("asked_at", "is_answered", "waiting")

    def __init__(self) -> None:
        self.asked_at: float | None = None
        self.is_answered = False
        self.waiting: deque[Turn] = deque()

    def fail(self, error: ModelError, patience: float) -> None:
        """End those who wait with an error; but not who may wait longer than who met it."""
        others = [waiting for waiting in self.waiting if waiting.patience > patience]
        for waiting in self.waiting:
            if waiting.patience <= patience:
                waiting.error = error
                waiting.call()
        self.waiting = deque(others)


class Turn(AbstractAsyncContextManager["Turn"]):
    """One request's turn: it asks, or waits, or looks for what another one asked."""

    def __init__(self, flights: InFlight, digest: str, patience: float) -> None:
        self._flights = flights
        self._digest = digest
        self.patience = patience
        self.is_asking = False
        self.error: ModelError | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self.wake: asyncio.Future[None] | None = None

    async def __aenter__(self) -> Self:
        wake = self._flights.enter(self._digest, self)
        if wake is not None:
            await self._wait(wake)
        return self

    def asked(self) -> None:
        """The request is being asked from now on."""
        if self.is_asking:
            self._flights.asked(self._digest)

    async def _wait(self, wake: asyncio.Future[None]) -> None:
        loop, since = asyncio.get_running_loop(), time.monotonic()
        timer: asyncio.TimerHandle | None = None

        def look() -> None:
            nonlocal timer
            if left := self._flights.has_to_wait(self._digest, self, since):
                timer = loop.call_later(left, look)
            else:
                _finish(wake)

        timer = loop.call_later(self.patience, look)
        try:
            await wake
        except BaseException:  # also when it is cancelled after it was given its turn
            self._flights.leave(self._digest, self)
            raise
        finally:
            timer.cancel()
        if (error := self.error) is not None:
            raise ModelError(error.message, kind=error.kind, status=error.status, hint=error.hint)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._flights.leave(self._digest, self, error)

    def call(self) -> bool:
        """Wake the request in its own loop; False when that loop is gone."""
        if self.loop is None or self.wake is None:
            return False
        try:
            self.loop.call_soon_threadsafe(_finish, self.wake)
        except RuntimeError:
            return False
        return True


def _finish(wake: asyncio.Future[None]) -> None:
    if not wake.done():
        wake.set_result(None)
