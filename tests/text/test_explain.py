"""What a comparison says of its number."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

from syrupy.assertion import SnapshotAssertion

import assay.text
from assay.graders.kinds import KINDS, kind_of
from assay.text.explain import explain
from tests.each import each


def said(comparison: str, **arguments: Any) -> str:
    """Read, expected and decided, on one line."""
    function = cast("Callable[..., float]", getattr(assay.text, comparison))
    found = explain(comparison, function(**arguments), arguments)
    assert list(found) == ["read", "expected", "decided"]
    return " | ".join(found.values())


CAPITALS = {"A": "Paris", "B": "Rome"}


@each(
    ("comparison", "arguments", "expected"),
    [
        (
            "exact_match",
            {"answer": "Lyon", "expected": "Paris"},
            'Lyon | Paris | they differ from character 1: "lyon" instead of "paris"',
        ),
        (
            "exact_match",
            {"answer": "Paris", "expected": "Paris France"},
            'Paris | Paris France | they differ from character 6: its end instead of " france"',
        ),
        (
            "math_equal",
            {"answer": r"\boxed{6 \times 7}", "expected": "42"},
            r"6 \times 7 | 42 | it is refused for a product",
        ),
        (
            "math_equal",
            {"answer": r"\boxed{5 cm}", "expected": "5 m"},
            "5 cm | 5 m | it is refused for another unit",
        ),
        (
            "numeric_match",
            {"answer": "5!", "expected": 5},
            "5! (the first number of the answer) | 5 | 5! is not 5",
        ),
        (
            "exact_match",
            {"answer": "the Paris!", "expected": "paris"},
            "the Paris! | paris | they say the same: what differs does not count",
        ),
        (
            "exact_match",
            {"answer": "x", "expected": ["a", "b"]},
            "x | a or b | it is none of the 2 right answers",
        ),
        (
            "exact_match",
            {"answer": "x", "expected": "a", "extract": "boxed"},
            "nothing | a | extract='boxed' finds nothing in the answer",
        ),
        (
            "contains",
            {"answer": "I live in Paris", "substring": "paris"},
            'I live in Paris | "paris" | "paris" stands in "i live in paris"',
        ),
        (
            "contains_all",
            {"answer": "Paris", "substrings": ["rome", "paris"]},
            'Paris | all of "rome", "paris" | "rome" does not occur in it',
        ),
        (
            "contains_any",
            {"answer": "Oslo", "substrings": ["rome", "paris"]},
            'Oslo | any of "rome", "paris" | "rome", "paris" do not occur in it',
        ),
        (
            "numeric_match",
            {"answer": "It is 17, not 42", "expected": 42},
            "17 (the first number of the answer) | 42 | 17 is not 42: they are 25 apart",
        ),
        (
            "numeric_match",
            {"answer": "It isn't 42.", "expected": 42},
            "n't 42 (the first number of the answer) | 42 | n't 42 is not 42",
        ),
        (
            "numeric_match",
            {"answer": "4.9", "expected": 5, "tolerance": 0.05},
            (
                "4.9 (the first number of the answer) | 5 | 4.9 is not 5: they are 0.1 apart, "
                "and 0.05 is accepted"
            ),
        ),
        (
            "numeric_match",
            {"answer": "3 or 4", "expected": 3, "pick": "only"},
            "3 or 4 | 3 | it has different numbers: 3, 4",
        ),
        (
            "numeric_match",
            {"answer": "many", "expected": 3},
            "many | 3 | there is no number in it",
        ),
        (
            "regex_match",
            {"answer": "abc 123", "pattern": r"\d+"},
            r'abc 123 | somewhere /\d+/ | "123" matches',
        ),
        (
            "f1_score",
            {"answer": "the cat sat", "reference": "a cat sat on the mat"},
            (
                "the cat sat | a cat sat on the mat | 2 words in common; the answer has 2, "
                'the reference 4; missing: "on", "mat"'
            ),
        ),
        (
            "similarity",
            {"answer": "a", "reference": "b", "metric": "levenshtein", "threshold": 0.9},
            "a | b | 0.00 by levenshtein, and 0.9 is needed",
        ),
        (
            "choice_match",
            {"answer": "Answer: B", "expected": "A", "choices": CAPITALS},
            "option B: Rome | A | B is not the right option",
        ),
        (
            "choice_match",
            {"answer": "who knows", "expected": "A"},
            "who knows | A | no single option is chosen in it",
        ),
        (
            "json_match",
            {"answer": '{"a": 1, "b": [1, 2]}', "expected": {"a": 1, "b": [1, 3], "c": 1}},
            (
                '{"a": 1, "b": [1, 2]} | {"a": 1, "b": [1, 3], "c": 1} | .c is missing; '
                ".b[1] is 2 instead of 3"
            ),
        ),
        (
            "json_schema",
            {"answer": '{"a": "x"}', "schema": {"properties": {"a": {"type": "integer"}}}},
            (
                '{"a": "x"} | {"properties": {"a": {"type": "integer"}}} | '
                '.a: "x" is not of type "integer"'
            ),
        ),
        (
            "json_match",
            {"answer": "no", "expected": 1},
            "nothing | 1 | no JSON: not JSON: Expecting value at line 1, column 1",
        ),
        (
            "math_equal",
            {"answer": r"so \boxed{0.50}", "expected": "0.5"},
            "0.50 | 0.5 | they are equal",
        ),
    ],
)
def test_a_comparison_says_what_it_read_expected_and_decided(
    comparison: str, arguments: dict[str, Any], expected: str
) -> None:
    assert said(comparison, **arguments) == expected


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
EXPLAINED: list[tuple[str, dict[str, Any]]] = [
    ("exact_match", {"answer": "Paris", "expected": "Paris"}),
    ("exact_match", {"answer": " ", "expected": "Paris"}),
    *[("exact_match", {"answer": "x", "expected": [*"abcdefg"][:many]}) for many in (4, 5, 6)],
    ("exact_match", {"answer": "x" * 500, "expected": "x" * 450 + "y"}),
    ("contains", {"answer": "z" * 99 + WORDS, "substring": "Fox"}),
    ("contains", {"answer": WORDS, "substring": "Fox", "case_sensitive": True}),
    ("contains", {"answer": WORDS, "substring": "x", "extract": "boxed", "pick": "only"}),
    ("contains_all", {"answer": WORDS, "substrings": ["DOG", "Fox"]}),
    ("contains_all", {"answer": WORDS, "substrings": [*"jklmpq"]}),
    ("contains_any", {"answer": WORDS, "substrings": ["cat", "Fox"]}),
    ("regex_match", {"answer": WORDS, "pattern": "f.x"}),
    ("regex_match", {"answer": WORDS, "pattern": "F.X", "ignore_case": True}),
    ("regex_match", {"answer": WORDS, "pattern": "F.X"}),
    ("regex_match", {"answer": WORDS, "pattern": "the.*dog", "full": True}),
    ("regex_match", {"answer": WORDS, "pattern": "f.x", "full": True}),
    ("regex_match", {"answer": WORDS, "pattern": "f.x", "extract": "boxed"}),
    ("f1_score", {"answer": WORDS, "reference": ["a cat", "a fox, a dog and a cow"]}),
    ("f1_score", {"answer": "x", "reference": "a b c d e f g"}),
    ("f1_score", {"answer": "the fox", "reference": "fox"}),
    ("f1_score", {"answer": WORDS, "reference": "fox", "extract": "boxed"}),
    ("similarity", {"answer": "fox", "reference": "fog"}),
    ("similarity", {"answer": "fox", "reference": "fog", "threshold": 0.5}),
    ("similarity", {"answer": "fox", "reference": "fox", "metric": "rouge_l", "threshold": 0.75}),
    ("similarity", {"answer": "fox", "reference": "fox", "extract": "boxed"}),
    ("similarity", {"answer": "x " * 60_000, "reference": "fox"}),
    ("numeric_match", {"answer": "It is 5", "expected": "5"}),
    ("numeric_match", {"answer": "5, then 6.5", "expected": 6, "pick": "last", "tolerance": 0.5}),
    ("numeric_match", {"answer": "5 or 6", "expected": 6, "pick": "only"}),
    ("numeric_match", {"answer": "none", "expected": 6, "pick": "only"}),
    ("numeric_match", {"answer": "\\boxed{7}", "expected": 6, "extract": "boxed"}),
    ("numeric_match", {"answer": "7", "expected": 6, "extract": "boxed", "pick": "only"}),
    ("numeric_match", {"answer": "9", "expected": 6, "tolerance": 1, "relative_tolerance": 0.1}),
    ("numeric_match", {"answer": "1e999", "expected": 6}),
    ("choice_match", {"answer": "The answer is B", "expected": "B"}),
    ("choice_match", {"answer": "The answer is A", "expected": "B", "choices": CAPITALS}),
    ("choice_match", {"answer": "A or B", "expected": "B"}),
    ("choice_match", {"answer": "B", "expected": "B", "extract": "boxed"}),
    ("math_equal", {"answer": "$x + 1$", "expected": "1 + x"}),
    ("math_equal", {"answer": "$x + 1$", "expected": "x"}),
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
