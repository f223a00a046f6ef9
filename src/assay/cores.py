"""How many processors this process may keep busy."""

from __future__ import annotations

import os

_kept: list[int] = []


def cores() -> int:
    """Processors for the pools of this process: all that it may run on, or its share of them."""
    return _kept[-1] if _kept else len(os.sched_getaffinity(0))


def keep_to(count: int) -> None:
    """Have pools that are made from now on keep so many busy: others do the same work beside us."""
    _kept[:] = [count]
