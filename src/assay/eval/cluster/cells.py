"""Cells of a matrix on a cluster: an actor lets the agent work and grades, the driver stores.

Both see the same files: the cases, and the store's directory, where an actor keeps snapshots and
its cell's journal, as a run on one machine does. What other machines cannot do is refused before
anything runs. If an actor dies, its cell is run again.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from assay.errors import InputError, SandboxUnavailableError
from assay.eval.batch import run_batches
from assay.eval.cluster.actors import Actors, EndsWorkersError, worker_directory
from assay.eval.cluster.limits import ClusterLimits
from assay.eval.harnesses import FAKE, fake_models
from assay.eval.journals import journal_of
from assay.eval.planning import Planned, options_of
from assay.eval.rollout import rollout
from assay.eval.runner import OnBegin, Plan
from assay.eval.work import is_python_agent, load_agent
from assay.frozen import frozen
from assay.tasks.case import Case
from assay.tasks.task import Agent, Task
from assay.types.run import Run
from assay.types.trace import Step

if TYPE_CHECKING:
    from assay.eval.cluster.joining import Cluster

_AHEAD = 2
"""Cells that wait for each core, so that none of them is idle, nor one of a machine that joins."""


@frozen
class _Request:
    """A cell to be run.

    Attributes:
        planned: The cell; its Python agent is found by the name of its harness.
        digest: Of its case, as the driver sees it.
    """

    planned: Planned
    digest: str


@frozen(kw_only=True)
class _Cells:
    """What an actor does: cells of one run.

    Attributes:
        run_id: The run.
        home: The directory of its store.
        mark: A file there that only this run has.
        place: The working directory, which paths are relative to.
        roots: The directories of its cases.
        programs: What agents are started with, where this machine has it.
        names: The harnesses that are Python agents.
        needs_sandbox: Whether this machine has a sandbox, and so the others have to.
        agents: Those agents, by their harnesses; an actor loads them.
    """

    run_id: str
    home: str
    mark: str
    place: str
    roots: Sequence[str]
    programs: Sequence[str]
    names: Sequence[str]
    needs_sandbox: bool
    agents: dict[str, Agent] = field(default_factory=dict[str, "Agent"])

    def prepare(self) -> None:
        """Check that this machine has what the cells need.

        Raises:
            AssayError: If it does not.
        """
        if not Path(self.home, self.mark).is_file():
            raise InputError(
                f"it does not see the store's directory {self.home} of the machine that began "
                "the run",
                hint="put it where all machines see it at the same path, and name it: ASSAY_DB",
            )
        for root in (self.place, *self.roots):
            if not Path(root).is_dir():
                raise _unseen(root)
        os.chdir(self.place)
        for program in self.programs:
            if shutil.which(program) is None:
                raise InputError(f"it has no program {program}", hint="install it there")
        if self.needs_sandbox:
            from assay.sandbox import probe

            # Where what a probe that is killed leaves goes with the cluster.
            tempfile.tempdir = worker_directory()
            tier, tempfile.tempdir = probe().tier, None
            if tier is None:
                raise SandboxUnavailableError(
                    "its sandbox does not work", hint="`assay doctor` there says why"
                )
        self.agents.update((name, load_agent(name)) for name in self.names)

    async def __call__(self, request: object) -> Run:
        """The run of a cell."""
        asked = cast("_Request", request)
        planned = replace(asked.planned, agent=self.agents.get(asked.planned.harness))
        case = cast("Case", planned.task.work)
        if case.digest != asked.digest:
            raise _unseen(case.root)
        earlier = _earlier(journal_of(self.home, self.run_id, planned.key))
        faked = [planned.task] if planned.asks and planned.model == FAKE else []
        plan = Plan(cells=[planned], sink=_kept_by_driver, run_id=self.run_id, home=self.home)
        with fake_models(faked) as fakes:
            run = await rollout(plan.cell(planned, fakes))
        if earlier:
            run.record(Step(source="system", error=earlier))
        return run


def _unseen(root: str) -> InputError:
    return InputError(
        f"{socket.gethostname()} does not see {root} as the machine that began the run does",
        hint="put the cases where all machines see them at the same path, and start there",
    )


def _earlier(journal: str) -> str:
    """What to say about an earlier attempt at a cell, whose actor died; "" if there was none."""
    if not Path(journal).is_file():
        return ""
    from assay.gateway.journal import AskedEvent, readable_entries
    from assay.gateway.trace import recorded

    entries, _ = readable_entries(Path(journal))
    asked = sum(isinstance(entry, AskedEvent) for entry in entries)
    cost = recorded(entries).usage.cost_usd
    times = "once" if asked == 1 else f"{asked} times"
    price = "an unknown price" if cost is None else f"${cost:.4f}"
    return (
        f"a worker died over this cell after its agent had asked its model {times}, for "
        f"{price}; the cell was run again, and its figures leave that out"
    )


async def run_on(
    cluster: Cluster,
    plan: Plan,
    *,
    workers: int,
    begun: OnBegin,
    done: Callable[[Planned, Run], None],
) -> None:
    """Run the cells of a plan on a cluster that nobody has worked on.

    Args:
        cluster: Where.
        plan: What.
        workers: Cells at once; 0 for one on each core.
        begun: Told of each cell that is about to be sent off.
        done: Told of each run.

    Raises:
        InputError: Some of it cannot be done there.
        AssayError: No worker can start.
    """
    todo = [one for one in plan.cells if one.again is None]
    _require_portable(plan, todo)
    if not todo:
        return
    cases = {one.task.slug: cast("Case", one.task.work) for one in todo}
    digests = {slug: case.digest for slug, case in cases.items()}
    with _marked(plan) as mark:
        work = _work_of(plan, todo, mark)
        # Cells have limits of their own, which hold for as long as the loop goes on.
        blocks = max(_longest(one.task) for one in todo)
        # A cell that is begun again would say that a worker had died over it.
        limits = ClusterLimits(may_repeat=False)
        with Actors(work, workers, depth=1, blocks=blocks, limits=limits) as pool:

            async def one(planned: Planned) -> Run:
                begun(planned.key)
                asked = _Request(replace(planned, agent=None), digests[planned.task.slug])
                try:
                    return cast("Run", await pool(asked))
                except EndsWorkersError as error:
                    return _lost(planned, plan, error)

            await run_batches(todo, one, done, at_once=workers or _AHEAD * max(1, cluster.cores))


def _longest(task: Task) -> float:
    """Seconds for which an agent in Python and graders of one's own may compute."""
    options = options_of(task)
    return (options.agent_timeout or 0.0) + (options.grading_timeout or 0.0)


def _require_portable(plan: Plan, todo: Sequence[Planned]) -> None:
    """Refuse what only the machine that starts the run can do."""
    for one in todo:
        work, name = one.task.work, one.task.slug
        if not isinstance(work, Case):
            why = f"task {name!r} is of a Python file or a URL"
        elif work.image is not None:
            why = f"case {name!r} has an image, which is unpacked on one machine"
        elif plan.options is not None:
            why = f"task {name!r} was begun in Python"
        else:
            continue
        raise InputError(f"{why}, and cannot be run on a cluster", hint="run it without --engine")


def _work_of(plan: Plan, todo: Sequence[Planned], mark: str) -> _Cells:
    from assay.sandbox import probe

    used = {(one.task.slug, one.harness): one.spec for one in todo}
    specs = [spec for _, spec in sorted(used.items(), key=lambda item: item[0])]
    programs = dict.fromkeys(spec.argv[0] for spec in specs if spec is not None and spec.argv)
    return _Cells(
        run_id=plan.run_id,
        home=plan.home,
        mark=mark,
        place=str(Path.cwd()),
        roots=sorted({cast("Case", one.task.work).root for one in todo}),
        programs=[program for program in programs if shutil.which(program) is not None],
        names=sorted({one.harness for one in todo if is_python_agent(one.harness)}),
        needs_sandbox=probe().tier is not None,
    )


@contextmanager
def _marked(plan: Plan) -> Generator[str]:
    """A file of the store's directory by which others know it."""
    file = Path(plan.home, f"{plan.run_id}.cluster")
    file.touch()
    try:
        yield file.name
    finally:
        file.unlink(missing_ok=True)


def _kept_by_driver(planned: Planned, run: Run) -> None:
    """An actor sends what came of its cell; who planned it keeps that."""


def _lost(planned: Planned, plan: Plan, error: EndsWorkersError) -> Run:
    """The run of a cell over which workers end."""
    run = Run.failed(str(error), slug=planned.task.slug, task_id=planned.task.id)
    run.harness, run.model, run.trial = planned.harness, planned.model, planned.trial
    run.job_id, run.group_id = plan.run_id, plan.group_of(planned)
    return run
