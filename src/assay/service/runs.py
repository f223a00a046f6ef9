"""Operations on runs: which there are, what one comes down to, its cells by the window."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Literal, cast

from assay.errors import InputError, NotFoundError
from assay.service.operation import (
    MAX_LIMIT,
    Desk,
    Host,
    Limit,
    Page,
    Spec,
    operation,
    waiting_operation,
)
from assay.service.run_records import (
    Agent,
    AgentCount,
    AgentRow,
    CellRow,
    CellWindow,
    Ends,
    ErrorCause,
    Estimate,
    MatrixCase,
    MatrixCell,
    RunLine,
    RunMatrix,
    RunOverview,
    RunRow,
    RunRows,
    RunTotals,
)
from assay.store.cards import Cards
from assay.store.kept import Freed, RunState, run_state
from assay.store.kept import delete_run as remove_run
from assay.store.labels import HELD, Decisions
from assay.store.records import CellRecord, RunRecord
from assay.store.runs import Store
from assay.store.windows import End, Order, Sums, Tallied, Wanted, Windows, end_of

if TYPE_CHECKING:
    from assay.reports.summary import Row, Summary
    from assay.reports.totals import Totals
    from assay.scoring.intervals import Interval

Run = Annotated[
    str,
    Spec(
        min_length=1,
        max_length=200,
        description="Its id, the beginning of it, its label, or `latest`.",
        example="latest",
    ),
]
Offset = Annotated[int, Spec(ge=0, le=10_000_000, description="How many are left out before it.")]
_Search = Annotated[str, Spec(max_length=200, pattern=r"^[^\x00]*$")]
_Coordinate = Annotated[str | None, Spec(max_length=500, pattern=r"^[^\x00]*$")]
_ENDS: tuple[End, ...] = ("pass", "fail", "error", "skipped", "scored")
_OUTCOMES = r"^((pass|fail|error|skipped|scored)(,|$))*$"
_SHOWN_FLAGS, _FLAG_LENGTH = 20, 300
_NAME = 500


@operation("GET", "/runs", "viewer", tag="runs", where="default")
def list_runs(desk: Desk, *, limit: Limit = 50) -> Page[RunRecord]:
    """The newest runs, newest first."""
    return Page(Store(desk.database).runs(limit))


@operation("GET", "/run-rows", "viewer", tag="runs", where="default", apart=True)
def list_run_rows(
    desk: Desk,
    *,
    limit: Limit = 50,
    offset: Offset = 0,
    search: Annotated[
        str,
        Spec(
            max_length=200,
            pattern=r"^[^\x00]*$",
            description="Stands somewhere in the id, the label or what was run.",
        ),
    ] = "",
) -> RunRows:
    """The runs with how their cells ended, newest first."""
    store = Store(desk.database)
    last = Windows(desk.database).last()
    if search:
        text = search.lower()
        suits = [run for run in _every_run(store) if _has(run, text)]
        total, found = len(suits), suits[offset : offset + limit]
    else:
        total, found = store.run_count(), store.runs(limit, after=offset)
    return RunRows(items=tuple(run_rows(desk, found)), total=total, last=last)


def _every_run(store: Store) -> Iterator[RunRecord]:
    seen = 0
    while some := store.runs(MAX_LIMIT, after=seen):
        seen += len(some)
        yield from some


def _has(run: RunRecord, text: str) -> bool:
    return any(text in part.lower() for part in (run.id, run.label, run.suite))


def run_rows(desk: Desk, runs: Sequence[RunRecord]) -> list[RunRow]:
    """Runs as a list shows them."""
    store = Store(desk.database)
    sums = Windows(desk.database).sums([run.id for run in runs])
    return [_run_row(run, run_state(store, run), sums[run.id]) for run in runs]


def _run_row(run: RunRecord, state: RunState, sums: Sums) -> RunRow:
    from assay.reports.plain import one_line

    kind = str(run.config.get("kind", ""))
    goes_on = kind == "matrix" and state in ("interrupted", "unfinished")
    return RunRow(
        id=run.id,
        label=one_line(run.label, _NAME),
        created_at=run.created_at,
        kind=one_line(kind, _NAME),
        suite=one_line(run.suite, _NAME),
        assay=run.assay,
        state=state,
        resume=f"assay run --resume {run.id}" if goes_on else "",
        planned=run.planned,
        total=sums.total,
        ends=_ends(sums.ends),
        flagged=sums.flagged,
        held=sums.held,
        reward=sums.reward,
        cases=sums.cases,
        cost_usd=sums.cost_usd,
        cost_unknown=sums.cost_unknown,
        seconds=sums.seconds,
    )


def _ends(counts: Mapping[End, int]) -> Ends:
    return Ends(
        passed=counts.get("pass", 0),
        failed=counts.get("fail", 0),
        errors=counts.get("error", 0),
        skipped=counts.get("skipped", 0),
        scored=counts.get("scored", 0),
    )


@operation("GET", "/runs/{run}", "viewer", tag="runs", where="default", faults=(404,))
def show_run(desk: Desk, run: Run) -> RunRecord:
    """One run."""
    try:
        return Store(desk.database).run(run)
    except InputError as error:  # its message says where the store is, which is nobody's business
        message = f"no run, or more than one, is meant by {run!r:.80}"
        raise NotFoundError(message, hint=error.hint) from error


@operation(
    "GET", "/runs/{run}/overview", "viewer", tag="runs", where="default", faults=(404,), apart=True
)
def show_run_overview(desk: Desk, run: Run) -> RunOverview:
    """One run with all that its cells come down to."""
    from assay.reports.review import run_summary
    from assay.reports.standing import Shelf
    from assay.reports.summary import verdict

    found, store = show_run.function(desk, run), Store(desk.database)
    last = Windows(desk.database).last()
    cards, decisions = Cards(desk.database).newest(), Decisions(desk.database).all()
    summary = run_summary(store, found, shelf=Shelf(cards) if cards else None, decisions=decisions)
    judged = verdict(summary)
    return RunOverview(
        run=run_rows(desk, [found])[0],
        verdict=judged.line,
        code=judged.code,
        totals=_totals(summary.totals),
        missing=summary.missing,
        malformed=summary.malformed,
        not_graded="" if summary.not_graded is None else str(summary.not_graded),
        lines=tuple(_lines(summary)),
        leaderboard=tuple(
            AgentRow(
                harness=row.harness,
                model=row.model,
                totals=_totals(row.totals),
                mixed=row.mixed,
            )
            for row in summary.leaderboard
        ),
        causes=tuple(_causes(summary)),
        mixed=summary.mixed[:_MOST_MIXED],
        last=last,
    )


_MOST_MIXED = 200


def _lines(summary: Summary) -> Iterable[RunLine]:
    from assay.reports.statistics import statistics

    for label, parts in statistics(summary):
        styled = [part if isinstance(part, tuple) else (part, "") for part in parts]
        yield RunLine(
            label=label,
            text=" ".join("".join(text for text, _ in styled).split()),
            warns=any(style == "yellow" for _, style in styled),
        )


def _causes(summary: Summary) -> Iterable[ErrorCause]:
    from assay.reports.summary import OTHER_CAUSES, cause_key

    for cause in summary.causes:
        key = "" if cause.text == OTHER_CAUSES else cause_key(cause.text)
        yield ErrorCause(count=cause.count, text=cause.text, key=key)


def _totals(totals: Totals) -> RunTotals:
    has_verdicts = totals.has_verdicts
    return RunTotals(
        total=totals.total,
        graded=totals.graded,
        ends=Ends(
            passed=totals.passed - totals.scored,
            failed=totals.failed,
            errors=totals.errors,
            skipped=totals.skipped,
            scored=totals.scored,
        ),
        shown=totals.shown,
        has_verdicts=has_verdicts,
        flagged=totals.flagged,
        held=totals.held,
        cases=totals.cases,
        reward=_estimate(totals.reward),
        pass_rate=_estimate(totals.pass_rate),
        coverage=totals.coverage,
        cost_usd=totals.cost_usd,
        cost_unknown=totals.cost_unknown,
        tokens=totals.tokens,
        tokens_unknown=totals.tokens_unknown,
        judgements=totals.judgements,
        judge_cost_usd=totals.judge_cost_usd,
        judge_cost_unknown=totals.judge_cost_unknown,
        seconds=totals.seconds,
    )


def _estimate(interval: Interval) -> Estimate:
    return Estimate(mean=interval.mean, low=interval.low, high=interval.high, n=interval.n)


@operation(
    "GET", "/runs/{run}/matrix", "viewer", tag="runs", where="default", faults=(404,), apart=True
)
def show_run_matrix(
    desk: Desk,
    run: Run,
    *,
    search: _Search = "",
    sort: Annotated[
        Literal["case", "worst"], Spec(description="By name, or those that fail most first.")
    ] = "case",
    limit: Limit = 100,
    offset: Offset = 0,
) -> RunMatrix:
    """The cells of a run by case and agent, so many cases at a time."""
    from assay.reports.summary import Tally

    run_id, windows = show_run.function(desk, run).id, Windows(desk.database)
    total, cases = windows.cases(
        run_id, search=search, worst_first=sort == "worst", offset=offset, limit=limit
    )
    agents = Store(desk.database).agents(run_id)
    tally = Tally()
    for cell in windows.cells_of_cases(run_id, cases):
        tally.add(cell)
    rows = {(row.case, row.harness, row.model): row for row in tally.summary().groups}
    return RunMatrix(
        agents=tuple(Agent(harness=harness, model=model) for harness, model in agents),
        cases=tuple(
            MatrixCase(
                case=case, cells=tuple(_matrix_cell(rows.get((case, *agent))) for agent in agents)
            )
            for case in cases
        ),
        offset=offset,
        total=total,
    )


def _matrix_cell(row: Row | None) -> MatrixCell | None:
    if row is None:
        return None
    return MatrixCell(totals=_totals(row.totals), ended=row.ended, flaky=row.flaky, mixed=row.mixed)


@operation(
    "GET",
    "/runs/{run}/cells/window",
    "viewer",
    tag="runs",
    where="default",
    faults=(404,),
    apart=True,
)
def window_cells(
    desk: Desk,
    run: Run,
    *,
    outcome: Annotated[
        str, Spec(max_length=60, pattern=_OUTCOMES, description="Outcomes, with commas between.")
    ] = "",
    harness: _Coordinate = None,
    model: _Coordinate = None,
    case: Annotated[str, Spec(max_length=500, pattern=r"^[^\x00]*$")] = "",
    search: Annotated[
        str, Spec(max_length=200, pattern=r"^[^\x00]*$", description="Stands in the case's name.")
    ] = "",
    flagged: Annotated[bool, Spec(description="Only those with signs of tampering.")] = False,
    held: Annotated[bool, Spec(description="Only those that wait for a person.")] = False,
    cause: Annotated[
        str,
        Spec(
            max_length=400,
            pattern=r"^[^\x00]*$",
            description="`key` of a cause of errors: only its cells.",
        ),
    ] = "",
    sort: Annotated[Order, Spec(description="What is unknown comes last.")] = "case",
    descending: bool = False,
    limit: Annotated[int, Spec(ge=1, le=MAX_LIMIT)] = 100,
    offset: Offset = 0,
    until: Annotated[
        int,
        Spec(ge=0, le=2**53, description="`last` of a window: nothing that came later; 0 for all."),
    ] = 0,
) -> CellWindow:
    """Some cells of a run, wherever they stand in the list, with how many more there are."""
    run_id, windows = show_run.function(desk, run).id, Windows(desk.database)
    last = until or windows.last()
    wanted = Wanted(
        ends=tuple(cast("End", end) for end in outcome.split(",") if end),
        harness=harness,
        model=model,
        case=case,
        search=search,
        flagged=flagged,
        held=held,
        among=_with_cause(windows, run_id, cause) if cause else None,
        until=last,
    )
    counts = windows.tallied(run_id, wanted)
    is_whole = not (case or search or cause)
    every = counts if is_whole else windows.tallied(run_id, Wanted(until=last))
    cells = windows.cells(
        run_id, wanted, order=sort, descending=descending, offset=offset, limit=limit
    )
    return CellWindow(
        rows=tuple(_cell_row(cell) for cell in cells),
        offset=offset,
        total=sum(one.count for one in counts if one.suits(wanted)),
        cells=sum(one.count for one in every),
        ends=_ends(
            {
                end: sum(
                    one.count for one in counts if one.end == end and one.suits(wanted, but="end")
                )
                for end in _ENDS
            }
        ),
        agents=tuple(_agents(counts, wanted)),
        flagged=sum(one.count for one in counts if one.flagged and one.suits(wanted)),
        held=sum(one.count for one in counts if one.held and one.suits(wanted)),
        last=last,
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


def _cell_row(cell: CellRecord) -> CellRow:
    from assay.reports.outcome import trouble
    from assay.reports.plain import one_line

    review = cell.notes.get("review")
    return CellRow(
        case=cell.case,
        harness=cell.harness,
        model=cell.model,
        trial=cell.trial,
        ended=end_of(cell),
        reward=cell.reward,
        threshold=cell.threshold,
        assurance=cell.assurance or "",
        flags=tuple(one_line(flag, _FLAG_LENGTH) for flag in cell.flags[:_SHOWN_FLAGS]),
        flag_count=len(cell.flags),
        held=cell.status == "skipped" and HELD in cell.notes,
        ruling=str(review.get("ruling", "")) if isinstance(review, dict) else "",
        why=one_line(trouble(cell), 300),
        cost_usd=cell.cost_usd,
        tokens=cell.tokens,
        seconds=cell.seconds,
    )


@waiting_operation(
    "DELETE",
    "/runs/{run}",
    "editor",
    tag="runs",
    where="default",
    repeatable=True,
    faults=(404, 409),
)
async def delete_run(
    host: Host,
    run: Annotated[str, Spec(min_length=1, max_length=200, description="Its whole id.")],
    *,
    keep_files: Annotated[bool, Spec(description="Leave the files of workspaces.")] = False,
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
