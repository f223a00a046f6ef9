"""Await code of strangers within a limit, whatever it does to get out of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import nullcontext
from typing import TypeVar

from assay.errors import AssayError, is_fault, reason_of
from assay.turns import WorkTurn, taking

T = TypeVar("T")

GRACE_SECONDS = 5.0
"""How long work that was cancelled may take to end before it is left behind."""

_LOOK_SECONDS = 0.05  # how often one looks whether what waits in a queue still does


class OutOfTimeError(Exception):
    """Our limit was reached; told apart from a TimeoutError that the awaited code raised itself."""


async def within(work: Awaitable[T], limit: float | WorkTurn | None) -> T:
    """Await something in a task of its own.

    Work that swallows its cancellation is left behind after a grace; work that blocks the loop and
    then returns was still too late. What would end the process or pass for our own cancellation
    (`SystemExit`, a `CancelledError` that nobody asked for) is an ordinary error.

    ``limit``: Seconds by the clock; or a turn, which counts the time of the work and is stopped at
    its end. None for no limit.
    """
    turn = limit if isinstance(limit, WorkTurn) else WorkTurn(limit)
    turn.stop()  # until the loop comes to it; and it may come back late to who waits here
    with taking(turn) if turn is limit else nullcontext():
        task = asyncio.ensure_future(_measured(work, turn))
    try:
        while not task.done() and ((left := turn.left) is None or left > 0):
            if left is not None and turn.is_waiting:
                left = max(left, _LOOK_SECONDS)
            await asyncio.wait({task}, timeout=left)
    except asyncio.CancelledError:
        await _stop(task)
        raise
    if not task.done():
        await _stop(task)
        raise OutOfTimeError
    if (left := turn.left) is not None and left < 0:
        task.exception()  # seen: it does not matter any more
        raise OutOfTimeError
    return task.result()


async def _measured(work: Awaitable[T], turn: WorkTurn) -> T:
    turn.go_on()
    try:
        return await _contained(work)
    finally:
        turn.stop()


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
    except BaseException as error:
        if isinstance(error, Exception) or not is_fault(error):
            raise
        raise AssayError(reason_of(error)) from error


async def _stop(task: asyncio.Future[T]) -> None:
    """Cancel work and wait for it to end, but not for ever."""
    task.cancel()
    await asyncio.wait({task}, timeout=GRACE_SECONDS)
    if task.done() and not task.cancelled():
        task.exception()  # seen: it was being stopped
