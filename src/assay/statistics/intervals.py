"""What repeated trials say: a mean or a rate with its uncertainty, pass@k and pass^k.

Values that come in clusters, such as the criteria of one answer: `clustered_interval` gives every
cluster the same weight; `cluster_mean` gives it to every value, and the clusters only say which of
them are not independent.

All of it holds at the sizes that evaluations have, a handful of cases with a few trials each:
Student's t instead of the normal for means, Wilson's interval instead of Wald's for rates, and no
interval of width 0 just because a few trials happened to agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from math import fsum, inf, prod, sqrt

from assay.errors import ScoreError
from assay.frozen import frozen
from assay.scoring.results import finite_number
from assay.statistics.quantiles import normal_quantile, t_quantile, two_sided

_SAME = 1e-9
"""Values closer than this are equal: the difference is rounding in a judge's or a sum's float."""

_LARGEST = 1e100
"""Values beyond this are refused: their squares would come near the end of the float range."""


@frozen
class Interval:
    """An estimate with the range that the true value plausibly lies in.

    Attributes:
        mean: The estimate (a mean, a rate or a coefficient); None where nothing was measured.
        low: Lower end; None where ``n`` is too small to say.
        high: Upper end; None exactly where ``low`` is.
        n: How many independent observations it rests on.
    """

    mean: float | None
    low: float | None
    high: float | None
    n: int

    def __contains__(self, value: float) -> bool:
        return self.low is not None and self.high is not None and self.low <= value <= self.high


def mean_interval(
    values: Sequence[float],
    *,
    confidence: float = 0.95,
    bounds: tuple[float, float] | None = (0.0, 1.0),
) -> Interval:
    """The mean of independent values, with an interval that is valid for few of them.

    Student's t, ``mean ± t(n - 1) * sd / sqrt(n)``, clipped to ``bounds``. Where all values are
    equal that formula claims certainty. Instead, with ``alpha = 1 - confidence``: outcomes of
    total probability ``q = 1 - (alpha / 2)**(1/n)`` may just not have turned up yet, and could lie
    at either bound. For rates of 0 and 1 this is the exact interval of Clopper and Pearson (1934).

    Args:
        values: One per independent observation. Leave out what could not be graded, and report
            how many that were. For several trials of one case see `clustered_interval`.
        confidence: How often such intervals contain the true mean.
        bounds: The range that values can have; (-1, 1) for differences of two scores, None where
            there is no limit (equal values then have no interval).

    Raises:
        ScoreError: For a value that is not a finite number or out of bounds, or a ``confidence``
            out of range.
    """
    numbers = _checked(values, bounds)
    n = len(numbers)
    if n == 0:
        two_sided(confidence)  # which refuses one that is none
        return Interval(None, None, None, 0)
    least, most = min(numbers), max(numbers)
    mean = min(max(fsum(numbers) / n, least), most)
    sd = sqrt(fsum((v - mean) ** 2 for v in numbers) / (n - 1)) if n > 1 else 0.0
    return spread_interval(
        mean, sd, n, least=least, most=most, confidence=confidence, bounds=bounds
    )


def spread_interval(
    mean: float,
    sd: float,
    n: int,
    *,
    least: float,
    most: float,
    confidence: float = 0.95,
    bounds: tuple[float, float] | None = (0.0, 1.0),
) -> Interval:
    """`mean_interval` of ``n`` values of which only this is known: more than memory holds."""
    upper = two_sided(confidence)
    if n == 1:
        return Interval(mean, None, None, 1)
    if most - least <= _SAME:
        if bounds is None:
            return Interval(mean, None, None, n)
        unseen = 1.0 - (1.0 - upper) ** (1.0 / n)
        low = mean - unseen * (mean - bounds[0])
        high = mean + unseen * (bounds[1] - mean)
        return Interval(mean, low, high, n)
    return _around(mean, t_quantile(upper, n - 1) * sd / sqrt(n), n, bounds)


def _around(mean: float, half: float, n: int, bounds: tuple[float, float] | None) -> Interval:
    low, high = bounds or (-inf, inf)
    return Interval(mean, max(mean - half, low), min(mean + half, high), n)


def clustered_interval(
    clusters: Sequence[Sequence[float]],
    *,
    confidence: float = 0.95,
    bounds: tuple[float, float] | None = (0.0, 1.0),
) -> Interval:
    """The mean over cases of each case's mean over its trials, with its interval.

    Trials of one case share its difficulty: they are not independent, and an interval over all
    trials would be too narrow. The cases are what was sampled, so ``n`` is the number of cases;
    every case counts the same, however many trials it has (Miller 2024, arXiv:2411.00640).

    Raises:
        ScoreError: For a case without values, or what `mean_interval` refuses.
    """
    means: list[float] = []
    for index, values in enumerate(clusters):
        if not values:
            raise ScoreError(f"clusters[{index}] is empty", hint="leave it out, and report it")
        numbers = _checked(values, bounds)
        means.append(min(max(fsum(numbers) / len(numbers), min(numbers)), max(numbers)))
    return mean_interval(means, confidence=confidence, bounds=bounds)


def wilson(successes: int, n: int, *, confidence: float = 0.95) -> Interval:
    """A rate of successes with its score interval (Wilson 1927).

    With ``p = successes / n`` and the normal quantile ``z``::

        (p + z² / 2n ± z * sqrt(p * (1 - p) / n + z² / 4n²)) / (1 + z² / n)
    """
    _check_counts(n, successes)
    z = normal_quantile(two_sided(confidence))
    if n == 0:
        return Interval(None, None, None, 0)
    low, high = score_interval(successes / n, n, z)
    return Interval(successes / n, low, high, n)


def score_interval(rate: float, n: float, z: float) -> tuple[float, float]:
    """The ends of Wilson's interval of a rate."""
    centre = rate + z * z / (2 * n)
    half = z * sqrt(rate * (1 - rate) / n + (z / (2 * n)) ** 2)
    scale = 1 + z * z / n
    # At 0 and at n successes the ends are exactly the rate; rounding must not put them beyond it.
    low = 0.0 if rate == 0.0 else min(rate, (centre - half) / scale)
    high = 1.0 if rate == 1.0 else max(rate, (centre + half) / scale)
    return low, high


def pass_at_k(n: int, c: int, k: int) -> float | None:
    """The chance that at least one of ``k`` tries passes, from ``n`` tries of which ``c`` passed.

    ``1 - C(n - c, k) / C(n, k)``, the unbiased estimate of Chen et al. 2021 (arXiv:2107.03374),
    as a product.

    Returns:
        The estimate, or None for ``k > n``: so many tries say nothing about more.

    Raises:
        ScoreError: Unless ``0 <= c <= n`` and ``k >= 1``.
    """
    _check_tries(n, c, k)
    return None if k > n else 1.0 - _none_drawn(n, c, k)


def pass_hat_k(n: int, c: int, k: int) -> float | None:
    """The chance that ``k`` tries *all* pass, from ``n`` tries of which ``c`` passed: pass^k.

    ``C(c, k) / C(n, k)``, the unbiased estimate of Yao et al. 2024 (tau-bench, arXiv:2406.12045),
    as a product.

    Raises:
        ScoreError: Unless ``0 <= c <= n`` and ``k >= 1``.
    """
    _check_tries(n, c, k)
    return None if k > n else _none_drawn(n, n - c, k)


def _none_drawn(n: int, marked: int, k: int) -> float:
    """The chance that ``k`` of ``n``, drawn at random, miss all marked ones."""
    if marked + k > n:
        return 0.0
    # C(n - marked, k) / C(n, k) is symmetric in the two; the smaller makes the shorter product.
    few, many = sorted((marked, k))
    return prod((n - many - j) / (n - j) for j in range(few))


def _checked(values: Sequence[float], bounds: tuple[float, float] | None) -> list[float]:
    low, high = bounds or (-_LARGEST, _LARGEST)
    if not -_LARGEST <= low < high <= _LARGEST:
        raise ScoreError(f"bounds are ({low}, {high})", hint="(lowest, highest), finite, or None")
    return [
        value + 0.0
        if type(value) is float and low <= value <= high
        else _bounded(value, i, low, high)
        for i, value in enumerate(values)
    ]


def _bounded(value: float, index: int, low: float, high: float) -> float:
    number = finite_number(value, what=f"values[{index}]")
    if not low <= number <= high:
        raise ScoreError(
            f"values[{index}] is {number}, outside of [{low:g}, {high:g}]",
            hint="pass the range that values can have as bounds",
        )
    return number


def _check_tries(n: int, c: int, k: int) -> None:
    _check_counts(n, c)
    if isinstance(k, bool) or k < 1:
        raise ScoreError(f"k is {k!r}", hint="it must be 1 or more")


def _check_counts(n: int, successes: int) -> None:
    if isinstance(n, bool) or isinstance(successes, bool) or not 0 <= successes <= n:
        raise ScoreError(f"{successes} successes of {n}", hint="it takes 0 <= successes <= n")


@frozen
class Measured:
    """A statistic, its interval if it has one, and what was left out of it."""

    # The value (`Interval.mean`, None where nothing could be measured), its ends where a formula
    # gives them, and the number of observations it rests on. Statistics whose ends are None get
    # them from `assay.statistics.bootstrap`.
    estimate: Interval
    # Observations left out because something of them was None. They are no class and no zero: show
    # them beside the value.
    excluded: int = 0

    @property
    def value(self) -> float | None:
        """The statistic itself; None where it was not measured."""
        return self.estimate.mean

    @property
    def n(self) -> int:
        """How many observations it rests on."""
        return self.estimate.n

    @property
    def coverage(self) -> float | None:
        """Share of the observations that could be used; None for no observations."""
        return ratio(self.n, self.n + self.excluded)


def ratio(part: float, whole: float) -> float | None:
    """``part / whole``, and None where the whole is 0: that was not measured."""
    return part / whole if whole else None


def check_same_length(**columns: Sequence[object] | None) -> None:
    """Check that columns describe the same observations; a column of None is not there."""
    lengths = {name: len(column) for name, column in columns.items() if column is not None}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{length} {name}" for name, length in lengths.items())
        raise ScoreError(f"different lengths: {told}", hint="one of each for every observation")


_ROUNDING = 1e-12
"""A standard error below this share of the mean is rounding: the clusters do not differ."""


@frozen
class ClusterMean:
    """A mean of clustered values."""

    # The mean over all values with its interval; ``n`` is the number of *clusters*.
    estimate: Interval
    values: int
    excluded: int
    # The cluster-robust standard error; None for fewer than two clusters.
    standard_error: float | None
    # What it would be if all values were independent, for comparison; None for fewer than two
    # values.
    naive_standard_error: float | None

    @property
    def mean(self) -> float | None:
        """The mean over all values; None where there are none."""
        return self.estimate.mean


def cluster_mean(
    values: Sequence[float | None],
    clusters: Sequence[Hashable] | None = None,
    *,
    confidence: float = 0.95,
    bounds: tuple[float, float] | None = (0.0, 1.0),
) -> ClusterMean:
    """The mean over values, with a standard error that allows for what clusters share.

    ``sqrt(sum_c (sum_{i in c} (v_i - mean))²) / n``, over clusters c of n values in all (Liang and
    Zeger 1986; for evaluations Miller 2024, arXiv:2411.00640). The interval is Student's t with
    one degree of freedom less than there are clusters G, and carries the factor
    ``sqrt(G / (G - 1))``: with a cluster for each value it is that of `mean_interval`. Where the
    values do not vary at all, it is that of `mean_interval` over clusters.
    """
    check_same_length(values=values, clusters=clusters)
    names = range(len(values)) if clusters is None else clusters
    kept = [(name, v) for name, v in zip(names, values, strict=True) if v is not None]
    excluded = len(values) - len(kept)
    # It also checks confidence, bounds and every number.
    plain = mean_interval([v for _, v in kept], confidence=confidence, bounds=bounds)
    if plain.mean is None:
        return ClusterMean(plain, 0, excluded, None, None)
    members: dict[Hashable, list[float]] = {}
    for name, value in kept:
        members.setdefault(name, []).append(float(value))
    n, groups, mean = len(kept), len(members), plain.mean
    naive = sqrt(fsum((v - mean) ** 2 for _, v in kept) / (n - 1) / n) if n > 1 else None
    if groups < 2:
        return ClusterMean(Interval(mean, None, None, groups), n, excluded, None, naive)
    sums = [fsum(v - mean for v in each) for each in members.values()]
    error = sqrt(fsum(s * s for s in sums)) / n
    if error <= _ROUNDING * max(1.0, abs(mean)):
        error = 0.0
    interval = _interval(mean, error, members, confidence=confidence, bounds=bounds)
    return ClusterMean(interval, n, excluded, error, naive)


def are_clustered(clusters: Sequence[Hashable] | None) -> bool:
    """Whether some observations share a cluster."""
    return clusters is not None and len(set(clusters)) < len(clusters)


def cluster_rate(
    outcomes: Sequence[bool],
    clusters: Sequence[Hashable] | None = None,
    *,
    confidence: float = 0.95,
) -> Interval:
    """A rate of successes with an interval that allows for what clusters share.

    Wilson's interval where no two outcomes share a cluster. Else Wilson's of as many independent
    outcomes as these are worth, ``n / d``, with Student's t of one degree of freedom less than
    there are clusters (after Korn and Graubard 1998). The design effect d is the variance of
    `cluster_mean` over that of independent outcomes, and at least 1; where all outcomes are alike
    it cannot be estimated, and is that of clusters whose outcomes are always alike.
    """
    check_same_length(values=outcomes, clusters=clusters)
    n, passed = len(outcomes), sum(outcomes)
    if clusters is None or not are_clustered(clusters):
        return wilson(passed, n, confidence=confidence)
    sizes, rate = Counter(clusters), passed / n
    if len(sizes) < 2:
        return Interval(rate, None, None, n)
    if 0 < passed < n:
        error = cluster_mean([float(one) for one in outcomes], clusters).standard_error or 0.0
        spread = error**2 * len(sizes) / (len(sizes) - 1)
        effect = max(1.0, spread * n / (rate * (1 - rate)))
    else:
        effect = sum(size * size for size in sizes.values()) / n
    low, high = score_interval(rate, n / effect, t_quantile(two_sided(confidence), len(sizes) - 1))
    return Interval(rate, low, high, n)


def _interval(
    mean: float,
    error: float,
    members: dict[Hashable, list[float]],
    *,
    confidence: float,
    bounds: tuple[float, float] | None,
) -> Interval:
    groups = len(members)
    if not error:
        means = [
            min(max(fsum(each) / len(each), min(each)), max(each)) for each in members.values()
        ]
        flat = mean_interval(means, confidence=confidence, bounds=bounds)
        return Interval(mean, flat.low, flat.high, groups)
    half = t_quantile(two_sided(confidence), groups - 1) * error * sqrt(groups / (groups - 1))
    return _around(mean, half, groups, bounds)
