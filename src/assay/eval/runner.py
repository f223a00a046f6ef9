"""The runner: many rollouts at once, each handed over as soon as it is finished."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence

from assay.errors import InputError
from assay.eval.batch import run_batches
from assay.eval.rollout import Cell, rollout
from assay.eval.sessions import open_session
from assay.tasks.task import Agent, RunOptions, Task
from assay.types.run import Job, Run

__all__ = ["run_cells", "run_tasks"]


async def run_cells(
    cells: Iterable[Cell], done: Callable[[int, Run], None], *, max_concurrent: int
) -> None:
    """Run cells, at most ``max_concurrent`` at once, in constant memory.

    Cells are taken from the iterable only when there is room for one, and nothing is kept of a
    run after ``done`` has seen it.

    Args:
        cells: What to run.
        done: Called with a cell's number and its run, in the order in which runs finish. If it
            raises, everything is cancelled.
        max_concurrent: Rollouts at once.
    """
    await run_batches(
        enumerate(cells),
        lambda numbered: rollout(numbered[1]),
        lambda numbered, run: done(numbered[0], run),
        at_once=max_concurrent,
    )


async def run_tasks(
    tasks: Sequence[Task], agent: Agent, options: RunOptions, job: Job | None = None
) -> Job:
    """Run every task ``options.group`` times with one agent.

    Args:
        tasks: What to do.
        agent: Any async callable that takes a run.
        options: Repeats and limits.
        job: Appended to as runs finish; on cancellation it keeps what is done.

    Returns:
        The job, its new runs in planned order: all repeats of the first task, then the second's.

    Raises:
        InputError: If the agent is not callable.
    """
    if not callable(agent):
        raise InputError(
            f"the agent must be an async callable agent(run), got {type(agent).__name__}"
        )
    job = Job() if job is None else job  # an empty one is false
    job.group = options.group
    before = len(job.runs)
    finished: dict[int, Run] = {}

    def done(number: int, run: Run) -> None:
        finished[number] = run
        job.runs.append(run)

    cells = _expand(tasks, agent, options, job)
    await run_cells(cells, done, max_concurrent=options.max_concurrent)
    job.runs[before:] = [run for _, run in sorted(finished.items())]
    return job


def _expand(tasks: Sequence[Task], agent: Agent, options: RunOptions, job: Job) -> Iterator[Cell]:
    name = getattr(agent, "name", "") or getattr(agent, "__name__", "") or type(agent).__name__
    for task in tasks:
        group_id = secrets.token_hex(8)
        for trial in range(1, options.group + 1):
            yield Cell(
                task=task,
                agent=agent,
                session=open_session(task),
                options=options,
                harness=str(name),
                trial=trial,
                job_id=job.id,
                group_id=group_id,
            )
