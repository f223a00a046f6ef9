"""One worker, from outside: load a program into it, have it make calls, kill it."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from assay.errors import ProgramError, SandboxError, SandboxUnavailableError
from assay.sandbox.bubblewrap import refusal
from assay.sandbox.functions.filters import worker_filters
from assay.sandbox.functions.launch import Launched, launch
from assay.sandbox.functions.program import (
    FunctionLimits,
    Isolation,
    Outcome,
    Program,
    Results,
    WorkerError,
    batch_frame,
    fields_frame,
    load_frame,
    read_load,
)
from assay.sandbox.functions.watch import WATCH
from assay.sandbox.processes import are_left, cpu_seconds, descendants, occupied

_CHUNK = 1 << 18
# After the wall limit of a call a worker has this long to say so.
_GRACE_SECONDS = 5.0
_TICK_MS = 100
# What the processes of a worker occupy by themselves.
_ROOM_BYTES = 64 * 1024 * 1024
# How long what a program has started while it was loaded may take to end.
_SETTLING_SECONDS = 0.5
_SETTLING_STEP_SECONDS = 0.02
_STRIKES = 2  # looks at an idle worker that find it in company


class LoadFailedError(ProgramError):
    """A program cannot be loaded, by its own fault: it raises, exits, hangs, lacks its entry."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line

    def __str__(self) -> str:
        told = super().__str__()
        return told if self.line is None else f"line {self.line} of the function: {told}"


class IdleWorkerError(WorkerError):
    """A worker was gone, or not to be trusted, before it got any call: no call is to blame."""


class WorkerSession:
    """A running worker. Not for two threads at once."""

    def __init__(self, launched: Launched) -> None:
        self.launched = launched
        self.calls = 0
        self.retire = False
        self.is_idle = False
        self._limits = FunctionLimits()
        self._runs = self._strikes = 0
        self._excess = ""  # for what the watch has killed it
        self._socket = launched.control
        self._socket.setblocking(False)

    def load(self, program: Program, isolation: Isolation, limits: FunctionLimits) -> None:
        """Load a program; the worker serves no other after it, and is dead if this raises."""
        self._limits = limits
        try:
            self._load(load_frame(program, isolation, limits))
        except BaseException as error:
            self.kill()
            if self._excess:
                raise LoadFailedError(f"while it is loaded, {self._excess}") from error
            raise
        self.is_idle = True

    def _load(self, frame: bytes) -> None:
        went_well, line, reason = self._await_load(frame)
        if not went_well:
            raise LoadFailedError(reason or "it cannot be loaded", line or None)
        # Elsewhere it is loaded by each call alone.
        if self.launched.tier == "bwrap" and not self._settles():
            raise LoadFailedError("it leaves processes or threads behind when it loads")

    def _settles(self) -> bool:
        """Whether nothing but the worker itself lives in its sandbox, or soon will."""
        deadline = time.monotonic() + _SETTLING_SECONDS
        while are_left(self.launched.pid()):
            if time.monotonic() >= deadline:
                return False
            time.sleep(_SETTLING_STEP_SECONDS)
        return True

    def _await_load(self, frame: bytes) -> tuple[bool, int, str]:
        pid = self._pid()
        WATCH.add(self)
        limit = self._limits.load_seconds
        left, heard = memoryview(frame), b""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN | select.POLLOUT)
        started, burnt = time.monotonic(), cpu_seconds(pid)
        while True:
            if not poll.poll(100):
                used, elapsed = cpu_seconds(pid) - burnt, time.monotonic() - started
                # The worker watches the program; we watch the worker.
                if used >= limit or elapsed >= 2 * limit + _GRACE_SECONDS:
                    raise WorkerError("the worker did not answer while it loaded a program")
            left = self._send(left)
            if not left:
                poll.modify(self._socket, select.POLLIN)
            chunk = self._receive()
            if chunk == b"":
                raise self._died_loading()
            heard += chunk or b""
            answer = read_load(heard)
            if answer is not None:
                return answer

    def _pid(self) -> int:
        pid = self.launched.pid()
        if not pid:
            raise self._died_loading()
        return pid

    def _died_loading(self) -> SandboxError:
        """The worker is gone. That is no program's fault: the worker runs nothing of it itself."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.launched.process.wait(_GRACE_SECONDS)
        complaint = self.launched.complaint()
        error = refusal("bubblewrap", 0, complaint)
        if isinstance(error, SandboxUnavailableError):
            return error
        return WorkerError(f"a worker died before it had a program: {complaint[-500:]}")

    def run(
        self,
        payloads: Sequence[bytes],
        heard: Callable[[list[Outcome]], None] = lambda _: None,
        seconds: float | None = None,
    ) -> Results:
        """Make calls; for each payload one. The worker is dead if this raises.

        ``heard``: Gets the outcomes as they come, in the order of the payloads. If it died, it made
        the first call that has none.
        """
        results = Results(len(payloads), self._limits)
        limits = self._limits
        if seconds is not None and seconds < limits.wall_seconds:
            limits = replace(limits, wall_seconds=seconds)
        self._runs += 1
        self.is_idle = False
        try:
            patience = limits.wall_seconds + _GRACE_SECONDS
            self._run(batch_frame(payloads, limits), results, heard, patience)
        except BaseException as error:
            self.kill()
            if self._excess and not isinstance(error, IdleWorkerError):
                raise WorkerError(self._excess, status="memory") from error
            raise
        self.is_idle = True
        self.calls += len(results.outcomes)
        self.retire = self.retire or results.is_retiring
        return results

    def _run(
        self,
        frame: bytes,
        results: Results,
        heard: Callable[[list[Outcome]], None],
        patience: float,
    ) -> None:
        if self._receive() is not None:
            raise IdleWorkerError("the worker died while it was idle, or spoke without being asked")
        left = memoryview(frame)
        poll = select.poll()
        poll.register(self._socket, select.POLLIN | select.POLLOUT)
        deadline = time.monotonic() + patience
        while not results.done:
            if not poll.poll(_TICK_MS):
                if time.monotonic() >= deadline:
                    # It watches the clock of each call; that it cannot is the doing of one.
                    raise WorkerError("the call did not end in time", status="wall_timeout")
                continue
            if left:
                left = self._send(left)
                if not left:
                    poll.modify(self._socket, select.POLLIN)
            chunk = self._receive()
            if chunk == b"":
                raise WorkerError("the worker died")
            if chunk and (outcomes := results.feed(chunk)):
                heard(outcomes)
                deadline = time.monotonic() + patience
        if not results.outcomes:
            raise IdleWorkerError("the machine is too busy: no process could begin with a call")

    def _send(self, data: memoryview) -> memoryview:
        try:
            return data[self._socket.send(data[:_CHUNK]) :] if data else data
        except BlockingIOError:
            return data
        except OSError as error:
            raise WorkerError(f"the worker died: {error}") from error

    def _receive(self) -> bytes | None:
        """What there is to read: None for nothing, empty for the end."""
        try:
            return self._socket.recv(_CHUNK)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def is_alive(self) -> bool:
        """Whether the worker still runs, as far as can be seen from outside."""
        return self.launched.process.poll() is None

    def pin(self, cpu: int) -> None:
        """Keep the worker, and what it forks, on one processor."""
        with contextlib.suppress(OSError):
            os.sched_setaffinity(self.launched.pid(), {cpu})

    def resident_bytes(self) -> int:
        """Memory that the worker occupies; 0 if that cannot be seen."""
        return occupied(self._processes())

    def _processes(self) -> list[int]:
        pid = self.launched.pid()
        return [pid, *descendants(pid)]

    def look(self) -> None:
        """What the watch does: kill it for memory that it occupies, or for company while idle.

        Each process has its own limit of memory; this is for those who start many. It is called on
        the watch's thread, and must not raise.
        """
        pid, runs, was_idle = self.launched.pid(), self._runs, self.is_idle
        most = self._limits.memory_bytes + _ROOM_BYTES
        if occupied(self._processes(), most) > most:
            self._excess = f"its processes use more than {self._limits.memory_bytes} bytes together"
            self.launched.stop()
            return
        is_in_company = was_idle and are_left(pid) and self.is_idle and runs == self._runs
        self._strikes = self._strikes + 1 if is_in_company else 0
        if self._strikes >= _STRIKES:
            self.launched.stop()

    def kill(self) -> None:
        """Kill the worker and everything in its sandbox."""
        WATCH.remove(self)
        self.launched.kill()


def start(tier: str) -> WorkerSession:
    """Start a worker; it is ready to load a program in about 50 ms."""
    launched = launch(tier)
    session = WorkerSession(launched)
    filters = worker_filters("landlock" if tier == "landlock" else "bwrap")
    with contextlib.suppress(OSError):  # it has died already: loading will tell why
        launched.control.sendall(fields_frame(b"F", filters))
    return session
