"""Tries of a task outside of any stored run: for proving a case or a template, and attacking it.

They go down the road of every cell (`assay.eval.runner`, `assay.eval.case_session`); only what is
kept of them goes into a directory that is removed in the end.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from assay.eval.case_session import kept_session
from assay.eval.matrix import give_back, kept_of, options_of
from assay.eval.records import record_of
from assay.eval.rollout import Cell
from assay.eval.runner import run_cells, verifier_of
from assay.eval.scene import Scene, read_scene
from assay.eval.work import open_work
from assay.sandbox import remove_tree
from assay.store.kept import at_work
from assay.store.records import CellKey, CellRecord
from assay.tasks.case import Case
from assay.tasks.task import Agent, Task
from assay.types.run import Run

__all__ = ["Arena", "Trial", "arena", "record_trial"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One try of a task.

    Attributes:
        task: What is tried.
        name: What is tried on it, such as ``floor no-op``.
        agent: Who does it.
        model: The recording that is played, if one is.
        number: 1-based repeat.
        again: An earlier try: what was kept of it is graded again, and nobody works.
    """

    task: Task
    name: str
    agent: Agent
    model: str = ""
    number: int = 1
    again: Run | None = None


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
        trials: Sequence[Trial],
        done: Callable[[Trial, Run], None],
        on_begin: Callable[[CellKey], None] = lambda _: None,
    ) -> None:
        """Run and grade trials."""
        await run_cells(
            self._cells(trials, on_begin),
            lambda number, run: done(trials[number], run),
            max_concurrent=self.workers,
        )

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

    def _cells(
        self, trials: Iterable[Trial], on_begin: Callable[[CellKey], None]
    ) -> Iterator[Cell]:
        for trial in trials:
            on_begin((trial.task.slug, trial.name, trial.model, trial.number))
            before, cache, home = trial.again, self.cache, self.home
            if before is None:
                session = open_work(trial.task, cache=cache, home=home)
            else:
                case = cast("Case", trial.task.work)
                session = kept_session(case, kept_of(before), cache=cache, home=home)
            yield Cell(
                task=trial.task,
                agent=trial.agent if before is None else give_back(before),
                session=session,
                verifier=verifier_of(trial.task),
                options=options_of(trial.task),
                harness=trial.name,
                model=trial.model,
                trial=trial.number,
                is_live=False,  # solutions and attacks are nobody else's to see
            )


@asynccontextmanager
async def arena(*, cache: str, workers: int) -> AsyncGenerator[Arena]:
    """An arena whose directory goes when it is left; what is cached stays meanwhile."""
    home = tempfile.mkdtemp(prefix="assay-trials-")
    try:
        with at_work(str(Path(cache).parent)):
            yield Arena(home=home, cache=cache, workers=workers)
    finally:
        await remove_tree(home)


def record_trial(trial: Trial, run: Run) -> CellRecord:
    """A trial as the narrow row that every report reads."""
    conditions = trial.task.conditions
    return record_of(
        run,
        run_id="",
        case=trial.task.slug,
        threshold=conditions.expect.pass_threshold,
        min_assurance=conditions.expect.min_assurance,
        min_coverage=conditions.expect.min_coverage,
        digest="",
        file=conditions.file,
    )
