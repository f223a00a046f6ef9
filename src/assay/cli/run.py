"""``assay run`` and ``assay regrade``: tasks through the matrix, and kept results graded again."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Coroutine, Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

from assay.cli.exporting import add_export, exporting
from assay.cli.judging import add_judging, billed, cost_so_far, say_bill
from assay.cli.options import (
    EXITS,
    INTERRUPTED,
    RUN,
    Outputs,
    add_db,
    add_engine,
    add_outputs,
    add_workers,
    cache_home,
    check_targets,
    engine_given,
    explain,
    file_warnings,
    named_store,
    positive,
    store_made,
    store_there,
    tell_warnings,
    worker_count,
)
from assay.errors import AssayError, InputError
from assay.eval.matrix import Launch, launch, resume
from assay.eval.planning import MatrixRequest, unused_parts
from assay.reports.figures import count
from assay.store.runs import Store
from assay.tasks.case import Case

if TYPE_CHECKING:
    from assay.eval.proofs.isolation import CaseLock, Settle
    from assay.eval.regrade import Regrade
    from assay.eval.runner import OnCell
    from assay.graders.spec import GraderSpec
    from assay.models.bill import Bill
    from assay.reports.progress import Progress
    from assay.store.records import CellRecord

_MOST = 400
_EXAMPLES = """\
  assay run evals/
  assay run evals/ --harness replay --model fix --trials 3
  assay run evals/ --json > result.json
  assay run env.py --model anthropic:claude-sonnet-5 --group 4
  assay run rows.jsonl --env env.py --harness agent.py:solve
  assay run tcp://127.0.0.1:8765 --harness agent.py:solve
  assay run --resume latest"""
_REGRADE = """\
  assay regrade latest
  assay regrade latest stricter.yaml
  assay regrade 20261121-0908 --only tests"""
_REGRADE_MORE = """\
What was kept is graded by the cases as they are now, or by other graders. Results are added to
the run with the digest of what gave them; the report says what changed and why.
"""


def add(parser: ArgumentParser) -> None:
    """Say what ``assay run`` takes."""
    explain(parser, EXITS, _EXAMPLES)
    option = parser.add_argument
    option(
        "paths",
        nargs="*",
        metavar="PATH",
        help="case files, directories of cases, Python files of environments, URLs where they are "
        "served, or rows",
    )
    option("--env", default="", metavar="FILE", help="the Python file or URL that rows belong to")
    option(
        "--case", "--task", action="append", default=[], metavar="ID", help="only this case or task"
    )
    option(
        "--harness",
        action="append",
        default=[],
        metavar="NAME",
        help="only this harness, whether a case lists it or not; FILE.py:NAME is an agent "
        "of your own",
    )
    option(
        "--model",
        action="append",
        default=[],
        metavar="NAME",
        help="only this model, whether a case lists it or not",
    )
    option("--trials", "--group", type=positive, metavar="N", help="repeats of every cell")
    option(
        "--resume", metavar="RUN", help="finish a run: its id, a prefix of it, its name, or latest"
    )
    option(
        "--regrade",
        action="store_true",
        help="with --resume: grade what was kept of changed cases again",
    )
    option("--name", default="", help="a name of your own for the run")
    option(
        "--locked",
        action="store_true",
        help="refuse cases whose lock file is missing or stale instead of deciding anew",
    )
    add_engine(parser)
    add_workers(parser)
    add_judging(parser)
    add_export(parser)
    add_outputs(parser)
    add_db(parser)


def add_regrade(parser: ArgumentParser) -> None:
    """Say what ``assay regrade`` takes."""
    explain(parser, f"{_REGRADE_MORE}\n{EXITS}", _REGRADE)
    option = parser.add_argument
    option("run", metavar="RUN", help=RUN)
    option(
        "graders",
        nargs="?",
        metavar="GRADERS",
        help="a file of graders to use instead of the cases' own; a dataset's run needs it",
    )
    option(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="only this grader; the other scores are taken over",
    )
    add_workers(parser)
    add_judging(parser)
    add_outputs(parser)
    add_db(parser)


def settling(*, workers: int, locked: bool = False) -> Settle:
    """What settles the isolation of the cases of a run."""

    def settle(locks: Sequence[CaseLock]) -> list[Case]:
        import asyncio

        from assay.eval.proofs.isolation import settle_by_locks

        open_ = [lock for lock in locks if lock.undecided]
        if locked and open_:
            raise _not_locked(open_[0])
        for lock in open_:
            if lock.stale and not lock.reference:
                _tell(f"warning: {_file(lock)}: {lock.problem}")
        if not any(lock.reference for lock in open_):
            return settle_by_locks(locks)
        return asyncio.run(_decide(locks, workers))

    return settle


async def _decide(locks: Sequence[CaseLock], workers: int) -> list[Case]:
    from assay.eval.proofs.isolation import isolated_graders
    from assay.eval.proofs.isolation_proof import decide
    from assay.eval.proofs.trials import arena

    def tell(case: Case, file: str) -> None:
        modes = "; ".join(map(str, isolated_graders(case)))
        kept = f"written to {os.path.relpath(file)}" if file else "not kept"
        _tell(f"{case.id}: {modes} ({kept})")

    count = sum(1 for lock in locks if lock.undecided and lock.reference)
    which = "a case" if count == 1 else f"each of {count} cases"
    _tell(f"playing the reference of {which} to learn how its tests can be isolated")
    with redirect_stdout(sys.stderr):
        async with arena(cache=cache_home(), workers=workers) as place:
            return await decide(locks, place, tell=tell)


def isolation_notes(case: Case) -> list[str]:
    """What is worth knowing of a case whose isolation nobody decided."""
    from assay.eval.proofs.isolation import CaseLock

    lock = CaseLock(case, cache_home())
    return [lock.problem] if lock.undecided else []


def _not_locked(lock: CaseLock) -> InputError:
    return InputError(
        f"{_file(lock)}: {lock.problem}",
        hint="run assay selftest and keep the lock file with the case; or give the grader "
        "isolation: shared",
    )


def _file(lock: CaseLock) -> str:
    return os.path.relpath(lock.case.lock_file)


def _tell(line: str) -> None:
    from assay.reports.plain import one_line

    print(one_line(line, _MOST), file=sys.stderr)


def run(given: Namespace) -> int:
    """Run a matrix, or finish one.

    Raises:
        InputError: For whatever is wrong with the cases or the options.
    """
    outputs = Outputs.of(given)
    check_targets((outputs.junit,), inputs=given.paths)
    workers = worker_count(given.workers)
    place = store_made() if given.resume is None else store_there()
    with exporting(given), engine_given(given) as cluster, Store.open(place) as store:
        with redirect_stdout(sys.stderr):  # for what files of one's own print when they are loaded
            ready = _launch(given, store, settling(workers=workers, locked=given.locked))
        if cluster is not None:
            workers = given.workers or 0

        def go(shown: Progress, on_cell: OnCell) -> Coroutine[object, object, None]:
            return ready.go(
                store,
                workers=workers,
                on_cell=on_cell,
                on_begin=shown.begin,
                cluster=cluster,
            )

        def kept() -> str:
            done, total = len(store.finished(ready.run.id)), count(ready.total, "cell")
            again = f"assay run --resume {ready.run.id}{named_store()}"
            return f"{done} of {total} kept; go on with: {again}"

        def foretold(bill: Bill) -> None:
            from assay.eval.foretell import foretell_cells

            foretell_cells(bill, ready, store)

        try:
            if outputs.by:
                from assay.reports.breakdown import require_field

                about = (cell.task.metadata for cell in ready.cells)
                require_field(outputs.by, about, who="no case")
            _note_unused(ready)
            return _carry_out(ready, store, outputs, go=go, kept=kept, foretold=foretold)
        except AssayError:
            # What was refused before its first cell is no run; it would be the latest one.
            if given.resume is None and not store.cell_count(ready.run.id):
                store.forget_run(ready.run.id)
            raise


def _launch(given: Namespace, store: Store, settle: Settle) -> Launch:
    if given.resume is not None:
        chosen = (given.paths, given.env, given.case, given.harness, given.model)
        if any(chosen) or given.trials is not None:
            raise InputError(
                "--resume continues a run with its original options",
                hint="leave the other options out",
            )
        _require_matrix(store, given.resume)
        return resume(given.resume, store, regrade=given.regrade, settle=settle)
    if not given.paths:
        raise InputError("nothing to run", hint="assay run PATH, or assay init for a start")
    if given.regrade:
        raise InputError("--regrade goes with --resume")
    request = MatrixRequest(
        paths=tuple(given.paths),
        env=given.env,
        cases=tuple(given.case),
        harnesses=tuple(given.harness),
        models=tuple(given.model),
        trials=given.trials,
        label=given.name,
    )
    return launch(request, store, settle)


def _require_matrix(store: Store, reference: str) -> None:
    """Refuse to go on with a run that `assay grade` made, naming the one to go on with."""
    run = store.run(reference)
    if run.config.get("kind") == "matrix":
        return
    if run.config.get("kind") == "job":
        raise InputError(
            f"run {run.id} was begun in Python, by task.run",
            hint=f"it goes on there: await tasks.run(agent, store=..., resume={run.id!r})",
        )
    others = (one.id for one in store.runs() if one.config.get("kind") == "matrix")
    newest = next(others, None)
    raise InputError(
        f"run {run.id} was made by `assay grade`, and only runs of `assay run` can be resumed",
        hint="give the `assay grade` command again; replies of models that are kept cost nothing"
        + ("" if newest is None else f". The newest run of cases: --resume {newest}"),
    )


def _carry_out(
    ready: Launch | Regrade,
    store: Store,
    outputs: Outputs,
    *,
    go: Callable[[Progress, OnCell], Coroutine[object, object, None]],
    kept: Callable[[], str],
    foretold: Callable[[Bill], None],
) -> int:
    """Do what is planned, show progress, and conclude.

    Args:
        ready: The plan; its environments are stopped in the end.
        store: Where its run is.
        outputs: What is written of it.
        go: Does it, and tells how far it is.
        kept: What an interruption leaves, and how to go on.
        foretold: Tells what it will cost, where models are asked.

    Returns:
        The exit status; 130 if it was interrupted, with what was finished kept.
    """
    import asyncio

    from assay.cli.report import conclude
    from assay.eval.costs import cost_of_cell
    from assay.reports.page import page_on
    from assay.reports.progress import Progress

    is_new = isinstance(ready, Launch)
    has_cells = isinstance(ready, Launch) or bool(ready.tasks)  # rows tell what they cost

    async def work(shown: Progress, bill: Bill | None) -> None:
        def on_cell(cell: CellRecord) -> None:
            shown.cell(cell)
            if bill is not None and has_cells:
                bill.ended(*cost_of_cell(cell, is_new=is_new))

        try:
            await go(shown, on_cell)
        finally:
            await ready.close()

    page = page_on(sys.stderr)
    graders, asks = _asking(ready)
    with billed(len(ready.cells), "cells", graders, also=asks) as bill:
        try:
            if bill is not None:
                foretold(bill)
                say_bill(bill.line)
            # What a grader of one's own prints must not end up inside the JSON.
            with (
                redirect_stdout(sys.stderr),
                Progress(page, len(ready.cells), note=cost_so_far) as shown,
            ):
                asyncio.run(work(shown, bill))
        except KeyboardInterrupt:
            print(f"interrupted: {kept()}", file=sys.stderr)
            return INTERRUPTED
    return conclude(store, ready.run.id, outputs, bill=bill)


def _asking(ready: Launch | Regrade) -> tuple[list[GraderSpec], bool]:
    """What grades the cells of a run, and whether an agent asks a model in any of them."""
    if isinstance(ready, Launch):
        works = [cell.task.work for cell in ready.cells]
        asks = any(cell.asks for cell in ready.todo)
    else:
        works, asks = [task.work for task in ready.tasks.values()], False
    graders = () if isinstance(ready, Launch) else ready.graders
    return [*graders, *(g for one in works if isinstance(one, Case) for g in one.graders)], asks


def _note_unused(ready: Launch) -> None:
    todo = ready.todo
    for name, case in {one.task.slug: one.task.work for one in todo}.items():
        if not isinstance(case, Case):
            continue
        tell_warnings(f"case {name!r}", file_warnings(case.graders))
        if unused := unused_parts(case, [one for one in todo if one.task.slug == name]):
            said = ", ".join(unused)
            print(f"note: case {name!r}: none of these harnesses uses {said}", file=sys.stderr)
    if echoed := {cell.model for cell in todo if cell.harness == "echo"} - {"none", ""}:
        from assay.models import family_of

        for model in sorted(filter(family_of, echoed)):
            said = f"the harness echo asks no model: it gives the prompt back for {model!r}, too"
            print(f"note: {said} (docs/agents.md#which-harness-does-the-work)", file=sys.stderr)


def run_regrade(given: Namespace) -> int:
    """Grade a stored run again and report it.

    Returns:
        The exit status of its verdict; 130 if it was interrupted, with what was graded kept.

    Raises:
        InputError: For whatever is wrong with the run or the graders.
    """
    from assay.eval.regrade import plan_regrade
    from assay.tasks.grader_files import load_graders

    outputs = Outputs.of(given)
    named = () if given.graders is None else (given.graders,)
    check_targets((outputs.junit,), inputs=named)
    graders = load_graders(given.graders, alone=True) if given.graders is not None else None
    with Store.open(store_there()) as store:
        workers = worker_count(given.workers)
        settle = settling(workers=workers)
        with redirect_stdout(sys.stderr):
            ready = plan_regrade(given.run, store, graders=graders, only=given.only, settle=settle)
        if ready.left_out:
            left_out = count(ready.left_out, "cell")
            print(f"note: {left_out} kept nothing to grade", file=sys.stderr)

        def foretold(bill: Bill) -> None:
            import asyncio

            from assay.eval.foretell import foretell_regrade

            asyncio.run(foretell_regrade(bill, ready, store))

        return _carry_out(
            ready,
            store,
            outputs,
            go=lambda _, on_cell: ready.go(store, workers=workers, on_cell=on_cell),
            kept=lambda: "what was graded is kept; assay regrade starts over",
            foretold=foretold,
        )
