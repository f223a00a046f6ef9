"""Read what a process writes, in bounded memory and for bounded time."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from threading import Thread
from typing import Literal, TypeVar

from assay.sandbox.command import Limits

__all__ = ["Capture", "Ending", "drain", "follow", "in_thread"]

T = TypeVar("T")
Ending = Literal["done", "deadline", "output_limit", "cancelled"]

_CHUNK = 65_536
# The most a pipe can hold; after the last writer is dead there is no more to come than this.
_PIPE_CAPACITY = 1024 * 1024


@dataclass(slots=True)
class Capture:
    """The head and the tail of one stream.

    Attributes:
        keep: Bytes kept in all.
        total: Bytes seen.
    """

    keep: int
    total: int = 0
    _head: bytearray = field(default_factory=bytearray)
    _tail: bytearray = field(default_factory=bytearray)

    def add(self, chunk: bytes) -> None:
        """Take in what was read."""
        self.total += len(chunk)
        room = self.keep // 2 - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail += chunk
        surplus = len(self._tail) - (self.keep - self.keep // 2)
        # Shift only once in a while: each shift moves the whole tail.
        if surplus > _CHUNK:
            del self._tail[:surplus]

    @property
    def truncated(self) -> bool:
        """Whether something was cut out."""
        return self.total > self.keep

    def text(self) -> str:
        """What was kept, with a marker where the middle is missing."""
        if not self.truncated:
            return (self._head + self._tail).decode("utf-8", "replace")
        tail = self._tail[len(self._tail) - (self.keep - self.keep // 2) :]
        head = self._head.decode("utf-8", "replace")
        cut = self.total - self.keep
        return f"{head}\n... [{cut} bytes cut] ...\n{tail.decode('utf-8', 'replace')}"


def follow(
    captures: dict[int, Capture],
    *,
    done: int,
    deadline: float,
    limits: Limits,
    cancel: int | None = None,
) -> Ending:
    """Read streams until the process is done or has to be killed.

    A stream held open by a left-over child does not matter: only ``done`` counts.

    Args:
        captures: A capture for each readable descriptor.
        done: Readable, or hung up, when the process has ended.
        deadline: On the monotonic clock, in seconds.
        limits: For ``output_kill_bytes``.
        cancel: Readable when the caller no longer wants the result.

    Returns:
        Why it stopped reading. The process still runs unless it is ``done``.
    """
    poll = select.poll()
    for fd in (*captures, done, *(() if cancel is None else (cancel,))):
        poll.register(fd, select.POLLIN)
    while True:
        left = deadline - time.monotonic()
        ready = [fd for fd, _ in poll.poll(max(0.0, left) * 1000)]
        if cancel in ready:
            return "cancelled"
        if done in ready:
            return "done"
        if left <= 0:
            return "deadline"
        for fd in ready:
            chunk = os.read(fd, _CHUNK)
            captures[fd].add(chunk)
            if not chunk:
                poll.unregister(fd)
        if sum(capture.total for capture in captures.values()) > limits.output_kill_bytes:
            return "output_limit"


def drain(captures: dict[int, Capture]) -> None:
    """Take what dead processes left in their pipes, without waiting for anybody."""
    for fd, capture in captures.items():
        os.set_blocking(fd, False)
        end = capture.total + _PIPE_CAPACITY
        with suppress(BlockingIOError):
            while capture.total < end and (chunk := os.read(fd, _CHUNK)):
                capture.add(chunk)


async def in_thread(work: Callable[[int], T]) -> T:
    """Run blocking work on a thread of its own and pass a cancellation on to it.

    A thread of its own, not a pool's: commands last minutes and would starve everybody else there.

    Args:
        work: Gets a descriptor that becomes readable when the awaiting task is cancelled; must then
            clean up and return.

    Returns:
        What ``work`` returned. A cancelled task ends only after ``work`` has.
    """
    import asyncio  # 50 ms that a program without a loop need not pay

    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    cancel, notify = os.pipe()

    def target() -> None:
        try:
            deliver = partial(future.set_result, work(cancel))
        except BaseException as error:  # handed over to the awaiting task
            deliver = partial(future.set_exception, error)
        os.close(cancel)
        with suppress(RuntimeError):  # the loop was closed under us
            loop.call_soon_threadsafe(deliver)

    Thread(target=target, name="assay-command", daemon=True).start()
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        with suppress(BrokenPipeError):  # it has just ended by itself
            os.write(notify, b"x")
        while not future.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([future])
        future.exception()  # seen: it must not be reported as never retrieved
        raise
    finally:
        os.close(notify)
