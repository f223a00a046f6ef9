"""Histograms of scores: what is in which bar."""

from __future__ import annotations

import sys

import pytest

from assay.reports.histogram import histogram


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
