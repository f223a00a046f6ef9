"""Grade a stored run again: a pure second pass over what was kept. No agent runs.

Every result is appended to the run, with the digest of what gave it; the old ones stay as history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from assay.errors import InputError, Location, nearest
from assay.eval.batch import run_batches
from assay.eval.isolation import CaseLock, Settle, oracle_digest, settle_by_locks
from assay.eval.matrix import regraded_cell, tasks_of
from assay.eval.planning import Coordinate, require_case_parts
from assay.eval.recorded import NO_ANSWER
from assay.eval.records import graded_by, graders_digest, record_of, row_record
from assay.eval.rollout import ANSWERED, Cell
from assay.eval.runner import run_cells
from assay.eval.work import stop_environments, version_of
from assay.graders.apply import grade_submission, require_parts
from assay.graders.digest import grader_digest
from assay.graders.spec import GraderSpec
from assay.scoring.results import EvaluationResult, SubScore
from assay.store.kept import at_work
from assay.store.records import CellRecord, RunRecord
from assay.store.runs import Store
from assay.tasks.case import Case
from assay.tasks.row_files import Format, Reading
from assay.tasks.rows import Row, read_row, read_rows
from assay.tasks.task import Task, case_task
from assay.types.run import Run

__all__ = ["Regrade", "plan_regrade"]

OnCell = Callable[[CellRecord], None]


@dataclass(frozen=True, slots=True)
class Regrade:
    """A second pass that is ready to go.

    Attributes:
        run: The run.
        cells: Cells that will be graded again, by their newest results.
        left_out: Cells of which nothing was kept to grade: their agent never finished.
        work: What each cell is graded by: its task, or its row's graders.
        digests: Digest of what it is graded by, by the same names.
        only: Labels of the graders that are run; empty for all.
    """

    run: RunRecord
    cells: Sequence[CellRecord]
    left_out: int
    work: Mapping[str, Task | Row]
    digests: Mapping[str, str]
    only: frozenset[str]

    async def go(self, store: Store, *, workers: int, on_cell: OnCell) -> None:
        """Grade; each result is stored as soon as it is there.

        Raises:
            StoreError: If what was kept is missing or damaged.
        """
        rows = [cell for cell in self.cells if isinstance(self.work[cell.case], Row)]
        others = [cell for cell in self.cells if isinstance(self.work[cell.case], Task)]

        def done(number: int, run: Run) -> None:
            before = others[number]
            record = record_of(
                run,
                run_id=self.run.id,
                case=before.case,
                threshold=before.threshold,
                min_assurance=before.min_assurance,
                min_coverage=before.min_coverage,
                digest=self.digests[before.case],
                file=before.file,
            )
            record = replace(record, seconds=before.seconds)  # the agent's, not this pass's
            store.add_cell(record, run.to_dict(), str(run.metadata.get("snapshot") or ""))
            on_cell(record)

        def done_row(before: CellRecord, result: EvaluationResult) -> None:
            row = cast("Row", self.work[before.case])
            record = row_record(
                row,
                result,
                run_id=self.run.id,
                threshold=before.threshold,
                digest=self.digests[before.case],
                seconds=before.seconds,
            )
            record = replace(record, answer=before.answer)
            store.add_cell(record, {"row": store.detail(self.run.id, before.key)["row"]})
            on_cell(record)

        with at_work(store.home):
            await run_cells(self._cells(store, others), done, max_concurrent=workers)
            await run_batches(
                rows, lambda before: self._grade_row(store, before), done_row, at_once=workers
            )

    async def close(self) -> None:
        """Stop what the environments of its tasks started."""
        await stop_environments(work for work in self.work.values() if isinstance(work, Task))

    def _cells(self, store: Store, cells: Sequence[CellRecord]) -> Iterator[Cell]:
        for before in cells:
            task = cast("Task", self.work[before.case])
            keep = _kept_nodes(before, _graders_of(task), self.only) if self.only else {}
            place = Coordinate(task, before.harness, before.model, before.trial)
            yield regraded_cell(place, self.run.id, store, keep)

    async def _grade_row(self, store: Store, before: CellRecord) -> EvaluationResult:
        """Grade the answer that was recorded, by the row as it is now."""
        row = cast("Row", self.work[before.case])
        kept = store.detail(self.run.id, before.key)["row"]
        answer = read_row(kept).submission.answer if isinstance(kept, dict) else None
        if answer is None:
            return EvaluationResult.from_error(NO_ANSWER)
        keep = _kept_nodes(before, row.graders, self.only) if self.only else {}
        submission = replace(row.submission, answer=answer)
        return await grade_submission(row.graders, submission, keep=keep)


def plan_regrade(
    ref: str,
    store: Store,
    *,
    graders: Sequence[GraderSpec] | None = None,
    only: Sequence[str] = (),
    settle: Settle = settle_by_locks,
) -> Regrade:
    """Find out what there is to grade again, and with what.

    Args:
        ref: The run's id, a prefix of it, its label, or ``latest``.
        store: Where it is kept.
        graders: Graders to use instead of the cases' own; a dataset's run needs them.
        only: Labels of the graders to run again; the other scores are taken over, which is refused
            where their graders changed since.
        settle: Resolves how the cases' tests are isolated; by default, by their lock files.

    Raises:
        InputError: If the run is unknown, its cases are gone, or the graders do not fit it.
    """
    run = store.run(ref)
    kind = run.config.get("kind")
    if kind in ("matrix", "job"):
        work = _tasks(run, graders, store, settle)
    elif kind == "dataset":
        work = _dataset_work(run, graders)
    else:
        raise InputError(f"run {run.id} kept nothing that can be graded again")
    labels = {spec.label for each in work.values() for spec in _graders_of(each)}
    for name in only:
        if name not in labels:
            raise InputError(f"no grader {name!r} in this run", hint=nearest(name, sorted(labels)))
    cells = [cell for cell in store.cells(run.id) if cell.case in work]
    kept = [cell for cell in cells if _is_kept(store, run.id, cell)]
    if not kept:
        raise InputError(f"run {run.id} has no cell that can be graded again")
    for cell in kept if only else ():
        _kept_nodes(cell, _graders_of(work[cell.case]), frozenset(only))
    digests = {cell.case: _digest(work[cell.case], graders) for cell in kept}
    return Regrade(run, kept, len(cells) - len(kept), work, digests, frozenset(only))


def _tasks(
    run: RunRecord, graders: Sequence[GraderSpec] | None, store: Store, settle: Settle
) -> dict[str, Task | Row]:
    if run.config.get("kind") == "job":
        from assay.eval.jobs import tasks_of_job

        tasks = tasks_of_job(run)
    else:
        tasks = tasks_of(run)
    work: dict[str, Task | Row] = {task.slug: task for task in tasks}
    cases = [task.work for task in tasks if isinstance(task.work, Case)]
    if graders is not None:
        if len(cases) < len(tasks):
            raise InputError("--graders is for cases", hint="a template grades its tasks itself")
        cases = [replace(case, graders=tuple(graders)) for case in cases]
    for case in cases:
        require_case_parts(case)
    cache = str(Path(store.home, "cache"))
    locks = [CaseLock(case, cache, own=graders is None) for case in cases]
    return work | {case.id: case_task(case) for case in settle(locks)}


def _graders_of(work: Task | Row) -> Sequence[GraderSpec]:
    """The graders that were declared for it; a template's are in its code."""
    if isinstance(work, Task):
        return work.work.graders if isinstance(work.work, Case | Row) else ()
    return work.graders


def _dataset_work(run: RunRecord, graders: Sequence[GraderSpec] | None) -> dict[str, Task | Row]:
    if graders is None:
        raise InputError(f"run {run.id} graded a dataset", hint="name the graders: --graders FILE")
    require_parts(graders, {"answer", "question", "expected", "thread", "metadata"})
    file, label = str(run.config.get("file")), run.config.get("label")
    if not Path(file).is_file():
        raise InputError("the dataset is gone", location=Location(file=file))
    mapping, form = run.config.get("map"), run.config.get("format", "")
    reading = Reading(
        format=cast("Format", form),
        mapping=cast("dict[str, str]", mapping) if isinstance(mapping, dict) else {},
        on_bad_row=_leave_out if "malformed" in run.config else None,
    )
    named = label if isinstance(label, str) else None
    rows = read_rows(file, graders=graders, label=named, reading=reading)
    return {row.id: row for row in rows}


def _leave_out(_: InputError) -> None:
    """As when the rows were graded, which told of them."""


def _digest(work: Task | Row, graders: Sequence[GraderSpec] | None) -> str:
    if isinstance(work, Row):
        return graders_digest(work.graders)
    if not isinstance(work.work, Case):
        return graded_by(version_of(work))
    own = oracle_digest(work.work)
    return graded_by(own if graders is None else f"{own}\n{graders_digest(graders)}")


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
