"""Clustered means, paired comparisons, exact tests: the values of statsmodels and scipy."""

from __future__ import annotations

import importlib
import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ScoreError
from assay.statistics.intervals import cluster_mean, mean_interval
from assay.statistics.paired import mcnemar_exact, paired_difference
from tests.each import each

scores = st.floats(0, 1)


def _clustered(n: int, clusters: int, seed: int) -> tuple[list[float], list[int]]:
    rng = random.Random(seed)
    names = [rng.randrange(clusters) for _ in range(n)]
    ease = [rng.betavariate(2, 2) for _ in range(clusters)]
    return [float(rng.random() < ease[c]) for c in names], names


# --- clustered means -----------------------------------------------------------------------------


@each(
    ("n", "clusters", "mean", "error", "naive"),
    [  # statsmodels 0.15.0, OLS with cov_type="cluster" and no correction; numpy's std
        (30, 4, 0.23333333333333334, 0.10509255180289628, 0.07854032324531726),
        (200, 20, 0.485, 0.04025591571433942, 0.03542810683297717),
        (400, 80, 0.575, 0.03528322901889796, 0.024748104405776173),
    ],
)
def test_the_cluster_robust_error_is_that_of_statsmodels(
    n: int, clusters: int, mean: float, error: float, naive: float
) -> None:
    found = cluster_mean(*_clustered(n, clusters, n))
    assert found.standard_error == pytest.approx(error, abs=1e-14)
    assert found.naive_standard_error == pytest.approx(naive, abs=1e-14)
    assert found.mean == pytest.approx(mean)
    assert (found.values, found.estimate.n) == (n, clusters)


@given(values=st.lists(scores, max_size=12))
def test_without_clusters_it_is_the_plain_interval(values: list[float]) -> None:
    found, plain = cluster_mean(values).estimate, mean_interval(values)
    assert found.n == plain.n
    for end in ("mean", "low", "high"):
        assert getattr(found, end) == pytest.approx(getattr(plain, end), abs=1e-9)


def test_equal_values_of_few_clusters_are_not_certain() -> None:
    found = cluster_mean([1.0] * 40, [i % 4 for i in range(40)]).estimate
    assert found.low == pytest.approx(mean_interval([1.0] * 4).low)
    assert cluster_mean([1.0, 0.0], ["a", "a"]).estimate.low is None


def test_values_of_none_are_left_out_and_counted() -> None:
    found = cluster_mean([1.0, None, 0.0, None], ["a", "a", "b", "c"])
    assert (found.mean, found.values, found.excluded, found.estimate.n) == (0.5, 2, 2, 2)
    assert cluster_mean([None]).mean is None


# --- pairs ---------------------------------------------------------------------------------------


def test_a_paired_difference_is_the_t_test_of_scipy() -> None:
    stats: Any = importlib.import_module("scipy.stats")
    rng = random.Random(1)
    a = [rng.random() for _ in range(40)]
    b = [min(1.0, max(0.0, x + rng.gauss(0.05, 0.2))) for x in a]
    found = paired_difference(a, b)
    theirs = stats.ttest_rel(a, b)
    assert found.p_value == pytest.approx(theirs.pvalue, rel=1e-9)
    interval = theirs.confidence_interval()
    assert found.difference.estimate.low == pytest.approx(interval.low, rel=1e-9)
    assert found.difference.estimate.high == pytest.approx(interval.high, rel=1e-9)
    assert found.correlation == pytest.approx(stats.pearsonr(a, b).statistic)


def test_the_error_of_a_difference_is_that_of_millers_formula() -> None:
    rng = random.Random(2)
    a = [rng.random() for _ in range(50)]
    b = [(x + rng.random()) / 2 for x in a]
    found = paired_difference(a, b)
    of_a, of_b = cluster_mean(a).standard_error, cluster_mean(b).standard_error
    assert of_a is not None
    assert of_b is not None
    assert found.correlation is not None
    variance = of_a**2 + of_b**2 - 2 * found.correlation * of_a * of_b
    assert found.difference.standard_error == pytest.approx(math.sqrt(variance))


def test_a_constant_gain_up_to_rounding_is_no_proof() -> None:
    a = [0.1 * i + 0.1 for i in range(9)]
    found = paired_difference(a, [0.1 * i for i in range(9)])
    assert found.p_value is None
    assert 0.0 in paired_difference(a[:2], [0.0, 0.1]).difference.estimate


def test_pairs_without_one_side_are_left_out_and_counted() -> None:
    found = paired_difference([1.0, None, 0.5], [0.0, 1.0, None], ["x", "y", "z"])
    assert (found.difference.mean, found.excluded, found.p_value) == (1.0, 2, None)
    assert paired_difference([], []).difference.mean is None


def test_pairs_in_clusters_are_fewer_than_they_seem() -> None:
    rng = random.Random(3)
    shift = [rng.gauss(0.1, 0.2) for _ in range(10)]
    b = [0.5] * 100
    a = [0.5 + max(-0.5, min(0.5, shift[i % 10])) for i in range(100)]
    alone = paired_difference(a, b)
    grouped = paired_difference(a, b, [i % 10 for i in range(100)])
    assert alone.p_value is not None
    assert grouped.p_value is not None
    assert grouped.p_value > 10 * alone.p_value


@each(
    "call",
    [
        lambda: cluster_mean([2.0]),
        lambda: cluster_mean([True]),
        lambda: cluster_mean([1.0], ["a", "b"]),
        lambda: paired_difference([1.0], [1.0, 0.0]),
        lambda: paired_difference([1.0, 0.0], [1.0, 0.0], ["a"]),
        lambda: mcnemar_exact(-1, 2),
    ],
)
def test_what_cannot_be_compared_is_refused(call: Callable[[], object]) -> None:
    with pytest.raises(ScoreError):
        call()


# --- McNemar -------------------------------------------------------------------------------------


@given(only_a=st.integers(0, 2_000), only_b=st.integers(0, 2_000))
def test_mcnemar_is_the_exact_test_of_a_fair_coin(only_a: int, only_b: int) -> None:
    stats: Any = importlib.import_module("scipy.stats")
    n = only_a + only_b
    expected = stats.binomtest(only_a, n).pvalue if n else 1.0
    assert mcnemar_exact(only_a, only_b) == pytest.approx(expected, rel=1e-9, abs=1e-300)


def test_mcnemar_of_thirty_thousand_is_exact_and_does_not_overflow() -> None:
    assert mcnemar_exact(15_000, 15_000) == 1.0
    assert 0 < mcnemar_exact(14_000, 16_000) < 1e-20
