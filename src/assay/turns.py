"""Turns: an item that is worked on has so many seconds, which do not run while it waits in a queue.

Whoever grades many items gives each of them a turn (`assay.graders.driver`). Whatever makes an item
wait for others says so (`queueing`), and what can end work by itself, in another process, asks how
long the turn still lasts (`seconds_left`). Nobody else need know of turns.

A server also says for which project it works (`working_for`), so that what is scarce is shared
among projects wherever it is waited for (`whose`). And who wants to know what single items cost is
told of it as they end (`told_of_charges`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from assay.errors import AssayError


class LateError(AssayError):
    """The turn is over: what was being done has been ended."""


class WorkTurn:
    """The time of an item, or of several that are worked on together.

    Args:
        limit: Seconds that it has; None for no end.

    Attributes:
        limit: As given.
        each: Seconds of the single items that are worked on together, where they are known.
    """

    def __init__(self, limit: float | None = None) -> None:
        self.limit = limit
        self.each: list[float] = []
        self._done: list[float] = []
        self._lock = threading.Lock()  # an item may wait in several threads at once
        self._queues = 0
        self._clock: float = -time.perf_counter()  # runs if no time is added but the present one

    @property
    def spent(self) -> float:
        """Seconds that were worked so far, queueing not counted."""
        with self._lock:
            return self._clock if self._queues else self._clock + time.perf_counter()

    @property
    def left(self) -> float | None:
        """Seconds that are left, negative if it is over; None for no end."""
        return None if self.limit is None else self.limit - self.spent

    @property
    def is_waiting(self) -> bool:
        """Whether it waits in a queue."""
        return self._queues > 0

    def add(self, seconds: float) -> None:
        """Count what somebody else has measured."""
        with self._lock:
            self._clock += seconds

    def begin(self) -> None:
        """The turn is the first one's of several, which are worked on one after the other."""
        with self._lock:
            self._clock = -time.perf_counter()

    def next(self) -> None:
        """One of several is done, and the turn is the next one's."""
        with self._lock:
            now = time.perf_counter()
            self._done.append(self._clock + now)
            self._clock = -now

    def took(self, seconds: Iterable[float]) -> None:
        """Several items are done, and each took so long."""
        self._done += seconds

    def put_down(self, were_done: Sequence[bool]) -> None:
        """All items are through a grader, but for those that it had nothing to do with."""
        if self._done and len(self._done) == sum(were_done):
            done = iter(self._done)
            now = [next(done) if was_done else 0.0 for was_done in were_done]
            before = self.each or [0.0] * len(now)
            self.each = [one + other for one, other in zip(before, now, strict=True)]
        self._done = []

    def stop(self) -> None:
        """It waits for something that is not its doing; of several waits the longest counts."""
        with self._lock:
            if not self._queues:
                self._clock += time.perf_counter()
            self._queues += 1

    def go_on(self) -> None:
        """It need not wait any more."""
        with self._lock:
            self._queues -= 1
            if not self._queues:
                self._clock -= time.perf_counter()


_TURN: ContextVar[WorkTurn | None] = ContextVar("assay_turn", default=None)


def current_turn() -> WorkTurn | None:
    """The turn in which this task or thread works; None where nobody gave one."""
    return _TURN.get()


def seconds_left() -> float | None:
    """Seconds that the turn still lasts; None for no end."""
    turn = _TURN.get()
    return None if turn is None else turn.left


@contextmanager
def taking(turn: WorkTurn) -> Generator[None]:
    """Within it, work is done in a turn; also what is started from it."""
    token = _TURN.set(turn)
    try:
        yield
    finally:
        _TURN.reset(token)


@contextmanager
def queueing() -> Generator[None]:
    """Within it, the time of the turn does not run."""
    turn = _TURN.get()
    if turn is None:
        yield
        return
    turn.stop()
    try:
        yield
    finally:
        turn.go_on()


_PROJECT: ContextVar[str] = ContextVar("assay_project", default="")


def whose() -> str:
    """The project for which this task or thread works; empty where nobody said."""
    return _PROJECT.get()


@contextmanager
def working_for(project: str) -> Generator[None]:
    """Within it, work is done for a project; also what is started from it."""
    token = _PROJECT.set(project)
    try:
        yield
    finally:
        _PROJECT.reset(token)


class Charges:
    """What models were paid for an item.

    Attributes:
        calls: Questions that they were asked, and that no cache answered.
        usd: What all of it cost, in US dollars; None once a price was not known.
    """

    def __init__(self) -> None:
        self.calls = 0
        self.usd: float | None = 0.0
        self._lock = threading.Lock()

    def add(self, usd: float | None, *, is_call: bool) -> None:
        """Count a reply; a try without one has no price, and is not counted."""
        with self._lock:
            self.calls += is_call
            if usd is None and is_call:
                self.usd = None
            elif self.usd is not None:
                self.usd += usd or 0.0


_CHARGES: ContextVar[Charges | None] = ContextVar("assay_charges", default=None)
_TOLD: ContextVar[Callable[[Charges], None] | None] = ContextVar("assay_told", default=None)


def charges_here() -> Charges | None:
    """What models are paid for the item that this task or thread works on; None for no item."""
    return _CHARGES.get()


@contextmanager
def told_of_charges(told: Callable[[Charges], None]) -> Generator[None]:
    """Within it, somebody is told what each item has cost that has ended."""
    token = _TOLD.set(told)
    try:
        yield
    finally:
        _TOLD.reset(token)


@contextmanager
def charging() -> Generator[None]:
    """Within it, a single item is worked on, also by what is started from it."""
    told = _TOLD.get()
    if told is None:
        yield
        return
    token = _CHARGES.set(charges := Charges())
    try:
        yield
    finally:
        _CHARGES.reset(token)
        told(charges)
