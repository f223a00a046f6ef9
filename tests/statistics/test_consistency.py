"""A judge asked again, and under attack."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ScoreError
from assay.statistics.consistency import attack_success, flip_rate
from assay.statistics.intervals import Interval, wilson
from tests.each import each

verdict = st.sampled_from(["met", "unmet", "na"]) | st.none()


# --- repeats -------------------------------------------------------------------------------------


@given(items=st.lists(st.lists(verdict, max_size=6), max_size=8))
def test_a_flip_is_a_pair_of_repeats_that_differ(items: list[list[str | None]]) -> None:
    shares: list[float] = []
    for verdicts in items:
        pairs = list(combinations([v for v in verdicts if v is not None], 2))
        if pairs:
            shares.append(sum(a != b for a, b in pairs) / len(pairs))
    found = flip_rate(items)
    assert found.rate.n == len(shares) == len(items) - found.excluded
    assert found.flipped == sum(share > 0 for share in shares)
    assert found.unscored == sum(verdicts.count(None) for verdicts in items)
    if shares:
        assert found.rate.mean == pytest.approx(sum(shares) / len(shares))
    else:
        assert found.rate.mean is None


# --- attacks -------------------------------------------------------------------------------------


def test_no_attack_of_sixty_worked_is_not_that_none_ever_will() -> None:
    found = attack_success([False] * 60 + [None] * 2, [False] * 7 + [True])
    assert found.success == wilson(0, 60)
    assert found.success.high is not None
    assert found.success.high > 0.05
    assert found.false_alarms == wilson(1, 8)
    assert found.excluded == 2
    found = attack_success([True])  # no controls, no rate of false alarms
    assert (found.success.mean, found.false_alarms.mean) == (1.0, None)


# --- clusters ------------------------------------------------------------------------------------


def test_what_clusters_share_makes_the_intervals_of_consistency_wider() -> None:
    names = [n // 10 for n in range(100)]
    is_odd = [name % 3 == 0 for name in names]
    flips = [[True, not one] for one in is_odd]
    for alone, together in (
        (flip_rate(flips).rate, flip_rate(flips, names).rate),
        (attack_success(is_odd).success, attack_success(is_odd, clusters=names).success),
        (
            attack_success([], is_odd).false_alarms,
            attack_success([], is_odd, control_clusters=names).false_alarms,
        ),
    ):
        assert together.mean == pytest.approx(alone.mean)
        assert together.n == alone.n
        assert _length(together) > 1.5 * _length(alone)


def test_clusters_of_one_change_nothing() -> None:
    outcomes = [True, False, None, True]
    assert attack_success(outcomes, clusters=[1, 2, 3, 4]) == attack_success(outcomes)
    items = [["a", "b"], ["a"], ["b", "b"]]
    assert flip_rate(items, [1, 2, 3]) == flip_rate(items)


@each(
    ("call", "said"),
    [
        (lambda: flip_rate([["a", "b"]], [1, 2]), "different lengths"),
        (lambda: attack_success([True], clusters=[]), "different lengths"),
        (lambda: flip_rate([[True, 1]]), "."),
        (lambda: attack_success(cast("list[bool]", [1])), "."),
    ],
)
def test_what_cannot_be_counted_is_refused(call: Callable[[], object], said: str) -> None:
    with pytest.raises(ScoreError, match=said):
        call()


def _length(found: Interval) -> float:
    assert found.low is not None
    assert found.high is not None
    return found.high - found.low
