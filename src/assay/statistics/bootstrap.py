"""Intervals for statistics without a formula: resample whole clusters, with a fixed seed.

A statistic is computed from *totals*: each cluster is a row of counts, the rows of the drawn
clusters are added up, and a function of the sums gives the value. Kappa over 30,000 labels in
1,000 clusters then costs a sum of 1,000 short rows a draw, not a pass over 30,000 labels::

    rows = counts_by_cluster(predicted, labels, clusters)      # (tp, fp, tn, fn) of each
    bootstrap(rows, lambda totals: Confusion(*totals).kappa)

Two graders on the same items are compared by rows that hold the counts of both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from math import erfc, fsum, isfinite, log, log1p, sqrt
from random import Random
from typing import Literal, TypeVar

from assay.errors import ScoreError
from assay.statistics.intervals import Interval
from assay.statistics.quantiles import normal_quantile, two_sided

Number = TypeVar("Number", int, float)
Item = TypeVar("Item")

_FEW_KINDS = 32
"""With fewer kinds of rows than one in so many clusters, drawing how often each kind occurs is
quicker than drawing each cluster."""

_MANY = 12
"""Beyond so many expected successes, halving the trials is quicker than going from one to the
next."""


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """A statistic and its bootstrap interval."""

    # The statistic of all clusters with the interval; ``n`` counts clusters.
    estimate: Interval
    # "bca", or "percentile" where the corrections are undefined, or "none" where there is not an
    # interval: fewer than two clusters, more than half of the resamples without a value, or all of
    # them with the same one. The last says that the data are too alike to tell (a judge that was
    # always right), not that the value is certain.
    method: Literal["bca", "percentile", "none"]
    # Standard deviation of the resampled values; None without an interval.
    standard_error: float | None
    resamples: int
    # In how many of them the statistic is None (kappa, where only one word was drawn). They are
    # left out.
    undefined: int


def bootstrap(
    clusters: Sequence[Sequence[Number]],
    statistic: Callable[[Sequence[Number]], float | None],
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Bootstrap:
    """The BCa interval of a statistic of totals (Efron 1987), resampling clusters.

    The ends are quantiles of the resampled values at probabilities corrected for bias (how many
    of the values lie below the estimate) and for acceleration (the skewness of the jackknife).
    Where a correction is undefined, they are the plain percentiles.

    Args:
        clusters: For each cluster its row of counts (or sums), all of one length. Which order
            they stand in does not matter.
        statistic: Gives the value of the added-up rows, or None where it is undefined.
        confidence: About how often such intervals contain the true value: for kappa of 120 or
            400 independent items 93 to 94 % of simulated ones did, of 95; for fewer than some 20
            clusters less. Prefer a formula where there is one.
        resamples: How many to draw.
        seed: The same seed gives the same interval.

    Raises:
        ScoreError: For rows of different lengths, a value that is not finite, fewer than 100
            resamples, or a ``confidence`` out of range.
    """
    found = bootstrap_all(
        clusters, {"value": statistic}, confidence=confidence, resamples=resamples, seed=seed
    )
    return found["value"]


def bootstrap_all(
    clusters: Sequence[Sequence[Number]],
    statistics: Mapping[str, Callable[[Sequence[Number]], float | None]],
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> dict[str, Bootstrap]:
    """Several statistics of the same resamples, by name: as `bootstrap`, at little more cost."""
    _check(resamples, confidence)
    rows = _rows(clusters)
    totals = _totals(rows)
    draws = list(_draws(rows, resamples, Random(seed))) if len(rows) > 1 else []  # noqa: S311  # no secret
    found: dict[str, Bootstrap] = {}
    for name, statistic in statistics.items():
        estimate = _value(statistic, totals) if rows else None
        values = [_value(statistic, draw) for draw in draws]
        left_out = _left_out(rows, totals, statistic) if len(rows) > 1 else []
        found[name] = _judged(
            estimate,
            values=values,
            left_out=left_out,
            n=len(rows),
            confidence=confidence,
            resamples=resamples,
        )
    return found


def bootstrap_items(
    clusters: Sequence[Sequence[Item]],
    statistic: Callable[[Sequence[Item]], float | None],
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Bootstrap:
    """As `bootstrap`, for a statistic that needs the items themselves, such as a rank correlation.

    It costs ``resamples`` computations over all items: seconds for some hundreds of them.
    """
    _check(resamples, confidence)

    def value(drawn: Sequence[Sequence[Item]]) -> float | None:
        return _value(statistic, [item for cluster in drawn for item in cluster])

    n, rng = len(clusters), Random(seed)  # noqa: S311  # no secret
    values, left_out = list[float | None](), list[float | None]()
    if n > 1:
        values = [value(rng.choices(clusters, k=n)) for _ in range(resamples)]
        left_out = [value([*clusters[:i], *clusters[i + 1 :]]) for i in range(n)]
    return _judged(
        value(clusters) if clusters else None,
        values=values,
        left_out=left_out,
        n=n,
        confidence=confidence,
        resamples=resamples,
    )


def _judged(
    estimate: float | None,
    *,
    values: Sequence[float | None],
    left_out: Sequence[float | None],
    n: int,
    confidence: float,
    resamples: int,
) -> Bootstrap:
    """The interval from resampled values and those of the jackknife."""
    known = sorted(value for value in values if value is not None)
    undefined = len(values) - len(known)
    spread = known[-1] - known[0] if known else 0.0
    if estimate is None or 2 * undefined > len(values) or spread <= 1e-12 * max(1.0, abs(estimate)):
        return Bootstrap(Interval(estimate, None, None, n), "none", None, resamples, undefined)
    mean = fsum(known) / len(known)
    error = sqrt(fsum((value - mean) ** 2 for value in known) / (len(known) - 1))
    upper = two_sided(confidence)
    corrected = _bca_levels(estimate, known, left_out, upper)
    low, high = corrected or (1 - upper, upper)
    return Bootstrap(
        Interval(estimate, _quantile(known, low), _quantile(known, high), n),
        "bca" if corrected else "percentile",
        error,
        resamples,
        undefined,
    )


def _bca_levels(
    estimate: float, values: Sequence[float], left_out: Sequence[float | None], upper: float
) -> tuple[float, float] | None:
    """At which probabilities to take the quantiles; None where a correction is undefined."""
    below = sum(value < estimate for value in values) + sum(value <= estimate for value in values)
    share = below / (2 * len(values))
    known = _known(left_out)
    if known is None or not 0 < share < 1:
        return None
    mean = fsum(known) / len(known)
    squares = fsum((mean - value) ** 2 for value in known)
    if not squares:
        return None
    acceleration = fsum((mean - value) ** 3 for value in known) / (6 * squares**1.5)
    bias, z = normal_quantile(share), normal_quantile(upper)
    levels: list[float] = []
    for shifted in (bias - z, bias + z):
        scale = 1 - acceleration * shifted
        if scale <= 0:
            return None
        levels.append(erfc(-(bias + shifted / scale) / sqrt(2)) / 2)
    return levels[0], levels[1]


def _quantile(values: Sequence[float], probability: float) -> float:
    """Of sorted values, between the two nearest ones."""
    place = probability * (len(values) - 1)
    before = min(int(place), len(values) - 1)
    after = min(before + 1, len(values) - 1)
    return values[before] + (place - before) * (values[after] - values[before])


def _draws(
    rows: list[tuple[Number, ...]], resamples: int, rng: Random
) -> Iterator[Sequence[Number]]:
    """The totals of as many clusters as there are, drawn with replacement, again and again."""
    n = len(rows)
    kinds = Counter(rows).most_common()  # the commonest first leave few draws for the rest
    if len(kinds) * _FEW_KINDS > n:
        for _ in repeat(None, resamples):
            yield _totals(rng.choices(rows, k=n))
        return
    for _ in repeat(None, resamples):
        totals = [0 * each for each in rows[0]]
        unseen, to_draw = n, n
        for row, count in kinds:
            times = _binomial(to_draw, count / unseen, rng)
            unseen, to_draw = unseen - count, to_draw - times
            for i, each in enumerate(row):
                totals[i] += times * each
        yield totals


def _binomial(n: int, p: float, rng: Random) -> int:
    """How many of n trials of chance p succeed, exactly, without drawing each of many.

    While successes are many: the median of n uniform numbers is a beta variable, and tells of half
    of them on which side of p they lie (Relles 1972). Then: from one success to the next it is a
    geometric number of trials.
    """
    successes = 0
    while n * p > _MANY and p < 1.0:
        middle = 1 + n // 2
        median = rng.betavariate(middle, n + 1 - middle)
        if median >= p:
            n, p = middle - 1, p / median
        else:
            successes += middle
            n, p = n - middle, (p - median) / (1 - median)
    if p <= 0.0 or p >= 1.0:
        return successes if p <= 0.0 else successes + n
    scale = log1p(-p)
    trial = int(log(1.0 - rng.random()) / scale) + 1
    while trial <= n:
        successes += 1
        trial += int(log(1.0 - rng.random()) / scale) + 1
    return successes


def _rows(clusters: Sequence[Sequence[Number]]) -> list[tuple[Number, ...]]:
    rows = sorted(tuple(cluster) for cluster in clusters)
    widths = {len(row) for row in rows}
    if len(widths) > 1 or 0 in widths:
        raise ScoreError(f"rows have {sorted(widths)} numbers", hint="as many for each cluster")
    if not all(isfinite(each) for row in rows for each in row):
        raise ScoreError("a cluster's row has a number that is not finite")
    return rows


def _totals(rows: Sequence[tuple[Number, ...]]) -> list[Number]:
    # `sum` starts from a zero of the numbers' own kind, so that counts stay whole.
    return [sum(column[1:], column[0]) for column in zip(*rows, strict=True)]  # pyright: ignore[reportReturnType]  # int stands for its kind


def _left_out(
    rows: Sequence[tuple[Number, ...]],
    totals: Sequence[Number],
    statistic: Callable[[Sequence[Number]], float | None],
) -> list[float | None]:
    """The statistic without each row in turn."""
    values: dict[tuple[Number, ...], float | None] = {
        row: _value(statistic, [whole - part for whole, part in zip(totals, row, strict=True)])
        for row in set(rows)
    }
    return [values[row] for row in rows]


def _known(values: Sequence[float | None]) -> list[float] | None:
    """The values, or None if one of them is."""
    known = [value for value in values if value is not None]
    return known if known and len(known) == len(values) else None


def _value(statistic: Callable[[Item], float | None], of: Item) -> float | None:
    value = statistic(of)
    if value is not None and not isfinite(value):
        raise ScoreError(f"a statistic gave {value}", hint="None where it is undefined")
    return value


def _check(resamples: int, confidence: float) -> None:
    two_sided(confidence)
    if resamples < 100:
        raise ScoreError(f"{resamples} resamples", hint="100 or more; 2000 for 95 % intervals")
