"""What a sandboxed command costs over bubblewrap alone."""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from bench.peers import Peer
from bench.rows import MEASURES, Goal, Row
from bench.turns import Cost, in_turn

__all__ = ["measure"]

_COMMAND = ["/bin/bash", "-c", "true"]
_BARE = ["bwrap", "--ro-bind", "/", "/", "--unshare-all", "--die-with-parent", *_COMMAND]
_ENV = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}  # as inside of the sandbox
_SET_SUBREAPER = 36


def measure(peers: Mapping[str, Peer], scratch: Path, *, quick: bool) -> list[Row]:
    """CPU and time of one ``bash -c true``, one after the other, from a process that runs many."""
    from assay.sandbox import run_command_sync

    del peers

    workspace = scratch / "workspace"
    workspace.mkdir(exist_ok=True)
    # bubblewrap does not wait for the first process of its sandbox: without this, its CPU time and
    # that of the command would be counted on our side only.
    libc = ctypes.CDLL(None)
    libc.prctl(_SET_SUBREAPER, 1, 0, 0, 0)
    try:
        count = 5 if quick else 20
        sandboxed = partial(run_command_sync, _COMMAND, workspace=str(workspace))
        things = {
            "bare": partial(_costs, _run_bare, count),
            "sandbox": partial(_costs, lambda: _check(sandboxed().exit_code), count),
        }
        costs = in_turn(5 if quick else 15, things)
    finally:
        libc.prctl(_SET_SUBREAPER, 0, 0, 0, 0)
    return [
        Row(
            what="run_command / bare bwrap",
            measure=counted,
            unit="ms",
            ours=[_of(cost, counted) for cost in costs["sandbox"]],
            peer=[_of(cost, counted) for cost in costs["bare"]],
            beside="bwrap",
            goal=Goal("at_most", 2),
            over=True,
        )
        for counted in MEASURES
    ]


def _of(cost: Cost, counted: str) -> float:
    return cost.wall if counted == "wall" else cost.cpu


def _costs(run: Callable[[], None], count: int) -> Cost:
    before, began = _cpu(), time.perf_counter()
    for _ in range(count):
        run()
    wall = time.perf_counter() - began
    return Cost(cpu=(_cpu() - before) / count, wall=wall / count)


def _run_bare() -> None:
    _check(subprocess.run(_BARE, env=_ENV, check=False, capture_output=True).returncode)
    for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        if b"bwrap" in Path(f"/proc/{pid}/comm").read_bytes():
            with suppress(ChildProcessError):
                os.waitpid(int(pid), 0)


def _check(code: int | None) -> None:
    if code:
        raise RuntimeError(f"the command failed with {code}")


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
