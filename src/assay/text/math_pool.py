"""The processes that compare mathematics: started when needed, kept warm, killed when too slow."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import selectors
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from typing import cast

from assay.errors import GraderError, InputError, MissingExtraError

__all__ = ["POOL", "Pool"]

_START_SECONDS = 120.0
_PATIENCE = 4.0  # clock time over CPU time: a busy machine is not a fault of the answer's


class _WorkerDiedError(Exception):
    """The process ended before it answered; holds whether the expected answer was at fault."""

    def __init__(self, *, reading_gold: bool = False) -> None:
        super().__init__()
        self.reading_gold = reading_gold


class _TooSlowError(_WorkerDiedError):
    """The comparison took longer than it may; the process was killed."""


class _Worker:
    """One process that compares, one comparison at a time."""

    def __init__(self) -> None:
        script = str(Path(__file__).with_name("math_worker.py"))
        try:
            # -P: neither the working directory nor this folder may shadow what the script imports.
            self._process = subprocess.Popen(
                [sys.executable, "-P", script],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            raise GraderError(f"the process for mathematics did not start: {error}") from error
        self._buffer = b""
        try:
            ready = self._line(wall=_START_SECONDS)
        except _TooSlowError:
            self.close()
            raise GraderError(
                f"the process for mathematics was not ready after {_START_SECONDS:g} s"
            ) from None
        except BaseException:
            self.close()
            raise
        if ready is None:
            self.close()
            raise GraderError(
                f"the process for mathematics did not start (exit code {self._process.returncode})",
                hint="try: python -c 'import math_verify'",
            )

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def compare(self, gold: str, answer: str, seconds: float) -> bool:
        """Compare, or die trying."""
        request = json.dumps({"gold": gold, "answer": answer, "seconds": seconds}) + "\n"
        stdin = self._process.stdin
        assert stdin is not None
        reading_gold = True
        try:
            stdin.write(request.encode("ascii"))
            stdin.flush()
            gold_line = self._line(wall=seconds * _PATIENCE, cpu=seconds)
            if gold_line is not None:
                reading_gold = False
                verdict = self._line(wall=seconds * _PATIENCE, cpu=seconds)
                if verdict is not None:
                    return verdict.get("equal") is True
        except _TooSlowError:
            raise _TooSlowError(reading_gold=reading_gold) from None
        except OSError:
            pass  # the pipe broke: it died
        raise _WorkerDiedError(reading_gold=reading_gold)

    def _line(self, *, wall: float, cpu: float | None = None) -> dict[str, object] | None:
        """Read one line; None where the process ended first."""
        stdout = self._process.stdout
        assert stdout is not None
        started, burnt = time.monotonic(), self._cpu_seconds()
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                left = wall - (time.monotonic() - started)
                if cpu is not None:
                    left = min(left, cpu - (self._cpu_seconds() - burnt))
                if left <= 0:
                    raise _TooSlowError
                if selector.select(left):
                    read = os.read(stdout.fileno(), 65_536)
                    if not read:
                        return None
                    self._buffer += read
        line, _, self._buffer = self._buffer.partition(b"\n")
        return cast("dict[str, object]", json.loads(line))

    def _cpu_seconds(self) -> float:
        """Return the CPU time the process has used; the clock's time where that is not known."""
        if sys.platform != "linux":
            return time.monotonic()
        try:
            # The kernel's own formula for the CPU clock of another process.
            return time.clock_gettime((~self._process.pid << 3) | 2)
        except OSError:
            return time.monotonic()

    def close(self) -> None:
        """Kill the process and let go of its pipes."""
        self._process.kill()
        self._process.wait()
        self._close_pipes()

    def disown(self) -> None:
        """Let go of a process that belongs to the parent we were forked from."""
        self._process.returncode = 0
        self._close_pipes()

    def _close_pipes(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


class Pool:
    """Warm processes, at most one a core, started when first needed and ended at exit."""

    def __init__(self) -> None:
        self._reset()
        os.register_at_fork(after_in_child=self._forked)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(os.cpu_count() or 1)
        self._idle: list[_Worker] = []
        self._alive: set[_Worker] = set()
        self._registered = False

    def compare(self, gold: str, answer: str, seconds: float) -> bool:
        """Compare in some process; an answer that kills two processes equals nothing."""
        for last_try in (False, True):
            try:
                return self._try(gold, answer, seconds)
            except _TooSlowError as slow:
                self._blame(slow, gold)
                return False
            except _WorkerDiedError as died:
                if last_try:
                    self._blame(died, gold)
        return False

    @staticmethod
    def _blame(died: _WorkerDiedError, gold: str) -> None:
        if died.reading_gold:
            raise InputError(f"the expected answer cannot be read in time: {gold[:80]!r}")

    def _try(self, gold: str, answer: str, seconds: float) -> bool:
        with self._slots:
            worker = self._take()
            try:
                equal = worker.compare(gold, answer, seconds)
            except BaseException:
                with self._lock:
                    self._alive.discard(worker)
                worker.close()
                raise
            with self._lock:
                self._idle.append(worker)
            return equal

    def _take(self) -> _Worker:
        with self._lock:
            if self._idle:
                return self._idle.pop()
            if not self._registered:
                atexit.register(self.close)
                self._registered = True
        if find_spec("math_verify") is None:
            raise MissingExtraError("math_equal", extra="math")
        worker = _Worker()
        with self._lock:
            self._alive.add(worker)
        return worker

    def pids(self) -> list[int]:
        """Return the ids of the processes alive."""
        with self._lock:
            return [worker.pid for worker in self._alive]

    def close(self) -> None:
        """End every process."""
        with self._lock:
            workers, self._alive, self._idle = self._alive, set(), []
        for worker in workers:
            worker.close()

    def _forked(self) -> None:
        for worker in self._alive:
            worker.disown()
        self._reset()


POOL = Pool()
"""The processes of this process."""
