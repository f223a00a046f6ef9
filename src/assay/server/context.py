"""What a server is told when it starts, and what its routes and jobs share."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Thread
from typing import Any, Generic, TypeAlias, TypeVar, cast
from weakref import WeakKeyDictionary, ref

from starlette.requests import Request

from assay.endpoint.listening import Limits
from assay.endpoint.routes import MAX_VALUES
from assay.errors import AssayError, DamagedError, StoreError
from assay.graders.batch import Batch
from assay.registry.grading import grade_timed
from assay.registry.policy import Permissions
from assay.scoring.graded import Graded
from assay.server.access import Access
from assay.server.cluster import JobCluster
from assay.server.gate import Metrics
from assay.server.lanes import Lanes, lane_of
from assay.server.limits import Allowances, Opened
from assay.server.problems import SlowStoreError
from assay.server.regrades import Regrading
from assay.service.operation import LOCAL, Desk, Identity
from assay.store.catalog import GraderVersion
from assay.store.database import Database
from assay.store.traces import TraceLimits
from assay.types.submission import Submission

T = TypeVar("T")

_LOG = logging.getLogger("assay.server")

Item: TypeAlias = tuple[str, Submission]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The settings of one server.

    Attributes:
        location: The store: a directory (SQLite) or ``postgresql://user:password@host:port/name``.
        is_local: Whether it listens on this machine only. Then a one-time link logs in, and
            ``/metrics`` is open.
        hosts: Names it may be called by in the ``Host`` header, besides this machine's addresses.
        endpoint_secrets: Environment variables that external endpoints may be sent, each with the
            one host it may be sent to.
        allow_custom_code: Run graders that are classes of installed Python packages.
        allow_internal_endpoints: Let external endpoints be on this machine or its network.
        max_body_bytes: Largest body of a request that is not a dataset.
        max_dataset_bytes: Largest dataset.
        max_line_bytes: Longest line of a dataset.
        max_rows: Most rows of a dataset.
        max_depth: Deepest nesting of JSON.
        max_values: Most values in the JSON of a request.
        job_slots: Jobs worked on at once; a project has half of those that are left, at most.
        max_waiting: Requests of a project that may wait for graders of one sort.
        job_batch: Rows under way at a time; what is lost, and graded again, after a crash.
        engine: What grades jobs: ``local``, ``ray`` or ``ray://HOST:PORT``.
        lease_seconds: How long a job is this server's without a sign of life, and so how long it
            rests after a crash. The clocks of servers of one database must agree better than that.
        poll_seconds: How often waiting jobs and progress are looked for.
        heartbeat_seconds: How often a quiet stream of events says that it is alive.
        store_seconds: How long a request waits for the database, however often it asks.
        traces: How much is kept of what tracers send.
        limits: What callers may use up who say nothing, and how long ending may take.
        login_failures: Wrong one-time links or keys in a minute, from one address, after which the
            next wrong ones are told to wait.
    """

    location: str
    is_local: bool = True
    hosts: tuple[str, ...] = ()
    endpoint_secrets: Mapping[str, str] = field(default_factory=dict[str, str])
    allow_custom_code: bool = False
    allow_internal_endpoints: bool = False
    max_body_bytes: int = 16 << 20
    max_dataset_bytes: int = 1 << 30
    max_line_bytes: int = 4 << 20
    max_rows: int = 1_000_000
    max_depth: int = 64
    max_values: int = MAX_VALUES
    job_slots: int = 8
    max_waiting: int = 512
    job_batch: int = 64
    engine: str = "local"
    lease_seconds: float = 6.0
    poll_seconds: float = 0.5
    heartbeat_seconds: float = 15.0
    store_seconds: float = 30.0
    traces: TraceLimits = field(default_factory=TraceLimits)
    limits: Limits = field(default_factory=Limits)
    login_failures: int = 20

    @property
    def permissions(self) -> Permissions:
        """What stored graders may do on this server."""
        return Permissions(
            custom_code=self.allow_custom_code,
            internal=self.allow_internal_endpoints,
            secrets=self.endpoint_secrets,
        )


class Stopping(asyncio.Event):
    """Set when the server is to stop."""

    _since: float | None = None

    def set(self) -> None:
        """Tell everybody, once."""
        if self._since is None:
            self._since = time.monotonic()
        super().set()

    def left(self, grace_seconds: float) -> float:
        """How much of a period of grace is left."""
        return grace_seconds - (time.monotonic() - (self._since or time.monotonic()))


@dataclass(slots=True)
class Turn:
    """Equal requests, one of which is carried out.

    Attributes:
        lock: Held by that one.
        users: How many there are.
    """

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


@dataclass(frozen=True, slots=True)
class Context:
    """One server.

    Attributes:
        settings: What it was told.
        storage: Its database.
        access: Who may do what.
        allowances: How much of it.
        metrics: What it counts.
        lanes: Where graders run.
        regrades: Runs that are graded again.
        cluster: What grades jobs, where that is not this process.
        stopping: Set when it is to stop: streams end, no new job begins.
        wake: Set when there may be a job to do.
        streams: Streams of events that are open, by the key that opened them.
        downloads: Datasets that are being sent, by their project.
        turns: Requests with an idempotency key that are being carried out.
    """

    settings: ServerSettings
    storage: Storage
    access: Access
    allowances: Allowances
    metrics: Metrics
    lanes: Lanes
    regrades: Regrading
    cluster: JobCluster | None = None
    stopping: Stopping = field(default_factory=Stopping)
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    turns: dict[str, Turn] = field(default_factory=dict[str, Turn])
    # whoever reads slowly holds a part in memory
    downloads: Opened = field(default_factory=lambda: Opened("downloads", 32, 8))
    streams: Opened = field(init=False)

    def __post_init__(self) -> None:
        most = self.settings.limits.connections // 2  # they must not take every one there is
        # tabs of many people may share a key
        streams = Opened("streams of events", most, min(100, most))
        object.__setattr__(self, "streams", streams)

    def desk(self, database: Database, project: str, who: Identity = LOCAL) -> Desk:
        """The database at hand for a project, with what this server allows."""
        return Desk(database, project, who, self.settings.permissions)

    async def grade_apart(
        self,
        project: str,
        version: GraderVersion,
        items: Sequence[Item],
        deadline: float | None = None,
    ) -> Batch:
        """Grade items for a project, when it is its turn."""
        lane = lane_of(version)
        return await self.lanes.run(lane, project, lambda: self.grade(version, items, deadline))

    async def grade(
        self, version: GraderVersion, items: Sequence[Item], deadline: float | None = None
    ) -> Batch:
        """Grade items with a stored version, and count what came of them; on a loop of a lane."""
        started = time.perf_counter()
        batch = await grade_timed(version, items, self.settings.permissions, deadline)
        self.metrics.graded(version, batch.graded, time.perf_counter() - started)
        return batch

    async def grade_for_job(self, version: GraderVersion, items: Sequence[Item]) -> list[Graded]:
        """The same with what grades jobs."""
        if self.cluster is None:
            return list((await self.grade(version, items)).graded)
        started = time.perf_counter()
        graded = await self.cluster.grade(version, items)
        self.metrics.graded(version, graded, time.perf_counter() - started)
        return graded


def context(request: Request) -> Context:
    """The server that a request came to."""
    return cast("Context", request.app.state.context)


def caller(request: Request) -> Identity:
    """Who sent a request that was let in."""
    return cast("Identity", request.state.identity)


def address_of(request: Request) -> str:
    """The address a request came from, for counting failures."""
    return request.client.host if request.client else "unknown"


_CLOSING_SECONDS = 3.0


class _Replies:
    """What the database's thread has to tell a loop; the loop is woken once for many of them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = ref(loop)
        self._waiting: deque[tuple[asyncio.Future[Any], object, BaseException | None]] = deque()
        self._is_called = False

    def put(self, reply: asyncio.Future[Any], found: object, error: BaseException | None) -> None:
        """Tell it; from the thread."""
        self._waiting.append((reply, found, error))
        loop = self._loop()
        if loop is not None and not self._is_called:
            self._is_called = True
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        self._is_called = False  # first: what comes meanwhile calls again
        while self._waiting:
            reply, found, error = self._waiting.popleft()
            if reply.done():
                continue
            if error is None:
                reply.set_result(found)
            else:
                reply.set_exception(error)


@dataclass(frozen=True, slots=True)
class _Asked(Generic[T]):
    """What the database's thread is asked for."""

    work: Callable[[], T]
    reply: asyncio.Future[T]
    replies: _Replies

    def give_up(self) -> None:
        """Wait no longer."""
        if not self.reply.done():
            self.reply.set_exception(SlowStoreError("the database does not answer"))


@dataclass(slots=True)
class _Patience:
    """How many seconds a request may still wait for the database."""

    left: float


_PATIENCE: ContextVar[_Patience | None] = ContextVar("assay_patience", default=None)


class Storage:
    """The thread that owns the database, so that no request waits for another one's disk.

    Usable from any event loop. A database that fails is let go of and opened anew by the next one
    who needs it.

    Args:
        location: As `Database.open` takes it.
        seconds: How long anybody waits for it.
    """

    def __init__(self, location: str, seconds: float = 30.0) -> None:
        self._location = location
        self._path = f"{location}/assay.db"
        self._seconds = seconds
        self._database: Database | None = None
        self._file: tuple[int, int] | None = None
        self._damage: DamagedError | None = None
        self._asked: SimpleQueue[_Asked[Any] | None] | None = None
        self._replies: WeakKeyDictionary[asyncio.AbstractEventLoop, _Replies] = WeakKeyDictionary()

    async def check(self, patience: float = 5.0) -> None:
        """Have the file looked through for damage, beside all other work where it takes long.

        Args:
            patience: Seconds to wait for the end of that.
        """
        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def look() -> None:
            try:
                with Database.open(self._location) as database:
                    database.check()
            except DamagedError as error:
                self._note(error)
            except AssayError:  # whoever asks it for something is told
                pass
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(ended.set)

        Thread(target=look, name="assay-check", daemon=True).start()
        with suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), patience)

    def _note(self, damage: DamagedError) -> None:
        """Nothing more is asked of a damaged database: what it acknowledges could be lost."""
        if self._damage is None:
            _LOG.error("%s", damage)
        self._damage = damage

    def start(self) -> None:
        """Start the thread; the database is opened by the first who needs it."""
        self._asked = SimpleQueue()
        # Whoever ends the server waits for it as long as he likes, and no longer.
        Thread(target=self._serve, args=(self._asked,), name="assay-store", daemon=True).start()

    async def run(self, work: Callable[[Database], T], *, seconds: float | None = None) -> T:
        """Do something with the database in one go.

        Args:
            work: What is done.
            seconds: How long to wait for it, if less than the server's.

        Raises:
            SlowStoreError: If it does not answer in time.
            StoreError: If the database cannot be opened, read or written.
        """
        if self._asked is None:
            raise StoreError("the server has not started, or has ended")
        patience = _PATIENCE.get()
        left = self._seconds if patience is None else patience.left
        began = time.monotonic()
        try:
            return await self._ask(
                self._asked, lambda: self._do(work), min(seconds or self._seconds, left)
            )
        finally:
            if patience is not None:
                patience.left = max(0.0, patience.left - (time.monotonic() - began))

    @contextmanager
    def patience(self) -> Generator[None]:
        """Within it, all that is asked of the database is waited for so long together."""
        token = _PATIENCE.set(_Patience(self._seconds))
        try:
            yield
        finally:
            _PATIENCE.reset(token)

    async def _ask(
        self, thread: SimpleQueue[_Asked[Any] | None], work: Callable[[], T], seconds: float
    ) -> T:
        loop = asyncio.get_running_loop()
        if (replies := self._replies.get(loop)) is None:
            replies = self._replies[loop] = _Replies(loop)
        asked = _Asked(work, loop.create_future(), replies)
        thread.put(asked)
        timer = loop.call_later(seconds, asked.give_up)
        try:
            return await asked.reply
        finally:
            timer.cancel()

    def _serve(self, thread: SimpleQueue[_Asked[Any] | None]) -> None:
        while (asked := thread.get()) is not None:
            if asked.reply.done():  # nobody waits for it any more
                continue
            try:
                asked.replies.put(asked.reply, asked.work(), None)
            except BaseException as error:  # the boundary: raised where it was asked
                asked.replies.put(asked.reply, None, error)
            del asked  # and what it holds
        self._let_go()  # where it hung, nobody waited for that

    def _do(self, work: Callable[[Database], T]) -> T:
        database = self._opened()
        try:
            return work(database)
        except StoreError as error:
            if isinstance(error, DamagedError):
                self._note(error)
            self._let_go()
            raise

    def _opened(self) -> Database:
        if self._damage is not None:
            raise DamagedError(self._damage.message, hint=self._damage.hint)
        if self._database is None:
            self._database = Database.open(self._location)
            self._file = self._identity()
        elif self._identity() != self._file:
            # SQLite would go on writing to a file that has no name any more, and that ends with us.
            raise StoreError(
                f"the file of the store {self._database.place} was removed or replaced",
                hint="put it back, or start the server again",
            )
        return self._database

    def _identity(self) -> tuple[int, int] | None:
        """Which file the database is in; None where it is in none."""
        if "://" in self._location:
            return None
        try:
            status = os.stat(self._path)  # noqa: PTH116 - for every request
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino

    def _let_go(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            with suppress(StoreError):
                database.close()

    async def close(self) -> None:
        """End the thread, once what was asked of it is done; a database that hangs is left."""
        thread, self._asked = self._asked, None
        if thread is not None:
            with suppress(SlowStoreError):
                await self._ask(thread, self._let_go, _CLOSING_SECONDS)
            thread.put(None)
