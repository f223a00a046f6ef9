"""Two graders, or two agents, on the same items: differences and exact tests."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from assay.errors import ScoreError
from assay.scoring.results import finite_number
from assay.statistics.intervals import ClusterMean, check_same_length, cluster_mean
from assay.statistics.quantiles import t_cdf
from assay.statistics.ranking import pearson


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The mean of ``a - b`` over the items that have both."""

    difference: ClusterMean
    # Items left out because one side is None.
    excluded: int
    # Pearson's correlation of the two sides; the higher, the more pairing gains.
    correlation: float | None
    # Two-sided, for no difference, by Student's t with one degree of freedom less than there are
    # clusters; None where there is no standard error, or it is 0.
    p_value: float | None


def paired_difference(
    a: Sequence[float | None],
    b: Sequence[float | None],
    clusters: Sequence[Hashable] | None = None,
    *,
    confidence: float = 0.95,
    bounds: tuple[float, float] | None = (-1.0, 1.0),
) -> PairedDifference:
    """Compare two sides item by item, so that what makes an item hard cancels out.

    The mean and standard error of ``d_i = a_i - b_i`` by `cluster_mean`, which is
    ``SE² = SE_a² + SE_b² - 2 r SE_a SE_b`` (Miller 2024, arXiv:2411.00640).
    """
    check_same_length(a=a, b=b, clusters=clusters)
    names = range(len(a)) if clusters is None else clusters
    rows = [
        (finite_number(x, what="a value of a"), finite_number(y, what="a value of b"), name)
        for x, y, name in zip(a, b, names, strict=True)
        if x is not None and y is not None
    ]
    difference = cluster_mean(
        [x - y for x, y, _ in rows],
        [name for _, _, name in rows],
        confidence=confidence,
        bounds=bounds,
    )
    r = pearson([x for x, _, _ in rows], [y for _, y, _ in rows])
    return PairedDifference(difference, len(a) - len(rows), r, _p_value(difference))


def mcnemar_exact(only_a: int, only_b: int) -> float:
    """The two-sided p of ``only_a`` against ``only_b`` items on which just one side is right.

    ``min(1, 2 P(X <= min(only_a, only_b)))`` for X binomial with ``only_a + only_b`` trials of
    chance 1/2; exact in integers.
    """
    if min(only_a, only_b) < 0:
        raise ScoreError(f"negative count: {only_a}, {only_b}")
    n, few = only_a + only_b, min(only_a, only_b)
    term = tail = 1
    for i in range(few):
        term = term * (n - i) // (i + 1)  # comb(n, i + 1), from the one before
        tail += term
    return min(1.0, 2 * tail / 2**n)  # whole numbers of any size divide exactly


def _p_value(difference: ClusterMean) -> float | None:
    error, mean, groups = difference.standard_error, difference.mean, difference.estimate.n
    if mean is None or not error:
        return None
    t = abs(mean) / (error * (groups / (groups - 1)) ** 0.5)
    return min(1.0, 2 * t_cdf(-t, groups - 1))
