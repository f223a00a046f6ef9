"""Multiple choice: what is a choice, and what only looks like one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import InputError
from assay.text import choice_match

TEXTS = {"A": "Paris", "B": "London", "C": "Rome", "D": "A dog"}


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        *[(said, "B") for said in ("B", "b", "(B)", "B.", "**B**", '"B"', "B) London", "B. x\ny")],
        *[(said, "B") for said in ("Answer: B", "**Answer:** B", "**Answer: B**", "Answer:\nB")],
        *[(said, "B") for said in ("the answer is (b)", "The answer is **B**.", "answer is: B")],
        *[
            (said, "B")
            for said in ("I choose B", "The correct option is B", "So B wins? Choice: B")
        ],
        *[(said, "B") for said in (r"\boxed{B}", r"$\boxed{\text{(B)}}$", "Reasons.\n\nB")],
        *[(said, "A") for said in ("A", "a", "The answer is A", "The correct answer is A.")],
        ("The answer is A because it is", "A"),
        ("The answer is A: Paris", "A"),
        ("The answer is B, London", "B"),
        ("(A) is wrong because of that, so (B)", "B"),
        ("Answer: A\nNo, wait.\nAnswer: C", "C"),
        ("(A) at first, but\nAnswer: B, not (C)", "B"),
    ],
)
def test_what_is_a_choice(answer: str, label: str) -> None:
    assert choice_match(answer, label) == 1.0
    assert sum(choice_match(answer, other) for other in "ABCD") == 1.0


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "A dog is a friend",
        "The answer is a dog",
        "The answer is A dog",
        "I am sure of B12",
        "The answer is not B",
        "Answer: not A",
        "Answer: ABCD",
        "The options are A and B.",
        None,
    ],
)
def test_what_is_none(answer: str | None) -> None:
    assert [choice_match(answer, label) for label in "ABCD"] == [0.0] * 4


@pytest.mark.parametrize(
    "answer",
    [
        "A, B, C, D",
        "A B C D",
        "A\nB\nC\nD",
        "A) x\nB) y\nC) z\nD) w",
        "(A) (B) (C) (D)",
        "**A** **B** **C** **D**",
        "Answer: A, B, C or D",
        "Answer: A B C D",
        "Answer: B C D A",
        "Answer: (A) (B) (C) (D)",
        "Answer: A; B; C; D",
        "Answer: A/B/C/D",
        "Answer: A or B",
        "Answer: A and B",
    ],
)
def test_listing_the_options_does_not_pay(answer: str) -> None:
    assert [choice_match(answer, label) for label in "ABCD"] == [0.0] * 4


@pytest.mark.parametrize(
    ("answer", "expected", "score"),
    [
        ("Paris", "A", 1.0),
        ("paris.", "Paris", 1.0),
        ("I think so. The answer is Paris.", "A", 1.0),
        ("London", "A", 0.0),
        ("a dog", "D", 1.0),
        ("The answer is a dog", "D", 1.0),
        ("B) London", "London", 1.0),
        ("Paris or London", "A", 0.0),
    ],
)
def test_options_with_texts(answer: str, expected: str, score: float) -> None:
    assert choice_match(answer, expected, choices=TEXTS) == score


def test_labels_of_other_kinds() -> None:
    assert choice_match("Answer: 2", 2, choices="1234") == 1.0
    assert choice_match("The answer is yes.", "yes", choices=["yes", "no"]) == 1.0
    assert choice_match("(A) is wrong, so (B)", "B", choices="AB") == 1.0


def test_pick_and_extract() -> None:
    both = "Answer: A\nAnswer: B"
    assert choice_match(both, "A", pick="first") == 1.0
    assert choice_match(both, "B", pick="only") == 0.0
    assert choice_match("B <answer>A</answer>", "A", extract="answer_tag") == 1.0
    assert choice_match("B", "B", extract="answer_tag") == 0.0


@pytest.mark.parametrize(
    ("expected", "options"),
    [
        ("E", {}),
        (None, {}),
        ("A", {"choices": "A"}),
        ("A", {"choices": "AAB"}),
        ("A", {"choices": ["A", "a"]}),
        ("A", {"choices": ["A", "B C"]}),
        ("A", {"choices": ["A", ""]}),
        ("A", {"pick": "all"}),
        ("x", {"choices": {"A": "x", "B": "X"}}),
    ],
)
def test_a_bad_question_is_refused(expected: object, options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        choice_match("A", expected, **options)


@given(st.text(alphabet="ABCD ()*.,:\n answer is or"))
def test_no_answer_chooses_two(text: str) -> None:
    assert sum(choice_match(text, label) for label in "ABCD") <= 1.0
