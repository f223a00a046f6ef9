"""Ranks, tau, AUROC: the values of scipy and scikit-learn, ties and all."""

from __future__ import annotations

import importlib
import math
import random
import time
from collections.abc import Callable
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ScoreError
from assay.statistics.agreement import Correlation, agreement
from assay.statistics.bootstrap import bootstrap_items
from assay.statistics.ranking import auroc, ranks, spearman
from tests.each import each

small = st.integers(-3, 3).map(float)
columns = st.lists(st.tuples(small, small), max_size=25)


@pytest.fixture(scope="module")
def stats() -> Any:
    return importlib.import_module("scipy.stats")


def _columns(n: int, seed: int, *, steps: int | None) -> tuple[list[float], list[float]]:
    rng = random.Random(seed)
    x = [rng.random() for _ in range(n)]
    y = [a + rng.gauss(0, 0.5) for a in x]
    if steps is None:
        return x, y
    return [float(math.floor(a * steps)) for a in x], [float(math.floor(b * steps)) for b in y]


@pytest.mark.parametrize("steps", [None, 3, 20])
@pytest.mark.parametrize("n", [2, 3, 40, 501])
def test_correlations_of_ranks_are_scipys(n: int, steps: int | None, stats: Any) -> None:
    x, y = _columns(n, n, steps=steps)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert spearman(x, y).value is None
        return
    assert spearman(x, y).value == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    assert ranks(x) == stats.rankdata(x).tolist()


def test_items_without_a_number_are_left_out_and_counted() -> None:
    found = spearman([1, None, 2, 3, 4], [1, 5, 2, None, 4])
    assert (found.value, found.n, found.excluded) == (1.0, 3, 2)
    assert found.coverage == 0.6
    x, y = _columns(60, 3, steps=5)
    measure = agreement(x, y).measure  # which has no definition of its own
    assert isinstance(measure, Correlation)
    assert measure.spearman == spearman(x, y).value


# --- AUROC ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("steps", [1000, 10, 3])
def test_auroc_is_scikit_learns_and_mann_whitneys(steps: int, stats: Any) -> None:
    metrics: Any = importlib.import_module("sklearn.metrics")
    rng = random.Random(steps)
    labels = [rng.random() < 0.6 for _ in range(250)]
    scores = [math.floor(steps * rng.betavariate(2 + y, 2)) / steps for y in labels]
    found = auroc(scores, labels)
    assert found.value == pytest.approx(metrics.roc_auc_score(labels, scores), abs=1e-14)
    yes = [s for s, y in zip(scores, labels, strict=True) if y]
    no = [s for s, y in zip(scores, labels, strict=True) if not y]
    u = stats.mannwhitneyu(yes, no).statistic
    assert found.value == pytest.approx(u / (len(yes) * len(no)), abs=1e-14)
    assert found.value is not None
    assert found.value in found.estimate


@given(rows=st.lists(st.tuples(small, st.booleans()), max_size=25))
def test_auroc_counts_won_comparisons(rows: list[tuple[float, bool]]) -> None:
    yes, no = [s for s, y in rows if y], [s for s, y in rows if not y]
    found = auroc([s for s, _ in rows], [y for _, y in rows])
    turned = auroc([-s for s, _ in rows], [y for _, y in rows])
    if found.value is None or turned.value is None:
        assert not yes or not no
        return
    won = sum((a > b) + (a == b) / 2 for a in yes for b in no)
    assert found.value == pytest.approx(won / (len(yes) * len(no)), abs=1e-14)
    assert turned.value == pytest.approx(1 - found.value, abs=1e-14)
    low, high = found.estimate.low, found.estimate.high
    if low is not None and high is not None:
        assert 0 < low <= found.value <= high < 1


def test_the_interval_is_delongs() -> None:
    numpy: Any = importlib.import_module("numpy")
    rng = random.Random(4)
    labels = [i % 3 > 0 for i in range(90)]
    scores = [rng.gauss(0.8 * y, 1) for y in labels]
    yes = numpy.array([s for s, y in zip(scores, labels, strict=True) if y])
    no = numpy.array([s for s, y in zip(scores, labels, strict=True) if not y])
    won = (yes[:, None] > no[None, :]).astype(float)
    area = won.mean()
    variance = won.mean(axis=1).var(ddof=1) / len(yes) + won.mean(axis=0).var(ddof=1) / len(no)
    half = 1.959963984540054 * math.sqrt(variance) / (area * (1 - area))
    centre = math.log(area / (1 - area))
    found = auroc(scores, labels).estimate
    assert found.low == pytest.approx(1 / (1 + math.exp(half - centre)))
    assert found.high == pytest.approx(1 / (1 + math.exp(-half - centre)))


def test_repeated_items_in_clusters_say_no_more_than_once() -> None:
    rng = random.Random(5)
    labels = [i % 2 == 0 for i in range(60)]
    scores = [rng.gauss(y, 1) for y in labels]
    once = auroc(scores, labels).estimate
    fourfold = auroc(scores * 4, labels * 4, list(range(60)) * 4).estimate
    assert fourfold.n == 240
    assert (fourfold.low, fourfold.high) == pytest.approx((once.low, once.high), rel=1e-3)
    taken_as_new = auroc(scores * 4, labels * 4).estimate
    assert taken_as_new.low is not None
    assert once.low is not None
    assert taken_as_new.low > once.low + 0.03


def test_what_a_cluster_shares_is_part_of_the_interval() -> None:
    """A yes and a no of each case, both raised or lowered together: they vary less apart."""
    rng = random.Random(6)
    cases = [(x + 0.5, x + rng.gauss(0, 0.3)) for x in (rng.gauss(0, 1) for _ in range(80))]
    scores = [score for case in cases for score in case]
    labels = [True, False] * 80
    found = auroc(scores, labels, [i // 2 for i in range(160)]).estimate
    alone = auroc(scores, labels).estimate
    rows = [[(yes, True), (no, False)] for yes, no in cases]
    drawn = bootstrap_items(
        rows, lambda items: auroc([s for s, _ in items], [y for _, y in items]).value, resamples=500
    )
    widths: list[float] = []
    for one in (found, drawn.estimate, alone):
        assert one.low is not None
        assert one.high is not None
        widths.append(one.high - one.low)
    assert widths[0] == pytest.approx(widths[1], rel=0.15)
    assert widths[0] < 0.6 * widths[2]


def test_perfect_order_is_no_certainty() -> None:
    found = auroc([0.1, 0.2, 0.8, 0.9, None], [False, False, True, True, True])
    assert (found.value, found.estimate.low, found.excluded) == (1.0, None, 1)


@each(
    "call",
    [
        lambda: spearman([1, 2], [1]),
        lambda: spearman([math.nan], [1]),
        lambda: auroc([0.1, 0.2], cast("list[bool]", [1, 0])),
        lambda: auroc([0.1, math.inf], [True, False]),
    ],
)
def test_what_cannot_be_ranked_is_refused(call: Callable[[], object]) -> None:
    with pytest.raises(ScoreError):
        call()


def test_thirty_thousand_items_take_no_quadratic_time() -> None:
    x, y = _columns(30_000, 1, steps=None)
    begun = time.process_time()
    auroc(x, [b > 0.5 for b in y])
    assert time.process_time() - begun < 60
