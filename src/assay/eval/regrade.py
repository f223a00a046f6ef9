"""Grade a stored run again: a pure second pass over what was kept. No agent runs.

Every result is appended to the run, with the digest of what gave it; the old ones stay as history.
A cell that cannot be begun, such as one whose source is gone, keeps the result that it has.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from assay.errors import InputError, StoreError, nearest
from assay.eval.batch import run_batches
from assay.eval.matrix import run_of, tasks_of
from assay.eval.planning import Planned, require_case_parts
from assay.eval.proofs.isolation import CaseLock, Settle, is_by_default, settle_by_locks
from assay.eval.records import graders_digest, record_of, row_record
from assay.eval.rollout import ANSWERED
from assay.eval.rows.grading import ROW_PARTS, lacks_answer, unanswered
from assay.eval.runner import OnCell, Plan
from assay.eval.work import stop_environments, version_of, with_cases
from assay.graders.apply import grade_submission, require_parts
from assay.graders.digest import grader_digest
from assay.graders.spec import GraderSpec
from assay.scoring.results import EvaluationResult, SubScore
from assay.store.decisions import add_graded
from assay.store.kept_files import at_work
from assay.store.records import ABOUT, CellKey, CellRecord, RunRecord
from assay.store.runs import Store
from assay.tasks.case import Case
from assay.tasks.rows import Row, read_row
from assay.tasks.task import Task
from assay.turns import charging
from assay.types.run import Run


@dataclass(frozen=True, slots=True)
class Regrade:
    """A second pass that is ready to go.

    Attributes:
        run: The run.
        cells: Cells that will be graded again, by their newest results.
        left_out: Cells of which nothing was kept to grade: their agent never finished.
        tasks: The tasks of a matrix, by their slugs; none for a dataset, whose rows are kept.
        versions: Digests of what those are now, and of what grades them; by their slugs.
        graders: What rows are graded by; none for a matrix.
        only: Labels of the graders that are run; empty for all.
    """

    run: RunRecord
    cells: Sequence[CellRecord]
    left_out: int
    tasks: Mapping[str, Task]
    versions: Mapping[str, str]
    graders: tuple[GraderSpec, ...]
    only: frozenset[str]

    async def go(self, store: Store, *, workers: int, on_cell: OnCell) -> None:
        """Grade; each result is stored as soon as it is there.

        Raises:
            StoreError: If cells could not be begun: what was kept is missing or damaged, say.
        """
        not_begun: list[str] = []
        cells = {before.key: before for before in self.cells}
        digest = graders_digest(self.graders)

        def sink(planned: Planned, run: Run) -> CellRecord | None:
            before = cells[planned.key]
            if run.metadata.get("regraded") is not True:
                not_begun.append(f"{before.case}: {run.grade.content or run.trace.error}")
                return None
            record = record_of(
                run,
                run_id=self.run.id,
                case=before.case,
                expect=planned.task.conditions.expect,
                version=planned.version,
                file=before.file,
            )
            said = {ABOUT: before.notes[ABOUT]} if ABOUT in before.notes else {}
            # The seconds are the agent's, not this pass's.
            record = replace(record, seconds=before.seconds, notes={**record.notes, **said})
            return add_graded(store, record, run.to_dict(), str(run.metadata.get("snapshot") or ""))

        def done_row(before: CellRecord, graded: tuple[Row, EvaluationResult]) -> None:
            row, result = graded
            record = row_record(
                row,
                result,
                run_id=self.run.id,
                threshold=before.threshold,
                digest=digest,
                seconds=before.seconds,
            )
            on_cell(add_graded(store, record, {"row": dict(row.fields)}))

        with at_work(store.home):
            if self.tasks:
                again = [self._again(before, store) for before in self.cells]
                plan = Plan(cells=again, sink=sink, run_id=self.run.id, home=store.home)
                await plan.go(workers=workers, on_cell=on_cell)
            else:
                work = partial(self._grade_row, store)
                await run_batches(self.cells, work, done_row, at_once=workers)
        if not_begun:
            raise StoreError(
                f"{len(not_begun)} of {len(self.cells)} cells could not be graded again and keep "
                f"the results that they have; {not_begun[0]}"
            )

    async def close(self) -> None:
        """Stop what the environments of its tasks started."""
        await stop_environments(self.tasks.values())

    def row(self, store: Store, cell: CellRecord) -> Row:
        """A row as it was kept."""
        return _kept_row(store, self.run, cell)

    def _again(self, before: CellRecord, store: Store) -> Planned:
        task = self.tasks[before.case]
        return Planned(
            task,
            before.harness,
            before.model,
            before.trial,
            version=self.versions[before.case],
            again=partial(run_of, store, self.run.id, before.key),
            keep=_kept_nodes(before, _graders_of(task), self.only) if self.only else {},
        )

    async def _grade_row(self, store: Store, before: CellRecord) -> tuple[Row, EvaluationResult]:
        """Grade a row as it was kept: its file may have changed since, or be gone."""
        row = self.row(store, before)
        if lacks_answer(self.graders, row.submission):
            return row, unanswered(row.submission)
        keep = _kept_nodes(before, self.graders, self.only) if self.only else {}
        with charging():
            return row, await grade_submission(self.graders, row.submission, keep=keep)


def plan_regrade(
    ref: str,
    store: Store,
    *,
    graders: Sequence[GraderSpec] | None = None,
    only: Sequence[str] = (),
    among: Collection[CellKey] | None = None,
    settle: Settle = settle_by_locks,
) -> Regrade:
    """Find out what there is to grade again, and with what.

    Args:
        ref: The run's id, a prefix of it, its label, or ``latest``.
        store: Where it is kept.
        graders: Graders to use instead of the cases' own; a dataset's run needs them.
        only: Labels of the graders to run again; the other scores are taken over, which is refused
            where their graders changed since.
        among: The cells to grade again; None for all.
        settle: Resolves how the cases' tests are isolated; by default, by their lock files.

    Raises:
        InputError: If the run is unknown, its cases are gone, or the graders do not fit it.
    """
    run = store.run(ref)
    kind = run.config.get("kind")
    tasks: dict[str, Task] = {}
    if kind in ("matrix", "job"):
        tasks = _tasks(run, graders, store, settle)
    elif kind != "dataset":
        raise InputError(f"run {run.id} kept nothing that can be graded again")
    elif graders is None:
        raise InputError(
            f"run {run.id} graded a dataset", hint="name them: assay regrade RUN graders.yaml"
        )
    given = tuple(graders or ())
    used = [_graders_of(task) for task in tasks.values()] or [given]
    labels = {spec.label for specs in used for spec in specs}
    for name in only:
        if name not in labels:
            raise InputError(f"no grader {name!r} in this run", hint=nearest(name, sorted(labels)))
    every = (cell for cell in store.cells(run.id) if among is None or cell.key in among)
    cells = [cell for cell in every if not tasks or cell.case in tasks]
    kept = [cell for cell in cells if _is_kept(store, run.id, cell)]
    if not kept:
        which = "has no cell" if among is None else "has none of these cells"
        raise InputError(f"run {run.id} {which} that can be graded again")
    if not tasks:
        # Any may be the first: they come by their ids, which whoever sent a trace may have chosen.
        is_told = any(_kept_row(store, run, cell).submission.trace is not None for cell in kept)
        require_parts(given, ROW_PARTS | {"trace"} if is_told else ROW_PARTS)
    for cell in kept if graders is None else ():
        _require_no_weaker(cell, _graders_of(tasks[cell.case]))
    for cell in kept if only else ():
        specs = _graders_of(tasks[cell.case]) if tasks else given
        _kept_nodes(cell, specs, frozenset(only))
    more = "" if graders is None else f"\n{graders_digest(graders)}"
    needed = dict.fromkeys(cell.case for cell in kept if tasks)
    versions = {name: version_of(tasks[name]) + more for name in needed}
    left_out = len(cells) - len(kept)
    return Regrade(run, kept, left_out, tasks, versions, () if tasks else given, frozenset(only))


def _require_no_weaker(cell: CellRecord, specs: Sequence[GraderSpec]) -> None:
    """Refuse to judge in one process what was judged apart, only because the lock file is gone."""
    for node, spec in zip(cell.subscores, specs, strict=False):  # nodes of gates come behind
        metadata = node.get("metadata")
        before = metadata.get("isolation") if isinstance(metadata, dict) else None
        if before == "process" and is_by_default(spec):
            raise InputError(
                f"cell {cell.case}: {spec.label!r} judged it apart, and the reason to is gone",
                hint="bring the lock file or the reference recording of the case back; or give the "
                "grader isolation: shared",
            )


def _tasks(
    run: RunRecord, graders: Sequence[GraderSpec] | None, store: Store, settle: Settle
) -> dict[str, Task]:
    if run.config.get("kind") == "job":
        from assay.eval.jobs import tasks_of_job

        tasks = tasks_of_job(run)
    else:
        tasks = tasks_of(run)
    cases = [task.work for task in tasks if isinstance(task.work, Case)]
    if graders is not None:
        if len(cases) < len(tasks):
            raise InputError(
                "other graders are for cases", hint="a template grades its tasks itself"
            )
        cases = [replace(case, graders=tuple(graders)) for case in cases]
    for case in cases:
        require_case_parts(case)
    cache = str(Path(store.home, "cache"))
    locks = [CaseLock(case, cache, own=graders is None) for case in cases]
    return {task.slug: task for task in with_cases(tasks, settle(locks))}


def _graders_of(task: Task) -> tuple[GraderSpec, ...]:
    """The graders that were declared for it; a template's are in its code."""
    return task.work.graders if isinstance(task.work, Case) else ()


def _kept_row(store: Store, run: RunRecord, cell: CellRecord) -> Row:
    """A row as it was graded."""
    kept, label = store.detail(run.id, cell.key)["row"], run.config.get("label")
    if not isinstance(kept, dict):
        raise StoreError(f"what was kept of row {cell.case} of run {run.id} is damaged")
    row = read_row(kept, label=label if isinstance(label, str) else None)
    return replace(row, id=cell.case, file=cell.file)


def _is_kept(store: Store, run_id: str, cell: CellRecord) -> bool:
    """Whether an agent finished, so that there is something to grade."""
    detail = store.detail(run_id, cell.key)
    metadata = detail.get("metadata")
    kept = isinstance(metadata, dict) and (
        isinstance(metadata.get("source"), str) or metadata.get(ANSWERED) is True
    )
    return cell.status != "skipped" and (kept or "row" in detail)


def _kept_nodes(
    cell: CellRecord, specs: Sequence[GraderSpec], only: frozenset[str]
) -> dict[int, SubScore]:
    """The scores that are taken over, by the place of their grader."""
    kept: dict[int, SubScore] = {}
    for number, spec in enumerate(specs):
        grader = spec.kind.grader
        if spec.label in only or grader.needs_credit:
            continue
        node = SubScore.from_dict(cell.subscores[number]) if number < len(cell.subscores) else None
        if node is None or (node.metadata or {}).get("_digest") != grader_digest(spec):
            raise InputError(
                f"cell {cell.case}: the score of {spec.label!r} is from another version",
                hint=f"regrade it too: --only {spec.label}, or leave --only out",
            )
        kept[number] = replace(node, name=spec.label, weight=spec.weight, gate=spec.gate)
    return kept
