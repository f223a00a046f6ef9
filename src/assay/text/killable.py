"""Processes for comparisons that may never end: kept warm, and killed when they are too slow.

Signals are not used, so any thread may compare.
"""

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
from collections import Counter, deque
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import cast

from assay.cores import cores
from assay.errors import GraderError, InputError, MissingExtraError
from assay.turns import LateError, queueing, seconds_left, whose

_START_SECONDS = 120.0
_PATIENCE = 4.0  # clock time over CPU time: a busy machine is not a fault of the answer's
_MOST_REMEMBERED = 256


class _WorkerDiedError(Exception):
    """The process ended before it answered; holds whether the author's part was at fault."""

    def __init__(self, *, reading_wanted: bool = False) -> None:
        super().__init__()
        self.reading_wanted = reading_wanted


class _TooSlowError(_WorkerDiedError):
    """The comparison took longer than it may; the process was killed."""


class _OutOfTurnError(_WorkerDiedError):
    """The turn was over before the comparison's own time was; the process was killed."""


class _RefusedError(Exception):
    """What is wanted makes no sense."""


class _Worker:
    """One process that compares, one comparison at a time."""

    def __init__(self, subject: str, library: str) -> None:
        script = str(Path(__file__).with_name("comparing.py"))
        try:
            # -P: neither the working directory nor this folder may shadow what the script imports.
            self._process = subprocess.Popen(
                [sys.executable, "-P", script, subject],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            raise GraderError(f"the process for {subject} did not start: {error}") from error
        self._buffer = b""
        try:
            ready = self._line(wall=_START_SECONDS)
        except _TooSlowError:
            self.close()
            raise GraderError(
                f"the process for {subject} was not ready after {_START_SECONDS:g} s"
            ) from None
        except BaseException:
            self.close()
            raise
        if ready is None:
            self.close()
            raise GraderError(
                f"the process for {subject} did not start (exit code {self._process.returncode})",
                hint=f"try: python -c 'import {library}'",
            )

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def compare(self, wanted: str, answer: str, seconds: float) -> bool | str:
        """Compare, or die trying."""
        request = json.dumps({"wanted": wanted, "answer": answer, "seconds": seconds}) + "\n"
        stdin = self._process.stdin
        assert stdin is not None
        reading_wanted = True
        try:
            stdin.write(request.encode("ascii"))
            stdin.flush()
            read = self._line(wall=seconds * _PATIENCE, cpu=seconds)
            if read is not None:
                if refused := read.get("refused"):
                    raise _RefusedError(str(refused))
                reading_wanted = False
                verdict = self._line(wall=seconds * _PATIENCE, cpu=seconds)
                if verdict is not None:
                    holds = verdict.get("holds")
                    return holds if isinstance(holds, str) else holds is True
        except _TooSlowError:
            raise _TooSlowError(reading_wanted=reading_wanted) from None
        except OSError:
            pass  # the pipe broke: it died
        raise _WorkerDiedError(reading_wanted=reading_wanted)

    def _line(self, *, wall: float, cpu: float | None = None) -> dict[str, object] | None:
        """Read one line; None where the process ended first."""
        stdout = self._process.stdout
        assert stdout is not None
        started, burnt = time.monotonic(), self._cpu_seconds()
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                if (turn := seconds_left()) is not None and turn <= 0:
                    raise _OutOfTurnError
                left = wall - (time.monotonic() - started)
                if cpu is not None:
                    left = min(left, cpu - (self._cpu_seconds() - burnt))
                if left <= 0:
                    raise _TooSlowError
                if selector.select(left if turn is None else min(left, turn)):
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


class _Places:
    """Places for comparisons, two a core, of which a project has at most as many as are free.

    So a project alone keeps every core busy, and its slow comparisons wait for one another: there
    is a place for a project that has none. Two a core are within a comparison's patience.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free = 2 * cores()
        self._taken: Counter[str] = Counter()
        self._waiting: dict[str, deque[threading.Event]] = {}

    @contextmanager
    def one(self, project: str) -> Generator[None]:
        """Wait for a place, and have it."""
        called = threading.Event()
        with self._lock:
            self._waiting.setdefault(project, deque()).append(called)
            self._call()
        try:
            with queueing():
                called.wait()
            yield
        finally:
            with self._lock:
                if called.is_set():
                    self._free += 1
                    self._taken[project] -= 1
                    if not self._taken[project]:
                        del self._taken[project]
                else:  # interrupted while it waited
                    self._waiting[project].remove(called)  # an empty line calls nobody
                self._call()

    def _call(self) -> None:
        """Call those who may come: of the project that has fewest, whoever waits longest."""
        while self._free:
            coming = [
                project
                for project, line in self._waiting.items()
                if line and self._taken[project] < self._free
            ]
            if not coming:
                break
            project = min(coming, key=self._taken.__getitem__)
            line = self._waiting.pop(project)
            line.popleft().set()
            if line:
                self._waiting[project] = line  # behind those with as few
            self._free -= 1
            self._taken[project] += 1


class Pool:
    """Warm processes, two a core at most, started when first needed and ended at exit.

    Projects (`assay.turns.working_for`) share them.

    ``subject``: What is compared, as `comparing.py` beside this file knows it. After ``{"ready":
    true}`` that answers each ``{"wanted": str, "answer": str, "seconds": number}`` with
    ``{"refused": str}``, which is why what is wanted makes no sense, or empty once it is read, so
    that a hang can be put down to the right side; and then with ``{"holds": bool}``, or with the
    text that it read of an answer that does.
    """

    def __init__(
        self, subject: str, library: str, *, wanted: str, hint: str = "", extra: str = ""
    ) -> None:
        self._subject, self._library = subject, library
        self._wanted, self._hint = wanted, hint
        self._extra = extra
        self._reset()
        os.register_at_fork(after_in_child=self._forked)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._shared: _Places | None = None
        self._idle: list[_Worker] = []
        self._alive: set[_Worker] = set()
        self._registered = False
        self._blamed: dict[tuple[str, float], None] = {}

    def compare(self, wanted: str, answer: str, seconds: float) -> bool | str:
        """Compare in some process; an answer that kills two processes does not hold.

        Returns whether it holds; where it does, mathematics returns what of the answer it read.
        """
        if (wanted, seconds) in self._blamed:  # once is enough
            raise self._unreadable(wanted)
        for last_try in (False, True):
            try:
                return self._try(wanted, answer, seconds)
            except _OutOfTurnError:
                raise LateError("the comparison took longer than it has") from None
            except _WorkerDiedError as died:
                if died.reading_wanted and (last_try or isinstance(died, _TooSlowError)):
                    self._blame(wanted, seconds)
                    raise self._unreadable(wanted) from None
                if isinstance(died, _TooSlowError):
                    return False
        return False

    def _blame(self, wanted: str, seconds: float) -> None:
        with self._lock:
            while len(self._blamed) >= _MOST_REMEMBERED:
                self._blamed.pop(next(iter(self._blamed)))
            self._blamed[wanted, seconds] = None

    def _unreadable(self, wanted: str) -> InputError:
        return InputError(f"{self._wanted} cannot be read in time: {wanted[:80]!r}")

    def _try(self, wanted: str, answer: str, seconds: float) -> bool | str:
        with self._places().one(whose()):
            with queueing():  # starting one is nobody's
                worker = self._take()
            try:
                holds = worker.compare(wanted, answer, seconds)
            except _RefusedError as error:
                self._put_back(worker)
                refused = f"{self._wanted} is invalid: {error}"
                raise InputError(refused, hint=self._hint) from None
            except BaseException:
                with self._lock:
                    self._alive.discard(worker)
                worker.close()
                raise
            self._put_back(worker)
            return holds

    def _places(self) -> _Places:
        """Made when first needed: a fork learns its share of the cores after it has begun."""
        with self._lock:
            if self._shared is None:
                self._shared = _Places()
            return self._shared

    def _put_back(self, worker: _Worker) -> None:
        with self._lock:
            self._idle.append(worker)

    def _take(self) -> _Worker:
        with self._lock:
            if self._idle:
                return self._idle.pop()
            if not self._registered:
                atexit.register(self.close)
                self._registered = True
        if self._extra and find_spec(self._library) is None:
            raise MissingExtraError("math_equal", extra=self._extra)
        worker = _Worker(self._subject, self._library)
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


MATHEMATICS = Pool("mathematics", "math_verify", wanted="the expected answer", extra="math")
SCHEMAS = Pool(
    "schemas",
    "jsonschema_rs",
    wanted="the JSON Schema",
    hint="patterns may not look around; $ref may not leave the schema",
)
