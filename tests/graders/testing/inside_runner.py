"""Runs the runner that works inside the sandbox as a process, against a host of our own.

Most runs are forks of a Python that has imported pytest (`inside_zygote`): importing it costs more
than the run. Those with `cold`, and those with flags or plugins of their own, start a new one.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import secrets
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import assay.graders.testing
from assay.graders.testing.channel import FrameReader

_FLAGS = ("-s", "-S")
_LONGEST_RUN = 120.0
INSIDE = Path(assay.graders.testing.__file__).parent / "inside"
CANARY, PLANTED = "c0123456789abcdef", "5eed" * 8


@dataclass
class Heard:
    """What a run said, and how it ended."""

    frames: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    forged: bool = False
    status: int = 0
    output: str = ""

    def of(self, event: str) -> list[dict[str, Any]]:
        return [frame for frame in self.frames if frame["event"] == event]

    @property
    def ids(self) -> list[str]:
        return [name for frame in self.of("collected") for name in frame["ids"]]

    @property
    def errors(self) -> dict[str, str]:
        return {e["id"]: e["message"] for frame in self.of("collected") for e in frame["errors"]}

    @property
    def outcomes(self) -> dict[str, str]:
        return {frame["id"]: frame["outcome"] for frame in self.of("result")}

    @property
    def messages(self) -> dict[str, str]:
        return {frame["id"]: frame["message"] for frame in self.of("result")}

    @property
    def tampering(self) -> list[str]:
        return [frame["what"] for frame in self.of("tamper")]

    @property
    def passed(self) -> set[str]:
        """The tests that passed, none where the host would not believe the run."""
        canaries = self.of("canary")
        held = all(one["outcome"] == "failed" and PLANTED in one["message"] for one in canaries)
        if self.forged or self.tampering or not self.of("end") or not canaries or not held:
            return set()
        return {name for name, outcome in self.outcomes.items() if outcome == "passed"}


class Host:
    """The other end of the channel: serves one brief, checks each line, refuses everyone else."""

    def __init__(self, path: str, brief: Mapping[str, object]) -> None:
        self.heard = Heard()
        self._key = secrets.token_bytes(32)
        self._brief = json.dumps({"v": 1, "key": self._key.hex(), "settle": 20.0, **brief})
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(path)
        self._socket.listen(8)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        link, _ = self._socket.accept()
        threading.Thread(target=self._refuse, daemon=True).start()
        link.sendall(self._brief.encode() + b"\n")
        with link, link.makefile("rb") as lines:
            reader = FrameReader(self._key)
            for line in lines:
                if not reader.feed(line):
                    self.heard.forged = True
                    return
                self.heard.frames.append(json.loads(line.split(b" ", 2)[2]))

    def _refuse(self) -> None:
        while True:
            try:
                link, _ = self._socket.accept()
            except OSError:
                return
            with link:
                link.sendall(b'{"refused": "served already"}\n')

    def finish(self) -> Heard:
        self._thread.join(10)
        self._socket.close()
        return self.heard


class Zygote:
    """A warm Python that runs boot.py in forks."""

    def __init__(self) -> None:
        script = str(Path(__file__).with_name("inside_zygote.py"))
        self._cache = tempfile.TemporaryDirectory(prefix="assay-zygote-")
        self._process = subprocess.Popen(
            [sys.executable, *_FLAGS, script, str(INSIDE), self._cache.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
        )
        atexit.register(self.stop)

    def run(self, command: Sequence[str], cwd: Path, env: Mapping[str, str], out: Path) -> int:
        """Run boot.py with its output going to a file, and give its exit status."""
        asked = {"command": list(command), "cwd": str(cwd), "env": dict(env), "out": str(out)}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        self._process.stdin.flush()
        ready, _, _ = select.select([self._process.stdout], [], [], _LONGEST_RUN)
        answer = self._process.stdout.readline() if ready else b""
        if not answer:
            self.stop()
            zygote.cache_clear()
            raise TimeoutError(f"boot.py has not ended: {out.read_text('utf-8', 'replace')}")
        return int(answer)

    def stop(self) -> None:
        """End it; it has no children but those that it waits for."""
        self._process.kill()
        self._process.communicate()
        self._cache.cleanup()


@functools.cache
def zygote() -> Zygote:
    """The one of this process."""
    return Zygote()


@dataclass
class Runner:
    """Runs boot.py in a workspace."""

    place: Path

    def __call__(
        self,
        files: Mapping[str, str],
        hidden: Mapping[str, str],
        *args: str,
        runner: str = "pytest",
        flags: Sequence[str] = _FLAGS,
        cwd: str = ".",
        env: Mapping[str, str] | None = None,
        cold: bool = False,
        **brief: object,
    ) -> Heard:
        workspace, path = self.place / "workspace", str(self.place / "channel")
        for name, text in {**files, **dict.fromkeys(hidden, "")}.items():
            file = workspace / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        told = {"hidden": dict(hidden), "canary": {"name": CANARY, "planted": PLANTED}}
        host = Host(path, {**told, "seed": 7, "shuffle": True, "skip": [], **brief})
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        variables = {
            **kept,
            "ASSAY_CHANNEL": path,
            "ASSAY_WORKSPACE": str(workspace),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            **(env or {}),
        }
        command = [str(INSIDE / "boot.py"), runner, *args]
        out = self.place / "output"
        out.touch()
        if cold or flags != _FLAGS or not variables["PYTEST_DISABLE_PLUGIN_AUTOLOAD"]:
            with out.open("ab") as file:
                status = subprocess.run(
                    [sys.executable, *flags, *command],
                    cwd=workspace / cwd,
                    env=variables,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=file,
                    timeout=_LONGEST_RUN,
                    check=False,
                ).returncode
        else:
            status = zygote().run(command, workspace / cwd, variables, out)
        heard = host.finish()
        heard.status, heard.output = status, out.read_text("utf-8", "replace")
        return heard


@contextmanager
def workspace() -> Generator[Runner]:
    """A runner in a fresh workspace, the path of whose socket is short enough for the kernel."""
    directory = Path(tempfile.mkdtemp(dir="/tmp")).resolve()
    (directory / "workspace").mkdir()
    try:
        yield Runner(directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


HONEST = """
def add(a, b):
    return a + b

def is_prime(n):
    return n > 1 and all(n % d for d in range(2, int(n ** 0.5) + 1))

def fib(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a
"""
WRONG = """
def add(a, b): return None
def is_prime(n): return None
def fib(n): return None
"""
TESTS = """
from mathkit import add, fib, is_prime

def test_add():
    assert add(2, 3) == 5
    assert add(-1, 1) == 0

def test_is_prime():
    assert [n for n in range(20) if is_prime(n)] == [2, 3, 5, 7, 11, 13, 17, 19]

def test_fib():
    assert [fib(n) for n in range(8)] == [0, 1, 1, 2, 3, 5, 8, 13]
"""
CASES = """
import unittest
from mathkit import add, fib

class MathTest(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(2, 3), 5)

    def test_fib(self):
        self.assertEqual([fib(n) for n in range(5)], [0, 1, 1, 2, 3])
"""
ADD, PRIME, FIB = (f"test_hidden.py::test_{name}" for name in ("add", "is_prime", "fib"))
