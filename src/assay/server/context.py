"""What a server is told when it starts, and what its routes and jobs share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, cast
from weakref import WeakValueDictionary

from starlette.requests import Request

from assay.endpoint.listening import ListeningLimits
from assay.endpoint.routes import MAX_VALUES
from assay.graders.batch import Batch
from assay.registry.grading import grade_timed
from assay.registry.policy import Permissions
from assay.scoring.graded import Graded
from assay.server.concurrency import Lane, Lanes, lane_of
from assay.server.limits import OpenReplies
from assay.service.operation import LOCAL, Desk, Identity
from assay.store.catalog import GraderVersion
from assay.store.database import Database
from assay.store.traces import TraceLimits
from assay.types.submission import Submission

if TYPE_CHECKING:
    from assay.server.admission import Admission
    from assay.server.cluster import JobCluster
    from assay.server.limits import Allowances
    from assay.server.metrics import Metrics
    from assay.server.regrades import Regrading
    from assay.server.storage import Storage

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
    limits: ListeningLimits = field(default_factory=ListeningLimits)
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
        turns: Held for each idempotency key of which a request is being carried out.
    """

    settings: ServerSettings
    storage: Storage
    access: Admission
    allowances: Allowances
    metrics: Metrics
    lanes: Lanes
    regrades: Regrading
    cluster: JobCluster | None = None
    stopping: Stopping = field(default_factory=Stopping)
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    turns: WeakValueDictionary[str, asyncio.Lock] = field(
        default_factory=WeakValueDictionary[str, asyncio.Lock]
    )
    # whoever reads slowly holds a part in memory
    downloads: OpenReplies = field(default_factory=lambda: OpenReplies("downloads", 32, 8))
    streams: OpenReplies = field(init=False)

    def __post_init__(self) -> None:
        most = self.settings.limits.connections // 2  # they must not take every one there is
        # tabs of many people may share a key
        streams = OpenReplies("streams of events", most, min(100, most))
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

        def work() -> Coroutine[object, None, Batch]:
            return self.grade(version, items, deadline)

        return await self.lanes.run(lane, project, work, waits=may_wait(lane, deadline))

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


def may_wait(lane: Lane, deadline: float | None) -> bool:
    """Whether what is graded in a lane needs a loop, to wait for something or for its time."""
    return lane != "comparisons" or deadline is not None


def context(request: Request) -> Context:
    """The server that a request came to."""
    return cast("Context", request.app.state.context)


def caller(request: Request) -> Identity:
    """Who sent a request that was let in."""
    return cast("Identity", request.state.identity)


def address_of(request: Request) -> str:
    """The address a request came from, for counting failures."""
    return request.client.host if request.client else "unknown"
