"""Whether a grader says the same again: of repeats, of exchanged answers, and under attack."""

from __future__ import annotations

from collections import Counter
from typing import Literal, TypeAlias

from assay.eval.calibration.attacks import dealt
from assay.eval.calibration.card import AttackCount, Attacked, Flipped, Order, figure
from assay.eval.calibration.findings import SAME, Findings, truth_of
from assay.eval.calibration.labelled import LabelledItem
from assay.eval.calibration.measures import rate_figure
from assay.eval.calibration.plan import failing, passing, swap_field
from assay.scoring.consistency import (
    OrderedVerdicts,
    Slot,
    attack_success,
    flip_rate,
    position_bias,
)
from assay.scoring.intervals import are_clustered

__all__ = ["attacks_of", "flips_of", "order_of"]

_SHOWN = 20
_Winners: TypeAlias = "tuple[Slot | None, Slot | None]"
_OWN_ORDERS = "(the grader asks both itself)"


def flips_of(found: Findings) -> Flipped | None:
    """What repeats say; None where there were none."""
    repeats, compared = found.options.repeats, found.compared()
    if repeats < 2:
        return None
    said = [
        [found.place(found.score(one, repeat=repeat)) for repeat in range(repeats)]
        for one in compared
    ]
    names = [one.cluster for one in compared]
    flips = flip_rate(said, names, confidence=found.options.confidence)
    return Flipped(
        repeats=repeats,
        rate=figure(flips.rate, "clusters" if are_clustered(names) else "student"),
        flipped=flips.flipped,
        unscored=flips.unscored,
    )


def order_of(found: Findings) -> Order | None:
    """What exchanging the two answers of a pair does; None where it was not asked for."""
    name, compared = _OWN_ORDERS, found.compared()
    asked: list[_Winners] = [_own_orders(found, one) for one in compared]
    if all(slots == (None, None) for slots in asked):
        if not found.options.swap:
            return None
        name = swap_field(found.labelled, found.options.swap)
        asked = [(_slot(found.score(one)), _slot(found.score(one, "swapped"))) for one in compared]
    pairs = [
        OrderedVerdicts(forward, swapped, _better(truth_of(one)))
        for one, (forward, swapped) in zip(compared, asked, strict=True)
    ]
    names = [one.cluster for one in compared]
    clusters = names if are_clustered(names) else None
    bias = position_bias(pairs, clusters, confidence=found.options.confidence)
    return Order(
        field=name,
        consistency=rate_figure(bias.consistency, names),
        first_slot=rate_figure(bias.first_slot, names),
        both_right=rate_figure(bias.both_right, names),
        ties=bias.ties,
        excluded=bias.excluded,
    )


def attacks_of(found: Findings) -> Attacked | None:
    """What adding text to answers does; None where nothing was added."""
    options = found.options
    if not options.attacks:
        return None
    bad, good = failing(found.labelled, options), passing(found.labelled, options)
    raised: list[bool | None] = []
    passed: list[bool | None] = []
    lowered: list[bool | None] = []
    clusters: dict[str, list[str]] = {"raised": [], "passed": [], "lowered": []}
    families: dict[str, list[int]] = {}
    worst: Counter[str] = Counter()
    for place, attack in dealt(options.attacks, len(bad)):
        clusters["raised"].append(bad[place].cluster)
        before = found.highest(bad[place])
        after = found.score(bad[place], f"attack {attack.id}")
        if before is None or after is None:
            raised.append(None)
            continue
        worked = after > before + SAME
        raised.append(worked)
        if before < found.threshold - SAME:
            passed.append(after >= found.threshold - SAME)
            clusters["passed"].append(bad[place].cluster)
        counted = families.setdefault(attack.family, [0, 0])
        counted[0] += worked
        counted[1] += 1
        worst[attack.id] += worked
    for place, control in dealt(options.controls, len(good)):
        clusters["lowered"].append(good[place].cluster)
        before = found.lowest(good[place])
        after = found.score(good[place], f"control {control.id}")
        lowered.append(None if before is None or after is None else after < before - SAME)
    rate = attack_success(
        raised,
        lowered,
        clusters=clusters["raised"],
        control_clusters=clusters["lowered"],
        confidence=options.confidence,
    )
    won = attack_success(passed, clusters=clusters["passed"], confidence=options.confidence)
    return Attacked(
        source=options.attacks_from,
        rows=len(bad),
        raised=rate_figure(rate.success, clusters["raised"]),
        passed=rate_figure(won.success, clusters["passed"]),
        excluded=rate.excluded,
        families={name: AttackCount(*counted) for name, counted in sorted(families.items())},
        worst=tuple(name for name, times in worst.most_common(_SHOWN) if times),
        false_alarms=rate_figure(rate.false_alarms, clusters["lowered"]),
    )


def _own_orders(found: Findings, one: LabelledItem) -> _Winners:
    """The winners of both orders, of a grader that asks both itself, by their place."""
    graded = found.asked.of(one.item.digest)
    orders = None if graded is None else graded.details.get("orders")
    values = [
        value
        for order in (orders if isinstance(orders, list) else [])
        if isinstance(order, dict) and isinstance(value := order.get("value"), int | float)
    ]
    if len(values) != 2:
        return None, None
    # A value is for the answer, wherever it stands: in the second order that is second.
    return _slot(float(values[0])), _slot(1.0 - float(values[1]))


def _slot(score: float | None) -> Slot | None:
    """Which of two answers a score is for: above a half the first."""
    if score is None:
        return None
    if abs(score - 0.5) <= SAME:
        return "tie"
    return "first" if score > 0.5 else "second"


def _better(truth: float) -> Literal["a", "b"] | None:
    slot = _slot(truth)
    return None if slot == "tie" else "a" if slot == "first" else "b"
