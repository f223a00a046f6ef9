"""Several raters: a textbook table, and definitions by brute force."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ScoreError
from assay.statistics.classes import AlphaMetric, krippendorff_alpha
from tests.each import each

_ = None
# Krippendorff's example of four observers and twelve units (2011, Computing Krippendorff's
# Alpha-Reliability, part D); one row for each observer.
OBSERVERS: list[list[int | None]] = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
    [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
]
UNITS: list[list[int | None]] = [list(unit) for unit in zip(*OBSERVERS, strict=True)]


ratings = st.lists(
    st.lists(st.integers(1, 4) | st.none(), min_size=3, max_size=3), min_size=1, max_size=12
)


# --- Krippendorff --------------------------------------------------------------------------------


@each(("metric", "expected"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_krippendorffs_own_example(metric: AlphaMetric, expected: float) -> None:
    found = krippendorff_alpha(UNITS, metric=metric)
    assert found.value == pytest.approx(expected, abs=5e-4)
    assert (found.n, found.excluded) == (11, 1)


def _alpha_by_pairs(
    items: list[list[int | None]], distance: Callable[[list[int], int, int], float]
) -> float | None:
    """Each pair of one item, weighted by one over its other ratings, against all pairs."""
    units = [[r for r in item if r is not None] for item in items]
    units = [unit for unit in units if len(unit) > 1]
    pool = [r for unit in units for r in unit]
    n = len(pool)
    within = sum(
        distance(pool, a, b) / (len(unit) - 1) for unit in units for a in unit for b in unit
    )
    between = sum(distance(pool, a, b) for a in pool for b in pool)
    return 1 - (n - 1) * within / between if between else None


def _ordinal(pool: list[int], a: int, b: int) -> float:
    low, high = sorted((a, b))
    between = sum(low <= r <= high for r in pool)
    return (between - (pool.count(a) + pool.count(b)) / 2) ** 2


@given(items=ratings)
def test_alpha_is_that_of_all_pairs(items: list[list[int | None]]) -> None:
    distances: dict[AlphaMetric, Callable[[list[int], int, int], float]] = {
        "nominal": lambda _, a, b: float(a != b),
        "ordinal": _ordinal,
        "interval": lambda _, a, b: (a - b) ** 2,
    }
    for metric, distance in distances.items():
        expected = _alpha_by_pairs(items, distance)
        found = krippendorff_alpha(items, metric=metric).value
        assert found == (expected if expected is None else pytest.approx(expected, abs=1e-9))


def test_words_have_an_order_if_it_is_given() -> None:
    words = ["none", "low", "mid", "high", "full"]
    items = [[None if r is None else words[r - 1] for r in unit] for unit in UNITS]
    found = krippendorff_alpha(items, metric="ordinal", levels=words)
    assert found == krippendorff_alpha(UNITS, metric="ordinal")
    with pytest.raises(ScoreError):
        krippendorff_alpha(items, metric="ordinal")
    with pytest.raises(ScoreError, match="not among the levels"):
        krippendorff_alpha(items, metric="ordinal", levels=words[:2])


def test_alpha_of_one_opinion_is_not_measured() -> None:
    assert krippendorff_alpha([["a", "a"], ["a", None]]).value is None
    assert krippendorff_alpha([[0.3, 0.3], [0.3, 0.3]], metric="interval").value is None
    assert krippendorff_alpha([["a", None], [None, "b"]]).excluded == 2
    assert krippendorff_alpha([]).value is None


@pytest.mark.parametrize("items", [[["a", 1]], [[True, 1]]])
def test_ratings_of_mixed_kinds_are_refused(items: Any) -> None:
    with pytest.raises(ScoreError):
        krippendorff_alpha(items)
    with pytest.raises(ScoreError):
        krippendorff_alpha(items, metric="interval")
    with pytest.raises(ScoreError):
        krippendorff_alpha([[math.nan, 1.0]], metric="interval")


def test_alpha_of_many_different_numbers_is_quick() -> None:
    rng = random.Random(2)
    items = [[x, x + rng.gauss(0, 1)] for x in (rng.gauss(0, 1) for _ in range(30_000))]
    # Two numbers of one item differ by 1 squared, any two by twice their variance of 1.5.
    found = krippendorff_alpha(items, metric="interval").value
    assert found == pytest.approx(1 - 1 / 3, abs=0.02)
