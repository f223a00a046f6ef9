"""Numbers for people: no rounding turns one statement into another, and bars hold what they say."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from assay.reports.figures import (
    apart,
    cost,
    count,
    duration,
    money,
    percent,
    percent_interval,
    score,
    score_interval,
)
from assay.reports.histogram import histogram
from assay.statistics.intervals import Interval
from tests.each import each

DASH = "\N{EN DASH}"


@each(
    ("show", "value", "shown"),
    [
        (score, 0.0, "0.00"),
        (score, 1.0, "1.00"),
        (score, 0.625, "0.62"),
        (score, 0.9996, "0.9996"),
        (score, 0.99999, "0.9999"),
        (score, 0.004, "0.0040"),
        (score, 0.00001, "1e-05"),
        (score, -0.1, "-0.10"),
        (score, None, DASH),
        (percent, 0.0, "0 %"),
        (percent, 0.001, "<1 %"),
        (percent, 0.5, "50 %"),
        (percent, 0.999, ">99 %"),
        (percent, 1.0, "100 %"),
        (percent, None, DASH),
    ],
)
def test_a_score_and_a_rate_are_never_rounded_to_none_or_all(
    show: Callable[[float | None], str], value: float | None, shown: str
) -> None:
    assert show(value) == shown


@each(
    ("value", "bar", "shown"),
    [
        (0.62, 0.7, ("0.62", "0.70")),
        (0.6996, 0.7, ("0.6996", "0.7000")),
        (0.7, 0.7, ("0.70", "0.70")),
        (0.1 + 0.2, 0.3, ("0.30", "0.30")),
        (0.699999999, 0.7, ("0.70", "0.70")),
        (0.69999999, 0.7, ("0.69999999", "0.70000000")),
        (0.699999998, 0.7, ("0.699999998", "0.7")),
    ],
)
def test_two_scores_show_which_is_larger(value: float, bar: float, shown: tuple[str, str]) -> None:
    assert apart(value, bar) == shown


def test_an_unknown_price_is_never_a_number() -> None:
    assert cost(None, 3) == "unknown"
    assert cost(None, 0) == "none"
    assert cost(0.0, 0) == "$0.00"
    assert cost(1.5, 2) == "$1.50 + 2 cells unknown"
    assert money(0.00042) == "$0.00042"
    assert money(0.000001) == "<$0.0001"
    assert money(1234.5) == "$1,234.50"


def test_small_words() -> None:
    assert [count(n, "cell") for n in (0, 1, 1200)] == ["0 cells", "1 cell", "1,200 cells"]
    assert [duration(s) for s in (0, 0.01, 2.34, 59.6, 125, 7300)] == [
        "0.0 s",
        "<0.1 s",
        "2.3 s",
        "1 min 0 s",
        "2 min 5 s",
        "2 h 1 min",
    ]
    assert score_interval(Interval(0.5, 0.25, 0.75, 4)) == f"0.25{DASH}0.75"
    assert percent_interval(Interval(0.5, 0.25, 0.75, 4)) == f"25{DASH}75 %"
    assert score_interval(Interval(0.5, None, None, 1)) == ""
    assert percent_interval(Interval(0.5, None, None, 1)) == ""


@pytest.mark.parametrize("number", [10, 20])
def test_a_score_at_an_edge_is_in_the_bar_that_begins_there(number: int) -> None:
    """0.15 / 0.05 is less than 3 as floats."""
    for place in range(number):
        counts = [one.count for one in histogram([place / number], number)]
        assert counts.index(1) == place
    assert histogram([1.0], number)[-1].count == 1
    bars = histogram([0.5], number)
    assert [one.low for one in bars] == pytest.approx([n / number for n in range(number)])
    assert bars[-1].high == 1.0


def test_bars_reach_as_far_as_the_scores() -> None:
    assert histogram([], 10) == ()
    wide = histogram([-1.0, 0.0, 3.0], 4)
    assert [(one.low, one.high, one.count) for one in wide] == [
        (-1.0, 0.0, 1),
        (0.0, 1.0, 1),
        (1.0, 2.0, 0),
        (2.0, 3.0, 1),
    ]
    most = sys.float_info.max
    assert [one.count for one in histogram([-most, 0.0, most], 2)] == [1, 2]
