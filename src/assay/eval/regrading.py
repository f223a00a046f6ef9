"""Grade a stored run again in a process of its own, for whoever must not wait: `assay serve`.

Graders of cases are read, and those in Python imported, when a run is graded again; that is nothing
for a server's own process. It is asked in JSON on standard input, and tells how far it is in lines
of JSON on standard output: ``python -m assay.eval.regrading``.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Collection
from contextlib import redirect_stdout
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, cast

from assay.errors import AssayError
from assay.frozen import frozen
from assay.store.records import CellKey, CellRecord

if TYPE_CHECKING:
    from assay.store.runs import Store

__all__ = ["TOLD", "RegradeState", "regrade"]

TOLD = ("status", "total", "done", "left_out", "message")
"""What is told of a state; whoever began it knows the rest."""


@frozen(kw_only=True)
class RegradeState:
    """How far a regrade is.

    Attributes:
        run: Id of the run.
        status: ``none`` where none was begun.
        total: Cells that are graded again; 0 until that is known.
        done: How many of them have their new result.
        left_out: Cells of which nothing was kept that could be graded.
        message: Why it failed.
        by: Who wanted it.
    """

    run: str
    status: Literal["none", "running", "finished", "failed"] = "none"
    total: int = 0
    done: int = 0
    left_out: int = 0
    message: str = ""
    by: str = ""


async def regrade(
    store: Store,
    run: str,
    cells: Collection[CellKey] | None,
    tell: Callable[[RegradeState], None] = lambda _: None,
) -> RegradeState:
    """Grade again, here; what cannot be done is said in the state that is returned.

    Args:
        store: Where the run is.
        run: Its id.
        cells: The cells; None for all.
        tell: Is told how far it is.
    """
    from assay.eval.regrade import plan_regrade

    state = RegradeState(run=run, status="running")

    def on_cell(_: CellRecord) -> None:
        nonlocal state
        state = replace(state, done=state.done + 1)
        tell(state)

    try:
        ready = plan_regrade(run, store, among=cells)
        try:
            state = replace(state, total=len(ready.cells), left_out=ready.left_out)
            tell(state)
            await ready.go(store, workers=len(os.sched_getaffinity(0)), on_cell=on_cell)
        finally:
            await ready.close()
    except AssayError as error:
        return replace(state, status="failed", message=str(error))
    return replace(state, status="finished")


def main() -> None:
    """Do what standard input says: ``location``, ``run`` and ``cells``, which may be null."""
    from assay.store.runs import Store

    given = cast("dict[str, Any]", json.load(sys.stdin))
    listed = cast("list[list[object]] | None", given["cells"])
    cells = None if listed is None else {cast("CellKey", tuple(one)) for one in listed}
    said = sys.stdout

    def tell(state: RegradeState) -> None:
        print(json.dumps({name: getattr(state, name) for name in TOLD}), file=said, flush=True)

    with redirect_stdout(sys.stderr):  # what a grader of one's own prints is none of ours
        try:
            with Store.open(given["location"]) as store:
                tell(asyncio.run(regrade(store, given["run"], cells, tell)))
        except AssayError as error:  # the store cannot be opened
            tell(RegradeState(run=given["run"], status="failed", message=str(error)))


if __name__ == "__main__":
    main()
