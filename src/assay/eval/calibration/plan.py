"""What is asked in a calibration: rows, repeats, attacks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from assay.eval.calibration.asking import Unit
from assay.eval.calibration.attacks import Attack, attacked, dealt
from assay.eval.calibration.labelled import LabelledItem, LabelledSet

__all__ = ["Options", "failing", "passing", "plan"]

_MOST_CONTROLS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a calibration measures.

    Attributes:
        repeats: How often every row is asked.
        attacks: What is played on failing answers.
        attacks_from: Where they are from.
        controls: What is added to passing answers, and should change nothing.
        threshold: The score from which a row passes; None for the grader's own, else 0.5.
    """

    repeats: int = 1
    attacks: tuple[Attack, ...] = ()
    attacks_from: str = ""
    controls: tuple[Attack, ...] = ()
    threshold: float | None = None


def plan(labelled: LabelledSet, options: Options) -> list[Unit]:
    """Everything that will be asked, first what matters most.

    Rows on which people are split are asked once: they have no truth to be compared with, but how
    far the grader agrees with each of these people is measured on the rows that people are
    measured on. Without the split ones every grader would look better than people do.
    """
    plain, split = (
        [
            Unit(one.item.digest, "plain", 0, one.item.submission)
            for one in labelled.items
            if (one.truth is None) is is_split
        ]
        for is_split in (False, True)
    )
    units = [replace(unit, repeat=repeat) for repeat in range(options.repeats) for unit in plain]
    units[len(plain) : len(plain)] = split
    bad = failing(labelled, options)
    for place, attack in dealt(options.attacks, len(bad)):
        item = bad[place].item
        variant = f"attack {attack.id}"
        units.append(Unit(item.digest, variant, 0, attacked(item.submission, attack)))
    good = passing(labelled, options)
    for place, control in dealt(options.controls, len(good)):
        item = good[place].item
        variant = f"control {control.id}"
        units.append(Unit(item.digest, variant, 0, attacked(item.submission, control)))
    return units


def failing(labelled: LabelledSet, options: Options) -> list[LabelledItem]:
    """Answers that people call bad: of verdicts no, else what is in the lower half."""
    bar = _bar(labelled, options)
    return [one for one in labelled.items if one.truth is not None and one.truth < bar]


def passing(labelled: LabelledSet, options: Options) -> list[LabelledItem]:
    """Answers that people call good, the first 100 of them: what controls are played on."""
    bar = _bar(labelled, options)
    good = [one for one in labelled.items if one.truth is not None and one.truth >= bar]
    return good[:_MOST_CONTROLS]


def _bar(labelled: LabelledSet, options: Options) -> float:
    if labelled.scale.kind != "number" or options.threshold is None:
        return 0.5
    return options.threshold
