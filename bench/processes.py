"""Servers that are measured, each a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.trainer_rewards import tree_cpu

__all__ = ["OURS", "ServerProcess", "running", "started"]

OURS = "from assay.cli.main import main; main()"


@dataclass(slots=True)
class ServerProcess:
    """A server as a process of its own."""

    url: str
    popen: subprocess.Popen[str]
    said: Mapping[str, str] = field(default_factory=dict[str, str])

    def cpu(self) -> float:
        """Seconds of CPU that it and its children have used."""
        return tree_cpu(self.popen.pid)

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it, and wait until it has."""
        self.popen.send_signal(how)
        self.popen.wait(timeout=60)
        for stream in (self.popen.stdin, self.popen.stdout):
            if stream is not None:
                stream.close()


def started(
    code: str, arguments: list[str], home: Path, python: str = sys.executable
) -> ServerProcess:
    """Start a server, and wait until it has printed its address: as JSON, or as people read it."""
    popen = subprocess.Popen(
        [python, "-c", code, *arguments],
        env={**os.environ, "ASSAY_DB": str(home)},
        stdin=subprocess.PIPE,  # some end with it
        stdout=subprocess.PIPE,
        text=True,
    )
    for line in popen.stdout or ():
        if line.startswith("{"):
            said = json.loads(line)
            return ServerProcess(said["url"], popen, said)
        if line.startswith("serving "):
            return ServerProcess(line.partition(" at ")[2].split()[0], popen)
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
