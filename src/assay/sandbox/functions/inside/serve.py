"""The supervisor, process 1 of the sandbox: takes a program and batches, answers for each call."""

from __future__ import annotations

import os
import time
from _struct import unpack_from

from assay.sandbox.functions.inside.calls import DEADLY, UNMADE, ForkedCalls
from assay.sandbox.functions.inside.evaluate import (
    CPU_TIMEOUT,
    CRASH,
    ERROR,
    NEEDS_LOOP,
    OK,
    WALL_TIMEOUT,
)
from assay.sandbox.functions.inside.template import StandBy
from assay.sandbox.functions.inside.wire import BATCH, CALL, FRAME, LOADED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from assay.sandbox.functions.inside.confine import Confinement
    from assay.sandbox.functions.inside.wire import Line, Pipes

    Times = tuple[float, float]

_OWN_PROCESSES = 2
_RETIRE = 2
_CLONE = {"x86_64": 56, "aarch64": 220}


def serve(line: Line, pipes: Pipes, confinement: Confinement) -> NoReturn:
    """Serve one program until the host hangs up."""
    _, (header, *parts) = line.fields()
    isolated, memory, processes, keep, load_ms = (int(word) for word in header.split())
    template = _cloned(confinement)
    if template == 0:
        os.close(line.fd)
        pipes.keep_template_ends()
        StandBy(pipes, confinement, parts, keep).run(memory, processes + _OWN_PROCESSES)
    pipes.keep_supervisor_ends()
    outbox = Outbox(line)
    calls = ForkedCalls(
        line.fd,
        template,
        pipes,
        confinement=confinement,
        keep=keep,
        on_delay=outbox.flush,
    )
    line.on_hang_up = calls.leave
    _await_load(line, calls, load_ms / 1000)
    server = _Server(line, calls, outbox)
    while True:
        _, content = line.frame()
        cpu, wall = BATCH.unpack_from(content)
        sizes = unpack_from(f"<{(len(content) - BATCH.size) // 4}I", content, BATCH.size)
        if isolated or len(sizes) == 1:
            server.one_by_one(sizes, cpu, wall)
        else:
            server.together(sizes, cpu, wall)


def _cloned(confinement: Confinement) -> int:
    """Fork, but so that `os.waitpid` overlooks the child unless asked for such children."""
    number = _CLONE.get(os.uname().machine)
    if number is None:
        raise OSError("no function workers on this processor")
    return confinement.libc.syscall(number, 0, 0, 0, 0, 0)


def _await_load(line: Line, calls: ForkedCalls, limit: float) -> None:
    """Tell the host whether the program is loaded; end if it is not."""
    status, where, _, message, _ = calls.await_load(limit)
    if status == OK:
        line.send(b"R", LOADED.pack(1, 0))
        return
    if status in (CPU_TIMEOUT, WALL_TIMEOUT):
        message = b"it is not loaded after %g s, which is too long" % limit
    elif status != ERROR:
        message = b"it ends the process, or the process died, while it was loaded"
    number = int(where) if 0 <= where < 2**31 else 0
    line.send(b"R", LOADED.pack(0, number) + message)
    line.frame()  # nothing more to do than to wait for our end


class _Server:
    """Makes batches of calls."""

    def __init__(self, line: Line, calls: ForkedCalls, outbox: Outbox) -> None:
        self._line = line
        self._calls = calls
        self._outbox = outbox
        self._needs_loop = False

    def one_by_one(self, sizes: tuple[int, ...], cpu: float, wall: float) -> None:
        """Make each call in a process of its own."""
        calls = self._calls
        for number, size in enumerate(sizes):
            payload = self._line.exactly(size)
            started = time.monotonic()
            status, score, used, message = self._call(payload, cpu, wall, started)
            if status == UNMADE:
                break
            times = used, time.monotonic() - started
            output = calls.printed()
            self._outbox.add(number, status, score, times=times, output=output, message=message)
            if calls.is_spent:
                break
        self._end()

    def _call(
        self, payload: bytes, cpu: float, wall: float, started: float
    ) -> tuple[int, float, float, bytes]:
        """One call; again, and under an event loop, if it turns out to need one.

        Each try has all of the CPU time, so that an honest call loses none by the first; both
        together have the real time of one call.
        """
        calls = self._calls
        calls.wants_loop = self._needs_loop
        calls.start(payload)
        status, score, used, message, _ = calls.reply(cpu, wall)
        if status == NEEDS_LOOP and not self._needs_loop:
            calls.wants_loop = True
            calls.end()
            calls.start(payload)
            left = wall - (time.monotonic() - started)
            status, score, used, message, _ = calls.reply(cpu, left)
            # It may only have failed, which it does with or without.
            self._needs_loop = status == OK
        cause = b"" if status == UNMADE else calls.end()
        if status in (CRASH, NEEDS_LOOP):
            return CRASH, 0.0, used, message or cause
        return status, score, used, message

    def together(self, sizes: tuple[int, ...], cpu: float, wall: float) -> None:
        """Make the calls in one process, one after the other; in a new one after each death."""
        payloads = [size.to_bytes(4, "little") + self._line.exactly(size) for size in sizes]
        done = 0
        while done < len(payloads) and not self._calls.is_spent:
            done = self._some(payloads, done, cpu, wall)
        self._end()

    def _some(self, payloads: list[bytes], done: int, cpu: float, wall: float) -> int:
        """Make calls in one process, from number ``done`` on. Returns how many are done then."""
        calls = self._calls
        count = len(payloads) - done
        # A single call is made as if it were alone: without its length before it.
        calls.wants_loop = False
        calls.start(payloads[done][4:] if count == 1 else b"".join(payloads[done:]), count=count)
        before, status = time.monotonic(), OK
        while done < len(payloads) and status not in DEADLY:
            status, score, used, message, output = calls.reply(cpu, wall)
            if status == UNMADE:
                return done
            if status in DEADLY:
                message = calls.end()
            now = time.monotonic()
            times = used, now - before
            self._outbox.add(done, status, score, times=times, output=output, message=message)
            before = now
            done += 1
        if status not in DEADLY:
            calls.end()
        return done

    def _end(self) -> None:
        self._outbox.end(_RETIRE if self._calls.is_spent else 0)
        # Only now: whoever waits for the answer need not wait for a fork.
        self._calls.prepare()


_KIND_CALL, _KIND_END = b"CE"
_LONG = 1e6
_HOLD_BYTES = 1 << 16
_HOLD_SECONDS = 0.02


class Outbox:
    """Collects frames, to send many at once; none waits for long."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._frames: list[bytes] = []
        self._bytes = 0
        self._since = 0.0

    def add(
        self, number: int, status: int, score: float, *, times: Times, output: bytes, message: bytes
    ) -> None:
        """Put what came of one call."""
        cpu, wall = times
        # What a call says of its own CPU time may be anything.
        micros = int(cpu * 1e6) if 0.0 <= cpu < _LONG else 0, int(wall * 1e6)
        text = output + message
        frame = FRAME.pack(CALL.size + len(text), _KIND_CALL)
        frame += CALL.pack(number, status, score, *micros, len(output)) + text
        self._frames.append(frame)
        self._bytes += len(frame)
        now = time.monotonic()
        if self._bytes > _HOLD_BYTES or now - self._since > _HOLD_SECONDS:
            self.flush()
            self._since = now

    def flush(self) -> None:
        """Send what there is."""
        if not self._frames:
            return
        self._line.write(b"".join(self._frames))
        self._frames.clear()
        self._bytes = 0

    def end(self, flags: int) -> None:
        """End the batch."""
        self._frames.append(FRAME.pack(1, _KIND_END) + bytes([flags]))
        self.flush()
