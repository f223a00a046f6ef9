"""An example of every record that an operation answers with, for the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from assay.graders.functions.report import Check, ValidationReport
from assay.scoring.graded import Graded
from assay.service.data import Results, ScorePage, StoredScores
from assay.service.graders import (
    Calibration,
    GradedItems,
    GraderDetail,
    GraderDiff,
    GraderFiles,
    GraderList,
)
from assay.service.operation import Identity
from assay.service.site import CellDetail, MadeKey
from assay.store.catalog import GraderRecord, GraderVersion
from assay.store.datasets import DatasetRecord, DatasetRow
from assay.store.jobs import JobRecord
from assay.store.projects import KeyRecord, ProjectRecord
from assay.store.records import CellRecord, RunRecord
from assay.store.scores import ScoreRecord

__all__ = ["EXAMPLES"]

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

_ALL: tuple[object, ...] = (
    _VERSION,
    _GRADER,
    _CALIBRATION,
    _GRADED,
    _SCORE,
    _CHECK,
    _KEY,
    _CELL,
    GraderDetail(
        **{f.name: getattr(_GRADER, f.name) for f in fields(_GRADER)}, calibration=_CALIBRATION
    ),
    GradedItems(results=(_GRADED,), grader="four@1", digest=_DIGEST, calibration=_CALIBRATION),
    ValidationReport(valid=True, checks=(_CHECK,), samples=(_GRADED,), tier="bwrap"),
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
    JobRecord(
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
    ),
    ProjectRecord(key="default", created_at=_TIME),
    Identity("1", "ci", "editor", "default"),
    RunRecord(
        id="20261121-090830-ab12",
        created_at="2026-11-21T09:08:30+00:00",
        label="nightly",
        finished=True,
        planned=1,
    ),
    CellDetail(_CELL, {}),
    MadeKey(
        **{f.name: getattr(_KEY, f.name) for f in fields(_KEY)}, token=f"{_KEY.prefix}_REPLACED"
    ),
)

EXAMPLES: Mapping[type, object] = {type(one): one for one in _ALL}
"""By type."""
