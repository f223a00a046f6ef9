"""A judge asked again, in the other order, and under attack."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ScoreError
from assay.scoring.consistency import (
    OrderedVerdicts,
    PositionBias,
    Slot,
    attack_success,
    flip_rate,
    position_bias,
)
from assay.scoring.intervals import Interval, wilson
from assay.scoring.paired import mcnemar_exact

verdict = st.sampled_from(["met", "unmet", "na"]) | st.none()


# --- repeats -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("c", "k", "expected"), [(0, 5, 0.0), (1, 5, 0.4), (2, 5, 0.6), (5, 5, 0.0), (1, 2, 1.0)]
)
def test_the_flip_rate_of_two_words(c: int, k: int, expected: float) -> None:
    assert 2 * c * (k - c) / (k * (k - 1)) == expected
    assert flip_rate([[True] * c + [False] * (k - c)]).rate.mean == pytest.approx(expected)


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


def test_verdicts_of_mixed_kinds_are_refused() -> None:
    with pytest.raises(ScoreError):
        flip_rate([[True, 1]])


# --- order ---------------------------------------------------------------------------------------


def _pairs(table: tuple[int, int, int, int], right: tuple[int, int, int]) -> list[OrderedVerdicts]:
    """Pairs with these winners in the two orders (AA, AB, BA, BB) and so many right.

    Args:
        table: How often A won both, A then B, B then A, B both.
        right: How many are right with A first, with B first, and in both orders.
    """
    slots: list[tuple[Slot, Slot]] = [
        ("first", "second"),
        ("first", "first"),
        ("second", "second"),
        ("second", "first"),
    ]
    forward_only, both = right[0] - right[2], right[2]
    pairs: list[OrderedVerdicts] = []
    for cell, ((forward, swapped), count) in enumerate(zip(slots, table, strict=True)):
        for _ in range(count):
            if cell in (0, 3):
                good, both = both > 0, both - 1
            else:
                good, forward_only = forward_only > 0, forward_only - 1
            # Where the forward verdict is right, its winner is the better one.
            better = "a" if (forward == "first") == good else "b"
            pairs.append(OrderedVerdicts(forward, swapped, better))
    return pairs


@pytest.mark.parametrize(
    ("table", "right", "consistent", "kappa", "first_slot"),
    [  # three judges of LLMBar: GPT-4 and Falcon (Natural, CoT), ChatGPT (Neighbor, vanilla)
        ((38, 6, 3, 53), (94, 95, 90), 91, 0.8160261651676206, 0.515),
        ((7, 86, 0, 7), (49, 65, 14), 14, 0.01126695792136112, 0.93),
        ((52, 35, 3, 44), (30, 22, 7), 96, 0.4616197927680271, 0.6194029850746269),
    ],
)
def test_published_judges_and_the_order_of_answers(
    table: tuple[int, int, int, int],
    right: tuple[int, int, int],
    consistent: int,
    kappa: float,
    first_slot: float,
) -> None:
    n = sum(table)
    found = position_bias(_pairs(table, right))
    assert found.consistency == wilson(consistent, n)
    assert found.kappa == pytest.approx(kappa, abs=1e-12)
    assert found.first_slot.mean == pytest.approx(first_slot, abs=1e-12)
    assert found.forward_right == wilson(right[0], n)
    assert found.swapped_right == wilson(right[1], n)
    assert found.both_right == wilson(right[2], n)
    assert mcnemar_exact(right[0] - right[2], right[1] - right[2]) <= 1.0


def _one(forward: Slot | None, swapped: Slot | None) -> PositionBias:
    return position_bias([OrderedVerdicts(forward, swapped, "a")])


def test_always_the_first_slot_is_never_consistent() -> None:
    found = position_bias([OrderedVerdicts("first", "first", "a")] * 10)
    assert (found.consistency.mean, found.first_slot.mean) == (0.0, 1.0)
    assert (found.forward_right.mean, found.swapped_right.mean) == (1.0, 0.0)
    assert found.both_right.mean == 0.0


def test_always_a_tie_is_no_consistency() -> None:
    found = position_bias([OrderedVerdicts("tie", "tie", "a")] * 10)
    assert (found.consistency.mean, found.both_right.mean, found.ties) == (0.0, 0.0, 20)
    assert found.first_slot.mean is None
    assert found.kappa is None


def test_a_pair_with_one_verdict_is_left_out_and_counted() -> None:
    found = _one("first", None)
    assert (found.consistency.n, found.excluded, found.both_right.n) == (0, 1, 0)
    assert _one("first", "second").consistency.mean == 1.0


def test_unlabelled_pairs_have_consistency_but_no_accuracy() -> None:
    found = position_bias([OrderedVerdicts("first", "second")])
    assert (found.consistency.mean, found.both_right.mean) == (1.0, None)


def test_unknown_words_are_refused() -> None:
    word: Any = "A"
    for pair in (
        OrderedVerdicts(word, "first"),
        OrderedVerdicts("first", word),
        OrderedVerdicts("first", "first", word),
    ):
        with pytest.raises(ScoreError):
            position_bias([pair])


# --- attacks -------------------------------------------------------------------------------------


def test_no_attack_of_sixty_worked_is_not_that_none_ever_will() -> None:
    found = attack_success([False] * 60 + [None] * 2, [False] * 7 + [True])
    assert found.success == wilson(0, 60)
    assert found.success.high is not None
    assert found.success.high > 0.05
    assert found.false_alarms == wilson(1, 8)
    assert found.excluded == 2


def test_no_controls_no_false_alarm_rate() -> None:
    found = attack_success([True])
    assert (found.success.mean, found.false_alarms.mean) == (1.0, None)
    outcomes: Any = [1]
    with pytest.raises(ScoreError):
        attack_success(outcomes)


# --- clusters ------------------------------------------------------------------------------------


def test_what_clusters_share_makes_the_intervals_of_consistency_wider() -> None:
    names = [n // 10 for n in range(100)]
    is_odd = [name % 3 == 0 for name in names]
    flips = [[True, not one] for one in is_odd]
    pairs = [OrderedVerdicts("first", "first" if one else "second", "a") for one in is_odd]
    for alone, together in (
        (flip_rate(flips).rate, flip_rate(flips, names).rate),
        (position_bias(pairs).consistency, position_bias(pairs, names).consistency),
        (position_bias(pairs).first_slot, position_bias(pairs, names).first_slot),
        (position_bias(pairs).both_right, position_bias(pairs, names).both_right),
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
    pairs = [OrderedVerdicts("first", "tie"), OrderedVerdicts("second", None, "a")]
    assert position_bias(pairs, ["x", "y"]).consistency == position_bias(pairs).consistency
    items = [["a", "b"], ["a"], ["b", "b"]]
    assert flip_rate(items, [1, 2, 3]) == flip_rate(items)


def test_clusters_are_one_for_each() -> None:
    with pytest.raises(ScoreError, match="different lengths"):
        flip_rate([["a", "b"]], [1, 2])
    with pytest.raises(ScoreError, match="different lengths"):
        position_bias([], ["x"])
    with pytest.raises(ScoreError, match="different lengths"):
        attack_success([True], clusters=[])


def _length(found: Interval) -> float:
    assert found.low is not None
    assert found.high is not None
    return found.high - found.low
