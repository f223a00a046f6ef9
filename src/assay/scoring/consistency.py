"""Whether a judge says the same again: asked twice, with the answers swapped, under attack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Literal, TypeAlias

from assay.errors import ScoreError
from assay.scoring.classes import Level, class_confusion, levels_of
from assay.scoring.intervals import Interval, check_same_length, cluster_mean, cluster_rate

__all__ = [
    "AttackSuccess",
    "Flips",
    "OrderedVerdicts",
    "PositionBias",
    "Slot",
    "attack_success",
    "flip_rate",
    "position_bias",
]

Slot: TypeAlias = Literal["first", "second", "tie"]
"""Which of two answers a judge prefers, by where it was shown."""


@dataclass(frozen=True, slots=True)
class Flips:
    """How often a judge contradicts itself on the same item.

    Attributes:
        rate: Mean over items of the chance that two of its repeats differ, in [0, 1]; ``n`` counts
            items. At most ``k / (2 (k - 1))`` for k repeats of a verdict with two words.
        flipped: How many items have more than one verdict.
        excluded: Items with fewer than two verdicts: they compare nothing.
        unscored: Repeats that gave no verdict.
    """

    rate: Interval
    flipped: int
    excluded: int
    unscored: int


@dataclass(frozen=True, slots=True)
class OrderedVerdicts:
    """What a judge prefers of answers A and B, shown in both orders.

    Attributes:
        forward: Its verdict with A first; None where it gave none.
        swapped: Its verdict with B first.
        better: Which answer is better by label, if that is known.
    """

    forward: Slot | None
    swapped: Slot | None
    better: Literal["a", "b"] | None = None


@dataclass(frozen=True, slots=True)
class PositionBias:
    """How much a judge of pairs looks at the place instead of the answer.

    Attributes:
        consistency: Share of pairs with the same winner in both orders. A tie is inconsistent:
            one that says tie to everything decides nothing.
        kappa: Cohen's kappa of the winners (A, B, tie) in the two orders; None where undefined.
        first_slot: Share of the verdicts for a slot, ties left out, that are for the first; 0.5
            for a fair judge if both orders are asked. Without clusters its interval takes them as
            independent.
        both_right: Share of the labelled pairs that are right in both orders.
        forward_right: Share of the labelled pairs that are right with A first; a tie is not.
        swapped_right: The same with B first.
        ties: Verdicts that are ties.
        excluded: Pairs left out because an order has no verdict.
    """

    consistency: Interval
    kappa: float | None
    first_slot: Interval
    both_right: Interval
    forward_right: Interval
    swapped_right: Interval
    ties: int
    excluded: int


@dataclass(frozen=True, slots=True)
class AttackSuccess:
    """How often attacks on a judge work, and what its defence costs honest answers.

    Attributes:
        success: Share of attacks that got the verdict they were after, with its interval.
        false_alarms: Share of honest controls treated as an attack.
        excluded: Attacks and controls without a verdict, such as those that broke the judge's
            reply: an error pays an attacker nothing, but is no defence held either.
    """

    success: Interval
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

    Raises:
        ScoreError: For verdicts of mixed kinds, or different lengths.
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


def position_bias(
    pairs: Sequence[OrderedVerdicts],
    clusters: Sequence[Hashable] | None = None,
    *,
    confidence: float = 0.95,
) -> PositionBias:
    """Compare a judge's verdicts on pairs of answers with those on the same pairs swapped.

    Raises:
        ScoreError: For a verdict or label that is not one of the words, or different lengths.
    """
    check_same_length(pairs=pairs, clusters=clusters)
    for pair in pairs:
        _check_words(pair)
    is_asked = [pair.forward is not None and pair.swapped is not None for pair in pairs]
    asked = [pair for pair, is_in in zip(pairs, is_asked, strict=True) if is_in]
    names = None if clusters is None else list(compress(clusters, is_asked))
    # Swapped, B is in the first slot.
    forward = [_winner(pair.forward, first="a", second="b") for pair in asked]
    swapped = [_winner(pair.swapped, first="b", second="a") for pair in asked]
    labelled = [
        (before == pair.better, after == pair.better)
        for pair, before, after in zip(asked, forward, swapped, strict=True)
        if pair.better is not None
    ]
    same = [a == b != "tie" for a, b in zip(forward, swapped, strict=True)]
    for_slot = [[slot == "first" for slot in (pair.forward, pair.swapped) if slot != "tie"]
                for pair in asked]  # fmt: skip

    def rate(outcomes: Sequence[bool], sizes: Sequence[int]) -> Interval:
        """Of as many outcomes from each pair as its size says."""
        if names is None:
            return cluster_rate(outcomes, confidence=confidence)
        each = [name for name, size in zip(names, sizes, strict=True) for _ in range(size)]
        return cluster_rate(outcomes, each, confidence=confidence)

    every, known = [1] * len(asked), [int(pair.better is not None) for pair in asked]
    return PositionBias(
        consistency=rate(same, every),
        kappa=class_confusion(swapped, forward).kappa(),
        first_slot=rate([one for both in for_slot for one in both], list(map(len, for_slot))),
        both_right=rate([before and after for before, after in labelled], known),
        forward_right=rate([before for before, _ in labelled], known),
        swapped_right=rate([after for _, after in labelled], known),
        ties=2 * len(asked) - sum(map(len, for_slot)),
        excluded=len(pairs) - len(asked),
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

    Args:
        attacks: For each attack whether it got what it was after; None without a verdict.
        controls: For each honest answer whether it was wrongly refused; None without a verdict.
        clusters: For each attack the name of its cluster, such as the answer that it was played
            on, for the interval (see `cluster_rate`).
        control_clusters: The same of the controls.
        confidence: How often such intervals contain the true rate.

    Raises:
        ScoreError: For an outcome that is neither a bool nor None, or different lengths.
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


def _winner(slot: Slot | None, *, first: str, second: str) -> str:
    return {"first": first, "second": second}.get(slot or "", "tie")


def _check_words(pair: OrderedVerdicts) -> None:
    slots = ("first", "second", "tie", None)
    if (
        pair.forward not in slots
        or pair.swapped not in slots
        or pair.better not in ("a", "b", None)
    ):
        raise ScoreError(
            f"{pair} has a word that is not known",
            hint="verdicts are first, second or tie, labels a or b; None where there is none",
        )


def _outcomes(outcomes: Sequence[bool | None]) -> list[bool]:
    for outcome in outcomes:
        if outcome is not None and outcome is not True and outcome is not False:
            raise ScoreError(f"outcome {outcome!r} is not a bool", hint="say whether it worked")
    return [outcome for outcome in outcomes if outcome is not None]
