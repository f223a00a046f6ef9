"""OpenAI's graders as kinds: checks, similarity, formulas, and what a judge would be asked."""

from __future__ import annotations

from typing import cast, get_args, get_type_hints

import pytest

from assay.errors import InputError
from assay.graders.apply import grade_submission
from assay.graders.openai.comparisons import TextSimilarity
from assay.graders.openai.definitions import parts_of, read_definition
from assay.graders.spec import read_spec
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
    declared: dict[str, Json],
    answer: str | None = "Paris",
    item: dict[str, Json] | None = None,
    sample: Json = None,
) -> SubScore:
    problems: list[Problem] = []
    spec = read_spec(declared, (), problems, base=".")
    assert spec is not None, problems
    row: dict[str, Json] = {"answer": "Paris"} if item is None else item
    metadata: dict[str, Json] = {"item": row} if sample is None else {"item": row, "sample": sample}
    result = await grade_submission([spec], Submission(answer=answer, metadata=metadata))
    assert result.subscores is not None
    return result.subscores[0]


def check(operation: str, given: str = OUTPUT, reference: str = ANSWER) -> dict[str, Json]:
    texts: dict[str, Json] = {"input": given, "reference": reference}
    return {"type": "string_check", **texts, "operation": operation}


@each(
    ("operation", "answer", "reference", "value"),
    [
        ("eq", "Paris", "Paris", 1.0),
        ("eq", "paris", "Paris", 0.0),
        ("ne", "Rome", "Paris", 1.0),
        ("neq", "Paris", "Paris", 0.0),
        ("like", "It is Paris.", "Paris", 1.0),
        ("like", "It is paris.", "Paris", 0.0),
        ("like", "Paris", "It is Paris", 0.0),
        ("like", "a%b", "%", 1.0),
        ("ilike", "It is PARIS.", "paris", 1.0),
        ("ilike", "STRASSE", "straße", 1.0),
    ],
)
async def test_string_check(operation: str, answer: str, reference: str, value: float) -> None:
    graded = await node(check(operation), answer, {"answer": reference})
    assert (graded.value, graded.passed) == (value, value == 1.0)


async def test_the_evidence_has_both_texts_or_names_what_the_item_lacks() -> None:
    swapped = check("like", given=ANSWER, reference=OUTPUT)
    assert (await node(swapped)).value == 1.0
    graded = await node(swapped, "")
    assert (graded.value, graded.flags) == (1.0, ("empty_reference",))
    graded = await node(check("eq"), "Rome")
    metadata = dict(graded.metadata or {})
    assert (metadata["input"], metadata["reference"], metadata["reward"]) == ("Rome", "Paris", 0.0)
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
        absent = await node(check("ne", given="{{ sample.output_json.verdict }}"), answer)
        assert absent.value == 0.0
    assert (await node(declared, '{"city": "Paris"}')).value == 1.0


def similar(metric: str, **more: Json) -> dict[str, Json]:
    texts: dict[str, Json] = {"input": OUTPUT, "reference": ANSWER}
    return {"type": "text_similarity", **texts, "evaluation_metric": metric, **more}


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


@each(
    ("answer", "value", "passed"), [("Paris", 1.0, True), ("Parish", 1.0, True), ("x", 0.0, False)]
)
async def test_a_pass_is_worth_1_and_the_number_stays_as_evidence(
    answer: str, value: float, *, passed: bool
) -> None:
    """The number is what the guide's own function gives."""
    from rapidfuzz import fuzz, utils

    declared: dict[str, Json] = {**similar("fuzzy_match"), "pass_threshold": 0.8}
    plain = await node(declared, answer)
    expected = fuzz.WRatio(answer, "Paris", processor=utils.default_process) / 100
    assert plain.value == pytest.approx(expected)
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


async def test_without_a_sample_nothing_is_graded_but_it_needs_no_text() -> None:
    for given in (OUTPUT, ANSWER, "x"):
        graded = await node(check("eq", given), None)
        assert (graded.status, graded.value) == ("error", None)
        assert "nothing was sampled" in (graded.reason or "")
    called = {"type": "function", "function": {"name": "f", "arguments": "{}"}}
    for sample in ({"output_tools": [called]}, {"output_audio": {"data": "x"}}):
        graded = await node(check("eq", ANSWER), None, sample=cast("Json", sample))
        assert graded.value == 1.0


async def test_what_cannot_be_compared_is_an_error_but_for_an_answer_that_is_too_long() -> None:
    long = "x" * (MAX_FUZZY_CHARACTERS + 1)
    assert (await node(similar("fuzzy_match"), long)).value == 0.0
    swapped = {**similar("fuzzy_match"), "input": ANSWER, "reference": OUTPUT}
    assert (await node(swapped, long)).value == 0.0
    assert (await node(similar("fuzzy_match"), "x", {"answer": long})).status == "error"
    graded = await node(similar("cosine"))
    assert (graded.status, "embedding model" in graded.reason) == ("error", True)


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
    graded = await node(multi("1 - city"), "this is no json")  # a penalty is not saved by that
    assert (graded.value, graded.flags) == (0.0, ("invalid_variable_error",))


async def test_a_part_at_fault_or_a_formula_without_a_value_is_an_error_whatever_was_said() -> None:
    declared = multi("right")
    parts = cast("dict[str, Json]", declared["graders"])
    parts["typo"] = check("eq", reference="{{ item.typo }}")
    graded = await node(declared, "no json")
    assert graded.status == "error"
    assert "typo: " in graded.reason
    for formula in ("right / rude", "log(rude)", "9^9^9^9"):
        assert (await node(multi(formula), '{"city": ""}')).status == "error"


async def test_a_reward_beyond_the_scale_is_an_error_until_the_scale_is_declared() -> None:
    answer = '{"city": "Paris"}'
    graded = await node(multi("3 * city - 1"), answer)
    assert graded.status == "error"
    assert "range" in graded.reason
    graded = await node(multi("3 * city - 1", range=[-1, 3]), answer)
    assert graded.value == 0.75
    assert dict(graded.metadata or {})["reward"] == 2.0
    worthless = await node(multi("city", range=[-1, 1]), "no json")
    assert worthless.value == 0.0, "the bottom of any scale"


@each(
    ("change", "path", "message"),
    [
        ({"calculate_output": "wrong"}, "calculate_output", "names 'wrong'"),
        ({"graders": {}}, "graders", "there are 0"),
        ({"graders": {"a-b": check("eq")}}, "graders.a-b", "cannot be a variable"),
        ({"graders": {"a": {"type": "multi"}}}, "graders.a.type", "'multi' is unknown"),
        ({"graders": {"a": check("eq", given="{{x}}")}}, "graders.a.input", "names nothing"),
        ({"range": [1, 0]}, "range", "must be"),
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
