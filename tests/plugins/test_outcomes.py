"""What hooks of other tools tell of an outcome; the tools themselves are in `tests/real`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from assay.errors import InputError
from assay.plugins import deepeval
from assay.plugins.given import given
from assay.plugins.outcomes import explanation_of
from assay.training import Reward
from assay.types.submission import Submission
from tests.each import each

GRADERS = """\
- {type: contains, substring: {from: expected}, weight: 2}
- {type: regex_match, name: short, pattern: "^.{1,9}$"}
"""


def test_an_explanation_says_what_was_given_and_expected(tmp_path: Path) -> None:
    (tmp_path / "graders.yaml").write_text(GRADERS)
    reward = Reward(tmp_path / "graders.yaml")
    graded = reward.grade_now([{"answer": "It is Lima", "expected": "Lima"}, {"answer": "no"}])
    scored, failed = (explanation_of("capital", one).splitlines() for one in graded.graded)
    assert scored[:2] == ["✗ 0.67 capital (separate)", "  ✓ 1.00 contains (separate, weight 2.00)"]
    assert "    parameters: substring: Lima" in scored
    assert "  ✗ 0.00 short (separate)" in scored
    assert failed[0] == "! error capital"
    assert "there is no expected here" in failed[1]


class Turn(BaseModel):
    """What a tool's user may have for a question or an answer."""

    role: str
    content: str


@each(
    "asked, said, question, answer",
    [
        ("2 + 2", "4", "2 + 2", "4"),
        ([Turn(role="user", content="2 + 2")], "4", "2 + 2", "4"),
        ({"a": 2, "b": 2}, {"sum": 4}, '{"a": 2, "b": 2}', '{"sum": 4}'),
        ("2 + 2", Turn(role="x", content="4"), "2 + 2", '{"role": "x", "content": "4"}'),
        ("2 + 2", [1, 2], "2 + 2", "[1, 2]"),
        ("2 + 2", 5, "2 + 2", "5"),
        ("2 + 2", [], "2 + 2", "[]"),
        ("2 + 2", b"4\xff", "2 + 2", "4\ufffd"),
        ("2 + 2", {"sum": b"\xff"}, "2 + 2", '{"sum": "\ufffd"}'),
        ("2 + 2", "4\ud800", "2 + 2", "4\ud800"),
    ],
)
def test_values_of_any_type_stand_for_texts(
    asked: object, said: object, question: str, answer: str
) -> None:
    found = given(asked, said, expected=Decimal(4), metadata=Turn(role="user", content="x"))
    assert isinstance(found, Submission)
    assert (found.question, found.answer, found.expected) == (question, answer, "4")
    assert found.metadata == {"role": "user", "content": "x"}


@each("said, why", [(None, "no completion"), *((one, "be read") for one in (object(), [object()]))])
def test_what_cannot_be_read_is_no_empty_answer(said: object, why: str) -> None:
    found = given("2 + 2", said)
    assert isinstance(found, InputError)
    assert why in str(found)


HOOKS: Sequence[tuple[str, str, str]] = [
    ("inspect", "scorer", "inspect-ai"),
    ("pydantic_evals", "evaluator", "pydantic-evals"),
    ("mlflow", "scorer", "mlflow"),
    ("deepeval", "metric", "deepeval"),
    ("openenv", "graders", "openenv"),
]


@each("hook, name, package", HOOKS)
def test_a_tool_that_is_not_installed_is_named(hook: str, name: str, package: str) -> None:
    made: Callable[..., object] = getattr(importlib.import_module(f"assay.plugins.{hook}"), name)
    with pytest.raises(InputError, match=f"{package} is not installed"):
        made(str)


@each("threshold", [-1, 2, "0.5", float("nan"), True])
def test_attack_a_threshold_of_deepeval_that_passes_anything_or_nothing(threshold: Any) -> None:
    with pytest.raises(InputError, match="threshold: must be"):
        deepeval.metric(str, threshold=threshold)


def test_attack_an_answer_that_contains_itself_is_graded_and_not_left_out() -> None:
    inside, deep = list[object](), list[object]()
    inside.append(inside)
    for _ in range(100_000):
        deep = [deep]
    itself = ["Lima", inside]
    for said in (itself, {"city": itself}, deep, 10**5000):
        found = given("capital?", said, "Nairobi")
        assert isinstance(found, Submission), found
        assert isinstance(found.answer, str)
        assert "Nairobi" not in found.answer
    kept = given("capital?", itself, "Lima")
    assert isinstance(kept, Submission)
    assert str(kept.answer).startswith('["Lima", ')
