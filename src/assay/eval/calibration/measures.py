"""The measures of a calibration: predictions and labels, row by row, become figures.

Also how far people agree with each other, and a grader with single people, on the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import fsum
from random import Random
from statistics import fmean

from assay.eval.calibration.card import Figure, Humans, figure
from assay.eval.calibration.scale import VERDICTS, Label, Scale
from assay.scoring.agreement import Confusion
from assay.scoring.bootstrap import Bootstrap, bootstrap_all, bootstrap_items
from assay.scoring.classes import (
    AlphaMetric,
    ClassConfusion,
    KappaWeights,
    class_confusion,
    class_counts_by_cluster,
    krippendorff_alpha,
)
from assay.scoring.intervals import Interval, are_clustered, cluster_mean, cluster_rate
from assay.scoring.ranking import auroc, pearson, spearman

__all__ = ["Compared", "Pair", "compare", "compare_people", "rate_figure"]

_RESAMPLES = 2_000
_FEW_RESAMPLES = 400
_MANY_ROWS = 500
_BLOCKS = 100
_YES = 1
_FEWEST = 5
"""Two raters with fewer rows in common are passed over: agreement on one row has no kappa, and
disagreement has one of 0, so that the mean of many such pairs would only know the bad ones."""

_METRICS: Mapping[str, AlphaMetric] = {"verdict": "nominal", "levels": "ordinal"}


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
) -> Compared:
    """Compare scores with labels.

    Args:
        pairs: The rows that have both.
        scale: What the labels are.
        threshold: The score, and for numbers also the label, from which a row passes.
    """
    work = _Comparison(pairs, scale, threshold)
    measures = work.classes()
    if scale.kind != "levels":
        measures |= work.verdicts()
    if scale.kind != "verdict":
        measures |= work.numbers()
    clusters = len({pair.cluster for pair in pairs})
    return Compared(measures, work.baselines(), work.table.counts, clusters)


class _Comparison:
    """Pairs on a scale, and what they come to."""

    def __init__(
        self,
        pairs: Sequence[Pair],
        scale: Scale,
        threshold: float,
    ) -> None:
        self._pairs = pairs
        self._scale = scale
        self._threshold = threshold
        self._names = [pair.cluster for pair in pairs]
        binary = scale if scale.kind == "levels" else VERDICTS
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
            resamples=_RESAMPLES,
        )
        measures = {name: _drawn(found, len(self._pairs)) for name, found in drawn.items()}
        if size == 2 and not are_clustered(self._names):
            # A formula that holds for few rows, where resampling knows only what it has seen.
            found = self._confusion().kappa_interval()
            measures["kappa"] = figure(found, "padded")
        right = [said == true for said, true in zip(self._said, self._true, strict=True)]
        measures["accuracy"] = self._rate(right, self._names)
        return measures

    def verdicts(self) -> dict[str, Figure]:
        """Measures of yes and no."""
        names = self._names
        rows = list(zip(self._said, self._true, names, strict=True))
        measures = {
            "sensitivity": self._share([(s == _YES, c) for s, t, c in rows if t == _YES]),
            "specificity": self._share([(s != _YES, c) for s, t, c in rows if t != _YES]),
            "precision": self._share([(t == _YES, c) for s, t, c in rows if s == _YES]),
            "labelled_rate": self._share([(t == _YES, c) for _, t, c in rows]),
            "pass_rate": self._share([(s == _YES, c) for s, _, c in rows]),
        }
        scores = [pair.score for pair in self._pairs]
        if len(set(scores)) > 2:
            labels = [true == _YES for true in self._true]
            found = auroc(scores, labels, names)
            measures["auroc"] = figure(found.estimate, "delong")
        return measures

    def numbers(self) -> dict[str, Figure]:
        """Measures of size and order."""
        members: dict[str, list[Pair]] = {}
        for pair in self._pairs:
            members.setdefault(pair.cluster, []).append(pair)
        resamples = _RESAMPLES if len(self._pairs) <= _MANY_ROWS else _FEW_RESAMPLES
        found = bootstrap_items(
            _blocks(list(members.values())),
            lambda drawn: spearman([p.score for p in drawn], [p.truth for p in drawn]).value,
            resamples=resamples,
        )
        errors = [abs(pair.score - pair.truth) for pair in self._pairs]
        mean = cluster_mean(errors, self._names, bounds=None)
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
        return rate_figure(cluster_rate(outcomes, names), names)


def rate_figure(found: Interval, names: Sequence[str]) -> Figure:
    """A rate by `cluster_rate` as a figure that says how its interval was made."""
    return figure(found, "clusters" if are_clustered(names) else "wilson")


def _blocks(clusters: list[list[Pair]]) -> list[list[Pair]]:
    """Clusters thrown together at random until they are few enough to leave out one by one.

    Blocks of independent clusters are independent too; fewer only make the interval less smooth.
    """
    if len(clusters) <= _MANY_ROWS:
        return clusters
    order = sorted(clusters, key=lambda cluster: cluster[0].cluster)
    Random(0).shuffle(order)  # noqa: S311 - an order, no secret
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
    """Compare people with each other, and the grader with every one of them.

    Cohen's kappa of two people on the rows that both labelled, averaged over the pairs of people
    (Light 1971), and of the grader and one person on the rows of this person, averaged over people;
    both weighted by the number of rows. Each is of two raters who may have habits of their own, so
    the grader reaches the ceiling if it agrees with people as they do with each other. Only rows
    with two labels and a score are used, for both.
    """
    several = [(said, score) for said, score in rows if len(said) > 1]
    if not several:
        return None
    binary = scale if scale.kind == "levels" else VERDICTS
    among: dict[tuple[str, str], list[tuple[int, int]]] = {}
    with_grader: dict[str, list[tuple[int, int]]] = {}
    rated: list[list[float]] = []
    for said, score in several:
        if score is None:
            continue
        values = {who: scale.value(label) for who, label in said.items()}
        places = {who: binary.place(value, threshold) for who, value in values.items()}
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
    found: list[tuple[float, int]] = []
    for pairs in tables:
        if len(pairs) < _FEWEST:
            continue
        table = class_confusion([a for a, _ in pairs], [b for _, b in pairs], levels=levels)
        if (kappa := table.kappa(weights)) is not None:
            found.append((kappa, len(pairs)))
    rows = sum(n for _, n in found)
    return fsum(kappa * n for kappa, n in found) / rows if rows else None
