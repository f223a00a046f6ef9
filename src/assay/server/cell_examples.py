"""Examples of what the operations on cells answer with, for the OpenAPI document."""

from __future__ import annotations

from assay.reports.cell_records import (
    CellCommand,
    CellPlace,
    CellView,
    ChangedFiles,
    FoundSteps,
    OutlinedStep,
    PastResult,
    SiblingCell,
    StepOutline,
    StepPart,
    StepShown,
)
from assay.reports.figures import TIMES
from assay.reports.opened import FileChange
from assay.reports.score_view import FoldedText, ScoreFact, ScoreFinding, ScoreNode, TamperSign
from assay.service.cells import CellText, Promotion
from assay.store.labels import Decision
from assay.store.regrades import RegradeState

_RUN = "20261121-090830-ab12"
_PLACE = CellPlace(case="kit", harness="replay", model="fix", trial=1)
_TEXT = FoldedText(text="It says 2 now.")
_FACT = ScoreFact(label="stdout", text=FoldedText(text="x = 2\n"))
_FINDING = ScoreFinding(
    what="test_kit.py::test_two", state="pass", verdict="passed", why="", votes=()
)
_NODE = ScoreNode(
    name="solved",
    kind="tests",
    state="pass",
    value=1.0,
    weight=1.0,
    gate=False,
    reason="",
    assurance="shared",
    flags=(),
    findings=(_FINDING,),
    more_findings=0,
    facts=(_FACT,),
    children=(),
)
_SIGN = TamperSign(
    sign="equality",
    file="kit.py",
    line=2,
    what="Any.__eq__",
    code="def __eq__(self, other):",
    why="compares without looking at what it is compared with",
)
_DECISION = Decision(
    ruling="zero", by="ada", at="2026-11-21T09:08:30.000Z", note="it compares with anything"
)
_SENTENCE = f"1.00 = 1.00{TIMES}1.00 solved; needs 1.00 → pass"
_PAST = PastResult(state="pass", reward=1.0, sentence=_SENTENCE, digest="9f86", decision=None)
_SIBLING = SiblingCell(place=_PLACE, state="pass", reward=1.0, flagged=False)
_COMMAND = CellCommand(does="grade the run again", command=f"assay regrade {_RUN}")
_OUTLINED = OutlinedStep(
    kind="call",
    label="called bash",
    is_error=False,
    at=2.5,
    seconds=0.4,
    tokens=None,
    cost_usd=None,
    parent=None,
)
_STEP = StepShown(
    index=3,
    kind="call",
    label="called bash",
    text=FoldedText(text="command: ls"),
    is_error=False,
    at=2.5,
    seconds=0.4,
    tokens=None,
    cost_usd=None,
    parent=None,
)
_CHANGE = FileChange("kit.py", "changed", "@@ -1 +1 @@\n-x = 1\n+x = 2")

CELL_EXAMPLES: tuple[object, ...] = (
    _PLACE,
    _TEXT,
    _FACT,
    _FINDING,
    _NODE,
    _SIGN,
    _DECISION,
    _PAST,
    _SIBLING,
    _COMMAND,
    CellView(
        run=_RUN,
        label="nightly",
        place=_PLACE,
        state="pass",
        reward=1.0,
        held=None,
        threshold=1.0,
        sentence=_SENTENCE,
        trouble=FoldedText(),
        content="",
        assurance="shared",
        min_assurance="",
        flags=(),
        signs=(_SIGN,),
        cost_usd=0.012,
        tokens=2_500,
        seconds=1.5,
        file="evals/kit/case.yaml",
        digest="9f86",
        left_out=(),
        scores=(_NODE,),
        prompt=FoldedText(text="Mend kit.py."),
        answer=_TEXT,
        expected=FoldedText(),
        difference=(),
        steps=7,
        has_files=True,
        trace_id="5b8efff798038103d269b633813fc60c",
        notes=(),
        seen="9f86d081884c7d659a2feaa0c55ad015",
        decision=None,
        may_be_decided=False,
        history=(_PAST,),
        siblings=(_SIBLING,),
        before=None,
        after=None,
        number=0,
        of=0,
        commands=(_COMMAND,),
        markdown=f"```text\n✓ kit · replay · fix · trial 1\n{_SENTENCE}\n```\n",
    ),
    _OUTLINED,
    StepOutline(steps=(_OUTLINED,)),
    _STEP,
    StepPart(steps=(_STEP,), total=7),
    FoundSteps(places=(3,), total=1),
    _CHANGE,
    ChangedFiles(files=(_CHANGE,), notes=()),
    CellText("It says 2 now."),
    RegradeState(run=_RUN, status="running", total=6, done=2, by="ada"),
    Promotion(
        "evals/kit/recordings/small-1",
        2,
        1,
        (),
        "assay run evals/kit --harness replay --model small-1",
    ),
)
"""One of each record."""
