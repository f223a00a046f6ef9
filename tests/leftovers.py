"""Nothing of the tests stays behind: who runs them is watched from outside, to the very end.

`watch` splits the process that was asked to run the tests. The new one runs them; the old one waits
for it. Linux gives every process whose parent has died to the old one, also what left its session
and cleared its environment, so that what outlives the tests is known to be of theirs, whatever
else the machine is doing. Their files for a while lie in a directory of their own.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from assay.scratch import sweep

__all__ = ["watch"]

_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER, of `prctl(2)`."""
_PARENT_DEATH = 1
"""PR_SET_PDEATHSIG, of `prctl(2)`."""
_NAP_SECONDS = 0.02
_FAILED = 1


def watch(patience: float = 10.0) -> None:
    """Return in a new process; the caller's ends when that has, with its exit status.

    If anything is left of it, the exit status is 1 and standard error says what.

    Args:
        patience: How long what is ending may take to end, in seconds.
    """
    scratch = tempfile.mkdtemp(prefix="t-")  # short: sockets are made in it
    Path(scratch).chmod(0o1777)  # as what it stands for: some of what tests start is of other users
    # What pytest gives to tests is removed by itself, and kept where they failed.
    os.environ["PYTEST_DEBUG_TEMPROOT"] = tempfile.gettempdir()
    os.environ["TMPDIR"] = tempfile.tempdir = scratch
    call = ctypes.CDLL(None, use_errno=True).prctl
    call(_SUBREAPER, 1, 0, 0, 0)
    ours = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    if not (tests := os.fork()):
        call(_SUBREAPER, 0, 0, 0, 0)
        call(_PARENT_DEATH, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != ours:
            os._exit(_FAILED)
        return
    status = _FAILED
    try:
        status = _follow(tests)
        found = _Left.behind(scratch, patience)
        if found:
            sys.stderr.write("\n  ".join(["\nleft behind by the tests:", *found]) + "\n")
            status = status or _FAILED
        shutil.rmtree(scratch, ignore_errors=True)
    finally:
        sys.stderr.flush()
        os._exit(status)


def _follow(tests: int) -> int:
    """Wait for the tests, and for whoever loses its parent meanwhile; the exit status."""

    def pass_on(number: int, _: FrameType | None) -> None:
        os.kill(tests, number)

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal tells the tests, too
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, pass_on)
    while True:
        pid, status = os.wait()
        if pid == tests:
            code = os.waitstatus_to_exitcode(status)
            return 128 - code if code < 0 else code


@dataclass(slots=True)
class _Left:
    """What is left of the tests.

    Attributes:
        scratch: Where their files were to be.
        lines: What was found.
    """

    scratch: str
    lines: list[str] = field(default_factory=list[str])

    @classmethod
    def behind(cls, scratch: str, patience: float) -> list[str]:
        """Find it, and end what lives."""
        left = cls(scratch)
        left._processes(time.monotonic() + patience)
        left._mounts()
        left._files()
        return left.lines

    def _processes(self, deadline: float) -> None:
        while (living := _descendants()) and time.monotonic() < deadline:
            time.sleep(_NAP_SECONDS)
        self.lines += [f"process {pid}: {_told(pid)}" for pid in living]
        while living := _descendants():  # children of those that are killed come to us
            for pid in living:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            time.sleep(_NAP_SECONDS)

    def _mounts(self) -> None:
        for line in Path("/proc/self/mountinfo").read_text("utf-8").splitlines():
            if self.scratch in line:
                self.lines.append(f"mount {line.split()[4]}")

    def _files(self) -> None:
        # Of workers that were killed while they tried their sandbox: the next one removes it.
        sweep("assay-canary-", self.scratch)
        for path in sorted(Path(self.scratch).iterdir()):
            # Python's `tempfile` tries a directory by a file, and a test may kill it between.
            if re.fullmatch("[a-z0-9_]{8}", path.name) and path.is_file() and _is_trial(path):
                continue
            self.lines.append(f"file {path.name} (of user {path.lstat().st_uid})")


def _is_trial(path: Path) -> bool:
    return path.read_bytes() in (b"", b"blat")


def _descendants() -> list[int]:
    """Processes below this one that live."""
    while True:  # those that have ended and are ours to bury
        try:
            if not os.waitpid(-1, os.WNOHANG)[0]:
                break
        except ChildProcessError:
            break
    below: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text("utf-8", "replace").rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state not in "ZX":
            below.setdefault(int(parent), []).append(int(path.parent.name))
    found: list[int] = []
    waiting = [os.getpid()]
    while waiting:
        children = below.get(waiting.pop(), [])
        found += children
        waiting += children
    return found


def _told(pid: int) -> str:
    """What a process is, and which test began it."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        surroundings = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        user = Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        return "has just ended"
    what = b" ".join(words).decode("utf-8", "replace")[:200]
    prefix = b"PYTEST_CURRENT_TEST="
    test = [word.removeprefix(prefix) for word in surroundings if word.startswith(prefix)]
    of = f", begun in {test[0].decode('utf-8', 'replace')}" if test else ""
    return f"{what} (of user {user}{of})"
