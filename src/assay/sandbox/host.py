"""Run a command without isolation, but leave nothing of it behind.

For commands that the *user* trusts: set-up steps, command-line agents that bring their own sandbox.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Literal

from assay.errors import SandboxError
from assay.sandbox.command import CommandResult, Limits, check_command
from assay.sandbox.family import Family
from assay.sandbox.streams import Capture, drain, follow, in_thread

__all__ = ["remove_tree", "run_on_host", "run_on_host_sync"]

_REMOVE = 'rm -rf -- "$1" || { chmod -R u+rwX -- "$1"; rm -rf -- "$1"; }'


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
    check_command(argv, env)
    return await in_thread(lambda cancel: _run(argv, cwd, env, limits or Limits(), cancel))


async def remove_tree(directory: str) -> None:
    """Remove a directory that hostile commands wrote to; never fails for what they left there.

    Python's own removal recurses: a few thousand directories inside each other are a
    RecursionError, by which a failed command would become a grader that could not judge.
    """
    await run_on_host(["/bin/sh", "-c", _REMOVE, "sh", directory])


def run_on_host_sync(
    argv: Sequence[str],
    *,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    limits: Limits | None = None,
) -> CommandResult:
    """Run a command on the host and block until it is done; see `run_on_host`."""
    check_command(argv, env)
    return _run(argv, cwd, env, limits or Limits(), None)


def _run(
    argv: Sequence[str],
    cwd: str | None,
    env: Mapping[str, str] | None,
    limits: Limits,
    cancel: int | None,
) -> CommandResult:
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
    status: Literal["exited", "timed_out", "output_limit"] = "exited"
    if ending != "done":
        status = "output_limit" if ending == "output_limit" else "timed_out"
    return CommandResult(
        status=status,
        exit_code=code if status == "exited" else None,
        stdout=out.text(),
        stderr=err.text(),
        truncated=out.truncated or err.truncated,
        seconds=seconds,
        tier="none",
    )


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
