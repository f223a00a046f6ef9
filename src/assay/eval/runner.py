"""The one way of cells: planned somewhere, run and graded here, kept by whoever planned them."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from assay.cores import cores
from assay.errors import InputError
from assay.eval.batch import run_batches
from assay.eval.harnesses import FAKE, agent_for, fake_models, gateway_for
from assay.eval.planning import Planned, options_of
from assay.eval.rollout import WATCH, Cell, rollout
from assay.eval.work import begun_again, give_back, open_work, own_model
from assay.frozen import frozen
from assay.tasks.task import Agent, RunOptions, Task
from assay.types.run import Job, Run

if TYPE_CHECKING:
    from assay.eval.cluster.joining import Cluster
    from assay.gateway import Gateway
    from assay.store.records import CellKey, CellRecord

OnBegin: TypeAlias = "Callable[[CellKey], None]"
OnCell: TypeAlias = "Callable[[CellRecord], None]"


@frozen(kw_only=True)
class Plan:
    """Cells that are to be done, and where what comes of them goes.

    A matrix, a job, a second grading and trials differ in nothing else.

    Attributes:
        cells: What is done.
        sink: Keeps what came of a cell; gives its row as it was kept, None where nobody asks.
        run_id: The run or job that they are of; empty for none.
        group: What the ids of their groups begin with; by default the id of the run.
        home: Directory that keeps what agents leave, and what passes their gateways; empty: nothing
            is kept.
        cache: Directory of fetched sources and built environments, shared by all cells; by default
            the one in ``home``.
        options: Limits of every cell; by default those of its task.
        is_shown: Whether who watches rollouts is told of these.
    """

    cells: Sequence[Planned]
    sink: Callable[[Planned, Run], CellRecord | None]
    run_id: str = ""
    group: str = ""
    home: str = ""
    cache: str = ""
    options: RunOptions | None = None
    is_shown: bool = True

    async def go(
        self,
        *,
        workers: int,
        on_begin: OnBegin = lambda _: None,
        on_cell: OnCell = lambda _: None,
        cluster: Cluster | None = None,
    ) -> None:
        """Do them, at most ``workers`` at once; each goes to the sink as soon as it is finished.

        On a cluster ``workers`` are actors, 0 for one on each of its cores; what is only graded
        again is graded here.

        Raises:
            InputError: Something of it cannot be done on a cluster, or a machine there cannot.
        """
        watch = WATCH.get() if self.is_shown else None

        def done(planned: Planned, run: Run) -> None:
            record = self.sink(planned, run)
            if record is not None:
                if watch is not None and planned.again is None:
                    watch.end(run, record)
                on_cell(record)

        here = [one for one in self.cells if cluster is None or one.again is not None]
        faked = {one.task.slug: one.task for one in here if one.asks and one.model == FAKE}
        with fake_models(faked.values()) as fakes:

            async def work(planned: Planned) -> Run:
                on_begin(planned.key)
                return await rollout(self.cell(planned, fakes))

            await run_batches(here, work, done, at_once=workers or cores())
        if cluster is not None:
            from assay.eval.cluster.cells import run_on

            await run_on(cluster, self, workers=workers, begun=on_begin, done=done)

    def cell(self, planned: Planned, fakes: Mapping[str, str]) -> Cell:
        """A cell that is about to be done; `fakes` are the fake models, by the slugs of tasks."""
        task, home = planned.task, self.home
        cache = self.cache or (str(Path(home, "cache")) if home else "")
        before = None if planned.again is None else planned.again()
        if before is not None:
            agent = give_back(before)
            session = begun_again(task, before, cache=cache, home=home, keep=planned.keep)
        else:
            given, name = planned.agent, planned.harness
            agent = agent_for(name, task, planned.spec) if given is None else fitted(given, task)
            session = open_work(task, cache=cache, home=home)
        return Cell(
            task=task,
            agent=agent,
            session=session,
            verifier=None if task.verifier is None else open_work(task.verifier),
            options=self.options or options_of(task),
            gateway=self._gateway(planned, fakes) if planned.asks and before is None else None,
            harness=planned.harness,
            model=planned.model,
            trial=planned.trial,
            job_id=self.run_id or None,
            group_id=self.group_of(planned),
            is_live=self.is_shown and before is None,
        )

    def group_of(self, planned: Planned) -> str | None:
        """The id that a cell shares with its repeats."""
        begin = self.group or self.run_id
        return "/".join((begin, *planned.key[:3])) if begin else None

    def _gateway(self, planned: Planned, fakes: Mapping[str, str]) -> Callable[[], Gateway]:
        model = fakes[planned.task.slug] if planned.model == FAKE else planned.model
        limits = planned.task.conditions.limits
        if not self.home:
            return gateway_for(model, limits)
        from assay.eval.journals import journal_of, label_of

        journal = journal_of(self.home, self.run_id, planned.key)
        return gateway_for(model, limits, journal=journal, journal_of=label_of(planned.key))


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
    name, model = agent_name(agent), options.model or own_model(agent)
    cells = [
        Planned(task, name, model, trial, asks=bool(options.model), agent=agent)
        for task in tasks
        for trial in range(1, options.group + 1)
    ]
    if options.store:
        from assay.eval.jobs import run_stored

        return await run_stored(cells, options, job)
    job.group = options.group
    before, finished = len(job.runs), dict[int, Run]()

    def sink(planned: Planned, run: Run) -> CellRecord | None:
        finished[id(planned)] = run
        job.runs.append(run)
        return None if WATCH.get() is None else planned.record(run, job.id)

    group = secrets.token_hex(8)
    plan = Plan(cells=cells, sink=sink, run_id=job.id, group=group, options=options)
    await plan.go(workers=options.max_concurrent)
    job.runs[before:] = [finished[id(one)] for one in cells]
    return job


def agent_name(agent: Agent) -> str:
    """What an agent is called where nobody names it."""
    name = getattr(agent, "name", "") or getattr(agent, "__name__", "") or type(agent).__name__
    return str(name)


def fitted(agent: Agent, task: Task) -> Agent:
    """The agent with what a task says of agents, if it is one that takes it."""
    fit = getattr(agent, "for_task", None)
    return agent if fit is None else fit(task)
