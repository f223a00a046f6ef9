"""Patterns of authors: linear in the answer, refused with a hint where RE2 cannot."""

from __future__ import annotations

import pytest

from assay.errors import InputError
from assay.text import regex_match
from tests.each import each


def test_search_and_full_match() -> None:
    assert regex_match("order #42 sent", r"#\d+") == 1.0
    assert regex_match("order #42 sent", r"#\d+", full=True) == 0.0
    assert regex_match(" #42\n", r"#\d+", full=True) == 1.0
    assert regex_match("ORDER", "order") == 0.0
    assert regex_match("ORDER", "order", ignore_case=True) == 1.0
    assert regex_match(None, "x") == 0.0


def test_extraction() -> None:
    assert regex_match("42 <answer>x</answer>", r"\d", extract="answer_tag") == 0.0
    assert regex_match("42", r"\d", extract="answer_tag") == 0.0


@each(
    ("pattern", "hint"),
    [
        (r"(?=a)b", "group 1"),
        (r"(?!a)b", "match what you want"),
        (r"(?<=a)b", "group 1"),
        (r"(a)\1", "spell the alternatives out"),
        (r"a\Z", r"write \\z"),
        (r"a{2000}", "at most 1000"),
        (r"a++", "linear time"),
        (r"(", "re2/wiki"),
        (r"", "write what must be there"),
        ("\ud800", "half a character"),
    ],
)
def test_a_pattern_that_is_refused_says_what_to_write(pattern: str, hint: str) -> None:
    with pytest.raises(InputError, match=hint):
        regex_match("ab", pattern)


def test_refusing_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError):
        regex_match("ab", "(")
    assert capfd.readouterr() == ("", "")


def test_half_a_character_in_the_answer_is_no_error() -> None:
    assert regex_match("a\ud800b", "^a.b$") == 1.0


def test_one_line_end_after_the_answer_does_not_count() -> None:
    assert (
        regex_match("5\r\n", "^5$")
        == regex_match("5\n", "^5$")
        == regex_match("5\n", "5\\n")
        == 1.0
    )
    assert regex_match("5\n\n", "^5$") == regex_match("4\n5", "^5$") == 0.0


def test_letters_match_composed_and_decomposed() -> None:
    composed, decomposed = "\u00e1", "a\u0301"
    for pattern in (composed, decomposed):
        for answer in (composed, decomposed):
            assert regex_match(answer, f"^{pattern}$") == 1.0
            assert regex_match(answer, pattern, full=True) == 1.0
    assert regex_match(decomposed, r"\p{M}") == 1.0
