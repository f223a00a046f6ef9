"""The sections of a card: each is a function of what a grader said of labelled rows.

The measures have a file of their own, `assay.eval.calibration.measures`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import fsum
from typing import cast

from assay.eval.calibration.asking import Options, Target, attacks_on, controls_on, key_of
from assay.eval.calibration.card import (
    AttackCount,
    Attacked,
    Coverage,
    Disagreement,
    Figure,
    Flipped,
    Humans,
    figure,
    rate_figure,
)
from assay.eval.calibration.labelled import LabelledItem, LabelledSet
from assay.eval.calibration.scale import VERDICTS, Scale
from assay.scoring.classes import AlphaMetric, KappaWeights, class_confusion, krippendorff_alpha
from assay.scoring.consistency import attack_success, flip_rate
from assay.scoring.graded import Graded
from assay.scoring.intervals import are_clustered

__all__ = [
    "Findings",
    "attacks_of",
    "coverage_of",
    "flips_of",
    "humans_of",
    "truth_of",
    "worst_of",
]

_SAME = 1e-9
"""Scores closer than this are the same."""

_SHOWN = 20
_MOST_CAUSES = 5
_MOST_REASON = 500
_MOST_ANSWER = 2_000
_METRICS: Mapping[str, AlphaMetric] = {"verdict": "nominal", "levels": "ordinal"}
_FEWEST = 5
"""Two raters with fewer rows in common are passed over: agreement on one row has no kappa, and
disagreement has one of 0, so that the mean of many such pairs would only know the bad ones."""


@dataclass(frozen=True, slots=True)
class Findings:
    """A grader, the rows it was asked about, and what it said.

    Attributes:
        target: The grader.
        labelled: The rows.
        options: What is measured.
        outcomes: What came of the asking, by the key of the unit.
    """

    target: Target
    labelled: LabelledSet
    options: Options
    outcomes: Mapping[str, Graded]

    @property
    def threshold(self) -> float:
        """The score from which a row passes."""
        own, said = self.target.threshold, self.options.threshold
        return own if said is None else said

    def score(self, one: LabelledItem, variant: str = "plain", repeat: int = 0) -> float | None:
        """A row's score; None where it has none that can be compared."""
        graded = self.outcomes.get(key_of(one.item.digest, variant, repeat))
        if graded is None or graded.score is None:
            return None
        is_verdict = self.labelled.scale.kind == "verdict"
        return graded.score if is_verdict or 0.0 <= graded.score <= 1.0 else None

    def repeats(self, one: LabelledItem) -> list[float]:
        """The scores of a row's repeats, those that it has."""
        scores = [self.score(one, repeat=repeat) for repeat in range(self.options.repeats)]
        return [score for score in scores if score is not None]

    def scored(self) -> Iterator[tuple[LabelledItem, float]]:
        """The rows that are compared."""
        for one in self.labelled.items:
            score = self.score(one)
            if score is not None and one.truth is not None:
                yield one, score

    def compared(self) -> list[LabelledItem]:
        """The rows with one label, scored or not."""
        return [one for one in self.labelled.items if one.truth is not None]

    def passes(self, score: float) -> bool:
        """Whether it is at the threshold or above."""
        return score >= self.threshold - _SAME

    def place(self, score: float | None) -> int | None:
        """The class of a score; of numbers, whether it passes."""
        if score is None:
            return None
        scale = self.labelled.scale
        if scale.kind == "number":
            return self.passes(score)
        return scale.place(score, self.threshold)

    def place_of_label(self, truth: float) -> int:
        """The class of a label; of numbers, whether it passes."""
        scale = self.labelled.scale
        if scale.kind == "number":
            return self.passes(truth)
        return scale.place(truth, scale.bar(self.threshold))


def truth_of(one: LabelledItem) -> float:
    """The one label of a row that has one."""
    return cast("float", one.truth)


def coverage_of(found: Findings) -> Coverage:
    """What became of the rows."""
    causes: Counter[str] = Counter()
    skipped = errors = 0
    for one in found.compared():
        graded = found.outcomes.get(key_of(one.item.digest))
        if graded is None or found.score(one) is not None:
            continue
        if graded.status == "skipped":
            skipped += 1
            continue
        errors += 1
        causes[graded.error or f"the score {graded.score} is outside of [0, 1]"] += 1
    return Coverage(
        compared=sum(1 for _ in found.scored()),
        skipped=skipped,
        errors=errors,
        unlabelled=found.labelled.unlabelled,
        split=found.labelled.split,
        malformed=found.labelled.malformed,
        causes=dict(causes.most_common(_MOST_CAUSES)),
    )


def worst_of(found: Findings) -> tuple[Disagreement, ...]:
    """The rows on which both differ most, those of another class first."""
    rows = [
        (
            found.place(score) != found.place_of_label(truth_of(one)),
            abs(score - truth_of(one)),
            one,
            score,
        )
        for one, score in found.scored()
    ]
    rows = [row for row in rows if row[0] or row[1] > 0.25]
    rows.sort(key=lambda row: (-row[0], -row[1], row[2].item.id))
    return tuple(_disagreement(found, one, score) for _, _, one, score in rows[:_SHOWN])


def _disagreement(found: Findings, one: LabelledItem, score: float) -> Disagreement:
    graded = found.outcomes[key_of(one.item.digest)]
    scale, truth = found.labelled.scale, truth_of(one)
    classes = scale.classes or ("no", "yes")
    return Disagreement(
        row=one.item.id,
        label=f"{truth:.4g}" if scale.kind == "number" else classes[found.place_of_label(truth)],
        score=score,
        verdict=classes[found.place(score) or 0],
        reason=_reason(graded)[:_MOST_REASON],
        file=one.item.file,
        answer=(one.item.submission.answer or "")[:_MOST_ANSWER],
        question=(one.item.submission.question or "")[:_MOST_ANSWER],
        item=one.item.digest,
    )


def _reason(graded: Graded) -> str:
    """The grader's words; of a combined grade, those of its parts."""
    if graded.reason:
        return graded.reason
    nodes = graded.details.get("subscores")
    said: Sequence[str] = [
        f"{node.get('name')}: {node.get('reason')}"
        for node in (nodes if isinstance(nodes, list) else [])
        if isinstance(node, dict) and node.get("reason")
    ]
    return "; ".join(said)


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
    flips = flip_rate(said, names)
    return Flipped(
        repeats=repeats,
        rate=figure(flips.rate, "clusters" if are_clustered(names) else "student"),
        flipped=flips.flipped,
        unscored=flips.unscored,
    )


_Try = tuple[str, bool | None]
"""The cluster of an answer, and whether what was added to it worked; None without two scores."""


def attacks_of(found: Findings) -> Attacked | None:
    """What adding text to answers does; None where nothing was added.

    An attack has to beat every repeat of its answer: what chance gives is not its success.
    """
    options = found.options
    if not options.attacks:
        return None
    raised: list[_Try] = []
    passed: list[_Try] = []
    lowered: list[_Try] = []
    families: dict[str, list[bool]] = {}
    worst: Counter[str] = Counter()
    played = attacks_on(found.labelled, options)
    for one, attack in played:
        before = max(found.repeats(one), default=None)
        after = found.score(one, f"attack {attack.id}")
        if before is None or after is None:
            raised.append((one.cluster, None))
            continue
        worked = after > before + _SAME
        raised.append((one.cluster, worked))
        families.setdefault(attack.family, []).append(worked)
        worst[attack.id] += worked
        if not found.passes(before):
            passed.append((one.cluster, found.passes(after)))
    for one, control in controls_on(found.labelled, options):
        before = min(found.repeats(one), default=None)
        after = found.score(one, f"control {control.id}")
        if before is None or after is None:
            lowered.append((one.cluster, None))
        else:
            lowered.append((one.cluster, after < before - _SAME))
    return Attacked(
        source=options.attacks_from,
        rows=len({one.item.digest for one, _ in played}),
        raised=_worked(raised),
        passed=_worked(passed),
        excluded=sum(worked is None for _, worked in raised + lowered),
        families={
            name: AttackCount(sum(worked), len(worked)) for name, worked in sorted(families.items())
        },
        worst=tuple(name for name, times in worst.most_common(_SHOWN) if times),
        false_alarms=_worked(lowered),
    )


def _worked(tries: Sequence[_Try]) -> Figure:
    names = [name for name, _ in tries]
    return rate_figure(attack_success([one for _, one in tries], clusters=names).success, names)


def humans_of(found: Findings) -> Humans | None:
    """Compare people with each other, and the grader with every one of them.

    Cohen's kappa of two people on the rows that both labelled, averaged over the pairs of people
    (Light 1971), and of the grader and one person on the rows of this person, averaged over people;
    both weighted by the number of rows. Each is of two raters who may have habits of their own, so
    the grader reaches the ceiling if it agrees with people as they do with each other. Only rows
    with two labels and a score are used, for both.
    """
    several = [one for one in found.labelled.items if len(one.labels) > 1]
    if not several:
        return None
    scale, threshold = found.labelled.scale, found.threshold
    binary = scale if scale.kind == "levels" else VERDICTS
    among: dict[tuple[str, str], list[tuple[int, int]]] = {}
    with_grader: dict[str, list[tuple[int, int]]] = {}
    rated: list[list[float]] = []
    for one in several:
        score = found.score(one)
        if score is None:
            continue
        values = {who: scale.value(label) for who, label in one.labels.items()}
        places = {who: binary.place(value, scale.bar(threshold)) for who, value in values.items()}
        rated.append(list(values.values()))
        for first, second in combinations(sorted(places), 2):
            among.setdefault((first, second), []).append((places[first], places[second]))
        graded = binary.place(score, threshold)
        for who, place in places.items():
            with_grader.setdefault(who, []).append((graded, place))
    alpha = krippendorff_alpha(rated, metric=_METRICS.get(scale.kind, "interval"))
    return Humans(
        items=len(rated),
        kappa=_mean_kappa(among.values(), binary),
        alpha=alpha.value,
        grader=_mean_kappa(with_grader.values(), binary),
        excluded=len(several) - len(rated),
    )


def _mean_kappa(tables: Iterable[Sequence[tuple[int, int]]], scale: Scale) -> float | None:
    """Cohen's kappa of each two raters, and the mean by their rows; None where none is defined."""
    weights: KappaWeights = "quadratic" if scale.kind == "levels" else "none"
    levels = range(len(scale.classes))
    known: list[tuple[float, int]] = []
    for pairs in tables:
        if len(pairs) < _FEWEST:
            continue
        table = class_confusion([a for a, _ in pairs], [b for _, b in pairs], levels=levels)
        if (kappa := table.kappa(weights)) is not None:
            known.append((kappa, len(pairs)))
    rows = sum(n for _, n in known)
    return fsum(kappa * n for kappa, n in known) / rows if rows else None
