"""Servers that are measured, each a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from bench.trainer_rewards import tree_cpu

__all__ = ["OURS", "SERVE", "ServerProcess", "new_key", "running", "small_disk", "started"]

OURS = "from assay.cli.main import main; main()"
SERVE = ["serve", "--port", "0", "--json", "--set", "quiet=true"]


def new_key(home: Path) -> str:
    """A key for everything in the store of a home, which is made with it."""
    done = subprocess.run(
        [sys.executable, "-c", OURS, "server", "create", "keys", "bench", "--role", "admin",
         "--project", "*", "--json"],
        env={**os.environ, "ASSAY_DB": str(home)},
        capture_output=True,
        text=True,
        check=True,
    )  # fmt: skip
    return str(json.loads(done.stdout)["token"])


@dataclass(slots=True)
class ServerProcess:
    """A server as a process of its own."""

    url: str
    popen: subprocess.Popen[str]
    said: Mapping[str, str] = field(default_factory=dict[str, str])

    def cpu(self) -> float:
        """Seconds of CPU that it and its children have used."""
        return tree_cpu(self.popen.pid)

    def pss(self) -> int:
        """KiB of memory, what it shares with others in proportion."""
        rollup = Path(f"/proc/{self.popen.pid}/smaps_rollup").read_text()
        return int(rollup.partition("\nPss:")[2].split()[0])

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it, and wait until it has."""
        self.popen.send_signal(how)
        self.popen.wait(timeout=60)
        for stream in (self.popen.stdin, self.popen.stdout):
            if stream is not None:
                stream.close()


def started(
    code: str,
    arguments: list[str],
    home: Path,
    python: str = sys.executable,
    log: IO[str] | None = None,
) -> ServerProcess:
    """Start a server, and wait until it has printed its address: as JSON, or as people read it.

    Args:
        code: Of the server, in Python.
        arguments: Of its command line.
        home: Where its store is.
        python: Runs it.
        log: Where its standard error goes; this process's own by default.
    """
    popen = subprocess.Popen(
        [python, "-c", code, *arguments],
        env={**os.environ, "ASSAY_DB": str(home)},
        stdin=subprocess.PIPE,  # some end with it
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
    )
    try:
        for line in popen.stdout or ():
            if line.startswith("{"):
                said = json.loads(line)
                return ServerProcess(said["url"], popen, said)
            if line.startswith("serving "):
                return ServerProcess(line.partition(" at ")[2].split()[0], popen)
    except BaseException:  # also Ctrl-C: nobody else knows it
        popen.kill()
        popen.wait()
        raise
    popen.kill()
    popen.wait()
    raise RuntimeError("a server did not start")


@contextmanager
def running(
    code: str, arguments: list[str], home: Path, python: str = sys.executable
) -> Generator[ServerProcess]:
    """A server for as long as the block lasts."""
    process = started(code, arguments, home, python)
    try:
        yield process
    finally:
        if process.popen.poll() is None:
            process.end()


@contextmanager
def small_disk(parent: str | None, megabytes: int) -> Generator[tuple[Path, bool]]:
    """A directory with a ``home`` in it; whether that is a disk of its own, which only root gets.

    Temporary files of this process and of those that it starts are in it, too.
    """
    base = Path(tempfile.mkdtemp(prefix="assay-bench-", dir=parent))
    home, scratch = base / "home", base / "tmp"
    home.mkdir()
    scratch.mkdir()
    os.environ["TMPDIR"] = tempfile.tempdir = str(scratch)  # of what is killed, too
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "assay-bench", str(home)]
    is_mounted = not os.geteuid() and subprocess.run(mount, check=False).returncode == 0
    try:
        yield base, is_mounted
    finally:
        if is_mounted and subprocess.run(["umount", str(home)], check=False).returncode:
            subprocess.run(["umount", "--lazy", str(home)], check=True)
        shutil.rmtree(base)
