"""Where the supervisors of commands come from: a bare interpreter that forks one for each.

An interpreter takes 20 ms to start and a fork of it one. The server is started with the first
command, once for this process and all of its threads, and ends when this process does, whichever
way. A fork of this process starts a server of its own, and so does one that has changed its user,
its limits or its namespaces.
"""

from __future__ import annotations

import atexit
import os
import resource
import select
import signal
import socket
import sys
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import ClassVar

from assay.errors import SandboxError
from assay.frozen import frozen
from assay.warm_process import WarmProcess

_PARTS = Path(__file__).parent
# Loads the supervisor's own modules by their full names, but runs no package's __init__.
_START = """
import sys
for name, path in ("assay", sys.argv[2]), ("assay.sandbox", sys.argv[1]):
    sys.modules[name] = type(sys)(name)
    sys.modules[name].__path__ = [path]
from assay.sandbox.supervisor import serve
serve(int(sys.argv[3]), int(sys.argv[4]))
import os
os._exit(0)
"""
_TRIES = 2
_NAMESPACES, _MOST_LIMITS = ("mnt", "net", "user"), 16
_MOST_SOURCES = 64  # more are looked after by the supervisor
_END_SECONDS = 2.0


@frozen
class Supervisor:
    """A process that runs one command; descriptors of this process's ends."""

    # To its standard input: its plan. Anything more, or the end, means kill.
    leash: int
    stdout: int
    stderr: int
    # What came of the command; before it, where there is one, the socket of its door.
    verdict: socket.socket
    ended: int


class ForkServer(WarmProcess):
    """Forks supervisors."""

    _socket = socket.SOCK_SEQPACKET
    _environment: ClassVar[dict[str, str] | None] = {}
    _directory = "/"
    _end_seconds = _END_SECONDS

    def _reset(self) -> None:
        super()._reset()
        self._places: set[int] = set()

    def _words(self, descriptor: int) -> list[str]:
        words = [sys.executable, "-I", "-S", "-X", "utf8", "-c", _START]
        return [*words, str(_PARTS), str(_PARTS.parent), str(descriptor), str(os.getpid())]

    def _surroundings(self) -> object:
        found: list[object] = [os.geteuid(), os.getegid()]
        found += [resource.getrlimit(number) for number in range(_MOST_LIMITS)]
        with suppress(OSError):
            found += [os.stat(f"/proc/thread-self/ns/{name}").st_ino for name in _NAMESPACES]  # noqa: PTH116 - cheaper
        return found

    @contextmanager
    def fork(self, sources: Sequence[str], stdin: int | None) -> Generator[Supervisor]:
        """A new supervisor, which waits for its plan. On leaving it is dead and reaped."""
        with ExitStack() as stack:
            passed = [] if stdin is None else [stdin]
            try:
                leash_end, leash = os.pipe()
                passed.insert(0, leash_end)
                held = stack.enter_context(ExitStack())
                held.callback(os.close, leash)
                stdout, stderr = (self._pipe(stack, passed, place) for place in (1, 2))
                verdict, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                passed.insert(3, other.detach())
                stack.enter_context(verdict)
                numbers = [stack.enter_context(self._place()), *_owners(sources)]
                pid = self._order(numbers, passed)
            except OSError as error:
                raise SandboxError(f"cannot start the supervisor of a command: {error}") from error
            finally:
                for fd in passed:
                    os.close(fd)
            # Not the end of a pipe: a fork elsewhere in this program may hold a copy of that.
            ended = _watched(pid)
            stack.callback(os.close, ended)
            stack.callback(_end, ended, leash, held)
            yield Supervisor(leash, stdout, stderr, verdict, ended)

    @staticmethod
    def _pipe(stack: ExitStack, passed: list[int], place: int) -> int:
        """The end of a new pipe that is read here; the other one is to be passed."""
        end, other = os.pipe()
        passed.insert(place, other)
        stack.callback(os.close, end)
        return end

    @contextmanager
    def _place(self) -> Generator[int]:
        """The lowest number that no other command has."""
        with self._lock:
            places = self._places
            place = next(number for number in count() if number not in places)
            places.add(place)
        try:
            yield place
        finally:
            places.discard(place)

    def _order(self, numbers: list[int], passed: list[int]) -> int:
        """Have a supervisor forked that gets these descriptors; its process id."""
        message = b"".join(number.to_bytes(4, "little") for number in numbers)
        with self._lock:
            for _ in range(_TRIES):
                if pid := self._answer_to(self._connect(), message, passed):
                    return pid
                # It has died, and nothing of this command has begun.
        raise SandboxError("the fork server of sandboxed commands died")


def _owners(sources: Sequence[str]) -> list[int]:
    """The owner and group of each, as far as they can be seen."""
    owners: list[int] = []
    for source in sources[:_MOST_SOURCES]:
        with suppress(OSError):
            found = os.stat(source)  # noqa: PTH116 - cheaper
            owners += [found.st_uid, found.st_gid]
    return owners


def _watched(pid: int) -> int:
    """A descriptor of a new supervisor, which no other process can ever take over."""
    try:
        return os.pidfd_open(pid)
    except OSError as error:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)  # it waits for its plan
            os.waitpid(pid, 0)
        raise SandboxError(f"cannot watch the supervisor of a command: {error}") from error


def _end(ended: int, leash: int, held: ExitStack) -> None:
    """Have a supervisor end, and reap it, unless the program around us already has."""
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    with suppress(OSError):
        if not poll.poll(0):
            # It ends when nothing of its command is left; killed, it would not wait for that.
            os.write(leash, b"x")
            held.close()
            poll.poll(_END_SECONDS * 1000)
    with suppress(OSError):
        signal.pidfd_send_signal(ended, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitid(os.P_PIDFD, ended, os.WEXITED)


FORK_SERVER = ForkServer()
"""The fork server of this process."""
atexit.register(FORK_SERVER.close)
