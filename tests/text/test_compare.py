"""exact_match, contains and its kin, f1_score: at the public door."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import InputError
from assay.text import contains, contains_all, contains_any, exact_match, f1_score, normalize
from assay.text.normal_form import same_answer
from tests.children import alone
from tests.each import each


@each(
    ("answer", "expected", "score"),
    [
        ("NYC.", ["New York City", "NYC"], 1.0),
        ("Boston", ("New York City", "NYC"), 0.0),
        ("42.", 42, 1.0),
        ("Answer 5", 5, 0.0),
        (5, "5", 1.0),
        (None, "None", 0.0),  # no answer is not the text
        (10**5_000, "1", 0.0),  # too long to print
        # articles in a row, whatever the order of a set is
        *(("a the cat", "cat", 1.0), ("an the cat", "cat", 1.0)),
    ],
)
def test_exact_match_of_one_or_several_expected_answers(
    answer: object, expected: object, score: float
) -> None:
    assert exact_match(answer, expected) == score


@each(
    ("answer", "expected", "score"),
    [
        (" PARIS ", "Paris", 1.0),
        ("Paris.", "Paris", 0.0),
        ("the Paris", "Paris", 0.0),
        (" 42 ", 42, 1.0),
    ],
)
def test_as_written_but_for_case_and_margins(answer: str, expected: object, score: float) -> None:
    assert exact_match(answer, expected, normalize_text=False) == score


_MISSING = "is missing (None) (an empty answer is written '')"


@each(
    "expected, said",
    [
        (None, _MISSING),
        ([None], _MISSING),
        ([], "is an empty list (give at least one right answer)"),
    ],
)
@each("comparison, name", [(exact_match, "expected"), (f1_score, "reference")])
def test_a_missing_expected_answer_is_refused(
    comparison: Callable[[object, object], float], name: str, expected: object, said: str
) -> None:
    with pytest.raises(InputError) as refused:
        comparison("x", expected)
    assert str(refused.value) == f"{name} {said}"


# --- contains ------------------------------------------------------------------------------------


def test_contains_any_and_all() -> None:
    assert contains("The Category", "cat") == 1.0
    assert contains("The Category", "cat", case_sensitive=True) == 0.0
    assert contains("The Category", "Cat", case_sensitive=True) == 1.0
    assert contains("cafe\u0301", "CAF\u00c9") == 1.0
    assert (
        contains("I don\u2019t know New\u202fYork\u2019s well\u2011known Pa\u00adris", "don't")
        == 1.0
    )
    assert contains("New\u202fYork", "New York", case_sensitive=True) == 1.0
    assert contains("in 2024", 2024) == 1.0
    assert contains_any("red and blue", ["green", "BLUE"]) == 1.0
    assert contains_any("red and blue", ["green"]) == 0.0
    assert contains_any("red and blue", ["BLUE"], case_sensitive=True) == 0.0
    assert contains_all("red and blue", ("Red", "BLUE")) == 1.0
    assert contains_all("red and blue", ("Red", "blue"), case_sensitive=True) == 0.0
    assert contains_all("red and blue", {"red", "green"}) == 0.0


@each("verb", [contains_any, contains_all])
def test_nothing_to_look_for_is_refused(verb: Callable[..., float]) -> None:
    name, every = verb.__name__, "every answer contains {} text (write what to look for)"
    refusals: list[tuple[object, str]] = [
        ([], f"{name} got no texts to look for (give at least one)"),
        ([""], every.format("the empty")),
        (["x", " "], every.format("a blank")),
        ([None], f"substring {_MISSING}"),
        (5, f"{name} takes a list of texts, not 5 (did you mean contains()?)"),
        ("xa", f"{name} takes a list of texts, not 'xa' (did you mean contains()?)"),
    ]
    for nothing, said in refusals:
        with pytest.raises(InputError) as refused:
            verb("abc", nothing)
        assert str(refused.value) == said
    with pytest.raises(InputError, match="every answer contains"):
        contains("abc", "")


# --- f1 ------------------------------------------------------------------------------------------


def plain_f1(answer: str, reference: str) -> float:
    """SQuAD's definition, word for word."""
    mine, theirs = normalize(answer).split(), normalize(reference).split()
    shared = sum((Counter(mine) & Counter(theirs)).values())
    if not shared:
        return 0.0
    precision, recall = shared / len(mine), shared / len(theirs)
    return 2 * precision * recall / (precision + recall)


TALK = st.lists(
    st.sampled_from(["cat", "cats", "dog", "sat", "on", "mat", "is", "b", "big,", "Red", "5", "-5"])
).map(" ".join)


@given(TALK, TALK.filter(lambda text: normalize(text) != ""))
def test_f1_is_that_of_squad(answer: str, reference: str) -> None:
    assert f1_score(answer, reference) == pytest.approx(plain_f1(answer, reference))


@each(
    ("answer", "reference", "score"),
    [
        ("the cat sat", "a cat sat down", 0.8),
        ("cat cat cat", "cat", 0.5),
        ("the", "the", 1.0),
        ("!!!", "the", 0.0),
        ("The", "the", 1.0),
        ("", "", 1.0),
        ("", "cat", 0.0),
        ("cat", "", 0.0),
        (None, "None", 0.0),
        ("\u6771\u4eac\u90fd", "\u6771\u4eac", 0.8),
        ("\uc11c\uc6b8 \uc2dc", "\uc11c\uc6b8", 2 / 3),
        ("1 2 3 4 5 6 7 zero 1 1", "1 2 3 4 5 6 7 1", 8 / 9),  # as often as both have it
        ("a red cat", ["blue dog", "red cat", "cat"], 1.0),  # the best of several
    ],
)
def test_f1(answer: str | None, reference: object, score: float) -> None:
    assert f1_score(answer, reference) == pytest.approx(score)


@given(st.text(), st.text())
def test_f1_is_a_score(answer: str, reference: str) -> None:
    assert 0.0 <= f1_score(answer, reference) <= 1.0
    assert f1_score(answer, reference) == pytest.approx(f1_score(reference, answer), abs=1.0)
    assert f1_score(answer, answer) == 1.0


# --- extraction ----------------------------------------------------------------------------------


def test_extraction_narrows_every_comparison() -> None:
    said = "Paris? No.\n<answer>Rome</answer>"
    assert exact_match(said, "Rome", extract="answer_tag") == 1.0
    assert contains(said, "Paris", extract="answer_tag") == 0.0
    assert contains_any(said, ["Paris"], extract="answer_tag") == 0.0
    assert contains_all(said, ["Rome"], extract="answer_tag") == 1.0
    assert f1_score(said, "Rome", extract="answer_tag") == 1.0


@each("compare", [exact_match, contains, contains_any, contains_all, f1_score])
def test_where_nothing_is_extracted_nothing_matches(compare: Callable[..., float]) -> None:
    wanted = ["Paris"] if compare in (contains_any, contains_all) else "Paris"
    assert compare("Paris", wanted, extract="boxed") == 0.0
    with pytest.raises(InputError, match="nothing to pick from"):
        compare("Paris", wanted, pick="only")


def test_no_name_depends_on_which_module_was_loaded_before() -> None:
    printed = alone("""
        import importlib, pkgutil, types, assay.text
        for module in pkgutil.iter_modules(assay.text.__path__):
            importlib.import_module(f"assay.text.{module.name}")
        names = assay.text.__all__
        print([n for n in names if isinstance(getattr(assay.text, n), types.ModuleType)])
    """)
    assert printed == "[]\n"


def test_the_short_cuts_of_exact_match_say_what_the_keys_say() -> None:
    words = (
        *("the", "The", "a", "an", "cat", "ab", "x", "42", "(cat)", "*b*", "'x'", "...", "A", "!"),
        *("of", "-5", "3.14", "C++", "50%", "don't", "-", "="),
    )
    between = (" ", " ", "  ", ". ", ", ", "! ", "\n")
    ends = ("", ".", "!", "?!", " .", "...", "\n")
    draw = random.Random(7)
    for _ in range(3_000):
        drawn = [draw.choice(words) + draw.choice(between) for _ in range(draw.randint(1, 4))]
        said = "".join(drawn).rstrip() + draw.choice(ends)
        there = [word for word in drawn if draw.random() < 0.8]
        wanted = draw.choice(("", "the ", "An ")) + "".join(there).upper().rstrip()
        expected = said == wanted or same_answer(said, wanted)
        assert exact_match(said, wanted) == expected, (said, wanted)


def test_attack_an_answer_of_articles_takes_no_quadratic_time() -> None:
    said = "the ab " * 200_000
    assert exact_match(said, "AB " * 200_000 + "(c)") == 0.0
    assert exact_match(said, "AB " * 200_000) == 1.0
    long = "word " * 5_000  # a reference too long to remember is compared all the same
    assert f1_score(long, long + "x") > 0.99
    assert exact_match(long + ".", long) == 1.0
