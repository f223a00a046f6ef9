"""Where workers are started: on one thread that lives as long as the process, some in advance.

The kernel kills a sandbox when the *thread* that started it ends; so it is not started by whoever
happens to need one. A worker in reserve takes over in milliseconds; it has seen no program yet.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterable
from queue import SimpleQueue

from assay.errors import SandboxError
from assay.sandbox.functions.session import WorkerSession, start

_RESERVE = 2


class _Order:
    """A worker that is started, or is to be."""

    def __init__(self, tier: str) -> None:
        self.tier = tier
        self.done = threading.Event()
        self.session: WorkerSession | None = None
        self.error: BaseException | None = None
        self.is_wanted = True

    def carry_out(self) -> None:
        """Start it."""
        try:
            self.session = start(self.tier)
        except BaseException as error:  # handed over to whoever takes it
            self.error = error
        self.done.set()

    def suits(self, tier: str) -> bool:
        """Whether it is such a worker, alive or on its way."""
        is_alive = self.session is not None and self.session.is_alive()
        return self.tier == tier and (is_alive or not self.done.is_set())


class Nursery:
    """Starts workers, and keeps a few in reserve as long as anybody may need them."""

    def __init__(self) -> None:
        self._reset()
        os.register_at_fork(after_in_child=self._forked)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._orders: SimpleQueue[_Order] = SimpleQueue()
        self._reserve: deque[_Order] = deque()
        self._users = 0
        self._is_running = False

    def enter(self) -> None:
        """Say that workers will be needed."""
        with self._lock:
            self._users += 1

    def leave(self) -> None:
        """Say that no more will be needed; the last one to say so ends the reserve."""
        idle: deque[_Order] = deque()
        with self._lock:
            self._users -= 1
            if self._users <= 0:
                idle, self._reserve = self._reserve, idle
        self._drop(idle)

    def take(self, tier: str) -> WorkerSession:
        """A worker that has loaded nothing yet: from the reserve, else a new one."""
        unfit: list[_Order] = []
        with self._lock:
            while self._reserve and not self._reserve[0].suits(tier):
                unfit.append(self._reserve.popleft())
            while len(self._reserve) < 1 + _RESERVE:  # this one, and those that stay
                self._reserve.append(_Order(tier))
                self._orders.put(self._reserve[-1])
            order = self._reserve.popleft()
            if not self._is_running:
                threading.Thread(target=self._work, name="assay-nursery", daemon=True).start()
                self._is_running = True
        self._drop(unfit)
        order.done.wait()
        if order.session is None:
            raise order.error or SandboxError("a worker could not be started")
        return order.session

    def _work(self) -> None:
        while True:
            order = self._orders.get()
            if order.is_wanted:
                order.carry_out()
            if not order.is_wanted:  # any more
                self._drop([order])

    def _drop(self, orders: Iterable[_Order]) -> None:
        """End workers that nobody will take, each of them once."""
        ended: list[WorkerSession] = []
        with self._lock:
            for order in orders:
                order.is_wanted = False
                ended += [order.session] if order.session is not None else []
                order.session = None
        for session in ended:
            session.kill()

    def _forked(self) -> None:
        for order in self._reserve:
            if order.session is not None:
                order.session.launched.disown()
        self._reset()


NURSERY = Nursery()
"""The nursery of this process."""
