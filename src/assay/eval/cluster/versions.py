"""Stored versions graded on a Ray cluster, by a process of its own.

Ray ends a process whose cluster is gone, and `assay serve` must go on: so this is a process of its
own. Standard input brings the engine and what graders may do, then requests, each a frame with a
number; replies go to standard output. It ends when its standard input does. It is not started with
``-m``, because what is pickled for actors must be in a module that they can import.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from assay.errors import AssayError, GraderError, reason_of
from assay.eval.cluster.actors import SLOW_SECONDS, WAITING, Actors, EndsWorkersError, this_node
from assay.eval.cluster.joining import Cluster, connected
from assay.eval.cluster.limits import ClusterLimits
from assay.eval.cluster.pieces import by_pieces
from assay.eval.cluster.sent_graders import require_sandbox
from assay.registry.definitions import definition_of
from assay.registry.grading import Items, grade_version
from assay.registry.policy import Permissions
from assay.scoring.graded import Graded
from assay.store.catalog import GraderVersion
from assay.tasks.task import RunOptions

NUMBER_BYTES = 4
HEAD_BYTES = NUMBER_BYTES + 8

Reply: TypeAlias = "tuple[Literal['done', 'refused', 'away'], object]"
"""What came of a request: ``done`` and what was made; ``refused`` and the error of what was asked;
``away`` and the error that keeps the cluster from all of it. Unasked, with the number 0: ``done``
and the cores and the name of the cluster, at the beginning; then how many workers it has, when that
changes."""

_TELL_SECONDS = 1.0
_Pool: TypeAlias = "Callable[[object], Awaitable[object]]"


def frame(number: int, body: bytes) -> bytes:
    """A message as it is sent: its number, 0 for the first, its length, and what it says."""
    size = len(body).to_bytes(HEAD_BYTES - NUMBER_BYTES, "big")
    return number.to_bytes(NUMBER_BYTES, "big") + size + body


@dataclass(frozen=True, slots=True)
class _Request:
    """Items for a version, whose digest is that of the machine that asks."""

    version: GraderVersion
    digest: str
    items: Items


class _GradesVersions:
    """What an actor does: grades items with a stored version that comes with them.

    Args:
        permissions: What stored graders may do.
    """

    def __init__(self, permissions: Permissions) -> None:
        self._permissions = permissions
        self._fit = set[str]()

    async def __call__(self, request: object) -> list[Graded] | AssayError:
        """What came of the items; or why the version cannot grade on this machine."""
        asked = cast("_Request", request)
        try:
            if asked.digest not in self._fit:
                self._require_fit(asked)
                self._fit.add(asked.digest)
            return await grade_version(asked.version, asked.items, self._permissions)
        except AssayError as error:
            return error
        except Exception as error:  # the boundary: a job that breaks must not end the others
            return GraderError(f"an error of ours: {reason_of(error)}")

    def _require_fit(self, asked: _Request) -> None:
        definition = definition_of(asked.version)
        try:
            require_sandbox(definition.specs)
        except AssayError as error:
            raise GraderError(f"{this_node()}: {error.message}", hint=error.hint) from error
        if definition.digest() != asked.digest:
            raise GraderError(
                f"{this_node()}: grader {asked.version.key!r} is not the same there: its code "
                "differs",
                hint="install the same assay, and the same modules of one's own, everywhere",
            )


class _RefusedError(Exception):
    """A version cannot grade there."""

    def __init__(self, error: AssayError) -> None:
        super().__init__(str(error))
        self.error = error


async def _graded(pool: _Pool, version: GraderVersion, items: Items) -> list[Graded]:
    """What came of items; one over which workers end could not be graded."""
    try:
        digest = definition_of(version).digest()
    except AssayError as error:
        raise _RefusedError(error) from error

    async def ask(some: Items) -> list[Graded]:
        found = await pool(_Request(version, digest, some))
        if isinstance(found, AssayError):
            raise _RefusedError(found)
        return cast("list[Graded]", found)

    def lost(item: tuple[str, object], error: EndsWorkersError) -> list[Graded]:
        name = f"{version.key}@{version.number}"
        return [Graded.failed(item[0], error.message, outcome="crash").by(name, digest)]

    found = await by_pieces(items, ask, lost)
    return [one for some in found for one in some]


async def _answer(pool: _Pool, body: bytes) -> Reply:
    try:
        version, items = cast("tuple[GraderVersion, Items]", pickle.loads(body))  # noqa: S301 - the server's
        return "done", await _graded(pool, version, items)
    except _RefusedError as error:
        return "refused", error.error
    except AssayError as error:
        return "away", error
    except Exception as error:  # the boundary: whatever Ray comes upon keeps it from the work
        return "away", GraderError(reason_of(error))


async def _serve(cluster: Cluster, permissions: Permissions, replies: int) -> None:
    loop = asyncio.get_running_loop()
    requests = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(requests), sys.stdin)
    tasks: dict[int, asyncio.Task[None]] = {}
    patience = SLOW_SECONDS + (RunOptions().grading_timeout or 0.0)

    async def carry_out(number: int, body: bytes) -> None:
        try:
            _send(replies, number, await _answer(pool, body))
        finally:
            del tasks[number]

    work = _GradesVersions(permissions)
    with Actors(work, depth=WAITING, patience=patience, limits=ClusterLimits()) as pool:
        _send(replies, 0, ("done", (cluster.cores, cluster.engine)))
        tasks[0] = asyncio.create_task(_tell_workers(pool, replies))
        while (message := await _next(requests)) is not None:
            number, body = message
            if body:
                tasks[number] = asyncio.create_task(carry_out(number, body))
            elif number in tasks:  # nobody waits for it any more
                tasks[number].cancel()
        rest = list(tasks.values())
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)


async def _tell_workers(pool: Actors, replies: int) -> None:
    told = 0
    while True:
        if pool.ready != told:
            told = pool.ready
            _send(replies, 0, ("done", told))
        await asyncio.sleep(_TELL_SECONDS)


async def _next(requests: asyncio.StreamReader) -> tuple[int, bytes] | None:
    try:
        head = await requests.readexactly(HEAD_BYTES)
        body = await requests.readexactly(int.from_bytes(head[NUMBER_BYTES:], "big"))
    except asyncio.IncompleteReadError:  # whoever asked has ended
        return None
    return int.from_bytes(head[:NUMBER_BYTES], "big"), body


def _send(replies: int, number: int, reply: Reply) -> None:
    rest = memoryview(frame(number, pickle.dumps(reply, pickle.HIGHEST_PROTOCOL)))
    while rest:
        rest = rest[os.write(replies, rest) :]


def _first() -> tuple[str, Permissions]:
    """The engine, and what graders may do; nothing behind them is read yet."""
    head = _exactly(HEAD_BYTES)
    body = _exactly(int.from_bytes(head[NUMBER_BYTES:], "big"))
    return cast("tuple[str, Permissions]", pickle.loads(body))  # noqa: S301 - the server's


def _exactly(count: int) -> bytes:
    """So many bytes of standard input; ends the process where whoever sends them has ended."""
    found = b""
    while len(found) < count:
        found += os.read(0, count - len(found)) or sys.exit(1)
    return found


def serve() -> None:
    """Be that process."""
    replies = os.dup(1)
    os.dup2(2, 1)  # what Ray and graders print is no reply
    engine, permissions = _first()
    try:
        with connected(engine) as cluster:
            asyncio.run(_serve(cluster, permissions, replies))
    except AssayError as error:
        _send(replies, 0, ("away", error))
    except KeyboardInterrupt:  # whoever began it waits no longer
        return
