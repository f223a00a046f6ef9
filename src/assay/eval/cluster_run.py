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
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from assay.errors import InputError, SandboxUnavailableError
from assay.eval.actors import EndsWorkersError, worker_directory
from assay.eval.batch import run_batches
from assay.eval.cluster_limits import limited_actors
from assay.eval.harnesses import FAKE, fake_models
from assay.eval.journals import journal_of
from assay.eval.matrix import Launch, live_cell, options_of
from assay.eval.planning import Coordinate
from assay.eval.rollout import rollout
from assay.eval.work import is_python_agent, load_agent
from assay.frozen import frozen
from assay.tasks.blocks import HarnessSpec
from assay.tasks.case import Case
from assay.tasks.task import Agent, Task
from assay.types.run import Run
from assay.types.trace import Step

if TYPE_CHECKING:
    from assay.eval.cluster import Cluster

__all__ = ["run_on"]

_AHEAD = 2
"""Cells that wait for each core, so that none of them is idle, nor one of a machine that joins."""


@frozen
class _Request:
    """A cell to be run.

    Attributes:
        coordinate: Which one.
        digest: Of its case, as the driver sees it.
        declared: The harnesses that its case can use.
    """

    coordinate: Coordinate
    digest: str
    declared: Mapping[str, HarnessSpec]


class _Cells:
    """What an actor does: cells of one run.

    Args:
        run_id: The run.
        home: The directory of its store.
        mark: A file there that only this run has.
        place: The working directory, which paths are relative to.
        roots: The directories of its cases.
        programs: What agents are started with, where this machine has it.
        agents: The Python agents.
        needs_sandbox: Whether this machine has a sandbox, and so the others have to.
    """

    def __init__(
        self,
        run_id: str,
        home: str,
        mark: str,
        *,
        place: str,
        roots: Sequence[str],
        programs: Sequence[str],
        agents: Sequence[str],
        needs_sandbox: bool,
    ) -> None:
        self._run_id, self._home, self._mark = run_id, home, mark
        self._place = place
        self._roots, self._programs, self._names = roots, programs, agents
        self._needs_sandbox = needs_sandbox
        self._agents: dict[str, Agent] = {}

    def prepare(self) -> None:
        """Check that this machine has what the cells need.

        Raises:
            AssayError: If it does not.
        """
        if not Path(self._home, self._mark).is_file():
            raise InputError(
                f"it does not see the store's directory {self._home} of the machine that began "
                "the run",
                hint="put it where all machines see it at the same path, and name it: ASSAY_HOME",
            )
        for root in (self._place, *self._roots):
            if not Path(root).is_dir():
                raise _unseen(root)
        os.chdir(self._place)
        for program in self._programs:
            if shutil.which(program) is None:
                raise InputError(f"it has no program {program}", hint="install it there")
        if self._needs_sandbox:
            from assay.sandbox import probe

            # Where what a probe that is killed leaves goes with the cluster.
            tempfile.tempdir = worker_directory()
            tier, tempfile.tempdir = probe().tier, None
            if tier is None:
                raise SandboxUnavailableError(
                    "its sandbox does not work", hint="`assay doctor` there says why"
                )
        self._agents = {name: load_agent(name) for name in self._names}

    async def __call__(self, request: object) -> Run:
        """The run of a cell."""
        asked = cast("_Request", request)
        coordinate = asked.coordinate
        case, agent = cast("Case", coordinate.task.work), self._agents.get(coordinate.harness)
        if case.digest != asked.digest:
            raise _unseen(case.root)
        earlier = _earlier(journal_of(self._home, self._run_id, coordinate.key))
        faked = [coordinate.task] if coordinate.asks and coordinate.model == FAKE else []
        with fake_models(faked) as fakes:
            cell = live_cell(
                coordinate,
                self._run_id,
                self._home,
                declared=asked.declared,
                agent=agent,
                fakes=fakes,
            )
            run = await rollout(cell)
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
    from assay.gateway.journal import Asked, readable_entries
    from assay.gateway.trace import recorded

    entries, _ = readable_entries(Path(journal))
    asked = sum(isinstance(entry, Asked) for entry in entries)
    cost = recorded(entries).usage.cost_usd
    times = "once" if asked == 1 else f"{asked} times"
    price = "an unknown price" if cost is None else f"${cost:.4f}"
    return (
        f"a worker died over this cell after its agent had asked its model {times}, for "
        f"{price}; the cell was run again, and its figures leave that out"
    )


async def run_on(
    cluster: Cluster,
    launch: Launch,
    home: str,
    *,
    workers: int,
    begun: Callable[[int], None],
    done: Callable[[int, Run], None],
) -> None:
    """Run the cells that a launch still has to do on a cluster.

    Args:
        cluster: Where.
        launch: What.
        home: The directory of its store.
        workers: Cells at once; 0 for one on each core.
        begun: Told of each cell that is about to be sent off, by its place among those to do.
        done: Told of each run.

    Raises:
        InputError: Some of it cannot be done there.
        AssayError: No worker can start.
    """
    _require_portable(launch)
    if not launch.todo:
        return
    cases = {one.task.slug: cast("Case", one.task.work) for one in launch.todo}
    digests = {slug: case.digest for slug, case in cases.items()}
    with _marked(home, launch.run.id) as mark:
        work = _work_of(launch, home, mark)
        # Cells have limits of their own, which hold for as long as the loop goes on.
        blocks = max(_longest(one.task) for one in launch.todo)
        async with limited_actors(
            cluster, work, workers, asks=True, depth=1, blocks=blocks
        ) as pool:

            async def one(numbered: tuple[int, Coordinate]) -> Run:
                number, coordinate = numbered
                begun(number)
                slug = coordinate.task.slug
                asked = _Request(coordinate, digests[slug], launch.harnesses[slug])
                try:
                    return cast("Run", await pool(asked))
                except EndsWorkersError as error:
                    return _lost(coordinate, launch.run.id, error)

            await run_batches(
                enumerate(launch.todo),
                one,
                lambda numbered, run: done(numbered[0], run),
                at_once=workers or _AHEAD * max(1, cluster.cores),
            )


def _longest(task: Task) -> float:
    """Seconds for which an agent in Python and graders of one's own may compute."""
    options = options_of(task)
    return (options.agent_timeout or 0.0) + (options.grading_timeout or 0.0)


def _require_portable(launch: Launch) -> None:
    """Refuse what only the machine that starts the run can do."""
    for one in launch.todo:
        work, name = one.task.work, one.task.slug
        if not isinstance(work, Case):
            why = f"task {name!r} is of a Python file or a URL"
        elif work.image is not None:
            why = f"case {name!r} has an image, which is unpacked on one machine"
        elif launch.options is not None:
            why = f"task {name!r} was begun in Python"
        else:
            continue
        raise InputError(f"{why}, and cannot be run on a cluster", hint="run it without --engine")


def _work_of(launch: Launch, home: str, mark: str) -> _Cells:
    from assay.sandbox import probe

    used = {(one.task.slug, one.harness) for one in launch.todo}
    specs = [launch.harnesses[slug].get(harness) for slug, harness in sorted(used)]
    programs = dict.fromkeys(spec.argv[0] for spec in specs if spec is not None and spec.argv)
    return _Cells(
        launch.run.id,
        home,
        mark,
        place=str(Path.cwd()),
        roots=sorted({cast("Case", one.task.work).root for one in launch.todo}),
        programs=[program for program in programs if shutil.which(program) is not None],
        agents=sorted({one.harness for one in launch.todo if is_python_agent(one.harness)}),
        needs_sandbox=probe().tier is not None,
    )


@contextmanager
def _marked(home: str, run_id: str) -> Generator[str]:
    """A file of the store's directory by which others know it."""
    file = Path(home, f"{run_id}.cluster")
    file.touch()
    try:
        yield file.name
    finally:
        file.unlink(missing_ok=True)


def _lost(coordinate: Coordinate, run_id: str, error: EndsWorkersError) -> Run:
    """The run of a cell over which workers end."""
    run = Run.failed(str(error), slug=coordinate.task.slug, task_id=coordinate.task.id)
    run.harness, run.model, run.trial = coordinate.harness, coordinate.model, coordinate.trial
    run.job_id, run.group_id = run_id, "/".join((run_id, *coordinate.key[:3]))
    return run
