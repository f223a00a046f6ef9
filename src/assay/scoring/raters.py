"""How well several raters agree: people among themselves, a jury of judges, repeats of one judge.

The agreement of two people on the same items is the ceiling for any judge that is measured against
them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from math import fsum
from typing import Literal, TypeAlias

from assay.errors import ScoreError
from assay.scoring.classes import Level, levels_of
from assay.scoring.intervals import Interval
from assay.scoring.measured import Measured, ratio
from assay.scoring.results import finite_number

__all__ = ["AlphaMetric", "fleiss_kappa", "icc_2_1", "krippendorff_alpha"]

AlphaMetric: TypeAlias = Literal["nominal", "ordinal", "interval"]
"""Which disagreements are worse: all the same, by rank, or by the square of the difference."""


def fleiss_kappa(items: Sequence[Sequence[Level | None]]) -> Measured:
    """Agreement of several raters beyond chance (Fleiss 1971).

    ``(P - Pe) / (1 - Pe)``: P is the mean share of an item's pairs of ratings that agree, Pe the
    sum of the squared shares of the classes over all ratings. Who gave which rating is not used.

    Args:
        items: For each item its ratings, equally many for all. An item with a rating of None is
            left out and counted; `krippendorff_alpha` can use the ratings it has.

    Returns:
        A value of at most 1, 0 for chance; None for no items, or where only one class occurs.
        ``n`` counts items.

    Raises:
        ScoreError: For items with different numbers of ratings or fewer than two, or classes of
            mixed kinds.
    """
    levels_of([rating for ratings in items for rating in ratings])
    sizes = {len(ratings) for ratings in items}
    if len(sizes) > 1 or (sizes and min(sizes) < 2):
        raise ScoreError(
            f"items have {sorted(sizes)} ratings",
            hint="the same number for each, two or more; None for a missing one",
        )
    complete = [ratings for ratings in items if None not in ratings]
    excluded, n = len(items) - len(complete), len(complete)
    if not complete:
        return Measured(Interval(None, None, None, 0), excluded)
    k = sizes.pop()
    classes = Counter[Hashable](rating for ratings in complete for rating in ratings)
    agreeing = sum(_squares(Counter[Hashable](ratings)) - k for ratings in complete)
    # (P - Pe) / (1 - Pe) over the common denominator n² k² (k - 1): exact in integers.
    chance = _squares(classes) * (k - 1)
    whole = n * n * k * k * (k - 1)
    value = ratio(agreeing * n * k - chance, whole - chance)
    return Measured(Interval(value, None, None, n), excluded)


def krippendorff_alpha(
    items: Sequence[Sequence[Level | float | None]],
    *,
    metric: AlphaMetric = "nominal",
    levels: Sequence[Level] | None = None,
) -> Measured:
    """Agreement of any number of raters, some of whose ratings may be missing (Krippendorff 2004).

    ``1 - Do / De``, the mean disagreement of two ratings of one item over that of any two ratings.
    Disagreement is 1 for different classes (nominal), the squared difference of the numbers
    (interval) or that of their mean ranks among all ratings (ordinal).

    Args:
        items: For each item its ratings; None for a missing one. Items with fewer than two
            ratings compare nothing: they are left out and counted.
        metric: For what disagreement is.
        levels: For ordinal ratings that are words: all of them, from lowest to highest.

    Returns:
        A value of at most 1, 0 for chance; None where no item has two ratings, or where all
        ratings are the same. ``n`` counts items.

    Raises:
        ScoreError: For ratings of mixed kinds, words where numbers are needed, or a number that
            is not finite.
    """
    given = [[rating for rating in ratings if rating is not None] for ratings in items]
    units = [ratings for ratings in given if len(ratings) > 1]
    excluded = len(items) - len(units)
    if metric == "nominal":
        value = _nominal_alpha(units)
    else:
        numbers = [_positions(ratings, levels) for ratings in units]
        if metric == "ordinal":
            places = _mean_ranks(numbers)
            numbers = [[places[number] for number in unit] for unit in numbers]
        value = _interval_alpha(numbers)
    return Measured(Interval(value, None, None, len(units)), excluded)


def icc_2_1(items: Sequence[Sequence[float | None]]) -> Measured:
    """Whether raters give equal numbers: the intraclass correlation ICC(2,1).

    Two-way random effects, absolute agreement, a single rater (Shrout and Fleiss 1979):
    ``(MSR - MSE) / (MSR + (k - 1) MSE + k (MSC - MSE) / n)``, with mean squares between n items
    (R), between k raters (C) and of the rest (E). Unlike a correlation it falls if one rater is
    always a point stricter.

    Args:
        items: For each item the numbers of the same raters in the same order. An item with a
            None is left out and counted.

    Returns:
        A value of at most 1; None for fewer than two items, or where all numbers are equal.
        ``n`` counts items.

    Raises:
        ScoreError: For items with different numbers of ratings or fewer than two, or a number
            that is not finite.
    """
    sizes = {len(ratings) for ratings in items}
    if len(sizes) > 1 or (sizes and min(sizes) < 2):
        raise ScoreError(
            f"items have {sorted(sizes)} ratings",
            hint="one of each rater, two or more; None for a missing one",
        )
    rows = [
        [finite_number(rating, what="a rating") for rating in ratings if rating is not None]
        for ratings in items
    ]
    k = sizes.pop() if sizes else 0
    rows = [row for row in rows if len(row) == k]
    n, excluded = len(rows), len(items) - len(rows)
    if n < 2:
        return Measured(Interval(None, None, None, n), excluded)
    # Taken from the middle, scaled to a length of one: no square overflows or loses its digits.
    middle = fsum(fsum(row) / k for row in rows) / n
    largest = max(abs(value - middle) for row in rows for value in row)
    if not largest:
        return Measured(Interval(None, None, None, n), excluded)
    table = [[(value - middle) / largest for value in row] for row in rows]
    grand = fsum(fsum(row) for row in table) / (n * k)
    by_row = [fsum(row) / k - grand for row in table]
    by_rater = [fsum(column) / n - grand for column in zip(*table, strict=True)]
    between_items = k * fsum(d * d for d in by_row) / (n - 1)
    between_raters = n * fsum(d * d for d in by_rater) / (k - 1)
    rest = fsum(
        (value - grand - by_row[i] - by_rater[j]) ** 2
        for i, row in enumerate(table)
        for j, value in enumerate(row)
    ) / ((n - 1) * (k - 1))
    whole = between_items + (k - 1) * rest + k * (between_raters - rest) / n
    value = (between_items - rest) / whole if whole > 1e-15 else None
    return Measured(Interval(value, None, None, n), excluded)


def _squares(counts: Counter[Hashable]) -> int:
    return sum(count * count for count in counts.values())


def _nominal_alpha(units: Sequence[Sequence[Level | float]]) -> float | None:
    kinds = {type(rating) for unit in units for rating in unit}
    if len(kinds) > 1:
        told = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise ScoreError(f"ratings are of kinds {told}", hint="use one kind for all")
    everything = Counter[Hashable](rating for unit in units for rating in unit)
    n = everything.total()
    differing = fsum(
        (len(unit) ** 2 - _squares(Counter[Hashable](unit))) / (len(unit) - 1) for unit in units
    )
    chance = n * n - _squares(everything)
    return 1 - (n - 1) * differing / chance if chance else None


def _interval_alpha(units: Sequence[Sequence[float]]) -> float | None:
    # The sum of the squared differences of all pairs of m numbers is m times the sum of their
    # squared deviations from their mean, so no pair need be formed.
    numbers = [number for unit in units for number in unit]
    largest = max((abs(number) for number in numbers), default=0.0) or 1.0
    scaled = [[number / largest for number in unit] for unit in units]
    whole = _deviation([number for unit in scaled for number in unit])
    if min(numbers, default=0.0) == max(numbers, default=0.0) or not whole:
        return None
    within = fsum(len(unit) * _deviation(unit) / (len(unit) - 1) for unit in scaled)
    return 1 - (len(numbers) - 1) * within / (len(numbers) * whole)


def _deviation(numbers: Sequence[float]) -> float:
    mean = fsum(numbers) / len(numbers) if numbers else 0.0
    return fsum((number - mean) ** 2 for number in numbers)


def _mean_ranks(units: Sequence[Sequence[float]]) -> dict[float, float]:
    """For each number the middle of the ranks it spans among all of them."""
    counts = Counter(number for unit in units for number in unit)
    places: dict[float, float] = {}
    below = 0
    for number in sorted(counts):
        places[number] = below + counts[number] / 2
        below += counts[number]
    return places


def _positions(ratings: Sequence[Level | float], levels: Sequence[Level] | None) -> list[float]:
    if levels is None:
        return [finite_number(rating, what="a rating") for rating in ratings]
    places: dict[tuple[type, Level | float], float] = {
        (type(level), level): float(i) for i, level in enumerate(levels)
    }
    try:
        return [places[type(rating), rating] for rating in ratings]
    except KeyError as error:
        raise ScoreError(
            f"{error.args[0][1]!r} is not among the levels {list(levels)}",
            hint="give every level that can occur",
        ) from None
