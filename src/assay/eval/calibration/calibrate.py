"""Calibrate a grader: ask it what people were asked, and compare.

Each section of the card is a function of what the grader said of labelled rows. The measures have a
file of their own, `assay.eval.calibration.measures`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from math import fsum

from assay.eval.calibration.asking import (
    Findings,
    Judged,
    Options,
    Target,
    ask,
    attacks_on,
    controls_on,
    key_of,
    plan,
    truth_of,
)
from assay.eval.calibration.card import (
    AttackCount,
    Attacked,
    Card,
    Coverage,
    Disagreement,
    Figure,
    Flipped,
    Humans,
    LabelsUsed,
    figure,
    rate_figure,
)
from assay.eval.calibration.labelled import CalibrationItem, LabelledSet
from assay.eval.calibration.measures import ScoresWithLabels
from assay.eval.calibration.scale import Scale
from assay.eval.calibration.spending import cost_of
from assay.scoring.graded import Graded
from assay.statistics.classes import AlphaMetric, KappaWeights, class_confusion, krippendorff_alpha
from assay.statistics.consistency import attack_success, flip_rate
from assay.statistics.intervals import are_clustered
from assay.version import __version__

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


async def calibrate(
    target: Target,
    labelled: LabelledSet,
    options: Options,
    *,
    earlier: Iterable[tuple[str, Graded]] = (),
    keep: Callable[[Judged], None] = lambda _: None,
    on_done: Callable[[Graded], None] = lambda _: None,
) -> Card:
    """Ask a grader about labelled rows and say how far it agrees; see `ask`.

    Raises:
        InputError: For options that do not fit the rows, or a grader that cannot grade them.
    """
    units = plan(labelled, options)
    outcomes = await ask(units, target, earlier=earlier, keep=keep, on_done=on_done)
    return card_of(target, labelled, options, outcomes)


def card_of(
    target: Target, labelled: LabelledSet, options: Options, outcomes: Mapping[str, Graded]
) -> Card:
    """The card that follows from what a grader said, by the key of the unit."""
    found, scale = Findings(target, labelled, options, outcomes), labelled.scale
    compared = ScoresWithLabels(found)
    return Card(
        grader=target.name,
        kind=target.kind,
        digest=target.digest,
        alias=target.alias,
        made_of=target.made_of,
        models=target.models,
        assay=__version__,
        labels=LabelsUsed(
            name=labelled.name,
            field=labelled.field,
            digest=labelled.digest,
            kind=scale.kind,
            classes=scale.classes or ("no", "yes"),
            rows=labelled.rows,
            raters=labelled.raters,
            cluster=labelled.cluster,
            clusters=compared.clusters,
        ),
        coverage=_coverage(found),
        threshold=found.threshold,
        measures=compared.measures(),
        confusion=compared.table.counts,
        baselines=compared.baselines(),
        humans=_humans(found),
        flips=_flips(found),
        attacks=_attacks(found),
        cost=cost_of(outcomes.values()),
        worst=_worst(found),
        is_named=target.is_named,
    )


def _coverage(found: Findings) -> Coverage:
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


def _worst(found: Findings) -> tuple[Disagreement, ...]:
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


def _disagreement(found: Findings, one: CalibrationItem, score: float) -> Disagreement:
    graded = found.outcomes[key_of(one.item.digest)]
    scale, truth = found.labelled.scale, truth_of(one)
    classes = scale.classes or ("no", "yes")
    return Disagreement(
        row=one.item.id,
        label=f"{truth:.4g}" if scale.kind == "number" else classes[found.place_of_label(truth)],
        score=score,
        verdict=classes[found.place(score)],
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


def _flips(found: Findings) -> Flipped | None:
    """What repeats say; None where there were none."""
    repeats, compared = found.options.repeats, found.compared()
    if repeats < 2:
        return None
    said = [
        [None if score is None else found.place(score) for score in found.every(one)]
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


def _attacks(found: Findings) -> Attacked | None:
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


def _humans(found: Findings) -> Humans | None:
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
    scale = found.labelled.scale
    among: dict[tuple[str, str], list[tuple[int, int]]] = {}
    with_grader: dict[str, list[tuple[int, int]]] = {}
    rated: list[list[float]] = []
    for one in several:
        score = found.score(one)
        if score is None:
            continue
        values = {who: scale.value(label) for who, label in one.labels.items()}
        places = {who: found.place_of_label(value) for who, value in values.items()}
        rated.append(list(values.values()))
        for first, second in combinations(sorted(places), 2):
            among.setdefault((first, second), []).append((places[first], places[second]))
        graded = found.place(score)
        for who, place in places.items():
            with_grader.setdefault(who, []).append((graded, place))
    alpha = krippendorff_alpha(rated, metric=_METRICS.get(scale.kind, "interval"))
    return Humans(
        items=len(rated),
        kappa=_mean_kappa(among.values(), scale.compared),
        alpha=alpha.value,
        grader=_mean_kappa(with_grader.values(), scale.compared),
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
