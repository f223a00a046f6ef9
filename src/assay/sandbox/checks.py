"""Find out which sandbox works on this machine, and what to do if none does."""

from __future__ import annotations

import socket
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from assay.errors import AssayError
from assay.sandbox import bubblewrap
from assay.sandbox.command import Door, Limits
from assay.sandbox.run import run_command_sync

# Each line is `name=what was found`. The last one fills the process limit, so nothing can follow.
_CANARY = """
[ -e "$SECRET" ] && echo secret=seen || echo secret=hidden
echo files=$(stat -f -c %T /workspace)
grep -E '^(Seccomp|NoNewPrivs|CapEff):' /proc/self/status | tr -d '\\t' | tr : =
echo interfaces=$(tail -n +3 /proc/net/dev | wc -l)
unshare -Ur true 2>/dev/null && echo namespaces=open || echo namespaces=closed
(i=0; while [ $i -lt 64 ]; do sleep 9 & i=$((i+1)); done) 2>/dev/null && echo processes=unbounded
"""
_DOOR = 8377
# In bash's own words: no other program that can connect is everywhere.
_KNOCK = f"echo knock > /dev/tcp/127.0.0.1/{_DOOR}; tail -n +3 /proc/net/dev | wc -l"
_KNOCK_SECONDS = 5.0
_EXPECTED = {
    "secret": "hidden",
    "NoNewPrivs": "1",
    "CapEff": "0000000000000000",
    "interfaces": "1",
    "namespaces": "closed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxCheck:
    """One thing a sandbox needs.

    Attributes:
        name: What was looked at.
        ok: Whether it is as it should be.
        detail: What was found.
        fix: What to do about it; empty if all is well.
    """

    name: str
    ok: bool
    detail: str
    fix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxReport:
    """What this machine can do.

    Attributes:
        tier: The tier that commands get, or None if nothing may be run.
        checks: What was looked at, in the order of dependence.
    """

    tier: str | None
    checks: tuple[SandboxCheck, ...]


@lru_cache(maxsize=1)
def probe() -> SandboxReport:
    """Run a real command in the sandbox and see what it can reach.

    Blocks for about a tenth of a second; the answer is kept for the life of the process.
    """
    checks = [_bubblewrap()]
    if sys.platform == "linux":
        checks.append(_user_namespaces())
    tier = None
    if all(check.ok for check in checks):
        canary = _canary()
        checks += canary
        # An overlay is a matter of speed: without one the workspace is copied.
        if all(check.ok for check in canary if check.name != "overlay"):
            tier = "bwrap"
            checks.append(_door())  # not all commands have one
    return SandboxReport(tier=tier, checks=tuple(checks))


def _bubblewrap() -> SandboxCheck:
    try:
        path = bubblewrap.find()
        words = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=10, check=True
        ).stdout.split()
    except AssayError as error:
        return SandboxCheck(name="bubblewrap", ok=False, detail=error.message, fix=error.hint)
    except (OSError, subprocess.SubprocessError) as error:
        return SandboxCheck(name="bubblewrap", ok=False, detail=str(error), fix=bubblewrap.INSTALL)
    return SandboxCheck(name="bubblewrap", ok=True, detail=f"{' '.join(words)} at {path}")


def _user_namespaces() -> SandboxCheck:
    # In the interpreter that will ask for it: AppArmor judges by program.
    code = "import ctypes, os; os._exit(-ctypes.CDLL(None).unshare(0x10000000))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], check=False)
    fix = bubblewrap.namespaces() if done.returncode else ""
    return _check("user namespaces", not done.returncode, "allowed", "the kernel refuses", fix)


def _canary() -> list[SandboxCheck]:
    import tempfile

    with tempfile.TemporaryDirectory(prefix="assay-probe-") as place:
        secret = Path(place, "secret")
        secret.touch()
        workspace = Path(place, "workspace")
        workspace.mkdir()
        try:
            result = run_command_sync(
                ["/bin/sh", "-c", _CANARY],
                workspace=str(workspace),
                env={"SECRET": str(secret)},
                limits=Limits(wall_seconds=30, processes=32),
            )
        except AssayError as error:
            return [SandboxCheck(name="canary", ok=False, detail=error.message, fix=error.hint)]
    found = dict(line.split("=", 1) for line in result.stdout.splitlines() if "=" in line)
    wrong = [
        f"{name} is {found.get(name)}" for name in _EXPECTED if found.get(name) != _EXPECTED[name]
    ]
    isolated = f"isolated, in {result.seconds * 1000:.0f} ms"
    filtered, bounded = found.get("Seccomp") == "2", "processes" not in found
    layered, older = (
        found.get("files") == "overlayfs",
        "Linux 5.11 or newer; on 5.12 or newer, as root",
    )
    unfit = "this kernel does not isolate as it should: do not run untrusted code here"
    unbounded, copied = "a fork bomb would not be stopped", "workspaces are copied (slower)"
    kernel = "a kernel with CONFIG_SECCOMP_FILTER"
    return [
        _check("canary", not wrong, isolated, "; ".join(wrong), unfit),
        _check("seccomp", filtered, "filter active", "no filter", kernel),
        _check("process limit", bounded, "holds", unbounded, "run assay as an ordinary user"),
        _check("overlay", layered, "workspaces are layered", copied, older),
    ]


def _check(name: str, ok: bool, well: str, ill: str, fix: str) -> SandboxCheck:  # noqa: FBT001
    return SandboxCheck(name=name, ok=ok, detail=well if ok else ill, fix="" if ok else fix)


def _door() -> SandboxCheck:
    opened: list[socket.socket] = []
    try:
        result = run_command_sync(
            ["/bin/bash", "-c", _KNOCK],
            workspace=None,
            door=Door(port=_DOOR, on_open=opened.append),
            limits=Limits(wall_seconds=30),
        )
        wrong = result.stderr.strip() or _unheard(opened[0])
        if not wrong and result.stdout.split() != ["1"]:
            wrong = f"leads to a network of {result.stdout.strip()} interfaces"
    except (AssayError, OSError) as error:
        wrong = str(error)
    finally:
        for listener in opened:
            listener.close()
    well, fix = "commands reach this process, and nothing else", "user.max_net_namespaces above 0"
    return _check("door", not wrong, well, wrong, f"{fix}, and /bin/bash")


def _unheard(listener: socket.socket) -> str:
    """What is wrong with a door at which somebody has knocked; "" for nothing."""
    listener.settimeout(_KNOCK_SECONDS)
    guest, _ = listener.accept()
    with guest:
        guest.settimeout(_KNOCK_SECONDS)
        heard = guest.recv(100)
    return "" if heard == b"knock\n" else f"{heard!r} was heard at it"
