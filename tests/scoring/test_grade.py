"""The grade frame: what is read from the wire, and that it is written back as it came."""

from __future__ import annotations

import json
import math

import pytest

from assay.errors import ScoreError
from assay.scoring import EvaluationResult, Grade, Json, SubScore
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


@each(
    ("frame", "why"),
    [
        ({}, "needs a 'reward'"),
        ({"score": True}, "bool"),
        ({"score": "0.5"}, "must be a number"),
        ({"score": math.nan}, "nan"),
        ({"score": math.inf}, "inf"),
        ({"score": 1, "isErorr": True}, "isError"),
        ({"score": 1, "subscores": [{"name": "x", "value": 9}]}, r"\[0, 1\]"),
    ],
)
def test_a_malformed_frame_is_refused(frame: dict[str, Json], why: str) -> None:
    with pytest.raises(ScoreError, match=why):
        Grade.from_dict(frame)


def test_an_error_frame_has_no_reward_whatever_score_it_claims() -> None:
    grade = Grade.from_dict({"score": 1.0, "isError": True})
    assert (grade.reward, grade.is_error) == (None, True)
    assert Grade.from_dict({"score": None, "isError": False}).reward is None


def test_not_graded_yet_is_an_error_and_not_a_0() -> None:
    grade = Grade.ungraded()
    assert (grade.reward, grade.is_error, grade.content) == (None, True, "not graded")
    assert grade.raw == {}


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


def test_an_ungraded_grade_survives_its_json() -> None:
    grade = Grade.ungraded("agent fell over")
    assert Grade.from_dict(grade.to_dict()) == grade
