"""How numbers are written for people: never rounded into another statement.

0.9996 is not written 1.00, nor a price of $0.0004 as $0.00, and an unknown value is not a number.
"""

from __future__ import annotations

from assay.shown import DASH, score
from assay.statistics.intervals import Interval

__all__ = [
    "DASH",
    "MINUS",
    "TIMES",
    "apart",
    "cost",
    "count",
    "duration",
    "money",
    "percent",
    "percent_interval",
    "score",
    "score_interval",
]

MINUS = "\N{MINUS SIGN}"
TIMES = "\N{MULTIPLICATION SIGN}"


def apart(value: float, bar: float) -> tuple[str, str]:
    """Two scores with as many digits as it takes to see which is larger."""
    for digits in range(2, 9):
        left, right = f"{value:.{digits}f}", f"{bar:.{digits}f}"
        if left != right or abs(value - bar) <= 1e-9:
            return left, right
    return f"{value!r}", f"{bar!r}"


def percent(rate: float | None) -> str:
    """A rate as per cent; never 0 % or 100 % unless it is."""
    if rate is None:
        return DASH
    if 0 < rate < 0.005:
        return "<1 %"
    if 0.995 <= rate < 1:
        return ">99 %"
    return f"{rate * 100:.0f} %"


def score_interval(interval: Interval) -> str:
    """Both ends as scores, or an empty string where there is no interval."""
    if interval.low is None or interval.high is None:
        return ""
    return f"{interval.low:.2f}{DASH}{interval.high:.2f}"


def percent_interval(interval: Interval) -> str:
    """Both ends as per cent, or an empty string where there is no interval."""
    if interval.low is None or interval.high is None:
        return ""
    return f"{interval.low * 100:.0f}{DASH}{interval.high * 100:.0f} %"


def money(usd: float) -> str:
    """Dollars with cents, or with two significant digits below a cent."""
    if 0 < usd < 0.01:
        return f"${usd:.2g}" if usd >= 0.0001 else "<$0.0001"
    return f"${usd:,.2f}"


def cost(known: float | None, unknown: int, noun: str = "cell") -> str:
    """A sum of prices, and of how many cells, or what else the noun says, it is not known."""
    if known is None:
        return "unknown" if unknown else "none"
    return f"{money(known)} + {count(unknown, noun)} unknown" if unknown else money(known)


def count(number: int, noun: str) -> str:
    """``1 cell``, ``12 cells``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def duration(seconds: float) -> str:
    """A duration in the two units that matter, such as ``2 min 5 s``."""
    if seconds < 10:
        return f"{seconds:.1f} s" if seconds >= 0.05 or seconds == 0 else "<0.1 s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"
