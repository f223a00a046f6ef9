"""``client.runs`` and ``client.cells``: what was run, and what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.client.asking import M_co, Part, ask, by_hand
from assay.service import cells as cell_operations
from assay.service import compare as comparing
from assay.service import runs

if TYPE_CHECKING:
    from assay.reports.comparing.comparison import RunComparison


class RunsPart(Part[M_co]):
    """Runs of cases, as `assay run` stored them.

    A run is meant by its id, the beginning of it, its label, or ``latest``.
    """

    called = "runs"

    list = ask(runs.list_runs)
    get = ask(runs.show_run)
    overview = ask(runs.show_run_overview)
    regrade = ask(cell_operations.regrade_run)
    regrading = ask(cell_operations.show_regrade)
    delete = ask(runs.delete_run)
    scores = ask(comparing.show_scores)
    trainability = ask(comparing.show_trainability)

    @by_hand
    async def compare(
        self,
        before: str,
        after: str = "",
        *,
        harnesses: tuple[str | None, str | None] = (None, None),
        models: tuple[str | None, str | None] = (None, None),
        by: str = "",
    ) -> RunComparison:
        """Two runs, or two agents of one, paired by case and trial: what `assay compare` says.

        Args:
            before: A run: its id, its label, or `latest`.
            after: The other one; without it, agents of the first.
            harnesses: Only this harness, of the first side and of the second.
            models: Only this model, likewise.
            by: A field of the metadata of cases, or of rows, to break the cases down by.

        Raises:
            NotFoundError: There is no such run.
            InputError: They have no cell in common, or are the same.
        """
        return await self._scope.call(
            comparing.compare_runs,
            before=before,
            after=after,
            before_harness=harnesses[0],
            after_harness=harnesses[1],
            before_model=models[0],
            after_model=models[1],
            by=by,
        )


class CellsPart(Part[M_co]):
    """Single results of runs.

    A cell is meant by what `list` or an opened cell tells of it, or by its case, harness, model and
    trial as a tuple. Every call raises `NotFoundError` where there is no such
    run or cell.
    """

    called = "cells"

    list = ask(runs.list_cells)
    open = ask(cell_operations.open_cell)
    detail = ask(cell_operations.show_cell)
    files = ask(cell_operations.list_changed_files)
    decide = ask(cell_operations.decide_cell)
    promote = ask(cell_operations.promote_cell)
