"""What a command may use, what it sees, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from assay.errors import InputError

__all__ = ["CommandResult", "Limits", "Mount", "check_command"]

_MIB = 1024 * 1024
_OWN_PLACES = ("/workspace", "/proc", "/dev", "/usr", "/etc")


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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


def check_command(argv: Sequence[str], env: Mapping[str, str] | None) -> None:
    """Refuse what no system call can take.

    Raises:
        InputError: An empty command, a lone string, a NUL character or an impossible variable name.
    """
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
