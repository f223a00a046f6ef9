"""The one driver: batches of work through something that does it, a few at once, kept as they end.

Rows of a dataset, cells of a matrix, items of a job, judgements of a calibration and answers of a
trainer all go this way. What is kept, and how an interrupted piece of work is gone on with, is the
caller's: nothing is held here but what is under way. `within` awaits code of strangers within a
limit, whatever it does to get out of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import islice
from typing import TypeVar, cast

from assay.errors import AssayError, is_fault, reason_of
from assay.turns import WorkTurn, taking

B = TypeVar("B")
R = TypeVar("R")

GRACE_SECONDS = 5.0
"""How long work that was cancelled may take to end before it is left behind."""

_LOOK_SECONDS = 0.05  # how often one looks whether what waits in a queue still does
_NONE = object()


async def run_batches(
    batches: Iterable[B],
    work: Callable[[B], Awaitable[R]],
    keep: Callable[[B, R], Awaitable[None] | None],
    *,
    at_once: int,
) -> None:
    """Work on batches, at most ``at_once`` of them under way, in constant memory.

    ``batches``: What to do. One is taken only when there is room for it, so an iterator that ends
    early lets what is under way end, and begins nothing more.
    Raises `Exception`: The first that ``work`` raised, once what was under way has ended and is
    kept: it may have been paid for. Or what ``keep`` raised; then all else is cancelled.
    """
    waiting = iter(batches)
    failed: list[Exception] = []

    async def one_after_another() -> None:
        while not failed and (batch := next(waiting, _NONE)) is not _NONE:
            try:
                done = await work(cast("B", batch))
            except Exception as error:  # raised again below, when nothing is left to run alone
                failed.append(error)
                return
            kept = keep(cast("B", batch), done)
            if kept is not None:
                await kept

    tasks = [asyncio.create_task(one_after_another()) for _ in range(at_once)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    if failed:
        raise failed[0]


def in_batches(items: Iterable[B], size: int) -> Iterator[list[B]]:
    """Items in lists of a size, the last one perhaps shorter; read only as far as is asked for."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


async def each(
    items: Iterable[B], work: Callable[[B], Awaitable[R]], *, at_once: int
) -> Sequence[R]:
    """What came of every item, in their order; at most so many are worked on at a time."""
    turn = asyncio.Semaphore(at_once)

    async def one(item: B) -> R:
        async with turn:
            return await work(item)

    return await asyncio.gather(*map(one, items))


class OutOfTimeError(Exception):
    """Our limit was reached; told apart from a TimeoutError that the awaited code raised itself."""


async def within(work: Awaitable[R], limit: float | WorkTurn | None) -> R:
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


async def _measured(work: Awaitable[R], turn: WorkTurn) -> R:
    turn.go_on()
    try:
        return await _contained(work)
    finally:
        turn.stop()


async def _contained(work: Awaitable[R]) -> R:
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


async def _stop(task: asyncio.Future[R]) -> None:
    """Cancel work and wait for it to end, but not for ever."""
    task.cancel()
    await asyncio.wait({task}, timeout=GRACE_SECONDS)
    if task.done() and not task.cancelled():
        task.exception()  # seen: it was being stopped
