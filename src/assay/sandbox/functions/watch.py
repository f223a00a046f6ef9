"""A look at each worker every so often.

Nothing here asks a worker. Its own thread waits for its answers, and does not look while those come
quickly; while a worker is idle, nobody waits at all.
"""

from __future__ import annotations

import os
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from assay.sandbox.functions.session import WorkerSession

_PERIOD_SECONDS = 0.2
_IDLE_EVERY = 5  # an idle one can do no harm that would not wait a second


class WorkerWatch:
    """Looks at workers from one thread, which lives as long as the process."""

    def __init__(self) -> None:
        self._reset()
        os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self._condition = threading.Condition()
        self._watched: set[WorkerSession] = set()
        self._is_running = False

    def add(self, worker: WorkerSession) -> None:
        """Look at a worker from now on."""
        with self._condition:
            self._watched.add(worker)
            if not self._is_running:
                threading.Thread(target=self._work, name="assay-watch", daemon=True).start()
                self._is_running = True
            self._condition.notify()

    def remove(self, worker: WorkerSession) -> None:
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


WATCH = WorkerWatch()
"""The watch of this process."""
