"""The supervisor of one sandboxed command: a process of its own, between assay and bubblewrap.

A fork server (`serve`), started once by `forkserver` in a bare interpreter, forks it for each
command; it imports nothing of assay but its own parts. It

1. enters a mount namespace of its own and lays out the trees the command shall see there, with an
   in-memory layer over those that must not change. For a command with a door it enters a network
   of its own, too, listens there, and hands the listening socket to assay;
2. becomes a user who owns nothing of the host, and starts bubblewrap as that one: as the first
   process of a pid namespace, so that nothing outlives it, and tied to this one by the kernel
   before it does anything. So whatever kills the supervisor, at whatever moment, kills it all;
3. waits, watches the clock and the memory, and kills everything when time, memory or its caller
   says so;
4. writes one verdict to a socket that nothing in the sandbox ever holds.

Standard input is the leash: first the plan (its length, then `marshal`), then nothing. Anything
more, or its end because assay is gone, means kill.

Only cheap modules are imported: the first command waits for this interpreter to start, and every
fork copies what it has in memory.
"""

from __future__ import annotations

import _socket
import gc
import marshal
import os
import resource
import select
import time

from assay.sandbox import kernel
from assay.sandbox.processes import descendants, occupied
from assay.sandbox.stage import CommandUser, Stage, StepError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from assay.sandbox.run import SupervisorPlan, SupervisorVerdict

_TICK_SECONDS = 0.1
# Faster than processes can fill new memory: so long after it was looked at, it cannot be over.
_BYTES_PER_SECOND = (8 << 30) * (os.cpu_count() or 1)
_LONGEST_LOOK_SECONDS = 0.5
_MOST_PASSED, _ORDER_BYTES = 5, 4096  # of an order: descriptors, numbers
_BACKLOG = 4096  # as many as the kernel has by default


class Bubblewrap:
    """The running bubblewrap, and through it the sandbox."""

    def __init__(
        self, plan: SupervisorPlan, identity: CommandUser, program: int, stdin: int
    ) -> None:
        self.status, reply = os.pipe()
        arguments = ["--json-status-fd", str(reply), "--seccomp", _memory(plan["filter"])]
        # By descriptor: a process's command line, and so the variables in it, is public.
        listing = _memory(os.fsencode("\0".join([*arguments, *plan["arguments"], ""])))
        words = ["bwrap", "--args", listing, "--", *plan["command"]]
        os.set_inheritable(reply, True)
        if stdin < 0:
            stdin = os.open("/dev/null", os.O_RDONLY)
        self.pid = _started(program, words, identity, stdin)
        os.close(reply)
        os.close(stdin)  # that whoever writes to the command learns that nobody reads any more
        self.ended = os.pidfd_open(self.pid)
        self._said = b""

    def listen(self) -> bool:
        """Read the status stream; False at its end."""
        chunk = os.read(self.status, 4096)
        self._said += chunk
        return bool(chunk)

    def exit_code(self) -> int | None:
        """What the command returned; None if it was never started."""
        _, found, rest = self._said.decode().partition('"exit-code":')
        digits = rest.lstrip().split("\n")[0].split(",")[0].strip(" }")
        # A command that tampers with bubblewrap can make it say -1; it was started all the same.
        return int(digits) if found and digits.removeprefix("-").isdigit() else None

    def kill(self) -> None:
        """Kill all of the sandbox and wait until nothing of it is left."""
        kernel.send_kill(self.ended)
        os.waitpid(self.pid, 0)

    def memory(self, limit: int) -> int:
        """Bytes in use; exact only above the limit."""
        return occupied(descendants(self.pid), limit)


def _memory(content: bytes) -> str:
    fd = os.memfd_create("assay", 0)
    os.write(fd, content)
    os.lseek(fd, 0, 0)
    return str(fd)


def _started(program: int, words: list[str], identity: CommandUser, stdin: int) -> int:
    """Start bubblewrap as the command's user; its process id."""
    supervisor, on_host = os.getpid(), kernel.sees_kernel_threads()
    started, is_root = os.pipe()
    pid = kernel.fork()
    if pid:
        os.close(is_root)
        os.read(started, 1)  # until it has given up root: whoever has may not kill whoever has not
        os.close(started)
        return pid
    try:
        own = os.open("/proc/self/stat", os.O_RDONLY)
        # bubblewrap looks for its child by the number that this has in the new pid namespace, 2. In
        # the /proc of the old one that is somebody else, or nobody: then it would give up.
        if not on_host:
            kernel.mount_own_proc()
        identity.become()
        os.close(is_root)
        if kernel.die_with_parent(supervisor, own):
            os.dup2(stdin, 0)
            # By descriptor: the stage covers some directories.
            os.execve(f"/proc/self/fd/{program}", words, {})  # noqa: S606
    except BaseException as error:
        os.write(2, f"bubblewrap cannot be started: {error}\n".encode())
    finally:
        os._exit(1)


def _confine(plan: SupervisorPlan) -> None:
    """Take on what the command shall have: its limits, a pid namespace for its own."""
    for number, limit in plan["rlimits"]:
        hard = resource.getrlimit(number)[1]
        most = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(number, (most, most))
    try:
        kernel.unshare(kernel.NEW_PIDS)  # of what is started from now on
    except OSError as error:
        raise StepError("namespace", error) from error


def _watch(sandbox: Bubblewrap, plan: SupervisorPlan) -> tuple[str, int | None]:
    """Wait for the end, ours or the command's. Returns the verdict and the exit code."""
    deadline = time.monotonic() + plan["wall_seconds"]
    limit = plan["memory_bytes"]
    poll = select.poll()
    for fd in (0, sandbox.status, sandbox.ended):
        poll.register(fd, select.POLLIN)
    look = time.monotonic() + _until_full(limit)
    while True:
        left = max(0.0, deadline - time.monotonic())
        ready = [fd for fd, _ in poll.poll(min(left, _TICK_SECONDS) * 1000)]
        if sandbox.status in ready and not sandbox.listen():
            poll.unregister(sandbox.status)
        if sandbox.ended in ready:
            while sandbox.listen():
                pass
            return "ended", sandbox.exit_code()
        # The leash alone will not do: a fork of assay may hold its other end.
        if 0 in ready or os.getppid() != plan["parent"]:
            return "killed", None
        before = time.monotonic()
        if before >= deadline:
            return "timed_out", None
        if limit and not ready and before >= look:
            used = sandbox.memory(limit)
            if used > limit:
                return "memory", -kernel.SIGKILL
            # Never spend more than a tenth of a core on watching.
            now = time.monotonic()
            look = now + max(_until_full(limit - used), 10 * (now - before))


def _until_full(room: int) -> float:
    return min(room / _BYTES_PER_SECOND, _LONGEST_LOOK_SECONDS)


def _receive() -> SupervisorPlan:
    def exactly(count: int) -> bytes:
        got = b""
        while len(got) < count:
            chunk = os.read(0, count - len(got))
            if not chunk:
                os._exit(1)
            got += chunk
        return got

    return marshal.loads(exactly(int.from_bytes(exactly(8), "little")))  # noqa: S302 - from assay


def serve(control: int, host: int) -> None:
    """Fork a supervisor for each command, until assay is gone.

    Each order is the command's place, the owner and group of each tree, and descriptors: those of
    the supervisor's stdin, stdout and stderr, of the socket for its verdict and, perhaps, of the
    command's stdin. The answer is its process id. It becomes a child of assay, not of this process:
    assay waits for it, and it sees assay end.
    """
    gone = os.pidfd_open(host)
    if os.getppid() != host:
        return
    os.umask(0o022)
    kernel.default_signals()
    orders, identity = _socket.socket(fileno=control), CommandUser()
    poll = select.poll()
    for fd in (control, gone):
        poll.register(fd, select.POLLIN)
    gc.collect()
    gc.freeze()
    gc.disable()
    while True:
        # A fork of assay may hold the other end of the socket after assay itself is gone.
        if any(fd == gone for fd, _ in poll.poll()):
            return
        (place, *owners), passed = _order(orders)
        if not passed:
            return
        identity.prepare(place, list(zip(owners[::2], owners[1::2], strict=True)))
        pid = kernel.fork(kernel.SAME_PARENT)
        if pid == 0:
            os.close(control)
            os.close(gone)
            _be_supervisor(identity, passed)
        for fd in passed:
            os.close(fd)
        orders.send(pid.to_bytes(4, "little", signed=True))


def _order(orders: _socket.socket) -> tuple[list[int], list[int]]:
    """The numbers and the descriptors of the next order; none if there will be no more."""
    space = _socket.CMSG_SPACE(4 * _MOST_PASSED)
    data, extra, flags, _ = orders.recvmsg(_ORDER_BYTES, space, _socket.MSG_CMSG_CLOEXEC)
    if flags & _socket.MSG_CTRUNC:  # no room for all: another server has it
        return [0], []
    return _numbers(data) or [0], _numbers(extra[0][2]) if extra else []


def _numbers(data: bytes) -> list[int]:
    return [int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), 4)]


def _be_supervisor(identity: CommandUser, passed: list[int]) -> NoReturn:
    """In the fork: run one command, and end."""
    try:
        os.setsid()  # Ctrl-C is for assay
        for number in range(3):
            os.dup2(passed[number], number)
            os.close(passed[number])
        identity.settle()
        _supervise(identity, passed[3], passed[4] if len(passed) > 4 else -1)
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(0)


def _supervise(identity: CommandUser, status: int, stdin: int) -> None:
    """Run one command."""
    plan = _receive()
    program = os.open(plan["bwrap"], os.O_PATH | os.O_CLOEXEC)
    verdict: SupervisorVerdict = {
        "word": "refused",
        "code": None,
        "seconds": 0.0,
        "step": "",
        "errno": 0,
        "text": "",
    }
    try:
        Stage(plan, identity).build()
        if plan["door"]:
            _open_door(plan["door"], status)
        _confine(plan)
    except StepError as error:
        verdict.update(step=error.step, errno=error.errno, text=error.text)
        _report(status, verdict)
        return
    if os.getppid() != plan["parent"]:
        return
    started = time.monotonic()
    sandbox = Bubblewrap(plan, identity, program, stdin)
    identity.become()
    word, code = _watch(sandbox, plan)
    seconds = time.monotonic() - started
    sandbox.kill()
    verdict.update(word=word, code=code, seconds=seconds)
    _report(status, verdict)


def _open_door(port: int, status: int) -> None:
    """Listen in the command's network, and leave that to assay: nobody in here keeps the socket."""
    try:
        listener = _listen(port)
    except OSError as error:
        raise StepError("door", error) from error
    passed = listener.fileno().to_bytes(4, "little")
    channel = _socket.socket(fileno=status)
    channel.sendmsg([b"door"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, passed)])
    channel.detach()
    listener.close()


def _listen(port: int) -> _socket.socket:
    """Listen to all addresses: there are none but those of the loopback."""
    try:
        listener = _socket.socket(_socket.AF_INET6, _socket.SOCK_STREAM)
        listener.setsockopt(_socket.IPPROTO_IPV6, _socket.IPV6_V6ONLY, 0)
        listener.bind(("::", port))
    except OSError:  # a machine without IPv6
        listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        listener.bind(("127.0.0.1", port))
    # Before the command is there: whatever it binds, this port is taken.
    listener.listen(_BACKLOG)
    kernel.raise_loopback(listener.fileno())
    return listener


def _report(status: int, verdict: SupervisorVerdict) -> None:
    message: dict[Any, Any] = {**verdict}
    os.write(status, marshal.dumps(message))
