"""A thread of a pool with a worker of its own: takes calls, has them made, deals with failures."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from assay.errors import AssayError, SandboxError
from assay.sandbox.functions.nursery import NURSERY
from assay.sandbox.functions.program import FunctionLimits, Isolation, Outcome, Program, WorkerError
from assay.sandbox.functions.session import IdleWorkerError, WorkerSession

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio  # costs 50 ms, and whoever gets here has imported it

# How much work to take at a time: so many calls, or what takes so long, whichever is less. Calls
# that wait in a worker cannot be made by another one.
_MOST: dict[Isolation, int] = {"call": 64, "batch": 1000}
_FIRST: dict[Isolation, int] = {"call": 4, "batch": 64}
_STRETCH_SECONDS = 0.05
# A worker is replaced after so many calls, or when it has grown by so much.
_CALLS = 20_000
_GROWTH_BYTES = 64 * 1024 * 1024
_LOOK_EVERY = 500
_FAILURES = 3
# What a call is not blamed for before it has done so twice, the second time alone.
_DOUBTFUL = ("cpu_timeout", "wall_timeout", "memory", "crash", "recursion")


@dataclass(slots=True)
class Stats:
    """What a pool has done so far."""

    calls: int = 0
    restarts: int = 0
    retries: int = 0
    sessions: dict[int, WorkerSession] = field(default_factory=dict[int, WorkerSession])

    def pids(self) -> list[int]:
        """Process ids of the living workers, on the host."""
        return [pid for session in list(self.sessions.values()) if (pid := session.launched.pid())]


@dataclass(slots=True, kw_only=True)
class Slot:
    """One worker's share of a pool."""

    # Which of the pool's slots. Tier, program, isolation and limits are the pool's.
    number: int
    tier: str
    program: Program
    isolation: Isolation
    limits: FunctionLimits
    pending: Pending
    share: Callable[[], int]
    cpu: int | None
    stats: Stats
    sessions: dict[int, WorkerSession]
    _session: WorkerSession | None = None
    _resident: int = 0
    _looked: int = 0
    _failures: int = 0
    _seconds: float = 0.0  # of one call, lately

    def prepare(self) -> None:
        """Have a worker with the program loaded."""
        if self._session is None:
            self._session = self._fresh()

    def serve(self) -> None:
        """Make calls until the pool is closed."""
        pending = self.pending
        while True:
            with pending.condition:
                while not pending.is_closed and not pending.queue:
                    pending.condition.wait()
                if pending.is_closed:
                    return
                calls = pending.take(self._portion())
            if calls:
                self._make(calls)

    def _portion(self) -> int:
        if not self._seconds:
            most = _FIRST[self.isolation]
        else:
            most = min(_MOST[self.isolation], int(_STRETCH_SECONDS / self._seconds))
        return max(1, min(most, -(-len(self.pending.queue) // max(1, self.share()))))

    def _make(self, calls: Sequence[GroupCall]) -> None:
        """Make calls and deliver what came of them, as it comes; none is lost."""
        try:
            self.prepare()
        except AssayError as error:
            self._failed(calls, error)
            return
        assert self._session is not None
        made, doubtful = 0, list[_Doubt]()
        last = started = time.monotonic()

        def heard(outcomes: list[Outcome]) -> None:
            nonlocal made, last
            doubtful.extend(self._deliver(calls[made : made + len(outcomes)], outcomes))
            made += len(outcomes)
            last = time.monotonic()

        try:
            self._session.run([call.payload for call in calls], heard, calls[0].seconds)
            self._failures = 0
        except IdleWorkerError as error:
            self._end_session()
            self._failures += 1
            if self._failures >= _FAILURES:
                self._failures = 0
                self._failed(calls, error)
                return
        except WorkerError:
            self._end_session()
            if made < len(calls):
                # It was being made; those after it only waited.
                doubtful.append((calls[made], time.monotonic() - last))
                made += 1
        self.pending.put_back(calls[made:])
        self._pace(time.monotonic() - started, made)
        for call, spent in doubtful:
            self._settle([(call, self._again(call, spent))])
        self._look_after_worker()

    def _deliver(self, calls: Sequence[GroupCall], outcomes: Sequence[Outcome]) -> list[_Doubt]:
        """Deliver what is beyond doubt; returns the calls to be made again."""
        sure, doubtful = list[tuple[GroupCall, Outcome]](), list[_Doubt]()
        for call, made in zip(calls, outcomes, strict=True):
            outcome = self._in_time(call, made, call.seconds)
            if outcome.status in _DOUBTFUL:
                doubtful.append((call, outcome.wall_seconds))
            else:
                sure.append((call, outcome))
        self._settle(sure)
        return doubtful

    def _settle(self, made: Sequence[tuple[GroupCall, Outcome]]) -> None:
        self.stats.calls += len(made)
        self.pending.settle(made)

    def _again(self, call: GroupCall, spent: float) -> Outcome:
        """Make a call a second time, alone and in a fresh worker: what it does then, it did."""
        self.stats.retries += 1
        left = None if call.seconds is None else max(0.001, call.seconds - spent)
        self._end_session()
        outcome = Outcome("sandbox_error")
        for _ in range(_FAILURES):
            try:
                self._session = self._fresh()
                (outcome,) = self._session.run([call.payload], seconds=left).outcomes
                outcome = self._in_time(call, outcome, left)
            except IdleWorkerError as error:  # nothing was done again
                self._end_session()
                outcome = Outcome(error.status, message=error.message)
                continue
            except WorkerError as error:
                self._end_session()
                outcome = Outcome(error.status, message=error.message)
            except AssayError as error:
                outcome = Outcome("sandbox_error", message=error.message)
            break
        return replace(outcome, retried=True, wall_seconds=spent + outcome.wall_seconds)

    def _in_time(self, call: GroupCall, outcome: Outcome, left: float | None) -> Outcome:
        """The outcome of a call, which is late if it had less time left than the limit."""
        if outcome.status != "wall_timeout" or left is None or left >= self.limits.wall_seconds:
            return outcome
        why = f"it was not graded within {call.seconds:g} seconds"
        return replace(outcome, status="late", message=why)

    def _failed(self, calls: Sequence[GroupCall], error: AssayError) -> None:
        """There is no worker to be had: let the calls know."""
        if self.pending.is_closed:
            self.pending.put_back(calls)
            return
        outcome = Outcome("sandbox_error", message=f"no worker: {error.message}")
        self._settle([(call, outcome) for call in calls])

    def _pace(self, seconds: float, count: int) -> None:
        each = seconds / max(1, count)  # also of one that died
        self._seconds = each if not self._seconds else (self._seconds + each) / 2

    def _look_after_worker(self) -> None:
        session = self._session
        if session is None:
            return
        due = session.retire or session.calls >= _CALLS
        if not due and session.calls // _LOOK_EVERY != self._looked:
            self._looked = session.calls // _LOOK_EVERY
            due = session.resident_bytes() - self._resident > _GROWTH_BYTES
        if due:
            self._end_session()

    def _fresh(self) -> WorkerSession:
        """A worker with the program loaded; should something kill it meanwhile, another."""
        deaths = 0
        while True:
            if self.pending.is_closed:
                raise closed()
            session = NURSERY.take(self.tier)
            self.sessions[self.number] = session
            if self.cpu is not None:
                session.pin(self.cpu)
            try:
                session.load(self.program, self.isolation, self.limits)
            except WorkerError:
                deaths += 1
                if deaths >= _FAILURES:
                    raise
                continue
            self._resident, self._looked = session.resident_bytes(), 0
            return session

    def _end_session(self) -> None:
        if self._session is not None:
            self._session.kill()
            self._session = None
            self.stats.restarts += 1

    def end(self) -> None:
        """Kill the worker."""
        if self._session is not None:
            self._session.kill()
            self._session = None
        self.sessions.pop(self.number, None)


def closed() -> SandboxError:
    """What is said of calls that were not made."""
    return SandboxError("the pool of a function was closed")


def promise() -> asyncio.Future[None]:
    """A future of the running loop, for `conclude` on any thread."""
    from asyncio import get_running_loop

    return get_running_loop().create_future()


def conclude(futures: Iterable[asyncio.Future[None]], error: AssayError | None = None) -> None:
    """Let those who wait go on, unless they have given up; each loop is woken once."""
    waiting: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
    for future in futures:
        waiting.setdefault(future.get_loop(), []).append(future)
    for loop, together in waiting.items():
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(_conclude, together, error)


def _conclude(futures: list[asyncio.Future[None]], error: AssayError | None) -> None:
    for future in futures:
        if future.done():
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)


class CallGroup:
    """Some calls whose outcomes are awaited together.

    ``future``: Done when the last outcome is there; cancelled when nobody waits any more.
    """

    def __init__(self, count: int) -> None:
        self.future = promise()
        self.outcomes: list[Outcome | None] = [None] * count
        self.left = count


@dataclass(slots=True, eq=False)
class GroupCall:
    """One call of a group."""

    group: CallGroup
    index: int
    payload: bytes
    # Real time that it has, a second try included; None for the limits alone.
    seconds: float | None = None


_Doubt: TypeAlias = "tuple[GroupCall, float]"
"""A call that is to be made again, and the seconds that it took."""


class Pending:
    """The queue of a pool: filled from event loops, emptied by its threads.

    ``is_closed``: Whether there never will be any more.
    """

    def __init__(self, most: int) -> None:
        self.condition = threading.Condition()
        self.is_open = self.is_closed = False
        self._most = most
        self.queue: deque[GroupCall] = deque()
        self.admitted = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    def admit(self, calls: Sequence[GroupCall], first: int) -> int:
        """Queue as many of the calls from ``first`` on as there is room for."""
        with self.condition:
            if not self.is_open:
                return -1
            room = min(self._most - self.admitted, len(calls) - first)
            if room > 0:
                self.queue.extend(calls[first : first + room])
                self.admitted += room
                self.condition.notify(room)
            return max(0, room)

    def room_made(self) -> asyncio.Future[None]:
        """Done when there may be room again."""
        future = promise()
        with self.condition:
            self._waiting.append(future)
            self._leave(0)
        return future

    def pass_on(self) -> None:
        """Let the next one know of room that somebody was told of, and does not take."""
        with self.condition:
            self._leave(0)

    def take(self, most: int) -> list[GroupCall]:
        """The next calls, no more than that, all with the same time. Not blocking.

        Those nobody waits for are dropped.
        """
        taken: list[GroupCall] = []
        queue = self.queue
        dropped = 0
        while queue and len(taken) < most:
            call = queue.popleft()
            if call.group.future.cancelled():
                dropped += 1
            elif taken and call.seconds != taken[0].seconds:
                queue.appendleft(call)
                break
            else:
                taken.append(call)
        if dropped:
            self._leave(dropped)
        return taken

    def put_back(self, calls: Sequence[GroupCall]) -> None:
        """Queue calls again, before all others; unless there is nobody left to make them."""
        with self.condition:
            self.queue.extendleft(reversed(calls))
            self.condition.notify(len(calls))
            failed = self._given_up()
        conclude(failed, closed())

    def settle(self, made: Sequence[tuple[GroupCall, Outcome]]) -> None:
        """Deliver what came of calls."""
        finished: list[CallGroup] = []
        with self.condition:
            for call, outcome in made:
                group = call.group
                group.outcomes[call.index] = outcome
                group.left -= 1
                if group.left == 0:
                    finished.append(group)
            self._leave(len(made))
        conclude(group.future for group in finished)

    def open(self) -> None:
        """Admit calls, unless it is too late for that."""
        with self.condition:
            self.is_open = not self.is_closed

    def close(self, *, if_idle: bool = False) -> bool:
        """Admit nobody any more, and let those know who wait to be taken."""
        with self.condition:
            if if_idle and self.admitted:
                return False
            self.is_open, self.is_closed = False, True
            failed = self._given_up()
            self.condition.notify_all()
        conclude(failed, closed())
        return True

    def _given_up(self) -> list[asyncio.Future[None]]:
        """Of the groups whose calls nobody will take, if that is so; each is told once."""
        if not self.is_closed:
            return []
        groups = {call.group for call in self.queue if call.group.left > 0}
        for group in groups:
            group.left = 0
        self._leave(len(self.queue))
        self.queue.clear()
        return [group.future for group in groups]

    def _leave(self, count: int) -> None:
        self.admitted -= count
        room = len(self._waiting) if self.is_closed else self._most - self.admitted
        while self._waiting and room > 0:
            future = self._waiting.popleft()
            if not future.cancelled():
                conclude([future])
                room -= 1
