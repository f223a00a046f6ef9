"""Prove cases before they are used: right work gets everything, no work and known cheats do not.

For every case, without a model, a key or the network:

* the reference recording scores exactly 1.0;
* floors do not pass: nothing done, files emptied, the prompt echoed, keywords stuffed;
* tests that can be are judged in a process of their own, if the reference passes them there;
* graders that run several times on the same work agree with themselves;
* recordings that are known to be bad do not pass, for the reason that the case names.

A task of a template has no recordings and nothing to empty: its reference is the ``solution`` in
its metadata (an answer, or a list of actions), and its floors are answers alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path

from assay.agents.echo import EchoAgent
from assay.agents.replay import ReplayAgent, recordings_of
from assay.agents.scripted import Deeds, ScriptedAgent
from assay.errors import AssayError, InputError, SkippedError, nearest
from assay.eval.isolation import Isolated, UndecidedError, isolated_graders, reference_of
from assay.eval.planning import Planned
from assay.eval.proof import CaseProof, Check, Proof, must_fail, reference_check, repeats_check
from assay.eval.runner import OnBegin, OnCell
from assay.eval.scene import read_tree
from assay.eval.stages import Stage, require_parts, staged
from assay.eval.stuffing import stuffed
from assay.eval.weights import Witness, left_open
from assay.store.records import CellRecord
from assay.tasks.blocks import SelfTest
from assay.tasks.case import Case
from assay.tasks.case_files import lock_name
from assay.tasks.task import Agent, Task, solution_of
from assay.types.run import Run

__all__ = ["SelfTestPlan", "plan_selftest"]

_BAD = ("cheat*", "bad*", "partial*", "wrong*")
_FLOORS = ("no-op", "emptied", "echo", "keywords")
_SAID = ("answer-orders", "answer-verdict", "answer-claims")
"""Cheats that are floors where an answer is all that there is."""


@dataclass(frozen=True, slots=True)
class SelfTestPlan:
    """A self-test that is ready to go.

    Attributes:
        tasks: What is proven.
        repeats: Repeats of the graders, instead of what the cases say.
        total: Trials in all.
    """

    tasks: Sequence[Task]
    repeats: int | None
    total: int

    async def go(
        self,
        *,
        cache: str,
        workers: int,
        on_cell: OnCell,
        on_begin: OnBegin = lambda _: None,
    ) -> Proof:
        """Run every trial and judge the cases.

        Args:
            cache: Directory of fetched sources and built environments.
            workers: Trials at once.
            on_cell: Called with each trial as it finishes; it ``passed`` if it came out as it has
                to.
            on_begin: Called with each trial's key as it begins.
        """
        async with staged(self.tasks, cache=cache, workers=workers, again=True) as (place, stages):
            benches = {one.task.slug: _Bench(one, self.repeats) for one in stages}

            def done(trial: Planned, run: Run) -> None:
                bench = benches[trial.task.slug]
                bench.runs[trial.harness].append(run)
                on_cell(bench.as_expected(trial, run))

            for trials in (_Bench.references, _Bench.others):
                planned = [trial for bench in benches.values() for trial in trials(bench)]
                await place.run(planned, done, on_begin)
            return Proof(tuple(bench.proof() for bench in benches.values()))


def plan_selftest(tasks: Sequence[Task], *, repeats: int | None = None) -> SelfTestPlan:
    """Check what the cases say of their self-test, and count the trials.

    Raises:
        InputError: For a case that cannot be run, recordings that do not exist, and fewer than one
            repeat.
    """
    if repeats is not None and repeats < 1:
        raise InputError(f"repeats must be at least 1, got {repeats}")
    total = 0
    require_parts(tasks)
    for task in tasks:
        times = repeats or _repeats_of(task)
        total += times * (2 if _reference_of(task) else 1)
        total += len(_floors_of(task)) - 1 + len(_known_bad(task))
    return SelfTestPlan(tasks, repeats, total)


def _repeats_of(task: Task) -> int:
    case = task.work
    return case.selftest.repeats if isinstance(case, Case) else SelfTest().repeats


def _reference_of(task: Task) -> str:
    """What the known-good work of a task is called; empty where there is none."""
    if isinstance(task.work, Case):
        return reference_of(task.work)
    return "solution" if solution_of(task) is not None else ""


def _floors_of(task: Task) -> tuple[str, ...]:
    if isinstance(task.work, Case):
        return _FLOORS
    return (*(name for name in _FLOORS if name != "emptied"), *_SAID)


def _recordings(case: Case) -> dict[str, Path]:
    return recordings_of(str(Path(case.root, "recordings")))


def _known_bad(task: Task) -> dict[str, str]:
    """Recordings that must not pass, each with the reason that the case names, if it names one."""
    case = task.work
    if not isinstance(case, Case):
        return {}
    found = _recordings(case)
    for name in case.selftest.bad:
        if name not in found:
            raise InputError(
                f"case {case.id!r}: selftest.bad names {name!r}, but there is no such recording",
                hint=nearest(name, sorted(found)),
            )
        if name == case.selftest.reference:
            raise InputError(f"case {case.id!r}: {name!r} is both its reference and known bad")
    if case.selftest.bad:
        return dict(case.selftest.bad)
    return {name: "" for name in found if any(fnmatch(name.lower(), sign) for sign in _BAD)}


def _untested(trouble: AssayError | None) -> Check:
    """A case of which nothing could be tried."""
    if isinstance(trouble, UndecidedError):
        return Check(name="isolation", verdict="error", said=trouble.message, fix=trouble.hint)
    verdict = "skipped" if isinstance(trouble, SkippedError) else "error"
    return Check(name="begin", verdict=verdict, said=str(trouble))


class _Solver:
    """Gives the solution of a task; of one that takes several actions it may be their list."""

    def __init__(self, task: Task) -> None:
        self._actions = task.metadata.get("solution")
        self._answer = solution_of(task)

    async def __call__(self, run: Run) -> None:
        if run.max_steps < 2 or not isinstance(self._actions, list):
            run.trace.content = self._answer
            return
        for action in self._actions:
            if (await run.step(str(action))).done:
                break


class _Watched:
    """An agent of which it is noted what it touches."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.touched: set[str] = set()

    async def __call__(self, run: Run) -> None:
        place = run.workspace.path if run.workspace else None
        before = read_tree(place) if place else {}
        await self.agent(run)
        after = read_tree(place) if place else {}
        changed = {path for path in after if before.get(path) != after[path]}
        self.touched |= changed | (set(before) - set(after))


class _Bench:
    """One task, its trials and what came of them."""

    def __init__(self, stage: Stage, repeats: int | None) -> None:
        self.task, self.case = stage.task, stage.case
        self.conditions = stage.task.conditions
        self.runs: dict[str, list[Run]] = defaultdict(list)
        self._scene, self._trouble = stage.scene, stage.trouble
        self._repeats = repeats or _repeats_of(self.task)
        self._reference = _reference_of(self.task)
        self._bad = _known_bad(self.task)
        self._watched = _Watched(self._right())

    def references(self) -> Iterator[Planned]:
        """The reference, as often as graders are repeated."""
        if self._reference and self._scene is not None:
            for number in range(1, self._repeats + 1):
                yield Planned(self.task, "reference", self._reference, number, agent=self._watched)

    def others(self) -> Iterator[Planned]:
        """Floors and known-bad work; what is emptied is known when the reference has been run."""
        if self._scene is None:
            return
        emptied = dict.fromkeys(sorted(self._watched.touched), b"")
        floors: dict[str, Agent] = {
            "no-op": ScriptedAgent(deeds=Deeds()),
            "emptied": ScriptedAgent(deeds=Deeds(files=emptied, answer="")),
            "echo": EchoAgent(),
            "keywords": ScriptedAgent(deeds=stuffed(self._scene)),
        }
        if self.case is None:
            from assay.eval.cheats import select_cheats

            for cheat in select_cheats(_SAID):
                floors[cheat.id] = ScriptedAgent(deeds=cheat.deeds(self._scene) or Deeds())
        for name in _floors_of(self.task):
            agent = floors[name]
            for number in range(1, 1 + (self._repeats if name == "no-op" else 1)):
                yield Planned(self.task, f"floor {name}", trial=number, agent=agent)
        for name in self._bad:
            yield Planned(self.task, f"bad {name}", name, agent=self._replay())

    def _right(self) -> Agent:
        """Who does the known-good work."""
        if self.case is not None or not self._reference:
            return self._replay()
        return _Solver(self.task)

    def _replay(self) -> ReplayAgent:
        directory = str(Path(self.conditions.root, "recordings"))
        return ReplayAgent(directory=directory, timeout_s=self.conditions.limits.agent_timeout_s)

    def as_expected(self, trial: Planned, run: Run) -> CellRecord:
        """A trial's row, in which ``passed`` says whether it came out as it has to."""
        row = trial.record(run)
        if row.passed is None:
            return row
        return replace(row, passed=row.passed == (trial.harness == "reference"))

    def proof(self) -> CaseProof:
        """What all of it comes to."""
        checks = tuple(self._checks())
        witnesses = [
            Witness(name=name, run=runs[0])
            for name, runs in self.runs.items()
            if name != "reference"
        ]
        return CaseProof(
            case=self.task.slug,
            file=self.conditions.file,
            threshold=self.conditions.expect.pass_threshold,
            checks=checks,
            isolation=() if isinstance(self._trouble, UndecidedError) else self._isolated(),
            open=tuple(self._left_open(witnesses)) if self._scene is not None else (),
        )

    def _isolated(self) -> tuple[Isolated, ...]:
        return () if self.case is None else (*isolated_graders(self.case),)

    def _left_open(self, witnesses: Sequence[Witness]) -> Iterator[str]:
        if self.case is not None:
            yield from left_open(self.case, witnesses)
        elif not self._reference:
            yield (
                "nothing shows that right work gets full marks: a known-good answer goes into "
                "the task's metadata, as solution"
            )

    def _checks(self) -> Iterator[Check]:
        threshold = self.conditions.expect.pass_threshold
        if self._scene is None:
            yield _untested(self._trouble)
            return
        if self._reference:
            least = self.conditions.expect.min_assurance
            check = reference_check(f"reference {self._reference}", self.runs["reference"], least)
            if check.fix and any(one.isolation == "process" for one in self._isolated()):
                lock = lock_name(self.conditions.file)
                hint = f"; or remove {lock}, to decide its isolation anew"
                check = replace(check, fix=check.fix + hint)
            yield check
        elif self.case is not None:
            yield Check(
                name="reference",
                verdict="failed",
                said="there is no reference recording",
                fix="record right work as recordings/reference, or name it in selftest.reference",
            )
        for name in _floors_of(self.task):
            yield must_fail(f"floor {name}", self.runs[f"floor {name}"][0], threshold)
        for name, reason in self._bad.items():
            yield must_fail(f"bad {name}", self.runs[f"bad {name}"][0], threshold, reason)
        for name in ("reference", "floor no-op"):
            if self.runs[name]:
                yield repeats_check(name.removeprefix("floor "), self.runs[name])
