"""The one driver: batches of work through something that does it, a few at once, kept as they end.

Rows of a dataset, cells of a matrix, items of a job, judgements of a calibration and answers of a
trainer all go this way. What is kept, and how an interrupted piece of work is gone on with, is the
caller's: nothing is held here but what is under way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar, cast

B = TypeVar("B")
R = TypeVar("R")

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
