"""Tasks that are about to be tried by a proof or an attack: what is known of each beforehand."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from assay.errors import AssayError
from assay.eval.isolation import CaseLock, UndecidedError
from assay.eval.isolation_proof import decide_each
from assay.eval.planning import require_case_parts
from assay.eval.scene import Scene
from assay.eval.trials import Arena, arena
from assay.eval.work import stop_environments, with_cases
from assay.tasks.case import Case
from assay.tasks.task import Task

__all__ = ["Stage", "require_parts", "staged"]


@dataclass(frozen=True, slots=True)
class Stage:
    """A task, how its tests are isolated resolved; and what it looks like, or why it cannot begin.

    Attributes:
        task: The task.
        scene: What can be known of it; None where it cannot begin.
        trouble: Why it cannot: that is reported with it, not instead of it.
    """

    task: Task
    scene: Scene | None
    trouble: AssayError | None = None

    @property
    def case(self) -> Case | None:
        """The case that the task is, if it is one."""
        return self.task.work if isinstance(self.task.work, Case) else None


def require_parts(tasks: Sequence[Task]) -> None:
    """Refuse cases that cannot be run.

    Raises:
        InputError: For the first of them.
    """
    for task in tasks:
        if isinstance(task.work, Case):
            require_case_parts(task.work)


@asynccontextmanager
async def staged(
    tasks: Sequence[Task], *, cache: str, workers: int, again: bool = False
) -> AsyncGenerator[tuple[Arena, list[Stage]]]:
    """Where tasks are tried, and they; what they started has ended when the block has.

    Args:
        tasks: The tasks.
        cache: Directory of fetched sources and built environments.
        workers: Trials at once.
        again: Whether to try ``process`` also where ``shared`` was decided before.
    """
    async with arena(cache=cache, workers=workers) as place:
        try:
            locks = [CaseLock(task.work, cache) for task in tasks if isinstance(task.work, Case)]
            found = await decide_each(locks, place, again=again)
            settled = with_cases(tasks, [one for one in found if isinstance(one, Case)])
            undecided = {
                lock.case.id: one
                for lock, one in zip(locks, found, strict=True)
                if isinstance(one, UndecidedError)
            }
            yield place, [await _stage(one, place, undecided.get(one.slug)) for one in settled]
        finally:
            await stop_environments(tasks)


async def _stage(task: Task, place: Arena, undecided: UndecidedError | None) -> Stage:
    if undecided is not None:
        return Stage(task, None, undecided)
    try:
        return Stage(task, await place.scene(task))
    except AssayError as error:
        return Stage(task, None, error)
