"""What is asked in a calibration: rows, repeats, exchanged answers, attacks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from assay.errors import InputError
from assay.eval.calibration.asking import Unit
from assay.eval.calibration.attacks import Attack, attacked, dealt
from assay.eval.calibration.labelled import LabelledItem, LabelledSet, cluster_of
from assay.types.submission import Submission

__all__ = ["Options", "failing", "passing", "plan", "swap_field"]

_MOST_CONTROLS = 100
_SWAPPED_BY_DEFAULT = ("other", "answer_b", "baseline", "expected")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a calibration measures.

    Attributes:
        repeats: How often every row is asked.
        swap: The field whose text is exchanged with the answer, for graders of pairs; ``auto`` to
            find it, empty not to.
        attacks: What is played on failing answers.
        attacks_from: Where they are from.
        controls: What is added to passing answers, and should change nothing.
        threshold: The score from which a row passes; None for the target's.
        confidence: How often intervals contain the true value.
        seed: Of what is drawn at random.
        unlabelled: Whether to grade rows without a label, too, and correct their pass rate.
    """

    repeats: int = 1
    swap: str = ""
    attacks: tuple[Attack, ...] = ()
    attacks_from: str = ""
    controls: tuple[Attack, ...] = ()
    threshold: float | None = None
    confidence: float = 0.95
    seed: int = 0
    unlabelled: bool = False


def plan(labelled: LabelledSet, options: Options) -> list[Unit]:
    """Everything that will be asked, first what matters most.

    Rows on which people are split are asked once: they have no truth to be compared with, but how
    far the grader agrees with each of these people is measured on the rows that people are
    measured on. Without the split ones every grader would look better than people do.

    Raises:
        InputError: For pairs without the other answer, or unlabelled rows without a cluster.
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
    if options.unlabelled:
        for item in labelled.unlabelled:
            cluster_of(item, labelled.cluster)  # before anything is asked
        units += [
            Unit(item.digest, "unlabelled", 0, item.submission) for item in labelled.unlabelled
        ]
    if options.swap:
        name = swap_field(labelled, options.swap)
        units += [
            Unit(unit.item, "swapped", 0, _swapped(unit.submission, name, unit.item))
            for unit in plain
        ]
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


def swap_field(labelled: LabelledSet, name: str) -> str:
    """The field with the other answer.

    Raises:
        InputError: If it was to be found, and there is none.
    """
    if name != "auto":
        return name
    first = labelled.items[0].item.submission
    for candidate in _SWAPPED_BY_DEFAULT:
        if isinstance(_other(first, candidate), str):
            return candidate
    raise InputError(
        "no row has a second answer to exchange with its answer",
        hint=f"name its field, --swap FIELD; looked for {', '.join(_SWAPPED_BY_DEFAULT)}",
    )


def _other(submission: Submission, name: str) -> object:
    return submission.expected if name == "expected" else submission.metadata.get(name)


def _swapped(submission: Submission, name: str, item: str) -> Submission:
    other, answer = _other(submission, name), submission.answer
    if not isinstance(other, str) or answer is None:
        raise InputError(
            f"a row ({item[:8]}) has no text in {name!r} to exchange with its answer",
            hint="--swap is for pairs of answers",
        )
    if name == "expected":
        return replace(submission, answer=other, expected=answer)
    return replace(submission, answer=other, metadata={**submission.metadata, name: answer})
