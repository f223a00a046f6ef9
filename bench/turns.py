"""Measure several things in turn, round by round, so that all see the same machine."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

__all__ = ["OURS", "Cost", "clean_environment", "cost_of", "in_turn"]

T = TypeVar("T")

OURS = Path(sys.executable).parent
"""The directory of our own programs."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a whole process cost, start-up and children included.

    Attributes:
        cpu: User and system seconds.
        wall: Seconds from start to end.
    """

    cpu: float
    wall: float


def in_turn(rounds: int, things: Mapping[str, Callable[[], T]]) -> dict[str, list[T]]:
    """Do every thing once per round; a first round, which fills caches, is thrown away.

    Every other round goes backwards, so that none always follows the same neighbour.
    """
    found: dict[str, list[T]] = {name: [] for name in things}
    for number in range(rounds + 1):
        names = list(things)
        if number % 2:
            names.reverse()
        for name in names:
            result = things[name]()
            if number:
                found[name].append(result)
    return found


def cost_of(
    argv: Sequence[str], *, cwd: Path, env: Mapping[str, str] | None = None, expect: str = ""
) -> Cost:
    """Run a command to its end and take the operating system's own account of it.

    Args:
        argv: The command.
        cwd: Where.
        env: Variables beside those of `clean_environment`.
        expect: What must stand in its output, to be sure that it did its work.

    Raises:
        RuntimeError: If it failed or did not say what was expected.
    """
    variables = {**clean_environment(cwd), **(env or {})}
    before, started = _children(), time.perf_counter()
    done = subprocess.run(
        argv,
        cwd=cwd,
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    cost = Cost(cpu=_children() - before, wall=time.perf_counter() - started)
    if done.returncode != 0 or expect not in done.stdout + done.stderr:
        tail = (done.stderr or done.stdout).strip()[-1000:]
        raise RuntimeError(f"{' '.join(argv)} ended with {done.returncode}:\n{tail}")
    return cost


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def clean_environment(home: Path) -> dict[str, str]:
    """The same few variables for everybody; no key and no setting of the user's."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "HUD_TELEMETRY_ENABLED": "false",
    }
