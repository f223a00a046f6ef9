"""The one driver (`assay.graders.driver`), and processes that may do what it hands out."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import socket
from collections.abc import Awaitable, Callable, Coroutine
from typing import Self, TypeVar, cast

from assay.cores import keep_to
from assay.errors import GraderError
from assay.graders.driver import in_batches, run_batches

__all__ = ["Processes", "in_batches", "run_batches"]

B = TypeVar("B")
R = TypeVar("R")

_HEAD_BYTES = 8


class Processes:
    """Forks of this process that all do the same, for work that only computes.

    They end with the process that made them, however it ends: each waits on a socket whose other
    end nobody else has. The pools of each keep one processor busy.

    Args:
        work: What is done with whatever one of them is sent, plain or async; each has a loop of
            its own. It must not touch the loop, a database or a thread of this process, none of
            which survives a fork.
        count: How many.
    """

    def __init__(self, work: Callable[[B], R | Awaitable[R]], count: int) -> None:
        self._children: list[tuple[int, socket.socket]] = []
        self._free: asyncio.Queue[socket.socket] = asyncio.Queue()
        for _ in range(count):
            ours, theirs = socket.socketpair()
            pid = os.fork()
            if pid == 0:
                for end in (ours, *(other for _, other in self._children)):
                    end.close()
                _serve(theirs, cast("Callable[[object], object]", work))
            theirs.close()
            ours.setblocking(False)
            self._children.append((pid, ours))
            self._free.put_nowait(ours)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        """End them all."""
        for pid, end in self._children:
            end.close()
            os.kill(pid, signal.SIGKILL)
        for pid, _ours in self._children:
            os.waitpid(pid, 0)

    async def __call__(self, request: object) -> object:
        """What came of a request; it waits until one of the processes is free.

        Raises:
            GraderError: If the process ended over it.
        """
        ours, loop = await self._free.get(), asyncio.get_running_loop()
        try:
            body = pickle.dumps(request, pickle.HIGHEST_PROTOCOL)
            await loop.sock_sendall(ours, len(body).to_bytes(_HEAD_BYTES, "big") + body)
            head = await _receive(loop, ours, _HEAD_BYTES)
            reply = await _receive(loop, ours, int.from_bytes(head, "big"))
        except (ConnectionError, EOFError) as error:
            self._free.put_nowait(ours)  # whoever waits for it finds it dead too, and ends
            raise GraderError("a process that grades rows has ended", hint="try again") from error
        self._free.put_nowait(ours)
        return pickle.loads(reply)  # noqa: S301 - written by a fork of ourselves


async def _receive(loop: asyncio.AbstractEventLoop, ours: socket.socket, size: int) -> bytearray:
    whole = bytearray(size)
    rest = memoryview(whole)
    while rest:
        got = await loop.sock_recv_into(ours, rest)
        if not got:
            raise EOFError
        rest = rest[got:]
    return whole


def _serve(theirs: socket.socket, work: Callable[[object], object]) -> None:
    """Do what is asked until nobody asks any more; never returns."""
    code = 1
    try:
        keep_to(1)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asks decides when to stop
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with theirs.makefile("rwb") as stream, asyncio.Runner() as runner:
            while head := stream.read(_HEAD_BYTES):
                request = pickle.loads(stream.read(int.from_bytes(head, "big")))  # noqa: S301 - see above
                done = work(request)
                if isinstance(done, Coroutine):
                    done = runner.run(cast("Coroutine[object, object, object]", done))
                body = pickle.dumps(done, pickle.HIGHEST_PROTOCOL)
                stream.write(len(body).to_bytes(_HEAD_BYTES, "big"))
                stream.write(body)
                stream.flush()
        code = 0
    finally:
        os._exit(code)
