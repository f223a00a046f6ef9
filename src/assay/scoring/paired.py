"""Two graders, or two agents, on the same items: differences, exact tests, how many are needed."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import ceil

from assay.errors import ScoreError
from assay.scoring.intervals import ClusterMean, check_same_length, cluster_mean
from assay.scoring.quantiles import normal_quantile, t_cdf, two_sided
from assay.scoring.ranking import pearson
from assay.scoring.results import finite_number

__all__ = [
    "McNemar",
    "PairedDifference",
    "holm",
    "items_needed",
    "mcnemar",
    "mcnemar_exact",
    "paired_difference",
]


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


@dataclass(frozen=True, slots=True)
class McNemar:
    """The exact test of McNemar (1947): is one of two right more often than the other?"""

    both: int
    only_a: int
    only_b: int
    neither: int
    # Items left out because one side is None.
    excluded: int
    # Two-sided, for neither being better; 1.0 where they never differ.
    p_value: float


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


def mcnemar(a: Sequence[bool | None], b: Sequence[bool | None]) -> McNemar:
    """Count on which items each of two is right, and test the difference by `mcnemar_exact`.

    Raises:
        ScoreError: For different lengths, or a value that is neither a bool nor None.
    """
    check_same_length(a=a, b=b)
    for value in (*a, *b):
        if not (value is None or isinstance(value, bool)):  # pyright: ignore[reportUnnecessaryIsInstance]  # what callers give is not known
            raise ScoreError(
                f"{value!r} is not a bool", hint="say of each item whether it is right"
            )
    pairs = [(x, y) for x, y in zip(a, b, strict=True) if x is not None and y is not None]
    only_a, only_b = pairs.count((True, False)), pairs.count((False, True))
    return McNemar(
        both=pairs.count((True, True)),
        only_a=only_a,
        only_b=only_b,
        neither=pairs.count((False, False)),
        excluded=len(a) - len(pairs),
        p_value=mcnemar_exact(only_a, only_b),
    )


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


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p values for being several (Holm 1979): compare the result with one's alpha.

    In ascending order, ``p_(i) * (m - i + 1)``, never below the one before, never above 1. The
    chance that any true null is rejected is then at most alpha, however the tests depend.

    Raises:
        ScoreError: For a value outside of [0, 1].
    """
    numbers = [finite_number(p, what=f"p_values[{i}]") for i, p in enumerate(p_values)]
    for index, p in enumerate(numbers):
        if not 0.0 <= p <= 1.0:
            raise ScoreError(f"p_values[{index}] is {p}", hint="a probability, from 0 to 1")
    adjusted = [0.0] * len(numbers)
    reached = 0.0
    for rank, index in enumerate(sorted(range(len(numbers)), key=numbers.__getitem__)):
        reached = max(reached, min(1.0, numbers[index] * (len(numbers) - rank)))
        adjusted[index] = reached
    return adjusted


def items_needed(
    effect: float,
    *,
    variance: float,
    noise_a: float = 0.0,
    noise_b: float = 0.0,
    samples: int = 1,
    alpha: float = 0.05,
    power: float = 0.8,
) -> int:
    """How many independent items it takes to see a paired difference of a given size.

    ``n = (z_{alpha/2} + z_beta)² (variance + (noise_a + noise_b) / samples) / effect²``, rounded
    up (Miller 2024, arXiv:2411.00640).

    Raises:
        ScoreError: For an effect of 0, a negative variance, no samples, or alpha or power not
            strictly between 0 and 1.
    """
    effect = finite_number(effect, what="effect")
    spreads = [finite_number(each, what="a variance") for each in (variance, noise_a, noise_b)]
    if effect == 0 or min(spreads) < 0 or samples < 1:
        raise ScoreError(
            f"effect {effect}, variances {spreads}, {samples} samples",
            hint="an effect other than 0, variances of 0 or more, and at least one sample",
        )
    z = normal_quantile(two_sided(1 - alpha)) + normal_quantile(power)
    spread = spreads[0] + (spreads[1] + spreads[2]) / samples
    return max(1, ceil(z * z * spread / effect**2))


def _p_value(difference: ClusterMean) -> float | None:
    error, mean, groups = difference.standard_error, difference.mean, difference.estimate.n
    if mean is None or not error:
        return None
    t = abs(mean) / (error * (groups / (groups - 1)) ** 0.5)
    return min(1.0, 2 * t_cdf(-t, groups - 1))
