"""The runner: many rollouts at once, each handed over as soon as it is finished."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from assay.errors import InputError
from assay.eval.batch import run_batches
from assay.eval.rollout import WATCH, Cell, rollout
from assay.graders.apply import grade_submission
from assay.scoring.json_safe import Json
from assay.scoring.results import EvaluationResult
from assay.tasks.case import Case
from assay.tasks.task import Agent, RunOptions, Session, Task
from assay.types.run import Job, Prompt, Run
from assay.types.submission import Submission, Workspace

if TYPE_CHECKING:
    from assay.gateway import Gateway
    from assay.tasks.rows import Row

__all__ = ["agent_name", "fitted", "open_session", "run_cells", "run_tasks", "verifier_of"]


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
    if options.runtime != "local":
        from assay.eval.placement import placed

        async with placed(tasks, options.runtime, os.fspath(options.store)) as elsewhere:
            return await run_tasks(elsewhere, agent, replace(options, runtime="local"), job)
    job = Job() if job is None else job  # an empty one is false
    if options.store:
        from assay.eval.jobs import run_stored

        return await run_stored(tasks, agent, options, job)
    job.group = options.group
    before = len(job.runs)
    finished: dict[int, Run] = {}

    watch = WATCH.get()

    def done(number: int, run: Run) -> None:
        finished[number] = run
        job.runs.append(run)
        if watch is not None:
            from assay.eval.records import record_of

            task = tasks[number // options.group]
            threshold, name = task.pass_threshold, task.slug
            watch.end(
                run,
                record_of(run, run_id=job.id, case=name, threshold=threshold, digest="", file=""),
            )

    cells = _expand(tasks, agent, options, job)
    await run_cells(cells, done, max_concurrent=options.max_concurrent)
    job.runs[before:] = [run for _, run in sorted(finished.items())]
    return job


def _expand(tasks: Sequence[Task], agent: Agent, options: RunOptions, job: Job) -> Iterator[Cell]:
    name = agent_name(agent)
    for task in tasks:
        agent_of_task = fitted(agent, task)
        group_id = secrets.token_hex(8)
        for trial in range(1, options.group + 1):
            yield Cell(
                task=task,
                agent=agent_of_task,
                session=open_session(task),
                verifier=verifier_of(task),
                options=options,
                gateway=_gateway(options.model) if options.model else None,
                model=options.model,
                harness=name,
                trial=trial,
                job_id=job.id,
                group_id=group_id,
            )


def agent_name(agent: Agent) -> str:
    """What an agent is called where nobody names it."""
    name = getattr(agent, "name", "") or getattr(agent, "__name__", "") or type(agent).__name__
    return str(name)


def fitted(agent: Agent, task: Task) -> Agent:
    """The agent with what a task says of agents, if it is one that takes it."""
    fit = getattr(agent, "for_task", None)
    return agent if fit is None else fit(task)


def _gateway(model: str) -> Callable[[], Gateway]:
    def make() -> Gateway:
        from assay.gateway import Gateway

        return Gateway(model)

    return make


def verifier_of(task: Task) -> AbstractAsyncContextManager[Session] | None:
    """The session that begins a task's verifier, if it has one."""
    return None if task.verifier is None else open_session(task.verifier)


def open_session(task: Task) -> AbstractAsyncContextManager[Session]:
    """The session that begins a task."""
    if isinstance(task.work, Case):
        from assay.eval.case_session import case_session

        return case_session(task.work)
    from assay.tasks.rows import Row

    if isinstance(task.work, Row):
        return _row_session(task.work)
    return task.work.open()


@asynccontextmanager
async def _row_session(row: Row) -> AsyncGenerator[Session]:
    """A dataset's row that an agent is to answer again."""
    yield _RowSession(row)


class _RowSession:
    """A recorded answer that waits to be graded."""

    def __init__(self, row: Row) -> None:
        self.prompt: Prompt = row.submission.question
        self.workspace: Workspace | None = None
        self.notes: dict[str, Json] = {}
        self._row = row

    async def grade(self, submission: Submission) -> EvaluationResult:
        """Grade the answer with the row's graders."""
        recorded = replace(self._row.submission, answer=submission.answer)
        return await grade_submission(self._row.graders, recorded)
