"""Numbers as they are written, and how two of them compare."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import InputError
from assay.text import numeric_match
from assay.text.extract import Pick
from assay.text.numbers import find_numbers, parse_number
from tests.each import each


@each(
    ("text", "values"),
    [
        ("1,234,567.50", ["1234567.5"]),
        ("1'000", [1000]),
        ("1\u00a0234 and 1\u202f234\u202f567", [1234, 1234567]),
        ("\u22125 \u20135 -5 +5", [-5, -5, -5, 5]),
        (".5 5. 5.", ["0.5", 5, 5]),
        ("1e3 1E-2 1.5 x 10^3 2\\times 10^{-3}", [1000, "0.01", 1500, "0.002"]),
        ("3/4", ["3/4"]),
        ("1 3/4", ["7/4"]),
        ("\u00bd 1\u00bd 1 \u00bd -\u00bd", ["1/2", "3/2", "3/2", "-1/2"]),
        ("50% 50 % 12.5\\%", [50, 50, "12.5"]),
        ("$5 -$5 $-5 \u20ac1,000", [5, -5, -5, 1000]),
        ("\u0663\u066b\u0665 \uff15", ["3.5", 5]),
        ("\u7b54\u6848\u662f5", [5]),
        ("10 - 5", [10, 5]),
        ("10 -5", [10, -5]),
        ("v2 gives 7", [7]),
        ("H2O", []),
        ("GPT-4", [4]),
        ("1, 2, 3", [1, 2, 3]),
        ("0x10", []),
        ("seven", []),
        ("n=-5km", [-5]),
        ("50 000 and 5 123", [50000, 5, 123]),
        ("The answer is 50 000, about 1 000 000.", [50000, 10**6]),
        ("1.5\u00d710\u00b3 10\u2076 10^{-3}", [1500, 10**6, "0.001"]),
        ("5 million, 2.5 Billion, 3 dozen", [5 * 10**6, 25 * 10**8, 36]),
        ("5 hundred thousand", [500_000]),
        (r"\frac{1}{2} and 2\frac{1}{3}", ["1/2", "7/3"]),
        (r"\frac34, \cfrac1{20}, \frac{1}2, $x=\dfrac{1}{2}$", ["3/4", "1/20", "1/2", "1/2"]),
        ("x = - 5, (- 6), 10 - 5", [-5, -6, 10, 5]),
        ("Answer:5 <b>6</b> ->7", [5, 6, 7]),
        ("90^\\circ 5... wait...6", [90, 5, 6]),
        (r"1\,234 5{,}678{,}900.5", [1234, "5678900.5"]),
        ("5{,}678", [5678]),
        ("1.234.567 and 1.234,5 and \u20ac1.234,50", [1234567, "1234.5", "1234.5"]),
        ("1 234,56 \u20ac, \u20ac12,50 and 42,00 EUR", ["1234.56", "12.5", 42]),
        ("12,34,567.5", ["1234567.5"]),
        ("negative 5, 3 lakh", [-5, 300_000]),
    ],
)
def test_find_numbers(text: str, values: list[int | str]) -> None:
    assert [number.value for number in find_numbers(text)] == [Fraction(value) for value in values]


@each("text", ["1e999999999", "1e1001", "7" * 1_001, "1/0", "9" * 2_000 + "/3"])
def test_a_number_beyond_reason_has_no_value(text: str) -> None:
    assert [number.value for number in find_numbers(text)] == [None]
    assert numeric_match(text, 1, tolerance=1e300) == 0.0
    assert numeric_match(f"{text} 5", 5) == 0.0  # and is not skipped for the next


def test_parse_number_reads_one_number_and_nothing_else() -> None:
    assert parse_number(" 1,234. ") == parse_number("1,234")
    assert parse_number("1,234 km") is None
    assert parse_number("0x10") is None
    assert parse_number("") is None


@given(st.integers(-(10**30), 10**30))
def test_integers_are_read_as_python_writes_them(number: int) -> None:
    for text in (f"{number}", f"{number:,}", f"{number:_}"):
        assert [found.value for found in find_numbers(f"it is {text}!")] == [number]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_so_are_floats(number: float) -> None:
    assert numeric_match(repr(number), number) == 1.0


@given(
    st.decimals(
        allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9, places=4
    )
)
def test_so_are_decimals(number: Decimal) -> None:
    assert numeric_match(f"{number:,}", number) == 1.0
    assert numeric_match(str(number), number + Decimal("0.0001")) == 0.0


@given(st.integers(-(10**6), 10**6), st.integers(1, 10**6), st.sampled_from(["", "d", "t"]))
def test_attack_a_fraction_in_latex_lost_its_sign(over: int, under: int, kind: str) -> None:
    value, sign = Fraction(over, under), "-" if over < 0 else ""
    for written in (
        rf"{sign}\{kind}frac{{{abs(over)}}}{{{under}}}",
        rf"x = {sign} \{kind}frac{{{abs(over)}}}{{{under}}}",
        rf"\{kind}frac{{{over}}}{{{under}}}",
    ):
        assert numeric_match(f"${written}$", value) == 1.0, written
        assert numeric_match(f"${written}$", -value) == float(not over), written


@given(st.text())
def test_numbers_of_any_text_are_read(text: str) -> None:
    find_numbers(text)
    numeric_match(text, 1, pick="only")


@each(
    ("answer", "expected", "score"),
    [
        ("it is 1,234", 1234, 1.0),
        ("0.30000000000000004", 0.3, 1.0),
        ("0.3", 0.1 + 0.2, 1.0),
        ("0.9999999999999999", 1, 1.0),
        ("1/3", 1 / 3, 1.0),
        ("0.333", 1 / 3, 0.0),
        ("1000000000000000", 1000000000000001, 0.0),
        ("1000000001", 1000000000, 0.0),
        ("0.5", "1/2", 1.0),
        ("5", "5", 1.0),
        ("5", Decimal("5.0"), 1.0),
        ("-5", 5, 0.0),
        ("50%", 50, 1.0),
        ("50%", 0.5, 0.0),
        ("no number", 0, 0.0),
        ("inf", 1, 0.0),
        ("nan", 0, 0.0),
        (True, 1, 0.0),
        (7, 7, 1.0),
        (None, 0, 0.0),
    ],
)
def test_numeric_match(answer: object, expected: float | str | Decimal, score: float) -> None:
    assert numeric_match(answer, expected) == score


@each(
    ("answer", "options", "score"),
    [
        ("3.14", {"tolerance": 0.01}, 1.0),
        ("3.15", {"tolerance": 0.01}, 1.0),
        ("3.1500001", {"tolerance": 0.01}, 0.0),
        ("3.2", {"relative_tolerance": 0.02}, 1.0),
        ("3.3", {"relative_tolerance": 0.02}, 0.0),
        ("3.3", {"relative_tolerance": 0.02, "tolerance": 1}, 1.0),
    ],
)
def test_tolerances_are_exact_and_the_wider_holds(
    answer: str, options: dict[str, Any], score: float
) -> None:
    assert numeric_match(answer, 3.14, **options) == score


@each(
    ("answer", "options", "score"),
    [
        ("5 then 7", {"pick": "first"}, 0.0),
        ("5 then 7", {"pick": "last"}, 1.0),
        ("5 then 7", {"pick": "only"}, 0.0),
        ("7 = 7.0", {"pick": "only"}, 1.0),
        ("5 then 7", {}, 0.0),
        # Listing every number does not pay where only one counts.
        (" ".join(map(str, range(100))), {"pick": "only"}, 0.0),
        (r"5 \boxed{7 kg}", {"extract": "boxed"}, 1.0),
        ("7", {"extract": "boxed"}, 0.0),
        (r"\boxed{7} \boxed{5}", {"extract": "boxed", "pick": "first"}, 1.0),
        ("7, then 5, then 7 again", {"pick": "last"}, 1.0),
        ("<think>5 or 7</think> 7", {}, 1.0),
        ("~~5~~ 7 <!-- 5 -->", {"pick": "only"}, 1.0),
        ("~~7~~ 5", {}, 0.0),
        ("7 5 3", {}, 0.0),
        ("(7, 5)", {}, 0.0),
        (r"$\{7, 5\}$", {}, 0.0),
        ("7 and 5.", {}, 0.0),
        ("7 : 5", {}, 0.0),
        ("7? 5?", {}, 0.0),
        ("[7]", {}, 1.0),
        ("(7, 7.0)", {}, 1.0),
        ("7, 5", {}, 0.0),
        ("7\n7.0", {}, 1.0),
        ("7, 5", {"pick": "first"}, 1.0),
    ],
)
def test_pick_and_where_it_is_extracted(answer: str, options: dict[str, Any], score: float) -> None:
    assert numeric_match(answer, 7, **options) == score


_NO_NUMBER = "is not a number (write one number, such as '1,234.5')"


@each(
    "expected, options, said",
    [
        (True, {}, "expected must be a number, not True"),
        (None, {}, "expected must be a number, not None"),
        (float("nan"), {}, "expected must be a finite number, not nan"),
        (Decimal("NaN"), {}, "expected must be a finite number, not Decimal('NaN')"),
        ("five", {}, f"expected 'five' {_NO_NUMBER}"),
        ("1e9999999", {}, f"expected '1e9999999' {_NO_NUMBER}"),
        *(
            (5, {name: odd}, f"{name} must be a finite number of at least 0, not {odd}")
            for name in ("tolerance", "relative_tolerance")
            for odd in (-1, float("nan"), float("inf"), True)
        ),
        (5, {"pick": "best"}, "unknown pick 'best' (valid: first, last, only)"),
    ],
)
def test_what_an_author_gets_wrong_is_refused(
    expected: Any, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError) as refused:
        numeric_match("5", expected, **options)
    assert str(refused.value) == said


@each(
    "text",
    [
        *("5!", "5^2", "5\u00b2", "\u221a5", "5\u221a2", "5\u03c0", "5 \u03c0", "5pi", "5x", "5i"),
        "5e",
        *("5\u00b13", "\u00b15", "5:4", ">5", "<5", "\u22655", "x<5", "5..8", "5-3", "5+3", "5*3"),
        "5**2",
        *["5,6", "5,5,5", "1.5.2", "192.168.1.1", "2026-01-05", "1/2/2026", "5\u0338", "5%-9%"],
        *(r"\sqrt{5}", r"\binom{5}{2}", r"5\pi", r"5\times 3", r"\log_2 5", r"\pm 5", "5,14"),
        "12,345,67",
        *(
            "5 x 3",
            "5 \u00d7 3",
            "5 * 3",
            "5 +/- 3",
            "x > 5",
            "\u2265 5",
            "sqrt(5)",
            "log 5",
            "5C2",
            "5 mod 3",
        ),
        *("5 cubed", "5j", "5\u22364", "5\u20266", "5 or 6", "either 5, or 6", "between 5 and 6"),
        *("5 (or 6)", "5. Or 6.", "5, maybe 6", "5 or perhaps 6", "5; alternatively, 6"),
        *("192 or 193", "192% or 193%", "x/5", "\u03c0/2", r"\frac{\pi}{2}", r"\frac{5}{-6}"),
        *(r"\frac{1.5}{2}", r"-\frac{-5}{6}", r"5-\frac{1}{2}"),
        "1/0 or 5",
        *(
            "more than 5",
            "5 is wrong",
            "5 isn't the one",
            "\u2260 5",
            "5 != 4",
            "5+",
            "never 5",
        ),
    ],
)
def test_attack_a_part_of_something_larger_was_read_as_the_number(text: str) -> None:
    """The mantissa of 5^2, the 5 of 5! and the first of 5,6,7 were 5."""
    found = find_numbers(text)
    assert {number.value for number in found} == {None}
    parts = (5, 1.5, 2, 3, 4, 6, 8, 9, 12, 192.168, 2026)
    assert not any(numeric_match(text, part) for part in parts)
    assert numeric_match(f"{text} 7", 7) == 0.0


def test_one_number_in_two_forms_is_no_choice_of_two() -> None:
    for answer in ("1/4 or 0.25", "25%, or 1/4", "0.25 or 25%"):
        for pick in ("first", "last"):
            value = 25 if pick == "first" and answer[2] == "%" else "1/4"
            value = 25 if pick == "last" and answer[-1] == "%" else value
            assert numeric_match(answer, value, pick=pick) == 1.0, (answer, pick)
    assert numeric_match("It went from 5 to 42.", 42, pick="last") == 1.0
    assert numeric_match("5 to 6", 5) == 0.0
    assert numeric_match("You need at least 42 or so", 42) == 1.0


def test_attack_a_minus_in_words_or_as_a_hyphen_is_no_sign() -> None:
    for answer in ("minus 42", "It is minus 42.", "Minus 42", "\u201042", "\u221242"):
        assert (numeric_match(answer, 42), numeric_match(answer, -42)) == (0.0, 1.0), answer
    assert numeric_match("50 minus 8", 50) == 1.0
    assert numeric_match("50 minus 8", 8, pick="last") == 1.0


@each(
    "answer",
    [
        *("not 42", "It is not 42.", "It isn't 42.", "It wasn\u2019t 42, and I know no more"),
        *("Not **42**", "not $42", "It is NOT\n42"),
    ],
)
def test_attack_a_number_that_is_denied_was_paid(answer: str) -> None:
    picks: list[Pick | None] = [None, "first", "last", "only"]
    assert [numeric_match(answer, 42, pick=pick) for pick in picks] == [0.0] * 4


def test_a_denial_of_something_else_denies_no_number_and_an_exclamation_is_no_factorial() -> None:
    for answer in ("It is 42, not 41.", "Not at all: 42", "Why not? 42", "a knot 42"):
        assert numeric_match(answer, 42) == 1.0, answer
    assert numeric_match("It is not 41. It is 42.", 42, pick="last") == 1.0
    assert numeric_match("The answer is 5!", 5) == numeric_match("It is 5! Yes", 5) == 1.0
    assert numeric_match("5!", 5) == numeric_match("It is 5!/2", 5) == 0.0


_RAISED = str.maketrans(
    "0123456789-", "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079\u207b"
)


@given(st.integers(1, 999), st.integers(-30, 30))
def test_powers_of_ten_are_read_in_every_spelling(mantissa: int, power: int) -> None:
    value = mantissa * Fraction(10) ** power
    raised = str(power).translate(_RAISED)
    for text in (f"{mantissa}e{power}", f"{mantissa} x 10^{power}", f"{mantissa}\u00d710{raised}"):
        assert [number.value for number in find_numbers(text)] == [value]


def test_attack_thousands_are_not_paid_as_the_number_before_the_k() -> None:
    for answer in ("42k", "$42k", "about 42k.", "$42M", "$42 M", "42bn", "42 bln", "€42 Mio"):
        assert numeric_match(answer, 42) == 0.0, answer
    right = {"42k": 42_000, "-1.5k": -1500, "$3.2M/year": 3_200_000, "5 bn": 5 * 10**9}
    for answer, value in right.items():
        assert numeric_match(answer, value) == 1.0, answer


@each(
    "answer",
    [
        *("42km", "42 kg", "42K", "42 K", "42M", "42 mn", "42k\N{OHM SIGN}", "$42 T-shirts"),
        *("$42 more", "$42 to you"),
    ],
)
def test_units_that_begin_like_thousands_are_units(answer: str) -> None:
    assert numeric_match(answer, 42) == 1.0


@given(st.integers(1, 999), st.sampled_from(["thousand", "million", "billion"]))
def test_scale_words_multiply(count: int, scale: str) -> None:
    value = count * {"thousand": 10**3, "million": 10**6, "billion": 10**9}[scale]
    assert numeric_match(f"about {count} {scale} people", value) == 1.0
    assert numeric_match(f"about {count} {scale} people", count) == 0.0
