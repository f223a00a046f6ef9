"""What is timed in a running process: the same calls for every package, by the same names.

Every round makes its inputs afresh, outside the timed part: no answer is ever seen twice by one
process, so nothing remembered from an earlier round can help. A reference is repeated only where a
workload says so.
"""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, cast

from bench.texts import pairs

__all__ = ["BASH", "COMBINING", "COMPARING", "Package", "Timing", "run_workload"]


class Score(Protocol):
    """A subscore, as far as it is needed here."""

    value: float


class Result(Protocol):
    """A combined grade, as far as it is needed here."""

    reward: float


class GraderClass(Protocol):
    """A grader class."""

    def grade(self, *, weight: float, **parameters: object) -> Awaitable[Score]: ...


class Package(Protocol):
    """What a package's ``graders`` module offers."""

    Grader: type[object]
    BashGrader: GraderClass

    def exact_match(self, answer: str, expected: str) -> float: ...
    def f1_score(self, answer: str, reference: str) -> float: ...
    def SubScore(self, *, name: str, value: float, weight: float) -> Score: ...  # noqa: N802 - a class there
    def combine(self, *items: Score | Awaitable[Score]) -> Awaitable[Result]: ...


@dataclass(frozen=True, slots=True)
class Timing:
    """What calls cost.

    Attributes:
        cpu: CPU seconds per call, of the process and of children it waited for.
        wall: Seconds per call.
        check: Sum of the scores, which must be the same for every package.
    """

    cpu: float
    wall: float
    check: float


@dataclass(frozen=True, slots=True)
class Comparing:
    """Calls of a comparison function."""

    function: str
    words: int
    correct: bool
    sharing: int


_SIZES = {"short": 2, "1 kB": 160}

COMPARING = {
    f"{function}, {size}, {'correct' if correct else 'wrong'}, {whose}": Comparing(
        function, words, correct, sharing
    )
    for function in ("exact_match", "f1_score")
    for size, words in _SIZES.items()
    for correct in (True, False)
    for whose, sharing in (("8 share a reference", 8), ("own reference", 1))
}

COMBINING = {
    "combine 5 subscores": (5, "ready"),
    "combine 50 subscores": (50, "ready"),
    "make and combine 5 subscores": (5, "made"),
    "combine 5 graders": (5, "graded"),
}

BASH = ("bare bash -c", "bare bash -lc", "BashGrader", "BashGrader(sandbox=True)", "command")


def run_workload(package: Package, name: str, *, seed: int, count: int) -> Timing:
    """Do one round of a workload."""
    if name in COMPARING:
        return _compare(package, COMPARING[name], seed, count)
    if name in COMBINING:
        parts, how = COMBINING[name]
        return asyncio.run(_combine(package, parts, how, seed, count))
    return asyncio.run(_run_bash(package, name, count))


def _compare(package: Package, work: Comparing, seed: int, count: int) -> Timing:
    function = package.exact_match if work.function == "exact_match" else package.f1_score
    todo = pairs(
        seed=seed, words=work.words, correct=work.correct, sharing=work.sharing, count=count
    )
    total = 0.0
    watch = _Watch()
    for answer, reference in todo:
        total += function(answer, reference)
    return watch.stop(count, total)


async def _combine(package: Package, parts: int, how: str, seed: int, count: int) -> Timing:
    values = [((seed + number) % 97) / 97 for number in range(parts * count)]
    weight = 1 / parts

    def score(place: int) -> Score:
        return package.SubScore(name=f"part {place % parts}", value=values[place], weight=weight)

    places = [range(number * parts, (number + 1) * parts) for number in range(count)]
    total = 0.0
    if how == "ready":
        ready = [[score(place) for place in some] for some in places]
        watch = _Watch()
        for items in ready:
            total += (await package.combine(*items)).reward
        return watch.stop(count, total)
    if how == "made":
        watch = _Watch()
        for some in places:
            total += (await package.combine(*[score(place) for place in some])).reward
        return watch.stop(count, total)
    grader = _grader(package)
    watch = _Watch()
    for some in places:
        graded = [grader.grade(weight=weight, value=values[place]) for place in some]
        total += (await package.combine(*graded)).reward
    return watch.stop(count, total)


def _grader(package: Package) -> GraderClass:
    """A grader that gives the value it is called with."""

    async def compute_score(cls: type, value: float) -> float:
        del cls
        return value

    members: dict[str, object] = {"name": "given", "compute_score": classmethod(compute_score)}
    return cast("GraderClass", type("Given", (package.Grader,), members))


async def _run_bash(package: Package, name: str, count: int) -> Timing:
    step = _bash_step(package, name)
    total = 0.0
    watch = _Watch()
    for _ in range(count):
        total += await step()
    return watch.stop(count, total)


def _bash_step(package: Package, name: str) -> Callable[[], Awaitable[float]]:
    async def bare() -> float:
        option = "-lc" if name.endswith("-lc") else "-c"
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            "/bin/bash", option, "true", stdout=pipe, stderr=pipe
        )
        await process.communicate()
        return float(process.returncode == 0)

    async def graded() -> float:
        return (await package.BashGrader.grade(weight=1.0, command="true")).value

    async def isolated() -> float:
        return (await package.BashGrader.grade(weight=1.0, command="true", sandbox=True)).value

    async def declared() -> float:
        from assay.graders.command import CommandGrader
        from assay.types.submission import Workspace

        return (await CommandGrader.grade(cmd="true", workspace=Workspace(path="."))).score

    steps = {"BashGrader": graded, "BashGrader(sandbox=True)": isolated, "command": declared}
    return steps.get(name, bare)


class _Watch:
    """Measures from when it is made."""

    def __init__(self) -> None:
        self._children = _children()
        self._cpu, self._wall = time.process_time(), time.perf_counter()

    def stop(self, count: int, check: float) -> Timing:
        """Divide what passed by the number of calls."""
        cpu, wall = time.process_time() - self._cpu, time.perf_counter() - self._wall
        cpu += _children() - self._children
        return Timing(cpu / count, wall / count, check)


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
