"""How many processors this process may keep busy."""

from __future__ import annotations

import os

_kept: list[int] = []


def cores() -> int:
    """Processors for the pools of this process: all that it may run on, or its share of them."""
    return _kept[-1] if _kept else len(allowed())


def allowed() -> list[int]:
    """The processors that this process may run on: all of the machine where none are chosen."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return [*range(os.cpu_count() or 1)]  # macOS keeps no process to some of them


def keep_to(count: int) -> None:
    """Have pools that are made from now on keep so many busy: others do the same work beside us."""
    _kept[:] = [count]
