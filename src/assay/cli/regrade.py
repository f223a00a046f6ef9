"""``assay regrade``."""

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
from assay.eval.regrade import plan_regrade
from assay.store.runs import Store
from assay.tasks.grader_files import load_graders

__all__ = ["regrade_run"]


def regrade_run(
    ref: str,
    *,
    graders_file: str | None,
    only: Sequence[str],
    workers: int | None,
    outputs: Outputs,
) -> int:
    """Grade a stored run again and report it.

    Returns:
        The exit status of its verdict; 130 if it was interrupted, with what was graded kept.

    Raises:
        InputError: For whatever is wrong with the run or the graders.
    """
    from rich.console import Console

    from assay.reports.progress import progress

    named = () if graders_file is None else (graders_file,)
    check_targets((outputs.junit, outputs.html), inputs=named)
    graders = load_graders(graders_file) if graders_file is not None else None
    with Store.open(state_home()) as store:
        settle = settling(workers=worker_count(workers))
        ready = plan_regrade(ref, store, graders=graders, only=only, settle=settle)
        if ready.left_out:
            print(f"note: {ready.left_out} cells kept nothing to grade", file=sys.stderr)
        console = Console(stderr=True, highlight=False)
        try:
            # What a grader of one's own prints must not end up inside the JSON.
            with (
                redirect_stdout(sys.stderr),
                progress(console, len(ready.cells), note=cost_so_far) as shown,
            ):
                asyncio.run(ready.go(store, workers=worker_count(workers), on_cell=shown.cell))
        except KeyboardInterrupt:
            print(
                "interrupted: what was graded is kept; assay regrade starts over", file=sys.stderr
            )
            return INTERRUPTED
        return conclude(store, ready.run.id, outputs)
