"""Examples for the OpenAPI document: one of every record that an operation answers with."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from assay.graders.functions.checks import Check, ValidationReport
from assay.registry.forms import DeclaredKind
from assay.registry.previews import JudgePreview, Mistake, TemplateVariable
from assay.reports.histogram import Bar
from assay.scoring.graded import Graded
from assay.server.cell_examples import CELL_EXAMPLES
from assay.server.data_examples import DATA_EXAMPLES
from assay.server.examples import compared
from assay.server.label_examples import LABEL_EXAMPLES
from assay.server.run_examples import RUN_EXAMPLES
from assay.service.cells import CellDetail
from assay.service.data import Results, ScorePage, StoredScores
from assay.service.graders import (
    Calibration,
    GradedItems,
    GraderDetail,
    GraderDiff,
    GraderFiles,
    GraderList,
)
from assay.service.kinds import (
    EndpointReport,
    GraderKinds,
    KnownModel,
    KnownModels,
    StoredKind,
)
from assay.service.operation import Identity
from assay.service.site import MadeKey
from assay.service.traces import DeletedTraces, TraceDetail
from assay.service.trials import Mark, Trial, Tried, TriedSample
from assay.service.uses import GivenScores, GraderOverview, GraderUsage
from assay.store.catalog import GraderRecord, GraderVersion
from assay.store.changes import ChangeRecord
from assay.store.datasets import DatasetRecord, DatasetRow
from assay.store.jobs import JobRecord
from assay.store.kept import Freed
from assay.store.projects import KeyRecord, ProjectRecord
from assay.store.records import CellRecord, RunRecord
from assay.store.scores import ScoreRecord
from assay.store.traces import TraceRecord
from assay.store.uses import GraderUse
from assay.version import __version__

_SOURCE = (
    "async def grade(thread: StringThread) -> float:\n"
    "    return 1.0 if thread.completion() == '4' else 0.0\n"
)
_DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
_TIME = "2026-11-21T09:08:30.000Z"
_VERSION = GraderVersion(
    project="default",
    key="four",
    number=1,
    kind="function",
    definition={"source": _SOURCE},
    digest=_DIGEST,
    created_at=_TIME,
    created_by="local",
)
_GRADER = GraderRecord(
    project="default",
    key="four",
    name="Says four",
    feedback_key="four",
    created_at=_TIME,
    updated_at=_TIME,
    latest=_VERSION,
)
_CALIBRATION = Calibration(
    grader="four",
    digest=_DIGEST,
    card="20261121-1a2b3c4d",
    kappa=0.62,
    kappa_interval=(0.51, 0.71),
    n=120,
    errors=0,
    stale=True,
    changed=("source changed",),
    line="agreement with people: kappa 0.62 [0.51, 0.71], n=120; STALE, measured before a "
    "change: source changed",
)
_GRADED = Graded(
    id="1", status="scored", score=1.0, grader="four@1", digest=_DIGEST, assurance="separate"
)
_SCORE = ScoreRecord(seq=7, project="default", item="1", graded=_GRADED, created_at=_TIME)
_CHECK = Check(name="syntax", passed=True)
_MARK = Mark(line=2, column=5, severity="error", source="syntax", message="invalid syntax")
_TRIED = Tried(
    status="scored",
    score=1.0,
    outcome="ok",
    reason="",
    flags=(),
    output="",
    milliseconds=1.2,
    line=None,
)
_TRIED_SAMPLE = TriedSample(
    id="1",
    row=1,
    question="What is 2 + 2?",
    answer="4",
    expected="4",
    draft=_TRIED,
    saved=_TRIED,
    change="",
    wanted=1.0,
    miss="",
)
_KEY = KeyRecord(
    id="1",
    name="ci",
    role="editor",
    project="default",
    prefix="assay_1a2b3c4d",
    created_at=_TIME,
)
_CELL = CellRecord(
    run_id="20261121-090830-ab12",
    case="kit",
    harness="replay",
    model="fix",
    status="graded",
    reward=1.0,
    passed=True,
    assurance="shared",
    seconds=1.5,
    file="evals/kit/case.yaml",
)

_TRACE = TraceRecord(
    seq=3,
    project="default",
    id="5b8efff798038103d269b633813fc60c",
    name="invoke_agent fixer",
    whole=True,
    gen_ai=True,
    spans=7,
    size=14_212,
    created_at=_TIME,
    updated_at=_TIME,
)
_JOB = JobRecord(
    id="20261121-090830-ab12",
    project="default",
    grader="four",
    version=1,
    dataset="arithmetic",
    status="running",
    total=2,
    done=1,
    created_at=_TIME,
    updated_at=_TIME,
    created_by="local",
)
_USE = GraderUse(jobs=1, active_jobs=1, scores=1, datasets=("arithmetic",), last_used_at=_TIME)
_GIVEN = GivenScores(n=1, scored=1, mean=1.0, bars=(Bar(low=0.0, high=1.0, count=1),))
_STORED_KIND = StoredKind(
    name="custom", title="Custom", description="scores that are written in", form={"type": "object"}
)
_DECLARED_KIND = DeclaredKind(
    name="exact_match",
    description="Whether the answer is what was expected.",
    family="comparison",
    needs=(),
    form={"type": "object"},
)
_VARIABLE = TemplateVariable(name="completion", value="4", fence="answer", used=True)
_MISTAKE = Mistake(
    field="user_template", line=2, message="{{#if}} is not closed", hint="end it with {{/if}}"
)
_MODEL = KnownModel(name="local-judge", source="settings", ready=True)

_ALL: tuple[object, ...] = (
    *RUN_EXAMPLES,
    _JOB,
    _USE,
    _GIVEN,
    GraderUsage(
        use=_USE,
        most_counted=10_000,
        jobs=(_JOB,),
        given=_GIVEN,
        consequences=("1 job that has not ended will be cancelled.",),
    ),
    GraderOverview(
        key="four",
        name="Says four",
        description="",
        kind="function",
        version=1,
        locked=False,
        updated_at=_TIME,
        updated_by="local",
        use=_USE,
        calibration=_CALIBRATION,
    ),
    _STORED_KIND,
    _DECLARED_KIND,
    GraderKinds(kinds=(_STORED_KIND,), declared=(_DECLARED_KIND,)),
    _VARIABLE,
    _MISTAKE,
    JudgePreview(variables=(_VARIABLE,), mistakes=(_MISTAKE,)),
    EndpointReport(online=True, name="rewards", version="1.2.0", milliseconds=12.5),
    _MODEL,
    KnownModels(models=(_MODEL,)),
    *LABEL_EXAMPLES,
    _TRACE,
    TraceDetail(_TRACE, {"id": _TRACE.id, "answer": "Fixed."}),
    DeletedTraces(2),
    _VERSION,
    _GRADER,
    _CALIBRATION,
    _GRADED,
    _SCORE,
    _CHECK,
    _KEY,
    _CELL,
    GraderDetail(
        **{f.name: getattr(_GRADER, f.name) for f in dataclasses.fields(_GRADER)},
        calibration=_CALIBRATION,
    ),
    GradedItems(
        results=(_GRADED,),
        grader="four@1",
        digest=_DIGEST,
        calibration=_CALIBRATION,
        seconds=(0.0021,),
    ),
    ValidationReport(valid=True, checks=(_CHECK,), samples=(_GRADED,), tier="bwrap"),
    _MARK,
    _TRIED,
    _TRIED_SAMPLE,
    Trial(
        valid=True,
        ran=True,
        checks=(_CHECK,),
        warnings=(),
        marks=(_MARK,),
        samples=(_TRIED_SAMPLE,),
        saved="four@1",
        summary="1 sample: 1 scored, 0 changed since four@1",
    ),
    GraderDiff("--- four@1\n+++ four@2\n@@ -1 +1 @@\n-a\n+b\n"),
    GraderFiles({"four.yaml": "kind: function\nname: four\n", "four.py": _SOURCE}),
    GraderList((_GRADER,)),
    DatasetRecord(
        project="default", key="arithmetic", rows=2, size=61, digest=_DIGEST, created_at=_TIME
    ),
    DatasetRow(number=1, id="1", data={"answer": "4", "expected": "4"}),
    ScorePage((_SCORE,), "", (_CALIBRATION,)),
    Results((_SCORE,), "", _CALIBRATION),
    StoredScores(1),
    ProjectRecord(key="default", created_at=_TIME, requests_per_minute=600),
    ChangeRecord(
        seq=7,
        time=_TIME,
        operation="lock_grader",
        project="default",
        what={"key": "four", "locked": True},
        by="ci",
        key="1a2b3c4d5e6f",
        role="editor",
        address="192.0.2.7",
    ),
    Freed(3, 4_096),
    Identity("1", "ci", "editor", "default"),
    RunRecord(
        id="20261121-090830-ab12",
        created_at="2026-11-21T09:08:30+00:00",
        label="nightly",
        finished=True,
        planned=1,
        assay=__version__,
    ),
    CellDetail(_CELL, {}),
    *CELL_EXAMPLES,
    MadeKey(
        **{f.name: getattr(_KEY, f.name) for f in dataclasses.fields(_KEY)},
        token=f"{_KEY.prefix}_REPLACED",
    ),
)


def _records(value: object) -> Iterator[object]:
    """A record, and those inside of it."""
    if isinstance(value, tuple | list):
        for one in cast("Sequence[object]", value):
            yield from _records(one)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield value
        for field in dataclasses.fields(value):
            yield from _records(getattr(value, field.name))


EXAMPLES: Mapping[type, object] = {
    type(one): one
    for one in [*_records(compared()), *_records(DATA_EXAMPLES), *_records(_ALL), *_ALL]
}
"""By type."""
