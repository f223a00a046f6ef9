"""Scores as a histogram that may reach beyond 0 and 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_ALIKE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bar of a histogram.

    Attributes:
        low: Its scores begin here.
        high: They end below this; those of the last one at it.
        count: How many.
    """

    low: float
    high: float
    count: int


def histogram(scores: Sequence[float], number: int) -> tuple[Bar, ...]:
    """So many bars from 0 to 1, and as far beyond as the scores go; none without scores."""
    if not scores:
        return ()
    low, high = min(0.0, *scores), max(1.0, *scores)
    # Half of it first: the difference of the largest floats is none.
    width = high / number - low / number
    counts = [0] * number
    for value in scores:
        place = (value / number - low / number) / width * number + _ALIKE  # 0.3 begins a bar
        counts[min(number - 1, int(place))] += 1
    ends = [low * (1 - place / number) + high * (place / number) for place in range(number + 1)]
    return tuple(
        Bar(low=begin, high=end, count=count)
        for begin, end, count in zip(ends, ends[1:], counts, strict=False)
    )
