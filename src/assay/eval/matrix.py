"""A matrix run: every task with every harness, model and trial; resumable at any point."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from assay.cores import cores
from assay.errors import InputError
from assay.eval.case_session import Keep, Kept, has_tests, kept_session
from assay.eval.harnesses import (
    FAKE,
    agent_for,
    fake_models,
    gateway_for,
    harnesses_in_images,
    require_model,
)
from assay.eval.journals import (
    forget_journal,
    forget_journals,
    journal_of,
    label_of,
    salvage,
)
from assay.eval.planning import Coordinate, MatrixRequest, plan_cells
from assay.eval.records import graded_by, record_of, start_run
from assay.eval.rollout import WATCH, Cell
from assay.eval.runner import fitted, run_cells, verifier_of
from assay.eval.work import (
    begun_again,
    is_python_agent,
    is_served,
    load_agent,
    load_tasks,
    open_work,
    stop_environments,
    version_of,
    with_cases,
)
from assay.frozen import frozen
from assay.scoring.json_safe import Json
from assay.store.kept import at_work
from assay.store.records import CellKey, CellRecord, RunRecord
from assay.store.runs import Store
from assay.tasks.blocks import HarnessSpec
from assay.tasks.case import Case
from assay.tasks.task import Agent, RunOptions, Session, Task
from assay.types.codec import from_json, to_json
from assay.types.run import Run

if TYPE_CHECKING:
    from assay.eval.cluster import Cluster
    from assay.eval.isolation import Settle

__all__ = [
    "Launch",
    "give_back",
    "kept_of",
    "launch",
    "left_of",
    "live_cell",
    "options_of",
    "regraded_cell",
    "require_own",
    "resume",
    "runs_python",
    "tasks_of",
]

OnCell = Callable[[CellRecord], None]


@frozen
class Launch:
    """A run that is ready to go.

    Attributes:
        run: Its record.
        total: Cells in all.
        todo: Cells that are still to be run.
        regrade: Finished cells whose case changed and that are to be graded again.
        digests: Id of a case or slug of a task to the digest of what it is now.
        harnesses: The same to the harnesses that were declared for it.
        agents: Agents of Python files by what the harness is called.
        options: Limits of every cell; those of its case, or of any case, by default.
    """

    run: RunRecord
    total: int
    todo: Sequence[Coordinate]
    regrade: Sequence[Coordinate]
    digests: Mapping[str, str]
    harnesses: Mapping[str, Mapping[str, HarnessSpec]]
    agents: Mapping[str, Agent] = field(default_factory=dict[str, Agent])
    options: RunOptions | None = None

    async def go(
        self,
        store: Store,
        *,
        workers: int,
        on_cell: OnCell = lambda _: None,
        on_begin: Callable[[CellKey], None] = lambda _: None,
        on_run: Callable[[Run], None] = lambda _: None,
        cluster: Cluster | None = None,
    ) -> None:
        """Run and grade what is to be done; each cell is stored as soon as it is finished.

        On a cluster ``workers`` are actors, 0 for one on each of its cores; what is only graded
        again is graded here.

        Raises:
            InputError: Something of it cannot be done on a cluster, or a machine there cannot.
        """
        planned = [*self.regrade, *self.todo]

        def done(number: int, run: Run) -> None:
            coordinate = planned[number]
            task, conditions = coordinate.task, coordinate.conditions
            record = record_of(
                run,
                run_id=self.run.id,
                case=task.slug,
                threshold=conditions.expect.pass_threshold,
                min_assurance=conditions.expect.min_assurance,
                min_coverage=conditions.expect.min_coverage,
                digest=graded_by(self.digests[task.slug]),
                file=conditions.file,
            )
            # An agent that says which model it asked is still the cell that it was begun as.
            record = replace(record, model=coordinate.model)
            store.add_cell(record, run.to_dict(), str(run.metadata.get("snapshot") or ""))
            forget_journal(store.home, self.run.id, record.key)
            if (watch := WATCH.get()) is not None and number >= len(self.regrade):
                watch.end(run, record)
            on_run(run)
            on_cell(record)

        here = () if cluster is not None else self.todo
        faked = {one.task.slug: one.task for one in here if one.asks and one.model == FAKE}
        with at_work(store.home):
            with fake_models(faked.values()) as fakes:
                cells = self._cells(store, here, on_begin, fakes)
                await run_cells(cells, done, max_concurrent=workers or cores())
            if cluster is not None:
                from assay.eval.cluster_run import run_on

                first = len(self.regrade)
                await run_on(
                    cluster,
                    self,
                    store.home,
                    workers=workers,
                    begun=lambda number: on_begin(planned[first + number].key),
                    done=lambda number, run: done(first + number, run),
                )
            forget_journals(store.home, self.run.id)
            store.finish_run(self.run.id)  # a run that nobody is at work on would be interrupted

    async def close(self) -> None:
        """Stop what the environments of its tasks started."""
        await stop_environments(one.task for one in (*self.regrade, *self.todo))

    def _cells(
        self,
        store: Store,
        todo: Iterable[Coordinate],
        on_begin: Callable[[CellKey], None],
        fakes: Mapping[str, str],
    ) -> Iterator[Cell]:
        for coordinate in self.regrade:
            on_begin(coordinate.key)
            yield regraded_cell(coordinate, self.run.id, store)
        for coordinate in todo:
            on_begin(coordinate.key)
            cell = live_cell(
                coordinate,
                self.run.id,
                store.home,
                declared=self.harnesses.get(coordinate.task.slug, {}),  # Python tasks have none
                agent=self.agents.get(coordinate.harness),
                fakes=fakes,
            )
            yield cell if self.options is None else replace(cell, options=self.options)


def launch(request: MatrixRequest, store: Store, settle: Settle | None = None) -> Launch:
    """Load the cases, plan the matrix, settle how tests are isolated, and record the run.

    What nobody settles is settled by lock files alone.

    Raises:
        InputError: For whatever is wrong with the cases or the request.
    """
    planned = _settled(request, store, settle, {})
    _require_models(planned.cells, request)
    total = len(planned.cells)
    # A path such as `.` says nothing to who was not there.
    named = (p if p.strip("./") else Path(p).resolve().name for p in request.paths)
    config: dict[str, Json] = {"kind": "matrix", "request": to_json(request)}
    config["suite"] = ", ".join(named)
    run = start_run(
        store, config=config, digests=planned.digests, planned=total, label=request.label
    )
    return planned.launch(run, planned.cells)


def resume(
    ref: str, store: Store, *, regrade: bool = False, settle: Settle | None = None
) -> Launch:
    """Take an unfinished run up again: what is finished is not repeated, errors are.

    Raises:
        InputError: If the run is unknown or not a matrix, or finished cells of it were graded by
            another version of their case or of assay and ``regrade`` is not asked for.
    """
    run = store.run(ref)
    request = _request_of(run)
    if _trusts_others(request):
        require_own(run)
    # Of a tag that has moved since, the cells to come take what those before had.
    # Those that ended early, or with assay, may know none.
    images = ((cell.case, cell.notes.get("image")) for cell in store.cells(run.id))
    had = {case: str(image) for case, image in images if image}
    planned = _settled(request, store, settle, {} if regrade else had)
    todo, redo = left_of(run, store, planned.cells, planned.digests)
    if redo and not regrade:
        changed = dict.fromkeys(one.task.slug for one in redo)
        raise InputError(
            f"cases changed, or assay did, since cells of run {run.id} were graded: "
            f"{', '.join(changed)}",
            hint="--regrade grades what was kept by the new case; or start a new run",
        )
    _require_models(todo, request)
    return planned.launch(run, todo, redo)


def left_of(
    run: RunRecord, store: Store, cells: Sequence[Coordinate], digests: Mapping[str, str]
) -> tuple[list[Coordinate], list[Coordinate]]:
    """The cells of a run that are still to be run; and those that another version graded."""
    salvage(store, run.id)
    finished = store.finished(run.id)
    graded = {cell.key: cell.digest for cell in store.cells(run.id)}
    current = {name: graded_by(digest) for name, digest in digests.items()}
    redo = [c for c in cells if c.key in finished and graded[c.key] != current[c.task.slug]]
    return [c for c in cells if c.key not in finished], redo


def _require_models(cells: Iterable[Coordinate], request: MatrixRequest) -> None:
    """Refuse models that cannot be asked, before anything is run.

    An agent of a Python file may ask none, whatever a case lists; not where one was named for it.
    """
    asking = {
        one.model: one
        for one in cells
        if one.asks and (one.model in request.models or not is_python_agent(one.harness))
    }
    for one in asking.values():
        is_anothers = (one.harness, one.model) not in one.conditions.matrix.pairs()
        require_model(one.model, one.task.slug, is_anothers=is_anothers and not request.models)


def tasks_of(run: RunRecord) -> list[Task]:
    """The tasks of a stored run, as they are now.

    Raises:
        InputError: If it is not a matrix run, or its tasks are gone or malformed.
    """
    request = _request_of(run)
    if _trusts_others(request):
        require_own(run)
    return load_tasks(request.paths, env=request.env, only=request.cases)


def runs_python(run: RunRecord) -> bool:
    """Whether to grade it again runs Python files of its tasks, or asks URLs."""
    kind = run.config.get("kind")
    return kind == "job" or (kind == "matrix" and _trusts_others(_request_of(run)))


def require_own(run: RunRecord) -> None:
    """Refuse to run the Python files, or to ask the URLs, of a run that somebody else wrote.

    Raises:
        InputError: If the run was imported.
    """
    if run.config.get("imported") is True:
        raise InputError(
            f"run {run.id} was imported, and its tasks are of Python files or URLs, which it could "
            "choose",
            hint="run the environment's own file: assay run env.py",
        )


def _trusts_others(request: MatrixRequest) -> bool:
    """Whether it runs Python files, or has tasks graded elsewhere."""
    named = (*request.paths, request.env, *filter(is_python_agent, request.harnesses))
    return any(
        name.rpartition(":")[0].endswith(".py") or name.endswith(".py") or is_served(name)
        for name in named
    )


def _request_of(run: RunRecord) -> MatrixRequest:
    saved = run.config.get("request")
    if run.config.get("kind") != "matrix" or not isinstance(saved, dict):
        raise InputError(f"run {run.id} is not a matrix run, so it cannot be resumed")
    return from_json(MatrixRequest, saved)


@frozen
class _Planned:
    """Every cell, in order, its case's modes resolved; digests and harnesses as in `Launch`."""

    cells: list[Coordinate]
    digests: dict[str, str]
    harnesses: dict[str, Mapping[str, HarnessSpec]]
    agents: Mapping[str, Agent]

    def launch(
        self, run: RunRecord, todo: Sequence[Coordinate], redo: Sequence[Coordinate] = ()
    ) -> Launch:
        """What is left of it, ready to go."""
        total = len(self.cells)
        return Launch(run, total, todo, redo, self.digests, self.harnesses, self.agents)


def _settled(
    request: MatrixRequest, store: Store, settle: Settle | None, images: Mapping[str, str]
) -> _Planned:
    tasks = load_tasks(request.paths, env=request.env, only=request.cases)
    agents = {name: load_agent(name) for name in request.harnesses if is_python_agent(name)}
    # Whatever is wrong is told before anything is played.
    plan, harnesses = plan_cells(tasks, request, agents)
    cases = [task.work for task in tasks if isinstance(task.work, Case)]
    cases = [_with_image(case, store, images.get(case.id, "")) for case in cases]
    harnesses = harnesses_in_images(cases, harnesses, str(Path(store.home, "cache")))
    tasks = with_cases(tasks, cases)
    if tested := [case for case in cases if has_tests(case)]:
        from assay.eval.isolation import CaseLock, settle_by_locks

        cache = str(Path(store.home, "cache"))
        settled = (settle or settle_by_locks)([CaseLock(case, cache) for case in tested])
        tasks = with_cases(tasks, settled)
    resolved = {task.slug: task for task in tasks}
    digests = {task.slug: version_of(task) for task in tasks}
    cells = [replace(one, task=resolved[one.task.slug]) for one in plan]
    return _Planned(cells, digests, harnesses, agents)


def _with_image(case: Case, store: Store, digest: str) -> Case:
    if case.image is None:
        return case
    from assay.eval.images import pinned

    return pinned(case, str(Path(store.home, "cache")), digest)


def _cell(
    coordinate: Coordinate, run_id: str, session: AbstractAsyncContextManager[Session], agent: Agent
) -> Cell:
    return Cell(
        task=coordinate.task,
        agent=agent,
        session=session,
        verifier=verifier_of(coordinate.task),
        options=options_of(coordinate.task),
        harness=coordinate.harness,
        model=coordinate.model,
        trial=coordinate.trial,
        job_id=run_id,
        group_id="/".join((run_id, *coordinate.key[:3])),
    )


def live_cell(
    coordinate: Coordinate,
    run_id: str,
    home: str,
    *,
    declared: Mapping[str, HarnessSpec],
    agent: Agent | None,
    fakes: Mapping[str, str],
) -> Cell:
    """A cell whose agent works.

    Args:
        coordinate: Which one.
        run_id: The run.
        home: The directory of its store.
        declared: The harnesses that its case can use.
        agent: The agent of a Python file, where its harness is one.
        fakes: Slugs of tasks to their fake models.
    """
    task, name = coordinate.task, coordinate.harness
    agent = agent_for(name, task, declared.get(name)) if agent is None else fitted(agent, task)
    session = open_work(task, cache=str(Path(home, "cache")), home=home)
    cell = _cell(coordinate, run_id, session, agent)
    if not coordinate.asks:
        return cell
    gateway = gateway_for(
        fakes[task.slug] if coordinate.model == FAKE else coordinate.model,
        coordinate.conditions.limits,
        journal=journal_of(home, run_id, coordinate.key),
        journal_of=label_of(coordinate.key),
    )
    return replace(cell, gateway=gateway)


def options_of(task: Task) -> RunOptions:
    """How long a task's agent and graders may take.

    What the graders' commands may take by their own limits comes on top of ours: otherwise a
    submission that hangs every command would be our time-out, an error that leaves the mean, and
    not the 0 that it is.
    """
    limits = task.conditions.limits
    own = _own_timeouts(task.work) if isinstance(task.work, Case) else 0.0
    return RunOptions(
        agent_timeout=limits.agent_timeout_s, grading_timeout=limits.grading_timeout_s + own
    )


def _own_timeouts(case: Case) -> float:
    """Seconds that the graders' commands may take by their own limits, one after the other."""
    total = 0.0
    for spec in case.graders:
        parameter = spec.kind.parameters.get("timeout_s")
        seconds = spec.options.get("timeout_s") or (parameter.default if parameter else 0.0)
        total += float(seconds) if isinstance(seconds, int | float) else 0.0
    return total


def regraded_cell(
    coordinate: Coordinate, run_id: str, store: Store, keep: Keep | None = None
) -> Cell:
    """A cell that grades what was kept: no agent runs."""
    before = Run.from_dict(store.detail(run_id, coordinate.key))
    kept, case, cache = kept_of(before), coordinate.task.work, str(Path(store.home, "cache"))
    session = (
        kept_session(case, kept, cache=cache, home=store.home, keep=keep)
        if isinstance(case, Case)
        else begun_again(coordinate.task, before, kept, cache=cache, home=store.home)
    )
    cell = _cell(coordinate, run_id, session, give_back(before))
    return replace(cell, is_live=False)


def kept_of(before: Run) -> Kept:
    """What was kept of a run's workspace."""
    found = before.metadata
    return Kept(*(str(found.get(name) or "") for name in ("snapshot", "source", "image")))


def give_back(before: Run) -> Agent:
    """An agent that does nothing but hand over what was recorded before."""

    async def agent(run: Run) -> None:
        run.trace = replace(before.trace, steps=before.trace.work)
        run.trace_id = before.trace_id or run.trace_id
        run.cost_usd, run.tokens = before.cost_usd, before.tokens
        run.metadata = {**before.metadata, "regraded": True}

    return agent
