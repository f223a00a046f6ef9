"""Calls that wait to be made, and those who wait for their outcomes."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from assay.errors import SandboxError
from assay.sandbox.functions.program import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio  # costs 50 ms, and whoever gets here has imported it

__all__ = ["Call", "Group", "Pending"]


class Group:
    """Some calls whose outcomes are awaited together, on one event loop.

    Attributes:
        future: Done when the last outcome is there.
        outcomes: In the order of the calls.
        is_abandoned: Whether nobody waits any more.
    """

    def __init__(self, count: int) -> None:
        from asyncio import get_running_loop

        self.loop = get_running_loop()
        self.future: asyncio.Future[None] = self.loop.create_future()
        self.outcomes: list[Outcome | None] = [None] * count
        self.left = count
        self.error: SandboxError | None = None
        self.is_abandoned = False

    def conclude(self) -> None:
        """On its own loop: let the waiting go on."""
        if not self.future.done():
            if self.error is not None:
                self.future.set_exception(self.error)
            else:
                self.future.set_result(None)


class Call:
    """One call of a group.

    Attributes:
        group: Whose it is.
        index: Its place there.
        payload: JSON.
    """

    __slots__ = ("group", "index", "payload")

    def __init__(self, group: Group, index: int, payload: bytes) -> None:
        self.group = group
        self.index = index
        self.payload = payload


class Pending:
    """The queue of a pool: filled from event loops, emptied by its threads.

    Args:
        most: Calls that may be there at one time, those that are being made included.

    Attributes:
        condition: Guards everything here.
        is_open: Whether there is anybody to make calls.
        is_closed: Whether there never will be any more.
    """

    def __init__(self, most: int) -> None:
        self.condition = threading.Condition()
        self.is_open = self.is_closed = False
        self._most = most
        self._queue: deque[Call] = deque()
        self._admitted = 0
        self._waiting: deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = deque()

    @property
    def admitted(self) -> int:
        """Calls that are waiting or being made."""
        return self._admitted

    @property
    def queued(self) -> int:
        """Calls that are waiting."""
        return len(self._queue)

    def admit(self, calls: Sequence[Call], first: int) -> int:
        """Queue as many of the calls from ``first`` on as there is room for.

        Returns:
            How many; -1 if nobody is here to make them.
        """
        with self.condition:
            if not self.is_open:
                return -1
            room = min(self._most - self._admitted, len(calls) - first)
            if room > 0:
                self._queue.extend(calls[first : first + room])
                self._admitted += room
                self.condition.notify(room)
            return max(0, room)

    def room_made(self) -> asyncio.Future[None]:
        """A future of the running loop, done when there may be room again."""
        from asyncio import get_running_loop

        loop = get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        with self.condition:
            if self._admitted < self._most or self.is_closed:
                future.set_result(None)
            else:
                self._waiting.append((loop, future))
        return future

    def take(self, most: int) -> list[Call]:
        """The next calls, no more than that; those nobody waits for are dropped. Not blocking."""
        taken: list[Call] = []
        queue = self._queue
        dropped = 0
        while queue and len(taken) < most:
            call = queue.popleft()
            if call.group.is_abandoned:
                dropped += 1
            else:
                taken.append(call)
        if dropped:
            self._leave(dropped)
        return taken

    def put_back(self, calls: Sequence[Call]) -> None:
        """Queue calls again, before all others."""
        with self.condition:
            self._queue.extendleft(reversed(calls))
            self.condition.notify(len(calls))

    def settle(self, calls: Sequence[Call], outcomes: Sequence[Outcome]) -> None:
        """Deliver what came of calls."""
        finished: dict[asyncio.AbstractEventLoop, list[Group]] = {}
        with self.condition:
            for call, outcome in zip(calls, outcomes, strict=True):
                group = call.group
                group.outcomes[call.index] = outcome
                group.left -= 1
                if group.left == 0:
                    finished.setdefault(group.loop, []).append(group)
            self._leave(len(calls))
        self._deliver(finished)

    def fail_all(self, error: SandboxError, taken: Sequence[Call] = ()) -> None:
        """Let everybody know that there will be no outcomes."""
        finished: dict[asyncio.AbstractEventLoop, list[Group]] = {}
        with self.condition:
            calls = [*taken, *self._queue]
            self._queue.clear()
            for call in calls:
                if call.group.error is None:
                    call.group.error = error
                    finished.setdefault(call.group.loop, []).append(call.group)
            self._leave(len(calls))
        self._deliver(finished)

    def open(self) -> None:
        """Admit calls, unless it is too late for that."""
        with self.condition:
            self.is_open = not self.is_closed

    def close(self, *, if_idle: bool = False) -> bool:
        """Admit nobody any more.

        Args:
            if_idle: Only if nobody is there.

        Returns:
            Whether it is closed now.
        """
        with self.condition:
            if if_idle and self._admitted:
                return False
            self.is_open, self.is_closed = False, True
            self._leave(0)
            self.condition.notify_all()
            return True

    def _leave(self, count: int) -> None:
        self._admitted -= count
        room = len(self._waiting) if self.is_closed else self._most - self._admitted
        while self._waiting and room > 0:
            loop, future = self._waiting.popleft()
            room -= 1
            _soon(loop, [future])

    @staticmethod
    def _deliver(finished: dict[asyncio.AbstractEventLoop, list[Group]]) -> None:
        for loop, groups in finished.items():
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(_conclude, groups)


def _conclude(groups: list[Group]) -> None:
    for group in groups:
        group.conclude()


def _soon(loop: asyncio.AbstractEventLoop, futures: list[asyncio.Future[None]]) -> None:
    def wake() -> None:
        for future in futures:
            if not future.done():
                future.set_result(None)

    with suppress(RuntimeError):
        loop.call_soon_threadsafe(wake)
