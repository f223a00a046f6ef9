"""Statistics: golden values of scipy, scikit-learn and statsmodels, and honesty at small n."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from math import comb

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
scores = st.lists(score, min_size=1, max_size=12)
counts = st.integers(0, 60)
confusions = st.builds(Confusion, tp=counts, fp=counts, tn=counts, fn=counts)


def bounds_of(interval: Interval) -> tuple[float, float]:
    assert interval.low is not None
    assert interval.high is not None
    return interval.low, interval.high


# --- quantiles -----------------------------------------------------------------------------------


@each(
    ("size", "share", "rank"),
    [
        (100, 0.99, 99),
        (2, 0.5, 1),
        (3, 0.5, 2),
        (20, 0.95, 19),
        (100, 0.07, 7),
        (7, 0, 1),
        (7, 1, 7),
    ],
)
def test_the_nearest_rank_is_the_smallest_that_enough_do_not_exceed(
    size: int, share: float, rank: int
) -> None:
    """The p99 of 100 was the largest, and the p50 of two the larger."""
    assert nearest_rank(range(1, size + 1), share) == rank


T_PROBABILITIES = (0.6, 0.9, 0.975, 0.995)
# scipy 1.17.1, scipy.stats.t.ppf
T_QUANTILES = {
    1: (0.32491969623290634, 3.0776835371752544, 12.706204736174694, 63.656741162871526),
    2: (0.2886751345948128, 1.8856180831641272, 4.302652729749462, 9.924843200918287),
    4: (0.2707222947075976, 1.533206274058944, 2.7764451051977934, 4.604094871349992),
    9: (0.260955336473911, 1.3830287383966329, 2.262157162798205, 3.249835541592126),
    29: (0.25568363457125604, 1.311433647301551, 2.045229642132703, 2.756385903670605),
    99: (0.25402901215180673, 1.2901614420344854, 1.9842169515864174, 2.626405457280827),
    10_000: (0.253353843445727, 1.2816362297304775, 1.960201239890626, 2.5763210466685282),
}


@each("df", T_QUANTILES)
def test_t_quantiles_are_scipys(df: int) -> None:
    for p, expected in zip(T_PROBABILITIES, T_QUANTILES[df], strict=True):
        assert t_quantile(p, df) == pytest.approx(expected, rel=1e-10)
        assert t_quantile(1 - p, df) == pytest.approx(-expected, rel=1e-10)


@each(
    ("t", "df", "expected"),  # scipy 1.17.1, scipy.stats.t.cdf
    [
        (0.0, 5, 0.5),
        (0.5, 1, 0.6475836176504333),
        (2, 3, 0.9303370157205785),
        (-1.3, 7, 0.11738391769618862),
        (4, 30, 0.9998090771819581),
        (1e9, 3, 1.0),
        (1e200, 3, 1.0),
    ],
)
def test_t_probabilities_are_scipys(t: float, df: float, expected: float) -> None:
    assert t_cdf(t, df) == pytest.approx(expected, rel=1e-12)


def test_many_degrees_of_freedom_are_the_normal() -> None:
    for p in (0.6, 0.975, 0.995):
        assert t_quantile(p, 1e7) == pytest.approx(normal_quantile(p), rel=1e-6)
    assert t_quantile(0.5, 3) == 0.0


@given(p=st.floats(0.001, 0.999), df=st.floats(1, 500))
def test_t_quantile_inverts_its_cdf(p: float, df: float) -> None:
    assert t_cdf(t_quantile(p, df), df) == pytest.approx(p, abs=1e-12)


@each(
    ("call", "said"),
    [
        *((lambda p=p: normal_quantile(p), "p is|probability") for p in (0.0, 1.0, -0.1, math.nan)),
        *((lambda p=p: t_quantile(p, 3), "p is|probability") for p in (0.0, 1.0, -0.1, math.nan)),
        *(
            (lambda df=df: t_quantile(0.9, df), "degrees|df")
            for df in (0, -1, 0.5, math.nan, math.inf)
        ),
        (lambda: mean_interval([0.0], bounds=(1.0, 0.0)), "bounds"),
        (lambda: mean_interval([0.0], bounds=(0.0, math.inf)), "bounds"),
        (lambda: mean_interval([0.0], bounds=(math.nan, 1.0)), "bounds"),
        (lambda: mean_interval([0.0], bounds=(0.0, 0.0)), "bounds"),
        *(
            (lambda share=share: mean_interval([0.1, 0.2], confidence=share), "confidence")
            for share in (0.0, 1.0, 95, -0.5, math.nan)
        ),
        (lambda: wilson(1, 2, confidence=1.0), "confidence"),
        *((lambda k=k: pass_at_k(4, 2, k), "k is") for k in (0, -1, True)),
        *((lambda k=k: pass_hat_k(4, 2, k), "k is") for k in (0, -1, True)),
        (lambda: clustered_interval([[1.0], []]), r"clusters\[1\] is empty"),
        (lambda: Confusion(tp=1, fp=-1, tn=0, fn=0), "negative"),
        (lambda: agreement([0.5], [True], threshold=math.nan), "threshold"),
    ],
)
def test_what_is_out_of_range_is_refused(call: Callable[[], object], said: str) -> None:
    with pytest.raises(ScoreError, match=said):
        call()


# --- means and rates -----------------------------------------------------------------------------


def test_mean_interval_is_students() -> None:
    # scipy 1.17.1, scipy.stats.t.interval with df=4
    interval = mean_interval([0.2, 0.5, 0.9, 0.4, 0.7])
    assert interval.mean == pytest.approx(0.54)
    assert bounds_of(interval) == pytest.approx((0.20452086150733456, 0.8754791384926655))
    narrower = mean_interval([0.2, 0.5, 0.9, 0.4, 0.7], confidence=0.9)
    assert bounds_of(narrower) == pytest.approx((0.28240797272155244, 0.7975920272784475))


def test_scores_have_no_interval_outside_of_their_range() -> None:
    assert bounds_of(mean_interval([1.0, 0.0])) == (0.0, 1.0)
    low, high = bounds_of(mean_interval([1.0, 0.0], bounds=None))
    assert low < 0.0 < 1.0 < high


def test_a_few_equal_outcomes_are_not_certainty() -> None:
    # statsmodels 0.15.0, proportion_confint(method="beta")
    assert bounds_of(mean_interval([1.0] * 5)) == pytest.approx((0.4781762498950185, 1.0))
    assert bounds_of(mean_interval([0.0] * 3)) == pytest.approx((0.0, 0.7075982261787134))
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


@given(values=scores, confidence=st.floats(0.5, 0.999))
def test_mean_interval_contains_its_mean(values: list[float], confidence: float) -> None:
    interval = mean_interval(values, confidence=confidence)
    assert interval.n == len(values)
    assert interval.mean is not None
    assert min(values) <= interval.mean <= max(values)
    if len(values) > 1:
        low, high = bounds_of(interval)
        assert 0.0 <= low <= interval.mean <= high <= 1.0
        assert interval.mean in interval


@given(values=st.lists(score, min_size=2, max_size=12))
def test_more_confidence_is_a_wider_interval(values: list[float]) -> None:
    low, high = bounds_of(mean_interval(values, confidence=0.8))
    wide_low, wide_high = bounds_of(mean_interval(values, confidence=0.99))
    assert wide_low <= low
    assert high <= wide_high


def test_trials_of_one_case_do_not_narrow_the_interval() -> None:
    cases = [[1.0] * 50, [0.0] * 50, [1.0] * 50]
    assert clustered_interval(cases) == mean_interval([1.0, 0.0, 1.0])
    every_trial = [value for case in cases for value in case]
    low, high = bounds_of(clustered_interval(cases))
    naive_low, naive_high = bounds_of(mean_interval(every_trial))
    assert high - low > 3 * (naive_high - naive_low)
    assert clustered_interval([[1.0, 1.0, 1.0, 1.0], [0.0]]).mean == 0.5  # cases count the same


@each(
    ("successes", "n", "expected"),  # statsmodels 0.15.0, proportion_confint(method="wilson")
    [
        (20158, 29510, (0.6777584583820575, 0.6883748358919908)),
        (94, 100, (0.8752318455410406, 0.9722138760368118)),
        (7, 10, (0.39677814746114537, 0.8922087325936989)),
        (1, 2, (0.09453120573423068, 0.9054687942657693)),
        (0, 10, (0.0, 0.27753279986288926)),
        (10, 10, (0.7224672001371106, 1.0)),
    ],
)
def test_wilson_is_statsmodels(successes: int, n: int, expected: tuple[float, float]) -> None:
    interval = wilson(successes, n)
    assert interval.mean == successes / n
    assert bounds_of(interval) == pytest.approx(expected, abs=1e-12)


@given(n=st.integers(1, 500), data=st.data())
def test_wilson_contains_its_rate_and_mirrors(n: int, data: st.DataObject) -> None:
    c = data.draw(st.integers(0, n))
    low, high = bounds_of(wilson(c, n))
    assert 0.0 <= low <= c / n <= high <= 1.0
    mirrored_low, mirrored_high = bounds_of(wilson(n - c, n))
    assert (1 - mirrored_high, 1 - mirrored_low) == pytest.approx((low, high))


@each(("successes", "n"), [(3, 2), (-1, 2), (0, -1), (True, 2), (0, False)])
def test_impossible_counts_are_refused(successes: int, n: int) -> None:
    with pytest.raises(ScoreError, match="successes"):
        wilson(successes, n)
    with pytest.raises(ScoreError, match="successes"):
        pass_at_k(n, successes, 1)
    with pytest.raises(ScoreError, match="successes"):
        pass_hat_k(n, successes, 1)


# --- pass@k and pass^k ---------------------------------------------------------------------------


@each(
    ("n", "c", "k", "at_least_one", "all_of_them"),
    [
        (10, 3, 1, 0.3, 0.3),
        (10, 3, 5, 0.9166666666666666, 0.0),
        (200, 13, 100, 0.9999194971988055, 0.0),
        (5, 5, 5, 1.0, 1.0),
        (5, 0, 3, 0.0, 0.0),
        (4, 2, 2, 5 / 6, 1 / 6),
    ],
)
def test_pass_at_k_and_pass_hat_k(
    n: int, c: int, k: int, at_least_one: float, all_of_them: float
) -> None:
    assert pass_at_k(n, c, k) == pytest.approx(at_least_one, rel=1e-12)
    assert pass_hat_k(n, c, k) == pytest.approx(all_of_them, rel=1e-12)
    # Too few tries say nothing about more.
    assert pass_at_k(n, c, n + 1) is pass_hat_k(n, c, n + 1) is pass_at_k(0, 0, 1) is None


@given(n=st.integers(1, 60), data=st.data())
def test_pass_estimates_are_those_of_the_binomials(n: int, data: st.DataObject) -> None:
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    assert pass_at_k(n, c, k) == pytest.approx(1 - comb(n - c, k) / comb(n, k), abs=1e-12)
    assert pass_hat_k(n, c, k) == pytest.approx(comb(c, k) / comb(n, k), abs=1e-12)


@given(n=st.integers(2, 200), data=st.data())
def test_more_tries_help_to_pass_once_and_hurt_passing_always(n: int, data: st.DataObject) -> None:
    c = data.draw(st.integers(0, n))
    at = [p for k in range(1, n + 1) if (p := pass_at_k(n, c, k)) is not None]
    hat = [p for k in range(1, n + 1) if (p := pass_hat_k(n, c, k)) is not None]
    assert len(at) == len(hat) == n
    assert all(a <= b + 1e-12 for a, b in pairwise(at))
    assert all(a + 1e-12 >= b for a, b in pairwise(hat))
    assert at[0] == pytest.approx(hat[0])


# --- agreement -----------------------------------------------------------------------------------

# gpt-4o-mini as HealthBench's judge against physicians; measures of scikit-learn.
HEALTHBENCH = Confusion(tp=15933, fp=5481, tn=4225, fn=3871)


@each(
    ("confusion", "expected"),  # statsmodels 0.15.0, cohens_kappa(...).std_kappa
    [
        (HEALTHBENCH, 0.0059412050244055685),
        (Confusion(tp=20, fp=5, tn=15, fn=10), 0.12699606293110033),
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
    import random

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
def test_kappa_is_within_its_interval(confusion: Confusion) -> None:
    if confusion.kappa is None:
        assert confusion.kappa_interval().low is None
        return
    low, high = bounds_of(confusion.kappa_interval())
    assert -1.0 <= low <= confusion.kappa <= high <= 1.0


@given(confusion=confusions)
def test_yes_and_no_are_interchangeable(confusion: Confusion) -> None:
    other = replace(confusion, tp=confusion.tn, tn=confusion.tp, fp=confusion.fn, fn=confusion.fp)
    assert other.kappa == confusion.kappa
    assert other.macro_f1 == pytest.approx(confusion.macro_f1)
    assert other.balanced_accuracy == pytest.approx(confusion.balanced_accuracy)
    assert other.sensitivity == confusion.specificity


@given(confusion=confusions)
def test_accuracy_is_within_its_interval(confusion: Confusion) -> None:
    interval = confusion.accuracy_interval()
    assert interval.mean == confusion.accuracy
    assert interval.mean is None or interval.mean in interval


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


@given(values=st.lists(st.integers(-1000, 1000), min_size=2, max_size=10, unique=True))
def test_any_increasing_function_keeps_spearman_at_one(values: list[int]) -> None:
    measure = correlation([v / 10 for v in values], [float(v) ** 3 for v in values])
    assert measure.spearman == pytest.approx(1.0)
