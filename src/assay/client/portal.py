"""The thread in which a client that blocks carries out its calls."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, TypeVar

from assay.errors import InputError

T = TypeVar("T")


class Portal:
    """Runs coroutines for callers of any thread; started when first used.

    Also works in a notebook, where a loop already runs in the caller's thread. Whoever holds it, or
    a call of a part that uses it, keeps it open; nobody does, and it closes itself.

    Args:
        last: What is done on the loop before it ends, if anything was run there at all.
    """

    def __init__(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._worker = _Worker(last)
        self._finish = weakref.finalize(self, self._worker.close)  # also at exit

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end and return what it returns.

        Ctrl-C cancels it and waits until it has put things in order.

        Raises:
            InputError: Once it is closed, or in a fork of the process that used it.
        """
        try:
            loop = self._worker.running()
        except BaseException:
            work.close()
            raise
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def each(self, steps: AsyncIterator[T]) -> Iterator[T]:
        """What an asynchronous iterator gives, one by one."""

        async def following() -> T | None:
            return await anext(steps, None)

        while (step := self.run(following())) is not None:
            yield step

    def close(self) -> None:
        """Stop the loop and its thread."""
        self._finish()


class _Worker:
    """The loop and its thread. It knows nothing of its portal, which can so be collected."""

    def __init__(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._last = last
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = 0
        self._is_closed = False

    def running(self) -> asyncio.AbstractEventLoop:
        """The loop, which runs.

        Raises:
            InputError: Once it is closed, or in a fork of the process that used it.
        """
        with self._lock:
            if self._is_closed:
                raise InputError("the client is closed", hint="make a new one")
            if self._loop is not None:
                if self._process != os.getpid():
                    raise InputError(
                        "the client was used by the parent process", hint="make a new one"
                    )
                return self._loop
            self._process = os.getpid()
            self._loop = loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=_serve, args=(loop,), name="assay-client")
            self._thread.daemon = True
            self._thread.start()
            return loop

    def close(self) -> None:
        """Do what is last, then end the loop and its thread."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
            self._is_closed = True
        if loop is None or thread is None or self._process != os.getpid():
            return
        if thread is threading.current_thread():
            # The collector may find a client anywhere, also in the middle of the loop's own work,
            # where nobody can wait for the loop.
            loop.create_task(self._end(loop)).add_done_callback(lambda _: loop.stop())
            return
        try:
            asyncio.run_coroutine_threadsafe(self._end(loop), loop).result()
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()

    async def _end(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            await self._last()
        finally:
            await loop.shutdown_asyncgens()  # connections to models end with the generators


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
        # What a session left to end by itself is ended: it would be told of at exit.
        if left := asyncio.all_tasks(loop):
            for task in left:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    finally:
        loop.close()
