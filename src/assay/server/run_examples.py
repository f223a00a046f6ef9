"""An example of every record that the operations on runs answer with."""

from __future__ import annotations

from assay.reports.run_records import (
    AgentCount,
    AgentName,
    AgentRow,
    CellRow,
    CellWindow,
    Ends,
    ErrorCause,
    MatrixCase,
    MatrixCell,
    RunLine,
    RunMatrix,
    RunOverview,
    RunRow,
    RunRows,
    RunTotals,
)
from assay.scoring.intervals import Interval
from assay.version import __version__

__all__ = ["RUN_EXAMPLES"]

_ENDS = Ends(passed=1, failed=0, errors=0, skipped=0, scored=0)
_ESTIMATE = Interval(mean=1.0, low=0.21, high=1.0, n=1)
_RUN_ROW = RunRow(
    id="20261121-090830-ab12",
    label="nightly",
    created_at="2026-11-21T09:08:30+00:00",
    kind="matrix",
    suite="evals",
    assay=__version__,
    state="finished",
    resume="",
    planned=1,
    total=1,
    ends=_ENDS,
    flagged=0,
    held=0,
    reward=1.0,
    cases=1,
    cost_usd=None,
    cost_unknown=1,
    seconds=1.5,
)
_TOTALS = RunTotals(
    total=1,
    graded=1,
    ends=_ENDS,
    shown="pass",
    has_verdicts=True,
    flagged=0,
    held=0,
    cases=1,
    reward=_ESTIMATE,
    pass_rate=_ESTIMATE,
    coverage=1.0,
    cost_usd=None,
    cost_unknown=1,
    tokens=None,
    tokens_unknown=1,
    judgements=0,
    judge_cost_usd=None,
    judge_cost_unknown=0,
    seconds=1.5,
)
_AGENT = AgentName(harness="replay", model="fix")
_AGENT_ROW = AgentRow(harness="replay", model="fix", totals=_TOTALS, mixed=False)
_LINE = RunLine(label="Time", text="1.5 s, all cells added up", warns=False)
_CAUSE = ErrorCause(count=2, text="no key for openai", key="no key for openai")
_CELL_ROW = CellRow(
    case="kit",
    harness="replay",
    model="fix",
    trial=1,
    ended="pass",
    reward=1.0,
    threshold=1.0,
    assurance="shared",
    flags=(),
    flag_count=0,
    held=False,
    ruling="",
    why="",
    cost_usd=None,
    tokens=None,
    seconds=1.5,
)
_AGENT_COUNT = AgentCount(harness="replay", model="fix", count=1)
_MATRIX_CELL = MatrixCell(totals=_TOTALS, ended=("pass",), flaky=False, mixed=False)
_MATRIX_CASE = MatrixCase(case="kit", cells=(_MATRIX_CELL,))

RUN_EXAMPLES: tuple[object, ...] = (
    _ENDS,
    _RUN_ROW,
    _TOTALS,
    _AGENT_ROW,
    _LINE,
    _CAUSE,
    _CELL_ROW,
    _AGENT_COUNT,
    _MATRIX_CELL,
    _MATRIX_CASE,
    RunRows(items=(_RUN_ROW,), total=1, last=7),
    RunMatrix(agents=(_AGENT,), cases=(_MATRIX_CASE,), offset=0, total=1),
    CellWindow(
        rows=(_CELL_ROW,),
        offset=0,
        total=1,
        cells=1,
        ends=_ENDS,
        agents=(_AGENT_COUNT,),
        flagged=0,
        held=0,
        last=7,
    ),
    RunOverview(
        run=_RUN_ROW,
        verdict="PASS: the 1 graded cell passed",
        code=0,
        totals=_TOTALS,
        missing=0,
        malformed=0,
        not_graded="",
        lines=(_LINE,),
        leaderboard=(_AGENT_ROW,),
        causes=(_CAUSE,),
        mixed=(),
        last=7,
    ),
)
