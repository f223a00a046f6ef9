"""What a comparison says of its number."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

from syrupy.assertion import SnapshotAssertion

import assay.text
from assay.graders.kinds import KINDS, kind_of
from assay.text.explain import explain


def said(comparison: str, **arguments: Any) -> str:
    """Read, expected and decided, on one line."""
    function = cast("Callable[..., float]", getattr(assay.text, comparison))
    found = explain(comparison, function(**arguments), arguments)
    assert list(found) == ["read", "expected", "decided"]
    return " | ".join(found.values())


CAPITALS = {"A": "Paris", "B": "Rome"}


def test_every_comparison_that_is_a_grader_explains_itself() -> None:
    comparisons = [name for name, target in KINDS.items() if ".comparison:" in target]
    assert len(comparisons) > 10
    for name in comparisons:
        arguments = {"answer": "1", "expected": "1", "reference": "1", "pattern": "1"}
        arguments |= {"substring": "1"}
        more = {"substrings": ["1"], "schema": True, "choices": "12"}
        taken = kind_of(name).parameters
        given = {key: value for key, value in {**arguments, **more}.items() if key in taken}
        assert kind_of(name).grader.explain(1.0, given)["read"]


def test_a_long_answer_is_shown_by_its_ends() -> None:
    read = said("exact_match", answer="a" * 5_000, expected="b").partition(" | ")[0]
    assert len(read) < 450
    assert "4,600 characters" in read


def test_an_answer_that_misses_very_many_alternatives_is_not_told_each() -> None:
    schema = {"items": {"oneOf": [{"type": "string"}] * 300}}
    told = explain("json_schema", 0.0, {"answer": json.dumps([1] * 450), "schema": schema})
    assert "it may take long to find out where" in told["decided"]
    told = explain("json_schema", 0.0, {"answer": "[1]", "schema": schema})
    assert "[0]: " in told["decided"]


WORDS = "the red fox and the dog"
BOXES = r"\boxed{A} \boxed{B}"
REFUSED = {
    "4 or 5": "5", r"\{1,2\}": "(1,2)", r"\text{not } 5": "5", r"4\text{ and }5": "5",
    "7=2": "2", "3.14=3.15": "3.15", "5=x=5": "5", "84/2": "42", "84:2": "42", r"4 \to 5": "5",
    r"x \ge 5": "5", "40+2": "42", r"\sqrt{144}": "12", r"\binom{20}{10}": "184756", "5!": "120",
    r"\frac{d}{dx} x^3": "3x^2", "2^{10}": "1024", "42_5": "42", r"\max(41, 42)": "42",
}  # fmt: skip
EXPLAINED: list[tuple[str, dict[str, Any]]] = [
    ("exact_match", {"answer": "Paris", "expected": "Paris"}),
    ("exact_match", {"answer": " ", "expected": "Paris"}),
    *[("exact_match", {"answer": "x", "expected": [*"abcdefg"][:many]}) for many in (4, 5, 6)],
    ("exact_match", {"answer": "Lyon", "expected": "Paris"}),
    ("exact_match", {"answer": "Paris", "expected": "Paris France"}),
    ("exact_match", {"answer": "the Paris!", "expected": "paris"}),
    ("exact_match", {"answer": "x", "expected": "a", "extract": "boxed"}),
    ("exact_match", {"answer": "x" * 500, "expected": "x" * 450 + "y"}),
    ("contains", {"answer": "z" * 99 + WORDS, "substring": "Fox"}),
    ("contains", {"answer": WORDS, "substring": "Fox", "case_sensitive": True}),
    ("contains", {"answer": WORDS, "substring": "x", "extract": "boxed", "pick": "only"}),
    ("contains_all", {"answer": WORDS, "substrings": ["DOG", "Fox"]}),
    ("contains_all", {"answer": WORDS, "substrings": [*"jklmpq"]}),
    ("contains_any", {"answer": WORDS, "substrings": ["cat", "Fox"]}),
    ("contains_all", {"answer": WORDS, "substrings": ["wolf", "Fox"]}),
    ("contains_any", {"answer": WORDS, "substrings": ["cat", "wolf"]}),
    ("regex_match", {"answer": WORDS, "pattern": "f.x"}),
    ("regex_match", {"answer": WORDS, "pattern": "F.X", "ignore_case": True}),
    ("regex_match", {"answer": WORDS, "pattern": "F.X"}),
    ("regex_match", {"answer": "x" * 300, "pattern": "x+"}),
    ("regex_match", {"answer": WORDS, "pattern": "the.*dog", "full": True}),
    ("regex_match", {"answer": WORDS, "pattern": "f.x", "full": True}),
    ("regex_match", {"answer": WORDS, "pattern": "f.x", "extract": "boxed"}),
    ("f1_score", {"answer": WORDS, "reference": ["a fox, a dog and a cow", "a zebra"]}),
    ("f1_score", {"answer": "x", "reference": "a b c d e f g"}),
    ("f1_score", {"answer": "the fox", "reference": "fox"}),
    ("f1_score", {"answer": "x", "reference": "y" * 50}),
    ("f1_score", {"answer": WORDS, "reference": "fox", "extract": "boxed"}),
    ("similarity", {"answer": "fox", "reference": "fog"}),
    ("similarity", {"answer": "fox", "reference": "fog", "threshold": 0.5}),
    ("similarity", {"answer": "fox", "reference": "fox", "metric": "rouge_l", "threshold": 0.75}),
    ("similarity", {"answer": "fox", "reference": "fox", "extract": "boxed"}),
    ("similarity", {"answer": "x " * 60_000, "reference": "fox"}),
    ("numeric_match", {"answer": "It is 5", "expected": "5"}),
    ("numeric_match", {"answer": "5, then 6.5", "expected": 6, "pick": "last", "tolerance": 0.5}),
    ("numeric_match", {"answer": "5 and 6", "expected": 6, "pick": "only"}),
    ("numeric_match", {"answer": "5 or 6", "expected": 5}),
    ("numeric_match", {"answer": "none", "expected": 6, "pick": "only"}),
    ("numeric_match", {"answer": "\\boxed{7}", "expected": 6, "extract": "boxed"}),
    ("numeric_match", {"answer": "7", "expected": 6, "extract": "boxed", "pick": "only"}),
    ("numeric_match", {"answer": "9", "expected": 6, "tolerance": 1, "relative_tolerance": 0.1}),
    ("numeric_match", {"answer": "4.9", "expected": 5, "tolerance": 0.05}),
    ("numeric_match", {"answer": "It isn't 42.", "expected": 42}),
    ("numeric_match", {"answer": "5!", "expected": 5}),
    ("numeric_match", {"answer": "many", "expected": 3}),
    ("numeric_match", {"answer": "1e999", "expected": 6}),
    ("choice_match", {"answer": "The answer is B", "expected": "B"}),
    ("choice_match", {"answer": "The answer is A", "expected": "B", "choices": CAPITALS}),
    ("choice_match", {"answer": "A or B", "expected": "B"}),
    ("choice_match", {"answer": "B", "expected": "B", "extract": "boxed"}),
    ("choice_match", {"answer": "Answer: A\nAnswer: B", "expected": "B", "pick": "first"}),
    ("choice_match", {"answer": BOXES, "expected": "A", "extract": "boxed", "pick": "first"}),
    ("exact_match", {"answer": BOXES, "expected": "A", "extract": "boxed", "pick": "first"}),
    ("math_equal", {"answer": BOXES, "expected": "A", "extract": "boxed", "pick": "first"}),
    *[("math_equal", {"answer": f"\\boxed{{{a}}}", "expected": e}) for a, e in REFUSED.items()],
    ("math_equal", {"answer": "$x + 1$", "expected": "1 + x"}),
    ("math_equal", {"answer": "$x + 1$", "expected": "x"}),
    ("math_equal", {"answer": r"\boxed{6 \times 7}", "expected": "42"}),
    ("math_equal", {"answer": r"\boxed{5 cm}", "expected": "5 m"}),
    ("math_equal", {"answer": " ", "expected": "x"}),
    ("math_equal", {"answer": "x", "expected": "x", "extract": "boxed"}),
    ("json_match", {"answer": '{"a": 1}', "expected": {"a": 1}}),
    ("json_match", {"answer": '{"a": [1, 2], "b": 3}', "expected": {"a": {"b": 1}, "c": "\u00e9"}}),
    ("json_match", {"answer": '{"a": {"b": 1}, "l": 5}', "expected": {"a": [1], "l": [5, 6]}}),
    (
        "json_match",
        {"answer": '{"a": 1.5, "b": 2}', "expected": {"a": 1, "b": 3}, "tolerance": 0.5},
    ),
    ("json_match", {"answer": "[1, 2, 3, 4, 5, 6, 7]", "expected": [0] * 7}),
    ("json_match", {"answer": "so: {}", "expected": "{}", "strict": True}),
    ("json_match", {"answer": "{}", "expected": {}, "extract": "boxed"}),
    ("json_schema", {"answer": '{"a": 1}', "schema": {"type": "object"}}),
    (
        "json_schema",
        {
            "answer": '{"a": [1, "x"]}',
            "schema": {"properties": {"a": {"items": {"type": "string"}}}},
        },
    ),
    ("json_schema", {"answer": "3", "schema": False}),
]


def test_what_is_said_of_each_number(snapshot: SnapshotAssertion) -> None:
    lines = [f"{name}: {said(name, **arguments)}" for name, arguments in EXPLAINED]
    assert "\n".join(lines) == snapshot
