"""Grade frames, items and checks: what is read from the wire, and is written as it came."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ScoreError
from assay.scoring import EvaluationResult, Grade, Json, SubScore
from assay.scoring.graded import Graded
from assay.scoring.records import as_json
from assay.scoring.results import ASSURANCES
from assay.scoring.validation import Check, ValidationReport
from tests.each import each

FRAME: dict[str, Json] = {
    "score": 0.7,
    "done": False,
    "isError": False,
    "content": "close",
    "info": {"seed": 3},
    "subscores": [{"name": "tests", "value": 0.7}],
}


def test_a_frame_is_read() -> None:
    grade = Grade.from_dict(FRAME)
    assert (grade.reward, grade.done, grade.is_error) == (0.7, False, False)
    assert (grade.content, grade.info) == ("close", {"seed": 3})
    assert [node.name for node in grade.subscores] == ["tests"]
    assert grade.raw == FRAME
    assert grade.to_dict() == FRAME


def test_an_error_frame_has_no_reward_whatever_score_it_claims() -> None:
    with pytest.raises(ScoreError, match="unknown key 'isErorr' in a grade"):
        Grade.from_dict({"score": 1.0, "isErorr": True})
    grade = Grade.from_dict({"score": 1.0, "isError": True})
    assert (grade.reward, grade.is_error) == (None, True)
    assert Grade.from_dict({"score": None, "isError": False}).reward is None


def test_not_graded_yet_is_an_error_and_not_a_0() -> None:
    grade = Grade.ungraded()
    assert (grade.reward, grade.is_error, grade.content) == (None, True, "not graded")
    assert grade.raw == {}
    fell = Grade.ungraded("agent fell over")
    assert Grade.from_dict(fell.to_dict()) == fell


@each(
    "result",
    [
        EvaluationResult(reward=0.5, content="half", info={"a": [1]}),
        EvaluationResult(reward=None),
        EvaluationResult.from_error("gone"),
        EvaluationResult(reward=-1.0, subscores=(SubScore(name="x", value=1.0, weight=-2),)),
    ],
)
def test_a_result_becomes_a_frame_and_comes_back(result: EvaluationResult) -> None:
    grade = Grade.from_result(result)
    assert grade.raw["score"] == result.reward
    assert "reward" not in grade.raw
    read = Grade.from_dict(json.loads(json.dumps(grade.to_dict())))
    assert read == grade
    assert read.result == result


WORDS = st.text("ab1", max_size=3)
DETAILS: st.SearchStrategy[dict[str, Json]] = st.dictionaries(WORDS, st.integers() | st.none())
SAYING = {
    **dict.fromkeys(("outcome", "grader", "reason", "error", "digest"), st.text("ab", min_size=1)),
    "id": WORDS,
    "flags": st.lists(WORDS, max_size=2).map(tuple),
    "details": DETAILS,
    "assurance": st.none() | st.sampled_from(ASSURANCES),
}
GRADED = st.one_of(
    st.builds(Graded, status=st.just("scored"), score=st.floats(-2, 2), **SAYING),
    st.builds(Graded, status=st.sampled_from(["skipped", "error"]), **SAYING),
)
PLACES = st.none() | st.integers(1, 9)
CHECKS = st.builds(
    Check, name=WORDS, passed=st.booleans(), message=WORDS, line=PLACES, column=PLACES
)
REPORTS = st.builds(
    ValidationReport,
    valid=st.booleans(),
    checks=st.lists(CHECKS, max_size=3).map(tuple),
    warnings=st.lists(WORDS, max_size=2).map(tuple),
    samples=st.lists(GRADED, max_size=2).map(tuple),
    tier=WORDS,
)


@given(GRADED)
def test_what_came_of_an_item_survives_its_json(graded: Graded) -> None:
    written = json.loads(json.dumps(graded.to_dict()))
    assert Graded.from_dict(written) == graded
    assert as_json([graded], leaf=repr) == [written]
    assert graded.called("x") == replace(graded, id="x")
    assert graded.by("g@3", "d") == replace(graded, grader="g@3", digest="d")


@given(REPORTS)
def test_a_report_of_checks_survives_its_json(report: ValidationReport) -> None:
    written = json.loads(json.dumps(report.to_dict()))
    assert ValidationReport.from_dict(written) == report
    assert as_json(report) == written
    assert report.failed in (None, *report.checks)
    assert (report.failed is None) is all(check.passed for check in report.checks)


def test_what_is_not_said_of_an_item_or_a_check_has_a_default() -> None:
    for said in ({}, dict.fromkeys(("id", "flags", "details", "outcome", "reason", "grader"))):
        assert Graded.from_dict({"status": "error", **said}) == Graded(id="", status="error")
    item = Graded(id="i", status="skipped")
    assert item.to_dict() == {
        "id": "i",
        "status": "skipped",
        "score": None,
        "outcome": "ok",
        "reason": "",
        "error": None,
        "flags": [],
        "assurance": None,
        "details": {},
        "grader": "",
        "digest": "",
    }
    nothing = ValidationReport(valid=False, checks=())
    words: dict[str, Json] = dict.fromkeys(("valid", "checks", "warnings", "samples"), 1)
    for data in ({}, words):
        assert ValidationReport.from_dict(data) == nothing
    bare = ValidationReport(valid=True, checks=(Check(name="", passed=False),))
    odd: Json = {"line": "1", "column": 1.5, "passed": 1, "name": None}
    for check in ({}, odd):
        told: dict[str, Json] = {"valid": True, "checks": [check, 3], "samples": [3]}
        assert ValidationReport.from_dict(told) == bare
    assert replace(bare, checks=(*bare.checks, *bare.checks)).failed is bare.checks[0]


@each(
    ("data", "why"),
    [
        ({}, "status of item '' is None"),
        ({"id": "i", "status": "fine"}, "status of item 'i' is 'fine'"),
        ({"id": "i", "status": "scored"}, "the score of item 'i' must be a number"),
        ({"id": "i", "status": "error", "score": 1}, "item 'i' is error and cannot have a score"),
        ({"status": "scored", "score": True}, "score is a bool"),
        ({"status": "scored", "score": 1, "assurance": "modl"}, "unknown assurance 'modl'"),
    ],
)
def test_a_malformed_item_is_refused(data: dict[str, Json], why: str) -> None:
    with pytest.raises(ScoreError, match=f"^{why}"):
        Graded.from_dict(data)


LEAF = SubScore(name="leaf", value=0.5, assurance="model")


@each(
    ("node", "graded"),
    [
        (
            SubScore("n", 0.5, metadata={"a": 1, "_digest": "d", "_outcome": "memory"}, reason="so",
                     flags=("canary",), assurance="read"),
            Graded(id="i", status="scored", score=0.5, outcome="memory", reason="so",
                   flags=("canary",), details={"a": 1}, digest="d", assurance="read"),
        ),
        (
            SubScore("n", 1.0, children=[LEAF], metadata={"a": 1}),
            Graded(id="i", status="scored", score=1.0, assurance="model",
                   details={"a": 1, "subscores": [LEAF.to_dict()]}),
        ),
        (SubScore("n", status="error"), Graded.failed("i", "could not be graded")),
        (SubScore("n", status="error", reason="gone"), Graded.failed("i", "gone", outcome="error")),
        (
            SubScore("n", status="skipped", reason="no trace", assurance="read"),
            Graded(id="i", status="skipped", reason="no trace"),
        ),
    ],
)  # fmt: skip
def test_an_item_is_what_its_node_says(node: SubScore, graded: Graded) -> None:
    assert Graded.of("i", node) == graded


@each(
    ("result", "details", "graded"),
    [
        (
            EvaluationResult(reward=0.5, content="half", subscores=[LEAF]),
            {"a": 1},
            Graded(id="i", status="scored", score=0.5, reason="half", assurance="model",
                   details={"subscores": [LEAF.to_dict()], "a": 1}),
        ),
        (
            EvaluationResult(reward=1.0, subscores=[replace(LEAF, flags=("canary",))]),
            None,
            Graded(id="i", status="scored", score=1.0, flags=("canary",), assurance="model",
                   details={"subscores": [replace(LEAF, flags=("canary",)).to_dict()]}),
        ),
        (
            EvaluationResult(isError=True),
            {},
            replace(Graded.failed("i", "could not be graded"), details={"subscores": []}),
        ),
        (
            EvaluationResult.from_error("gone"),
            {},
            replace(Graded.failed("i", "gone"), details={"subscores": []}),
        ),
        (
            EvaluationResult(reward=None, content="no trace"),
            {},
            Graded(id="i", status="skipped", reason="no trace", details={"subscores": []}),
        ),
    ],
)  # fmt: skip
def test_an_item_is_what_its_combined_result_says(
    result: EvaluationResult, details: dict[str, Json] | None, graded: Graded
) -> None:
    assert Graded.of_result("i", result, details) == graded


@each(
    ("file", "line", "message", "said"),
    [
        ("", 3, "line 3: bad", "line 3: bad"),
        ("f.py", None, "bad", "bad"),
        ("f.yaml", 3, "line 3: bad", "f.yaml: line 3: bad"),
        ("f.py", 3, "line 3: bad", "f.py:3: bad"),
        ("f.py", 3, "line 3, column 7: bad", "f.py:3:7: bad"),
        ("f.py", 3, "bad", "f.py:3: bad"),
    ],
)
def test_a_check_says_its_place_as_compilers_do(
    file: str, line: int | None, message: str, said: str
) -> None:
    assert Check(name="syntax", passed=False, message=message, line=line).at(file) == said


def test_a_record_that_is_shown_has_a_key_for_every_field() -> None:
    check = Check(name="size", passed=True)
    written = {
        "name": "'size'",
        "passed": "True",
        "message": "''",
        "line": "None",
        "column": "None",
    }
    assert as_json((check, [1.5]), leaf=repr) == [written, ["1.5"]]
    assert as_json({"a": (1,)}) == {"a": [1]}
