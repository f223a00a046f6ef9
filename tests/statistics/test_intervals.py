"""Statistics: what scipy, scikit-learn and statsmodels say, and honesty at small n."""

from __future__ import annotations

import importlib
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import comb
from statistics import NormalDist
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ScoreError
from assay.statistics.agreement import Confusion, Correlation, agreement
from assay.statistics.intervals import (
    Interval,
    clustered_interval,
    mean_interval,
    pass_at_k,
    pass_hat_k,
    wilson,
)
from assay.statistics.quantiles import nearest_rank, normal_quantile, t_cdf, t_quantile
from tests.each import each

score = st.floats(0.0, 1.0)
confidences = st.floats(0.5, 0.999)
counts = st.integers(0, 60)
confusions = st.builds(Confusion, tp=counts, fp=counts, tn=counts, fn=counts)


@pytest.fixture(scope="module")
def stats() -> Any:
    return importlib.import_module("scipy.stats")


def bounds_of(interval: Interval) -> tuple[float, float]:
    assert interval.low is not None
    assert interval.high is not None
    return interval.low, interval.high


# --- quantiles -----------------------------------------------------------------------------------


def test_the_nearest_rank_is_the_smallest_that_enough_do_not_exceed() -> None:
    """The p99 of 100 was the largest, and the p50 of two the larger."""
    for size in (1, 2, 3, 7, 20, 100):
        for percent in range(101):
            rank = max(1, -(-percent * size // 100))
            assert nearest_rank(range(1, size + 1), percent / 100) == rank, (size, percent)


@given(p=st.floats(0.001, 0.999), df=st.sampled_from([1, 2, 99, 10_000]) | st.floats(1, 500))
def test_students_t_is_scipys(stats: Any, p: float, df: float) -> None:
    t = t_quantile(p, df)
    assert t == pytest.approx(stats.t.ppf(p, df), rel=1e-9, abs=1e-12)
    assert t_cdf(t, df) == pytest.approx(p, abs=1e-12)
    assert t_quantile(1 - p, df) == pytest.approx(-t, rel=1e-9, abs=1e-12)


def test_at_its_ends_students_t_is_certain_or_the_normal() -> None:
    assert (t_quantile(0.5, 3), t_cdf(0.0, 5)) == (0.0, 0.5)
    assert t_cdf(1e9, 3) == t_cdf(1e200, 3) == 1.0
    for p in (0.6, 0.975, 0.995):
        assert normal_quantile(p) == pytest.approx(NormalDist().inv_cdf(p), rel=1e-15)
        assert t_quantile(p, 1e7) == pytest.approx(normal_quantile(p), rel=1e-6)


@each(
    ("call", "said"),
    [
        *((lambda p=p: normal_quantile(p), "probability") for p in (0.0, 1.0, math.nan)),
        *((lambda p=p: t_quantile(p, 3), "probability") for p in (0.0, 1.0, math.nan)),
        *((lambda df=df: t_quantile(0.9, df), "degrees") for df in (0.5, math.nan, math.inf)),
        (lambda: mean_interval([0.0], bounds=(1.0, 0.0)), "bounds"),
        (lambda: mean_interval([0.0], bounds=(0.0, math.inf)), "bounds"),
        (lambda: mean_interval([0.0], bounds=(math.nan, 1.0)), "bounds"),
        (lambda: mean_interval([0.0], bounds=(0.0, 0.0)), "bounds"),
        *(
            (lambda share=share: mean_interval([0.1, 0.2], confidence=share), "confidence")
            for share in (0.0, 1.0, math.nan)
        ),
        (lambda: wilson(1, 2, confidence=1.0), "confidence"),
        *((lambda k=k: pass_at_k(4, 2, k), "k is") for k in (0, True)),
        *((lambda k=k: pass_hat_k(4, 2, k), "k is") for k in (0, True)),
        (lambda: clustered_interval([[1.0], []]), r"clusters\[1\] is empty"),
        (lambda: Confusion(tp=1, fp=-1, tn=0, fn=0), "negative"),
        (lambda: agreement([0.5], [True], threshold=math.nan), "threshold"),
    ],
)
def test_what_is_out_of_range_is_refused(call: Callable[[], object], said: str) -> None:
    with pytest.raises(ScoreError, match=said):
        call()


# --- means and rates -----------------------------------------------------------------------------


@given(values=st.lists(score, min_size=2, max_size=12), confidence=confidences)
def test_a_mean_has_students_interval_within_the_bounds(
    stats: Any, values: list[float], confidence: float
) -> None:
    interval = mean_interval(values, confidence=confidence)
    low, high = bounds_of(interval)
    assert interval.n == len(values)
    assert interval.mean is not None
    assert 0.0 <= low <= interval.mean <= high <= 1.0
    assert min(values) <= interval.mean <= max(values)
    assert interval.mean in interval
    if max(values) - min(values) > 1e-6:
        mean, error = math.fsum(values) / len(values), stats.sem(values)
        theirs = stats.t.interval(confidence, len(values) - 1, loc=mean, scale=error)
        everywhere = mean_interval(values, confidence=confidence, bounds=None)
        assert bounds_of(everywhere) == pytest.approx(theirs)
        assert (low, high) == pytest.approx((max(theirs[0], 0.0), min(theirs[1], 1.0)), abs=1e-9)


@given(n=st.integers(2, 60), confidence=confidences)
def test_a_few_equal_outcomes_are_not_certainty(stats: Any, n: int, confidence: float) -> None:
    exact = stats.binomtest(n, n).proportion_ci(confidence, "exact")  # Clopper and Pearson's
    assert bounds_of(mean_interval([1.0] * n, confidence=confidence)) == pytest.approx(
        (exact.low, 1.0)
    )
    assert bounds_of(mean_interval([0.0] * n, confidence=confidence)) == pytest.approx(
        (0.0, 1.0 - exact.low)
    )
    low, high = bounds_of(mean_interval([0.3, 0.1 + 0.2, 0.3]))  # equal up to rounding
    assert high - low > 0.5
    assert 0.0 in mean_interval([-1.0, -1.0], bounds=(-1.0, 1.0))


def test_rounding_does_not_carry_the_mean_out_of_the_values() -> None:
    assert mean_interval([0.1] * 3).mean == 0.1
    assert clustered_interval([[0.1] * 3, [0.1]]).mean == 0.1


@each("n", [2, 3, 5, 8, 13, 30])
def test_pass_rates_are_covered_as_often_as_promised(n: int) -> None:
    """Exact coverage over all outcomes, averaged over true rates: at least about 95 %."""
    intervals = [mean_interval([1.0] * c + [0.0] * (n - c)) for c in range(n + 1)]
    rates = [i / 50 for i in range(1, 50)]
    coverage = [
        sum(comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1) if p in intervals[c])
        for p in rates
    ]
    assert math.fsum(coverage) / len(rates) > 0.945


def test_what_tells_no_spread_has_no_interval_and_nothing_measured_is_not_zero() -> None:
    assert mean_interval([0.3]) == Interval(0.3, None, None, 1)
    assert 0.3 not in mean_interval([0.3])
    assert mean_interval([2.5, 2.5], bounds=None) == Interval(2.5, None, None, 2)
    nothing = Interval(None, None, None, 0)
    assert mean_interval([]) == clustered_interval([]) == wilson(0, 0) == nothing


@each("bad", [math.nan, math.inf, True, 1.5, -0.1, None])
def test_what_is_not_a_score_is_refused(bad: float) -> None:
    with pytest.raises(ScoreError, match=r"values\[1\]"):
        mean_interval([0.5, bad])
    with pytest.raises(ScoreError, match=r"values\[0\]"):
        clustered_interval([[0.5], [bad]])


def test_trials_of_one_case_do_not_narrow_the_interval() -> None:
    cases = [[1.0] * 50, [0.0] * 50, [1.0] * 50]
    assert clustered_interval(cases) == mean_interval([1.0, 0.0, 1.0])
    assert clustered_interval([[1.0, 1.0, 1.0, 1.0], [0.0]]).mean == 0.5  # cases count the same


@given(n=st.integers(1, 500), share=st.floats(0, 1), confidence=confidences)
def test_wilson_is_scipys(stats: Any, n: int, share: float, confidence: float) -> None:
    c = round(share * n)
    interval = wilson(c, n, confidence=confidence)
    theirs = stats.binomtest(c, n).proportion_ci(confidence, "wilson")
    low, high = bounds_of(interval)
    assert (low, high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)
    assert 0.0 <= low <= c / n <= high <= 1.0  # whatever rounding does
    assert (interval.mean, interval.n) == (c / n, n)


@each(("successes", "n"), [(3, 2), (-1, 2), (0, -1), (True, 2), (0, False)])
def test_impossible_counts_are_refused(successes: int, n: int) -> None:
    with pytest.raises(ScoreError, match="successes"):
        wilson(successes, n)
    with pytest.raises(ScoreError, match="successes"):
        pass_at_k(n, successes, 1)
    with pytest.raises(ScoreError, match="successes"):
        pass_hat_k(n, successes, 1)


@given(n=st.integers(1, 200), data=st.data())
def test_pass_at_k_and_pass_hat_k_are_those_of_the_binomials(n: int, data: st.DataObject) -> None:
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    assert pass_at_k(n, c, k) == pytest.approx(1 - comb(n - c, k) / comb(n, k), abs=1e-12)
    assert pass_hat_k(n, c, k) == pytest.approx(comb(c, k) / comb(n, k), rel=1e-9, abs=1e-12)
    # Too few tries say nothing about more.
    assert pass_at_k(n, c, n + 1) is pass_hat_k(n, c, n + 1) is pass_at_k(0, 0, 1) is None


# --- agreement -----------------------------------------------------------------------------------

# gpt-4o-mini as HealthBench's judge against physicians; measures of scikit-learn.
HEALTHBENCH = Confusion(tp=15933, fp=5481, tn=4225, fn=3871)


@each(
    ("confusion", "expected"),  # statsmodels 0.15.0, cohens_kappa(...).std_kappa
    [
        (HEALTHBENCH, 0.0059412050244055685),
        (Confusion(tp=40, fp=9, tn=45, fn=6), 0.07139360269998822),
    ],
)
def test_standard_error_of_kappa_is_statsmodels(confusion: Confusion, expected: float) -> None:
    assert confusion.kappa_standard_error() == pytest.approx(expected, rel=1e-10)
    # With many pairs the interval is the textbook one.
    low, high = bounds_of(confusion.kappa_interval())
    assert (high - low) / 2 == pytest.approx(1.959964 * expected, rel=0.03)


def test_eight_of_eight_is_not_certain_agreement() -> None:
    perfect = Confusion(tp=4, fp=0, tn=4, fn=0)
    assert perfect.kappa == 1.0
    assert perfect.kappa_standard_error() == pytest.approx(0.0, abs=1e-7)
    low, high = bounds_of(perfect.kappa_interval())
    assert low < 0.5
    assert high == 1.0


def test_kappa_at_the_edge_of_its_interval_is_still_in_it() -> None:
    low, high = bounds_of(Confusion(tp=0, fp=50, tn=0, fn=50).kappa_interval())
    assert low == -1.0
    assert high < -0.8
    # The counts added to these pull the interval's centre away from kappa by more than its width.
    for extreme in (
        Confusion(tp=1000, fp=2, tn=0, fn=0),
        Confusion(tp=1000, fp=0, tn=1000, fn=0),
    ):
        assert extreme.kappa is not None
        assert extreme.kappa in extreme.kappa_interval(confidence=0.8)


@pytest.mark.slow
@pytest.mark.parametrize(
    "cells",
    [(0.45, 0.05, 0.45, 0.05), (0.85, 0.05, 0.05, 0.05), (0.54, 0.186, 0.143, 0.131)],
)
@pytest.mark.parametrize("n", [8, 30, 100])
def test_true_kappa_is_covered_as_often_as_promised(cells: Sequence[float], n: int) -> None:
    rng = random.Random(0)
    truth = Confusion(*(round(1e6 * cell) for cell in cells)).kappa
    assert truth is not None
    drawn = [
        Confusion(*(picks.count(cell) for cell in range(4)))
        for picks in (rng.choices(range(4), cells, k=n) for _ in range(1000))
    ]
    defined = [c for c in drawn if c.kappa is not None]
    assert sum(truth in c.kappa_interval() for c in defined) / len(defined) > 0.92


def test_what_was_not_measured_is_none() -> None:
    nothing = Confusion(0, 0, 0, 0)
    assert nothing.accuracy is None
    assert nothing.kappa is None
    assert nothing.macro_f1 is None
    assert nothing.kappa_interval() == Interval(None, None, None, 0)
    one_class = Confusion(tp=9, fp=0, tn=0, fn=0)
    assert one_class.kappa is None
    assert one_class.balanced_accuracy is None
    assert one_class.macro_f1 == 1.0
    with pytest.raises(ScoreError, match="undefined"):
        one_class.kappa_standard_error()


@given(confusion=confusions)
def test_kappa_and_accuracy_are_within_their_intervals_and_yes_and_no_are_interchangeable(
    confusion: Confusion,
) -> None:
    accuracy = confusion.accuracy_interval()
    assert accuracy.mean == confusion.accuracy
    assert accuracy.mean is None or accuracy.mean in accuracy
    if confusion.kappa is None:
        assert confusion.kappa_interval().low is None
    else:
        low, high = bounds_of(confusion.kappa_interval())
        assert -1.0 <= low <= confusion.kappa <= high <= 1.0
    other = replace(confusion, tp=confusion.tn, tn=confusion.tp, fp=confusion.fn, fn=confusion.fp)
    assert other.kappa == confusion.kappa
    assert other.macro_f1 == pytest.approx(confusion.macro_f1)
    assert other.balanced_accuracy == pytest.approx(confusion.balanced_accuracy)
    assert other.sensitivity == confusion.specificity


def test_verdicts_and_scores_are_compared_with_yes_no_labels() -> None:
    result = agreement([True, 0.9, 0.5, 0.4, None, 0.0], [True, True, False, True, True, False])
    assert result.measure == Confusion(tp=2, fp=1, tn=1, fn=1)
    assert result.unscored == 1
    assert result.coverage == pytest.approx(5 / 6)
    strict = agreement([0.9, 1.0], [True, True], threshold=1.0)
    assert strict.measure == Confusion(tp=1, fp=0, tn=0, fn=1)


def test_scores_are_compared_with_numeric_labels() -> None:
    # scipy 1.17.1: pearsonr with its confidence interval, spearmanr
    result = agreement([0.1, 0.4, 0.4, 0.8, 0.9, 0.3, None], [1, 3, 2, 5, 4, 2, 9])
    measure = result.measure
    assert isinstance(measure, Correlation)
    assert measure.n == 6
    assert result.unscored == 1
    assert measure.pearson == pytest.approx(0.9249114902053782)
    assert measure.spearman == pytest.approx(0.8970588235294118)
    assert bounds_of(measure.pearson_interval()) == pytest.approx(
        (0.4545323623727257, 0.9919173985341679)
    )
    assert measure.mean_absolute_error == pytest.approx((0.9 + 2.6 + 1.6 + 4.2 + 3.1 + 1.7) / 6)
    assert measure.baseline_error == pytest.approx(7 / 6)


def correlation(predicted: list[float], labels: list[float]) -> Correlation:
    measure = agreement(list(predicted), list(labels)).measure
    assert isinstance(measure, Correlation)
    return measure


def test_constant_predictions_a_perfect_line_and_three_pairs_have_no_interval() -> None:
    constant = correlation([0.5, 0.5, 0.5], [1.0, 2.0, 3.0])
    assert (constant.pearson, constant.spearman) == (None, None)
    assert constant.pearson_interval() == Interval(None, None, None, 3)
    perfect = Correlation(9, 1.0, 1.0, 0.0, 0.5)
    assert perfect.pearson_interval() == Interval(1.0, None, None, 9)
    few = Correlation(3, 0.5, 0.5, 0.1, 0.2)
    assert few.pearson_interval() == Interval(0.5, None, None, 3)


@each("unit", [1e-300, 1.0, 1e99])
def test_neither_rounding_nor_the_unit_of_the_numbers_matters(unit: float) -> None:
    measure = correlation([1 * unit, 2 * unit, 4 * unit], [unit, 3 * unit, 2 * unit])
    assert measure.pearson == pytest.approx(3 / math.sqrt(84))
    same = [0.0, 0.0, 0.0, 2.0 * unit]
    assert correlation(same, same).pearson == 1.0


def test_nothing_to_compare_is_not_zero_agreement() -> None:
    empty = agreement([], [])
    assert empty.coverage is None
    assert empty.measure == Correlation(0, None, None, None, None)
    unscored = agreement([None, None], [True, False])
    assert unscored.coverage == 0.0
    assert unscored.measure == Confusion(0, 0, 0, 0)


@each(
    ("predicted", "labels", "says"),
    [
        ([0.5], [], "1 predictions for 0 labels"),
        ([0.5, 0.5], [True, 1.0], "mix"),
        ([True], [1.0], "bool"),
        ([math.nan], [True], "prediction"),
        ([math.nan], [1.0], "prediction"),
        ([0.5], [math.inf], "label"),
        ([0.5], ["yes"], "label"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    predicted: list[bool | float | None], labels: list[bool | float], says: str
) -> None:
    with pytest.raises(ScoreError, match=says):
        agreement(predicted, labels)


@given(
    pairs=st.lists(
        st.tuples(st.floats(-1e90, 1e90), st.floats(-1e90, 1e90)), min_size=2, max_size=10
    )
)
def test_correlations_are_bounded_and_symmetric(pairs: list[tuple[float, float]]) -> None:
    x, y = [a for a, _ in pairs], [b for _, b in pairs]
    forth, back = correlation(x, y), correlation(y, x)
    assert (forth.pearson, forth.spearman) == (back.pearson, back.spearman)
    assert forth.pearson is None or -1.0 <= forth.pearson <= 1.0
    assert forth.mean_absolute_error == back.mean_absolute_error
