"""Whether a judge's probabilities mean what they say, and a pass rate corrected for its errors."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import fsum, sqrt

from assay.scoring.agreement import Confusion
from assay.scoring.intervals import (
    Interval,
    are_clustered,
    cluster_rate,
    wilson,
)
from assay.scoring.quantiles import normal_quantile, t_quantile, two_sided

__all__ = [
    "CorrectedRate",
    "clustered_corrected_rate",
    "corrected_rate",
]


@dataclass(frozen=True, slots=True)
class CorrectedRate:
    """A pass rate as a judge gave it, and as it would be if the judge made no errors.

    Attributes:
        raw: The judged rate with its Wilson interval.
        corrected: The corrected rate with its interval, within [0, 1]; all None where it was
            refused. ``n`` counts judged items.
        unclipped: The corrected rate before it was clipped to [0, 1]. Far outside of that range
            the judge errs otherwise here than on the labelled items.
        standard_error: Of the corrected rate, by the formula of `corrected_rate`.
        refused: Why there is no corrected rate; None if there is one.
    """

    raw: Interval
    corrected: Interval
    unclipped: float | None
    standard_error: float | None
    refused: str | None


def corrected_rate(
    passed: int, judged: int, calibration: Confusion, *, confidence: float = 0.95
) -> CorrectedRate:
    """The share of items that truly pass, from verdicts and the judge's known error rates.

    With the judged rate p of n items, sensitivity q1 and specificity q0 on m1 and m0 labelled
    items and ``D = q0 + q1 - 1``, the estimate of Rogan and Gladen (1978) is
    ``(p + q0 - 1) / D`` and its variance (Lee et al. 2025, arXiv:2511.21140)::

        (p (1 - p) / n + (1 - rate)² q0 (1 - q0) / m0 + rate² q1 (1 - q1) / m1) / D²

    That variance is too small where few labels show few errors, so the interval takes it around
    the estimate from padded counts (Agresti and Coull 1998: half a z² more passes and failures of
    the verdicts; one more of each outcome of the labelled items). It is widened to contain the
    estimate, and clipped to [0, 1]. It holds if the judge errs here as often as on the labelled
    items, and if all items are independent.

    Returns:
        The rate, refused with a reason where there are no verdicts, no labels of one kind, or
        where ``q0 + q1 <= 1``: a judge no better than chance says nothing that could be corrected.

    Raises:
        ScoreError: Unless ``0 <= passed <= judged``, or for a ``confidence`` out of range.
    """
    raw = wilson(passed, judged, confidence=confidence)
    q1, q0 = calibration.sensitivity, calibration.specificity
    if raw.mean is None or q1 is None or q0 is None:
        lack = "verdicts" if raw.mean is None else "labels of yes" if q1 is None else "labels of no"
        return _refused(raw, f"there are no {lack}")
    # In integers: q0 + q1 > 1 is what kappa > 0 is.
    if calibration.tp * calibration.tn <= calibration.fp * calibration.fn:
        told = f"sensitivity {q1:.3f} and specificity {q0:.3f} add up to 1 or less"
        return _refused(raw, f"{told}: the judge is no better than chance")
    z = normal_quantile(two_sided(confidence))
    interval, rate, error = _corrected(passed, judged, calibration, z, reach=z)
    return CorrectedRate(raw, interval, rate, error, None)


def clustered_corrected_rate(
    judged: Sequence[tuple[bool, Hashable]],
    labelled: Sequence[tuple[bool, bool, Hashable]],
    *,
    confidence: float = 0.95,
) -> CorrectedRate:
    """As `corrected_rate`, for items that come in clusters; a cluster may be part of both samples.

    The estimate is the same. Its variance is that of its linear approximation, summed by cluster:
    with ``x`` the verdict of a judged item, ``y1`` and ``y0`` whether an item labelled yes or no
    was found, cluster c adds to the estimate ::

        u_c = (sum (x - p) / n + (1 - rate) sum (y0 - q0) / m0 - rate sum (y1 - q1) / m1) / D

    and the variance is ``sum u_c² G / (G - 1)``. The interval is that of `corrected_rate`, longer
    by the root of what this variance is more than that of independent items (at least 1), and by
    Student's t instead of the normal. G is the smallest number of clusters that any of the three
    rates rests on; of fewer than two there is no interval.

    Returns:
        The rate, refused as by `corrected_rate`. ``raw`` allows for clusters, too.
    """
    pairs = [(said, true) for said, true, _ in labelled]
    table = Confusion(
        tp=pairs.count((True, True)),
        fp=pairs.count((True, False)),
        tn=pairs.count((False, False)),
        fn=pairs.count((False, True)),
    )
    passed = sum(said for said, _ in judged)
    found = corrected_rate(passed, len(judged), table, confidence=confidence)
    names = [name for _, name in judged]
    if not are_clustered([*names, *(name for *_, name in labelled)]):
        return found
    raw = cluster_rate([said for said, _ in judged], names, confidence=confidence)
    rate, error = found.unclipped, found.standard_error
    if found.refused is not None or rate is None or error is None:
        return CorrectedRate(raw, found.corrected, None, None, found.refused)
    parts = _influences(judged, labelled, table, rate)
    groups = min(len({name for _, name in part}) for part in parts)
    if groups < 2:
        alone = Interval(found.corrected.mean, None, None, len(judged))
        return CorrectedRate(raw, alone, rate, None, None)
    sums: dict[Hashable, list[float]] = {}
    for value, name in (one for part in parts for one in part):
        sums.setdefault(name, []).append(value)
    robust = sqrt(fsum(fsum(each) ** 2 for each in sums.values()) * groups / (groups - 1))
    # Where nothing varies, nothing can be estimated: as if every cluster was of one mind.
    effect = robust / error if error else sqrt((len(judged) + len(labelled)) / len(sums))
    z, t = normal_quantile(two_sided(confidence)), t_quantile(two_sided(confidence), groups - 1)
    reach = t * max(1.0, effect)
    interval, _, _ = _corrected(passed, len(judged), table, z, reach=reach)
    return CorrectedRate(raw, interval, rate, max(robust, error), None)


def _influences(
    judged: Sequence[tuple[bool, Hashable]],
    labelled: Sequence[tuple[bool, bool, Hashable]],
    table: Confusion,
    rate: float,
) -> tuple[list[tuple[float, Hashable]], ...]:
    """What each observation adds to the corrected rate: of verdicts, labels of no, and of yes."""
    yes, no, n = table.tp + table.fn, table.tn + table.fp, len(judged)
    q1, q0 = table.tp / yes, table.tn / no
    p, d = sum(said for said, _ in judged) / n, q0 + q1 - 1
    return (
        [((said - p) / n / d, name) for said, name in judged],
        [((1 - rate) * ((not said) - q0) / no / d, c) for said, true, c in labelled if not true],
        [(-rate * (said - q1) / yes / d, name) for said, true, name in labelled if true],
    )


def _corrected(
    passed: int, judged: int, calibration: Confusion, z: float, *, reach: float
) -> tuple[Interval, float, float]:
    """The corrected rate with its interval, unclipped, and its standard error."""
    yes, no = calibration.tp + calibration.fn, calibration.tn + calibration.fp
    q1, q0 = calibration.tp / yes, calibration.tn / no
    rate, error = _rogan_gladen(passed / judged, judged, q0=q0, m0=no, q1=q1, m1=yes)
    padded = (passed + z * z / 2) / (judged + z * z)
    padded_q0, padded_q1 = (calibration.tn + 1) / (no + 2), (calibration.tp + 1) / (yes + 2)
    clipped = min(1.0, max(0.0, rate))
    low: float | None = None
    high: float | None = None
    if padded_q0 + padded_q1 > 1:
        centre, spread = _rogan_gladen(
            padded, judged + z * z, q0=padded_q0, m0=no + 2, q1=padded_q1, m1=yes + 2
        )
        low = min(clipped, max(0.0, centre - reach * spread))
        high = max(clipped, min(1.0, centre + reach * spread))
    return Interval(clipped, low, high, judged), rate, error


def _rogan_gladen(
    p: float, n: float, *, q0: float, m0: int, q1: float, m1: int
) -> tuple[float, float]:
    """The corrected rate and its standard error."""
    d = q0 + q1 - 1
    rate = (p + q0 - 1) / d
    labels = (1 - rate) ** 2 * q0 * (1 - q0) / m0 + rate**2 * q1 * (1 - q1) / m1
    return rate, sqrt(p * (1 - p) / n + labels) / d


def _refused(raw: Interval, why: str) -> CorrectedRate:
    return CorrectedRate(raw, Interval(None, None, None, raw.n), None, None, why)
