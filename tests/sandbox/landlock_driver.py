"""Runs in the emulation of Docker: lets functions attack this process, and says what came of it.

Reads ``{"calls": {name: source}, "loads": {name: source}, "place": directory}`` from standard
input; prints one JSON object.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

from assay.errors import ProgramError
from assay.sandbox.functions import FunctionLimits, FunctionPool, Program

LIMITS = replace(FunctionLimits(), cpu_seconds=0.5, wall_seconds=1.0, load_seconds=2.0)
PATIENT = {"endless_loop": replace(LIMITS, wall_seconds=30.0)}
"""Attacks that are to meet another limit, on a machine that is busy with others too."""
ABSTRACT = f"assay-test-{os.getpid()}"


class Host:
    """What there is to attack."""

    def __init__(self, place: Path) -> None:
        self.file = place / "victim"
        self.file.write_text("mine")
        self.file.chmod(0o666)
        os.utime(self.file, (10**9, 10**9))
        self.child = subprocess.Popen(
            ["/bin/sleep", "100"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.heard: list[str] = []
        self.tcp = self._listen(socket.AF_INET, ("127.0.0.1", 0)).getsockname()[1]
        self.stream, self.datagrams = str(place / "stream"), str(place / "datagrams")
        self._listen(socket.AF_UNIX, self.stream)
        self._listen(socket.AF_UNIX, f"\0{ABSTRACT}", socket.SOCK_DGRAM)
        self._listen(socket.AF_UNIX, self.datagrams, socket.SOCK_DGRAM)
        for name in ("stream", "datagrams"):
            (place / name).chmod(0o777)
        self.before = self._state()

    def _listen(
        self,
        family: socket.AddressFamily,
        address: object,
        kind: socket.SocketKind = socket.SOCK_STREAM,
    ) -> socket.socket:
        listener = socket.socket(family, kind)
        listener.bind(address)  # type: ignore[arg-type]

        def wait() -> None:
            if kind == socket.SOCK_DGRAM:
                listener.recv(100)
            else:
                listener.listen()
                listener.accept()
            self.heard.append(str(address))

        threading.Thread(target=wait, daemon=True).start()
        return listener

    def offer(self) -> dict[str, object]:
        """What an attack is told."""
        return {
            "file": str(self.file),
            "child": self.child.pid,
            "pid": os.getpid(),
            "tcp": self.tcp,
            "stream": self.stream,
            "datagrams": self.datagrams,
            "abstract": ABSTRACT,
        }

    def _state(self) -> list[object]:
        status = self.file.stat()
        library = Path(os.__file__).stat()
        return [
            self.file.read_text(),
            *(status.st_mode, status.st_uid, status.st_mtime, status.st_nlink),
            *(library.st_mode, library.st_uid, library.st_mtime, library.st_size),
            sorted(path.name for path in self.file.parent.iterdir()),
        ]

    def harm(self) -> list[str]:
        """What has been done to it."""
        found = [f"heard on {name}" for name in self.heard]
        if self._state() != self.before:
            found.append(f"files: {self._state()} instead of {self.before}")
        if self.child.poll() is not None or state_of(self.child.pid) in "TtZ":
            found.append("a process was signalled")
        return found


def state_of(pid: int) -> str:
    text = Path(f"/proc/{pid}/stat").read_text()
    return text[text.rindex(")") + 2]


def descendants(root: int = 0) -> list[int]:
    """All processes below one, or below this one, which adopts orphans."""
    found = children(root or os.getpid())
    for pid in found:
        found += children(pid)
    return found


def children(pid: int) -> list[int]:
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(word) for word in path.read_text().split()]
    return found


async def attacked(name: str, source: str, host: Host) -> dict[str, object]:
    limits = PATIENT.get(name, LIMITS)
    offer = host.offer()
    payloads = [json.dumps({"attack": on, "host": offer}).encode() for on in (False, True, False)]
    async with FunctionPool(Program(source=source), workers=1, limits=limits) as pool:
        outcomes = [await pool.call(payload) for payload in payloads]
        tier = pool.tier
    attack = outcomes[1]
    return {
        "tier": tier,
        "status": attack.status,
        "score": attack.score,
        "message": attack.message,
        "output": attack.output,
        "honest": [outcomes[0].score, outcomes[2].score],
    }


async def loaded(source: str, host: Host) -> dict[str, object]:
    pool = FunctionPool(
        Program(source=source.replace("HOST", repr(host.offer()))), workers=1, limits=LIMITS
    )
    try:
        await pool.start()
    except ProgramError as error:
        return {"tier": pool.tier, "error": error.message}
    finally:
        await pool.close()
    return {"tier": pool.tier, "error": ""}


async def interrupted() -> None:
    """Kill a worker, and nothing else, in the middle of a call, as a host that gives up does."""
    source = "import time\ndef grade(x):\n    time.sleep(60)\n"
    pool = FunctionPool(Program(source=source), workers=1, limits=LIMITS)
    await pool.start()
    (worker,) = pool.stats.pids()
    call = asyncio.ensure_future(pool.call(b"{}"))
    await asyncio.sleep(0.2)  # long enough for it to begin, far from its limit
    os.kill(worker, signal.SIGKILL)
    call.cancel()
    await pool.close()


def remaining(child: int) -> int:
    """How many processes are left a moment after the last pool was closed."""
    deadline = time.monotonic() + 5
    while (left := set(descendants()) - {child}) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(ChildProcessError):  # it is not ours, or not yet
                os.waitpid(pid, os.WNOHANG)
        time.sleep(0.02)
    return len(left)


async def main() -> None:
    """Run everything that was asked for."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    orders = json.load(sys.stdin)
    host = Host(Path(orders["place"]))
    found: dict[str, dict[str, object]] = {}
    # A pool that stays open keeps workers in reserve for the others.
    async with FunctionPool(Program(source="def grade(x):\n    return 0.5\n"), workers=1) as pool:
        await pool.start()
        for name, source in orders["calls"].items():
            found[name] = await attacked(name, source, host)
            found[name]["harm"] = host.harm()
        for name, source in orders["loads"].items():
            found[name] = await loaded(source, host)
            found[name]["harm"] = host.harm()
    await asyncio.sleep(0.1)
    orphans = len(set(descendants()) - {host.child.pid})
    await interrupted()
    left = remaining(host.child.pid)
    host.child.kill()
    host.child.wait()
    json.dump({"found": found, "orphans": orphans, "left": left}, sys.stdout)


if __name__ == "__main__":
    asyncio.run(main())
