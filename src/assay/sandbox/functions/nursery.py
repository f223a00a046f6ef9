"""Where workers are started: on one thread that lives as long as the process, some in advance.

The kernel kills a sandbox when the *thread* that started it ends; so it is not started by whoever
happens to need one. A worker in reserve takes over in milliseconds; it has seen no program yet.
"""

from __future__ import annotations

import os
import threading
from collections import deque

from assay.errors import AssayError, SandboxError
from assay.sandbox.functions.session import Session, start

__all__ = ["NURSERY", "Nursery"]

_RESERVE = 2


class _Order:
    """Somebody waits for a worker."""

    def __init__(self, tier: str) -> None:
        self.tier = tier
        self.done = threading.Event()
        self.session: Session | None = None
        self.error: AssayError | None = None


class Nursery:
    """Starts workers, and keeps a few in reserve as long as anybody may need them."""

    def __init__(self) -> None:
        self._reset()
        os.register_at_fork(after_in_child=self._forked)

    def _reset(self) -> None:
        self._condition = threading.Condition()
        self._orders: deque[_Order] = deque()
        self._reserve: list[Session] = []
        self._users = 0
        self._tier = ""
        self._is_running = False

    def enter(self) -> None:
        """Say that workers will be needed."""
        with self._condition:
            self._users += 1

    def leave(self) -> None:
        """Say that no more will be needed; the last one to say so ends the reserve."""
        idle: list[Session] = []
        with self._condition:
            self._users -= 1
            if self._users <= 0:
                idle, self._reserve, self._tier = self._reserve, [], ""
        for session in idle:
            session.kill()

    def take(self, tier: str) -> Session:
        """A worker that has loaded nothing yet: from the reserve, else a new one.

        Raises:
            SandboxUnavailableError: This machine cannot isolate it.
            SandboxError: It could not be started.
        """
        order = _Order(tier)
        unfit: list[Session] = []
        with self._condition:
            self._tier = tier
            while self._reserve and order.session is None:
                session = self._reserve.pop(0)
                if session.tier == tier and session.is_alive():
                    order.session = session
                else:
                    unfit.append(session)
            if order.session is None:
                self._orders.append(order)
            self._wake()
        for session in unfit:
            session.kill()
        if order.session is None:
            order.done.wait()
        if order.session is None:
            raise order.error or SandboxError("a worker could not be started")
        return order.session

    def _wake(self) -> None:
        if not self._is_running:
            threading.Thread(target=self._work, name="assay-nursery", daemon=True).start()
            self._is_running = True
        self._condition.notify_all()

    def _work(self) -> None:
        condition = self._condition
        while True:
            with condition:
                while not self._orders and not self._lacks_reserve():
                    condition.wait()
                order = self._orders.popleft() if self._orders else None
                tier = order.tier if order else self._tier
            try:
                session = start(tier)
            except AssayError as error:
                if order is None:
                    with condition:
                        self._tier = ""  # no reserve until somebody gets a worker again
                else:
                    order.error = error
                    order.done.set()
                continue
            if order is not None:
                order.session = session
                order.done.set()
                continue
            with condition:
                is_wanted = self._lacks_reserve() and self._tier == tier
                if is_wanted:
                    self._reserve.append(session)
            if not is_wanted:
                session.kill()

    def _lacks_reserve(self) -> bool:
        return bool(self._users > 0 and self._tier and len(self._reserve) < _RESERVE)

    def _forked(self) -> None:
        for session in self._reserve:
            session.launched.disown()
        self._reset()


NURSERY = Nursery()
"""The nursery of this process."""
