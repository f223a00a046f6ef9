"""Whether a judge says the same again: asked twice, with the answers swapped, under attack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from assay.errors import ScoreError
from assay.scoring.classes import Level, class_confusion, levels_of
from assay.scoring.intervals import Interval, mean_interval, wilson

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
            for a fair judge if both orders are asked. Its interval takes them as independent.
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
        success: Share of attacks that got the verdict they were after, with its Wilson interval.
        false_alarms: Share of honest controls treated as an attack.
        excluded: Attacks and controls without a verdict, such as those that broke the judge's
            reply: an error pays an attacker nothing, but is no defence held either.
    """

    success: Interval
    false_alarms: Interval
    excluded: int


def flip_rate(items: Sequence[Sequence[Level | None]], *, confidence: float = 0.95) -> Flips:
    """How often two repeats of a judge on the same item differ.

    For each item ``1 - sum_v c_v (c_v - 1) / (k (k - 1))``, where c_v of its k verdicts are v: for
    two words ``2 c (k - c) / (k (k - 1))``. The mean of these over items.

    Args:
        items: For each item the verdicts of its repeats; None where one gave none.
        confidence: As in `mean_interval`.

    Raises:
        ScoreError: For verdicts of mixed kinds.
    """
    levels_of([verdict for verdicts in items for verdict in verdicts])
    given = [[v for v in verdicts if v is not None] for verdicts in items]
    repeated = [Counter(verdicts) for verdicts in given if len(verdicts) > 1]
    rates = [_differing(counts) for counts in repeated]
    return Flips(
        rate=mean_interval(rates, confidence=confidence),
        flipped=sum(len(counts) > 1 for counts in repeated),
        excluded=len(items) - len(repeated),
        unscored=sum(map(len, items)) - sum(map(len, given)),
    )


def position_bias(pairs: Sequence[OrderedVerdicts], *, confidence: float = 0.95) -> PositionBias:
    """Compare a judge's verdicts on pairs of answers with those on the same pairs swapped.

    All intervals are Wilson's.

    Raises:
        ScoreError: For a verdict or label that is not one of the words.
    """
    for pair in pairs:
        _check_words(pair)
    asked = [pair for pair in pairs if pair.forward is not None and pair.swapped is not None]
    # Swapped, B is in the first slot.
    forward = [_winner(pair.forward, first="a", second="b") for pair in asked]
    swapped = [_winner(pair.swapped, first="b", second="a") for pair in asked]
    slots = Counter(slot for pair in asked for slot in (pair.forward, pair.swapped))
    labelled = [
        (before == pair.better, after == pair.better)
        for pair, before, after in zip(asked, forward, swapped, strict=True)
        if pair.better is not None
    ]
    same = sum(a == b != "tie" for a, b in zip(forward, swapped, strict=True))

    def rate(successes: int, n: int) -> Interval:
        return wilson(successes, n, confidence=confidence)

    return PositionBias(
        consistency=rate(same, len(asked)),
        kappa=class_confusion(swapped, forward).kappa(),
        first_slot=rate(slots["first"], slots["first"] + slots["second"]),
        both_right=rate(labelled.count((True, True)), len(labelled)),
        forward_right=rate(sum(before for before, _ in labelled), len(labelled)),
        swapped_right=rate(sum(after for _, after in labelled), len(labelled)),
        ties=slots["tie"],
        excluded=len(pairs) - len(asked),
    )


def attack_success(
    attacks: Sequence[bool | None],
    controls: Sequence[bool | None] = (),
    *,
    confidence: float = 0.95,
) -> AttackSuccess:
    """Count attacks that worked, and honest answers that were taken for one.

    Args:
        attacks: For each attack whether it got what it was after; None without a verdict.
        controls: For each honest answer whether it was wrongly refused; None without a verdict.
        confidence: As in `wilson`.

    Raises:
        ScoreError: For an outcome that is neither a bool nor None.
    """
    tried = _outcomes(attacks)
    honest = _outcomes(controls)
    return AttackSuccess(
        success=wilson(sum(tried), len(tried), confidence=confidence),
        false_alarms=wilson(sum(honest), len(honest), confidence=confidence),
        excluded=len(attacks) + len(controls) - len(tried) - len(honest),
    )


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
            raise ScoreError(f"outcome {outcome!r} is no bool", hint="say whether it worked")
    return [outcome for outcome in outcomes if outcome is not None]
