"""An event loop on a thread of its own, so that plain code can call what is asynchronous."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from assay.errors import InputError

__all__ = ["Portal"]

P = ParamSpec("P")
T = TypeVar("T")


class Portal:
    """Runs coroutines for callers of any thread; started when first used.

    Also works in a notebook, where a loop already runs in the caller's thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = 0
        self._is_closed = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end and return what it returns.

        Ctrl-C cancels it and waits until it has put things in order.

        Raises:
            InputError: Once it is closed, or in a fork of the process that used it.
        """
        try:
            loop = self._running()
        except BaseException:
            work.close()
            raise
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def plain(self, function: Callable[P, Awaitable[T]]) -> Callable[P, T]:
        """The blocking twin of an asynchronous function, with the same parameters."""

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            work = function(*args, **kwargs)
            return self.run(cast("Coroutine[Any, Any, T]", work))

        return call

    def close(self, last: Coroutine[Any, Any, None]) -> None:
        """Stop the loop and its thread.

        Args:
            last: What is done before, if anything was run at all.
        """
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
            self._is_closed = True
        if loop is None or thread is None or self._process != os.getpid():
            last.close()
            return
        try:
            asyncio.run_coroutine_threadsafe(last, loop).result()
        finally:
            # Connections to models end with the generators of their loop.
            asyncio.run_coroutine_threadsafe(loop.shutdown_asyncgens(), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def _running(self) -> asyncio.AbstractEventLoop:
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
            self._thread = threading.Thread(
                target=loop.run_forever, name="assay-client", daemon=True
            )
            self._thread.start()
            return loop
