"""Lanes: who may compute or wait now, so that nobody's slow graders hold up everybody.

Comparisons, sandboxed functions, graders that wait for somebody else, and whoever reads a whole run
each have a lane of their own. In each, projects take turns; none takes all.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast

from assay.eval.rows.grading import without_loop
from assay.registry.definitions import definition_of
from assay.server.limits import Limit, ProjectSlots
from assay.store.catalog import GraderVersion
from assay.turns import working_for

T = TypeVar("T")

Lane: TypeAlias = Literal["comparisons", "functions", "waiting", "reading"]

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


def _no_limit(_: str) -> None:
    """Reading is no grading."""


class Lanes:
    """Runs graders on threads, each on a loop of its own.

    Args:
        most_waiting: How many requests of a project may wait in a lane.
        limit: How many slots of a lane a project may have in any case.
    """

    def __init__(self, most_waiting: int, limit: Limit = lambda _: None) -> None:
        self._turns = {
            lane: ProjectSlots(slots, most_waiting, _no_limit if lane == "reading" else limit)
            for lane, slots in SLOTS.items()
        }
        self._threads: dict[Lane, ThreadPoolExecutor] = {}

    def standing(self) -> Iterator[tuple[str, int, int]]:
        """Of each project, lane by lane: how many gradings are under way, and how many wait."""
        for lane, turns in self._turns.items():
            if lane != "reading":
                yield from turns.standing()

    def start(self) -> None:
        """Be ready; threads begin when they are needed."""
        self._threads = {
            lane: ThreadPoolExecutor(slots, thread_name_prefix=f"assay-{lane}")
            for lane, slots in SLOTS.items()
        }

    async def run(
        self,
        lane: Lane,
        project: str,
        work: Callable[[], Coroutine[Any, Any, T]],
        *,
        is_refused: bool = True,
        waits: bool = True,
    ) -> T:
        """Run something when it is the project's turn; whoever stops waiting for it cancels it.

        Args:
            lane: Where.
            project: Whose turn it must be.
            work: What is run.
            is_refused: Whether one too many is sent away instead of waiting.
            waits: Whether it may wait for something; what only computes is spared a loop.
        """
        turns, loop = self._turns[lane], asyncio.get_running_loop()
        await turns.come(project, is_refused=is_refused)
        began = time.monotonic()

        def give_back(_: object) -> None:
            seconds = time.monotonic() - began
            with suppress(RuntimeError):  # the server's loop has ended
                loop.call_soon_threadsafe(turns.give_back, project, seconds)

        # A thread that computes cannot be cancelled: the slot is taken for as long as it is.
        return await _apart(self._threads[lane], project, work, give_back, waits=waits)

    def close(self) -> None:
        """Begin nothing more."""
        for threads in self._threads.values():
            threads.shutdown(wait=False, cancel_futures=True)


async def _apart(
    threads: ThreadPoolExecutor,
    project: str,
    work: Callable[[], Coroutine[Any, Any, T]],
    ended: Callable[[object], None],
    *,
    waits: bool,
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
        with working_for(project):
            return await work()

    def compute() -> T:
        if is_cancelled:
            raise asyncio.CancelledError
        with working_for(project):
            return without_loop(work())

    try:
        future = threads.submit((lambda: asyncio.run(run())) if waits else compute)
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
