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


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,234", [1234]),
        ("1,234,567.50", ["1234567.5"]),
        ("1_000", [1000]),
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
        ("10-5", [10, 5]),
        ("10 - 5", [10, 5]),
        ("10 -5", [10, -5]),
        ("2026-01-05", [2026, 1, 5]),
        ("1/2/2026", [1, 2, 2026]),
        ("v2 gives 7", [7]),
        ("H2O", []),
        ("GPT-4", [4]),
        ("1.2.3", ["1.2"]),
        ("192.168.1.1", ["192.168"]),
        ("1,23", [1, 23]),
        ("1234,567", [1234, 567]),
        ("12,345,67", [12, 345, 67]),
        ("1, 2, 3", [1, 2, 3]),
        ("0x10", []),
        ("seven", []),
        ("n=-5km", [-5]),
        ("24/7", ["24/7"]),
    ],
)
def test_find_numbers(text: str, values: list[int | str]) -> None:
    assert [number.value for number in find_numbers(text)] == [Fraction(value) for value in values]


@pytest.mark.parametrize("text", ["1e999999999", "1e1001", "7" * 1_001, "1/0", "9" * 2_000 + "/3"])
def test_a_number_beyond_reason_has_no_value(text: str) -> None:
    assert [number.value for number in find_numbers(text)] == [None]
    assert numeric_match(text, 1, tolerance=1e300) == 0.0


def test_a_number_beyond_reason_is_not_skipped_for_the_next() -> None:
    assert numeric_match("1e999999999 5", 5) == 0.0


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


@given(st.text())
def test_numbers_of_any_text_are_read(text: str) -> None:
    find_numbers(text)
    numeric_match(text, 1, pick="only")


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    ("answer", "pick", "score"),
    [
        ("5 then 7", "first", 0.0),
        ("5 then 7", "last", 1.0),
        ("5 then 7", "only", 0.0),
        ("7 = 7.0", "only", 1.0),
        ("5 then 7", None, 0.0),
    ],
)
def test_pick(answer: str, pick: Pick | None, score: float) -> None:
    assert numeric_match(answer, 7, pick=pick) == score


def test_listing_every_number_does_not_pay_where_only_one_counts() -> None:
    assert numeric_match(" ".join(map(str, range(100))), 42, pick="only") == 0.0


def test_extraction() -> None:
    assert numeric_match(r"5 \boxed{7 kg}", 7, extract="boxed") == 1.0
    assert numeric_match("5", 5, extract="boxed") == 0.0


@pytest.mark.parametrize(
    "arguments",
    [
        {"expected": True},
        {"expected": None},
        {"expected": float("nan")},
        {"expected": float("inf")},
        {"expected": Decimal("NaN")},
        {"expected": "five"},
        {"expected": "1e9999999"},
        {"expected": 5, "tolerance": -1},
        {"expected": 5, "tolerance": float("nan")},
        {"expected": 5, "tolerance": True},
        {"expected": 5, "relative_tolerance": float("inf")},
        {"expected": 5, "pick": "best"},
    ],
)
def test_what_an_author_gets_wrong_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        numeric_match("5", **arguments)
