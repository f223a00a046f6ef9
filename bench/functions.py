"""What a call of a sandboxed function costs, beside a cold start and beside a bare fork."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from statistics import median, quantiles

from assay.sandbox.functions import FunctionLimits, FunctionPool, Isolation, Program
from assay.sandbox.functions.launch import interpreter, isolated, spare_id
from bench.peers import Peer
from bench.rows import Goal, Row
from bench.turns import in_turn

__all__ = ["measure"]

# A grader, and the floor: what the same process, with the same program loaded, needs for a fork
# that answers through a pipe, and does nothing else at all.
_SOURCE = """
import os, time

async def grade(thread):
    text = thread["messages"][-1]["content"]
    if text.startswith("floor "):
        count = int(text[6:])
        answers, answer = os.pipe()
        started = time.perf_counter()
        for _ in range(count):
            pid = os.fork()
            if pid == 0:
                os.write(answer, b"0.5")
                os._exit(0)
            os.read(answers, 3)
            os.waitpid(pid, 0)
        return (time.perf_counter() - started) / count
    return 1.0 if "42" in text else 0.0
"""
_PROGRAM = Program(source=_SOURCE)
_LIMITS = FunctionLimits(cpu_seconds=60.0, wall_seconds=120.0)
_COLD, _FLOOR = "a cold bubblewrap and Python", "a bare fork of the same process that answers"
_CALL, _BATCH = "isolation per call", "isolation per batch"


def _payload(text: str) -> bytes:
    messages = [{"role": "user", "content": "?"}, {"role": "assistant", "content": text}]
    return json.dumps({"messages": messages}).encode()


_COMPLETION = _payload("x" * 950 + " 42")  # about 1 kB


class _Pools:
    """Warm pools, used from outside of the event loop that they are used on."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self._runner = runner
        self._stack = AsyncExitStack()

    def add(self, isolation: Isolation, workers: int) -> FunctionPool:
        pool = FunctionPool(
            _PROGRAM, isolation=isolation, workers=workers, limits=_LIMITS, tier="bwrap"
        )
        self._runner.run(self._stack.enter_async_context(pool))
        self.seconds(pool, 500)
        return pool

    def seconds(self, pool: FunctionPool, count: int) -> float:
        """Seconds per call of so many at once."""
        started = time.perf_counter()
        outcomes = self._runner.run(pool.call_many([_COMPLETION] * count))
        seconds = (time.perf_counter() - started) / count
        _check(ok=all(outcome.score == 1.0 for outcome in outcomes), what=str(outcomes[0]))
        return seconds

    def floor(self, pool: FunctionPool, count: int) -> float:
        """Seconds of a bare fork, measured within a call."""
        outcome = self._runner.run(pool.call(_payload(f"floor {count}")))
        _check(ok=outcome.score is not None, what=str(outcome))
        return outcome.score or 0.0

    def latency(self, pool: FunctionPool, callers: int, each: int) -> float:
        """The 99th percentile of the seconds that a call takes when so many always wait."""
        found: list[float] = []

        async def caller() -> None:
            for _ in range(each):
                started = time.perf_counter()
                await pool.call(_COMPLETION)
                found.append(time.perf_counter() - started)

        async def all_callers() -> None:
            await asyncio.gather(*(caller() for _ in range(callers)))

        self._runner.run(all_callers())
        return quantiles(found, n=100)[98] if len(found) > 1 else found[0]

    def recovery(self, pool: FunctionPool) -> float:
        """Seconds from the death of the worker to the outcome of the next call."""
        for pid in pool.stats.pids():
            os.kill(pid, signal.SIGKILL)
        started = time.perf_counter()
        outcome = self._runner.run(pool.call(_COMPLETION))
        _check(ok=outcome.score == 1.0, what=str(outcome))
        return time.perf_counter() - started

    def close(self) -> None:
        self._runner.run(self._stack.aclose())


def measure(
    peers: Mapping[str, Peer],  # noqa: ARG001 - as every measurement
    scratch: Path,  # noqa: ARG001
    *,
    quick: bool,
) -> list[Row]:
    """Wall time per call; every figure beside its peer in the same round."""
    with asyncio.Runner() as runner:
        pools = _Pools(runner)
        try:
            return _measure(pools, rounds=3 if quick else 11, few=20 if quick else 64)
        finally:
            pools.close()


def _measure(pools: _Pools, *, rounds: int, few: int) -> list[Row]:
    one, two = pools.add("call", 1), pools.add("call", 2)
    batch = pools.add("batch", 1)
    uid = spare_id() if os.geteuid() == 0 else 0
    command = isolated([interpreter()[0], "-I", "-S", "-c", "pass"], uid=uid)
    things: dict[str, Callable[[], float]] = {
        _CALL: partial(pools.seconds, one, few),
        _FLOOR: partial(pools.floor, one, few),
        _COLD: partial(_cold, command),
        "one": partial(pools.seconds, one, 2 * few),
        "two": partial(pools.seconds, two, 2 * few),
        "single": partial(pools.seconds, one, 1),
        "batch of 32": partial(pools.seconds, batch, 32),
        "batch of 1000": partial(pools.seconds, batch, 1000),
        "full queue": partial(pools.latency, two, few, 5),
        "recovery": partial(pools.recovery, one),
    }
    found = in_turn(rounds, things)
    row = partial(_row, found)
    return [
        row(f"{_CALL} / {_COLD}", _CALL, _COLD, goal=Goal("times_less", 10)),
        row(f"{_CALL} / {_FLOOR}", _CALL, _FLOOR, goal=Goal("at_most", 1.3), over=True),
        row("a call that comes alone", "single"),
        row(f"{_BATCH}, 32 calls", "batch of 32", goal=Goal("below", 1 / 8_000)),
        row(f"{_BATCH}, 1000 calls", "batch of 1000", goal=Goal("below", 1 / 25_000)),
        row("two workers / one", "two", "one", goal=Goal("times_less", 1.7)),
        row(
            f"99 % of calls, {few} callers on two workers",
            "full queue",
            note=f"memory per worker: {_memory(one) / 1e6:.1f} MB (proportional)",
        ),
        row("a worker is killed: the next outcome", "recovery", goal=Goal("below", 0.1)),
    ]


def _row(
    found: Mapping[str, list[float]],
    what: str,
    name: str,
    peer: str = "",
    *,
    goal: Goal | None = None,
    over: bool = False,
    note: str = "",
) -> Row:
    ours = found[name]
    return Row(
        what=what,
        measure="wall",
        unit="us" if median(ours) < 0.0005 else "ms",
        ours=ours,
        peer=found[peer] if peer else (),
        beside=peer,
        goal=goal,
        over=over,
        note=note,
    )


def _cold(command: list[str]) -> float:
    """A sandbox and an interpreter for one call, and nothing else: no program, no filter."""
    started = time.perf_counter()
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return time.perf_counter() - started


def _memory(pool: FunctionPool) -> float:
    """Bytes of the worker's processes, shared pages by proportion."""
    total, pids = 0, pool.stats.pids()
    for pid in pids:
        words = Path(f"/proc/{pid}/smaps_rollup").read_text().split()
        total += int(words[words.index("Pss:") + 1]) * 1024
        pids += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return total


def _check(*, ok: bool, what: str) -> None:
    if not ok:
        raise RuntimeError(f"a call went wrong: {what}")
