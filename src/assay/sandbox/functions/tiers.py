"""Which isolation function workers get on this machine, proven before anything is trusted to it.

A canary, a function like any other but ours, tries what a hostile one would try. A tier is used
only if all of it fails. Nothing else decides: no variable and no setting turns isolation off.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from functools import lru_cache
from typing import Literal

from assay.errors import InputError, SandboxError, SandboxUnavailableError
from assay.sandbox.checks import SandboxCheck, SandboxReport
from assay.sandbox.command import need_linux
from assay.sandbox.functions.launch import LOSSES
from assay.sandbox.functions.program import FunctionLimits, Program, TierChoice
from assay.sandbox.functions.session import start
from assay.scratch import scratch

Tier = Literal["bwrap", "landlock"]

_TIERS: tuple[Tier, ...] = ("bwrap", "landlock")
_LIMITS = FunctionLimits()
_BROKEN = "this kernel does not isolate as it should: do not run untrusted code here"
_CANARY_PREFIX = "assay-canary-"
_CANARY = """
import ctypes, os, socket, time

def grade(payload):
    found = []

    def check(name, attempt):
        try:
            attempt()
        except (OSError, MemoryError):
            return
        found.append(name)

    if payload["executes"]:
        os.execv("/bin/true", ["true"])
    check("reads files of the host", lambda: open(payload["secret"]).close())
    check("writes files of the host", lambda: open(payload["secret"], "a").close())
    check("changes modes of files", lambda: os.chmod(payload["secret"], 0o600))
    check("creates files", lambda: open(payload["secret"] + ".new", "w").close())
    check("opens sockets", lambda: socket.socket().close())
    check("signals the host", lambda: os.kill(payload["host"], 0))
    check("has the memory of the machine", lambda: bytearray(payload["memory"]))
    if ctypes.CDLL(None).unshare(0x10000000) == 0:
        found.append("makes namespaces")
    started, parent = 0, os.getpid()
    try:
        while started < payload["processes"]:
            if os.fork() == 0:
                while os.getppid() == parent:
                    time.sleep(0.01)
                os._exit(0)  # where nothing isolates, nothing kills it either
            started += 1
        found.append("starts any number of processes")
    except OSError:
        pass
    if started and not payload["may_fork"]:
        found.append("starts processes")
    if found:
        raise RuntimeError("a function " + ", ".join(found))
    return 1.0
"""


def function_tier(choice: TierChoice = "auto") -> Tier:
    """The tier that function workers get; proven once in each process, in about 0.2 s. Blocks.

    ``choice``: ``auto`` for the strongest that works: ``bwrap``, else ``landlock`` with a warning
    in the log; or one of them.
    """
    if choice != "auto":
        if choice not in _TIERS:
            raise InputError(f"unknown tier {choice!r}", hint="auto, bwrap or landlock")
        _prove(choice)
        return choice
    need_linux()
    refusals: list[SandboxUnavailableError] = []
    for tier in _TIERS:
        try:
            _prove(tier)
        except SandboxUnavailableError as error:
            refusals.append(error)
            continue
        if refusals:
            _warn(refusals[0].message, refusals[0].hint)
        return tier
    said = "; ".join(f"{tier}: {why.message}" for tier, why in zip(_TIERS, refusals, strict=True))
    hints = [why.hint for why in refusals if why.hint]
    raise SandboxUnavailableError(
        f"nothing isolates functions on this machine: {said}", hint="; or: ".join(hints)
    )


def function_tiers() -> SandboxReport:
    """What this machine can do for functions: both tiers, and the one that they get."""
    checks: list[SandboxCheck] = []
    if sys.platform != "linux":  # which `probe` says
        return SandboxReport(tier=None, checks=())
    for tier in _TIERS:
        try:
            seconds = _prove(tier)
        except SandboxUnavailableError as error:
            checks.append(SandboxCheck(name=tier, ok=False, detail=error.message, fix=error.hint))
        else:
            detail = f"isolates; proven in {seconds * 1000:.0f} ms"
            checks.append(SandboxCheck(name=tier, ok=True, detail=detail))
    working = [check.name for check in checks if check.ok]
    return SandboxReport(tier=working[0] if working else None, checks=tuple(checks))


@lru_cache(maxsize=2)
def _prove(tier: Tier) -> float:
    """Let the canary try a tier. What fails is tried again next time."""
    started = time.monotonic()
    with scratch(_CANARY_PREFIX) as place:
        # So that nothing but the sandbox keeps the canary from it.
        place.chmod(0o755)
        secret = place / "secret"
        secret.touch(0o666)
        secret.chmod(0o666)
        try:
            _release_canary(tier, str(secret))
        except SandboxUnavailableError:
            raise
        except SandboxError as error:
            raise SandboxUnavailableError(error.message, hint=error.hint) from error
    return time.monotonic() - started


def _release_canary(tier: Tier, secret: str) -> None:
    payload = {
        "secret": secret,
        "host": os.getpid(),
        "memory": 2 * _LIMITS.memory_bytes,
        "processes": 4 * _LIMITS.processes,
        "may_fork": tier == "bwrap",
    }
    # What starts processes comes last: a worker may end after that.
    payloads = [json.dumps({**payload, "executes": first}).encode() for first in (True, False)]
    session = start(tier)
    try:
        session.load(Program(source=_CANARY), "call", _LIMITS)
        executing, computing = session.run(payloads).outcomes
    except InputError as error:
        raise SandboxError(f"the canary cannot be loaded: {error}") from error
    finally:
        session.kill()
    if computing.status != "ok" or computing.score != 1.0:
        said = computing.message or f"the canary ended with {computing.status}"
        raise SandboxUnavailableError(said, hint=_BROKEN)
    if executing.status != "error":
        raise SandboxUnavailableError("a function starts programs", hint=_BROKEN)


@lru_cache(maxsize=1)
def _warn(message: str, hint: str) -> None:
    logging.getLogger("assay.sandbox").warning(
        "functions are isolated by Landlock instead of bubblewrap: %s. %s. To have bubblewrap: %s",
        LOSSES,
        message,
        hint,
    )
