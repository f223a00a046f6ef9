"""What may be a score, and that a node or a result survives its own JSON."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ScoreError
from assay.scoring import EvaluationResult, Grade, Json, SubScore
from assay.scoring.graded import Graded
from assay.scoring.results import ASSURANCES, Status, finite_number
from tests.each import each

NOT_SCORES = [
    (True, r"is a bool \(give 1\.0 or 0\.0\)$"),
    (math.nan, "is nan"),
    (-math.inf, r"is -inf \(a score must be finite\)$"),
    (10**400, "too large"),
    ("1.0", "must be a number, got str"),
    (None, "must be a number, got NoneType"),
    (Decimal(1), "got Decimal"),
]


@each(("value", "why"), NOT_SCORES)
def test_what_is_not_a_finite_number_is_no_score_and_no_reward(value: object, why: str) -> None:
    with pytest.raises(ScoreError, match=why):
        finite_number(value, what="it")
    with pytest.raises(ScoreError, match=why):
        SubScore(name="x", value=cast("float", value))
    if value is not None:
        with pytest.raises(ScoreError, match=why):
            EvaluationResult(reward=cast("float", value))


@each(("value", "number"), [(1, 1.0), (0, 0.0), (Fraction(1, 4), 0.25)])
def test_real_numbers_become_floats(value: float, number: float) -> None:
    score = SubScore(name="x", value=value).score
    assert (score, type(score)) == (number, float)


@each("value", [-0.01, 1.01, 7, -1e-300])
def test_a_value_outside_of_0_to_1_is_refused_not_clamped(value: float) -> None:
    said = rf"^the value of 'x' is {float(value)} \(it must be in \[0, 1\]\)$"
    with pytest.raises(ScoreError, match=said):
        SubScore(name="x", value=value)


@each("weight", [math.nan, True, "2", None, 2e100, -1e308])
def test_a_weight_is_a_finite_number_far_from_the_end_of_the_range(weight: object) -> None:
    with pytest.raises(ScoreError, match="the weight of 'x'"):
        SubScore(name="x", value=1.0, weight=cast("float", weight))


def test_a_status_is_one_of_three() -> None:
    with pytest.raises(ScoreError, match=r"^status of 'x' is 'fine' \(scored, skipped or error\)$"):
        SubScore(name="x", value=1.0, status=cast("Status", "fine"))


@each("status", ["skipped", "error"])
def test_what_was_not_graded_has_no_value(status: Status) -> None:
    with pytest.raises(ScoreError, match="cannot have a value"):
        SubScore(name="x", value=0.0, status=status)
    with pytest.raises(ScoreError, match=f"it is {status}.*the reason"):
        _ = SubScore(name="x", status=status, reason="the reason").score


@each(
    ("value", "said", "passed"),
    [(1.0, None, True), (0.99, None, False), (0.0, None, False), (0.8, True, True)],
)
def test_passed_is_full_value_unless_the_grader_says(
    value: float, *, said: bool | None, passed: bool
) -> None:
    assert SubScore(name="x", value=value, passed=said).passed is passed
    assert SubScore(name="x", value=0.9, gate=True, passed=True).passed is False


def test_info_is_another_name_for_metadata() -> None:
    assert SubScore(name="x", value=1.0, metadata={"a": 1}).info == {"a": 1}
    one = SubScore(name="x", value=1.0, info={"a": 1})
    assert one == SubScore(name="x", value=1.0, metadata={"a": 1})
    assert replace(one, metadata=None).info is None
    said = r"^'x' has metadata and info, which are one thing \(give one of them\)$"
    with pytest.raises(ScoreError, match=said):
        SubScore(name="x", value=1.0, metadata={}, info={})


def test_fields_defaults_and_outcomes_of_a_result() -> None:
    result = EvaluationResult()
    assert (result.reward, result.done, result.content) == (0.0, True, None)
    assert (result.info, result.isError, result.subscores) == ({}, False, None)
    assert EvaluationResult.from_float(0.25).reward == 0.25
    assert EvaluationResult(reward=-3.5).reward == -3.5  # penalties are not clamped
    assert EvaluationResult(reward=0.0).status == "scored"
    assert EvaluationResult(reward=None).status == "skipped"
    assert EvaluationResult(reward=1.0, isError=True).reward is None  # whatever was given
    failed = EvaluationResult.from_error("judge is gone", host=Path("/x"))
    assert (failed.reward, failed.status, failed.content) == (None, "error", "judge is gone")
    assert failed.info == {"host": "/x"}


def test_flags_of_the_whole_tree_each_once_in_order() -> None:
    leaf = SubScore(name="c", value=1.0, flags=("canary", "late-report"))
    tree = SubScore(name="p", value=1.0, flags=["canary"], children=[leaf])
    other = SubScore(name="q", value=0.0, flags=("escape",))
    flags = EvaluationResult(reward=1.0, subscores=[tree, other]).flags
    assert flags == ("canary", "late-report", "escape")


TEXT = st.text(max_size=20)
JSON_VALUES: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)


def _nodes(children: st.SearchStrategy[SubScore]) -> st.SearchStrategy[SubScore]:
    common = {
        "name": st.text(min_size=1, max_size=10),
        "weight": st.floats(-1e6, 1e6),
        "gate": st.booleans(),
        "reason": TEXT,
        "flags": st.lists(TEXT, max_size=2),
        "children": st.none() | st.lists(children, max_size=2),
        "assurance": st.none() | st.sampled_from(ASSURANCES),
    }
    passed = st.none() | st.booleans()
    finite = st.dictionaries(TEXT, st.integers() | TEXT | st.lists(st.booleans()), max_size=3)
    return st.one_of(
        st.builds(
            SubScore, value=st.floats(0, 1), metadata=st.none() | finite, passed=passed, **common
        ),
        st.builds(SubScore, status=st.sampled_from(["skipped", "error"]), **common),
    )


NODES = st.recursive(st.builds(SubScore, name=st.just("leaf"), value=st.just(0.5)), _nodes)


@given(NODES)
def test_a_node_survives_its_json(node: SubScore) -> None:
    written = json.loads(json.dumps(node.to_dict()))
    assert SubScore.from_dict(written) == node


@given(
    nodes=st.lists(NODES, max_size=3),
    reward=st.floats(-5, 1),
    content=TEXT | st.none(),
    done=st.booleans(),
)
def test_a_result_survives_its_json(
    nodes: list[SubScore], reward: float, content: str | None, *, done: bool
) -> None:
    result = EvaluationResult(
        reward=reward, content=content, done=done, info={"a": [1]}, subscores=tuple(nodes)
    )
    read = EvaluationResult.from_dict(json.loads(json.dumps(result.to_dict())))
    assert read.to_dict() == result.to_dict()
    assert list(read.subscores or ()) == nodes


def test_json_of_a_node_holds_whatever_was_put_into_its_metadata_uncut() -> None:
    """A grader that leaves a path or an object there must not break whoever stores the score."""
    odd = {"path": Path("/a"), "bad": [math.nan], 3: {1, 2}, "long": "y" * 50_000}
    metadata = cast("Mapping[str, Json]", odd)
    node = SubScore(name="x", value=1.0, metadata=metadata)
    plain = {"path": "/a", "bad": ["nan"], "3": [1, 2], "long": "y" * 50_000}
    assert node.to_dict()["metadata"] == plain
    result = EvaluationResult(reward=1.0, info=metadata, subscores=[node])
    assert json.dumps(result.to_dict(), allow_nan=False)


def test_json_of_a_node_has_what_was_declared_and_older_names_are_read() -> None:
    node = SubScore("x", 1.0, 0.25, {"a": 1}, raw_weight=3.0, assurance="read", passed=True)
    written = node.to_dict()
    assert (list(written)[4], written["raw_weight"]) == ("raw_weight", 3.0)
    assert SubScore.from_dict(written) == node
    assert "raw_weight" not in replace(node, raw_weight=None).to_dict()
    info = written.pop("metadata")
    assert SubScore.from_dict({**written, "info": info}) == node
    assert SubScore.from_dict({"name": "x", "value": 1}) == SubScore("x", 1.0)
    odd: dict[str, Json] = {"metadata": [1], "children": {}, "gate": 1, "passed": 1, "flags": "a"}
    assert SubScore.from_dict({"name": "x", "value": 1, "reason": None, **odd}) == SubScore(
        "x", 1.0
    )
    assert SubScore.from_dict({"name": "x", "value": 1, "children": [1]}).children == ()


def test_what_was_not_graded_keeps_its_weight_and_its_gate() -> None:
    said: dict[str, Any] = {"weight": 2.0, "gate": True, "reason": "why"}
    skipped = SubScore.skipped("x", "why", weight=2.0, gate=True)
    assert skipped == SubScore("x", status="skipped", **said)
    failed = SubScore.error("x", "why", weight=2.0, gate=True, metadata={"a": 1})
    assert failed == SubScore("x", status="error", metadata={"a": 1}, **said)


@each(
    ("data", "why"),
    [
        ({"value": 1.0}, "needs a name"),
        ({"name": "x"}, "must be a number"),
        ({"name": "x", "value": 1, "weight": "1"}, "weight"),
        ({"name": "x", "value": 1, "status": "ok"}, "'ok'"),
        ({"name": "x", "value": 1, "status": "error"}, "cannot have a value"),
        ({"name": "x", "value": 1, "children": [{"name": "y", "value": -1}]}, r"\[0, 1\]"),
    ],
)
def test_a_malformed_node_is_refused(data: dict[str, Json], why: str) -> None:
    with pytest.raises(ScoreError, match=why):
        SubScore.from_dict(data)


@each(
    ("data", "why"),
    [
        ({}, "needs a 'reward'"),
        ({"reward": "1"}, "must be a number"),
        ({"score": True}, "bool"),
        ({"score": math.nan}, "nan"),
        ({"reward": 1.0, "is_error": True}, "unknown key 'is_error'.*isError"),
        ({"reward": 1.0, "subscores": [{"name": "x"}]}, "must be a number"),
    ],
)
def test_a_malformed_result_or_frame_is_refused(data: dict[str, Json], why: str) -> None:
    for read in (EvaluationResult.from_dict, Grade.from_dict):
        with pytest.raises(ScoreError, match=why):
            read(data)


@given(st.dictionaries(st.sampled_from(["name", "value", "children", "weight"]), JSON_VALUES))
def test_reading_a_node_raises_nothing_but_score_errors(data: dict[str, Json]) -> None:
    with contextlib.suppress(ScoreError):
        SubScore.from_dict(data)


def test_a_negative_zero_is_stored_and_shown_as_any_other_zero() -> None:
    """-0.0 is equal to 0.0 and reads differently: two texts, and two digests, of one grade."""
    made = [
        finite_number(-0.0, what="x"),
        finite_number(Fraction(0), what="x"),
        SubScore("a", -0.0).value,
        SubScore("a", 1.0, weight=-0.0).weight,
        EvaluationResult(reward=-0.0).reward,
        Graded(id="a", status="scored", score=-0.0).score,
    ]
    assert [str(number) for number in made] == ["0.0"] * len(made)
    assert str(SubScore.from_dict({"name": "a", "value": -0.0}).value) == "0.0"
