"""OpenAI's graders as kinds: checks, similarity, formulas, and what a judge would be asked."""

from __future__ import annotations

import json
from typing import cast, get_args, get_type_hints

import pytest

from assay.errors import InputError
from assay.graders.apply import grade_submission
from assay.graders.openai.comparisons import TextSimilarity
from assay.graders.openai.definitions import lacking, parts_of, read_definition
from assay.graders.openai.judges import (
    LabelModel,
    ModelDefinition,
    ScoreModel,
    ScoreModelGrader,
)
from assay.graders.openai.rewards import FaultError
from assay.graders.openai.template import TemplateScope, sample_of
from assay.graders.spec import read_spec
from assay.models import ModelClient, ModelSettings, using
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore
from assay.tasks.grader_files import load_graders
from assay.text.likeness import MAX_FUZZY_CHARACTERS, Metric
from assay.types.codec import Problem, ShapeError
from assay.types.submission import Submission
from tests.each import each

OUTPUT = "{{ sample.output_text }}"
ANSWER = "{{ item.answer }}"


async def node(
    declared: dict[str, Json], answer: str | None = "Paris", item: dict[str, Json] | None = None
) -> SubScore:
    problems: list[Problem] = []
    spec = read_spec(declared, (), problems, base=".")
    assert spec is not None, problems
    row: dict[str, Json] = {"answer": "Paris"} if item is None else item
    result = await grade_submission([spec], Submission(answer=answer, metadata={"item": row}))
    assert result.subscores is not None
    return result.subscores[0]


def check(operation: str, given: str = OUTPUT, reference: str = ANSWER) -> dict[str, Json]:
    return {
        "type": "string_check",
        "input": given,
        "reference": reference,
        "operation": operation,
    }


@each(
    ("operation", "answer", "reference", "value"),
    [
        ("eq", "Paris", "Paris", 1.0),
        ("eq", "paris", "Paris", 0.0),
        ("eq", "Paris ", "Paris", 0.0),
        ("ne", "Rome", "Paris", 1.0),
        ("ne", "Paris", "Paris", 0.0),
        ("neq", "Paris", "Paris", 0.0),
        ("like", "It is Paris.", "Paris", 1.0),
        ("like", "It is paris.", "Paris", 0.0),
        ("like", "Paris", "It is Paris", 0.0),
        ("like", "anything", "%", 0.0),
        ("like", "a%b", "%", 1.0),
        ("ilike", "It is PARIS.", "paris", 1.0),
        ("ilike", "STRASSE", "straße", 1.0),
        ("ilike", "Rome", "paris", 0.0),
    ],
)
async def test_string_check(operation: str, answer: str, reference: str, value: float) -> None:
    graded = await node(check(operation), answer, {"answer": reference})
    assert (graded.value, graded.passed) == (value, value == 1.0)


async def test_the_model_may_be_on_either_side() -> None:
    swapped = check("eq", given=ANSWER, reference=OUTPUT)
    assert (await node(swapped)).value == 1.0


async def test_an_empty_reference_is_in_everything_and_shows_it() -> None:
    graded = await node(check("like", given=ANSWER, reference=OUTPUT), "")
    assert graded.value == 1.0
    assert graded.flags == ("empty_reference",)


async def test_the_evidence_has_both_texts() -> None:
    graded = await node(check("eq"), "Rome")
    metadata = dict(graded.metadata or {})
    assert (metadata["input"], metadata["reference"], metadata["reward"]) == ("Rome", "Paris", 0.0)


async def test_a_missing_field_of_the_item_is_an_error_that_names_it() -> None:
    graded = await node(check("eq", reference="{{ item.anwser }}"))
    assert (graded.status, graded.value) == ("error", None)
    assert "item.anwser is missing" in graded.reason


async def test_refusing_to_write_json_does_not_get_an_answer_out_of_being_graded() -> None:
    declared = check("eq", given="{{ sample.output_json.city }}")
    for answer in ("Paris", "{}", '{"city"', "[" * 5_000):
        graded = await node(declared, answer)
        assert (graded.status, graded.value) == ("scored", 0.0)
        assert graded.flags == ("invalid_variable_error",)
        assert "sample.output_json" in graded.reason
    assert (await node(declared, '{"city": "Paris"}')).value == 1.0


async def test_a_check_that_something_is_absent_is_not_passed_by_writing_no_json() -> None:
    graded = await node(check("ne", given="{{ sample.output_json.verdict }}"), "no json")
    assert graded.value == 0.0


def similar(metric: str, **more: Json) -> dict[str, Json]:
    return {
        "type": "text_similarity",
        "input": OUTPUT,
        "reference": ANSWER,
        "evaluation_metric": metric,
        **more,
    }


# Those of NLTK, which takes seconds to import, have their values in tests/text/test_similarity.py.
METRICS = ["fuzzy_match", "bleu", "rouge_l", *(f"rouge_{n}" for n in range(1, 6))]


def test_every_metric_of_openai_s_is_one_that_texts_are_compared_by() -> None:
    named = {*get_args(get_type_hints(TextSimilarity)["evaluation_metric"])}
    assert named - {"cosine", "fuzzy_match"} <= {*get_args(Metric)}


@each("metric", METRICS)
async def test_every_metric_tells_the_same_from_the_different(metric: str) -> None:
    text = "the quick brown fox jumps over the lazy dog"
    alike = await node(similar(metric), text, {"answer": text})
    apart = await node(similar(metric), "nothing of that kind at all", {"answer": text})
    assert alike.value is not None
    assert apart.value is not None
    assert alike.value > 0.99
    assert apart.value < 0.5


async def test_fuzzy_match_is_the_guides_own() -> None:
    from rapidfuzz import fuzz, utils

    expected = fuzz.WRatio("Paris, France", "paris!", processor=utils.default_process) / 100
    graded = await node(similar("fuzzy_match"), "Paris, France", {"answer": "paris!"})
    assert graded.value == pytest.approx(expected)


async def test_a_threshold_says_what_passes_and_leaves_the_score() -> None:
    item: dict[str, Json] = {"answer": "Paris France"}
    for threshold, passed in ((0.5, True), (0.99, False)):
        graded = await node(similar("fuzzy_match", pass_threshold=threshold), "Paris", item)
        assert graded.passed is passed
        assert graded.value == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("answer", "value", "passed"), [("Paris", 1.0, True), ("Parish", 1.0, True), ("x", 0.0, False)]
)
async def test_a_pass_is_worth_1_and_the_number_stays_as_evidence(
    answer: str, value: float, *, passed: bool
) -> None:
    declared: dict[str, Json] = {**similar("fuzzy_match"), "pass_threshold": 0.8}
    plain = await node(declared, answer)
    graded = await node({**declared, "pass_fail": True}, answer)
    assert (graded.value, graded.passed, plain.passed) == (value, passed, passed)
    assert graded.metadata is not None
    assert graded.metadata["reward"] == plain.value


async def test_a_verdict_needs_no_scale_and_is_no_part_of_a_formula() -> None:
    whole: dict[str, Json] = {
        "type": "multi",
        "graders": {"a": check("eq")},
        "calculate_output": "5 * a - 1",
        "pass_threshold": 4,
        "pass_fail": True,
    }
    assert [(await node(whole, answer)).value for answer in ("Paris", "Rome")] == [1.0, 0.0]
    part: Json = {**similar("fuzzy_match"), "pass_threshold": 0.8, "pass_fail": True}
    refused: tuple[tuple[dict[str, Json], str], ...] = (
        ({**similar("fuzzy_match"), "pass_fail": True}, "needs a pass_threshold"),
        ({**whole, "graders": {"a": part}}, "the whole"),
    )
    for wrong, said in refused:
        problems: list[Problem] = []
        assert read_spec(wrong, (), problems, base=".") is None
        assert said in problems[0].message


@pytest.mark.parametrize("given", [OUTPUT, "{{ item.answer }}", "x"])
async def test_without_a_sample_nothing_is_graded(given: str) -> None:
    graded = await node(check("eq", given), None)
    assert (graded.status, graded.value) == ("error", None)
    assert "nothing was sampled" in (graded.reason or "")


async def test_a_sample_may_be_calls_or_sound_without_a_text() -> None:
    called = {"type": "function", "function": {"name": "f", "arguments": "{}"}}
    declared = check("eq", "{{ item.answer }}")
    problems: list[Problem] = []
    spec = read_spec(declared, (), problems, base=".")
    assert spec is not None
    for sample in ({"output_tools": [called]}, {"output_audio": {"data": "x"}}):
        metadata: dict[str, Json] = {"item": {"answer": "Paris"}, "sample": cast("Json", sample)}
        result = await grade_submission([spec], Submission(metadata=metadata))
        assert result.reward == 1.0


async def test_an_answer_too_long_to_compare_is_worth_nothing_on_either_side() -> None:
    long = "x" * (MAX_FUZZY_CHARACTERS + 1)
    assert (await node(similar("fuzzy_match"), long)).value == 0.0
    swapped = {**similar("fuzzy_match"), "input": ANSWER, "reference": OUTPUT}
    assert (await node(swapped, long)).value == 0.0
    assert (await node(similar("fuzzy_match"), "x", {"answer": long})).status == "error"


async def test_cosine_says_what_it_needs() -> None:
    graded = await node(similar("cosine"))
    assert graded.status == "error"
    assert "embedding model" in graded.reason


# --- multi ----------------------------------------------------------------------------------------


def multi(formula: str, **more: Json) -> dict[str, Json]:
    return {
        "type": "multi",
        "graders": {
            "right": check("eq"),
            "rude": check("ilike", reference="idiot"),
            "city": check("eq", given="{{ sample.output_json.city }}"),
        },
        "calculate_output": formula,
        **more,
    }


async def test_a_formula_combines_its_parts() -> None:
    answer = '{"city": "Paris"}'
    graded = await node(multi("0.25 * right + 0.75 * city"), answer)
    assert graded.value == 0.75
    metadata = dict(graded.metadata or {})
    assert metadata["parts"] == {"right": 0.0, "rude": 0.0, "city": 1.0}


async def test_a_penalty_that_cannot_be_computed_is_no_penalty_saved() -> None:
    graded = await node(multi("1 - city"), "this is no json")
    assert (graded.value, graded.flags) == (0.0, ("invalid_variable_error",))


async def test_a_part_at_fault_makes_the_whole_an_error_whatever_the_answer_did() -> None:
    declared = multi("right")
    parts = cast("dict[str, Json]", declared["graders"])
    parts["typo"] = check("eq", reference="{{ item.typo }}")
    graded = await node(declared, "no json")
    assert graded.status == "error"
    assert "typo: " in graded.reason


@pytest.mark.parametrize("formula", ["right / rude", "log(rude)", "9^9^9^9"])
async def test_a_formula_without_a_value_is_an_error(formula: str) -> None:
    assert (await node(multi(formula), '{"city": ""}')).status == "error"


async def test_a_reward_beyond_the_scale_is_an_error_until_the_scale_is_declared() -> None:
    answer = '{"city": "Paris"}'
    graded = await node(multi("3 * city - 1"), answer)
    assert graded.status == "error"
    assert "range" in graded.reason
    graded = await node(multi("3 * city - 1", range=[-1, 3]), answer)
    assert graded.value == 0.75
    assert dict(graded.metadata or {})["reward"] == 2.0


async def test_a_worthless_answer_is_at_the_bottom_of_any_scale() -> None:
    assert (await node(multi("city", range=[-1, 1]), "no json")).value == 0.0


@each(
    ("change", "path", "message"),
    [
        ({"calculate_output": "right +"}, "calculate_output", "ends too early"),
        ({"calculate_output": "wrong"}, "calculate_output", "names 'wrong'"),
        ({"graders": {}}, "graders", "there are 0"),
        ({"graders": {"a-b": check("eq")}}, "graders.a-b", "cannot be a variable"),
        ({"graders": {"a": {"type": "multi"}}}, "graders.a.type", "'multi' is unknown"),
        ({"graders": {"a": check("equals")}}, "graders.a.operation", "'equals' is not valid"),
        ({"graders": {"a": check("eq", given="{{x}}")}}, "graders.a.input", "names nothing"),
        ({"range": [1, 0]}, "range", "must be"),
        ({"range": [1]}, "range", "must be"),
        ({"speed": 1}, "speed", "unknown field"),
    ],
)
def test_what_is_wrong_in_a_definition_has_its_path(
    change: dict[str, Json], path: str, message: str
) -> None:
    with pytest.raises(ShapeError, match=message) as caught:
        read_definition({**multi("right"), **change})
    assert caught.value.problems[0].field == path


def test_yaml_is_refused_with_line_and_field() -> None:
    text = '- type: string_check\n  input: "{{ output_text }}"\n  reference: x\n  operation: eq\n'
    with pytest.raises(InputError, match=r"2:.*\[0\]\.input.*names nothing"):
        load_graders(text)


def test_one_grader_where_many_should_stand_is_taken_by_its_name() -> None:
    alone = {**check("eq"), "name": "right"}
    definition = read_definition(
        {"type": "multi", "name": "m", "graders": alone, "calculate_output": "right"}
    )
    assert len(list(parts_of(definition))) == 1


@each("field", ["file", "compat", "pass_fail", "fence"])
def test_a_grader_from_elsewhere_names_no_file_of_ours(field: str) -> None:
    python: dict[str, Json] = {"type": "python", "name": "p", field: "/etc/passwd"}
    inside: Json = {"p": python}
    for graders in (inside, python):
        body: Json = {"type": "multi", "graders": graders, "calculate_output": "p"}
        with pytest.raises(ShapeError, match=f"unknown field '{field}'"):
            read_definition(body)
    with pytest.raises(ShapeError, match=f"unknown field '{field}'"):
        read_definition(python)


# --- Judges ---------------------------------------------------------------------------------------

SCORE: dict[str, Json] = {
    "type": "score_model",
    "name": "quality",
    "model": "gpt-4.1-2025-04-14",
    "range": [1, 7],
    "pass_threshold": 5,
    "input": [
        {"role": "developer", "content": "Answer with a result."},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": OUTPUT},
                {"type": "input_image", "image_url": "u"},
            ],
        },
    ],
    "sampling_params": {"temperature": 0.0, "seed": 3, "max_completions_tokens": 100},
}
LABEL: dict[str, Json] = {
    "type": "label_model",
    "name": "tone",
    "model": "gpt-4.1-2025-04-14",
    "labels": ["polite", "rude"],
    "passing_labels": ["polite"],
    "input": [{"role": "user", "content": {"type": "input_text", "text": ANSWER}}],
}
SCOPE = TemplateScope({"answer": "Paris"}, sample_of("{{ item.answer }}"))


def test_what_is_sent_to_a_judge() -> None:
    (spec,) = load_graders(json.dumps([{**SCORE, "fence": False}]))
    judge = cast("ModelDefinition", ScoreModelGrader.defined(spec.options))
    assert judge.prompt(SCOPE).messages[1].content == (
        {"type": "text", "text": "{{ item.answer }}"},
        {"type": "image_url", "image_url": {"url": "u"}},
    )
    schema = cast("dict[str, dict[str, Json]]", judge.response_format)
    assert schema["properties"]["result"] == {"type": "number"}
    labelled = cast("ModelDefinition", read_definition(LABEL)).response_format
    assert json.dumps(labelled).count('["polite", "rude"]') == 1


@each(
    ("reply", "value", "passed"),
    [
        ('{"steps": [], "result": 6}', 6.0, True),
        ('{"result": 4.9}', 4.9, False),
        ('{"result": 99}', 7.0, True),
        ('{"result": -1}', 1.0, False),
        ('{"result": 85}', 7.0, True),
        ('{"result": 1' + "0" * 300 + "}", 7.0, True),
    ],
)
def test_a_judges_number_is_cut_to_the_range(reply: str, value: float, *, passed: bool) -> None:
    reward = cast("ScoreModel", read_definition(SCORE)).verdict(reply)
    assert (reward.value, reward.passed) == (value, passed)


@each(
    "reply",
    [
        *("", "6", "{}", '{"result": "6"}', '{"result": true}', '{"result": NaN}'),
        *('{"result": 1e999}', '{"result": 1' + "0" * 400 + "}", '{"result": -9' + "9" * 400 + "}"),
    ],
)
def test_a_judges_nonsense_is_an_error_and_no_zero(reply: str) -> None:
    with pytest.raises(FaultError) as caught:
        cast("ScoreModel", read_definition(SCORE)).verdict(reply)
    assert caught.value.flag == "model_grader_parse_error"


def test_a_label_passes_or_does_not() -> None:
    judge = cast("LabelModel", read_definition(LABEL))
    assert judge.verdict('{"result": "polite"}').value == 1.0
    assert judge.verdict('{"result": "rude"}').passed is False
    for reply in ('{"result": "Polite"}', '{"result": ["polite"]}'):
        with pytest.raises(FaultError, match="not one of the labels"):
            judge.verdict(reply)


async def test_judges_say_that_nobody_can_be_asked() -> None:
    with using(ModelClient(ModelSettings())):
        for declared in (SCORE, LABEL):
            with pytest.raises(FaultError, match="OPENAI_API_KEY"):
                await read_definition(declared).reward(SCOPE)
        (spec,) = load_graders(json.dumps([LABEL]))
        assert (await grade_submission([spec], Submission(answer="x"))).isError
        (needed,) = await lacking(read_definition(SCORE))
    assert needed.startswith("a judge model in place of gpt-4.1-2025-04-14: there is no key")


@each(
    ("change", "path"),
    [
        ({"passing_labels": ["kind"]}, "passing_labels"),
        ({"passing_labels": []}, "passing_labels"),
        ({"labels": ["polite", "polite"]}, "labels"),
        ({"input": []}, "input"),
        ({"input": [{"role": "judge", "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user", "content": 3}]}, "input[0].content"),
        ({"input": [{"role": "user", "content": {"type": "video"}}]}, "input[0].content"),
        ({"model": " "}, "model"),
    ],
)
def test_a_judge_that_could_not_work_is_refused(change: dict[str, Json], path: str) -> None:
    with pytest.raises(ShapeError) as caught:
        read_definition({**LABEL, **change})
    assert caught.value.problems[0].field == path
