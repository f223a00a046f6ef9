"""Criteria as people write them."""

from __future__ import annotations

import pytest

from assay.errors import InputError
from assay.graders.judges.criteria import Criterion, read_criteria
from tests.each import each


def test_a_text_a_pair_and_a_mapping_are_criteria() -> None:
    mapped: object = {"criterion": "Cites a source", "name": "c"}
    read = read_criteria(["Correct", ("Well-reasoned", 2.0), ["Rude", -1], mapped])
    assert [(one.requirement, one.weight) for one in read[:3]] == [
        *(("Correct", 1.0), ("Well-reasoned", 2.0), ("Rude", -1.0)),
    ]
    assert read[3].label == "c"


def test_a_scale_runs_from_the_worst_to_the_best() -> None:
    (written,) = read_criteria([{"requirement": "Clear", "levels": ["poor", "fair", "good"]}])
    assert [(one.name, one.value) for one in written.levels] == [
        *(("poor", 0.0), ("fair", 0.5), ("good", 1.0)),
    ]
    (anchored,) = read_criteria(
        [{"requirement": "Clear", "levels": {"0": "unreadable", "1": "plain to a newcomer"}}]
    )
    assert anchored.levels[1].description == "plain to a newcomer"
    own = [{"name": "a", "value": 0.2}, {"name": "b", "value": 0.9, "description": "d"}]
    (valued,) = read_criteria([{"requirement": "Clear", "levels": own}])
    assert [one.value for one in valued.levels] == [0.2, 0.9]


@each(
    ("requirement", "is_presence"),
    [
        ("The response names the capital.", True),
        ("The response does not mention prices.", False),
        ("It doesn't apologise", False),
        ("The answer is concise", False),
        ("Contains at most three sentences", False),
        ("Fails to name a source", False),
        ("Neglects the side effects", False),
        ("Notes the date", True),
    ],
)
def test_what_must_be_quoted_goes_by_the_words(requirement: str, is_presence: bool) -> None:  # noqa: FBT001
    assert Criterion(requirement=requirement).is_presence is is_presence
    assert Criterion(requirement=requirement, polarity="presence").is_presence
    assert not Criterion(requirement=requirement, polarity="absence").is_presence


_REFUSED: list[tuple[object, str]] = [
    ([], "the list is empty"),
    ("Correct", "must be a list"),
    (["a", ("b", 1, 2)], r"criteria\[1\]: is not a criterion"),
    ([("b", float("nan"))], "must be finite"),
    ([("b", True)], "expected a number"),
    ([{"requirement": "a", "wieght": 2}], "did you mean 'weight'"),
    ([{"weight": 2}], "'requirement' is required"),
    ([{"requirement": "a", "levels": ["only"]}], "at least two"),
    ([{"requirement": "a", "levels": ["x", "x"]}], "different names"),
    ([{"requirement": "a", "levels": [{"name": "x", "value": 2}, "y"]}], "not in"),
    ([{"requirement": "a", "weight": -1, "required": True}], "cannot be required"),
    ([{"requirement": "a", "required": "yes"}], "true or false"),
    ([{"requirement": "a", "polarity": "none"}], "valid: absence, auto"),
    ([{"requirement": "a", "children": []}], r"criteria\[0\].children: the list is empty"),
    ([{"requirement": "a", "children": ["b", 3]}], r"criteria\[0\].children\[1\]: is no"),
    ([{"requirement": "a", "children": ["b"], "levels": ["x", "y"]}], "a group has no levels"),
]


@each(("written", "message"), _REFUSED)
def test_what_is_no_criterion_is_refused_by_its_place(written: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_criteria(written)
