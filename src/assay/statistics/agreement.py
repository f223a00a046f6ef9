"""How well a grader agrees with labels: what a judge must show before its scores count.

Accuracy alone flatters: on labels that are 67 % positive, a judge that always says yes has an
accuracy of 0.67. So beside it stand what such a judge would get (`Confusion.majority_accuracy`),
balanced accuracy, and Cohen's kappa, which are 0.5 and 0 for every judge that does not look.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import atanh, sqrt, tanh
from types import NoneType

from assay.errors import ScoreError
from assay.scoring.results import finite_number
from assay.statistics.classes import CountTable
from assay.statistics.intervals import Interval, check_same_length, mean_interval, ratio, wilson
from assay.statistics.quantiles import normal_quantile, two_sided
from assay.statistics.ranking import pearson, ranks


@dataclass(frozen=True, slots=True)
class Confusion(CountTable):
    """The four counts of yes/no predictions against yes/no labels.

    Attributes:
        tp: Label yes, predicted yes.
        fp: Label no, predicted yes.
        tn: Label no, predicted no.
        fn: Label yes, predicted no.

    Raises:
        ScoreError: For a negative count.
    """

    tp: int
    fp: int
    tn: int
    fn: int

    def __post_init__(self) -> None:
        if min(self.tp, self.fp, self.tn, self.fn) < 0:
            raise ScoreError(f"negative count in {self}")

    @property
    def _rows(self) -> tuple[tuple[int, ...], ...]:
        return (self.tn, self.fp), (self.fn, self.tp)

    @property
    def base_rate(self) -> float | None:
        """Share of labels that are yes."""
        return ratio(self.tp + self.fn, self.n)

    @property
    def predicted_rate(self) -> float | None:
        """Share of predictions that are yes."""
        return ratio(self.tp + self.fp, self.n)

    @property
    def sensitivity(self) -> float | None:
        """Share of the yes labels that were found (recall): ``tp / (tp + fn)``."""
        return ratio(self.tp, self.tp + self.fn)

    @property
    def specificity(self) -> float | None:
        """Share of the no labels that were found: ``tn / (tn + fp)``."""
        return ratio(self.tn, self.tn + self.fp)

    @property
    def precision(self) -> float | None:
        """Share of the yes predictions that are right: ``tp / (tp + fp)``."""
        return ratio(self.tp, self.tp + self.fp)

    @property
    def f1(self) -> float | None:
        """``2 tp / (2 tp + fp + fn)``."""
        return ratio(2 * self.tp, 2 * self.tp + self.fp + self.fn)

    @property
    def always_yes(self) -> Confusion:
        """The counts of a judge that says yes to everything: a baseline for every measure."""
        return Confusion(tp=self.tp + self.fn, fp=self.fp + self.tn, tn=0, fn=0)

    @property
    def majority(self) -> Confusion:
        """The counts of a judge that always gives the commoner label (yes, if they are equal)."""
        yes, no = self.tp + self.fn, self.fp + self.tn
        return self.always_yes if yes >= no else Confusion(tp=0, fp=0, tn=no, fn=yes)

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa, agreement beyond chance: ``(po - pe) / (1 - pe)`` (Cohen 1960).

        ``po`` is the accuracy, ``pe`` what two independent judges with these rates of yes would
        have. 1 is full agreement, 0 that of chance. None where both only ever say the same word.
        """
        # (po - pe) / (1 - pe) of counts, multiplied out: exact in integers.
        chance = (self.tp + self.fp) * (self.fp + self.tn) + (self.tp + self.fn) * (
            self.fn + self.tn
        )
        return ratio(2 * (self.tp * self.tn - self.fp * self.fn), chance)

    def accuracy_interval(self, *, confidence: float = 0.95) -> Interval:
        """The accuracy with its Wilson interval; the pairs must be independent."""
        return wilson(self.tp + self.tn, self.n, confidence=confidence)

    def kappa_interval(self, *, confidence: float = 0.95) -> Interval:
        """Cohen's kappa with an interval that holds for few pairs; they must be independent.

        The large-sample standard error of Fleiss, Cohen and Everitt (1969), taken around the kappa
        of the same table with 1 added to every count, as Agresti and Caffo (2000) do for
        differences of rates. Without it, a judge that was right 8 times out of 8 would be certain
        of a kappa of 1; with it, simulated coverage at 8 to 200 pairs is at least 93 %. The
        interval is widened to contain kappa itself, and clipped to [-1, 1].
        """
        z = normal_quantile(two_sided(confidence))
        if self.kappa is None:
            return Interval(None, None, None, self.n)
        padded = Confusion(self.tp + 1, self.fp + 1, self.tn + 1, self.fn + 1)
        centre = padded.kappa or 0.0
        half = z * padded.kappa_standard_error()
        low = max(-1.0, min(self.kappa, centre - half))
        high = min(1.0, max(self.kappa, centre + half))
        return Interval(self.kappa, low, high, self.n)

    def kappa_standard_error(self) -> float:
        """The large-sample standard error of kappa (Fleiss, Cohen and Everitt 1969).

        It is 0 for full agreement, however few the pairs: prefer `kappa_interval`.

        Raises:
            ScoreError: Where kappa itself is undefined.
        """
        kappa = self.kappa
        if kappa is None:
            raise ScoreError(f"kappa of {self} is undefined")
        n = self.n
        predicted, labelled = (self.tp + self.fp) / n, (self.tp + self.fn) / n
        pe = predicted * labelled + (1 - predicted) * (1 - labelled)
        rest = 1 - kappa
        yes, no, shift = predicted + labelled, 2 - predicted - labelled, labelled - predicted
        agreed = self.tp * (1 - yes * rest) ** 2 + self.tn * (1 - no * rest) ** 2
        crossed = self.fp * (1 + shift) ** 2 + self.fn * (1 - shift) ** 2
        spread = (agreed + rest**2 * crossed) / n - (kappa - pe * rest) ** 2
        return sqrt(max(0.0, spread) / n) / (1 - pe)


@dataclass(frozen=True, slots=True)
class Correlation:
    """How well predicted numbers follow the labels, in order and in size."""

    n: int
    # Linear correlation in [-1, 1]; None for fewer than two pairs, or where either side is
    # constant.
    pearson: float | None
    spearman: float | None
    mean_absolute_error: float | None
    # The mean absolute error of always answering the median label, the best that can be done
    # without looking; None for no pairs.
    baseline_error: float | None

    def pearson_interval(self, *, confidence: float = 0.95) -> Interval:
        """Pearson's r with the interval of Fisher (1921): ``tanh(atanh(r) ± z / sqrt(n - 3))``.

        It has no bounds below four pairs, or where r is exactly -1 or 1.
        """
        z = normal_quantile(two_sided(confidence))
        if self.pearson is None or self.n < 4 or abs(self.pearson) >= 1.0:
            return Interval(self.pearson, None, None, self.n)
        half = z / sqrt(self.n - 3)
        centre = atanh(self.pearson)
        low, high = tanh(centre - half), tanh(centre + half)
        return Interval(self.pearson, min(low, self.pearson), max(high, self.pearson), self.n)


@dataclass(frozen=True, slots=True)
class Agreement:
    """A grader's predictions against labels."""

    measure: Confusion | Correlation
    # Predictions of None, which the grader could not make. They are not part of the measure: show
    # them beside it.
    unscored: int

    @property
    def coverage(self) -> float | None:
        """Share of the labelled items that the grader could judge; None for no items."""
        return ratio(self.measure.n, self.measure.n + self.unscored)


def agreement(
    predicted: Sequence[bool | float | None],
    labels: Sequence[bool | float],
    *,
    threshold: float = 0.5,
) -> Agreement:
    """Compare a grader's predictions with labels, pair by pair.

    Args:
        predicted: What the grader said: its score or, for yes/no labels, also its verdict. None
            where it could not judge.
        labels: The truth: all bools, or all numbers.
        threshold: For yes/no labels, the lowest score that counts as yes.

    Raises:
        ScoreError: For different lengths, labels of mixed kinds, a bool predicted for a number, or
            a number that is not finite.
    """
    if len(predicted) != len(labels):
        raise ScoreError(
            f"{len(predicted)} predictions for {len(labels)} labels", hint="one for each"
        )
    finite_number(threshold, what="threshold")
    kinds = set(map(type, labels))
    if len(kinds) > 1 and bool in kinds:
        raise ScoreError("labels mix bools and numbers", hint="use one kind: 1 is not true here")
    unscored = sum(p is None for p in predicted)
    if kinds == {bool}:
        return Agreement(_confusion(predicted, labels, threshold), unscored)
    pairs = [(p, label) for p, label in zip(predicted, labels, strict=True) if p is not None]
    scores = [finite_number(p, what="a prediction") for p, _ in pairs]
    targets = [finite_number(y, what="a label") for _, y in pairs]
    return Agreement(_correlate(scores, targets), unscored)


def counts_by_cluster(
    predicted: Sequence[bool | None], labels: Sequence[bool], clusters: Sequence[Hashable]
) -> list[tuple[int, int, int, int]]:
    """The counts (tp, fp, tn, fn) of each cluster: what `assay.statistics.bootstrap` resamples.

    Returns:
        One row for each cluster, in order of first appearance; `Confusion` takes their sum.

    Raises:
        ScoreError: For different lengths, or a value that is not a bool.
    """
    check_same_length(predictions=predicted, labels=labels, clusters=clusters)
    cells = {(True, True): 0, (True, False): 1, (False, False): 2, (False, True): 3}
    rows: dict[Hashable, list[int]] = {}
    for verdict, label, cluster in zip(predicted, labels, clusters, strict=True):
        if type(label) is not bool or type(verdict) not in (bool, NoneType):
            raise ScoreError(f"verdict {verdict!r}, label {label!r}", hint="give bools")
        row = rows.setdefault(cluster, [0, 0, 0, 0])
        if verdict is not None:
            row[cells[verdict, label]] += 1
    return [(tp, fp, tn, fn) for tp, fp, tn, fn in rows.values()]


def _confusion(
    predicted: Sequence[bool | float | None], labels: Sequence[bool | float], threshold: float
) -> Confusion:
    """Counted without a list of pairs: there may be millions."""
    counts = {(True, True): 0, (True, False): 0, (False, False): 0, (False, True): 0}
    for said, label in zip(predicted, labels, strict=True):
        if isinstance(said, bool):
            counts[said, bool(label)] += 1
        elif said is not None:
            counts[finite_number(said, what="a prediction") >= threshold, bool(label)] += 1
    tp, fp, tn, fn = counts.values()
    return Confusion(tp=tp, fp=fp, tn=tn, fn=fn)


def _correlate(predicted: Sequence[float], labels: Sequence[float]) -> Correlation:
    errors = [abs(p - y) for p, y in zip(predicted, labels, strict=True)]
    median = sorted(labels)[len(labels) // 2] if labels else 0.0
    return Correlation(
        n=len(labels),
        pearson=pearson(predicted, labels),
        spearman=pearson(ranks(predicted), ranks(labels)),
        mean_absolute_error=mean_interval(errors, bounds=None).mean,
        baseline_error=mean_interval([abs(y - median) for y in labels], bounds=None).mean,
    )
