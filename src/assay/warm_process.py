"""`WarmProcess`: a process of ours that stays, so that others are forks of it, not started."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from fcntl import F_DUPFD_CLOEXEC, fcntl
from typing import ClassVar


class WarmProcess(ABC):
    """Started when it is first needed, and again when it has gone; usable from any thread.

    A fork of this process starts one of its own. `_connect`, `_answer_to` and `_end` want the lock
    to be held.
    """

    _socket: ClassVar[socket.SocketKind] = socket.SOCK_STREAM
    _environment: ClassVar[dict[str, str] | None] = None
    """Its variables; None for those of this process."""
    _directory: ClassVar[str | None] = None
    """Where it works; None for where this process does."""
    _end_seconds: ClassVar[float] = 0.0
    """How long it may take to end by itself once nobody speaks to it."""

    def __init__(self) -> None:
        self._reset()
        os.register_at_fork(after_in_child=self._forget)

    @abstractmethod
    def _words(self, descriptor: int) -> list[str]:
        """The command that starts it; the descriptor is its end of the socket."""

    def _surroundings(self) -> object:
        """What it has of the thread that starts it; once that changes, another is started."""
        return None

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._inode = 0
        self._started_in: object = None

    def _forget(self) -> None:
        """In a fork of this process: the other one is the parent's."""
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self._process.returncode = 0  # nothing of ours to wait for
        self._reset()

    def close(self) -> None:
        """End it; whoever needs it next starts another."""
        with self._lock:
            self._end()

    def _connect(self) -> socket.socket:
        """The socket to it; starts it where there is none."""
        surroundings = self._surroundings()
        if self._control is not None and self._is_open() and surroundings == self._started_in:
            return self._control
        self._end()
        ours, theirs = socket.socketpair(socket.AF_UNIX, self._socket)
        try:
            # A number that the standard streams of the other do not take; without ours it has one.
            with theirs, socket.socket(fileno=fcntl(theirs, F_DUPFD_CLOEXEC, 3)) as passed:
                self._process = subprocess.Popen(
                    self._words(passed.fileno()),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=[passed.fileno()],
                    env=self._environment,
                    cwd=self._directory,
                    start_new_session=True,
                )
        except OSError:
            ours.close()
            raise
        self._control, self._started_in = ours, surroundings
        self._inode = _inode(ours)
        return ours

    def _answer_to(self, control: socket.socket, order: bytes, descriptors: Sequence[int]) -> int:
        """What it answers, a number of four bytes; 0 where it has gone, or says nothing in time."""
        answer = b""
        try:
            with suppress(OSError):
                socket.send_fds(control, [order], descriptors)
                answer = control.recv(4)
        finally:
            # Where Ctrl-C came in between, the next order must not take this one's answer.
            if len(answer) != 4:
                self._end()
        return int.from_bytes(answer, "little") if len(answer) == 4 else 0

    def _is_open(self) -> bool:
        """Whether nobody has closed the socket's number, as daemons do with all that they have."""
        try:
            return self._control is not None and _inode(self._control) == self._inode
        except OSError:
            return False

    def _end(self) -> None:
        is_open, control, process = self._is_open(), self._control, self._process
        self._control = self._process = None
        if control is not None:
            if not is_open:
                control.detach()  # the number is somebody else's by now
            control.close()
        if process is not None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(self._end_seconds)
            process.kill()
            process.wait()


def _inode(control: socket.socket) -> int:
    return os.fstat(control.fileno()).st_ino
