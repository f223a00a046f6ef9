"""An answer that is not there is no empty answer: nobody is failed for what somebody left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.errors import AssayError
from assay.graders.apply import grade_submission
from assay.graders.base import Grader
from assay.graders.binary_judge import BinaryJudgeGrader
from assay.graders.faithfulness import FaithfulnessGrader
from assay.graders.llm_judge import LLMJudgeGrader
from assay.graders.model_judge import ModelJudgeGrader
from assay.graders.pairwise import PairwiseGrader
from assay.graders.relevancy import AnswerRelevancyGrader
from assay.tasks.grader_files import load_graders
from assay.testing import FakeJudge
from assay.types.submission import Submission
from assay.types.thread import StringThread
from assay.types.trace import AgentStep, Trace
from tests.each import each

JUDGES: dict[type[Grader], dict[str, Any]] = {
    LLMJudgeGrader: {"criteria": ["Names Canberra"]},
    BinaryJudgeGrader: {"criteria": "Names Canberra"},
    PairwiseGrader: {"other": "Sydney"},
    FaithfulnessGrader: {"documents": ["The capital is Canberra."]},
    AnswerRelevancyGrader: {"question": "Which is the capital?"},
}


@each("given", [{}, {"answer": None}])
@each("grader", JUDGES)
async def test_a_missing_answer_is_an_error_and_no_zero(
    grader: type[Grader], given: dict[str, Any]
) -> None:
    with FakeJudge() as fake:
        if given or grader is not LLMJudgeGrader:  # in whose calls a left out answer is ""
            with pytest.raises(AssayError, match="answer"):
                await grader.grade(**given, **JUDGES[grader], model=fake.model)
        empty = await grader.grade(answer="", **JUDGES[grader], model=fake.model)
        assert (empty.status, empty.value, fake.count) == ("scored", 0.0, 0)


@each("kind", ["llm_judge", "binary_judge", "pairwise", "faithfulness", "answer_relevancy"])
async def test_a_row_without_an_answer_is_an_error(kind: str) -> None:
    options = next(o for g, o in JUDGES.items() if g.name.lower().startswith(kind.replace("_", "")))
    with FakeJudge() as fake:
        graders = load_graders(json.dumps([{"type": kind, "model": fake.model, **options}]))
        missing = await grade_submission(graders, Submission(answer=None))
        empty = await grade_submission(graders, Submission(answer=""))
    assert (missing.isError, missing.reward) == (True, None)
    assert (empty.isError, empty.reward) == (False, 0.0)


async def test_a_work_without_an_answer_may_be_judged_by_its_rubric_only_where_it_is_shown(
    tmp_path: Path,
) -> None:
    rubric = tmp_path / "rubric.md"
    rubric.write_text("Names Canberra.", "utf-8")
    with FakeJudge() as fake:
        with pytest.raises(AssayError, match="there is no answer"):
            await ModelJudgeGrader.grade(rubric=str(rubric), model=fake.model)
        trace = Trace(steps=[AgentStep(content="I looked at Canberra.")])
        seen = await ModelJudgeGrader.grade(
            rubric=str(rubric), trace=trace, include_trace=True, model=fake.model
        )
    assert seen.status == "scored"


async def test_an_agent_that_worked_and_said_nothing_gave_an_empty_answer() -> None:
    silent = StringThread([("user", "Which?"), ("assistant", "I look it up."), ("tool", "PASS")])
    with FakeJudge() as fake:
        node = await BinaryJudgeGrader.grade(criteria="x", thread=silent, model=fake.model)
        assert (node.value, fake.count) == (0.0, 0)
        with pytest.raises(AssayError, match="there is no answer"):
            await BinaryJudgeGrader.grade(
                criteria="x", thread=StringThread([("user", "Which?")]), model=fake.model
            )
