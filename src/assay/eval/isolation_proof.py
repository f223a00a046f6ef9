"""Decide by the author's reference which tests can be judged in a process of their own.

The reference is played once. What it left is graded with ``process`` by each grader that is to be
decided; where classes of it have to be trusted with their own equality, they are added and it is
graded again. A grader by which all tests pass gets ``process``. One by which they pass only in one
process with the reference gets ``shared``. Where they pass in neither, nothing is known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias, cast

from assay.agents.replay import ReplayAgent
from assay.eval.isolation import CaseLock, Why
from assay.eval.trials import Arena, Trial
from assay.eval.work import with_cases
from assay.graders.testing.outcomes import Mode
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore
from assay.tasks.case import Case
from assay.tasks.task import Task, case_task
from assay.types.run import Run

__all__ = ["decide", "settle"]

_MOST_TRIES = 5
_MOST_TESTS = 10
_LONGEST = 200
_ROUNDING = 1e-9

Decided: TypeAlias = "tuple[Mode, Sequence[str], Sequence[Why]]"
Tell: TypeAlias = "Callable[[Case, str], None]"


async def decide(
    locks: Sequence[CaseLock], place: Arena, *, again: bool = False, tell: Tell | None = None
) -> list[Case]:
    """Decide what is undecided, and resolve every case.

    Args:
        locks: The cases.
        place: Where references are played.
        again: Whether to try ``process`` also where ``shared`` was decided before.
        tell: Called with each case whose reference was played, and with the file that a new
            decision was written to, or an empty string.
    """
    turn = asyncio.Semaphore(place.workers)

    async def one(lock: CaseLock) -> Case:
        places = (*lock.undecided, *(lock.shared if again else ()))
        if not places or not lock.reference:
            return lock.resolved()
        proof = _Proof(lock, place)
        async with turn:
            await proof.run(places)
        file = lock.keep(proof.decided)
        case = lock.resolved(proof.reasons)
        if tell:
            tell(case, file)
        return case

    return list(await asyncio.gather(*map(one, locks)))


async def settle(tasks: Sequence[Task], place: Arena, *, again: bool = False) -> list[Task]:
    """The tasks with how the tests of cases are isolated resolved; see `decide`."""
    locks = [CaseLock(task.work, place.cache) for task in tasks if isinstance(task.work, Case)]
    return with_cases(tasks, await decide(locks, place, again=again))


@dataclass(slots=True)
class _Proof:
    """One reference, played once and graded as often as it takes."""

    lock: CaseLock
    place: Arena
    decided: dict[int, Decided] = field(default_factory=dict[int, "Decided"])
    reasons: dict[int, str] = field(default_factory=dict[int, str])
    _played: Run | None = None

    async def run(self, places: Sequence[int]) -> None:
        """Find a mode for the graders at some places."""
        allowed: dict[int, list[str]] = {place: [] for place in places}
        failed: dict[int, list[Why]] = {}
        tried = list(places)
        for left in reversed(range(_MOST_TRIES)):
            nodes = await self._grade(tried, "process", allowed)
            more: list[int] = []
            for place, node in nodes.items():
                if _is_whole(node):
                    self.decided[place] = ("process", allowed[place], ())
                    continue
                failed[place] = list(_why(node))
                new = [name for name in _undecided(node) if name not in allowed[place]]
                if new and left:
                    allowed[place] = _trusted([*allowed[place], *new])
                    more.append(place)
            tried = more
        rest = [place for place in failed if place not in self.decided]
        nodes = await self._grade(rest, "shared", {})
        for place, node in nodes.items():
            if _is_whole(node):
                self.decided[place] = ("shared", (), failed[place])
            else:
                said = next(map(str, _why(node)), "no cause is known")
                self.reasons[place] = f"the reference does not pass its tests: {said}"

    async def _grade(
        self, places: Sequence[int], mode: Mode, allowed: Mapping[int, Sequence[str]]
    ) -> dict[int, SubScore]:
        """What some graders say of the reference, by their place."""
        if not places:
            return {}
        case = self.lock.case
        graders = tuple(
            replace(
                case.graders[place],
                weight=1.0,
                gate=False,
                options=_options(case.graders[place].options, mode, allowed.get(place, ())),
            )
            for place in places
        )
        directory = str(Path(case.root, "recordings"))
        trial = Trial(
            task=case_task(replace(case, graders=graders)),
            name="isolation",
            agent=ReplayAgent(directory=directory, timeout_s=case.limits.agent_timeout_s),
            model=self.lock.reference,
            again=self._played,
        )
        runs: list[Run] = []
        await self.place.run([trial], lambda _, run: runs.append(run))
        nodes = runs[0].grade.subscores
        if len(nodes) < len(places):  # it was not graded at all: the reference could not be played
            said = runs[0].grade.content or runs[0].trace.error or "no cause was recorded"
            self.reasons |= dict.fromkeys(places, f"the reference could not be played: {said}")
            return {}
        self._played = self._played or runs[0]
        return dict(zip(places, nodes, strict=False))  # gates of nodes come behind them


def _trusted(names: Sequence[str]) -> list[str]:
    """Classes to trust, none of them twice: wholly includes trusting it with checks."""
    return [name for name in names if name.removeprefix("asked:") == name or name[6:] not in names]


def _options(given: Mapping[str, Json], mode: Mode, allowed: Sequence[str]) -> dict[str, Json]:
    options = {**given, "isolation": mode}
    if allowed:
        own = cast("list[Json]", given.get("allow_equality") or [])
        options["allow_equality"] = [*own, *allowed]
    return options


def _is_whole(node: SubScore) -> bool:
    """Whether all expected tests of a grader passed."""
    full = node.status == "scored" and (node.value or 0.0) >= 1.0 - _ROUNDING
    return full and all(map(_is_whole, node.children or ()))


def _undecided(node: SubScore) -> list[str]:
    found = (node.metadata or {}).get("undecided")
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def _why(node: SubScore) -> Iterator[Why]:
    """The tests that did not pass, with the first line of what each said."""
    told = [why for part in (node, *(node.children or ())) for why in _tests(part)]
    yield from told[:_MOST_TESTS] or [Why(said=_line(node.reason or ""))]


def _tests(node: SubScore) -> Iterator[Why]:
    tests = (node.metadata or {}).get("tests")
    for row in tests if isinstance(tests, list) else []:
        if isinstance(row, dict) and row.get("outcome") != "passed" and "counted" not in row:
            said = str(row.get("message") or row.get("outcome") or "")
            yield Why(test=str(row.get("id", ""))[:_LONGEST], said=_line(said))


def _line(text: str) -> str:
    """The first line that says something, bounded."""
    lines = (line.strip() for line in text.splitlines())
    return next((line for line in lines if line), "")[:_LONGEST]
