"""Lanes: who may compute or wait now, so that nobody's slow graders hold up everybody.

Comparisons, sandboxed functions, graders that wait for somebody else, and whoever reads a whole run
each have a lane of their own. In each, projects take turns, as do the graders of a project; none
takes all.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast

from assay.endpoint.problems import ProblemError
from assay.registry.definitions import definition_of
from assay.server.figures import GraderFigures
from assay.store.catalog import GraderVersion
from assay.turns import working_for
from assay.types.codec import Problem

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

    So there is always a slot left for whoever has none. The graders of a project share what it may
    have in the same way, and so do their lines what may wait: who asks a slow one holds up none of
    the others. Belongs to one event loop.

    Args:
        slots: How many there are.
        most_waiting: How many of a project may wait, a grader's line being no longer than what it
            leaves to others; further ones are sent away.
        limit: How many slots a project may have in any case; None for its share.
        most_of_grader: The same for one of its graders.
    """

    def __init__(
        self,
        slots: int,
        most_waiting: int,
        limit: Limit = lambda _: None,
        most_of_grader: int | None = None,
    ) -> None:
        self._free = slots
        self._limit = limit
        self._most_waiting = most_waiting
        self._most_of_grader = slots if most_of_grader is None else most_of_grader
        self._taken: Counter[str] = Counter()
        self._held: Counter[tuple[str, str]] = Counter()
        self._waiting: dict[tuple[str, str], deque[asyncio.Future[None]]] = {}
        self._lines: Counter[str] = Counter()
        self._seconds: OrderedDict[tuple[str, str], float] = OrderedDict()

    def _allows(self, project: str, grader: str = "") -> bool:
        most, taken = self._limit(project), self._taken[project]
        share = max(self._free, 1) if most is None else min(max(self._free, 1), most)
        if self._free <= 0 or taken >= share:
            return False
        if not grader:
            return True
        left = (self._free - taken + 1) // 2  # what the project can still take: each is one less
        left = left if most is None else min(left, most - taken)
        return self._held[project, grader] < min(max(left, 1), self._most_of_grader)

    async def come(self, project: str, grader: str = "", *, is_refused: bool = True) -> None:
        """Wait for a slot, and keep it until it is given back.

        Args:
            project: Whose it will be.
            grader: Which of the project's graders is asked, where it is one.
            is_refused: Whether one too many is sent away instead of waiting.

        Raises:
            ProblemError: 429 if too many of the project, or for its grader, wait.
        """
        if (project, grader) not in self._waiting and self._allows(project, grader):
            self.take(project, grader)
        else:
            await self._wait(project, grader, is_refused=is_refused)

    def take(self, project: str, grader: str = "") -> None:
        """Take a slot that is allowed."""
        self._free -= 1
        self._taken[project] += 1
        self._held[project, grader] += 1

    def give_back(self, project: str, grader: str = "", seconds: float | None = None) -> None:
        """Let others have a slot.

        Args:
            project: Whose it was.
            grader: Of which grader.
            seconds: For how long; by this it is guessed how long others will wait.
        """
        self._free += 1
        _less(self._taken, project)
        _less(self._held, (project, grader))
        if seconds is not None:
            before = self._seconds.pop((project, grader), seconds)
            self._seconds[project, grader] = before + (seconds - before) * _NEWEST
            if len(self._seconds) > _REMEMBERED:
                self._seconds.popitem(last=False)
        self._call_next()

    def sated(self) -> list[str]:
        """The projects that have as many slots as they may, now."""
        return [project for project in self._taken if not self._allows(project)]

    def standing(self) -> Iterator[tuple[str, str, int, int]]:
        """Of each grader that is asked now: its project and key, how many it grades, who waits."""
        for name in self._held | Counter(dict.fromkeys(self._waiting, 1)):
            yield *name, self._held[name], len(self._waiting.get(name, ()))

    async def _wait(self, project: str, grader: str, *, is_refused: bool) -> None:
        name = project, grader
        line = self._waiting.get(name) or deque()
        if is_refused:
            self._check(project, grader, len(line))
        called: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.append(called)
        self._waiting[name] = line
        self._lines[project] += 1
        try:
            await called
        except asyncio.CancelledError:
            if called.done() and not called.cancelled():  # called in the same moment
                self.give_back(project, grader)
            elif called in line:
                line.remove(called)
                _less(self._lines, project)
                if not line:
                    del self._waiting[name]
            raise

    def _check(self, project: str, grader: str, waiting: int) -> None:
        """Send away who is one too many, and say when to come again."""
        everybody = self._lines[project]
        room = self._most_waiting - everybody
        if room > 0 and (not grader or waiting < max(room, 1)):
            return
        held = self._held[project, grader]
        guess = self._seconds.get((project, grader), 0.0) * waiting / max(held, 1)
        wait = min(max(math.ceil(guess), 1), _LONGEST_WAIT)
        of = f"project {project!r}"
        if room > 0:
            which, said, most = "grader", f"for grader {grader!r} of {of}", held + waiting
            detail = f"{held} requests {said} are under way and {waiting} wait already"
        else:
            which, most = "project", everybody
            detail = f"{everybody} requests of {of} wait already"
        hint = f"ask again in {wait} s, or send more items in one request"
        raise ProblemError(
            429,
            f"{detail} ({hint})",
            errors=[Problem(("",), detail, hint)],
            headers={
                "Retry-After": str(wait),
                "RateLimit-Policy": f'"{which}";q={most};qu="concurrent-requests"',
                "RateLimit": f'"{which}";r=0;t={wait}',
            },
        )

    def _call_next(self) -> None:
        """Call whoever waits and may come.

        First those of the project with the fewest slots, and of its grader with the fewest.
        """
        while allowed := [name for name in self._waiting if self._allows(*name)]:
            name = min(allowed, key=lambda one: (self._taken[one[0]], self._held[one]))
            line = self._waiting.pop(name)
            called = line.popleft()
            _less(self._lines, name[0])
            if line:
                self._waiting[name] = line  # behind those with as few
            if not called.cancelled():  # else whoever waited goes away, and is about to learn it
                self.take(*name)
                called.set_result(None)


def _less(counts: Counter[T], name: T) -> None:
    counts[name] -= 1
    if not counts[name]:
        del counts[name]


_NEWEST = 0.2
"""What the newest request counts in the mean time of a grader's requests."""
_REMEMBERED = 1_000
_LONGEST_WAIT = 60


class Lanes:
    """Runs graders on threads, each on a loop of its own.

    Args:
        most_waiting: How many requests of a project may wait in a lane.
        limit: How many slots of a lane a project may have in any case.
        most_of_grader: How many slots a grader may have in any case.
        figures: Counts who waits and who is sent away.
    """

    def __init__(
        self,
        most_waiting: int,
        limit: Limit = lambda _: None,
        most_of_grader: int | None = None,
        figures: GraderFigures | None = None,
    ) -> None:
        self._turns = {
            lane: Turns(
                slots, most_waiting, _no_limit if lane == "reading" else limit, most_of_grader
            )
            for lane, slots in SLOTS.items()
        }
        self._figures = figures
        if figures is not None:
            figures.standing = self._standing
        self._threads: dict[Lane, ThreadPoolExecutor] = {}

    def _standing(self) -> Iterator[tuple[str, str, int, int]]:
        for turns in self._turns.values():
            yield from (one for one in turns.standing() if one[1])

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
        grader: str = "",
        *,
        is_refused: bool = True,
    ) -> T:
        """Run something when it is the project's turn; whoever stops waiting for it cancels it.

        Args:
            lane: Where.
            project: Whose turn it must be,
            work: to do this.
            grader: Which of the project's graders is asked, where it is one.
            is_refused: Whether one too many is sent away instead of waiting.

        Raises:
            ProblemError: 429 if too many of the project, or for its grader, wait.
        """
        turns, loop = self._turns[lane], asyncio.get_running_loop()
        asked = time.monotonic()
        try:
            await turns.come(project, grader, is_refused=is_refused)
        except ProblemError:
            if self._figures is not None and grader:
                self._figures.refused(project, grader)
            raise
        began = time.monotonic()
        if self._figures is not None and grader:
            self._figures.waited(project, grader, began - asked)

        def give_back(_: object) -> None:
            seconds = time.monotonic() - began
            with suppress(RuntimeError):  # the server's loop has ended
                loop.call_soon_threadsafe(turns.give_back, project, grader, seconds)

        # A thread that computes cannot be cancelled: the slot is taken for as long as it is.
        return await _apart(self._threads[lane], project, work, give_back)

    def close(self) -> None:
        """Begin nothing more."""
        for threads in self._threads.values():
            threads.shutdown(wait=False, cancel_futures=True)


async def _apart(
    threads: ThreadPoolExecutor,
    project: str,
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
        with working_for(project):
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
