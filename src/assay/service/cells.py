"""Operations on the cells of runs: to open one, to decide about it, to grade it again."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from typing import Annotated, Protocol, TypeAlias

from assay.errors import ConflictError, InputError, NotFoundError
from assay.registry.policy import ForbiddenError
from assay.reports.cell_records import (
    CellsUnderWay,
    CellView,
    ChangedFiles,
    FoundSteps,
    StepOutline,
    StepPart,
)
from assay.reports.cell_view import (
    cell_pictures,
    cell_view,
    cells_under_way,
    changed_files,
    find_steps,
    outline_of,
    steps_of,
    text_of,
)
from assay.reports.pictures import CellPictures
from assay.reports.plain import one_line
from assay.scoring.json_safe import Json
from assay.service.operation import Desk, Host, Section, Spec, Spread
from assay.service.runs import Run, of_runs, show_run
from assay.store.decisions import Decision, Ruling, decide, needs_decision
from assay.store.records import CellKey, CellRecord, RunRecord
from assay.store.regrades import Regrades, RegradeState
from assay.store.runs import Store

of_cells = Section("/runs/{run}/cells", tag="runs", where="default")


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


def key_of(cell: Placed | CellKey) -> CellKey:
    """Case, harness, model and trial of a cell."""
    if isinstance(cell, tuple):
        return cell
    try:
        return cell.case, cell.harness, cell.model, cell.trial
    except AttributeError:
        raise InputError(
            f"{cell!r:.80} is no cell",
            hint="give a record of `cells.list`, or (case, harness, model, trial)",
        ) from None


_NAME = Spec(max_length=500)
_AGENT = (
    ("harness", str, _NAME, ""),
    ("model", str, _NAME, ""),
    ("trial", int, Spec(ge=1, le=1_000_000), 1),
)
ThatCell: TypeAlias = Annotated[
    Placed | CellKey,
    Spread(
        (("case", str, replace(_NAME, example="kit"), inspect.Parameter.empty), *_AGENT),
        key_of,
        "A record that tells where the cell is; or its case, harness, model and trial.",
    ),
]
AnyCell: TypeAlias = Annotated[
    Placed | CellKey | None,
    Spread(
        (
            ("case", str | None, replace(_NAME, description="Only its cell; none: all."), None),
            *_AGENT,
        ),
        key_of,
        "Only this cell; all by default.",
    ),
]


@dataclass(frozen=True, slots=True)
class CellDetail:
    """A cell, and the whole run of it: answer, trace, score tree.

    Attributes:
        cell: Its newest result.
        detail: All that was kept of it.
    """

    cell: CellRecord
    detail: dict[str, Json]


@dataclass(frozen=True, slots=True)
class CellText:
    """A text, whole."""

    text: str


@dataclass(frozen=True, slots=True)
class Promotion:
    """A recording that was written.

    Attributes:
        directory: Where.
        files: Files and links that it lays over the workspace.
        deleted: Paths that it deletes from it.
        left_out: What could not be recorded, and why.
        play: The command that plays it.
    """

    directory: str
    files: int
    deleted: int
    left_out: tuple[str, ...]
    play: str


@of_cells("GET", "/detail")
def show_cell(desk: Desk, run: Run, cell: ThatCell) -> CellDetail:
    """A cell with all of its detail: the answer, the trace, the score tree."""
    store, found, key = _at(desk, run, cell)
    return CellDetail(_newest(store, found, key), store.detail(found.id, key))


@of_cells("GET", "/opened", apart=True)
def open_cell(desk: Desk, run: Run, cell: ThatCell) -> CellView:
    """A cell as the page shows it: verdict, score tree, evidence, history; long texts folded."""
    return cell_view(*_at(desk, run, cell))


@of_cells("GET", "/under-way", apart=True)
def list_cells_under_way(desk: Desk, run: Run) -> CellsUnderWay:
    """The cells without a result on which agents work now, the first hundred.

    Their steps are those of `outline` and `steps`, as far as they have come.
    """
    return cells_under_way(Store(desk.database), show_run.function(desk, run))


@of_cells("GET", "/outline", apart=True)
def outline_steps(desk: Desk, run: Run, cell: ThatCell) -> StepOutline:
    """Every step of a cell, without texts: what the page leads through a trajectory by."""
    return outline_of(*_at(desk, run, cell))


@of_cells("GET", "/steps", apart=True)
def list_steps(
    desk: Desk,
    run: Run,
    cell: ThatCell,
    *,
    start: Annotated[int, Spec("The first.", ge=0, le=1 << 31, alias="from")] = 0,
    limit: Annotated[int, Spec("How many, at most.", ge=1, le=500, alias="n")] = 200,
) -> StepPart:
    """Some steps of a cell, from one on."""
    return steps_of(*_at(desk, run, cell), start, limit)


@of_cells("GET", "/steps/search", apart=True)
def search_steps(
    desk: Desk,
    run: Run,
    cell: ThatCell,
    *,
    words: Annotated[str, Spec("The words.", min_length=1, max_length=200, alias="q")],
) -> FoundSteps:
    """The steps of a cell that have some words."""
    return find_steps(*_at(desk, run, cell), words)


@of_cells("GET", "/files", apart=True)
def list_changed_files(desk: Desk, run: Run, cell: ThatCell) -> ChangedFiles:
    """What became of the files of the workspace of a cell."""
    return changed_files(*_at(desk, run, cell))


@of_cells("GET", "/pictures", apart=True)
def list_pictures(desk: Desk, run: Run, cell: ThatCell) -> CellPictures:
    """The pictures of a cell, as data URLs: those of its conversation and what tools gave."""
    return cell_pictures(*_at(desk, run, cell))


@of_cells("GET", "/text", apart=True)
def show_text(
    desk: Desk,
    run: Run,
    cell: ThatCell,
    *,
    ref: Annotated[str, Spec("Its `ref`.", min_length=1, max_length=500)],
) -> CellText:
    """The whole of a text that was folded."""
    return CellText(text_of(*_at(desk, run, cell), ref))


@of_cells("POST", "/decide", faults=(409,))
def decide_cell(
    desk: Desk,
    run: Run,
    cell: ThatCell,
    *,
    ruling: Annotated[Ruling, Spec("`ok`: its reward stands; `zero`: it is 0.", example="zero")],
    note: Annotated[str, Spec.text(4_000)] = "",
    seen: Annotated[
        str, Spec("`seen` of the cell.", max_length=64, example="9f86d081884c7d659a2feaa0c55ad015")
    ],
) -> Decision:
    """Decide about a flagged or held cell, as `assay runs review` does; the newest counts."""
    store, found, key = _at(desk, run, cell)
    newest = _newest(store, found, key)
    if not needs_decision(newest):
        raise ConflictError(f"cell {key} is neither flagged nor held: there is nothing to decide")
    now = desk.database.now()
    decision = Decision(ruling=ruling, by=desk.who.name, at=now, note=note)
    decide(store, newest, decision, seen=seen)
    return decision


@of_runs("POST", "/{run}/regrade", status=202, faults=(409,))
async def regrade_run(host: Host, run: Run, cell: AnyCell = None) -> RegradeState:
    """Begin to grade a run again, or one cell of it, from what was kept; no agent runs.

    It is done in the background, with the graders that its cases have now.
    """
    from assay.eval.matrix import runs_python

    cells = None if cell is None else [key_of(cell)]

    def begin(desk: Desk) -> str:
        found = show_run.function(desk, run)
        if cells is not None:
            _newest(Store(desk.database), found, cells[0])
        is_imported = found.config.get("imported") is True  # its author said where its cases are
        if (is_imported or runs_python(found)) and not desk.who.may("admin", None):
            what = "it was imported" if is_imported else "its tasks are Python files"
            raise ForbiddenError(
                f"{what}: this server grades such runs again for admins of all projects only"
            )
        return found.id

    return await host.regrade(await host.run(begin), cells)


@of_runs("GET", "/{run}/regrade")
def show_regrade(desk: Desk, run: Run) -> RegradeState:
    """How far the newest regrade of a run is that a server or a client began."""
    return Regrades(desk.database).of(show_run.function(desk, run).id)


@of_cells("POST", "/promote", role="admin")
def promote_cell(
    desk: Desk,
    run: Run,
    cell: ThatCell,
    *,
    name: Annotated[str, Spec.text(200, min_length=1, example="small-1")],
    force: Annotated[bool, Spec("Replace a recording of that name.")] = False,
) -> Promotion:
    """Write the work of a cell beside its case, on the disk here. For admins of all projects."""
    from assay.eval.promote import play_command, promote

    if not desk.who.may("admin", None):
        raise ForbiddenError("this needs the role admin for all projects")
    store, found, key = _at(desk, run, cell)
    newest = _newest(store, found, key)
    done = promote(store, newest, name, force=force)
    left_out = tuple(f"{one_line(one.path, 300)}: {one.why}" for one in done.left_out)
    return Promotion(done.directory, done.files, done.deleted, left_out, play_command(newest, name))


def _at(desk: Desk, run: str, cell: Placed | CellKey) -> tuple[Store, RunRecord, CellKey]:
    return Store(desk.database), show_run.function(desk, run), key_of(cell)


def _newest(store: Store, run: RunRecord, key: CellKey) -> CellRecord:
    if history := store.history(run.id, key):
        return history[-1]
    raise NotFoundError(f"run {run.id} has no cell {key}", hint="list its cells")
