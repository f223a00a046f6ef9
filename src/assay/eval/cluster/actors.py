"""Work on a Ray cluster: actors that stand in for the forks of one machine.

An actor is warm: what its work has made (sandboxes, clients, caches) lives as long as it does. A
request goes to an actor that is ready, and waits here while all are busy. An actor that dies, with
its machine or alone, is replaced, and its requests are done again elsewhere. A request over which
actors die again and again is given up, as `EndsWorkersError`.

Ray's own restarts (``max_restarts``, ``max_task_retries``) are not used: a request that kills its
actor uses up the tries of all others that the actor has, which would be given up with it.

Actors belong to the process that made them and end with it, however it ends.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import logging
import pickle
import socket
import tempfile
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias, cast, runtime_checkable

from assay.cores import keep_to
from assay.errors import AssayError, GraderError, MissingExtraError, reason_of
from assay.eval.cluster.ray_parts import Parts
from assay.graders.threads import in_thread
from assay.version import __version__

if TYPE_CHECKING:
    from assay.eval.cluster.limits import ClusterLimits

DEPTH = 2
"""Requests under way with an actor that computes: the one that it works on, and the next."""
WAITING = 64
"""Rows under way with an actor whose graders wait for others."""
SLOW_SECONDS = 600.0
"""How long an actor may take over a request beyond the time that grading has, or stand still."""
_START_SECONDS = 600.0
"""How long to wait while no actor is there: clusters that grow need minutes for a machine."""
_SAID_SECONDS = 30.0
"""After how long it is said."""
_WATCH_SECONDS = 1.0
_CORES_SECONDS = 5.0
_ASK_SECONDS = 10.0
_END_SECONDS = 5.0
_DEATHS = 3
"""So many actors may die over a request; after the first it is alone with an actor."""
_LOSSES = 20
"""So often a request may be lost with machines that go away."""
_STARTS = 5
"""So often an actor may fail to start before the cluster is blamed."""

_Handle: TypeAlias = Any
"""Ray's handle of a `_Worker`: its methods, each with ``remote``."""

_LOG = logging.getLogger("assay.cluster")


class EndsWorkersError(GraderError):
    """Workers die over a request again and again, so its outcome is unknown."""


@runtime_checkable
class Prepares(Protocol):
    """Work that looks around on its machine before it is given any."""

    def prepare(self) -> Awaitable[None] | None:
        """Prepare what the work needs.

        Raises:
            AssayError: If this machine cannot do the work; then no machine does any.
        """
        ...


def worker_directory() -> str:
    """A new directory on the machine of the worker that asks; it goes when its cluster ends."""
    found = ray().get_runtime_context().get_node_id()
    stores = {str(node["NodeID"]): str(node["ObjectStoreSocketName"]) for node in ray().nodes()}
    return tempfile.mkdtemp(prefix="assay-", dir=Path(stores[found]).parents[1])


class _Worker:
    """What runs in an actor. Its requests share a loop, so that those that wait do so together."""

    def __init__(self) -> None:
        self._work: Callable[[object], object] | None = None
        self._busy: set[asyncio.Task[object]] = set()

    async def begin(self, version: str, work: bytes, workers: int) -> tuple[str, str]:
        """The machine that it is on, and why it cannot work there; "" if it can."""
        node = this_node()
        keep_to(1)
        await self.share(workers)
        if version != __version__:
            return node, f"has assay {__version__}, and {version} is what grades here"
        try:
            found: object = pickle.loads(work)  # noqa: S301 - the driver's
            if isinstance(found, Prepares) and (waited := found.prepare()) is not None:
                await waited
        except Exception as error:  # the boundary: told by the driver
            return node, f"cannot do the work: {reason_of(error)}"
        self._work = cast("Callable[[object], object]", found)
        return node, ""

    async def run(self, request: object) -> object:
        """What comes of a request."""
        assert self._work is not None, "an actor is asked once it has begun"
        task = cast("asyncio.Task[object]", asyncio.current_task())
        self._busy.add(task)
        try:
            done = self._work(request)
            return await cast("Awaitable[object]", done) if inspect.isawaitable(done) else done
        finally:
            self._busy.discard(task)

    async def share(self, workers: int) -> None:
        """Keep to its part of the limits of models, which are those of so many workers together."""
        from assay.models.pace import share_limits

        share_limits(workers)

    async def answer(self) -> None:
        """Say that the loop goes on."""

    async def end(self) -> None:
        """Cancel what is under way, so that it leaves nothing behind."""
        busy = list(self._busy)
        for task in busy:
            task.cancel()
        await asyncio.gather(*busy, return_exceptions=True)


def ray() -> Any:  # noqa: ANN401 - its own types are not complete
    """The package.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise MissingExtraError("the engine ray", extra="ray") from error


@dataclass(slots=True, eq=False)
class _Actor:
    """An actor that is ready.

    Attributes:
        handle: What it is asked through.
        under_way: Requests that it has.
        is_alone: Whether it has one over which another actor died, and takes no other.
        since: When it last began or ended something, on the loop's clock.
        asked: When it was asked whether its loop goes on.
        answer: What it says to that.
        ended: Set when it is to be replaced.
    """

    handle: _Handle
    since: float
    under_way: int = 0
    is_alone: bool = False
    asked: float = 0.0
    answer: asyncio.Future[object] | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class Actors:
    """Actors that all do the same, as `assay.eval.batch.Processes` on one machine.

    Args:
        work: What is done with whatever one of them is sent; it is pickled. What it returns may be
            awaitable.
        count: How many; by default one for each core of the cluster, and more when machines join.
        depth: Requests under way with one actor.
        patience: Seconds without any request ending after which an actor that has some is taken
            to hang, and is ended. None for requests that wait, for whatever time, on a loop that
            must not stand still for longer than `SLOW_SECONDS`.
        blocks: Seconds more for which what waits may keep the loop to itself.
        limits: Within which the work asks models; None for work that asks none.

    Raises:
        AssayError: When it is called: no actor can start, or none finds room on the cluster.
    """

    def __init__(
        self,
        work: Callable[..., object],
        count: int = 0,
        *,
        depth: int = DEPTH,
        patience: float | None = None,
        blocks: float = 0.0,
        limits: ClusterLimits | None = None,
    ) -> None:
        work = work if limits is None else limits.within(work)
        self._work, self._limits = pickle.dumps(work, pickle.HIGHEST_PROTOCOL), limits
        self._fixed, self._depth = count, depth
        self._patience, self._blocks = patience, blocks
        self._actors: list[_Actor] = []
        self._made: set[_Handle] = set()
        self._turns: deque[tuple[bool, asyncio.Future[_Actor]]] = deque()
        self._fault: AssayError | None = None
        self._replies = set[asyncio.Future[object]]()
        self._tasks: list[asyncio.Task[None]] = []
        self._seats, self._shares = 0, 1

    def __enter__(self) -> Self:
        """Begin to start them; requests wait until the first is ready."""
        self._new = ray().remote(
            num_cpus=1,
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=self._depth + 3,  # to end, to say that it goes on, to share limits
            scheduling_strategy="SPREAD",
        )(_Worker)
        self._sent = ray().put(self._work)
        self._seat(self._fixed or cores())
        self._shares = max(1, self._seats)
        self._begin(self._watch())
        return self

    def __exit__(self, *raised: object) -> None:
        """End them all; where something is interrupted, they may put away what they have begun."""
        for task in self._tasks:
            task.cancel()
        if raised[0] is not None and self._actors:
            ends = [actor.handle.end.remote() for actor in self._actors]
            ray().wait(ends, num_returns=len(ends), timeout=_END_SECONDS)
        for handle in self._made:
            _kill(handle)

    @property
    def ready(self) -> int:
        """How many of them can be given requests now."""
        return len(self._actors)

    async def __call__(self, request: object) -> object:
        """What came of a request; it waits until an actor has room for it.

        Raises:
            EndsWorkersError: If workers die over it again and again.
            AssayError: If no actor can start.
            Exception: What the work raised.
        """
        from ray.exceptions import RayError, RayTaskError

        deaths = losses = 0
        while True:
            actor = await self._turn(is_suspect=deaths > 0)
            try:
                if self._limits is None:
                    return await self._reply(actor, request)
                return await self._limits.lend(partial(self._reply, actor), request, self._pieces)
            except RayTaskError as error:
                raise cast("Exception", error.cause) from None
            except RayError as error:
                is_its_own = await asyncio.to_thread(_died_alone, error)
                deaths, losses = deaths + is_its_own, losses + (not is_its_own)
                self._drop(actor)
                if deaths >= _DEATHS or losses >= _LOSSES:
                    raise EndsWorkersError(
                        f"{deaths + losses} workers died over it: {_first_line(error)}",
                        hint="look at the workers' memory, and at what the graders do",
                    ) from error
            finally:
                self._done(actor)

    def _pieces(self) -> int:
        """Requests that are with actors, or soon will be."""
        busy = sum(actor.under_way for actor in self._actors)
        return busy + min(len(self._turns), max(0, self._seats * self._depth - busy))

    async def _reply(self, actor: _Actor, request: object) -> object:
        asked = actor.handle.run.remote(request)
        reply = asyncio.ensure_future(asked)
        self._replies.add(reply)
        try:
            await asyncio.wait((reply,))
        except asyncio.CancelledError:
            ray().cancel(asked)  # nobody waits for it, and it may cost money
            raise
        finally:
            self._replies.discard(reply)
            reply.cancel()
        if reply.cancelled():  # the head is lost
            assert self._fault is not None, "it is said before"
            raise self._fault
        return reply.result()

    async def _turn(self, *, is_suspect: bool) -> _Actor:
        """An actor with room: for a request over which one has died, an idle one to itself."""
        if self._fault is not None:
            raise self._fault
        turn = asyncio.get_running_loop().create_future()
        (self._turns.appendleft if is_suspect else self._turns.append)((is_suspect, turn))
        self._hand_out()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._done(turn.result())
            raise

    def _hand_out(self) -> None:
        while self._turns:
            is_suspect, turn = self._turns[0]
            if not turn.done():
                most = 1 if is_suspect else self._depth
                free = [a for a in self._actors if a.under_way < most and not a.is_alone]
                if not free:
                    return
                actor = min(free, key=lambda found: found.under_way)
                if not actor.under_way:
                    actor.since = asyncio.get_running_loop().time()
                actor.under_way += 1
                actor.is_alone = is_suspect
                turn.set_result(actor)
            self._turns.popleft()

    def _done(self, actor: _Actor) -> None:
        actor.under_way -= 1
        actor.is_alone = False
        actor.since = asyncio.get_running_loop().time()
        self._hand_out()

    def _drop(self, actor: _Actor) -> None:
        if actor in self._actors:
            self._actors.remove(actor)
            actor.ended.set()

    def _begin(self, work: Coroutine[object, object, None]) -> None:
        self._tasks.append(asyncio.create_task(work))

    def _share(self, workers: int) -> None:
        """Divide the limits of models among so many actors."""
        self._shares = workers
        for actor in self._actors if self._limits is not None else ():
            actor.handle.share.remote(workers)

    def _seat(self, count: int) -> None:
        for _ in range(self._seats, count):
            self._begin(self._occupied())
        self._seats = max(self._seats, count)

    async def _occupied(self) -> None:
        """Keep an actor running; replace one that ends, until the pool ends or none can start."""
        from ray.exceptions import RayError

        failed = 0
        while self._fault is None:
            handle = self._new.remote()
            self._made.add(handle)
            try:
                node, refusal = cast(
                    "tuple[str, str]",
                    await handle.begin.remote(__version__, self._sent, self._shares),
                )
            except RayError as error:
                self._end(handle)
                failed += 1
                if failed >= _STARTS or "No module named" in str(error):
                    self._fail(_cannot_start(error))
                await asyncio.sleep(_WATCH_SECONDS)
                continue
            if refusal:
                self._fail(GraderError(f"{node} {refusal}", hint=_SAME_EVERYWHERE))
                return
            failed = 0
            actor = _Actor(handle, asyncio.get_running_loop().time())
            self._actors.append(actor)
            if len(self._actors) > self._shares:
                self._share(len(self._actors))
            self._hand_out()
            await actor.ended.wait()
            self._end(handle)

    async def _watch(self) -> None:
        """End actors that hang, start more when machines join, and notice when none is left."""
        loop = asyncio.get_running_loop()
        parts, seen, is_said, shared = Parts(*_parts()), loop.time(), False, loop.time()
        while self._fault is None:
            await asyncio.sleep(_WATCH_SECONDS)
            try:
                if not await parts.answer():
                    continue  # what is asked of Ray now would be waited for
            except GraderError as fault:
                self._lose(fault)
                return
            now = loop.time()
            if self._actors:
                seen, is_said = now, False
            elif now - seen > _SAID_SECONDS and not is_said:
                is_said = True
                _LOG.warning("%s", _no_room(now - seen))
            elif now - seen > _START_SECONDS:
                self._fail(_no_room(now - seen))
            if len(self._actors) in (0, self._shares):
                shared = now
            elif now - shared > _SAID_SECONDS:  # others do not come, or not again
                self._share(len(self._actors))
            for actor in self._actors:
                if actor.under_way and self._hangs(actor, now):
                    _kill(actor.handle)
            if not self._fixed:
                # A head that went a moment ago would be waited for until Ray ends this process.
                with suppress(TimeoutError):
                    self._seat(await asyncio.wait_for(in_thread(cores), _CORES_SECONDS))

    def _hangs(self, actor: _Actor, now: float) -> bool:
        if self._patience is not None:
            return now - actor.since > self._patience
        if actor.answer is None or actor.answer.done():
            if now - actor.asked > _ASK_SECONDS:
                asked: asyncio.Future[object] = asyncio.ensure_future(actor.handle.answer.remote())
                actor.answer, actor.asked = asked, now
                asked.add_done_callback(lambda told: told.cancelled() or told.exception())
            return False
        return now - actor.asked > SLOW_SECONDS + self._blocks

    def _end(self, handle: _Handle) -> None:
        self._made.discard(handle)
        _kill(handle)

    def _lose(self, fault: AssayError) -> None:
        """Stop waiting for what is under way: this process must leave the cluster."""
        self._fail(fault)
        for reply in self._replies:
            reply.cancel()

    def _fail(self, fault: AssayError) -> None:
        self._fault = self._fault or fault
        for _, turn in self._turns:
            if not turn.done():
                turn.set_exception(self._fault)
        self._turns.clear()


_SAME_EVERYWHERE = "every machine of the cluster needs what this one has: docs/datasets.md"


def cores() -> int:
    """How many cores the cluster has now."""
    return int(ray().cluster_resources().get("CPU", 0))


def _kill(handle: _Handle) -> None:
    from ray.exceptions import RayError

    with suppress(RayError, ValueError):  # it has ended already
        ray().kill(handle, no_restart=True)


def this_node() -> str:
    """The name of this machine of the cluster in messages."""
    return f"node {socket.gethostname()} ({ray().util.get_node_ip_address()})"


def _died_alone(error: Exception) -> bool:
    """Whether an actor's process died, and not the machine that it was on."""
    from ray.exceptions import ActorDiedError, OutOfMemoryError

    if isinstance(error, ActorDiedError):
        return "node has died" not in str(error) and not error.preempted
    return isinstance(error, OutOfMemoryError)


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _cannot_start(error: Exception) -> GraderError:
    if "No module named 'assay" in str(error):
        return GraderError(
            f"a worker of the cluster cannot import assay {__version__}",
            hint=f"pip install 'assay[ray]=={__version__}' on every machine of the cluster",
        )
    return GraderError(f"no worker can start: {_first_line(error)}", hint=_SAME_EVERYWHERE)


def _parts() -> tuple[str, str]:
    """Where the head is, and what belongs to the cluster on this machine."""
    context = ray().get_runtime_context()
    here = context.get_node_id()
    (node,) = (one for one in ray().nodes() if one["NodeID"] == here)
    return context.gcs_address, f"{node['NodeManagerAddress']}:{node['NodeManagerPort']}"


def _no_room(seconds: float) -> GraderError:
    there = ray().cluster_resources().get("CPU", 0)
    return GraderError(
        f"no worker has found room for {seconds:.0f} s; the cluster has {there:g} cores, "
        f"{ray().available_resources().get('CPU', 0):g} of them free",
        hint="a worker takes one core: add machines, or stop what uses the cores; if nothing does, "
        "a firewall may keep this machine from the workers' ports",
    )
