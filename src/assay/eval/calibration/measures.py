"""The measures of a calibration: predictions and labels, row by row, become figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from random import Random
from statistics import fmean

from assay.eval.calibration.card import Figure, Humans, figure
from assay.eval.calibration.scale import Label, Scale
from assay.scoring.agreement import Confusion
from assay.scoring.bootstrap import Bootstrap, bootstrap_all, bootstrap_items
from assay.scoring.calibrated import corrected_rate
from assay.scoring.classes import (
    ClassConfusion,
    KappaWeights,
    class_confusion,
    class_counts_by_cluster,
)
from assay.scoring.clustered import cluster_mean
from assay.scoring.intervals import wilson
from assay.scoring.ranking import auroc, pearson, spearman
from assay.scoring.raters import AlphaMetric, krippendorff_alpha

__all__ = ["Compared", "Pair", "compare", "compare_people"]

_RESAMPLES = 2_000
_FEW_RESAMPLES = 400
_MANY_ROWS = 500
_BLOCKS = 100
_YES = 1


@dataclass(frozen=True, slots=True)
class Pair:
    """One row with a score and a label.

    Attributes:
        score: The grader's.
        truth: The label, in [0, 1].
        cluster: Which rows are not independent of it.
    """

    score: float
    truth: float
    cluster: str


@dataclass(frozen=True, slots=True)
class Compared:
    """The measures of a set of rows; see `assay.eval.calibration.card.Card`."""

    measures: dict[str, Figure]
    baselines: dict[str, float]
    confusion: tuple[tuple[int, ...], ...]
    clusters: int


def compare(
    pairs: Sequence[Pair],
    scale: Scale,
    *,
    threshold: float,
    confidence: float,
    seed: int,
    unlabelled: Sequence[float] = (),
) -> Compared:
    """Compare scores with labels.

    Args:
        pairs: The rows that have both.
        scale: What the labels are.
        threshold: The score, and for numbers also the label, from which a row passes.
        confidence: How often intervals contain the true value.
        seed: Of the bootstrap.
        unlabelled: Scores of rows without a label, whose pass rate is corrected.
    """
    work = _Comparison(pairs, scale, threshold, confidence, seed)
    measures = work.classes()
    if scale.kind != "levels":
        measures |= work.verdicts(unlabelled)
    if scale.kind != "verdict":
        measures |= work.numbers()
    return Compared(measures, work.baselines(), work.table.counts, len({p.cluster for p in pairs}))


class _Comparison:
    """Pairs on a scale, and what they come to."""

    def __init__(
        self,
        pairs: Sequence[Pair],
        scale: Scale,
        threshold: float,
        confidence: float,
        seed: int,
    ) -> None:
        self._pairs = pairs
        self._scale = scale
        self._threshold = threshold
        self._confidence = confidence
        self._seed = seed
        self._names = [pair.cluster for pair in pairs]
        self._is_clustered = len(set(self._names)) < len(pairs)
        binary = scale if scale.kind == "levels" else _VERDICTS
        self._levels = list(range(len(binary.classes)))
        self._said = [binary.place(pair.score, threshold) for pair in pairs]
        self._true = [binary.place(pair.truth, threshold) for pair in pairs]
        self._weights: KappaWeights = "quadratic" if scale.kind == "levels" else "none"
        self.table = class_confusion(self._said, self._true, levels=self._levels)

    def classes(self) -> dict[str, Figure]:
        """Measures of classes, whatever they are."""
        size = len(self._levels)

        @cache
        def table(totals: tuple[int, ...]) -> ClassConfusion:
            counts = tuple(totals[i * size : (i + 1) * size] for i in range(size))
            return ClassConfusion(tuple(self._levels), counts, ordered=True)

        drawn = bootstrap_all(
            class_counts_by_cluster(self._said, self._true, self._names, levels=self._levels),
            {
                "kappa": lambda totals: table(tuple(totals)).kappa(self._weights),
                "balanced_accuracy": lambda totals: table(tuple(totals)).balanced_accuracy,
                "macro_f1": lambda totals: table(tuple(totals)).macro_f1,
            },
            confidence=self._confidence,
            resamples=_RESAMPLES,
            seed=self._seed,
        )
        measures = {name: _drawn(found, len(self._pairs)) for name, found in drawn.items()}
        if size == 2 and not self._is_clustered:
            # A formula that holds for few rows, where resampling knows only what it has seen.
            found = self._confusion().kappa_interval(confidence=self._confidence)
            measures["kappa"] = figure(found, "padded")
        right = [said == true for said, true in zip(self._said, self._true, strict=True)]
        measures["accuracy"] = self._rate(right, self._names)
        return measures

    def verdicts(self, unlabelled: Sequence[float]) -> dict[str, Figure]:
        """Measures of yes and no."""
        table, names = self._confusion(), self._names
        rows = list(zip(self._said, self._true, names, strict=True))
        measures = {
            "sensitivity": self._share([(s == _YES, c) for s, t, c in rows if t == _YES]),
            "specificity": self._share([(s != _YES, c) for s, t, c in rows if t != _YES]),
            "precision": self._share([(t == _YES, c) for s, t, c in rows if s == _YES]),
            "labelled_rate": self._share([(t == _YES, c) for _, t, c in rows]),
            "pass_rate": self._share([(s == _YES, c) for s, _, c in rows]),
        }
        passed, judged = table.tp + table.fp, table.n
        if unlabelled:
            judged = len(unlabelled)
            passed = sum(_VERDICTS.place(score, self._threshold) == _YES for score in unlabelled)
            measures["unlabelled_pass_rate"] = figure(
                wilson(passed, judged, confidence=self._confidence), "wilson"
            )
        corrected = corrected_rate(passed, judged, table, confidence=self._confidence)
        if corrected.refused is None:
            measures["corrected_pass_rate"] = figure(corrected.corrected, "rogan-gladen")
        scores = [pair.score for pair in self._pairs]
        if len(set(scores)) > 2:
            labels = [true == _YES for true in self._true]
            found = auroc(scores, labels, names, confidence=self._confidence)
            measures["auroc"] = figure(found.estimate, "delong")
        return measures

    def numbers(self) -> dict[str, Figure]:
        """Measures of size and order."""
        members: dict[str, list[Pair]] = {}
        for pair in self._pairs:
            members.setdefault(pair.cluster, []).append(pair)
        resamples = _RESAMPLES if len(self._pairs) <= _MANY_ROWS else _FEW_RESAMPLES
        found = bootstrap_items(
            _blocks(list(members.values()), self._seed),
            lambda drawn: spearman([p.score for p in drawn], [p.truth for p in drawn]).value,
            confidence=self._confidence,
            resamples=resamples,
            seed=self._seed,
        )
        errors = [abs(pair.score - pair.truth) for pair in self._pairs]
        mean = cluster_mean(errors, self._names, confidence=self._confidence, bounds=None)
        linear = pearson([p.score for p in self._pairs], [p.truth for p in self._pairs])
        return {
            "spearman": _drawn(found, len(self._pairs)),
            "pearson": Figure(linear, n=len(self._pairs)),
            "mean_absolute_error": figure(mean.estimate, "clusters"),
        }

    def baselines(self) -> dict[str, float]:
        """What graders get that do not look."""
        found: dict[str, float | None] = {"majority": self.table.majority_accuracy}
        if len(self._levels) == 2:
            found["always_yes"] = self._confusion().base_rate
        if self._scale.kind != "verdict" and self._pairs:
            truths = sorted(pair.truth for pair in self._pairs)
            median = truths[len(truths) // 2]
            found["median_error"] = fmean(abs(truth - median) for truth in truths)
        return {name: value for name, value in found.items() if value is not None}

    def _confusion(self) -> Confusion:
        (tn, fp), (fn, tp) = self.table.counts
        return Confusion(tp=tp, fp=fp, tn=tn, fn=fn)

    def _share(self, outcomes: Sequence[tuple[bool, str]]) -> Figure:
        return self._rate([right for right, _ in outcomes], [name for _, name in outcomes])

    def _rate(self, outcomes: Sequence[bool], names: Sequence[str]) -> Figure:
        """A share with Wilson's interval, or that of clusters where rows are not independent."""
        if not self._is_clustered:
            found = wilson(sum(outcomes), len(outcomes), confidence=self._confidence)
            return figure(found, "wilson")
        values = [float(outcome) for outcome in outcomes]
        mean = cluster_mean(values, names, confidence=self._confidence).estimate
        return Figure(mean.mean, mean.low, mean.high, len(values), "clusters")


_VERDICTS = Scale(kind="verdict", classes=("no", "yes"), places={})


def _blocks(clusters: list[list[Pair]], seed: int) -> list[list[Pair]]:
    """Clusters thrown together at random until they are few enough to leave out one by one.

    Blocks of independent clusters are independent too; fewer only make the interval less smooth.
    """
    if len(clusters) <= _MANY_ROWS:
        return clusters
    order = sorted(clusters, key=lambda cluster: cluster[0].cluster)
    Random(seed).shuffle(order)  # noqa: S311 - an order, no secret
    return [
        [pair for cluster in order[place::_BLOCKS] for pair in cluster] for place in range(_BLOCKS)
    ]


def _drawn(found: Bootstrap, n: int) -> Figure:
    estimate = found.estimate
    method = "" if estimate.low is None else "bootstrap"
    return Figure(estimate.mean, estimate.low, estimate.high, n, method)


def compare_people(
    rows: Sequence[tuple[Mapping[str, Label], float | None]], scale: Scale, *, threshold: float
) -> Humans | None:
    """How far people agree with each other, and the grader with single people.

    Args:
        rows: For each row who said what, and the grader's score if it has one.
        scale: What the labels are.
        threshold: The score, and for numbers also the label, from which a row passes.

    Returns:
        None where no row has two labels.
    """
    binary = scale if scale.kind == "levels" else _VERDICTS
    weights: KappaWeights = "quadratic" if scale.kind == "levels" else "none"
    metrics: dict[str, AlphaMetric] = {"verdict": "nominal", "levels": "ordinal"}
    levels = list(range(len(binary.classes)))

    def kappa(pairs: Sequence[tuple[int, int]]) -> float | None:
        table = class_confusion([a for a, _ in pairs], [b for _, b in pairs], levels=levels)
        return table.kappa(weights)

    among: list[tuple[int, int]] = []
    with_grader: list[tuple[int, int]] = []
    rated: list[list[float]] = []
    for said, score in rows:
        values = [scale.value(label) for label in said.values()]
        if len(values) < 2:
            continue
        rated.append(values)
        places = [binary.place(value, threshold) for value in values]
        among += permutations(places, 2)
        if score is not None:
            with_grader += [(binary.place(score, threshold), place) for place in places]
    if not rated:
        return None
    alpha = krippendorff_alpha(rated, metric=metrics.get(scale.kind, "interval"))
    return Humans(
        items=len(rated),
        kappa=kappa(among),
        alpha=alpha.value,
        grader=kappa(with_grader) if with_grader else None,
    )
