"""The loop of assay's own on which batches are graded, and threads for code that awaits nothing.

A caller in any thread, process or event loop can simply wait, because grading runs in a thread of
its own. No signals are used. The child of a fork begins anew.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TypeVar, cast

from assay.errors import GraderError, InputError, reason_of

T = TypeVar("T")

MOST_LEFT = 64
"""Late calls that may still be running in a process; beyond that, no call is begun."""


class _Own:
    """What belongs to one process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.thread: threading.Thread | None = None
        self.left = 0

    def running(self) -> asyncio.AbstractEventLoop:
        with self.lock:
            if self.loop is None:
                self.loop = asyncio.new_event_loop()
                self.thread = threading.Thread(
                    target=_run, args=(self.loop,), name="assay-batches", daemon=True
                )
                self.thread.start()
            return self.loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """Run it for ever: what ends a loop is an error of the task that raised it, and of no other."""
    while True:
        with suppress(KeyboardInterrupt, SystemExit):
            loop.run_forever()


_own = _Own()
os.register_at_fork(after_in_child=_own.__init__)


def is_own_thread() -> bool:
    """Whether this is the thread of that loop, in which nobody may wait."""
    return threading.current_thread() is _own.thread


async def on_own_loop(work: Coroutine[object, object, T]) -> T:
    """Await something that runs on assay's own loop; cancelled if this is."""
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, _own.running()))


def wait_for(work: Coroutine[object, object, T]) -> T:
    """The same for callers that cannot await; an interruption such as Ctrl-C cancels the work.

    Raises `InputError` if called on that loop, which would wait for itself.
    """
    loop = _own.running()
    if is_own_thread():
        work.close()
        raise InputError(
            "grade_now was called on the event loop that grades the batch", hint="await grade(...)"
        )
    future = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


async def in_thread(call: Callable[[], T]) -> T:
    """Run a call in a thread of its own, which does not keep the process alive when it is to end.

    A thread cannot be killed. If nobody waits for the call any more, the thread is left behind;
    only `MOST_LEFT` of them may be.
    """
    if _own.left >= MOST_LEFT:
        raise GraderError(
            f"{_own.left} late calls of Python functions are still running",
            hint="run a function that may hang in the sandbox, where it can be killed",
        )
    loop, own, context = asyncio.get_running_loop(), _own, contextvars.copy_context()
    future: asyncio.Future[T] = loop.create_future()
    is_left = is_over = False

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(cast("T", result))
        else:
            future.set_exception(error)

    def run() -> None:
        nonlocal is_over
        result, failure = None, None
        try:
            result = context.run(call)
        except StopIteration as error:  # which no future can hold
            failure = RuntimeError(f"StopIteration: {error}")
        except (Exception, SystemExit) as error:
            failure = error
        except BaseException as error:  # a panic of Rust's, say: nobody would hear of it
            failure = GraderError(reason_of(error))
        with own.lock:
            is_over = True
            own.left -= is_left
        with suppress(RuntimeError):  # the loop has gone, and who waited with it
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=run, name="assay-grader", daemon=True).start()
    try:
        return await future
    except asyncio.CancelledError:
        with own.lock:
            is_left = not is_over
            own.left += is_left
        raise
