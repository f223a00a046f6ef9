"""``client.cells``: single results of runs, opened, decided about, graded again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

from assay.client.scope import Scope, checked_calls, every
from assay.errors import InputError
from assay.service import cells as operations

if TYPE_CHECKING:
    from assay.reports.cell_records import (
        CellView,
        ChangedFiles,
        FoundSteps,
        StepOutline,
        StepPart,
    )
    from assay.service.cells import CellDetail, Promotion
    from assay.store import CellRecord
    from assay.store.labels import Decision, Ruling
    from assay.store.records import CellKey
    from assay.store.regrades import RegradeState


class Placed(Protocol):
    """What tells where in a run a cell is."""

    @property
    def case(self) -> str:
        """Its case."""
        ...

    @property
    def harness(self) -> str:
        """What did the work."""
        ...

    @property
    def model(self) -> str:
        """The model that was asked for; empty where there is none."""
        ...

    @property
    def trial(self) -> int:
        """The repeat, from 1."""
        ...


Cell: TypeAlias = "Placed | CellKey"
"""A cell of a run: a record that tells where it is; or its case, harness, model and trial."""


@checked_calls("cells")
class AsyncCells:
    """Single results of runs.

    A run is meant by its id, the beginning of it, its label, or ``latest``; a cell by what `list`,
    ``runs.cells`` or an opened cell tells of it, or by its case, harness, model and trial as a
    tuple. Every call raises `NotFoundError` where there is no such run or cell.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def list(self, run: str, *, failures: bool = False) -> list[CellRecord]:
        """The newest result of every cell of a run, by case, harness, model and trial.

        Args:
            run: The run.
            failures: Only what failed or broke.
        """
        return await every(
            lambda cursor: self._scope.backend.call(
                operations.list_cells, "", run, failures=failures, limit=200, cursor=cursor
            )
        )

    async def open(
        self,
        run: str,
        cell: Cell,
    ) -> CellView:
        """A cell laid out to be read: verdict, score tree, evidence, history; long texts folded."""
        case, harness, model, trial = _key(cell)
        return await self._scope.backend.call(
            operations.open_cell,
            "",
            run,
            case=case,
            harness=harness,
            model=model,
            trial=trial,
        )

    async def detail(
        self,
        run: str,
        cell: Cell,
    ) -> CellDetail:
        """A cell, and all that was kept of it: the answer, the trace, the score tree."""
        case, harness, model, trial = _key(cell)
        return await self._scope.backend.call(
            operations.show_cell,
            "",
            run,
            case=case,
            harness=harness,
            model=model,
            trial=trial,
        )

    async def outline(
        self,
        run: str,
        cell: Cell,
    ) -> StepOutline:
        """Every step of a cell, without texts."""
        case, harness, model, trial = _key(cell)
        return await self._scope.backend.call(
            operations.outline_steps,
            "",
            run,
            case=case,
            harness=harness,
            model=model,
            trial=trial,
        )

    async def steps(
        self,
        run: str,
        cell: Cell,
        *,
        start: int = 0,
        limit: int = 200,
    ) -> StepPart:
        """Some steps of a cell, so many from one on."""
        case, harness, model, trial = _key(cell)
        return await self._scope.backend.call(
            operations.list_steps,
            "",
            run,
            case=case,
            harness=harness,
            model=model,
            trial=trial,
            start=start,
            n=limit,
        )

    async def find_steps(
        self,
        run: str,
        cell: Cell,
        *,
        words: str,
    ) -> FoundSteps:
        """The steps of a cell that have some words."""
        case, harness, model, trial = _key(cell)
        return await self._scope.backend.call(
            operations.search_steps,
            "",
            run,
            case=case,
            harness=harness,
            model=model,
            trial=trial,
            q=words,
        )

    async def files(
        self,
        run: str,
        cell: Cell,
    ) -> ChangedFiles:
        """What became of the files of the workspace of a cell."""
        case, harness, model, trial = _key(cell)
        return await self._scope.backend.call(
            operations.list_changed_files,
            "",
            run,
            case=case,
            harness=harness,
            model=model,
            trial=trial,
        )

    async def text(
        self,
        run: str,
        cell: Cell,
        *,
        ref: str,
    ) -> str:
        """The whole of a text that was folded, by its `ref`."""
        case, harness, model, trial = _key(cell)
        found = await self._scope.backend.call(
            operations.show_text,
            "",
            run,
            case=case,
            harness=harness,
            model=model,
            trial=trial,
            ref=ref,
        )
        return found.text

    async def decide(
        self,
        run: str,
        cell: Cell,
        *,
        ruling: Ruling,
        seen: str,
        note: str = "",
    ) -> Decision:
        """Decide about a cell that is flagged or held, as `assay review` does; the newest counts.

        Args:
            run: The run.
            cell: The cell.
            ruling: ``ok``: its reward stands; ``zero``: it is 0.
            seen: `seen` of the cell as it was opened: so that nobody decides about another result.
            note: Why.

        Raises:
            ConflictError: There is nothing to decide, or it was graded again meanwhile.
        """
        case, harness, model, trial = _key(cell)
        return await self._scope.backend.call(
            operations.decide_cell,
            "",
            run,
            case=case,
            harness=harness,
            model=model,
            trial=trial,
            ruling=ruling,
            seen=seen,
            note=note,
        )

    async def regrade(
        self,
        run: str,
        cell: Cell,
    ) -> RegradeState:
        """Grade a cell again, from what was kept of it: see `runs.regrade`."""
        case, harness, model, trial = _key(cell)
        return await self._scope.backend.call(
            operations.regrade_run,
            "",
            run,
            case=case,
            harness=harness,
            model=model,
            trial=trial,
        )

    async def promote(
        self,
        run: str,
        cell: Cell,
        *,
        name: str,
        force: bool = False,
    ) -> Promotion:
        """Write the work of a cell beside its case, on the disk of the server or here.

        Args:
            run: The run.
            cell: The cell.
            name: What the recording is called.
            force: Replace one of that name.
        """
        case, harness, model, trial = _key(cell)
        return await self._scope.backend.call(
            operations.promote_cell,
            "",
            run,
            case=case,
            harness=harness,
            model=model,
            trial=trial,
            name=name,
            force=force,
        )


def _key(cell: Cell) -> CellKey:
    if isinstance(cell, tuple):
        return cell
    try:
        return cell.case, cell.harness, cell.model, cell.trial
    except AttributeError:
        raise InputError(
            f"{cell!r:.80} is no cell",
            hint="give a record of `cells.list` or `runs.cells`, or (case, harness, model, trial)",
        ) from None
