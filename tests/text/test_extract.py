"""Where the answer stands, and which one counts where there are several."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import InputError
from assay.text import extract_answer
from assay.text.extract import Pick
from tests.each import each


@each(
    ("text", "found"),
    [
        (r"so \boxed{42}.", "42"),
        (r"\boxed{1} then \boxed{2}", "2"),
        (r"\fbox{a}", "a"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{x = \boxed{5}}", "5"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"\boxed{\text{Paris}}", "Paris"),
        (r"\boxed {$7$}", "7"),
        (r"\boxed{}", ""),
        (r"\boxed{5} \boxed{}", ""),
        (r"\boxed{5} \boxed{6", "5"),
        (r"\boxed{6", None),
        ("42", None),
        ("}}} \\boxed{1} }", "1"),
    ],
)
def test_boxed(text: str, found: str | None) -> None:
    assert extract_answer(text, "boxed") == found


@each(
    ("text", "found"),
    [
        ("<answer>1</answer> <ANSWER> 2 </Answer >", "2"),
        ("<answer>draft <answer>3</answer>", "3"),
        ("<answer>never closed", None),
        ("</answer>4<answer>", None),
        ("<answer></answer>", ""),
    ],
)
def test_answer_tag(text: str, found: str | None) -> None:
    assert extract_answer(text, "answer_tag") == found


@each(("text", "found"), [("a\n b \n\n", "b"), ("one", "one"), ("a\r\nb\r\n", "b"), ("\n ", None)])
def test_last_line(text: str, found: str | None) -> None:
    assert extract_answer(text, "last_line") == found


def test_a_pattern_gives_group_one_of_its_last_match() -> None:
    assert extract_answer("x=1, x=2", r"x=(\d)") == "2"
    assert extract_answer("x=1, x=2", r"x=\d") == "x=2"
    assert extract_answer("x=", r"x=(\d)?") is None
    assert extract_answer("\u00e9\U0001f600 x=3", r"x=(\d)") == "3"


def test_no_extraction_is_the_whole_text() -> None:
    assert extract_answer(" all of it ", None) == " all of it "


@each(
    ("text", "pick", "found"),
    [
        (r"\boxed{1}\boxed{2}", "first", "1"),
        (r"\boxed{1}\boxed{2}", "last", "2"),
        (r"\boxed{1}\boxed{2}", "only", None),
        (r"\boxed{1}\boxed{ 1 }", "only", "1"),
        (r"none", "only", None),
        (r"none", "first", None),
    ],
)
def test_pick(text: str, pick: Pick, found: str | None) -> None:
    assert extract_answer(text, "boxed", pick=pick) == found


@each("extract", ["boxd", "answertag", "json", "(", "", r"(?=x)"])
def test_a_bad_extract_is_refused(extract: str) -> None:
    with pytest.raises(InputError):
        extract_answer("x", extract)


def test_a_slip_in_a_name_is_told() -> None:
    with pytest.raises(InputError, match="did you mean 'boxed'"):
        extract_answer("x", "boxd")


def test_an_unknown_pick_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'last'"):
        extract_answer("x", "boxed", pick="lst")  # pyright: ignore[reportArgumentType] - the point


@given(
    st.text(alphabet="\\boxed{}f <answer>/1\n"),
    st.sampled_from(["boxed", "answer_tag", "last_line"]),
)
def test_extraction_returns_a_part_of_the_text_or_nothing(text: str, extract: str) -> None:
    found = extract_answer(text, extract)
    assert found is None or found in text


@given(st.text(alphabet=st.characters(exclude_characters="{}\\$"), min_size=1))
def test_a_box_gives_back_what_was_put_in(content: str) -> None:
    assert extract_answer(f"so \\boxed{{{content}}} it is", "boxed") == content.strip()
