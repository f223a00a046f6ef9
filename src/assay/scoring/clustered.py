"""The mean of values that come in clusters, such as the criteria of one answer.

`assay.scoring.intervals.clustered_interval` gives every cluster the same weight. Here every value
has the same weight, and the clusters only say which of them are not independent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import fsum, sqrt

from assay.scoring.intervals import Interval, mean_interval, score_interval, wilson
from assay.scoring.measured import check_same_length
from assay.scoring.quantiles import t_quantile, two_sided

__all__ = ["ClusterMean", "are_clustered", "cluster_mean", "cluster_rate"]

_ROUNDING = 1e-12
"""A standard error below this share of the mean is rounding: the clusters do not differ."""


@dataclass(frozen=True, slots=True)
class ClusterMean:
    """A mean of clustered values.

    Attributes:
        estimate: The mean over all values with its interval; ``n`` is the number of *clusters*.
        values: How many values there were.
        excluded: Values of None, which are no part of the mean.
        standard_error: The cluster-robust standard error; None for fewer than two clusters.
        naive_standard_error: What it would be if all values were independent, for comparison;
            None for fewer than two values.
    """

    estimate: Interval
    values: int
    excluded: int
    standard_error: float | None
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

    Args:
        values: One for each observation; None where it could not be measured.
        clusters: For each value the name of its cluster. Left out, all are independent.
        confidence: As in `mean_interval`.
        bounds: As in `mean_interval`.

    Raises:
        ScoreError: For different lengths, or what `mean_interval` refuses.
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

    Args:
        outcomes: One for each observation.
        clusters: For each outcome the name of its cluster. Left out, all are independent.
        confidence: How often such intervals contain the true rate.

    Returns:
        The rate; ``n`` counts outcomes. Outcomes of a single cluster have no interval.

    Raises:
        ScoreError: For different lengths, or a ``confidence`` out of range.
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
    low, high = mean - half, mean + half
    if bounds is not None:
        low, high = max(low, bounds[0]), min(high, bounds[1])
    return Interval(mean, low, high, groups)
