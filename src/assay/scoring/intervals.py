"""What repeated trials say: a mean or a rate with its uncertainty, pass@k and pass^k.

All of it holds at the sizes that evaluations have, a handful of cases with a few trials each:
Student's t instead of the normal for means, Wilson's interval instead of Wald's for rates, and no
interval of width 0 just because a few trials happened to agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, prod, sqrt

from assay.errors import ScoreError
from assay.scoring.quantiles import normal_quantile, t_quantile, two_sided
from assay.scoring.results import finite_number

__all__ = [
    "Interval",
    "clustered_interval",
    "mean_interval",
    "pass_at_k",
    "pass_hat_k",
    "score_interval",
    "wilson",
]

_SAME = 1e-9
"""Values closer than this are equal: the difference is rounding in a judge's or a sum's float."""

_LARGEST = 1e100
"""Values beyond this are refused: their squares would come near the end of the float range."""


@dataclass(frozen=True, slots=True)
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
    upper = two_sided(confidence)
    numbers = _checked(values, bounds)
    n = len(numbers)
    if n == 0:
        return Interval(None, None, None, 0)
    smallest, largest = min(numbers), max(numbers)
    mean = min(max(fsum(numbers) / n, smallest), largest)
    if n == 1:
        return Interval(mean, None, None, 1)
    if largest - smallest <= _SAME:
        if bounds is None:
            return Interval(mean, None, None, n)
        unseen = 1.0 - (1.0 - upper) ** (1.0 / n)
        low = mean - unseen * (mean - bounds[0])
        high = mean + unseen * (bounds[1] - mean)
        return Interval(mean, low, high, n)
    sd = sqrt(fsum((v - mean) ** 2 for v in numbers) / (n - 1))
    half = t_quantile(upper, n - 1) * sd / sqrt(n)
    low, high = mean - half, mean + half
    if bounds is not None:
        low, high = max(low, bounds[0]), min(high, bounds[1])
    return Interval(mean, low, high, n)


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

    Args:
        clusters: The values of each case's trials.
        confidence: As in `mean_interval`.
        bounds: As in `mean_interval`.

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

    Args:
        successes: How many of the trials succeeded.
        n: How many independent trials there were.
        confidence: How often such intervals contain the true rate.

    Raises:
        ScoreError: Unless ``0 <= successes <= n``, or for a ``confidence`` out of range.
    """
    _check_counts(n, successes)
    z = normal_quantile(two_sided(confidence))
    if n == 0:
        return Interval(None, None, None, 0)
    low, high = score_interval(successes / n, n, z)
    return Interval(successes / n, low, high, n)


def score_interval(rate: float, n: float, z: float) -> tuple[float, float]:
    """The ends of Wilson's interval of a rate.

    Args:
        rate: The share of successes, in [0, 1].
        n: How many independent trials it is worth, above 0; a whole number or not.
        z: The quantile that it reaches to.
    """
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

    Returns:
        The estimate, or None for ``k > n``.

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
    numbers = [finite_number(value, what=f"values[{i}]") for i, value in enumerate(values)]
    for index, number in enumerate(numbers):
        if not low <= number <= high:
            raise ScoreError(
                f"values[{index}] is {number}, outside of [{low:g}, {high:g}]",
                hint="pass the range that values can have as bounds",
            )
    return numbers


def _check_tries(n: int, c: int, k: int) -> None:
    _check_counts(n, c)
    if isinstance(k, bool) or k < 1:
        raise ScoreError(f"k is {k!r}", hint="it must be 1 or more")


def _check_counts(n: int, successes: int) -> None:
    if isinstance(n, bool) or isinstance(successes, bool) or not 0 <= successes <= n:
        raise ScoreError(f"{successes} successes of {n}", hint="it takes 0 <= successes <= n")
