"""Processes as /proc shows them: those that one started, the memory and the time that they take.

Read by the supervisor, too, which must start fast: only cheap modules are imported.
"""

from __future__ import annotations

import os
import time

from assay.sandbox.kernel import read_bytes

_PAGE_BYTES = os.sysconf("SC_PAGESIZE")


def cpu_seconds(pid: int) -> float:
    """CPU time of a process, by its own clock; 0 when it is gone."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


def occupied(pids: list[int], limit: float = float("inf")) -> int:
    """Resident bytes of processes, as far as they can be seen.

    Pages that they share since a fork count for each of them; but above the limit, where the kernel
    lets us look that closely, once. That is exact, and means walking page tables.
    """
    resident = sum(map(_resident, pids))
    return resident if resident <= limit else sum(map(_proportional, pids))


def are_left(worker: int) -> bool:
    """Whether an idle worker has more than it should.

    That is itself, the template, and the one process that waits for the next call; with one thread
    each.
    """
    alone = [worker]
    for _ in range(3):
        if len(alone) > 1 or any(len(_threads(pid)) > 1 for pid in alone):
            return True
        alone = [child for pid in alone for child in _children(pid)]
    return bool(alone)


def descendants(pid: int) -> list[int]:
    """The children of a process, and theirs."""
    pids = _children(pid)
    for process in pids:
        pids += _children(process)
    return pids


def _children(pid: int) -> list[int]:
    """Also those made by a bare `clone`, which a parent's `wait` overlooks."""
    found: list[int] = []
    for thread in _threads(pid):
        try:
            words = read_bytes(f"/proc/{pid}/task/{thread}/children").split()
        except OSError:
            continue  # it has just died
        found += map(int, words)
    return found


def _threads(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - names are all that is wanted
    except OSError:
        return []


def _resident(pid: int) -> int:
    try:
        return int(read_bytes(f"/proc/{pid}/statm").split()[1]) * _PAGE_BYTES
    except (OSError, IndexError):
        return 0


def _proportional(pid: int) -> int:
    """Its resident bytes; of a page that so many processes have, only its share."""
    try:
        words = read_bytes(f"/proc/{pid}/smaps_rollup").split()
        return int(words[words.index(b"Pss:") + 1]) * 1024
    except (OSError, ValueError, IndexError):
        return _resident(pid)
