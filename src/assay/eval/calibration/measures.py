"""The measures of a calibration: predictions and labels, row by row, become figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from statistics import fmean

from assay.eval.calibration.asking import Findings, truth_of
from assay.eval.calibration.card import Figure, figure, rate_figure
from assay.statistics.agreement import Confusion
from assay.statistics.bootstrap import Bootstrap, bootstrap_all, bootstrap_items
from assay.statistics.classes import (
    ClassConfusion,
    KappaWeights,
    class_confusion,
    class_counts_by_cluster,
)
from assay.statistics.intervals import are_clustered, cluster_mean, cluster_rate
from assay.statistics.ranking import auroc, pearson, spearman

_RESAMPLES = 2_000
_FEW_RESAMPLES = 400
_MANY_ROWS = 500
_BLOCKS = 100
_YES = 1


@dataclass(frozen=True, slots=True)
class _Pair:
    """One row with a score and a label.

    Attributes:
        score: The grader's.
        truth: The label, in [0, 1].
        cluster: Which rows are not independent of it.
    """

    score: float
    truth: float
    cluster: str


class ScoresWithLabels:
    """Scores beside labels, and what they come to.

    Args:
        found: What a grader said of labelled rows.

    Attributes:
        table: Row by row of the labels' classes, the counts of the grader's.
        clusters: How many clusters the rows are in.
    """

    def __init__(self, found: Findings) -> None:
        pairs = [_Pair(score, truth_of(one), one.cluster) for one, score in found.scored()]
        self._pairs, self._scale = pairs, found.labelled.scale
        self._names = [pair.cluster for pair in pairs]
        self._levels = list(range(len(self._scale.compared.classes)))
        self._said = [found.place(pair.score) for pair in pairs]
        self._true = [found.place_of_label(pair.truth) for pair in pairs]
        self._weights: KappaWeights = "quadratic" if self._scale.kind == "levels" else "none"
        self.table = class_confusion(self._said, self._true, levels=self._levels)
        self.clusters = len(set(self._names))

    def measures(self) -> dict[str, Figure]:
        """The figures that such labels allow, by name."""
        measures = self._classes()
        if self._scale.kind != "levels":
            measures |= self._verdicts()
        if self._scale.kind != "verdict":
            measures |= self._numbers()
        return measures

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

    def _classes(self) -> dict[str, Figure]:
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

    def _verdicts(self) -> dict[str, Figure]:
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

    def _numbers(self) -> dict[str, Figure]:
        """Measures of size and order."""
        members: dict[str, list[_Pair]] = {}
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

    def _confusion(self) -> Confusion:
        (tn, fp), (fn, tp) = self.table.counts
        return Confusion(tp=tp, fp=fp, tn=tn, fn=fn)

    def _share(self, outcomes: Sequence[tuple[bool, str]]) -> Figure:
        return self._rate([right for right, _ in outcomes], [name for _, name in outcomes])

    def _rate(self, outcomes: Sequence[bool], names: Sequence[str]) -> Figure:
        return rate_figure(cluster_rate(outcomes, names), names)


def _blocks(clusters: list[list[_Pair]]) -> list[list[_Pair]]:
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
