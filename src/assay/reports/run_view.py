"""A run as the page shows it: its records, made of what its cells come down to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from assay.reports.explain import shortfall
from assay.reports.outcome import trouble
from assay.reports.plain import one_line
from assay.reports.run_records import (
    AgentRow,
    CellRow,
    Ends,
    ErrorCause,
    MatrixCell,
    RunLine,
    RunOverview,
    RunRow,
    RunTotals,
)
from assay.reports.statistics import statistics
from assay.reports.summary import OTHER_CAUSES, Row, Summary, Verdict, cause_key
from assay.reports.totals import Totals
from assay.store.decisions import HELD, decision_of
from assay.store.kept import RunState
from assay.store.records import CellRecord, RunRecord
from assay.store.windows import End, Sums, end_of

__all__ = ["cell_row", "ends_of", "matrix_cell", "overview_of", "run_row"]

_MOST_MIXED = 200
_SHOWN_FLAGS, _FLAG_LENGTH = 20, 300
_NAME = 500


def run_row(run: RunRecord, state: RunState, sums: Sums) -> RunRow:
    """A run as a list shows it."""
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
        ends=ends_of(sums.ends),
        flagged=sums.flagged,
        held=sums.held,
        reward=sums.reward,
        cases=sums.cases,
        cost_usd=sums.cost_usd,
        cost_unknown=sums.cost_unknown,
        seconds=sums.seconds,
    )


def ends_of(counts: Mapping[End, int]) -> Ends:
    """How many cells ended in which way."""
    return Ends(
        passed=counts.get("pass", 0),
        failed=counts.get("fail", 0),
        errors=counts.get("error", 0),
        skipped=counts.get("skipped", 0),
        scored=counts.get("scored", 0),
    )


def overview_of(row: RunRow, summary: Summary, judged: Verdict, *, last: int = 0) -> RunOverview:
    """A run with all that its cells come down to."""
    return RunOverview(
        run=row,
        verdict=judged.line,
        code=judged.code,
        totals=_totals(summary.totals),
        missing=summary.missing,
        malformed=summary.malformed,
        not_graded="" if summary.not_graded is None else str(summary.not_graded),
        lines=tuple(_lines(summary)),
        leaderboard=tuple(
            AgentRow(
                harness=one.harness,
                model=one.model,
                totals=_totals(one.totals),
                mixed=one.mixed,
            )
            for one in summary.leaderboard
        ),
        causes=tuple(_causes(summary)),
        mixed=summary.mixed[:_MOST_MIXED],
        last=last,
    )


def _lines(summary: Summary) -> Iterable[RunLine]:
    for label, parts in statistics(summary):
        styled = [part if isinstance(part, tuple) else (part, "") for part in parts]
        yield RunLine(
            label=label,
            text=" ".join("".join(text for text, _ in styled).split()),
            warns=any(style == "yellow" for _, style in styled),
        )


def _causes(summary: Summary) -> Iterable[ErrorCause]:
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
        reward=totals.reward,
        pass_rate=totals.pass_rate,
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


def matrix_cell(row: Row | None) -> MatrixCell | None:
    """The trials of one case by one agent; None where there are none."""
    if row is None:
        return None
    return MatrixCell(totals=_totals(row.totals), ended=row.ended, flaky=row.flaky, mixed=row.mixed)


def cell_row(cell: CellRecord, *, whole: bool = False) -> CellRow:
    """A cell in a list of cells; `whole` with all that its row has."""
    decision = decision_of(cell)
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
        ruling=decision.ruling if decision else "",
        why=one_line(trouble(cell) or shortfall(cell), 300),
        cost_usd=cell.cost_usd,
        tokens=cell.tokens,
        seconds=cell.seconds,
        record=cell if whole else None,
    )
