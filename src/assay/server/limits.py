"""How much anybody may have of a server: slots, requests, wrong keys, replies that are read slowly.

Each limit says 429 to whoever is one too many, and when to come again where that is known.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from starlette.responses import StreamingResponse

from assay.endpoint.problems import ProblemError
from assay.errors import InputError, StoreError
from assay.store.projects import ProjectRecord, Projects
from assay.types.codec import Problem

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from assay.server.storage import Storage

Limit: TypeAlias = Callable[[str], int | None]
"""How many slots a project may have; None for as many as its share is."""

_NEWEST = 0.2
"""What the newest request counts in the mean time of a project's requests."""
_REMEMBERED = 1_000
"""Projects of which something is remembered."""
_REMEMBERED_SECONDS = 2.0
_LONGEST_WAIT = 60
_WINDOW_SECONDS = 60.0
_MOST_ADDRESSES = 10_000


class ProjectSlots:
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
        self._seconds: OrderedDict[str, float] = OrderedDict()

    def _allows(self, project: str) -> bool:
        most, share = self._limit(project), max(self._free, 1)
        share = share if most is None else min(share, most)
        return self._free > 0 and self._taken[project] < share

    async def come(self, project: str, *, is_refused: bool = True) -> None:
        """Wait for a slot, and keep it until it is given back.

        Args:
            project: Whose it will be.
            is_refused: Whether one too many is sent away instead of waiting.
        """
        if project not in self._waiting and self._allows(project):
            self.take(project)
        else:
            await self._wait(project, is_refused=is_refused)

    def take(self, project: str) -> None:
        """Take a slot that is allowed."""
        self._free -= 1
        self._taken[project] += 1

    def give_back(self, project: str, seconds: float | None = None) -> None:
        """Let others have a slot.

        Args:
            project: Whose it was.
            seconds: For how long; by this it is guessed how long others will wait.
        """
        self._free += 1
        self._taken[project] -= 1
        if not self._taken[project]:
            del self._taken[project]
        if seconds is not None:
            before = self._seconds.pop(project, seconds)
            self._seconds[project] = before + (seconds - before) * _NEWEST
            trim(self._seconds, _REMEMBERED)
        self._call_next()

    def sated(self) -> list[str]:
        """The projects that have as many slots as they may, now."""
        return [project for project in self._taken if not self._allows(project)]

    def standing(self) -> Iterator[tuple[str, int, int]]:
        """Of each project that is here now: how many slots it has, and how many wait."""
        for project in self._taken | Counter(dict.fromkeys(self._waiting, 1)):
            yield project, self._taken[project], len(self._waiting.get(project, ()))

    async def _wait(self, project: str, *, is_refused: bool) -> None:
        line = self._waiting.get(project) or deque()
        if is_refused and len(line) >= self._most_waiting:
            raise self._refusal(project, len(line))
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

    def _refusal(self, project: str, waiting: int) -> ProblemError:
        """What is told to who is one too many, and when to come again."""
        guess = self._seconds.get(project, 0.0) * waiting / max(self._taken[project], 1)
        wait = min(max(math.ceil(guess), 1), _LONGEST_WAIT)
        detail = f"{waiting} requests of project {project!r} wait already"
        hint = f"ask again in {wait} s, or send more items in one request"
        return ProblemError(
            429,
            f"{detail} ({hint})",
            errors=[Problem(("",), detail, hint)],
            headers={
                "Retry-After": str(wait),
                "RateLimit-Policy": f'"project";q={waiting};qu="concurrent-requests"',
                "RateLimit": f'"project";r=0;t={wait}',
            },
        )

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


class Allowances:
    """What projects may have: gradings at once, requests a minute. Belongs to the server's loop.

    Args:
        storage: Where limits are.
        clock: Seconds that only grow.
    """

    def __init__(self, storage: Storage, clock: Callable[[], float] = time.monotonic) -> None:
        self._storage = storage
        self._clock = clock
        self._known: OrderedDict[str, tuple[ProjectRecord, float]] = OrderedDict()
        self._minutes: OrderedDict[str, tuple[float, int]] = OrderedDict()

    async def find(self, project: str) -> ProjectRecord | None:
        """A project with its limits; None where there is none, or nobody can be asked.

        It is remembered for a moment: the database is not asked with each request.
        """
        record, ends = self._known.get(project, (None, 0.0))
        if self._clock() < ends:
            return record
        try:
            record = await self._storage.run(lambda database: Projects(database).get(project))
        except (InputError, StoreError):  # the request itself is told what is wrong
            return None
        self._known[project] = (record, self._clock() + _REMEMBERED_SECONDS)
        trim(self._known, _REMEMBERED)
        return record

    def forget(self, project: str) -> None:
        """Ask the database again about a project: its limits were changed."""
        if project in self._known:
            self._known[project] = (self._known[project][0], 0.0)

    def at_once(self, project: str) -> int | None:
        """How many gradings of one sort a project may have under way, as far as is known."""
        record, _ = self._known.get(project, (None, 0.0))
        return None if record is None else record.gradings_at_once

    def spend(self, project: ProjectRecord) -> Mapping[str, str]:
        """Count a request of a project; a minute begins with the first one.

        Returns:
            Headers that say what is left; none where there is no limit.
        """
        most = project.requests_per_minute
        if most is None:
            return {}
        now = self._clock()
        began, used = self._minutes.pop(project.key, (now, 0))
        if now - began >= _WINDOW_SECONDS:
            began, used = now, 0
        is_over = used >= most
        used += not is_over
        self._minutes[project.key] = (began, used)
        trim(self._minutes, _REMEMBERED)
        wait = math.ceil(_WINDOW_SECONDS - (now - began))
        headers = {
            "RateLimit-Policy": f'"minute";q={most};w={_WINDOW_SECONDS:.0f}',
            "RateLimit": f'"minute";r={most - used};t={wait}',
        }
        if is_over:
            raise ProblemError(
                429,
                f"project {project.key!r} may send {most} requests a minute",
                headers={"Retry-After": str(wait), **headers},
            )
        return headers


class Failures:
    """Wrong keys and links of an address: after some in a minute, the next are told to wait.

    Args:
        most: In a minute.
        clock: Seconds that only grow.
    """

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        self._most = most
        self._clock = clock
        self._of: OrderedDict[str, deque[float]] = OrderedDict()

    def add(self, address: str) -> None:
        """Count a failure. A good key from the same address, say a proxy's, is never held up."""
        failures = self._of.setdefault(address, deque(maxlen=self._most))
        self._of.move_to_end(address)
        trim(self._of, _MOST_ADDRESSES)
        now = self._clock()
        while failures and now - failures[0] > _WINDOW_SECONDS:
            failures.popleft()
        if len(failures) >= self._most:
            wait = int(_WINDOW_SECONDS - (now - failures[0])) + 1
            raise ProblemError(
                429,
                "too many wrong keys or links came from this address",
                headers={"Retry-After": str(wait)},
            )
        failures.append(now)


class OpenReplies:
    """Replies that are being read, each by somebody who may take his time.

    Args:
        what: How they are called.
        most: How many there may be.
        most_of_one: How many somebody may have.
    """

    def __init__(self, what: str, most: int, most_of_one: int) -> None:
        self._what, self._most, self._most_of_one = what, most, most_of_one
        self._of: Counter[str] = Counter()

    @property
    def total(self) -> int:
        """How many there are."""
        return self._of.total()

    def reply(
        self,
        who: str,
        content: AsyncIterator[bytes],
        media_type: str,
        headers: Mapping[str, str] | None = None,
    ) -> StreamingResponse:
        """A reply that counts for as long as it is being read."""
        if self._of[who] >= self._most_of_one or self.total >= self._most:
            said = f"too many {self._what} are open"
            raise ProblemError(429, said, headers={"Retry-After": "10"})
        self._of[who] += 1
        counted = _Counted(content, media_type=media_type, headers=headers)
        counted.ended = lambda: self._of.subtract((who,))
        return counted


class _Counted(StreamingResponse):
    ended: Callable[[], None]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self.ended()


def trim(remembered: OrderedDict[str, Any], most: int) -> None:
    """Forget the oldest."""
    while len(remembered) > most:
        remembered.popitem(last=False)
