"""What a command may use, what it sees, what it writes, and what came of it."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Literal, Required, TypedDict, TypeVar

from assay.errors import InputError, SandboxError, SandboxUnavailableError
from assay.frozen import frozen

if TYPE_CHECKING:
    import socket

    from assay.types.submission import Workspace

_MIB = 1024 * 1024
_OWN_PLACES = ("/workspace", "/proc", "/dev", "/usr", "/etc")


@frozen(kw_only=True)
class Limits:
    """How much a command may use before it is stopped.

    On the host (`run_on_host`) only the wall clock and the output are limited.

    Attributes:
        wall_seconds: Real time from the start of the command to its kill.
        cpu_seconds: CPU time of each process, or None. The process gets SIGXCPU.
        memory_bytes: Memory of the whole command (proportional set size of all its processes), or
            None. Over it, everything is killed and the exit code is -9. It is watched ten times a
            second rather than set as an address-space rlimit, because node, the JVM and the
            sanitizers reserve far more addresses than they ever use.
        processes: Processes and threads at one time.
        output_bytes: How much of stdout, and of stderr, is kept: half from the head, half from the
            tail.
        output_kill_bytes: How much both streams together may write before the command is killed.
        file_bytes: Size of the largest file it may write.
        workspace_bytes: What it may add or change in a workspace that is discarded, in bytes.
        workspace_files: The same, in files.
    """

    wall_seconds: float = 300.0
    cpu_seconds: float | None = None
    memory_bytes: int | None = 4096 * _MIB
    processes: int = 512
    output_bytes: int = 64 * 1024
    output_kill_bytes: int = 64 * _MIB
    file_bytes: int = 256 * _MIB
    workspace_bytes: int = 1024 * _MIB
    workspace_files: int = 200_000


@frozen(kw_only=True)
class Mount:
    """A file or directory of the host shown inside the sandbox.

    What belongs to the user who runs assay belongs to the sandbox's user inside.

    Attributes:
        source: Path on the host.
        target: Absolute path inside; not in the workspace or the system's own directories.
        writable: Whether the command may change the host's files.
        links: Whether symbolic links in it are followed. Not, where somebody else writes to it
            whom the command does not trust.
    """

    source: str
    target: str
    writable: bool = False
    links: bool = True

    def __post_init__(self) -> None:
        steps = self.target.split("/")
        if not self.target.startswith("/") or self.target == "/" or {".", ".."} & set(steps):
            raise InputError(
                f"mount target {self.target!r} is not a plain absolute path",
                hint="write it like /opt/tools",
            )
        place = "/" + next(step for step in [*steps, "."] if step)
        if place in _OWN_PLACES:
            # A submission owns its workspace: a link in it could lead the mount elsewhere.
            raise InputError(
                f"mount target {self.target!r} lies in {place}, which the sandbox lays out itself",
                hint="mount it elsewhere, for instance below /opt",
            )


@frozen(kw_only=True)
class Door:
    """A port of the command's own loopback at which this process answers.

    The socket listens in the command's network, which nobody else is in, and it is this process
    that has it: there is no address, path or process between the two that a third could reach.

    Attributes:
        port: Where the command finds it, at 127.0.0.1 and ::1. Any will do, and the same for all
            commands, since each has a network of its own.
        on_open: Gets the listening socket, before the command starts, and has to close it. Called
            on the thread that runs the command, which is not an event loop's; what it raises ends
            the command and is raised. How many connections it accepts at a time is its own
            affair: each costs a descriptor of this process, while those that wait cost none.
    """

    port: int
    on_open: Callable[[socket.socket], object]

    def __post_init__(self) -> None:
        if not 0 < self.port < 1 << 16:
            raise InputError(f"a door's port is a number from 1 to 65535, not {self.port}")


Changes = Literal["discard", "keep"]


class CommandOptions(TypedDict, total=False):
    """What `Command` takes beside the words, as keywords of whoever runs one."""

    workspace: Required[str | Workspace | None]
    changes: Changes
    layers: Sequence[str]
    env: Mapping[str, str] | None
    mounts: Sequence[Mount]
    network: bool
    limits: Limits | None
    tier: str | None
    door: Door | None


@frozen
class Command:
    """A command, what it sees and how much it may use."""

    # The program and its arguments. For a shell line: ``["/bin/bash", "-c", line]``.
    argv: Sequence[str]
    _: KW_ONLY
    # Directory shown at ``/workspace``; None for an empty one. A `Workspace` brings variables,
    # mounts and perhaps the file system of an image, too.
    workspace: str | Workspace | None
    # ``discard``: the command sees its changes, the directory never does. ``keep``: it writes into
    # the directory; `Limits.workspace_bytes` does not apply.
    changes: Changes = "discard"
    # Directories laid over the workspace, the first on top; only with ``discard``. What a layer has
    # at a path stands there alone, unless both have a directory.
    layers: Sequence[str] = ()
    # Variables beside ``PATH``, ``HOME``, ``LANG`` and ``TZ``. No other reaches it.
    env: Mapping[str, str] | None = None
    mounts: Sequence[Mount] = ()
    # Whether to share the host's network; else only a loopback of its own.
    network: bool = False
    limits: Limits | None = None
    tier: str | None = None
    # A port of that loopback at which this process answers; None for no such thing.
    door: Door | None = None

    @property
    def bounds(self) -> Limits:
        """Its limits, or the defaults."""
        return self.limits or Limits()


@frozen(kw_only=True)
class CommandResult:
    """What a command did.

    Attributes:
        status: ``exited``; ``timed_out``: over ``wall_seconds``; ``output_limit``: over
            ``output_kill_bytes``.
        exit_code: None unless it exited. Killed by signal N: -N. Inside a sandbox a death by signal
            arrives as 128 + N; it is decoded where N is ILL, TRAP, ABRT, BUS, FPE, KILL, SEGV,
            PIPE, TERM, XCPU, XFSZ or SYS, so a program that itself exits with, say, 137 shows
            as -9 too. Not found and not executable are 127 and 126, as in a shell.
        stdout: Decoded as UTF-8 with replacement characters; a marker stands where it was cut.
        stderr: Likewise.
        truncated: Whether either stream was cut.
        seconds: Real time the command took.
        tier: What isolated it: ``bwrap``, or ``none`` on the host.
    """

    status: Literal["exited", "timed_out", "output_limit"]
    exit_code: int | None
    stdout: str
    stderr: str
    truncated: bool
    seconds: float
    tier: str


def need_linux() -> None:
    """Refuse to run code where there is no Linux: what isolates it, and ends all of it, is Linux's.

    Raises:
        SandboxUnavailableError: This is another system.
    """
    if sys.platform != "linux":
        system = {"darwin": "macOS"}.get(sys.platform, sys.platform)
        raise SandboxUnavailableError(
            f"code is run on Linux alone, and this is {system}",
            hint="run assay in a Linux container or virtual machine; what runs no code works here",
        )


def check_command(argv: Sequence[str], env: Mapping[str, str] | None) -> None:
    """Refuse what no system call can take."""
    need_linux()
    if isinstance(argv, str) or not argv or not argv[0]:
        raise InputError(
            f"a command is a list of words, not {argv!r}",
            hint="for a shell line use ['/bin/bash', '-c', line]",
        )
    for word in argv:
        if "\0" in word:
            raise InputError(f"the command's word {word!r} has a NUL character")
    for name, value in (env or {}).items():
        if not name or "=" in name or "\0" in name + value:
            raise InputError(f"{name!r} cannot be an environment variable with that value")


T = TypeVar("T")
Ending = Literal["done", "deadline", "output_limit", "cancelled"]

_CHUNK = 65_536
# The most a pipe can hold; after the last writer is dead there is no more to come than this.
_PIPE_CAPACITY = 1024 * 1024


@dataclass(slots=True)
class Capture:
    """The head and the tail of one stream."""

    keep: int
    total: int = 0
    _head: bytearray = field(default_factory=bytearray)
    _tail: bytearray = field(default_factory=bytearray)

    def add(self, chunk: bytes) -> None:
        """Take in what was read."""
        self.total += len(chunk)
        room = self.keep // 2 - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail += chunk
        surplus = len(self._tail) - (self.keep - self.keep // 2)
        # Shift only once in a while: each shift moves the whole tail.
        if surplus > _CHUNK:
            del self._tail[:surplus]

    @property
    def truncated(self) -> bool:
        """Whether something was cut out."""
        return self.total > self.keep

    def text(self) -> str:
        """What was kept, with a marker where the middle is missing."""
        if not self.truncated:
            return (self._head + self._tail).decode("utf-8", "replace")
        tail = self._tail[len(self._tail) - (self.keep - self.keep // 2) :]
        head = self._head.decode("utf-8", "replace")
        cut = self.total - self.keep
        return f"{head}\n... [{cut} bytes cut] ...\n{tail.decode('utf-8', 'replace')}"


def result_of(
    ending: Ending, code: int | None, out: Capture, err: Capture, *, seconds: float, tier: str
) -> CommandResult:
    """What a command did that has ended, by itself (``done``) or not."""
    stopped = "output_limit" if ending == "output_limit" else "timed_out"
    return CommandResult(
        status="exited" if ending == "done" else stopped,
        exit_code=code if ending == "done" else None,
        stdout=out.text(),
        stderr=err.text(),
        truncated=out.truncated or err.truncated,
        seconds=seconds,
        tier=tier,
    )


def follow(
    captures: dict[int, Capture],
    *,
    done: int,
    deadline: float,
    limits: Limits,
    cancel: int | None = None,
) -> Ending:
    """Read streams until the process is done or has to be killed.

    A stream held open by a left-over child does not matter: only ``done`` counts.

    Returns why it stopped reading. The process still runs unless it is ``done``.
    """
    poll = select.poll()
    for fd in (*captures, done, *(() if cancel is None else (cancel,))):
        poll.register(fd, select.POLLIN)
    while True:
        left = deadline - time.monotonic()
        ready = [fd for fd, _ in poll.poll(max(0.0, left) * 1000)]
        if cancel in ready:
            return "cancelled"
        if done in ready:
            return "done"
        if left <= 0:
            return "deadline"
        for fd in ready:
            chunk = os.read(fd, _CHUNK)
            captures[fd].add(chunk)
            if not chunk:
                poll.unregister(fd)
        if sum(capture.total for capture in captures.values()) > limits.output_kill_bytes:
            return "output_limit"


def drain(captures: dict[int, Capture]) -> None:
    """Take what dead processes left in their pipes, without waiting for anybody."""
    for fd, capture in captures.items():
        os.set_blocking(fd, False)
        end = capture.total + _PIPE_CAPACITY
        with suppress(BlockingIOError):
            while capture.total < end and (chunk := os.read(fd, _CHUNK)):
                capture.add(chunk)


@contextmanager
def our_failure(what: str) -> Generator[None]:
    """What the system refuses within it is no doing of the command's: a `SandboxError`."""
    try:
        yield
    except OSError as error:
        raise SandboxError(f"{what}: {error}") from error


async def in_thread(work: Callable[[int], T]) -> T:
    """Run blocking work on a thread of its own and pass a cancellation on to it.

    A thread of its own, not a pool's: commands last minutes and would starve everybody else there.

    ``work``: Gets a descriptor that becomes readable when the awaiting task is cancelled; must then
    clean up and return.
    """
    import asyncio  # 50 ms that a program without a loop need not pay

    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    with our_failure("cannot start a command"):
        cancel, notify = os.pipe()

    def target() -> None:
        try:
            deliver = partial(future.set_result, work(cancel))
        except BaseException as error:  # handed over to the awaiting task
            deliver = partial(future.set_exception, error)
        os.close(cancel)
        with suppress(RuntimeError):  # the loop was closed under us
            loop.call_soon_threadsafe(deliver)

    Thread(target=target, name="assay-command", daemon=True).start()
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        with suppress(BrokenPipeError):  # it has just ended by itself
            os.write(notify, b"x")
        while not future.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([future])
        future.exception()  # seen: it must not be reported as never retrieved
        raise
    finally:
        os.close(notify)
