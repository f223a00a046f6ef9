"""The supervisor's part of a call: hand over, watch, and see that nothing of it is left.

It runs nothing of the program, and is not forked once it has seen a payload.
"""

from __future__ import annotations

import os
import select
import time

from assay.sandbox.functions.inside.evaluate import (
    BAD_RETURN,
    CPU_TIMEOUT,
    CRASH,
    ERROR,
    MEMORY,
    NEEDS_LOOP,
    OK,
    RECURSION,
    WALL_TIMEOUT,
)
from assay.sandbox.functions.inside.wire import (
    BIRTH,
    DEATH,
    FORK,
    MAKE_LOOP,
    MESSAGE_BYTES,
    ORDER,
    REPLY,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.sandbox.functions.inside.confine import Confinement
    from assay.sandbox.functions.inside.wire import Pipes

Reply = tuple[int, float, float, bytes, bytes]
"""Status, score, CPU seconds (so it says), message, output."""
UNMADE = -1
"""There was no process to make the call: the host is told nothing of it, and has it made again."""
DEADLY = (CPU_TIMEOUT, WALL_TIMEOUT, CRASH, UNMADE)
"""After these the process is dead, or as good as."""

_SIGKILL, _SIGCONT = 9, 18
_ALL_CHILDREN = 0x40000000  # __WALL: also those that `os.waitpid` overlooks, such as the template
_KILLS = 200
_CHUNK = 1 << 16
_DRAINS = 256
# A call that has not ended after so long is watched. Until then only its end wakes us, because it
# runs on our processor: to wake for each reply would cost more than the call.
_SOON_MS = 3
_DEATH_MS = 100
_PATIENCE_MS = 2000
_BIRTH_WAITS = 2  # together shorter than the host's grace
_READ_BIRTHS_EVERY = 4096
# What a process says of a call, and lives on.
_SAID = (OK, ERROR, BAD_RETURN, MEMORY, RECURSION, NEEDS_LOOP)
_NO_RESULT = b"the process ended without a result"


class ForkedCalls:
    """One fork of the template after the other.

    ``confinement``: What this process is confined by; in a pid namespace, whatever a call leaves
    behind can be found and killed.
    ``on_delay``: Called when a call takes its time, so that nothing else need wait for it.
    ``is_spent``: Whether the template is gone, so that no further call can be made.
    """

    def __init__(
        self,
        control: int,
        template: int,
        pipes: Pipes,
        *,
        confinement: Confinement,
        keep: int,
        on_delay: Callable[[], None],
    ) -> None:
        self.is_spent = False
        self.wants_loop = False
        self._template = template
        self._pipes = pipes
        self._on_delay = on_delay
        self._control = control
        self._namespaced = confinement.namespaced
        self._raw_wait = confinement.libc.waitpid
        self._orders, self._payload_out = pipes.orders[1], pipes.payloads[1]
        self._births, self._deaths = pipes.births[0], pipes.deaths[0]
        self._replies, self._prints = pipes.replies[0], pipes.prints[0]
        read = select.POLLIN
        self._quick = _poll({control: 0, self._deaths: read})
        self._slow = _poll(
            {control: 0, self._deaths: read, self._replies: read, self._prints: read}
        )
        self._rest = _poll({pipes.payloads[0]: read, self._replies: read, self._prints: read})
        self._keep = self._room = keep
        self._printed: list[bytes] = []
        self._said = b""
        self._unsent = memoryview(b"")
        self._is_series = self._is_ready = self._is_orphaned = False
        self._forks = self._born = 0  # how many there are, and how many have been heard of
        self._pid = 0  # of the one heard of last
        self._started = self._burnt = 0.0

    def await_load(self, limit: float) -> Reply:
        """What the template says when it has loaded its program, or has not."""
        self._pid, self._is_series, self._started = self._template, True, time.monotonic()
        reply = self.reply(limit, 2 * limit)
        self._pid = 0
        if reply[0] == OK:
            self.prepare()
            self._is_born()  # so that the host can count who is there
        else:
            self._kill_all()
        return reply

    def prepare(self) -> None:
        """Let the template fork, so that a process waits for the next payload; unless one does."""
        if self._is_ready or self.is_spent:
            return
        self._is_ready = True
        try:
            os.write(self._orders, MAKE_LOOP if self.wants_loop else FORK)
        except OSError:
            self.is_spent = True  # the template has died meanwhile
        self._forks += 1
        if self._forks % _READ_BIRTHS_EVERY == 0:
            self._hear_of_births()

    def start(self, payload: bytes, *, count: int = 1) -> None:
        """Let the waiting process begin."""
        self.prepare()
        if self._said:
            self._said = b""
        if self._printed:
            self._printed.clear()
            self._room = self._keep
        data = ORDER.pack(count, len(payload), self.wants_loop) + payload
        self._send(data)
        self._is_series = count > 1
        self._started, self._burnt = time.monotonic(), 0.0

    def _send(self, data: bytes | memoryview) -> None:
        """Hand over what there is room for; the rest as soon as there is more."""
        try:
            sent = os.write(self._payload_out, data)
        except BlockingIOError:
            sent = 0
        if sent < len(data):
            if not self._unsent:
                for poll in (self._quick, self._slow):
                    poll.register(self._payload_out, select.POLLOUT)
            self._unsent = memoryview(data)[sent:]
        elif self._unsent:
            self._stop_sending()

    def _stop_sending(self) -> None:
        self._unsent = memoryview(b"")
        for poll in (self._quick, self._slow):
            poll.unregister(self._payload_out)

    def reply(self, cpu: float, wall: float) -> Reply:
        """The next reply of the process."""
        needed = REPLY.size
        while True:
            if len(self._said) >= needed:
                status, score, used, said, printed = REPLY.unpack_from(self._said)
                needed = REPLY.size + said + printed
                if status not in _SAID or said > MESSAGE_BYTES or printed > self._keep:
                    return self._given_up(CRASH, b"it replied what cannot be read")
                if len(self._said) >= needed:
                    break
            if why := self._listen(cpu, wall):
                return (why, 0.0, 0.0, b"", b"") if why == UNMADE else self._given_up(why, b"")
        # Only now: a piece of a reply buys no time.
        self._started, self._burnt = time.monotonic(), -1.0
        if not said and not printed:
            self._said = self._said[needed:]
            return status, score, used, b"", b""
        text, self._said = self._said[REPLY.size : needed], self._said[needed:]
        return status, score, used, text[:said], text[said:]

    def _given_up(self, why: int, message: bytes) -> Reply:
        used = self._used()
        if self._is_born():
            _signal(self._pid, _SIGKILL)
        return why, 0.0, used, message, b""

    def _listen(self, cpu: float, wall: float) -> int:
        """Hear more of the replies; 0, or why there are none."""
        poll, patience, waits = self._quick, _SOON_MS, 0
        while not self.is_spent:
            ready = [fd for fd, _ in poll.poll(patience)]
            if self._control in ready:  # the host went away
                self.leave()
                os._exit(0)
            if self._prints in ready:
                self._hear()
            if self._hears_replies(ready):
                return 0
            if self._deaths in ready:
                break
            if self._payload_out in ready:
                self._send(self._unsent)
                continue
            if poll is self._quick:
                poll = self._slow
                self._on_delay()
            if not self._is_born():
                waits += 1
                if why := self._why_unborn(waits):
                    return why
                patience = 0
                continue
            used, elapsed = self._used(), time.monotonic() - self._started
            if used >= cpu:
                return CPU_TIMEOUT
            if elapsed >= wall:
                return WALL_TIMEOUT
            patience = int(min(cpu - used, wall - elapsed) * 1000) + 1
        return CRASH

    def _why_unborn(self, waits: int) -> int:
        """Why no process makes the call; 0 where the template may still fork.

        That it died or was refused a fork is the program's doing; so may be that it makes no loop.
        """
        if self._is_orphaned or self._born == self._forks:
            return CRASH
        if waits < _BIRTH_WAITS:
            return 0
        if self.wants_loop:
            return CRASH
        self.is_spent = True  # so busy a machine that the template does not get to it
        self._kill_all()
        return UNMADE

    def _hears_replies(self, ready: list[int]) -> bool:
        if not self._is_series and self._deaths not in ready and self._replies not in ready:
            return False
        chunk = _read(self._replies, _CHUNK)
        if not chunk:
            return False
        self._said += chunk
        return True

    def _hear(self) -> None:
        """Take a piece of what the process prints: keep the head, drop the rest."""
        chunk = os.read(self._prints, _CHUNK)
        if self._room:
            self._printed.append(chunk[: self._room])
            self._room -= len(self._printed[-1])

    def printed(self) -> bytes:
        """What the last process has printed, the head of it."""
        return b"".join(self._printed)

    def _used(self) -> float:
        """CPU seconds of the process since its last reply, as far as its clock still runs."""
        if self._pid <= 0:
            return 0.0
        clock = _clock(self._pid)
        if self._burnt < 0.0:  # nobody looked when it replied
            self._burnt = clock
        return max(0.0, clock - self._burnt)

    def _is_born(self) -> bool:
        """Whether there is a process, and which."""
        if self._born < self._forks:
            self._hear_of_births()
            if self._born < self._forks:
                self._await(self._births)
                self._hear_of_births()
                self._started = time.monotonic()  # until now it was not its turn
        return self._born == self._forks and self._pid > 0

    def _hear_of_births(self) -> None:
        news = _read(self._births, _CHUNK)
        self._is_orphaned = news == b""
        if news:
            (self._pid,) = BIRTH.unpack(news[-BIRTH.size :])
            self._born += len(news) // BIRTH.size

    def _await(self, fd: int) -> bool:
        """Wait for the template; it may need to be woken, as a call may have stopped it."""
        _signal(self._template, _SIGCONT)
        return bool(_poll({fd: select.POLLIN}).poll(_PATIENCE_MS))

    def end(self) -> bytes:
        """See that nothing of the process is left. `prepare` has the next one forked."""
        death = _read(self._deaths, DEATH.size) or self._awaited_death()
        how, has_sibling = DEATH.unpack(death) if len(death) == DEATH.size else (0, 1)
        if has_sibling or self._has_strays():
            self.is_spent = True
            self._kill_all()
        if self._unsent:
            self._stop_sending()
        self._clear()
        self._pipes.make_blocking()
        self._is_ready = False
        return _cause(how) if how else _NO_RESULT

    def _awaited_death(self) -> bytes:
        """The template's word that the process is dead; nothing if it does not come."""
        if not _poll({self._deaths: select.POLLIN}).poll(_DEATH_MS):
            if self._is_born():
                _signal(self._pid, _SIGKILL)
            self._await(self._deaths)
        return _read(self._deaths, DEATH.size) or b""

    def _has_strays(self) -> bool:
        """Whether processes have come to us whose parents are dead.

        The template is no such child: it was made so that this does not see it.
        """
        return self._raw_wait(-1, None, os.WNOHANG) != -1

    def _clear(self) -> None:
        """Take what dead processes have left in the pipes."""
        for _ in range(_DRAINS):
            events = self._rest.poll(0)
            if not events:
                return
            for fd, _ in events:
                if fd == self._prints:
                    self._hear()
                else:
                    os.read(fd, _CHUNK)
        self.is_spent = True  # somebody goes on writing
        self._kill_all()

    def leave(self) -> None:
        """End everything before this process does.

        A pid namespace ends by itself. Elsewhere what is left would come to whoever is process 1
        there, which in a container often reaps nobody.
        """
        if self._namespaced:
            return
        if self._forks and self._is_born():
            _signal(self._pid, _SIGKILL)
        _signal(self._template, _SIGKILL)
        _reap()

    def _kill_all(self) -> None:
        """End the template and, where everything else is the sandbox's own, that too."""
        _signal(self._template, _SIGKILL)
        for _ in range(_KILLS if self._namespaced else 0):
            _signal(-1, _SIGKILL)
            if _reap():
                return


def _reap() -> bool:
    """Wait until there is no child left."""
    try:
        while True:
            os.waitpid(-1, _ALL_CHILDREN)
    except ChildProcessError:
        return True


def _poll(events: dict[int, int]) -> select.poll:
    poll = select.poll()
    for fd, event in events.items():
        poll.register(fd, event)
    return poll


def _read(fd: int, size: int) -> bytes | None:
    """What there is to read: None for nothing, empty for the end."""
    try:
        return os.read(fd, size)
    except BlockingIOError:
        return None


def _clock(pid: int) -> float:
    """CPU seconds of a process, by the kernel's own formula for its clock; 0 when it is gone."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        return


def _cause(how: int) -> bytes:
    if os.WIFSIGNALED(how) and os.WTERMSIG(how) != _SIGKILL:
        return b"the process died of signal %d" % os.WTERMSIG(how)
    return _NO_RESULT
