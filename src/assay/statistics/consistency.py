"""Whether a judge says the same again: asked twice, and under attack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from assay.errors import ScoreError
from assay.statistics.classes import Level, levels_of
from assay.statistics.intervals import Interval, check_same_length, cluster_mean, cluster_rate


@dataclass(frozen=True, slots=True)
class Flips:
    """How often a judge contradicts itself on the same item."""

    # Mean over items of the chance that two of its repeats differ, in [0, 1]; ``n`` counts items.
    # At most ``k / (2 (k - 1))`` for k repeats of a verdict with two words.
    rate: Interval
    flipped: int
    excluded: int
    unscored: int


@dataclass(frozen=True, slots=True)
class AttackSuccess:
    """How often attacks on a judge work, and what its defence costs honest answers."""

    success: Interval
    # Share of honest controls treated as an attack.
    false_alarms: Interval
    excluded: int


def flip_rate(
    items: Sequence[Sequence[Level | None]],
    clusters: Sequence[Hashable] | None = None,
    *,
    confidence: float = 0.95,
) -> Flips:
    """How often two repeats of a judge on the same item differ.

    For each item ``1 - sum_v c_v (c_v - 1) / (k (k - 1))``, where c_v of its k verdicts are v: for
    two words ``2 c (k - c) / (k (k - 1))``. The mean of these over items.
    """
    check_same_length(items=items, clusters=clusters)
    levels_of([verdict for verdicts in items for verdict in verdicts])
    given = [[v for v in verdicts if v is not None] for verdicts in items]
    repeated = [Counter(verdicts) for verdicts in given if len(verdicts) > 1]
    rates = [_differing(Counter(verdicts)) if len(verdicts) > 1 else None for verdicts in given]
    mean = cluster_mean(rates, clusters, confidence=confidence)
    return Flips(
        rate=Interval(mean.mean, mean.estimate.low, mean.estimate.high, mean.values),
        flipped=sum(len(counts) > 1 for counts in repeated),
        excluded=len(items) - len(repeated),
        unscored=sum(map(len, items)) - sum(map(len, given)),
    )


def attack_success(
    attacks: Sequence[bool | None],
    controls: Sequence[bool | None] = (),
    *,
    clusters: Sequence[Hashable] | None = None,
    control_clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
) -> AttackSuccess:
    """Count attacks that worked, and honest answers that were taken for one.

    ``attacks``: For each attack whether it got what it was after; None without a verdict.
    ``controls``: For each honest answer whether it was wrongly refused; None without a verdict.
    ``clusters``: For each attack the name of its cluster, such as the answer that it was played on,
    for the interval (see `cluster_rate`).
    """
    success = _rate(attacks, clusters, confidence)
    false_alarms = _rate(controls, control_clusters, confidence)
    return AttackSuccess(
        success=success,
        false_alarms=false_alarms,
        excluded=len(attacks) + len(controls) - success.n - false_alarms.n,
    )


def _rate(
    outcomes: Sequence[bool | None], clusters: Sequence[Hashable] | None, confidence: float
) -> Interval:
    """The rate of the outcomes that are known."""
    check_same_length(outcomes=outcomes, clusters=clusters)
    names = (
        None
        if clusters is None
        else [c for c, one in zip(clusters, outcomes, strict=True) if one is not None]
    )
    return cluster_rate(_outcomes(outcomes), names, confidence=confidence)


def _differing(counts: Counter[Level]) -> float:
    k = counts.total()
    return 1 - sum(c * (c - 1) for c in counts.values()) / (k * (k - 1))


def _outcomes(outcomes: Sequence[bool | None]) -> list[bool]:
    for outcome in outcomes:
        if outcome is not None and outcome is not True and outcome is not False:
            raise ScoreError(f"outcome {outcome!r} is not a bool", hint="say whether it worked")
    return [outcome for outcome in outcomes if outcome is not None]
