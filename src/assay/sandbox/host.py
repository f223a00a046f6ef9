"""Run a command without isolation, but leave nothing of it behind.

For commands that the *user* trusts: set-up steps, command-line agents that bring their own sandbox.
"""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from assay.errors import SandboxError
from assay.frozen import frozen
from assay.scratch import remove

if TYPE_CHECKING:
    from assay.sandbox.command import CommandResult, Limits


async def run_on_host(
    argv: Sequence[str],
    *,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    limits: Limits | None = None,
) -> CommandResult:
    """Run a command on the host, as the user who runs assay.

    Its standard input is empty. When this returns, raises or is cancelled, its processes are dead,
    also those that left its session. (One that leaves the session *and* clears its environment
    *and* outlives its parents is not found: for hostile commands there is `run_command`.)

    Args:
        argv: The program and its arguments.
        cwd: Working directory; None for the current one.
        env: All of its variables; None for those of this process. One more, ``ASSAY_COMMAND``,
            marks its processes.
        limits: Wall clock and output count; None for `Limits`' defaults.

    Raises:
        InputError: The arguments make no sense.
        SandboxError: The program or the directory does not exist or may not be used.
    """
    from assay.sandbox.command import check_command, in_thread

    check_command(argv, env)
    return await in_thread(lambda cancel: _run(argv, cwd, env, limits, cancel))


async def remove_tree(directory: str) -> None:
    """Remove a directory that hostile commands wrote to; never fails for what they left there."""
    from assay.sandbox.command import in_thread

    await in_thread(lambda _: remove(directory))


def _run(
    argv: Sequence[str],
    cwd: str | None,
    env: Mapping[str, str] | None,
    limits: Limits | None,
    cancel: int | None,
) -> CommandResult:
    from assay.sandbox.command import Capture, Limits, drain, follow, result_of

    limits = limits or Limits()
    started = time.monotonic()
    family = Family()
    out, err = Capture(limits.output_bytes), Capture(limits.output_bytes)
    with _start(argv, cwd, family.marked(os.environ if env is None else env)) as process:
        assert process.stdout
        assert process.stderr
        captures = {process.stdout.fileno(): out, process.stderr.fileno(): err}
        with closing(family.of(process.pid)):
            deadline = started + limits.wall_seconds
            ended = family.leader
            ending = follow(captures, done=ended, deadline=deadline, limits=limits, cancel=cancel)
            seconds = time.monotonic() - started
        drain(captures)
        code = process.wait()
    return result_of(ending, code, out, err, seconds=seconds, tier="none")


def _start(argv: Sequence[str], cwd: str | None, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            argv,
            bufsize=0,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=env,
            start_new_session=True,
        )
    except OSError as error:
        # The system names the directory where it is that which is missing.
        what = error.filename or argv[0]
        raise SandboxError(f"cannot run {argv[0]!r}: {what!r}: {error.strerror}") from error


_MARK = "ASSAY_COMMAND"
_KILL_SECONDS = 5.0
# Below so many process ids since the leader, each is looked at; above, /proc is listed.
_FEW = 64
# A process has no variables for a moment while it becomes another program; on a busy machine it
# may be stopped in just that moment.
_LOOKS = 20


@frozen
class _Process:
    pid: int
    parent: int
    session: int
    started: int  # clock ticks since boot
    dead: bool


class Family:
    """The processes of one command."""

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


_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def open_inside(root: str, relative: str, flags: int, mode: int = 0o644) -> int:
    """Open a file below a directory; no part of the path may be a link.

    Args:
        root: The directory; its own path is trusted.
        relative: Path below it, without ``..``.
        flags: As for `os.open`; ``O_NOFOLLOW`` and ``O_NONBLOCK`` are added.
        mode: Permissions of a new file.

    Returns:
        A file descriptor.

    Raises:
        OSError: If there is none, or a link stands in the way.
    """
    parent, name = _parent(root, relative)
    try:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, mode, dir_fd=parent)
    finally:
        os.close(parent)


def let_us_in(directory: str) -> None:
    """Undo an agent's `chmod 000 .`, which would make every command our failure to enter it."""
    if sys.platform != "linux":  # no agent's command has run here
        return
    with suppress(OSError):
        opened = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            mode = os.fstat(opened).st_mode
            os.chmod(f"/proc/self/fd/{opened}", stat.S_IMODE(mode) | 0o700)  # noqa: PTH101
        finally:
            os.close(opened)


def make_directory_inside(root: str, relative: str) -> None:
    """Make a directory and those above it, where they are missing.

    Raises:
        OSError: If a link or a file stands in the way.
    """
    os.close(_descend(root, _parts(relative), make=True))


def remove_inside(root: str, relative: str) -> None:
    """Remove a file, a link or a directory with all that is in it; what is missing is fine.

    Raises:
        OSError: If a link stands in the way, or something cannot be removed.
    """
    import shutil

    try:
        parent, name = _parent(root, relative)
    except FileNotFoundError:
        return
    try:
        os.unlink(name, dir_fd=parent)
    except FileNotFoundError:
        return
    except (IsADirectoryError, PermissionError):
        shutil.rmtree(name, dir_fd=parent)
    finally:
        os.close(parent)


def _parent(root: str, relative: str) -> tuple[int, str]:
    *above, name = _parts(relative)
    return _descend(root, above), name


def _descend(root: str, parts: Sequence[str], *, make: bool = False) -> int:
    directory = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    for part in parts:
        try:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=directory)
            inner = os.open(part, _DIRECTORY, dir_fd=directory)
        finally:
            os.close(directory)
        directory = inner
    return directory


def _parts(relative: str) -> tuple[str, ...]:
    parts = PurePath(relative).parts
    if not parts or PurePath(relative).is_absolute() or ".." in parts:
        raise OSError(f"{relative!r} is not a path inside a directory")
    return parts
