"""Tasks on trial: what is tried of each, and what a rule says of what came of it.

`assay selftest` and `assay attack` are lists of trials, and differ in nothing else. Trials go the
way of every cell (`assay.eval.runner.Plan`); what is kept of them goes into a directory that is
removed in the end.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from assay.agents.scripted import Deeds, ScriptedAgent
from assay.errors import AssayError, SkippedError
from assay.eval.planning import Planned, require_case_parts
from assay.eval.proofs.isolation import CaseLock, UndecidedIsolationError, isolated_graders
from assay.eval.proofs.proof import BEGINNING, CaseProof, Proof, ProofCheck, Sight, not_graded
from assay.eval.proofs.scene import Scene, read_scene
from assay.eval.runner import OnBegin, OnCell, Plan
from assay.eval.work import open_work, stop_environments
from assay.scratch import scratch_beside
from assay.store.kept_files import at_work
from assay.store.records import CellRecord
from assay.tasks.case import Case
from assay.tasks.task import Agent, Task
from assay.types.run import Run

FLOOR = "floor no-op"
"""What every plan tries: doing nothing and saying nothing."""

Begin: TypeAlias = "Callable[[int], OnCell]"
Runs: TypeAlias = "Mapping[str, Sequence[Run]]"
"""Runs of a task by the names of its trials."""


_NOBODY = ScriptedAgent(deeds=Deeds())
_AT_LEAST, _FOR_EACH = 4, 2
"""Tasks on trial at a time: at least so many, and so many for each trial at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofTrial:
    """Work that is tried, and what has to come of it.

    Attributes:
        name: What is tried, such as ``floor echo`` or the id of a cheat.
        rule: What came of it, given the runs of all trials of the task; None to say nothing.
        agent: Who does it; by default nothing is done.
        model: The model that the agent is asked to use.
        times: How often it is done; 0 for a rule on what others did.
        is_right: Whether it is known-good work, which has to pass and is done before all else.
        sight: Of such work, once it was done: where it stands that whoever works can read.
    """

    name: str
    rule: Callable[[Runs], ProofCheck | None]
    agent: Agent = _NOBODY
    model: str = ""
    times: int = 1
    is_right: bool = False
    sight: Callable[[], Sight | None] = lambda: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Arena:
    """Where trials are run.

    Attributes:
        home: Directory for what is kept of a trial until the end.
        cache: Directory of fetched sources and built environments, shared with every run.
        workers: Trials at once.
    """

    home: str
    cache: str
    workers: int

    async def run(
        self,
        trials: Sequence[Planned],
        done: Callable[[Planned, Run], None],
        on_begin: OnBegin = lambda _: None,
    ) -> None:
        """Run and grade trials; what is tried is their harness."""
        # Solutions and attacks are nobody else's to see.
        plan = Plan(cells=trials, sink=done, home=self.home, cache=self.cache, is_shown=False)
        await plan.go(workers=self.workers, on_begin=on_begin)

    async def scene(self, task: Task) -> Scene:
        """What can be known of a task before anybody works on it.

        Raises:
            SourceError: If its source cannot be had.
            SkippedError: If it cannot be had, and the case says that this may be.
            ProvisionError: If its environment cannot be built.
            TemplateError: If its template does not begin as a template should.
        """
        with tempfile.TemporaryDirectory(prefix="scene-", dir=self.home) as home:
            async with open_work(task, cache=self.cache, home=home) as session:
                workspace = session.workspace
                asked = Run(prompt=session.prompt).prompt_text
                return read_scene(task, asked, workspace.path if workspace else None)


@asynccontextmanager
async def arena(*, cache: str, workers: int) -> AsyncGenerator[Arena]:
    """An arena whose directory goes when it is left; what is cached stays meanwhile."""
    async with scratch_beside("assay-trials-") as home:
        with at_work(str(Path(cache).parent)):
            yield Arena(home=str(home), cache=cache, workers=workers)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialPlan:
    """Trials of tasks that are ready to go.

    Attributes:
        tasks: What is on trial.
        trials: What is tried of a task, given what can be known of it.
        left_open: Sentences on what no trial closes, of a task and its runs of bad work.
        again: Whether to try ``process`` also where ``shared`` was decided before.
        untried: What is said of a task of which nothing could be tried, and why.
        refused: What is said of cases that are not on trial, because something is wrong with them.
    """

    tasks: Sequence[Task]
    trials: Callable[[Scene], Sequence[ProofTrial]]
    left_open: Callable[[Task, Runs], Iterable[str]] | None = None
    again: bool = False
    untried: Callable[[Task, AssayError], ProofCheck] = field(default=lambda _, why: untested(why))
    refused: Sequence[CaseProof] = ()

    async def go(
        self,
        *,
        cache: str,
        workers: int,
        begin: Begin,
        on_begin: OnBegin = lambda _: None,
        on_staged: Callable[[bool], None] = lambda _: None,
        on_case: Callable[[CaseProof], None] = lambda _: None,
    ) -> Proof:
        """Run every trial, and judge what came of them.

        Args:
            cache: Directory of fetched sources and built environments.
            workers: Trials at once.
            begin: Called with the number of trials, once it is known. What it returns is called
                with each as it finishes; it ``passed`` if it came out as it has to.
            on_begin: Called with each trial's key as it begins.
            on_staged: Called for each task, before any trial, with whether it can be tried.
            on_case: Called with what was found of a task, a few tasks at a time.
        """
        async with self._staged(cache, workers, on_staged) as (place, found):
            subjects = {
                task.slug: _Subject(
                    task, one, () if isinstance(one, AssayError) else self.trials(one)
                )
                for task, one in found
            }
            on_cell = begin(sum(one.total for one in subjects.values()))
            order, proofs = list(subjects.values()), dict[str, CaseProof]()
            # Trials differ in how long they take: mixed, the first stand for the rest.
            mixed = random.Random(0)  # noqa: S311 - an order, no secret
            mixed.shuffle(order)

            def done(trial: Planned, run: Run) -> None:
                on_cell(subjects[trial.task.slug].took(trial, run))

            # A few at a time: what is found of them is kept, and their runs are not.
            size = max(_AT_LEAST, _FOR_EACH * workers)
            for some in (order[at : at + size] for at in range(0, len(order), size)):
                trials = [trial for one in some for trial in one.planned()]
                mixed.shuffle(trials)
                for is_right in (True, False):  # others may depend on what right work touches
                    now = [t for t in trials if subjects[t.task.slug].is_right(t) == is_right]
                    await place.run(now, done, on_begin)
                for one in some:
                    proof = proofs[one.slug] = one.proof(self.left_open, self.untried)
                    on_case(proof)
            tried = [proofs[slug] for slug in subjects]
            if self.refused:
                tried = sorted([*tried, *self.refused], key=lambda one: one.case)
            return Proof(tuple(tried))

    @asynccontextmanager
    async def _staged(
        self, cache: str, workers: int, on_staged: Callable[[bool], None]
    ) -> AsyncGenerator[tuple[Arena, list[tuple[Task, Scene | AssayError]]]]:
        """Where tasks are tried, and they, with what can be known of each or why it cannot begin.

        How their tests are isolated is resolved; what they started has ended when the block has.
        """
        turn = asyncio.Semaphore(workers)

        async def staged(task: Task, place: Arena) -> tuple[Task, Scene | AssayError]:
            async with turn:
                try:
                    task = await self._settled(task, place)
                    found = await place.scene(task)
                except AssayError as error:  # reported with the task, not instead of it
                    found = error
            on_staged(isinstance(found, Scene))
            return task, found

        async with arena(cache=cache, workers=workers) as place:
            try:
                yield place, await asyncio.gather(*(staged(task, place) for task in self.tasks))
            finally:
                await stop_environments(self.tasks)

    async def _settled(self, task: Task, place: Arena) -> Task:
        """The task, with how its tests are isolated.

        Raises:
            UndecidedIsolationError: That is not decided.
            SourceError: What it rests on cannot be read.
        """
        from assay.eval.proofs.isolation_proof import decide_each

        if not isinstance(task.work, Case):
            return task
        (found,) = await decide_each([CaseLock(task.work, place.cache)], place, again=self.again)
        if isinstance(found, UndecidedIsolationError):
            raise found
        return replace(task, work=found)


def require_parts(tasks: Sequence[Task]) -> None:
    """Refuse cases that cannot be run.

    Raises:
        InputError: For the first of them.
    """
    for task in tasks:
        if isinstance(task.work, Case):
            require_case_parts(task.work)


def nothing_done(runs: Runs) -> ProofCheck | None:
    """What is said where not even doing nothing could be graded."""
    return not_graded(FLOOR, runs[FLOOR][0])


class _Subject:
    """One task, its trials and what came of them."""

    def __init__(self, task: Task, found: Scene | AssayError, trials: Sequence[ProofTrial]) -> None:
        self._task, self._found = task, found
        self._trials = {trial.name: trial for trial in trials}
        self._runs: dict[str, list[Run]] = defaultdict(list)
        self._seconds: dict[str, float] = defaultdict(float)

    @property
    def slug(self) -> str:
        return self._task.slug

    @property
    def total(self) -> int:
        return sum(one.times for one in self._trials.values())

    def planned(self) -> Iterable[Planned]:
        for name, one in self._trials.items():
            for number in range(1, one.times + 1):
                yield Planned(self._task, name, one.model, number, agent=one.agent)

    def is_right(self, planned: Planned) -> bool:
        return self._trials[planned.harness].is_right

    def took(self, planned: Planned, run: Run) -> CellRecord:
        """Take a run; its row, in which ``passed`` says whether it came out as it has to."""
        self._runs[planned.harness].append(run)
        row = planned.record(run)
        self._seconds[planned.harness] += row.seconds
        return (
            row if row.passed is None else replace(row, passed=row.passed == self.is_right(planned))
        )

    def proof(
        self,
        left_open: Callable[[Task, Runs], Iterable[str]] | None,
        untried: Callable[[Task, AssayError], ProofCheck],
    ) -> CaseProof:
        """What was found; the runs are not held any longer."""
        task, case = self._task, self._task.work
        runs, self._runs = self._runs, defaultdict(list)
        found = CaseProof(
            case=task.slug,
            file=task.conditions.file,
            threshold=task.conditions.expect.pass_threshold,
        )
        if not isinstance(self._found, UndecidedIsolationError) and isinstance(case, Case):
            found = replace(found, isolation=tuple(isolated_graders(case)))
        if isinstance(self._found, AssayError):
            return replace(found, checks=(untried(task, self._found),))
        bad = {name: of for name, of in runs.items() if not self._trials[name].is_right}
        checks = [(trial, trial.rule(runs)) for trial in self._trials.values()]
        seen = [trial.sight() for trial in self._trials.values() if trial.is_right]
        sight = next(iter(seen), None)
        where = ", ".join(sight.places) if sight else ""
        more = [f"right work can be read before it is done: {where}"] if where else []
        return replace(
            found,
            floor=runs[FLOOR][0].reward,
            checks=tuple(
                replace(check, seconds=self._seconds[trial.name])
                for trial, check in checks
                if check is not None
            ),
            open=(*(left_open(task, bad) if left_open else ()), *more),
            sight=sight,
        )


def untested(trouble: AssayError) -> ProofCheck:
    """What is said of a case of which nothing could be tried."""
    if isinstance(trouble, UndecidedIsolationError):
        return ProofCheck(name="isolation", verdict="error", said=trouble.message, fix=trouble.hint)
    verdict = "skipped" if isinstance(trouble, SkippedError) else "error"
    return ProofCheck(name=BEGINNING, verdict=verdict, said=str(trouble))
