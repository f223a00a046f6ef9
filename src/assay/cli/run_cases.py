"""``assay run``."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout

from assay.cli.conclude import conclude
from assay.cli.judging import cost_so_far
from assay.cli.options import Outputs, check_targets, state_home, worker_count
from assay.cli.report_errors import INTERRUPTED
from assay.cli.settling import settling
from assay.errors import InputError
from assay.eval.matrix import Launch, MatrixRequest, launch, resume, unused_parts
from assay.store.runs import Store

__all__ = ["run_cases", "run_launch"]


def run_cases(
    paths: Sequence[str],
    *,
    cases: Sequence[str],
    harnesses: Sequence[str],
    models: Sequence[str],
    trials: int | None,
    workers: int | None,
    resume_ref: str | None,
    regrade: bool,
    label: str,
    locked: bool,
    outputs: Outputs,
) -> int:
    """Run a matrix, or finish one.

    Returns:
        The exit status.

    Raises:
        InputError: For whatever is wrong with the cases or the options.
    """
    check_targets((outputs.junit, outputs.html), inputs=paths)
    settle = settling(workers=worker_count(workers), locked=locked)
    with Store.open(state_home()) as store:
        if resume_ref is not None:
            if paths or cases or harnesses or models or trials is not None:
                raise InputError(
                    "--resume takes up a run as it was asked for",
                    hint="leave the other choices out",
                )
            _require_matrix(store, resume_ref)
            ready = resume(resume_ref, store, regrade=regrade, settle=settle)
        else:
            if not paths:
                raise InputError("nothing to run", hint="assay run PATH, or assay init for a start")
            if regrade:
                raise InputError("--regrade goes with --resume")
            request = MatrixRequest(
                paths=tuple(paths),
                cases=tuple(cases),
                harnesses=tuple(harnesses),
                models=tuple(models),
                trials=trials,
                label=label,
            )
            ready = launch(request, store, settle)
        return run_launch(ready, store, workers=worker_count(workers), outputs=outputs)


def _require_matrix(store: Store, reference: str) -> None:
    """Refuse to go on with a run that `assay grade` made, naming the one to go on with."""
    run = store.run(reference)
    if run.config.get("kind") == "matrix":
        return
    others = (one.id for one in store.runs() if one.config.get("kind") == "matrix")
    newest = next(others, None)
    raise InputError(
        f"run {run.id} was made by `assay grade`, and only runs of `assay run` can be resumed",
        hint="give the `assay grade` command again; replies of models that are kept cost nothing"
        + ("" if newest is None else f". The newest run of cases: --resume {newest}"),
    )


def run_launch(ready: Launch, store: Store, *, workers: int, outputs: Outputs) -> int:
    """Run what a launch still has to do, show progress, and conclude.

    Returns:
        The exit status; 130 if it was interrupted, with what was finished kept.
    """
    from rich.console import Console

    from assay.reports.progress import progress

    _note_unused(ready)
    count = len(ready.todo) + len(ready.regrade)
    console = Console(stderr=True, highlight=False)
    try:
        # What a grader of one's own prints must not end up inside the JSON.
        with redirect_stdout(sys.stderr), progress(console, count, note=cost_so_far) as shown:
            asyncio.run(ready.go(store, workers=workers, on_cell=shown.cell))
    except KeyboardInterrupt:
        done = len(store.finished(ready.run.id))
        print(
            f"interrupted: {done} of {ready.total} cells are kept; "
            f"go on with: assay run --resume {ready.run.id}",
            file=sys.stderr,
        )
        return INTERRUPTED
    return conclude(store, ready.run.id, outputs)


def _note_unused(ready: Launch) -> None:
    cases = {coordinate.case.id: coordinate.case for coordinate in ready.todo}
    for name, case in cases.items():
        if unused := unused_parts(case):
            said = ", ".join(unused)
            print(f"note: case {name!r}: no harness here acts on {said}", file=sys.stderr)
