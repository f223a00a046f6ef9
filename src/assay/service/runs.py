"""Operations on runs: which there are, what one comes down to, its cells by the window."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Annotated, Literal, cast

from assay.errors import InputError, NotFoundError
from assay.reports.run_records import (
    AgentCount,
    AgentName,
    CellCounts,
    CellPage,
    RunMatrix,
    RunOverview,
    RunPage,
    RunRow,
)
from assay.reports.run_view import cell_row, matrix_cases, overview_of, run_row
from assay.service.operation import After, Desk, Host, Limit, Offset, Section, Spec, Whole
from assay.shown import Ended
from assay.store.cards import Cards
from assay.store.kept_files import Freed, run_state
from assay.store.kept_files import delete_run as remove_run
from assay.store.pages import Stretch, every, page_of
from assay.store.records import RunRecord
from assay.store.runs import Store
from assay.store.windows import ENDS, Ends, Sort, Tallied, Wanted, Windows

Run = Annotated[
    str,
    Spec(
        "Its id, the beginning of it, its label, or `latest`.",
        min_length=1,
        max_length=200,
        example="latest",
    ),
]
of_runs = Section("/runs", tag="runs", where="default")
_Search = Annotated[str, Spec.text(200, "Stands in the case's name.")]
_Harness = Annotated[str | None, Spec.text(500, "Only those of this harness.")]
_Model = Annotated[str | None, Spec.text(500, "Only those of this model.")]
By = Annotated[
    str, Spec.text(200, "A field of the metadata of cases, or of rows, to break the cells down by.")
]
_OUTCOMES = r"^((pass|fail|error|skipped|scored)(,|$))*$"


@of_runs("GET", apart=True)
def list_runs(
    desk: Desk,
    search: Annotated[
        str, Spec.text(200, "Stands somewhere in the id, the label or what was run.")
    ] = "",
    *,
    limit: Limit = 50,
    offset: Offset = 0,
    after: After = None,
) -> RunPage:
    """The runs with how their cells ended, newest first."""
    store, wanted = Store(desk.database), Stretch(limit, offset, after)
    last = Windows(desk.database).last()
    if search:
        text = search.lower()
        found = page_of([run.id for run in every(store.runs) if _has(run, text)], wanted)
        runs = [store.run(run) for run in found]
    else:
        found = store.runs(wanted)
        runs = found.items
    return RunPage(run_rows(desk, runs), found.total, found.next, last=last)


def _has(run: RunRecord, text: str) -> bool:
    return any(text in part.lower() for part in (run.id, run.label, run.suite))


def run_rows(desk: Desk, runs: Sequence[RunRecord]) -> list[RunRow]:
    """Runs as a list shows them."""
    store = Store(desk.database)
    sums = Windows(desk.database).sums([run.id for run in runs])
    return [run_row(run, run_state(store, run), sums[run.id]) for run in runs]


@of_runs("GET", "/{run}")
def show_run(desk: Desk, run: Run) -> RunRecord:
    """One run."""
    try:
        return Store(desk.database).run(run)
    except InputError as error:  # its message says where the store is, which is nobody's business
        message = f"no run, or more than one, is meant by {run!r:.80}"
        raise NotFoundError(message, hint=error.hint) from error


@of_runs("GET", "/{run}/overview", apart=True)
def show_run_overview(desk: Desk, run: Run, *, by: By = "") -> RunOverview:
    """One run with all that its cells come down to."""
    from assay.reports.grader_cards import Shelf
    from assay.reports.review import run_summary
    from assay.reports.summary import verdict

    found, store = show_run.function(desk, run), Store(desk.database)
    last = Windows(desk.database).last()
    cards = Cards(desk.database).newest()
    summary = run_summary(store, found, shelf=Shelf(cards) if cards else None)
    if by:
        from assay.reports.breakdown import breakdown_of

        summary = replace(summary, broken_down=breakdown_of(store, found, by))
    (row,) = run_rows(desk, [found])
    return overview_of(row, summary, verdict(summary), last=last)


@of_runs("GET", "/{run}/matrix", apart=True)
def show_run_matrix(
    desk: Desk,
    run: Run,
    *,
    search: _Search = "",
    sort: Annotated[
        Literal["case", "worst"], Spec("By name, or those that fail most first.")
    ] = "case",
    limit: Limit = 50,
    offset: Offset = 0,
    after: After = None,
) -> RunMatrix:
    """The cells of a run by case and agent, so many cases at a time."""
    from assay.reports.summary import Tally

    run_id, windows = show_run.function(desk, run).id, Windows(desk.database)
    wanted = Stretch(limit, offset, after)
    cases = windows.cases(run_id, wanted, search=search, worst_first=sort == "worst")
    agents = Store(desk.database).agents(run_id)
    tally = Tally()
    for cell in windows.cells_of_cases(run_id, cases.items):
        tally.add(cell)
    return RunMatrix(
        matrix_cases(tally.summary().groups, cases.items, agents),
        cases.total,
        cases.next,
        agents=tuple(AgentName(*agent) for agent in agents),
    )


@of_runs("GET", "/{run}/cells", apart=True)
def list_cells(
    desk: Desk,
    run: Run,
    *,
    outcome: Annotated[
        str, Spec("Outcomes, with commas between.", max_length=60, pattern=_OUTCOMES)
    ] = "",
    harness: _Harness = None,
    model: _Model = None,
    case: Annotated[str, Spec.text(500, "Only those of this case.")] = "",
    search: _Search = "",
    flagged: Annotated[bool, Spec("Only those with signs of tampering.")] = False,
    held: Annotated[bool, Spec("Only those that wait for a person.")] = False,
    cause: Annotated[str, Spec.text(400, "`key` of a cause of errors: only its cells.")] = "",
    sort: Annotated[Sort, Spec("What is unknown comes last.")] = "case",
    descending: bool = False,
    whole: Whole = False,
    limit: Limit = 50,
    offset: Offset = 0,
    after: After = None,
    until: Annotated[
        int, Spec("`last` of a page: nothing that came later; 0 for all.", ge=0, le=2**53)
    ] = 0,
) -> CellPage:
    """The newest results of the cells of a run, with how many there are to choose from."""
    run_id, windows = show_run.function(desk, run).id, Windows(desk.database)
    last = until or windows.last()
    wanted = Wanted(
        ends=tuple(cast("Ended", end) for end in outcome.split(",") if end),
        harness=harness,
        model=model,
        case=case,
        search=search,
        flagged=flagged,
        held=held,
        among=_with_cause(windows, run_id, cause) if cause else None,
        until=last,
    )
    stretch = Stretch(limit, offset, after)
    found = windows.cells(
        run_id, wanted, stretch, sort=sort, descending=descending, whole=whole
    ).of(lambda cell: cell_row(cell, whole=whole))
    if after is not None:  # whoever reads millions of them need not count them each time
        return CellPage(found.items, found.total, found.next, counts=None, last=last)
    tallied = windows.tallied(run_id, wanted)
    total = sum(one.count for one in tallied if one.suits(wanted))
    is_chosen = bool(case or search or cause)
    run_cells = windows.tallied(run_id, Wanted(until=last)) if is_chosen else tallied
    counts = _counts(tallied, wanted, cells=sum(one.count for one in run_cells))
    return CellPage(found.items, total, found.next, counts=counts, last=last)


def _counts(counts: Sequence[Tallied], wanted: Wanted, *, cells: int) -> CellCounts:
    return CellCounts(
        cells=cells,
        ends=Ends.of(
            {
                end: sum(
                    one.count for one in counts if one.end == end and one.suits(wanted, but="end")
                )
                for end in ENDS
            }
        ),
        agents=tuple(_agents(counts, wanted)),
        flagged=sum(one.count for one in counts if one.flagged and one.suits(wanted)),
        held=sum(one.count for one in counts if one.held and one.suits(wanted)),
    )


def _agents(counts: Iterable[Tallied], wanted: Wanted) -> Iterable[AgentCount]:
    found: dict[tuple[str, str], int] = {}
    for one in counts:
        agent = (one.harness, one.model)
        found[agent] = found.get(agent, 0) + one.count * one.suits(wanted, but="agent")
    for (harness, model), number in found.items():
        yield AgentCount(harness=harness, model=model, count=number)


def _with_cause(windows: Windows, run: str, key: str) -> tuple[int, ...]:
    from assay.reports.summary import cause_key, cause_text

    return tuple(
        number for number, cell in windows.troubles(run) if cause_key(cause_text(cell)) == key
    )


@of_runs("DELETE", "/{run}", repeatable=True)
async def delete_run(
    host: Host,
    run: Annotated[str, Spec("Its whole id.", min_length=1, max_length=200)],
    *,
    keep_files: Annotated[bool, Spec("Leave the files of workspaces.")] = False,
) -> Freed:
    """Delete a run with its results, and the files of workspaces that no other run needs."""

    def delete(desk: Desk) -> Freed:
        found = show_run.function(desk, run)
        if found.id != run:  # what `latest` means now is another run when it is asked again
            raise NotFoundError(f"there is no run {run!r:.80}", hint=f"its whole id: {found.id}")
        return remove_run(Store(desk.database), run, keep_files=keep_files)

    # Files cannot come back: they go when the deletion is in the database for good.
    freed = await host.run(delete)
    return await host.finish(lambda _: freed)
