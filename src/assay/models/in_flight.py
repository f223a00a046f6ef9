"""Equal requests of this process that are under way at the same time are asked once.

The first one asks; the others wait until it is done and find its reply in the cache. Where it
leaves no reply, the next one asks. Requests may be in different event loops and threads.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from contextlib import AbstractAsyncContextManager
from types import TracebackType

__all__ = ["InFlight"]


class InFlight:
    """Who asks, and who waits, for each digest."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slots: dict[str, _Slot] = {}

    def sharing(self, digest: str) -> AbstractAsyncContextManager[None]:
        """Wait for the turn to ask; in the block, look into the cache first."""
        return _Turn(self, digest)

    def answered(self, digest: str) -> None:
        """The reply can be found: whoever waits may look, all at once."""
        with self._lock:
            if slot := self._slots.get(digest):
                slot.is_answered = True

    def enter(self, digest: str, turn: _Turn) -> asyncio.Future[None] | None:
        """Take the slot, or a place in its queue."""
        with self._lock:
            slot = self._slots.get(digest)
            if slot is None:
                self._slots[digest] = _Slot()
                turn.is_asking = True
                return None
            turn.loop = asyncio.get_running_loop()
            turn.wake = turn.loop.create_future()
            slot.waiting.append(turn)
            return turn.wake

    def leave(self, digest: str, turn: _Turn) -> None:
        """Give up the slot, or the place in its queue."""
        with self._lock:
            if not turn.is_asking:
                slot = self._slots.get(digest)
                if slot is not None and turn in slot.waiting:
                    slot.waiting.remove(turn)
                return
            turn.is_asking = False
            slot = self._slots[digest]
            if slot.is_answered:
                del self._slots[digest]
                for waiting in slot.waiting:
                    waiting.call()
                return
            while slot.waiting:
                following = slot.waiting.popleft()
                following.is_asking = True
                if following.call():
                    return
                following.is_asking = False
            del self._slots[digest]


class _Slot:
    """A digest that somebody asks for."""

    __slots__ = ("is_answered", "waiting")

    def __init__(self) -> None:
        self.is_answered = False
        self.waiting: deque[_Turn] = deque()


class _Turn(AbstractAsyncContextManager[None]):
    """One request's turn: it asks, or waits, or looks for what another one asked."""

    def __init__(self, flights: InFlight, digest: str) -> None:
        self._flights = flights
        self._digest = digest
        self.is_asking = False
        self.loop: asyncio.AbstractEventLoop | None = None
        self.wake: asyncio.Future[None] | None = None

    async def __aenter__(self) -> None:
        wake = self._flights.enter(self._digest, self)
        if wake is None:
            return
        try:
            await wake
        except BaseException:  # also when it is cancelled after it was given its turn
            self._flights.leave(self._digest, self)
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._flights.leave(self._digest, self)

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
