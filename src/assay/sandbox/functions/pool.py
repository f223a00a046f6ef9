"""Workers that make calls of one program, and calls that wait for them."""

from __future__ import annotations

import atexit
import itertools
import math
import os
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Self, cast

from assay.cores import allowed, cores
from assay.errors import AssayError, InputError, ProgramError, SandboxError
from assay.sandbox.functions.nursery import NURSERY
from assay.sandbox.functions.program import (
    FunctionLimits,
    Isolation,
    LoadReport,
    Outcome,
    Program,
    TierChoice,
)
from assay.sandbox.functions.session import LoadFailedError
from assay.sandbox.functions.slot import (
    CallGroup,
    GroupCall,
    Pending,
    Slot,
    Stats,
    closed,
    conclude,
    promise,
)
from assay.turns import current_turn, queueing, seconds_left

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio

_SPACE = b" \n\r\t"  # JSON's; a worker allows none around a payload
_JOIN_SECONDS = 10.0
_JOIN_STEP_SECONDS = 0.02
_STEP_SECONDS = 0.05
_QUICK_CALLS, _QUICK_SECONDS = 4, 0.5
_places = itertools.count()


class FunctionPool:
    """Makes calls of one untrusted program, isolated from the host and from each other.

    Usable from any event loop and any thread, also from several at a time. After a fork of the
    host, parent and child each have workers of their own. No process is left when the host ends,
    whichever way.

    ``isolation``: ``call``: each call in a process of its own, forked from the loaded program.
    ``batch``: calls that come together share one, which is faster and lets them see and disturb
    each other.
    ``max_pending``: Calls that may be waiting or being made; further ones wait to be taken.
    """

    def __init__(
        self,
        program: Program,
        *,
        isolation: Isolation = "call",
        workers: int | None = None,
        limits: FunctionLimits | None = None,
        tier: TierChoice = "auto",
        max_pending: int = 10_000,
    ) -> None:
        if isolation not in ("call", "batch"):
            raise InputError(f"isolation is {isolation!r}", hint="valid: call, batch")
        if max_pending < 1 or (workers is not None and workers < 1):
            raise InputError("a pool needs at least one worker and room for one call")
        self.program = program
        self.limits = limits or FunctionLimits()
        self.tier = ""
        self.stats = Stats()
        self._isolation: Isolation = isolation
        self._choice: TierChoice = tier
        processors = allowed()
        # To keep a worker on one processor helps where nobody else does the same: processes that
        # know nothing of each other may choose the same one.
        self._cpus = processors if cores() == len(processors) else []
        self._most = workers or cores()
        self._max_pending = max_pending
        self._is_closed = False
        self._lock = threading.Lock()
        self._reset()
        _pools.add(self)

    def _reset(self) -> None:
        """Be as new: no thread, no worker."""
        self._pending = Pending(self._max_pending)
        self._threads: list[threading.Thread] = []
        self._starting: list[asyncio.Future[None]] = []
        self._error: AssayError | None = None
        self._place = os.getpid() + next(_places)  # so that forks of a process take others
        self.stats.sessions = {}

    async def start(self) -> None:
        """Load the program into a first worker, unless that has been done."""
        with self._lock:
            if self._is_closed:
                raise SandboxError("the pool of a function is closed")
            if self._error is not None:
                raise self._error
            if self._pending.is_open:
                return
            future = promise()
            self._starting.append(future)
            if not self._threads:
                self._add_thread()
        await future

    def _add_thread(self) -> None:
        """One more slot; the lock is held."""
        number = len(self._threads)
        arguments = (number, self._pending, self._threads)
        name = f"assay-function-{self._place}-{number}"
        thread = threading.Thread(target=self._work, args=arguments, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self, number: int, pending: Pending, threads: list[threading.Thread]) -> None:
        """What the thread of a slot does. Its arguments are those of its time: not another's."""
        NURSERY.enter()
        slot = None
        try:
            slot = self._slot(number, pending, threads)
            if number == 0:
                slot.prepare()
                self._started(pending, None)
            slot.serve()
        except AssayError as error:
            self._started(pending, error)
        except Exception as error:
            # A fault of ours; without this, whoever waits would wait for ever.
            self._started(pending, SandboxError(f"the pool of a function broke down: {error!r}"))
            if pending is self._pending:
                self._end()
            raise
        finally:
            if slot is not None:
                slot.end()
            NURSERY.leave()

    def _slot(self, number: int, pending: Pending, threads: list[threading.Thread]) -> Slot:
        if not self.tier:
            from assay.sandbox.functions.tiers import function_tier

            self.tier = function_tier(self._choice)
        return Slot(
            number=number,
            tier=self.tier,
            program=self.program,
            isolation=self._isolation,
            limits=self.limits,
            pending=pending,
            share=lambda: len(threads),
            cpu=self._cpus[(self._place + number) % len(self._cpus)] if self._cpus else None,
            stats=self.stats,
            sessions=self.stats.sessions,
        )

    def _started(self, pending: Pending, error: AssayError | None) -> None:
        with self._lock:
            if pending is not self._pending:
                return  # the pool has begun anew meanwhile
            if error is None:
                pending.open()
            else:
                self._threads.clear()
                if isinstance(error, ProgramError):
                    self._error = error  # it will not load the next time either
            waiting, self._starting = self._starting, []
        conclude(waiting, error)

    async def call(self, payload: bytes) -> Outcome:
        """Make one call; see `call_many`."""
        return (await self.call_many([payload]))[0]

    async def call_many(self, payloads: Sequence[bytes]) -> list[Outcome]:
        """Make many calls; cheaper than as many times `call`.

        In a turn (`assay.turns`) each call has the seconds that are left of it, from when it is
        made. One that takes longer is ended, and its status is ``late``.
        """
        seconds = seconds_left()
        with queueing():
            await self.start()
            if not payloads:
                return []
            group = CallGroup(len(payloads))
            calls = self._calls(group, payloads, seconds)
            if calls:
                await self._enqueue(group, calls)
        outcomes = cast("list[Outcome]", group.outcomes)
        if len(outcomes) == 1 and (turn := current_turn()) is not None:
            turn.add(outcomes[0].wall_seconds)
        return outcomes

    def _calls(
        self, group: CallGroup, payloads: Sequence[bytes], seconds: float | None
    ) -> list[GroupCall]:
        """The calls to be made; what is too large is settled already."""
        most = self.limits.payload_bytes
        if seconds is not None:  # those of one time are made together
            rounded = math.ceil(max(0.0, seconds) / _STEP_SECONDS) * _STEP_SECONDS or _STEP_SECONDS
            has_both = rounded >= 2 * self.limits.wall_seconds  # of its tries
            seconds = None if has_both else rounded
        calls: list[GroupCall] = []
        for index, payload in enumerate(payloads):
            if len(payload) <= most:
                calls.append(GroupCall(group, index, bytes(payload.strip(_SPACE)), seconds))
                continue
            what = f"the payload has {len(payload)} bytes; at most {most} are allowed"
            group.outcomes[index] = Outcome("error", message=what)
            group.left -= 1
        return calls

    async def _enqueue(self, group: CallGroup, calls: list[GroupCall]) -> None:
        done = 0
        try:
            while done < len(calls):
                pending = self._pending
                admitted = pending.admit(calls, done)
                if admitted < 0:
                    await self.start()  # it has come to rest, or is closed for good
                    continue
                done += admitted
                self._grow()
                if done < len(calls):
                    await pending.room_made()
            await group.future
        except BaseException:
            group.future.cancel()
            self._pending.pass_on()
            raise

    def _grow(self) -> None:
        """Another slot, if there is more to do than slots."""
        if len(self._threads) < self._most and self._pending.admitted > len(self._threads):
            with self._lock:
                if self._pending.is_open and len(self._threads) < self._most:
                    self._add_thread()

    async def close(self) -> None:
        """End all workers. Calls that are not done fail with a `SandboxError`."""
        from asyncio import to_thread

        await to_thread(self.close_now)

    def close_now(self) -> None:
        """Like `close`, but blocks, for a second at most."""
        self._is_closed = True
        self._end()

    def rest(self) -> bool:
        """End all workers if there is nothing to do; the next call starts new ones."""
        return self._end(if_idle=True)

    def _end(self, *, if_idle: bool = False) -> bool:
        """Begin anew, and end what was there; or neither, if it is not idle."""
        with self._lock:
            threads, sessions, starting = self._threads, self.stats.sessions, self._starting
            pending = self._pending
            if if_idle and starting:
                return False
            if not pending.close(if_idle=if_idle):
                return False
            self._reset()
        conclude(starting, closed())
        own = threading.current_thread()
        deadline = time.monotonic() + _JOIN_SECONDS
        for thread in threads:
            while thread is not own and thread.is_alive() and time.monotonic() < deadline:
                thread.join(_JOIN_STEP_SECONDS)
                if thread.is_alive():
                    for session in list(sessions.values()):
                        session.launched.stop()
        return True

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def forget(self) -> None:
        """In a child of the host: the workers are the parent's."""
        for session in self.stats.sessions.values():
            session.launched.disown()
        self._lock = threading.Lock()
        self._reset()


_pools: weakref.WeakSet[FunctionPool] = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    for pool in list(_pools):
        pool.close_now()


def _forget_all() -> None:
    for pool in list(_pools):
        pool.forget()


os.register_at_fork(after_in_child=_forget_all)


_MOST_SHARED = 32
_Key = tuple[str, str, Isolation, FunctionLimits, TierChoice]

_owner: ContextVar[str] = ContextVar("assay_function_owner", default="")
_shared_lock = threading.Lock()
_shared: OrderedDict[_Key, FunctionPool] = OrderedDict()


@contextmanager
def owned_by(owner: str) -> Generator[None]:
    """Within it, pools are those of an owner, such as a project.

    It holds for the current task or thread, and for what is started from it.
    """
    token = _owner.set(owner)
    try:
        yield
    finally:
        _owner.reset(token)


def pool_for(
    program: Program,
    *,
    isolation: Isolation = "call",
    limits: FunctionLimits | None = None,
    tier: TierChoice = "auto",
    owner: str = "",
) -> FunctionPool:
    """The pool that everybody in this process shares for a program, or everybody of one owner.

    Two owners of the same program have a pool each: no worker that has seen the one's payloads
    gets the other's.

    It need not be closed: of the least recently used ones beyond 32, those that have nothing to do
    end their workers, and start new ones when they are called again.
    """
    key: _Key = (owner or _owner.get(), program.digest, isolation, limits or FunctionLimits(), tier)
    with _shared_lock:
        pool = _shared.get(key)
        if pool is None:
            pool = FunctionPool(program, isolation=isolation, limits=limits, tier=tier)
            _shared[key] = pool
        _shared.move_to_end(key)
        old = list(_shared.items())[:-_MOST_SHARED]
    for other, unused in old:
        if unused.rest():
            with _shared_lock:
                _shared.pop(other, None)
    return pool


async def load_once(
    program: Program,
    payloads: Sequence[bytes] = (),
    *,
    limits: FunctionLimits | None = None,
    tier: TierChoice = "auto",
    seconds: float | None = None,
) -> LoadReport:
    """Load a program on a worker of its own, and make a few calls to see what it does.

    ``seconds``: No further calls are begun after them: the last ones have no outcome then. None for
    no such limit.
    """
    pool = FunctionPool(program, workers=1, limits=limits, tier=tier)
    try:
        await pool.start()
        outcomes = await _calls(pool, payloads, seconds)
        return LoadReport(outcomes=outcomes, tier=pool.tier)
    except LoadFailedError as error:
        return LoadReport(error=error.message, line=error.line, tier=pool.tier)
    finally:
        await pool.close()


async def _calls(
    pool: FunctionPool, payloads: Sequence[bytes], seconds: float | None
) -> list[Outcome]:
    """The outcomes of calls, as many as are begun in time; of slow ones one at a time is.

    What is endless for the first is asked nothing more.
    """
    began = time.monotonic()
    end = None if seconds is None else began + seconds
    outcomes = await pool.call_many(payloads[:1])
    if not outcomes or outcomes[0].status.endswith("_timeout"):
        return outcomes
    if end is None:
        return [*outcomes, *await pool.call_many(payloads[1:])]
    while len(outcomes) < len(payloads) and (now := time.monotonic()) < end:
        at_once = _QUICK_CALLS if now - began < _QUICK_SECONDS else 1
        part = payloads[len(outcomes) : len(outcomes) + at_once]
        outcomes, began = [*outcomes, *await pool.call_many(part)], now
    return outcomes
