"""Examples of what operations on labels and calibrations answer, for the OpenAPI document."""

from __future__ import annotations

from assay.eval.calibration.card import (
    Cost,
    Coverage,
    Figure,
    Flipped,
    Humans,
    LabelsUsed,
    Order,
)
from assay.service.calibration_cards import (
    AttackFamily,
    AttacksShown,
    CardComparison,
    CardDetail,
    CardSummary,
    MeasureShown,
    ToRead,
)
from assay.service.calibrations import CalibrationPlan, CalibrationWork
from assay.service.labels import (
    ExportedRow,
    LabelKey,
    LabelledRow,
    LabelQueue,
    LabelSet,
    QueueItem,
    RaterCount,
    SaidLabel,
    SeenPart,
)
from assay.store.labels import LabelRecord

_TIME = "2026-11-21T09:08:30.000Z"
_ITEM = "0" * 32
_KAPPA = Figure(0.62, 0.51, 0.71, 120, "bootstrap")
_RATE = Figure(0.8, 0.72, 0.86, 120, "wilson")
_PARTS = (SeenPart("question", "What is 2 + 2?"), SeenPart("answer", "4"))
_SAID = SaidLabel(rater="ada", label="PASS", note="", created_at=_TIME)
_RATER = RaterCount(rater="ada", items=2, labels={"PASS": 1, "FAIL": 1}, last_at=_TIME)
_QUEUED = QueueItem(item=_ITEM, place="1", id="q1", parts=_PARTS)
_SUMMARY = CardSummary(
    id="20261121-1a2b3c4d",
    created_at=_TIME,
    grader="helpful",
    kind="binary_judge",
    digest="9f86d081884c7d65",
    models=("anthropic/claude",),
    kappa=_KAPPA,
    words="good agreement; of so few rows it may be moderate to good",
    balanced_accuracy=_RATE,
    n=120,
    errors=1,
    field="label",
    labels="the store",
    raters=2,
    state="current",
    changed=(),
    asks_models=True,
    usd_per_thousand=1.5,
)
_MEASURE = MeasureShown(
    name="kappa", words="kappa", figure=_KAPPA, note="", why_not="", before=None
)
_FAMILY = AttackFamily(name="override", worked=0, played=4)
_ATTACKS = AttacksShown(
    rows=10, raised=_RATE, passed=_RATE, false_alarms=_RATE, excluded=0, families=(_FAMILY,)
)
_TO_READ = ToRead(
    row="q7",
    item=_ITEM,
    label="no",
    verdict="yes",
    score=1.0,
    reason="It names the city.",
    question="Where?",
    answer="In Rome.",
    said=(_SAID,),
    place="",
)
_COMPARISON = CardComparison(
    id="20261120-5e6f7a8b",
    created_at=_TIME,
    verdict="unclear",
    sentence="kappa 0.62 [0.51, 0.71] now, 0.58 [0.46, 0.68] before: the intervals meet, "
    "the difference may be chance",
    same_labels=True,
    changed=("model one \N{RIGHTWARDS ARROW} two",),
)
_COVERAGE = Coverage(compared=120, errors=1, causes={"no answer in 60 s": 1})
_COST = Cost(judgements=121, seconds=240.0, seconds_each=2.0, calls=121, usd=0.18)
_USED = LabelsUsed(
    name="the store",
    field="label",
    digest=_ITEM,
    kind="verdict",
    classes=("no", "yes"),
    rows=121,
    raters=2,
)
_HUMANS = Humans(items=20, kappa=0.7, alpha=0.71, grader=0.6)
_FLIPS = Flipped(repeats=2, rate=_RATE, flipped=3, unscored=0)
_ORDER = Order(
    field="other", consistency=_RATE, first_slot=_RATE, both_right=_RATE, ties=0, excluded=0
)

LABEL_EXAMPLES: tuple[object, ...] = (
    *(_KAPPA, _USED, _COVERAGE, _HUMANS, _FLIPS, _ORDER, _COST),
    *(_PARTS[0], _SAID, _RATER, _QUEUED, _SUMMARY, _MEASURE, _FAMILY, _ATTACKS, _TO_READ),
    _COMPARISON,
    LabelSet(
        field="label",
        items=2,
        raters=(_RATER,),
        labels={"PASS": 1, "FAIL": 1},
        several=0,
        agreed=Figure(),
        alpha=None,
        last_at=_TIME,
    ),
    LabelKey("p", "PASS"),
    LabelQueue(
        items=(_QUEUED,),
        total=20,
        done=2,
        size=20,
        rater="ada",
        keys=(LabelKey("p", "PASS"), LabelKey("f", "FAIL")),
        commands={"u": "undo"},
        criterion="The answer is right.",
    ),
    LabelRecord(item=_ITEM, field="label", rater="ada", label="PASS", created_at=_TIME),
    LabelledRow(item=_ITEM, id="q1", parts=_PARTS, said=(_SAID,), agreed=True),
    ExportedRow({"id": "q1", "question": "What is 2 + 2?", "answer": "4", "label": True}),
    CalibrationPlan(
        grader="helpful",
        version=2,
        rows=120,
        judgements=120,
        done=0,
        models=("anthropic/claude",),
        usd=0.18,
        usd_from="20261121-1a2b3c4d",
    ),
    CalibrationWork(judgements=120, done=64, errors=0, usd=0.1, unknown=0),
    CardDetail(
        summary=_SUMMARY,
        labels=_USED,
        coverage=_COVERAGE,
        threshold=0.5,
        confidence=0.95,
        classes=("no", "yes"),
        confusion=((50, 10), (12, 48)),
        measures=(_MEASURE,),
        humans=_HUMANS,
        flips=_FLIPS,
        order=None,
        attacks=_ATTACKS,
        cost=_COST,
        disagreements=(_TO_READ,),
        comparison=_COMPARISON,
        assay="1.0",
    ),
)
"""An example of each record."""
