"""Tasks on trial: what is tried of each, and what a rule says of what came of it.

`assay selftest` and `assay attack` are lists of trials, and differ in nothing else. Trials go the
way of every cell (`assay.eval.runner.Plan`); what is kept of them goes into a directory that is
removed in the end.
"""

from __future__ import annotations

import random
import tempfile
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from assay.agents.scripted import Deeds, ScriptedAgent
from assay.errors import AssayError, SkippedError
from assay.eval.isolation import CaseLock, UndecidedIsolationError, isolated_graders
from assay.eval.planning import Planned, require_case_parts
from assay.eval.proof import CaseProof, Proof, ProofCheck, not_graded
from assay.eval.runner import OnBegin, OnCell, Plan
from assay.eval.scene import Scene, read_scene
from assay.eval.work import open_work, stop_environments, with_cases
from assay.sandbox import remove_tree
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
    """

    name: str
    rule: Callable[[Runs], ProofCheck | None]
    agent: Agent = _NOBODY
    model: str = ""
    times: int = 1
    is_right: bool = False


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
        with tempfile.TemporaryDirectory(prefix="assay-scene-") as home:
            async with open_work(task, cache=self.cache, home=home) as session:
                workspace = session.workspace
                asked = Run(prompt=session.prompt).prompt_text
                return read_scene(task, asked, workspace.path if workspace else None)


@asynccontextmanager
async def arena(*, cache: str, workers: int) -> AsyncGenerator[Arena]:
    """An arena whose directory goes when it is left; what is cached stays meanwhile."""
    home = tempfile.mkdtemp(prefix="assay-trials-")
    try:
        with at_work(str(Path(cache).parent)):
            yield Arena(home=home, cache=cache, workers=workers)
    finally:
        await remove_tree(home)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialPlan:
    """Trials of tasks that are ready to go.

    Attributes:
        tasks: What is on trial.
        trials: What is tried of a task, given what can be known of it.
        left_open: Sentences on what no trial closes, of a task and its runs of bad work.
        again: Whether to try ``process`` also where ``shared`` was decided before.
    """

    tasks: Sequence[Task]
    trials: Callable[[Scene], Sequence[ProofTrial]]
    left_open: Callable[[Task, Runs], Iterable[str]] | None = None
    again: bool = False

    async def go(
        self, *, cache: str, workers: int, begin: Begin, on_begin: OnBegin = lambda _: None
    ) -> Proof:
        """Run every trial, and judge what came of them.

        Args:
            cache: Directory of fetched sources and built environments.
            workers: Trials at once.
            begin: Called with the number of trials, once it is known. What it returns is called
                with each as it finishes; it ``passed`` if it came out as it has to.
            on_begin: Called with each trial's key as it begins.
        """
        async with self._staged(cache, workers) as (place, found):
            subjects = {
                task.slug: _Subject(
                    task, one, () if isinstance(one, AssayError) else self.trials(one)
                )
                for task, one in found
            }
            planned = [trial for one in subjects.values() for trial in one.planned()]
            # Trials differ in how long they take: mixed, the first stand for the rest.
            random.Random(0).shuffle(planned)  # noqa: S311 - an order, no secret
            on_cell = begin(len(planned))

            def done(trial: Planned, run: Run) -> None:
                on_cell(subjects[trial.task.slug].took(trial, run))

            for is_right in (True, False):  # what others do may depend on what right work touches
                now = [one for one in planned if subjects[one.task.slug].is_right(one) == is_right]
                await place.run(now, done, on_begin)
            return Proof(tuple(one.proof(self.left_open) for one in subjects.values()))

    @asynccontextmanager
    async def _staged(
        self, cache: str, workers: int
    ) -> AsyncGenerator[tuple[Arena, list[tuple[Task, Scene | AssayError]]]]:
        """Where tasks are tried, and they, with what can be known of each or why it cannot begin.

        How their tests are isolated is resolved; what they started has ended when the block has.
        """
        from assay.eval.isolation_proof import decide_each

        async with arena(cache=cache, workers=workers) as place:
            try:
                cases = [task.work for task in self.tasks if isinstance(task.work, Case)]
                locks = [CaseLock(case, cache) for case in cases]
                found = await decide_each(locks, place, again=self.again)
                settled = with_cases(self.tasks, [one for one in found if isinstance(one, Case)])
                undecided = {
                    case.id: one
                    for case, one in zip(cases, found, strict=True)
                    if isinstance(one, UndecidedIsolationError)
                }
                yield (
                    place,
                    [(one, undecided.get(one.slug) or await _scene(one, place)) for one in settled],
                )
            finally:
                await stop_environments(self.tasks)


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


async def _scene(task: Task, place: Arena) -> Scene | AssayError:
    try:
        return await place.scene(task)
    except AssayError as error:  # reported with the task, not instead of it
        return error


class _Subject:
    """One task, its trials and what came of them."""

    def __init__(self, task: Task, found: Scene | AssayError, trials: Sequence[ProofTrial]) -> None:
        self._task, self._found = task, found
        self._trials = {trial.name: trial for trial in trials}
        self._runs: dict[str, list[Run]] = defaultdict(list)

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
        return (
            row if row.passed is None else replace(row, passed=row.passed == self.is_right(planned))
        )

    def proof(self, left_open: Callable[[Task, Runs], Iterable[str]] | None) -> CaseProof:
        task, case, runs = self._task, self._task.work, self._runs
        found = CaseProof(
            case=task.slug,
            file=task.conditions.file,
            threshold=task.conditions.expect.pass_threshold,
        )
        if not isinstance(self._found, UndecidedIsolationError) and isinstance(case, Case):
            found = replace(found, isolation=tuple(isolated_graders(case)))
        if isinstance(self._found, AssayError):
            return replace(found, checks=(_untested(self._found),))
        bad = {name: of for name, of in runs.items() if not self._trials[name].is_right}
        checks = [trial.rule(runs) for trial in self._trials.values()]
        return replace(
            found,
            floor=runs[FLOOR][0].reward,
            checks=tuple(check for check in checks if check is not None),
            open=tuple(left_open(task, bad)) if left_open else (),
        )


def _untested(trouble: AssayError) -> ProofCheck:
    """A case of which nothing could be tried."""
    if isinstance(trouble, UndecidedIsolationError):
        return ProofCheck(name="isolation", verdict="error", said=trouble.message, fix=trouble.hint)
    verdict = "skipped" if isinstance(trouble, SkippedError) else "error"
    return ProofCheck(name="begin", verdict=verdict, said=str(trouble))
