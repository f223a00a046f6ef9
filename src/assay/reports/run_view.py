"""A run as the page shows it: its records, made of what its cells come down to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from assay.reports.explain import why_of
from assay.reports.outcome import ended, reward_of
from assay.reports.plain import natural, one_line
from assay.reports.run_records import (
    AgentName,
    CellRow,
    MatrixCase,
    RunLine,
    RunMatrix,
    RunOverview,
    RunRow,
)
from assay.reports.statistics import statistics
from assay.reports.summary import AgentRow, RunVerdict, Summary
from assay.reports.totals import Totals
from assay.statistics.intervals import Interval, wilson
from assay.store.decisions import HELD, decision_of
from assay.store.kept_files import RunState
from assay.store.records import CellRecord, RunRecord
from assay.store.windows import Sums

__all__ = [
    "cell_row",
    "matrix_cases",
    "matrix_of",
    "overview_of",
    "run_row",
    "sums_of",
    "whole_row",
]

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
        total=sums.ends.total,
        ends=sums.ends,
        flagged=sums.flagged,
        held=sums.held,
        reward=sums.reward,
        cases=sums.cases,
        pass_rate=_pass_rate(sums, are_rows=run.are_apart),
        cost_usd=sums.cost_usd,
        cost_unknown=sums.cost_unknown,
        seconds=sums.seconds,
    )


def _pass_rate(sums: Sums, *, are_rows: bool) -> Interval:
    graded = sums.ends.graded
    rate = wilson(sums.ends.passed + sums.ends.scored, graded)
    if are_rows or sums.cases in (1, graded):
        return rate
    return Interval(rate.mean, None, None, sums.cases)  # trials of a case are not independent


def overview_of(row: RunRow, summary: Summary, judged: RunVerdict, *, last: int = 0) -> RunOverview:
    """A run with all that its cells come down to."""
    return RunOverview(
        run=row,
        verdict=judged.line,
        code=judged.code,
        totals=summary.totals,
        missing=summary.missing,
        malformed=summary.malformed,
        not_graded="" if summary.not_graded is None else str(summary.not_graded),
        lines=tuple(_lines(summary)),
        leaderboard=summary.leaderboard,
        causes=summary.causes,
        mixed=summary.mixed[:_MOST_MIXED],
        agreement=summary.agreement,
        calibrations=tuple(one.shown for one in summary.standings),
        rates=summary.rates,
        broken_down=summary.broken_down,
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


def sums_of(totals: Totals) -> Sums:
    """What a list of runs shows of what cells come to."""
    return Sums(
        ends=totals.ends,
        flagged=totals.flagged,
        held=totals.held,
        cases=totals.cases,
        reward=totals.reward.mean,
        cost_usd=totals.cost_usd,
        cost_unknown=totals.cost_unknown,
        seconds=totals.seconds,
    )


def matrix_cases(
    groups: Iterable[AgentRow], cases: Iterable[str], agents: Sequence[tuple[str, str]]
) -> list[MatrixCase]:
    """Some cases, each by every agent."""
    rows = {(row.case, row.harness, row.model): row for row in groups}
    return [
        MatrixCase(case=case, cells=tuple(rows.get((case, *agent)) for agent in agents))
        for case in cases
    ]


def matrix_of(groups: Iterable[AgentRow], *, most: int | None = None) -> RunMatrix:
    """The first cases, each by every agent."""
    groups = list(groups)
    agents = list(dict.fromkeys((row.harness, row.model) for row in groups))
    names = sorted({row.case for row in groups}, key=natural)[:most]
    return RunMatrix(
        items=matrix_cases(groups, names, agents),
        total=len(names),
        agents=tuple(AgentName(*agent) for agent in agents),
    )


def whole_row(cell: CellRecord) -> CellRow:
    """A cell in a list of cells, with all that its row has."""
    return cell_row(cell, whole=True)


def cell_row(cell: CellRecord, *, whole: bool = False) -> CellRow:
    """A cell in a list of cells; `whole` with all that its row has."""
    decision = decision_of(cell)
    return CellRow(
        case=cell.case,
        harness=cell.harness,
        model=cell.model,
        trial=cell.trial,
        ended=ended(cell),
        reward=reward_of(cell),
        threshold=cell.threshold,
        assurance=cell.assurance or "",
        flags=tuple(one_line(flag, _FLAG_LENGTH) for flag in cell.flags[:_SHOWN_FLAGS]),
        flag_count=len(cell.flags),
        held=cell.status == "skipped" and HELD in cell.notes,
        ruling=decision.ruling if decision else "",
        why=why_of(cell),
        cost_usd=cell.cost_usd,
        tokens=cell.tokens,
        seconds=cell.seconds,
        record=cell if whole else None,
    )
