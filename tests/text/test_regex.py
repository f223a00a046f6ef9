"""Patterns of authors: linear in the answer, refused with a hint where RE2 cannot."""

from __future__ import annotations

from typing import Any

import pytest

from assay.errors import InputError
from assay.text import regex_match
from tests.each import each


@each(
    ("answer", "pattern", "options", "score"),
    [
        ("order #42 sent", r"#\d+", {}, 1.0),
        ("order #42 sent", r"#\d+", {"full": True}, 0.0),
        (" #42\n", r"#\d+", {"full": True}, 1.0),
        ("ORDER", "order", {}, 0.0),
        ("ORDER", "order", {"ignore_case": True}, 1.0),
        (None, "x", {}, 0.0),
        ("42 <answer>x</answer>", r"\d", {"extract": "answer_tag"}, 0.0),
        ("42", r"\d", {"extract": "answer_tag"}, 0.0),
        ("a\ud800b", "^a.b$", {}, 1.0),
        # One line end after the answer does not count.
        *(("5\r\n", "^5$", {}, 1.0), ("5\n", "^5$", {}, 1.0), ("5\n", "5\\n", {}, 1.0)),
        *(("5\n\n", "^5$", {}, 0.0), ("4\n5", "^5$", {}, 0.0)),
    ],
)
def test_search_and_full_match(
    answer: str | None, pattern: str, options: dict[str, Any], score: float
) -> None:
    assert regex_match(answer, pattern, **options) == score


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
def test_a_pattern_that_is_refused_says_what_to_write_and_prints_nothing(
    pattern: str, hint: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match=hint):
        regex_match("ab", pattern)
    assert capfd.readouterr() == ("", "")


def test_letters_match_composed_and_decomposed() -> None:
    composed, decomposed = "\u00e1", "a\u0301"
    for pattern in (composed, decomposed):
        for answer in (composed, decomposed):
            assert regex_match(answer, f"^{pattern}$") == 1.0
            assert regex_match(answer, pattern, full=True) == 1.0
    assert regex_match(decomposed, r"\p{M}") == 1.0
