"""A Ray cluster that grades the batches of jobs: see `assay.eval.cluster.versions`.

While it is away, jobs wait and say so: what was sent off is forgotten, and nothing of it is stored.
"""

from __future__ import annotations

import asyncio
import pickle
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from typing import cast

from assay.errors import AssayError, GraderError
from assay.eval.cluster.versions import HEAD_BYTES, NUMBER_BYTES, Reply, frame, serve
from assay.registry.grading import Items
from assay.registry.policy import Permissions
from assay.scoring.graded import Graded
from assay.store.catalog import GraderVersion

REST_SECONDS = 5.0
"""How long to wait, at first, before a cluster that is away is looked for again."""
_LONGEST_REST_SECONDS = 60.0
_END_SECONDS = 15.0
_NUMBERS = 1 << 8 * NUMBER_BYTES


class ClusterAwayError(AssayError):
    """The cluster cannot be asked now, and no outcome of earlier requests is known."""


class JobCluster:
    """A cluster, joined by a process that ends with this one.

    Args:
        engine: ``ray`` or ``ray://HOST:PORT``.
        permissions: What stored graders may do.
    """

    def __init__(self, engine: str, permissions: Permissions) -> None:
        self._given = pickle.dumps((engine, permissions))
        self._permissions = permissions
        self._loop: asyncio.AbstractEventLoop | None = None
        self._joining = asyncio.Lock()
        self._process: Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._waiting: dict[int, asyncio.Future[Reply]] = {}
        self._number = 0
        self._rest, self._rested_at = REST_SECONDS, float("-inf")
        self._why: AssayError = GraderError("it was never joined")
        self.cores = 1
        """How many the cluster had when it was joined."""
        self.workers = 0
        """How many it has now; none while it is away."""
        self.rows = 0
        """How many are with it."""

    @property
    def is_joined(self) -> bool:
        """Whether it can be asked; where it is away, it is looked for again when it is needed."""
        return self._process is not None

    async def join(self) -> None:
        """Be connected. The loop that this is called on first is the one that it belongs to.

        Raises:
            AssayError: There is none, or it cannot be joined; it is not looked for again at once.
        """
        self._loop = asyncio.get_running_loop()
        async with self._joining:
            if self._process is not None:
                return
            if time.monotonic() < self._rested_at:
                raise self._why
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", f"from {serve.__module__} import serve; serve()"),
                stdin=PIPE,
                stdout=PIPE,
                start_new_session=True,  # Ctrl-C is for the server, which lets batches end
            )
            try:
                await _write(process, 0, self._given)
                _, (kind, told) = await _next(process)
            except (asyncio.IncompleteReadError, ConnectionError):
                kind, told = "away", GraderError("the process that was to join it has ended")
            except BaseException:  # who waited for it has gone, and it may take long
                with suppress(ProcessLookupError):
                    process.send_signal(signal.SIGINT)
                await _end(process)
                raise
            if kind != "done":
                await _end(process)
                self._away(cast("AssayError", told))
                raise self._why
            cores, engine = cast("tuple[int, str]", told)
            self._given = pickle.dumps((engine, self._permissions))  # the same one again, or none
            self.cores, self._process = max(1, cores), process
            self._reading = asyncio.create_task(self._read(process))

    async def grade(self, version: GraderVersion, items: Items) -> list[Graded]:
        """Grade items with a stored version; from any loop, while that of `join` runs.

        Raises:
            ClusterAwayError: It is away, or went away meanwhile.
            AssayError: The version cannot grade there.
        """
        assert self._loop is not None, "it is joined first"
        body = pickle.dumps((version, list(items)), pickle.HIGHEST_PROTOCOL)
        asked = asyncio.run_coroutine_threadsafe(self._ask(body, len(items)), self._loop)
        kind, told = await asyncio.wrap_future(asked)
        if kind == "done":
            return cast("list[Graded]", told)
        error = cast("AssayError", told)
        if kind == "refused":
            raise error
        raise ClusterAwayError(f"waits for the cluster: {error.message}", hint=error.hint)

    async def close(self) -> None:
        """Let go of it."""
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _ask(self, body: bytes, rows: int) -> Reply:
        try:
            await self.join()
        except AssayError as error:
            return "away", error
        process = self._process
        if process is None:  # gone again
            return "away", self._why
        self._number = number = self._number % (_NUMBERS - 1) + 1
        reply = self._waiting[number] = asyncio.get_running_loop().create_future()
        self.rows += rows
        try:
            with suppress(ConnectionError):  # whoever reads from it finds out
                await _write(process, number, body)
            return await reply
        except asyncio.CancelledError:
            with suppress(ConnectionError):
                await _write(process, number, b"")
            raise
        finally:
            del self._waiting[number]
            self.rows -= rows

    async def _read(self, process: Process) -> None:
        why: AssayError = GraderError("the connection to it was lost")
        try:
            while True:
                number, reply = await _next(process)
                if reply[0] == "away":  # what keeps one from the work keeps the others from it
                    why = cast("AssayError", reply[1])
                    return
                if not number:
                    self.workers = cast("int", reply[1])
                    continue
                self._rest = REST_SECONDS
                waiting = self._waiting.get(number)
                if waiting is not None and not waiting.done():
                    waiting.set_result(reply)
        except asyncio.IncompleteReadError:
            pass
        finally:
            self._process, self.workers = None, 0
            self._away(why)
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_result(("away", why))
            await _end(process)

    def _away(self, why: AssayError) -> None:
        self._why, self._rested_at = why, time.monotonic() + self._rest
        self._rest = min(2 * self._rest, _LONGEST_REST_SECONDS)


async def _write(process: Process, number: int, body: bytes) -> None:
    assert process.stdin is not None, "it is a pipe"
    process.stdin.write(frame(number, body))
    await process.stdin.drain()


async def _next(process: Process) -> tuple[int, Reply]:
    assert process.stdout is not None, "it is a pipe"
    head = await process.stdout.readexactly(HEAD_BYTES)
    body = await process.stdout.readexactly(int.from_bytes(head[NUMBER_BYTES:], "big"))
    reply = pickle.loads(body)  # noqa: S301 - of a process of ours
    return int.from_bytes(head[:NUMBER_BYTES], "big"), cast("Reply", reply)


async def _end(process: Process) -> None:
    """End it in a way that lets it leave the cluster."""
    assert process.stdin is not None, "it is a pipe"
    process.stdin.close()
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), _END_SECONDS)
        return
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()
