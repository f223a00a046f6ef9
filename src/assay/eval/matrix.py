"""A matrix run: every task with every harness, model and trial; resumable at any point."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from assay.errors import InputError
from assay.eval.harnesses import harnesses_in_images, require_model
from assay.eval.journals import forget_journal, forget_journals, salvage
from assay.eval.planning import MatrixRequest, Planned, plan_cells
from assay.eval.records import graded_by, start_run
from assay.eval.runner import OnBegin, OnCell, Plan
from assay.eval.work import (
    is_python_agent,
    is_served,
    load_agent,
    load_tasks,
    stop_environments,
    version_of,
    with_cases,
)
from assay.eval.workspaces.case_session import has_tests
from assay.frozen import frozen
from assay.scoring.json_safe import Json
from assay.store.kept_files import at_work
from assay.store.records import CellKey, CellRecord, RunRecord
from assay.store.runs import Store
from assay.tasks.case import Case
from assay.tasks.task import RunOptions, Task
from assay.types.codec import from_json, to_json
from assay.types.run import Run

if TYPE_CHECKING:
    from assay.eval.cluster.joining import Cluster
    from assay.eval.proofs.isolation import Settle


@frozen
class Launch:
    """A run that is ready to go.

    Attributes:
        run: Its record.
        total: Cells in all.
        cells: What is to be done; first finished cells whose task changed, to be graded again.
        options: Limits of every cell; those of its task by default.
    """

    run: RunRecord
    total: int
    cells: Sequence[Planned]
    options: RunOptions | None = None

    @property
    def todo(self) -> list[Planned]:
        """Cells that are still to be run."""
        return [one for one in self.cells if one.again is None]

    async def go(
        self,
        store: Store,
        *,
        workers: int,
        on_cell: OnCell = lambda _: None,
        on_begin: OnBegin = lambda _: None,
        on_run: Callable[[Run], None] = lambda _: None,
        cluster: Cluster | None = None,
    ) -> None:
        """Do what is to be done, as `Plan` says; each cell is stored as soon as it is finished.

        Raises:
            InputError: Something of it cannot be done on a cluster, or a machine there cannot.
        """

        def sink(planned: Planned, run: Run) -> CellRecord:
            record = planned.record(run, self.run.id)
            store.add_cell(record, run.to_dict(), str(run.metadata.get("snapshot") or ""))
            forget_journal(store.home, self.run.id, record.key)
            on_run(run)
            return record

        plan = Plan(
            cells=self.cells, sink=sink, run_id=self.run.id, home=store.home, options=self.options
        )
        with at_work(store.home):
            await plan.go(workers=workers, on_begin=on_begin, on_cell=on_cell, cluster=cluster)
            forget_journals(store.home, self.run.id)
            store.finish_run(self.run.id)  # a run that nobody is at work on would be interrupted

    async def close(self) -> None:
        """Stop what the environments of its tasks started."""
        await stop_environments(one.task for one in self.cells)


def launch(request: MatrixRequest, store: Store, settle: Settle | None = None) -> Launch:
    """Load the cases, plan the matrix, settle how tests are isolated, and record the run.

    What nobody settles is settled by lock files alone.

    Raises:
        InputError: For whatever is wrong with the cases or the request.
    """
    cells = _settled(request, store, settle, {})
    _require_models(cells, request)
    # A path such as `.` says nothing to who was not there.
    named = (p if p.strip("./") else Path(p).resolve().name for p in request.paths)
    config: dict[str, Json] = {"kind": "matrix", "request": to_json(request)}
    config["suite"] = ", ".join(named)
    return begun(store, cells, config, label=request.label)


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
    cells = _settled(request, store, settle, {} if regrade else had)
    ready = gone_on_with(run, store, cells)
    if not regrade and len(ready.todo) < len(ready.cells):
        raise InputError(
            f"cases changed, or assay did, since cells of run {run.id} were graded: "
            f"{changed(ready)}",
            hint="--regrade grades what was kept by the new case; or start a new run",
        )
    _require_models(ready.todo, request)
    return ready


def begun(
    store: Store, cells: Sequence[Planned], config: Mapping[str, Json], *, label: str = ""
) -> Launch:
    """A run of cells that is recorded, and of which nothing is done."""
    versions = {one.task.slug: one.version for one in cells}
    run = start_run(store, config=config, digests=versions, planned=len(cells), label=label)
    return Launch(run, len(cells), cells)


def gone_on_with(run: RunRecord, store: Store, cells: Sequence[Planned]) -> Launch:
    """What is left of a run: cells that another version graded, and those that are to be run."""
    salvage(store, run.id)
    finished = store.finished(run.id)
    graded = {cell.key: cell.digest for cell in store.cells(run.id)}
    again = [
        replace(one, again=partial(run_of, store, run.id, one.key))
        for one in cells
        if one.key in finished and graded[one.key] != graded_by(one.version)
    ]
    todo = [one for one in cells if one.key not in finished]
    return Launch(run, len(cells), [*again, *todo])


def changed(ready: Launch) -> str:
    """The tasks that another version graded, by name."""
    return ", ".join(dict.fromkeys(one.task.slug for one in ready.cells if one.again is not None))


def run_of(store: Store, run_id: str, key: CellKey) -> Run:
    """The run of a cell as it was kept."""
    return Run.from_dict(store.detail(run_id, key))


def _require_models(cells: Iterable[Planned], request: MatrixRequest) -> None:
    """Refuse models that cannot be asked, before anything is run.

    An agent of a Python file may ask none, whatever a case lists; not where one was named for it.
    """
    asking = {
        one.model: one
        for one in cells
        if one.asks and (one.model in request.models or not is_python_agent(one.harness))
    }
    for one in asking.values():
        is_anothers = (one.harness, one.model) not in one.task.conditions.matrix.pairs()
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


def _settled(
    request: MatrixRequest, store: Store, settle: Settle | None, images: Mapping[str, str]
) -> list[Planned]:
    """Every cell that is asked for, in order, its case's modes resolved."""
    tasks = load_tasks(request.paths, env=request.env, only=request.cases)
    agents = {name: load_agent(name) for name in request.harnesses if is_python_agent(name)}
    # Whatever is wrong is told before anything is played.
    plan, harnesses = plan_cells(tasks, request, agents)
    cache = str(Path(store.home, "cache"))
    cases = [task.work for task in tasks if isinstance(task.work, Case)]
    cases = [_with_image(case, cache, images.get(case.id, "")) for case in cases]
    harnesses = harnesses_in_images(cases, harnesses, cache)
    tasks = with_cases(tasks, cases)
    if tested := [case for case in cases if has_tests(case)]:
        from assay.eval.proofs.isolation import CaseLock, settle_by_locks

        settled = (settle or settle_by_locks)([CaseLock(case, cache) for case in tested])
        tasks = with_cases(tasks, settled)
    resolved = {task.slug: (task, version_of(task)) for task in tasks}
    cells: list[Planned] = []
    for one in plan:
        task, version = resolved[one.task.slug]
        spec = harnesses[task.slug].get(one.harness)
        cells.append(replace(one, task=task, version=version, spec=spec))
    return cells


def _with_image(case: Case, cache: str, digest: str) -> Case:
    if case.image is None:
        return case
    from assay.eval.workspaces.images import pinned

    return pinned(case, cache, digest)
