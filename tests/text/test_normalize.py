"""The two normal forms: the lenient one of question answering, and the key of exact_match."""

from __future__ import annotations

import re
import string
import unicodedata

from hypothesis import example, given
from hypothesis import strategies as st

from assay.text import exact_match, normalize
from assay.text.normal_form import answer_key, compose, same_answer
from tests.each import each


@each(
    ("text", "normal"),
    [
        ("The U.S. Dollar!", "u s dollar"),
        ("-5", "5"),
        ("3.14", "3 14"),
        ("1,234.50", "1 234 50"),
        ("U.S.A.", "u s"),
        ("don't", "don t"),
        ("x_y", "x_y"),
        (None, "none"),
        (["a"], ""),
        ("cafe\u0301", "caf\u00e9"),
        ("STRASSE", "strasse"),
        ("Stra\u00dfe", "strasse"),
        ("  \n ", ""),
        ("\u6771\u4eac\u3002", "\u6771\u4eac"),
    ],
)
def test_normalize(text: object, normal: str) -> None:
    assert normalize(text) == normal


@given(st.text(alphabet=string.printable))
def test_normalize_of_ascii_is_the_documented_sequence_of_steps(text: str) -> None:
    spaced = re.sub(r"[^\w\s]", " ", text.lower())
    assert normalize(text) == " ".join(re.sub(r"\b(a|an|the)\b", " ", spaced).split())


@given(st.text())
def test_normalize_is_idempotent(text: str) -> None:
    once = normalize(text)
    assert normalize(once) == once


SAME = [
    ("Paris.", "Paris"),
    ("Paris !", "paris"),
    ('"Paris"', "paris"),
    ("'paris'", "Paris"),
    ("\u201cParis\u201d", "paris"),
    ("`x`", "x"),
    ("**Paris**", "paris"),
    ("(Paris)", "Paris"),
    ("Paris (France)", "paris france"),
    ("(b)", "b"),
    ("'b'", "b"),
    ("don't", "dont"),
    ("don\u2019t", "don't"),
    ("cafe\u0301", "caf\u00e9"),
    ("STRASSE", "Stra\u00dfe"),
    ("1,000", "1000"),
    ("1,234,567.50", "1234567.50"),
    ("x >= 1", "x>=1"),
    ("a + b", "a+b"),
    ("50 %", "50%"),
    ("$ 5", "$5"),
    ("\u22125", "-5"),
    ("\uff15", "5"),
    ("\u0664\u0968", "42"),
    ("1,2,3", "1, 2, 3"),
    ("January 5, 2020", "january 5 2020"),
    ("The  answer\n is: 42.", "answer is 42"),
    ("the 5", "5"),
    ("\u6771\u4eac\u3002", "\u6771\u4eac"),
    ("end:!", "end"),
    ("first, then rest", "first then rest!"),
    ("(first) then rest", "first then: rest"),
    ("the cat, a dog", "cat dog"),
    ("Pa\u00adris\u200b\ufe0f", "\ufeffParis"),
    ("well\u2011known\u00a0man", "well-known man"),
    ("2024\u201301\u201105", "2024-01-05"),
    ("\u00bfQu\u00e9?", "qu\u00e9"),
    ("H\u2082O", "H2O"),
    ("50 000 and 1\u202f000", "50,000 and 1000"),
    ("J.K. Rowling, Ph.D.", "JK Rowling PhD"),
    ("3 p.m.", "3 pm"),
    ("~~Rome~~ Paris <!-- or Rome -->", "Paris"),
    ("Jean-Luc Picard", "Jean Luc Picard"),
    ("Rock & Roll", "rock roll"),
    ("Paris \u2014 France", "Paris France"),
    ("<think>Rome? No.</think>\nParis", "Paris"),
]

DIFFERENT = [
    ("1.5", "15"),
    ("x>=1", "x<=1"),
    ("x!=1", "x=1"),
    ("$5", "\u20ac5"),
    ("!!!", "???"),
    ("the", ""),
    ("a", "the"),
    ("A", "B"),
    ("n!", "n"),
    ("f'(x)", "f(x)"),
    ("y'", "y"),
    ("(0,1)", "[0,1]"),
    ("2 * 3 * 4", "2 3 4"),
    ("10-5", "105"),
    ("1 -1", "1-1"),
    ("3:45", "345"),
    ("1,00", "100"),
    ("Vitamin A", "vitamin"),
    ("A, B", "B"),
    ("A B", "B"),
    ("x\u00b2", "x2"),
    ("cold war is on", "col dwar is on"),
    ("cold (war, is) on", "cold war is on"),
    ("i.e.", "ie"),
    ("5 123", "5123"),
    ("10\u2082", "102"),
    ("5'", "5"),
    ("5%", "5"),
    ("C++", "C"),
    ("C#", "C"),
    ("x-y", "x y"),
    ("a & b", "a b"),
    ("ab/cd", "ab cd"),
    ("-Luc", "Luc"),
    ("3.14", "3 14"),
    ("~~Paris~~ Rome", "Paris"),
]


@each(("one", "other"), SAME)
def test_what_is_forgiven(one: str, other: str) -> None:
    assert exact_match(one, other) == 1.0
    if "<" not in one:
        assert same_answer(one, other)
        assert exact_match(other, one) == 1.0


@each(("one", "other"), DIFFERENT)
def test_what_carries_meaning(one: str, other: str) -> None:
    assert not same_answer(one, other)
    assert exact_match(one, other) == exact_match(other, one) == 0.0


MARKS = [*" .,!?:;()*'\"+-=%$\n\u00e9x5", "  ", "**", "..."]
WORDS = ["a", "the", "an", "paris", "Paris", "1,000", "-5"]
PIECES = st.lists(st.sampled_from(WORDS + MARKS), max_size=9).map("".join)


@given(PIECES, PIECES)
def test_the_fast_paths_of_exact_match_never_change_the_verdict(one: str, other: str) -> None:
    assert exact_match(one, other) == float(same_answer(one, other))


@given(PIECES, st.integers(0, 9), st.sampled_from(" .,;:?!\n('*"))
@example(one="word?:", place=4, mark=":")
def test_nor_do_they_where_one_mark_is_added(one: str, place: int, mark: str) -> None:
    other = one[:place] + mark + one[place:]
    assert exact_match(one, other) == float(same_answer(one, other)) == exact_match(other, one)


@given(st.text())
def test_exact_match_is_reflexive_whatever_the_unicode_form(text: str) -> None:
    assert exact_match(text, text) == 1.0
    assert same_answer(text, text)
    decomposed, composed = unicodedata.normalize("NFD", text), unicodedata.normalize("NFC", text)
    assert exact_match(decomposed, composed) == 1.0


@given(st.text(), st.text())
def test_exact_match_is_symmetric(one: str, other: str) -> None:
    assert exact_match(one, other) == exact_match(other, one)


@given(st.text(alphabet=string.printable))
def test_case_and_white_space_do_not_count(text: str) -> None:
    assert exact_match(text.upper(), text.lower()) == 1.0
    words = " ".join(text.split())
    assert exact_match(f"  {words.replace(' ', '  ')}\n", words) == 1.0


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value="0.001"))
def test_signs_count(number: object) -> None:
    assert exact_match(f"-{number}", f"{number}") == 0.0


@given(st.text(max_size=3_000))
@example("\u0915\u09be" * 900)  # whose syllables are never cut
@example("\u1112\u1161\u11ab" * 900)
@example("e\u0301 word " * 300)
@example("e" + "\u0301" * 600)  # which are cut anywhere
def test_composing_in_pieces_is_composing(text: str) -> None:
    for grown in (text, text * 9):
        assert compose(grown) == unicodedata.normalize("NFC", grown)


def test_the_key_of_punctuation_alone_is_empty_and_equals_nothing_else() -> None:
    assert answer_key("...") == answer_key("???") == ""
    assert exact_match("...", "???") == 0.0
    assert exact_match("", "...") == 0.0
