"""Processes for comparisons that may never end: kept warm, and killed when they are too slow.

Signals are not used, so any thread may compare.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Generator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import cast

from assay.cores import cores
from assay.errors import GraderError, InputError, MissingExtraError
from assay.turns import LateError, queueing, seconds_left, whose
from assay.warm_process import WarmProcess

_START_SECONDS = 120.0  # also for each order: one that is stopped must not hold all comparisons
_TRIES = 2
_PATIENCE = 12.0  # clock time over CPU time: a busy machine is not a fault of the answer's
_MOST_REMEMBERED = 256


class _WorkerDiedError(Exception):
    """The process ended before it answered; holds whether the author's part was at fault."""

    def __init__(self, *, reading_wanted: bool = False) -> None:
        super().__init__()
        self.reading_wanted = reading_wanted


class _TooSlowError(_WorkerDiedError):
    """The comparison took longer than it may; the process was killed."""


class _OutOfTurnError(_WorkerDiedError):
    """The turn was over, or no processor to be had, before the comparison's own time was over."""


class _RefusedError(Exception):
    """What is wanted makes no sense."""


class _Worker:
    """One process that compares, one comparison at a time."""

    def __init__(self, link: socket.socket) -> None:
        self._link, self.pid = link, 0
        self._buffer = b""

    def compare(self, wanted: str, answer: str, seconds: float) -> bool | str:
        """Compare, or die trying."""
        request = json.dumps({"wanted": wanted, "answer": answer, "seconds": seconds}) + "\n"
        reading_wanted = True
        try:
            self._link.settimeout(None)
            self._link.sendall(request.encode("ascii"))
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
            pass  # the socket broke: it died
        raise _WorkerDiedError(reading_wanted=reading_wanted)

    def _line(self, *, wall: float, cpu: float) -> dict[str, object] | None:
        """Read one line; None where the process ended first."""
        started, burnt = time.monotonic(), self._cpu_seconds()
        while b"\n" not in self._buffer:
            if (turn := seconds_left()) is not None and turn <= 0:
                raise _OutOfTurnError
            used = self._cpu_seconds() - burnt
            left = min(wall - time.monotonic() + started, cpu - used)
            if left <= 0:
                raise _TooSlowError if used >= cpu else _OutOfTurnError
            self._link.settimeout(left if turn is None else min(left, turn))
            with suppress(TimeoutError):
                read = self._link.recv(65_536)
                if not read:
                    return None
                self._buffer += read
        line, _, self._buffer = self._buffer.partition(b"\n")
        return cast("dict[str, object]", json.loads(line))

    def _cpu_seconds(self) -> float:
        """Return the CPU time the process has used; the clock's time where that is not known."""
        with suppress(OSError):
            if sys.platform == "linux":
                # The kernel's own formula for the CPU clock of another process.
                return time.clock_gettime((~self.pid << 3) | 2)
        return time.monotonic()

    def let_go(self) -> None:
        """Speak to it no more; it ends by itself unless it is at work."""
        with suppress(OSError):  # daemons close all that they have
            self._link.close()


class _Template(WarmProcess):
    """The process that has imported what compares, and forks those that do.

    It reaps none before it is told to kill it, so that their ids stay theirs, and kills them all
    when nobody is left to tell it anything.
    """

    _end_seconds = 5.0

    def __init__(self, subject: str, library: str) -> None:
        self._subject, self._library = subject, library
        super().__init__()

    def _reset(self) -> None:
        super()._reset()
        self.workers: set[_Worker] = set()

    def _words(self, descriptor: int) -> list[str]:
        # -P: neither the working directory nor this folder may shadow what the script imports.
        script = str(Path(__file__).with_name("comparing.py"))
        return [sys.executable, "-P", script, self._subject, str(descriptor)]

    def fork(self) -> _Worker:
        """A new process that compares."""
        what = f"the process for {self._subject}"
        try:
            with self._lock:
                for _ in range(_TRIES):
                    worker = self._forked(self._connect())
                    if worker.pid:
                        self.workers.add(worker)
                        return worker
        except (TimeoutError, BlockingIOError):
            raise GraderError(f"{what} was not ready after {_START_SECONDS:g} s") from None
        except OSError as error:
            raise GraderError(f"{what} did not start: {error}") from error
        raise GraderError(f"{what} did not fork")

    def _forked(self, control: socket.socket) -> _Worker:
        ours, theirs = socket.socketpair()
        worker = _Worker(ours)
        try:
            with theirs:
                worker.pid = self._answer_to(control, bytes(4), [theirs.fileno()])
        finally:
            if not worker.pid:
                worker.let_go()
        return worker

    def kill(self, worker: _Worker) -> None:
        """Kill it and let go of it."""
        with self._lock:
            if worker in self.workers and self._control is not None:
                self.workers.remove(worker)
                self._answer_to(self._control, worker.pid.to_bytes(4, "little"), [])
        worker.let_go()

    def pids(self) -> list[int]:
        """Its id, where it is alive, and then those of whom it forked."""
        with self._lock:
            return [one.pid for one in (self._process, *self.workers) if one is not None]

    def _connect(self) -> socket.socket:
        before, is_ready = self._control, False
        try:
            control, process = super()._connect(), self._process
            control.settimeout(_START_SECONDS)
            is_ready = control is before or control.recv(4) != b""
        finally:
            if not is_ready:  # no order may take that for its answer
                self._end()
        if not is_ready and process is not None:
            raise GraderError(
                f"the process for {self._subject} did not start (exit code {process.returncode})",
                hint=f"try: python -c 'import {self._library}'",
            )
        return control

    def _end(self) -> None:
        self.workers.clear()
        super()._end()

    def _forget(self) -> None:
        for worker in self.workers:
            worker.let_go()
        super()._forget()


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
    """Processes, two a core at most, forked when first needed of a warm one, and ended at exit.

    Projects (`assay.turns.working_for`) share them.

    ``subject``: What is compared, as `comparing.py` beside this file knows it. That answers each
    ``{"wanted": str, "answer": str, "seconds": number}`` with ``{"refused": str}``, which is why
    what is wanted makes no sense, or empty once it is read, so that a hang can be put down to the
    right side; and then with ``{"holds": bool}``, or with the text that it read of an answer that
    does.
    """

    def __init__(
        self, subject: str, library: str, *, wanted: str, hint: str = "", extra: str = ""
    ) -> None:
        self._library = library
        self._wanted, self._hint = wanted, hint
        self._extra = extra
        self._template = _Template(subject, library)
        self._reset()
        os.register_at_fork(after_in_child=self._reset)
        atexit.register(self.close)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._shared: _Places | None = None
        self._idle: list[_Worker] = []
        self._blamed: dict[tuple[str, float], None] = {}

    def compare(self, wanted: str, answer: str, seconds: float) -> bool | str:
        """Compare in some process; an answer that kills two, one of them new, does not hold.

        Returns whether it holds; where it does, mathematics returns what of the answer it read.
        """
        if (wanted, seconds) in self._blamed:  # once is enough
            raise self._unreadable(wanted)
        for last_try in (False, True):
            try:
                return self._try(wanted, answer, seconds, fresh=last_try)
            except _OutOfTurnError:
                turn = seconds_left()
                if last_try or (turn is not None and turn <= 0):
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

    def _try(self, wanted: str, answer: str, seconds: float, *, fresh: bool) -> bool | str:
        with self._places().one(whose()):
            with queueing():  # starting one is nobody's
                worker = self._take(fresh=fresh)
            try:
                holds = worker.compare(wanted, answer, seconds)
            except _RefusedError as error:
                self._put_back(worker)
                refused = f"{self._wanted} is invalid: {error}"
                raise InputError(refused, hint=self._hint) from None
            except BaseException:
                with queueing():
                    self._template.kill(worker)
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

    def _take(self, *, fresh: bool) -> _Worker:
        with self._lock:
            while self._idle and not fresh:
                worker = self._idle.pop()
                if worker in self._template.workers:
                    return worker
                worker.let_go()  # it died with its template
        if self._extra and find_spec(self._library) is None:
            raise MissingExtraError("math_equal", extra=self._extra)
        return self._template.fork()

    def pids(self) -> list[int]:
        """Return the ids of the processes alive: the one that forks, then those that compare."""
        return self._template.pids()

    def close(self) -> None:
        """End every process."""
        self._template.close()
        with self._lock:
            while self._idle:
                self._idle.pop().let_go()


MATHEMATICS = Pool("mathematics", "math_verify", wanted="the expected answer", extra="math")
SCHEMAS = Pool(
    "schemas",
    "jsonschema_rs",
    wanted="schema",
    hint="patterns may not look around; $ref may not leave the schema",
)
