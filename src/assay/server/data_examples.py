"""Examples for the OpenAPI document: rows for people, what came of jobs, what runs came from."""

from __future__ import annotations

from assay.reports.histogram import Bar
from assay.reports.summary import Cause
from assay.scoring.graded import Graded
from assay.scoring.intervals import Interval
from assay.service.environments import (
    EnvironmentList,
    EnvironmentRun,
    EnvironmentSeen,
    EnvironmentTask,
)
from assay.service.results import (
    ChangedRow,
    JobsCompared,
    JobSummary,
    ResultDetail,
    ResultGlimpse,
    ResultWindow,
)
from assay.service.rows import RowDetail, RowGlimpse, RowsRead, RowTurn, RowWindow
from assay.store.datasets import DatasetUse
from assay.store.jobs import JobRecord
from assay.store.scores import ScoreRecord

_TIME = "2026-11-21T09:08:30.000Z"
_MEAN = Interval(0.72, 0.61, 0.81, 64)
_ROW = RowGlimpse(number=1, id="a", question="What is 2 + 2?", answer="4", expected="4")
_TURN = RowTurn(role="user", text="What is 2 + 2?")
_DETAIL = RowDetail(
    number=1, id="a", answer="4", expected="4", turns=(_TURN,), json='{"answer": "4"}'
)
_JOB = JobRecord(
    id="20261121-090830-ab12",
    project="default",
    grader="four",
    version=1,
    dataset="arithmetic",
    status="finished",
    total=64,
    done=64,
    created_at=_TIME,
    updated_at=_TIME,
)
_RESULT = ResultGlimpse(number=1, item="a", status="scored", score=1.0, outcome="ok", why="equal")
_BAR, _CAUSE = Bar(low=0.9, high=1.0, count=46), Cause(2, "no answer")
_CHANGED = ChangedRow(number=7, item="g", before=0.0, after=1.0)
_TASK = EnvironmentTask(slug="symbol", template="symbol", mean=_MEAN)
_RUN = EnvironmentRun(
    id="20261121-090830-ab12",
    label="nightly",
    created_at=_TIME,
    finished=True,
    harnesses=("claude-code",),
    models=("anthropic:claude-sonnet-5",),
)
_ENVIRONMENT = EnvironmentSeen(
    name="office",
    kind="python",
    source="envs/office.py",
    tasks=(_TASK,),
    task_count=1,
    runs=(_RUN,),
    run_count=1,
    mean=_MEAN,
    graded=64,
    errors=0,
    is_partial=False,
    list_command="assay tasks envs/office.py",
    run_command="assay run envs/office.py",
    serve_command="assay env serve envs/office.py",
)

DATA_EXAMPLES: tuple[object, ...] = (
    _MEAN,
    _ROW,
    _TURN,
    _DETAIL,
    _RESULT,
    _BAR,
    _CAUSE,
    _CHANGED,
    _TASK,
    _RUN,
    _ENVIRONMENT,
    EnvironmentList((_ENVIRONMENT,)),
    RowWindow(rows=(_ROW,), total=1),
    RowsRead(rows=(_ROW,), fields=("answer", "expected"), wrong=0),
    DatasetUse(jobs=2, active=1, scores=120),
    JobSummary(
        job=_JOB,
        line="Finished: 64 of 64 rows",
        scored=64,
        skipped=0,
        errors=0,
        mean=_MEAN,
        bars=(_BAR,),
        causes=(_CAUSE,),
        calibration=None,
        is_stored=True,
    ),
    ResultWindow(results=(_RESULT,), total=64),
    ResultDetail(
        result=ScoreRecord(item="a", graded=Graded(id="a", status="scored", score=1.0)),
        details="",
        row=_DETAIL,
    ),
    JobsCompared(
        job=_JOB,
        other=_JOB,
        line="No clear difference: the interval includes 0.",
        difference=Interval(0.02, -0.01, 0.05, 64),
        better=3,
        worse=2,
        same=59,
        unpaired=0,
        changed=(_CHANGED,),
    ),
)
