"""Lanes: who may compute or wait now, so that nobody's slow graders hold up everybody.

Comparisons, sandboxed functions, graders that wait for somebody else, and whoever reads a whole run
each have a lane of their own. In each, projects take turns, and none takes all.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast

from assay.endpoint.problems import ProblemError
from assay.registry.definitions import definition_of
from assay.store.catalog import GraderVersion

T = TypeVar("T")

Lane: TypeAlias = Literal["comparisons", "functions", "waiting", "reading"]

Limit: TypeAlias = Callable[[str], int | None]
"""How many slots a project may have; None for as many as its share is."""

SLOTS: Final[Mapping[Lane, int]] = {
    "comparisons": 16,
    "functions": 32,
    "waiting": 64,
    "reading": 4,  # it computes, and each has a connection of its own
}
"""How many requests and batches of jobs are under way at once."""


QUICK_BYTES: Final = 4_096
"""What was sent to be compared, and the definition by which it is, where that takes no lane."""

_QUICK = frozenset(
    {
        "choice_match",
        "contains",
        "contains_all",
        "contains_any",
        "exact_match",
        "f1_score",
        "numeric_match",
    }
)


def is_quick(version: GraderVersion) -> bool:
    """Whether it compares short texts in less time than it takes to wake another thread."""
    if len(repr(version.definition)) > QUICK_BYTES:
        return False
    specs = definition_of(version).specs
    return bool(specs) and all(spec.type in _QUICK for spec in specs)


def lane_of(version: GraderVersion) -> Lane:
    """Where a stored version grades."""
    specs = definition_of(version).specs
    if all(spec.kind.grader.is_pure for spec in specs):
        return "comparisons"
    return "functions" if any(spec.kind.name == "function" for spec in specs) else "waiting"


def waits(version: GraderVersion) -> bool:
    """Whether a version mostly waits for somebody else, such as a model."""
    specs = definition_of(version).specs
    return any(spec.kind.grader.waits for spec in specs)


def _no_limit(_: str) -> None:
    """Reading is no grading."""


class Turns:
    """Slots that projects share: one that has as many as are free waits for its next one.

    So there is always a slot left for whoever has none. Belongs to one event loop.

    Args:
        slots: How many there are.
        most_waiting: How many of a project may wait; further ones are sent away.
        limit: How many slots a project may have in any case; None for its share.
    """

    def __init__(self, slots: int, most_waiting: int, limit: Limit = lambda _: None) -> None:
        self._free = slots
        self._limit = limit
        self._most_waiting = most_waiting
        self._taken: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    def _allows(self, project: str) -> bool:
        most = self._limit(project)
        share = max(self._free, 1) if most is None else min(max(self._free, 1), most)
        return self._free > 0 and self._taken[project] < share

    async def come(self, project: str) -> None:
        """Wait for a slot, and keep it until it is given back.

        Raises:
            ProblemError: 429 if too many of the project wait.
        """
        if project not in self._waiting and self._allows(project):
            self.take(project)
        else:
            await self._wait(project)

    def take(self, project: str) -> None:
        """Take a slot that is allowed."""
        self._free -= 1
        self._taken[project] += 1

    def give_back(self, project: str) -> None:
        """Let others have a slot."""
        self._free += 1
        self._taken[project] -= 1
        if not self._taken[project]:
            del self._taken[project]
        self._call_next()

    def sated(self) -> list[str]:
        """The projects that have as many slots as they may, now."""
        return [project for project in self._taken if not self._allows(project)]

    async def _wait(self, project: str) -> None:
        line = self._waiting.get(project) or deque()
        if len(line) >= self._most_waiting:
            raise ProblemError(
                429,
                f"{len(line)} requests of project {project!r} wait already",
                headers={"Retry-After": "1"},
            )
        called: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.append(called)
        self._waiting[project] = line
        try:
            await called
        except asyncio.CancelledError:
            if called.done() and not called.cancelled():  # called in the same moment
                self.give_back(project)
            elif called in line:
                line.remove(called)
                if not line:
                    del self._waiting[project]
            raise

    def _call_next(self) -> None:
        """Call whoever waits and may come: first those of the project with the fewest slots."""
        while allowed := [project for project in self._waiting if self._allows(project)]:
            project = min(allowed, key=self._taken.__getitem__)
            line = self._waiting.pop(project)
            called = line.popleft()
            if line:
                self._waiting[project] = line  # behind those with as few
            if not called.cancelled():  # else whoever waited goes away, and is about to learn it
                self.take(project)
                called.set_result(None)


class Lanes:
    """Runs graders on threads, each on a loop of its own.

    Args:
        most_waiting: How many requests of a project may wait in a lane.
        limit: How many slots of a lane a project may have in any case.
    """

    def __init__(self, most_waiting: int, limit: Limit = lambda _: None) -> None:
        self._turns = {
            lane: Turns(slots, most_waiting, _no_limit if lane == "reading" else limit)
            for lane, slots in SLOTS.items()
        }
        self._threads: dict[Lane, ThreadPoolExecutor] = {}

    def start(self) -> None:
        """Be ready; threads begin when they are needed."""
        self._threads = {
            lane: ThreadPoolExecutor(slots, thread_name_prefix=f"assay-{lane}")
            for lane, slots in SLOTS.items()
        }

    async def run(self, lane: Lane, project: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run something when it is the project's turn; whoever stops waiting for it cancels it.

        Raises:
            ProblemError: 429 if too many of the project wait.
        """
        turns, loop = self._turns[lane], asyncio.get_running_loop()

        def give_back(_: object) -> None:
            with suppress(RuntimeError):  # the server's loop has ended
                loop.call_soon_threadsafe(turns.give_back, project)

        await turns.come(project)
        # A thread that computes cannot be cancelled: the slot is taken for as long as it is.
        return await _apart(self._threads[lane], work, give_back)

    def close(self) -> None:
        """Begin nothing more."""
        for threads in self._threads.values():
            threads.shutdown(wait=False, cancel_futures=True)


async def _apart(
    threads: ThreadPoolExecutor,
    work: Callable[[], Coroutine[Any, Any, T]],
    ended: Callable[[object], None],
) -> T:
    """Run something on a loop and a thread of its own; when whoever waits is cancelled, so is it.

    Some graders compute for seconds, and nobody else's request may wait for that.
    """
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = []
    is_cancelled = False

    async def run() -> T:
        task = cast("asyncio.Task[T]", asyncio.current_task())
        running.append((asyncio.get_running_loop(), task))
        if is_cancelled:
            raise asyncio.CancelledError
        return await work()

    try:
        future = threads.submit(lambda: asyncio.run(run()))
    except RuntimeError:  # the lane is closed
        ended(None)
        raise
    future.add_done_callback(ended)
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        is_cancelled = True
        for loop, task in running:
            with suppress(RuntimeError):  # its loop has ended meanwhile
                loop.call_soon_threadsafe(task.cancel)
        raise
