"""Find the item over which workers die, among those that they were given together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from assay.eval.cluster.actors import EndsWorkersError

T = TypeVar("T")
R = TypeVar("R")

_PIECES = 8


async def by_pieces(
    items: Sequence[T],
    ask: Callable[[Sequence[T]], Awaitable[R]],
    lost: Callable[[T, EndsWorkersError], R],
) -> list[R]:
    """Ask for items together and, if workers die over them, in smaller and smaller pieces.

    Args:
        items: At least one.
        ask: Has workers do some of them.
        lost: The outcome of one over which they die.

    Returns:
        What came of the pieces, in their order.
    """
    try:
        return [await ask(items)]
    except EndsWorkersError as error:
        if len(items) == 1:
            return [lost(items[0], error)]
    size = -(-len(items) // _PIECES)
    pieces = [items[start : start + size] for start in range(0, len(items), size)]
    found = await asyncio.gather(*(by_pieces(piece, ask, lost) for piece in pieces))
    return [one for some in found for one in some]
