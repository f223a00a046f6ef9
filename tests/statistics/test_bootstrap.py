"""Cluster bootstrap: scipy's BCa, promised coverage, fixed seeds, and where it must keep silent."""

from __future__ import annotations

import importlib
import math
import random
import time
from collections.abc import Sequence
from typing import Any

import pytest

from assay.errors import ScoreError
from assay.statistics.agreement import Confusion, counts_by_cluster
from assay.statistics.bootstrap import (
    Bootstrap,
    bootstrap,
    bootstrap_all,
    bootstrap_items,
)
from assay.statistics.intervals import cluster_mean
from assay.statistics.ranking import pearson


def _mean(totals: Sequence[float]) -> float | None:
    return totals[0] / totals[1] if totals[1] else None


def _kappa(totals: Sequence[int]) -> float | None:
    return Confusion(*totals).kappa


def _ends(found: Bootstrap) -> tuple[float, float]:
    assert found.estimate.low is not None
    assert found.estimate.high is not None
    return found.estimate.low, found.estimate.high


def _judged(n: int, clusters: int, seed: int) -> tuple[list[bool | None], list[bool], list[int]]:
    """Verdicts and labels; whether the judge is right depends on the cluster too."""
    rng = random.Random(seed)
    names = [rng.randrange(clusters) for _ in range(n)]
    skill = [rng.betavariate(4, 2) for _ in range(clusters)]
    labels = [rng.random() < 0.67 for _ in range(n)]
    said: list[bool | None] = [
        y if rng.random() < skill[c] else not y for y, c in zip(labels, names, strict=True)
    ]
    return said, labels, names


@pytest.mark.parametrize("seed", range(3))
def test_bca_is_scipys(seed: int) -> None:
    stats: Any = importlib.import_module("scipy.stats")
    numpy: Any = importlib.import_module("numpy")
    rng = random.Random(seed)
    values = [rng.expovariate(1) for _ in range(40)]
    ours = bootstrap([(v, 1.0) for v in values], _mean, resamples=10_000)
    theirs = stats.bootstrap(
        (values,), numpy.mean, n_resamples=10_000, method="BCa", rng=numpy.random.default_rng(1)
    )
    assert ours.method == "bca"
    assert ours.estimate.mean == pytest.approx(math.fsum(values) / 40)
    interval = theirs.confidence_interval
    assert _ends(ours) == pytest.approx((interval.low, interval.high), abs=0.02)
    assert ours.standard_error == pytest.approx(theirs.standard_error, rel=0.05)


def test_clusters_are_what_is_drawn() -> None:
    said, labels, names = _judged(2000, 40, 1)
    rows = counts_by_cluster(said, labels, names)
    by_cluster = bootstrap(rows, lambda t: Confusion(*t).accuracy)
    alone = bootstrap(
        counts_by_cluster(said, labels, range(2000)), lambda t: Confusion(*t).accuracy
    )
    right = [float(p == y) for p, y in zip(said, labels, strict=True)]
    known = cluster_mean(right, names)
    assert by_cluster.standard_error == pytest.approx(known.standard_error, rel=0.08)
    assert alone.standard_error == pytest.approx(known.naive_standard_error, rel=0.08)
    assert by_cluster.estimate.n == 40


def test_same_seed_same_interval_whatever_the_order_of_clusters() -> None:
    rows = counts_by_cluster(*_judged(300, 30, 2))
    assert bootstrap(rows, _kappa) == bootstrap(rows[::-1], _kappa)
    assert bootstrap(rows, _kappa) != bootstrap(rows, _kappa, seed=1)


def test_several_statistics_share_their_resamples() -> None:
    rows = counts_by_cluster(*_judged(300, 30, 2))
    both = bootstrap_all(rows, {"kappa": _kappa, "mcc": lambda t: Confusion(*t).mcc})
    assert both["kappa"] == bootstrap(rows, _kappa)
    assert both["mcc"].estimate.mean == pytest.approx(0.32, abs=0.2)


def test_rows_of_few_kinds_are_drawn_as_if_one_by_one() -> None:
    """600 items of four kinds are drawn kind by kind; made all different, one by one."""
    said, labels, _ = _judged(600, 20, 3)
    rows = counts_by_cluster(said, labels, range(600))
    quick = bootstrap(rows, _kappa, resamples=4000)
    slow = bootstrap(
        [(*row, i) for i, row in enumerate(rows)],
        lambda t: Confusion(*t[:4]).kappa,
        resamples=4000,
    )
    assert _ends(quick) == pytest.approx(_ends(slow), abs=0.012)
    assert quick.standard_error == pytest.approx(slow.standard_error, rel=0.06)


@pytest.mark.parametrize("ones", [3, 150, 390])
def test_drawing_by_kind_is_binomial(ones: int) -> None:
    drawn: list[float] = []

    def share(totals: Sequence[float]) -> float:
        drawn.append(totals[0])
        return totals[0] / 400

    bootstrap([(1,)] * ones + [(0,)] * (400 - ones), share, resamples=5000)
    counts = drawn[1:5001]  # the first is the estimate, the last are the jackknife's
    p, mean = ones / 400, math.fsum(counts) / 5000
    spread = 400 * p * (1 - p)
    assert mean == pytest.approx(ones, abs=3.5 * math.sqrt(spread / 5000))
    variance = math.fsum((count - mean) ** 2 for count in counts) / 5000
    assert variance == pytest.approx(spread, rel=0.07)


def test_kappa_of_thirty_thousand_labels_takes_seconds() -> None:
    said, labels, names = _judged(30_000, 1_000, 4)
    begun = time.process_time()
    found = bootstrap(counts_by_cluster(said, labels, names), _kappa)
    assert time.process_time() - begun < 60
    assert found.estimate.mean == pytest.approx(0.32, abs=0.1)
    assert found.method == "bca"


@pytest.mark.soak
def test_intervals_hold_the_true_kappa_as_often_as_promised() -> None:
    held = 0
    for seed in range(100):
        rng = random.Random(seed)
        labels = [rng.random() < 0.5 for _ in range(120)]
        said = [y if rng.random() < 0.8 else not y for y in labels]
        rows = counts_by_cluster(said, labels, range(120))
        held += 0.6 in bootstrap(rows, _kappa, resamples=400).estimate
    assert held > 91


# --- silence and refusal -------------------------------------------------------------------------


def test_what_tells_no_spread_has_no_interval() -> None:
    always_right = [(1, 0, 0, 0)] * 6 + [(0, 0, 1, 0)] * 6
    found = bootstrap(always_right, _kappa)
    assert (found.estimate.mean, found.estimate.low, found.method) == (1.0, None, "none")
    found = bootstrap([(1.0,), (0.0,), (0.0,), (0.0,)], lambda t: t[0] if t[0] > 1.5 else None)
    assert (found.method, found.estimate.mean) == ("none", None)  # mostly undefined
    for rows in ([], [(5, 1, 3, 1)]):
        found = bootstrap(rows, _kappa)
        assert (found.method, found.estimate.n) == ("none", len(rows))
        assert (found.estimate.mean is None) == (not rows)


def test_resamples_without_a_value_are_left_out_and_counted() -> None:
    rows = [(3, 0, 1, 1)] + [(3, 0, 0, 0)] * 4
    found = bootstrap(rows, _kappa)
    assert 300 < found.undefined < 1000  # (4 / 5) ** 5 of 2000 lack the one cluster with a no
    assert found.method == "percentile"  # the jackknife too has no kappa without it


def test_what_cannot_be_resampled_is_refused() -> None:
    with pytest.raises(ScoreError, match="as many"):
        bootstrap([(1, 2), (1,)], lambda t: 0.0)
    with pytest.raises(ScoreError, match="finite"):
        bootstrap([(math.nan,), (1.0,)], lambda t: t[0])
    with pytest.raises(ScoreError, match="None where"):
        bootstrap([(1.0,), (2.0,)], lambda t: math.inf)
    with pytest.raises(ScoreError, match="resamples"):
        bootstrap([(1.0,), (2.0,)], lambda t: t[0], resamples=10)
    with pytest.raises(ScoreError):
        bootstrap([(1.0,), (2.0,)], lambda t: t[0], confidence=1.0)


# --- items ---------------------------------------------------------------------------------------


def test_items_are_resampled_with_their_cluster() -> None:
    rng = random.Random(6)
    items = [[(x, x + rng.gauss(0, 0.5))] for x in (rng.gauss(0, 1) for _ in range(60))]

    def correlation(rows: Sequence[tuple[float, float]]) -> float | None:
        return pearson([x for x, _ in rows], [y for _, y in rows])

    found = bootstrap_items(items, correlation, resamples=1000)
    low, high = _ends(found)
    assert found.estimate.mean is not None
    assert 0.8 < low < found.estimate.mean < high < 0.97
    assert bootstrap_items(items, correlation, resamples=1000) == found
    assert bootstrap_items(items[:1], correlation).method == "none"
