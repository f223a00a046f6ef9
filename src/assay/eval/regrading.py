"""Grade a stored run again in a process of its own, for whoever must not wait: `assay serve`.

Graders of cases are read, and those in Python imported, when a run is graded again; that is nothing
for a server's own process. It is asked in JSON on standard input, and tells how far it is in the
store: ``python -m assay.eval.regrading``.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from assay.cores import cores
from assay.errors import AssayError
from assay.store.records import CellKey, CellRecord
from assay.store.regrades import Regrades, RegradeState

if TYPE_CHECKING:
    from assay.store.runs import Store


async def regrade(
    store: Store, run: str, cells: Collection[CellKey] | None, *, by: str = ""
) -> RegradeState:
    """Grade again, here; what cannot be done is said in the state that is stored and returned.

    Args:
        store: Where the run is.
        run: Its id; whoever calls this holds it (`Regrades.held`).
        cells: The cells; None for all.
        by: Who wants it.
    """
    from assay.eval.regrade import plan_regrade

    regrades = Regrades(store.database)
    state = RegradeState(run=run, status="running", by=by)

    def on_cell(_: CellRecord) -> None:
        nonlocal state
        state = replace(state, done=state.done + 1)
        regrades.note(state)

    try:
        ready = plan_regrade(run, store, among=cells)
        try:
            state = replace(state, total=len(ready.cells), left_out=ready.left_out)
            regrades.note(state)
            await ready.go(store, workers=cores(), on_cell=on_cell)
        finally:
            await ready.close()
        state = replace(state, status="finished")
    except AssayError as error:
        state = replace(state, status="failed", message=str(error))
    regrades.note(state)
    return state


def main() -> None:
    """Do what standard input says: ``location``, ``run``, ``by`` and ``cells``, maybe null."""
    from assay.store.runs import Store

    given = cast("dict[str, Any]", json.load(sys.stdin))
    listed = cast("list[list[object]] | None", given["cells"])
    cells = None if listed is None else {cast("CellKey", tuple(one)) for one in listed}
    with Store.open(given["location"]) as store:
        asyncio.run(regrade(store, given["run"], cells, by=given["by"]))


if __name__ == "__main__":
    main()
