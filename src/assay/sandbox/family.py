"""Find and kill every process that came from a command, without help of the kernel.

A session holds most of them, and is killed at one stroke. Those that left it (``setsid``, daemons)
are recognised by their parents while these live, and by a variable that every child inherits. The
tidy way, adopting orphans (``PR_SET_CHILD_SUBREAPER``), would make *this* process the parent of
orphans of the whole program, whose other parts know nothing of them.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Family"]

_MARK = "ASSAY_COMMAND"
_KILL_SECONDS = 5.0
# Below so many process ids since the leader, each is looked at; above, /proc is listed.
_FEW = 64
# A process has no variables for a moment while it becomes another program; on a busy machine it
# may be stopped in just that moment.
_LOOKS = 20


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    parent: int
    session: int
    started: int  # clock ticks since boot
    dead: bool


class Family:
    """The processes of one command.

    Attributes:
        leader: Descriptor of the first process; readable when that has ended.
    """

    def __init__(self) -> None:
        self.leader = -1
        self._pid = 0
        self._mark = os.urandom(8).hex()
        self._bare: set[int] = set()  # those that have no variables at all

    def marked(self, env: Mapping[str, str]) -> dict[str, str]:
        """The variables for the command: with the mark, after those of commands around it."""
        return {**env, _MARK: f"{env.get(_MARK, '')} {self._mark}".lstrip()}

    def of(self, pid: int) -> Family:
        """Say who the first process is: a session leader, not reaped before `close`."""
        self._pid = pid
        self.leader = os.pidfd_open(pid)
        return self

    def close(self) -> None:
        """Kill them all. Returns when the kernel has them dead or dying."""
        deadline = time.monotonic() + _KILL_SECONDS
        first = _look(self._pid)
        if first and not first.dead:
            self._kill_frozen(first, deadline)
        # The leader is not reaped yet, so that its id cannot mean another session.
        self._signal_session(signal.SIGKILL)
        os.close(self.leader)
        while first and (others := self._others(first)) and time.monotonic() < deadline:
            for process in others:
                _signal(process.pid, signal.SIGKILL)
            time.sleep(0.001)  # dying takes a moment

    def _kill_frozen(self, first: _Process, deadline: float) -> None:
        """Kill those outside of the session, while their parents still show whose they are."""
        self._signal_session(signal.SIGSTOP)
        frozen: set[int] = set()
        while time.monotonic() < deadline:
            new = {process.pid for process in self._others(first)} - frozen
            if not new:
                break
            for pid in new:
                _signal(pid, signal.SIGSTOP)
            frozen |= new
        for pid in frozen:
            _signal(pid, signal.SIGKILL)

    def _signal_session(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, number)

    def _others(self, first: _Process) -> list[_Process]:
        """The living ones beside the leader."""
        found: list[_Process] = []
        ours = {self._pid}
        for process in self._since(first):
            if process.dead or process.pid == self._pid:
                continue
            related = process.parent in ours or process.session == first.session
            if related or self._is_marked(process.pid):
                ours.add(process.pid)
                found.append(process)
        return found

    def _since(self, first: _Process) -> Iterator[_Process]:
        """Processes no older than the leader."""
        last = int(Path("/proc/loadavg").read_bytes().split()[-1])
        if 0 <= last - self._pid < _FEW:
            pids = list(range(self._pid + 1, last + 1))
        else:
            pids = sorted(int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
        for pid in pids:
            process = _look(pid)
            if process and process.started >= first.started:
                yield process

    def _is_marked(self, pid: int) -> bool:
        with suppress(OSError):
            for _ in range(_LOOKS):
                if variables := Path(f"/proc/{pid}/environ").read_bytes():
                    return self._mark.encode() in variables
                if pid in self._bare:
                    break
                time.sleep(0.001)
            self._bare.add(pid)
        return False


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _look(pid: int) -> _Process | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name, in parentheses, may hold anything.
    fields = text[text.rindex(b")") + 2 :].split()
    return _Process(
        pid=pid,
        parent=int(fields[1]),
        session=int(fields[3]),
        started=int(fields[19]),
        dead=fields[0] in (b"Z", b"X"),
    )
