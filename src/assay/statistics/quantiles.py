"""Quantiles of numbers, of the normal and of Student's t distribution, in plain Python.

Against scipy 1.17.1 the t quantiles agree to ten digits up to 10,000 degrees of freedom, and to
eight at ten million.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import ceil, exp, isfinite, lgamma, log

from assay.errors import ScoreError

_TINY = 1e-300
_RELATIVE_ERROR = 1e-15
_MAX_TERMS = 100_000
_USUAL = (0.975, 1.959963984540054)
"""The normal quantile of two-sided 95 %, for which nothing need be loaded."""


def nearest_rank(ranked: Sequence[float], share: float) -> float:
    """The smallest of n sorted numbers that a share of them does not exceed: ``ceil(share * n)``.

    ``share``: In [0, 1]; 0.5 is the median, of an even number the lower one of the middle two.
    """
    rank = ceil(share * len(ranked) - 1e-9)  # 0.07 * 100 is a little more than 7
    return ranked[min(max(rank, 1), len(ranked)) - 1]


def two_sided(confidence: float) -> float:
    """The probability below the upper end of a two-sided interval: 0.975 for 0.95."""
    if not 0.0 < confidence < 1.0:
        raise ScoreError(f"confidence is {confidence}", hint="between 0 and 1, such as 0.95")
    return 0.5 + confidence / 2


def normal_quantile(p: float) -> float:
    """The value below which a standard normal variable falls with probability ``p``."""
    if p == _USUAL[0]:
        return _USUAL[1]
    _check_probability(p)
    from statistics import NormalDist

    return NormalDist().inv_cdf(p)


@lru_cache(maxsize=1024)
def t_quantile(p: float, df: float) -> float:
    """The value below which a Student t variable falls with probability ``p``.

    Found by bisection on `t_cdf`.
    """
    _check_probability(p)
    if p == 0.5:
        return 0.0
    if p < 0.5:
        return -t_quantile(1.0 - p, df)
    low, high = 0.0, 1.0
    while t_cdf(high, df) < p:
        low, high = high, 2.0 * high
    while high - low > 4e-16 * high:
        middle = (low + high) / 2
        if t_cdf(middle, df) < p:
            low = middle
        else:
            high = middle
    return high


def t_cdf(t: float, df: float) -> float:
    """The probability that a Student t variable is at most ``t``.

    For t >= 0 it is ``1 - I_x(df/2, 1/2) / 2`` with ``x = df / (df + t**2)`` and the regularised
    incomplete beta function I (Abramowitz and Stegun 26.7.1).
    """
    if not (df >= 1 and isfinite(df) and isfinite(t)):
        raise ScoreError(f"no t distribution at t={t} with {df} degrees of freedom")
    square = min(t * t, 1e300)  # beyond, the tail is 0 to any precision
    tail = _incomplete_beta(df / 2, 0.5, df / (df + square), square / (df + square)) / 2
    return 1.0 - tail if t >= 0 else tail


def _incomplete_beta(a: float, b: float, x: float, y: float) -> float:
    """The regularised I_x(a, b), where ``y = 1 - x`` is passed to keep its digits."""
    if x <= 0.0 or y <= 0.0:
        return 0.0 if x <= 0.0 else 1.0
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(y))
    if x < (a + 1) / (a + b + 2):
        return front * _beta_fraction(a, b, x) / a
    return 1.0 - front * _beta_fraction(b, a, y) / b


def _beta_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method.

    Press et al., Numerical Recipes, 3rd edition, 6.4.
    """
    c = 1.0
    d = 1.0 / _not_zero(1.0 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, _MAX_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1.0 / _not_zero(1.0 + term * d)
            c = _not_zero(1.0 + term / c)
            fraction *= d * c
        if abs(d * c - 1.0) < _RELATIVE_ERROR:
            break
    return fraction


def _not_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def _check_probability(p: float) -> None:
    if not 0.0 < p < 1.0:
        raise ScoreError(f"no quantile at probability {p}", hint="strictly between 0 and 1")
