"""How scores follow labels in order and in size: correlations of ranks, AUROC.

What needs nothing but two columns of numbers; agreement of several raters is in
`assay.statistics.classes`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Hashable, Sequence
from math import exp, fsum, log, sqrt

from assay.errors import ScoreError
from assay.scoring.results import finite_number
from assay.statistics.intervals import Interval, Measured, check_same_length
from assay.statistics.quantiles import normal_quantile, two_sided


def pearson(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Pearson's linear correlation in [-1, 1]; None where a side has fewer than two values."""
    unit_x, unit_y = _unit_deviations(x), _unit_deviations(y)
    if unit_x is None or unit_y is None:
        return None
    r = fsum(a * b for a, b in zip(unit_x, unit_y, strict=True))
    return max(-1.0, min(1.0, r))


def spearman(x: Sequence[float | None], y: Sequence[float | None]) -> Measured:
    """Spearman's correlation: Pearson's of the ranks, ties sharing their mean rank."""
    left, right = _complete(x, y)
    value = pearson(ranks(left), ranks(right))
    return Measured(Interval(value, None, None, len(left)), len(x) - len(left))


def auroc(
    scores: Sequence[float | None],
    labels: Sequence[bool],
    clusters: Sequence[Hashable] | None = None,
    *,
    confidence: float = 0.95,
) -> Measured:
    """The chance that an item labelled yes scores higher than one labelled no; a tie is half.

    The area under the ROC curve, ``U / (n1 n0)`` of Mann and Whitney (1947): 0.5 for scores that
    say nothing. Its standard error is that of DeLong, DeLong and Clarke-Pearson (1988), with
    clusters that of Obuchowski (1997); the interval is taken on the logit scale, so that it stays
    within (0, 1).

    Returns the value, None unless both labels occur. No ends where it is 0 or 1, or where a label
    has fewer than two items (clusters): too little to say. ``n`` counts items.
    """
    check_same_length(scores=scores, labels=labels, clusters=clusters)
    z = normal_quantile(two_sided(confidence))
    names = range(len(scores)) if clusters is None else clusters
    rows: list[tuple[float, bool, Hashable]] = []
    for score, label, name in zip(scores, labels, names, strict=True):
        if label is not True and label is not False:
            raise ScoreError(f"label {label!r} is not a bool", hint="AUROC is about yes and no")
        if score is not None:
            rows.append((finite_number(score, what="a score"), label, name))
    excluded = len(scores) - len(rows)
    yes = sorted(score for score, label, _ in rows if label)
    no = sorted(score for score, label, _ in rows if not label)
    if not yes or not no:
        return Measured(Interval(None, None, None, len(rows)), excluded)
    # Twice each item's number of won comparisons, so that a tie is a whole number.
    wins = [
        _beaten(no, score) if label else 2 * len(yes) - _beaten(yes, score)
        for score, label, _ in rows
    ]
    total = sum(won for won, (_, label, _) in zip(wins, rows, strict=True) if label)
    value = total / (2 * len(yes) * len(no))
    error = _auroc_error(rows, wins, value, len(yes), len(no))
    if not error or not 0 < value < 1:
        return Measured(Interval(value, None, None, len(rows)), excluded)
    centre, half = log(value / (1 - value)), z * error / (value * (1 - value))
    return Measured(
        Interval(value, _logistic(centre - half), _logistic(centre + half), len(rows)), excluded
    )


def ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; equal values share the mean of the ranks they span."""
    places: dict[float, float] = {}
    below = 0
    for value, count in sorted(Counter(values).items()):
        places[value] = below + (count + 1) / 2
        below += count
    return [places[value] for value in values]


def _unit_deviations(values: Sequence[float]) -> list[float] | None:
    """Deviations from the mean as a vector of length 1; None if all values are equal."""
    largest = max((abs(v) for v in values), default=0.0)
    if not largest:
        return None
    scaled = [v / largest for v in values]  # so that no square overflows or vanishes
    mean = min(max(fsum(scaled) / len(scaled), min(scaled)), max(scaled))
    deviations = [v - mean for v in scaled]
    length = sqrt(fsum(d * d for d in deviations))
    return [d / length for d in deviations] if length else None


def _complete(
    x: Sequence[float | None], y: Sequence[float | None]
) -> tuple[list[float], list[float]]:
    """The two columns without the items that lack one of them."""
    check_same_length(x=x, y=y)
    pairs = [
        (finite_number(a, what="a value of x"), finite_number(b, what="a value of y"))
        for a, b in zip(x, y, strict=True)
        if a is not None and b is not None
    ]
    return [a for a, _ in pairs], [b for _, b in pairs]


def _beaten(others: list[float], score: float) -> int:
    """Twice how many of the sorted others the score beats, a tie counting half."""
    return bisect_left(others, score) + bisect_right(others, score)


def _auroc_error(
    rows: Sequence[tuple[float, bool, Hashable]],
    wins: Sequence[int],
    value: float,
    yes: int,
    no: int,
) -> float | None:
    """The standard error from each item's share of won comparisons, added up by cluster."""
    # For each cluster: its items' summed deviation from the value, those of yes and those of no.
    of_yes: dict[Hashable, float] = {}
    of_no: dict[Hashable, float] = {}
    for won, (_, label, name) in zip(wins, rows, strict=True):
        side, others = (of_yes, no) if label else (of_no, yes)
        side[name] = side.get(name, 0.0) + won / (2 * others) - value
    groups_yes, groups_no, groups = len(of_yes), len(of_no), len(of_yes | of_no)
    if min(groups_yes, groups_no) < 2:
        return None
    spread_yes = groups_yes / (groups_yes - 1) * fsum(d * d for d in of_yes.values())
    spread_no = groups_no / (groups_no - 1) * fsum(d * d for d in of_no.values())
    shared = fsum(d * of_no[name] for name, d in of_yes.items() if name in of_no)
    together = groups / (groups - 1) * shared
    variance = spread_yes / yes**2 + spread_no / no**2 + 2 * together / (yes * no)
    return sqrt(max(0.0, variance))


def _logistic(x: float) -> float:
    return 1 / (1 + exp(-x)) if x >= 0 else exp(x) / (1 + exp(x))
