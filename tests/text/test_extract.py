"""Where the answer stands, and which one counts where there are several."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import InputError
from assay.text import contains, extract_answer
from assay.text.extract import Pick, in_parts
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
    ("text", "extract", "found"),
    [
        ("<answer>1</answer> <ANSWER> 2 </Answer >", "answer_tag", "2"),
        ("<answer>draft <answer>3</answer>", "answer_tag", "3"),
        ("<answer>never closed", "answer_tag", None),
        ("</answer>4<answer>", "answer_tag", None),
        ("<answer></answer>", "answer_tag", ""),
        ("a\n b \n\n", "last_line", "b"),
        ("one", "last_line", "one"),
        ("so:\n```\n1\n```\n", "last_line", "1"),
        ("a\r\nb\r\n", "last_line", "b"),
        ("\n ", "last_line", None),
        # A pattern gives group one of its last match.
        ("x=1, x=2", r"x=(\d)", "2"),
        ("x=1, x=2", r"x=\d", "x=2"),
        ("x=", r"x=(\d)?", None),
        ("\u00e9\U0001f600 x=3", r"x=(\d)", "3"),
        (" all of it ", None, " all of it "),
    ],
)
def test_other_places_of_an_answer(text: str, extract: str | None, found: str | None) -> None:
    assert extract_answer(text, extract) == found


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


def test_what_to_pick_from_has_to_be_said() -> None:
    with pytest.raises(InputError, match=r"nothing to pick from.*say with extract="):
        contains("x", "x", pick="last")


def test_a_long_text_is_searched_from_its_first_to_its_last_character() -> None:
    text = "1" + " x" * 30_000 + " 2"
    assert [match[0] for match in in_parts(re.compile(r"\d"), text)] == ["1", "2"]


@each(
    ("extract", "pick", "said"),
    [
        ("boxd", "last", "did you mean 'boxed'"),
        ("boxed", "lst", "did you mean 'last'"),
        *[(extract, "last", "") for extract in ("json", "(", "", "(?=x)")],
    ],
)
def test_a_bad_extract_is_refused_and_a_slip_is_told(extract: str, pick: Any, said: str) -> None:
    with pytest.raises(InputError, match=said or None):
        extract_answer("x", extract, pick=pick)


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
