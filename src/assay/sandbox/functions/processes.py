"""The processes of workers, as the host sees them in /proc, and a look at each every so often.

Nothing here asks a worker. Its own thread waits for its answers, and does not look while those come
quickly; while a worker is idle, nobody waits at all.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Protocol

__all__ = [
    "WATCH",
    "Watch",
    "Watched",
    "are_left",
    "cpu_seconds",
    "descendants",
    "memory_of",
    "occupies_more",
]

_PERIOD_SECONDS = 0.2
_IDLE_EVERY = 5  # an idle one can do no harm that would not wait a second


class Watched(Protocol):
    """A worker that is looked at."""

    @property
    def is_idle(self) -> bool:
        """Whether it has nothing to do."""
        ...

    def look(self) -> None:
        """Kill it, if it is not as it should be. Called on a thread of its own; must not raise."""
        ...


class Watch:
    """Looks at workers from one thread, which lives as long as the process."""

    def __init__(self) -> None:
        self._reset()
        os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self._condition = threading.Condition()
        self._watched: set[Watched] = set()
        self._is_running = False

    def add(self, worker: Watched) -> None:
        """Look at a worker from now on."""
        with self._condition:
            self._watched.add(worker)
            if not self._is_running:
                threading.Thread(target=self._work, name="assay-watch", daemon=True).start()
                self._is_running = True
            self._condition.notify()

    def remove(self, worker: Watched) -> None:
        """Look at it no more."""
        with self._condition:
            self._watched.discard(worker)

    def _work(self) -> None:
        condition = self._condition
        turn = 0
        while True:
            with condition:
                while not self._watched:
                    condition.wait()
                workers = list(self._watched)
            for worker in workers:
                if turn % _IDLE_EVERY == 0 or not worker.is_idle:
                    worker.look()
            turn += 1
            time.sleep(_PERIOD_SECONDS)


WATCH = Watch()
"""The watch of this process."""


_PAGE_BYTES = os.sysconf("SC_PAGESIZE")


def cpu_seconds(pid: int) -> float:
    """CPU time of a process, by its own clock; 0 when it is gone."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


def memory_of(pid: int) -> int:
    """Resident bytes of a process and its descendants, as far as they can be seen.

    Pages that they share since a fork count for each of them.
    """
    return sum(map(_resident, [pid, *descendants(pid)]))


def occupies_more(pid: int, most: int) -> bool:
    """Whether a process and its descendants together occupy more than so many bytes.

    What they share counts once, where the kernel lets us look that closely.
    """
    pids = [pid, *descendants(pid)]
    return sum(map(_resident, pids)) > most and sum(map(_proportional, pids)) > most


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
            words = Path(f"/proc/{pid}/task/{thread}/children").read_bytes().split()
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
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * _PAGE_BYTES
    except (OSError, IndexError):
        return 0


def _proportional(pid: int) -> int:
    """Its resident bytes; of a page that so many processes have, only its share."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_bytes().splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        return _resident(pid)
    return 0
