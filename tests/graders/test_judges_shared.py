"""What holds for every judge: silence, length, faults, juries, options. A table of all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.errors import AssayError, GraderError, InputError, ModelError, ModelFault
from assay.graders.apply import grade_submission
from assay.graders.base import Grader
from assay.graders.binary_judge import BinaryJudgeGrader
from assay.graders.faithfulness import FaithfulnessGrader
from assay.graders.llm_judge import LLMJudgeGrader
from assay.graders.model_judge import ModelJudgeGrader
from assay.graders.pairwise import PairwiseGrader
from assay.graders.relevancy import AnswerRelevancyGrader
from assay.models import Request
from assay.scoring import Json
from assay.tasks.grader_files import load_graders
from assay.testing import FakeJudge
from assay.types.submission import Submission
from assay.types.thread import StringThread
from assay.types.trace import AgentStep, Trace
from tests.each import each
from tests.graders.judge_forms import Shown, by_form, claims, graded, verdict, verdicts
from tests.judge_models import met, model

ANSWER = "The capital is Canberra."
JUDGES: dict[type[Grader], dict[str, Any]] = {
    LLMJudgeGrader: {"criteria": ["Names Canberra"]},
    BinaryJudgeGrader: {"criteria": "Names Canberra"},
    ModelJudgeGrader: {"words": "Names Canberra."},
    PairwiseGrader: {"other": "Sydney"},
    FaithfulnessGrader: {"documents": ["The capital is Canberra."]},
    AnswerRelevancyGrader: {"question": "Which is the capital?"},
}
ALONE = [kind for kind in JUDGES if kind is not PairwiseGrader]
"""Those that judge one answer."""


def pleased(*, is_pleased: bool = True) -> Any:
    """A judge of all forms that thinks well of the answer, or ill."""

    def compare(one: Shown) -> Json:
        is_first = "Canberra" in one.fences["answer-a"]
        return {"reasoning": "because", "winner": "A" if is_first == is_pleased else "B"}

    supported = verdict(1, "supported", 1, ANSWER) if is_pleased else verdict(1, "absent")
    evidence: Json = ["Canberra"] if is_pleased else []
    return by_form(
        criterion=met("Canberra") if is_pleased else met(verdict="UNMET"),
        binary={"evidence": evidence, "reasoning": "r", "score": "PASS" if is_pleased else "FAIL"},
        score={"reasoning": "because", "score": float(is_pleased)},
        compare=compare,
        claims=claims(ANSWER),
        verify=verdicts(supported),
        relevance=verdicts({"claim": 1, "reasoning": "because", "relevant": is_pleased}),
    )


def broken(_: Request) -> Json:
    raise ModelError("out of order", kind="overloaded")


# --- Answers that are not there, say nothing or never end -----------------------------------------


@each("given", [{}, {"answer": None}])
@each("grader", JUDGES)
async def test_a_missing_answer_is_an_error_and_no_zero(
    grader: type[Grader], given: dict[str, Any]
) -> None:
    """Nobody is failed for what somebody left out."""
    if given or grader is not LLMJudgeGrader:  # in whose calls a left out answer is ""
        with FakeJudge() as fake, pytest.raises(AssayError, match="answer"):
            await grader.grade(**given, **JUDGES[grader], model=fake.model)


@each("answer", ["", " \n", ":", "...", "Solution:", "The answer is", "\u200b", "\u3164", "<br>"])
@each("grader", JUDGES)
async def test_attack_silence_is_worth_nothing_and_nobody_is_asked(
    grader: type[Grader], answer: str
) -> None:
    with model(pleased()) as (name, asked):
        node = await grader.grade(answer=answer, **JUDGES[grader], model=name)
    assert (node.status, node.value, asked) == ("scored", 0.0, [])


@each("grader", ALONE)
async def test_attack_an_answer_longer_than_a_judge_reads_is_worth_nothing(
    grader: type[Grader],
) -> None:
    """It is not cut, and is no skip or error: its length is its own doing."""
    with model(pleased()) as (name, asked):
        node = await grader.grade(answer="word " * 100_000, **JUDGES[grader], model=name)
    assert (node.status, node.value, asked) == ("scored", 0.0, [])
    assert (node.metadata or {})["_outcome"] == "overflow"
    assert "0,000 characters" in (node.reason or "")


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
    trace = Trace(steps=[AgentStep(content="I looked at Canberra.")])
    with model(pleased()) as (name, _):
        given: dict[str, Any] = {"rubric": str(rubric), "model": name, "trace": trace}
        with pytest.raises(AssayError, match="there is no answer"):
            await ModelJudgeGrader.grade(**given)
        assert (await ModelJudgeGrader.grade(**given, include_trace=True)).status == "scored"


async def test_an_agent_that_worked_and_said_nothing_gave_an_empty_answer() -> None:
    silent = StringThread([("user", "Which?"), ("assistant", "I look it up."), ("tool", "PASS")])
    unasked = StringThread([("user", "Which?")])
    with model(pleased()) as (name, asked):
        for thread in (silent, StringThread([("user", "Which?"), ("tool", "PASS")])):
            node = await BinaryJudgeGrader.grade(criteria="x", thread=thread, model=name)
            assert (node.value, asked) == (0.0, [])
        with pytest.raises(AssayError, match="there is no answer"):
            await BinaryJudgeGrader.grade(criteria="x", thread=unasked, model=name)


# --- Who is asked ---------------------------------------------------------------------------------


@each("kind", ["auth", "quota", "overflow", "timeout", "refused", "unreachable", "budget"])
@each("grader", JUDGES)
async def test_no_failure_of_a_model_is_a_score_or_a_skip(
    grader: type[Grader], kind: ModelFault
) -> None:
    def fails(_: Request) -> Json:
        raise ModelError("no luck", kind=kind)

    with model(fails) as (name, _):
        node = await graded(grader, answer=ANSWER, **JUDGES[grader], model=name)
    assert (node.status, node.value) == ("error", None)
    assert "no luck" in (node.reason or "")
    if grader is not PairwiseGrader:  # which has one for each order
        assert (node.metadata or {})["_outcome"] == kind


@each("grader", ALONE)
async def test_a_jury_decides_as_its_panel_says(grader: type[Grader]) -> None:
    """By which rules is in `test_judges_panel.py`; here, that they are followed."""
    parts = {"answer": ANSWER, **JUDGES[grader]}
    with (
        model(pleased()) as (yes, _),
        model(pleased(is_pleased=False)) as (no, nays),
        model(pleased(is_pleased=False)) as (strong, asked),
        model(broken) as (lost, _),
    ):
        for aggregate, value in {"min": 0.0, "mean": 0.5}.items():
            node = await graded(grader, **parts, models=[yes, no], aggregate=aggregate)
            assert node.value == value
        node = await graded(grader, **parts, models=[yes, no, strong], aggregate="median")
        assert '"agreement": 0.666' in json.dumps(node.metadata)
        asked.clear()
        node = await graded(grader, **parts, models=[yes, lost])
        assert (node.status, "1 of 2 judges" in (node.reason or "")) == ("error", True)
        assert (await graded(grader, **parts, models=[yes, lost], quorum=1)).value == 1.0
        assert (await graded(grader, **parts, models=[yes], escalate=strong)).value == 1.0
        assert asked == []
        assert (await graded(grader, **parts, models=[yes, no], escalate=strong)).value == 0.0
        assert asked
        nays.clear()
        await graded(grader, **parts, model=no, repeats=3)
        assert {request.repeat for request in nays} == {0, 1, 2}


@each(
    ("options", "said"),
    [
        ({"models": ["openai:a", "openai:a"]}, "same model twice"),
        ({"models": []}, "names nobody"),
        ({"models": 3}, "models"),
        ({"model": "openai:a", "models": ["openai:b"]}, "not both"),
        ({"model": "not a model"}, "model"),
        ({"model": "openai:a", "escalate": "openai:a"}, "escalate"),
        ({"repeats": 0}, "repeats"),
        ({"quorum": 5}, "quorum"),
        ({"aggregate": "sum"}, "aggregate"),
    ],
)
@each("grader", JUDGES)
async def test_impossible_options_are_refused_before_and_while_grading(
    grader: type[Grader], options: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        grader.check_options({**JUDGES[grader], **options})
    with pytest.raises((GraderError, InputError), match=said):
        await grader.grade(answer="x", **{**JUDGES[grader], **options})
