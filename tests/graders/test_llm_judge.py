"""`LLMJudgeGrader`: criteria, votes and errors, against models that say what the test wants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import pytest

from assay.errors import GraderError, InputError, ModelError
from assay.graders import LLMJudgeGrader
from assay.graders.apply import grade_submission
from assay.graders.digest import grader_digest
from assay.graders.spec import GraderSpec
from assay.models import ModelClient, ModelEntry, ModelSettings, Request, using
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore
from assay.types.submission import Submission
from tests.each import each
from tests.graders.judge_forms import graded
from tests.judge_models import asked_text, met, model

_ANSWER = "The capital is Canberra. It was chosen in 1908."


def by_criterion(**verdicts: str) -> Callable[[Request], Json]:
    """Says of each criterion, known by a word in it, what it is told to."""

    def say(request: Request) -> Json:
        text = asked_text(request).partition("CRITERION:")[2]
        for word, verdict in verdicts.items():
            if word in text:
                return met("Canberra", verdict=verdict)
        raise AssertionError(text)

    return say


async def judged(
    say: Callable[[Request], Json], criteria: Sequence[object], **more: object
) -> tuple[SubScore, list[Request]]:
    parameters: dict[str, object] = {"answer": _ANSWER, "canary": 0.0, **more}
    with model(say) as (name, asked):
        return await graded(LLMJudgeGrader, criteria=criteria, model=name, **parameters), asked


CAPITAL, DATE, RUDE = "names the capital", ("gives the date", 2.0), ("is rude", -1.0)
SAID = {"capital": "MET", "date": "UNMET", "rude": "MET", "refund": "NA"}
REFUND = {"requirement": "explains the refund", "allow_na": True}


@each(
    ("criteria", "value"),
    [
        ([CAPITAL, DATE, RUDE], 0.0),
        ([CAPITAL, DATE], 1 / 3),
        ([RUDE, ("forgets the date", -1.0)], 0.5),
        ([{"requirement": "facts", "weight": 3, "children": [CAPITAL, ("date", 1)]}, RUDE], 1 / 6),
        ([CAPITAL, {"requirement": "gives the date", "required": True, "weight": 0.1}], 0.0),
        # Not applicable is for the author to allow.
        ([CAPITAL, REFUND], 1.0),
        ([CAPITAL, "explains the refund"], "error"),
        ([REFUND], "skipped"),
    ],
)
async def test_the_arithmetic_of_its_rubric_is_followed(
    criteria: list[object], value: float | str
) -> None:
    """The rules are in `test_judges_rubric.py`."""
    score, _ = await judged(by_criterion(**SAID), criteria)
    assert (score.status if score.value is None else pytest.approx(score.value)) == value
    assert "gives the date" in score.reason or "required" not in str(criteria)


async def test_each_criterion_is_one_question_and_can_be_opened() -> None:
    about: dict[str, object] = {"question": "What is it?", "reference": {"capital": "Canberra"}}
    score, asked = await judged(by_criterion(**SAID), [CAPITAL, DATE], **about)
    assert [child.name for child in score.children or ()] == [CAPITAL, DATE[0]]
    assert len(asked) == 2
    kept = cast("list[dict[str, Json]]", (score.metadata or {})["criteria"])[0]
    assert (kept["verdict"], kept["reason"], kept["evidence"]) == ("MET", "because", ["Canberra"])
    # What is judged stands in fences, and the criterion behind them.
    text = asked_text(asked[0])
    for name in ("question", "reference", "answer"):
        assert f'<untrusted name="{name}" id="' in text
    assert text.rindex("CRITERION:") > text.rindex("</untrusted")
    assert asked[0].volatile
    assert asked[0].schema is not None
    assert list(asked[0].schema["properties"] or ()) == ["evidence", "reasoning", "verdict"]  # type: ignore[arg-type]


@each(
    ("options", "message"),
    [
        *(({"criteria": nothing}, "criteria") for nothing in (None, "Correct")),
        ({"min_coverage": float("nan")}, "min_coverage"),
        ({"min_coverage": 0}, "min_coverage"),
    ],
)
async def test_impossible_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(GraderError, match=message) as caught:
        await LLMJudgeGrader.grade(
            1.0, None, gate=False, **{"answer": "x", "criteria": ["capital"], **options}
        )
    assert isinstance(caught.value.__cause__, InputError)


async def test_a_verdict_without_evidence_is_asked_again_and_then_an_error() -> None:
    score, asked = await judged(lambda _: met("the capital is Sydney"), ["names the capital"])
    assert score.status == "error"
    assert "word for word" in score.reason
    assert len(asked) == 2
    replies = iter([met("made up"), met("The capital is Canberra")])
    score, asked = await judged(lambda _: next(replies), ["names the capital"])
    assert score.value == 1.0
    assert len(asked) == 2
    score, _ = await judged(lambda _: met(), ["does not mention prices"])
    assert score.value == 1.0  # of what is absent there is no quote


@each(
    ("answer", "quotes", "said"),
    [
        # a comment that nobody sees
        ("It is Sydney. <!-- It is Canberra. -->", ["It is Canberra"], "stands in the answer"),
        # small words, beside what is made up
        ("It is so, and the rest follows.", ["the", "by induction over n"], "says too little"),
    ],
)
async def test_attack_evidence_that_is_none(answer: str, quotes: list[str], said: str) -> None:
    score, _ = await judged(lambda _: met(*quotes), ["is right"], answer=answer)
    assert score.status == "error"
    assert said in score.reason


async def test_what_cannot_be_read_is_an_error_and_its_siblings_are_kept() -> None:
    def say(request: Request) -> Json:
        return "I would say MET" if "date" in asked_text(request) else met("Canberra")

    score, _ = await judged(say, ["names the capital", "gives the date"])
    assert score.status == "error"
    assert "1 of 2 criteria were not judged" in score.reason
    assert (score.metadata or {})["bounds"] == [0.5, 1.0]
    assert [child.status for child in score.children or ()] == ["scored", "error"]
    allowed, _ = await judged(say, ["names the capital", "gives the date"], min_coverage=0.5)
    assert allowed.value == 0.5  # the answer may have made the judge babble
    required = [{"requirement": "gives the date", "required": True}, "names the capital"]
    refused, _ = await judged(say, required, min_coverage=0.1)
    assert refused.status == "error"


def date_is_down(request: Request) -> Json:
    """A model that is asked for the date and cannot be reached."""
    if "date" in asked_text(request).partition("CRITERION:")[2]:
        raise ModelError("it is down", kind="unreachable")
    return met("Canberra")


async def test_what_our_machinery_could_not_do_is_left_out_where_that_is_allowed() -> None:
    criteria = ["names the capital", "gives the date"]
    score, _ = await judged(date_is_down, criteria, min_coverage=0.5)
    assert score.value == 1.0
    assert (score.metadata or {})["bounds"] == [0.5, 1.0]
    score, _ = await judged(date_is_down, criteria)
    assert score.status == "error"
    # Attack: a group whose credit is undecided earns nothing by its faults.
    group = {"requirement": "style", "children": [("gives the date", 0.5), ("is rude", -2)]}
    score, _ = await judged(date_is_down, [group, (CAPITAL, 0.5)], min_coverage=0.8)
    assert score.status == "error"


async def test_attack_a_refuted_verdict_is_worth_no_more_than_an_honest_one() -> None:
    criteria = [("names the capital", 4), ("gives the date", 1), ("is rude", -1)]
    honest, _ = await judged(
        by_criterion(capital="MET", date="UNMET", rude="MET"), criteria, min_coverage=0.6
    )

    def say(request: Request) -> Json:
        is_capital = "capital" in asked_text(request).partition("CRITERION:")[2]
        return met("Canberra" if is_capital else "made up")

    refuted, _ = await judged(say, criteria, min_coverage=0.6)
    assert refuted.value == honest.value


async def test_levels_are_worth_what_they_are_anchored_to() -> None:
    def say(_: Request) -> Json:
        return {"evidence": [], "reasoning": "fair enough", "level": "fair"}

    levels = {"requirement": "clear", "levels": ["poor", "fair", "good"]}
    score, asked = await judged(say, [levels])
    assert score.value == 0.5
    assert "FORM: levels" in asked_text(asked[0])


@each("options", [{}, {"aggregate": "min"}])
async def test_attack_a_split_panel_forgives_a_fault(options: dict[str, object]) -> None:
    """What a fault is goes by the sign of its weight and of its groups'."""
    fault = {"requirement": "mentions Canberra", "weight": -1.0, "allow_na": True}
    merit = {**fault, "weight": 1.0}
    among_faults = {"requirement": "faults", "weight": -1.0}
    for criterion in (
        fault,
        {**among_faults, "children": [merit]},
        {**among_faults, "children": [fault]},  # a merit: nothing makes the faults smaller
    ):
        votes = iter(["MET", "UNMET"])
        score, asked = await judged(
            lambda _, votes=votes: met("Canberra", verdict=next(votes)),
            [criterion],
            repeats=2,
            **options,
        )
        assert (score.value, [one.repeat for one in asked]) == (0.0, [0, 1])


async def test_attack_a_judge_that_is_flooded_takes_its_whole_penalty() -> None:
    flood = "lorem " * 200_000
    rude = GraderSpec(type="llm_judge", weight=-0.5, options={"criteria": ["rude"]})
    there = GraderSpec(type="contains", options={"substring": "lorem"})
    result = await grade_submission([there, rude], Submission(answer=flood))
    assert result.reward == pytest.approx(0.5)


@each("answer", ["", "Solution:", "word " * 100_000])
async def test_attack_silence_is_worth_nothing_where_a_rubric_has_faults_alone(answer: str) -> None:
    faults = [("is rude", -1.0), ("is wrong", -2.0)]
    with model(lambda _: met(verdict="UNMET")) as (name, asked):
        node = await graded(LLMJudgeGrader, criteria=faults, answer=answer, model=name)
    assert (node.status, node.value, asked) == ("scored", 0.0, [])


async def test_material_beyond_what_a_judge_reads_is_an_error() -> None:
    """It is not the answer's doing: nobody knows what the answer would have been worth."""
    score, asked = await judged(
        by_criterion(), ["capital"], answer="lorem", question="lorem " * 200_000
    )
    assert (score.status, score.value, asked) == ("error", None, [])
    assert "400,000 characters" in score.reason


def test_a_name_that_means_another_model_is_another_judge() -> None:
    def digest(model: str, **endpoints: ModelEntry) -> str:
        options: dict[str, Json] = {"model": model, "criteria": ["capital"]}
        with using(ModelClient(ModelSettings(endpoints=endpoints))):
            return grader_digest(GraderSpec(type="llm_judge", options=options))

    one = ModelEntry(base_url="http://127.0.0.1:1/v1", model="one")
    two = ModelEntry(base_url="http://127.0.0.1:1/v1", model="two")
    assert digest("mine", mine=one) == digest("mine", mine=one)
    assert digest("mine", mine=one) != digest("mine", mine=two)
    assert digest("openai:x", mine=one) == digest("openai:x", mine=two)
