"""Tries of a task outside of any stored run: for proving a case or a template, and attacking it.

They go the way of every cell (`assay.eval.runner.Plan`); only what is kept of them goes into a
directory that is removed in the end.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from assay.eval.planning import Planned
from assay.eval.runner import OnBegin, Plan
from assay.eval.scene import Scene, read_scene
from assay.eval.work import open_work
from assay.sandbox import remove_tree
from assay.store.kept import at_work
from assay.tasks.task import Task
from assay.types.run import Run

__all__ = ["Arena", "arena"]


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
