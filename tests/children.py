"""Processes that a test starts: whatever becomes of the test, they end with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import pytest

__all__ = ["Children", "alone", "of_peers", "printed", "until"]

_SECONDS = 120.0
_PEERS = Path(__file__).parents[1] / ".bench"


class Children:
    """Starts processes; at the end of ``with`` they and their groups are killed and reaped."""

    def __init__(self) -> None:
        self._started: list[subprocess.Popen[str]] = []

    def start(
        self,
        command: Sequence[str | Path],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: int | IO[str] = subprocess.DEVNULL,
        stdout: int | IO[str] | None = subprocess.PIPE,
        stderr: int | IO[str] | None = subprocess.PIPE,
    ) -> subprocess.Popen[str]:
        """Start a process with a group of its own; by default its output comes through pipes."""
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            text=True,
            start_new_session=True,
        )
        self._started.append(process)
        return process

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for process in self._started:
            with suppress(ProcessLookupError):  # of the group of one that ended some may live
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=_SECONDS)
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()


def printed(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
    ends: int = 0,
    seconds: float = _SECONDS,
) -> str:
    """Run a program to its end; what it prints.

    Raises:
        AssertionError: It ended with another status.
    """
    done = subprocess.run(
        command,
        cwd=cwd,
        env=env,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == ends, done.stdout[-2000:] + done.stderr[-3000:]
    return done.stdout


def of_peers(environment: str, name: str, program: str = "python") -> Path:
    """A program of an environment that `tools/agents.sh` installs; skips the test without it."""
    found = _PEERS / environment / "bin" / program
    if not found.exists():
        pytest.skip(f"{name} is not installed; sh tools/agents.sh installs it")
    return found


def alone(code: str) -> str:
    """Run code in a new interpreter, which has nothing of other tests in it; what it prints."""
    return printed([sys.executable, "-c", textwrap.dedent(code)])


def until(holds: Callable[[], object], seconds: float = _SECONDS, *, every: float = 0.005) -> None:
    """Look again and again, until something holds that nobody tells us of.

    Args:
        holds: Whether it does.
        seconds: How long it may take.
        every: How long to wait between; more where to look is work for whom we wait for.

    Raises:
        AssertionError: It did not hold in time.
    """
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"it did not hold within {seconds} s"
        time.sleep(every)
