"""Await code of strangers within a limit, whatever it does to get out of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from assay.errors import AssayError

__all__ = ["GRACE_SECONDS", "OutOfTimeError", "within"]

T = TypeVar("T")

GRACE_SECONDS = 5.0
"""How long work that was cancelled may take to end before it is left behind."""


class OutOfTimeError(Exception):
    """Our limit was reached; told apart from a TimeoutError that the awaited code raised itself."""


async def within(work: Awaitable[T], limit: float | None) -> T:
    """Await something in a task of its own.

    Work that swallows its cancellation is left behind after a grace; work that blocks the loop and
    then returns was still too late. What would end the process or pass for our own cancellation
    (`SystemExit`, a `CancelledError` that nobody asked for) is an ordinary error.

    Raises:
        OutOfTimeError: If it took longer.
        AssayError: If it tried to end the process, or cancelled itself.
    """
    loop = asyncio.get_running_loop()
    begun = loop.time()
    task = asyncio.ensure_future(_contained(work))
    try:
        await asyncio.wait({task}, timeout=limit)
    except asyncio.CancelledError:
        await _stop(task)
        raise
    if not task.done():
        await _stop(task)
        raise OutOfTimeError
    if limit is not None and loop.time() - begun > limit:
        task.exception()  # seen: it does not matter any more
        raise OutOfTimeError
    return task.result()


async def _contained(work: Awaitable[T]) -> T:
    try:
        return await work
    except SystemExit as error:
        raise AssayError(f"tried to end the process: SystemExit({error.code!r})") from error
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise AssayError("cancelled itself") from error


async def _stop(task: asyncio.Future[T]) -> None:
    """Cancel work and wait for it to end, but not for ever."""
    task.cancel()
    await asyncio.wait({task}, timeout=GRACE_SECONDS)
    if task.done() and not task.cancelled():
        task.exception()  # seen: it was being stopped
