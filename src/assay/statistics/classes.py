"""How predictions in several classes agree with labels, and several raters with each other.

For yes and no alone see `assay.statistics.agreement`, whose measures these generalise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from typing import Literal, TypeAlias

from assay.errors import ScoreError
from assay.scoring.results import finite_number
from assay.statistics.intervals import Interval, Measured, check_same_length, ratio
from assay.statistics.ranking import ranks

Level: TypeAlias = str | int | bool
"""What a verdict or a label can be: a word, a level's number, or yes and no."""

KappaWeights: TypeAlias = Literal["none", "linear", "quadratic"]
"""How much worse a miss by two levels is than a miss by one: the same, twice, four times."""

_MOST_LEVELS = 50
"""More classes than this are not verdicts, and their table would grow with the square."""


class CountTable:
    """What is measured of a table of counts, whichever its classes are.

    A measure whose denominator is 0 is None, not 0: it was not measured.
    """

    __slots__ = ()

    @property
    def _rows(self) -> tuple[tuple[int, ...], ...]:
        """For each labelled class how many items were predicted to be in each class."""
        raise NotImplementedError

    @property
    def n(self) -> int:
        """How many pairs were compared."""
        return sum(self.labelled)

    @property
    def labelled(self) -> tuple[int, ...]:
        """How many items are labelled with each level."""
        return tuple(map(sum, self._rows))

    @property
    def predicted(self) -> tuple[int, ...]:
        """How many items are predicted at each level."""
        return tuple(map(sum, zip(*self._rows, strict=True)))

    @property
    def accuracy(self) -> float | None:
        """Share of predictions that are right."""
        return ratio(sum(self._right), self.n)

    @property
    def majority_accuracy(self) -> float | None:
        """Accuracy of always giving the commonest label: what any grader must beat."""
        return ratio(max(self.labelled, default=0), self.n)

    @property
    def balanced_accuracy(self) -> float | None:
        """Mean recall of the levels that are labelled at all; None for fewer than two of them."""
        recalls = [recall for recall in self._recalls if recall is not None]
        return fsum(recalls) / len(recalls) if len(recalls) > 1 else None

    @property
    def macro_f1(self) -> float | None:
        """Mean of the levels' F1, over those that are labelled or predicted at all."""
        found = [f1 for f1 in self._f1s if f1 is not None]
        return fsum(found) / len(found) if found else None

    @property
    def mcc(self) -> float | None:
        """Matthews' correlation coefficient for several classes (Gorodkin 2004), in [-1, 1].

        ``(n c - sum t_k p_k) / sqrt((n² - sum t_k²) (n² - sum p_k²))``, with c right predictions
        and t_k labels and p_k predictions of level k; for yes and no that of Matthews (1975). 0 is
        that of chance. None where all labels, or all predictions, are alike.
        """
        n, labelled, predicted = self.n, self.labelled, self.predicted
        together = sum(t * p for t, p in zip(labelled, predicted, strict=True))
        spread = (n * n - sum(t * t for t in labelled)) * (n * n - sum(p * p for p in predicted))
        return (n * sum(self._right) - together) / sqrt(spread) if spread else None

    @property
    def _right(self) -> list[int]:
        return [row[i] for i, row in enumerate(self._rows)]

    @property
    def _recalls(self) -> list[float | None]:
        return list(map(ratio, self._right, self.labelled))

    @property
    def _f1s(self) -> list[float | None]:
        sizes = zip(self._right, self.labelled, self.predicted, strict=True)
        return [ratio(2 * right, labelled + predicted) for right, labelled, predicted in sizes]


@dataclass(frozen=True, slots=True)
class ClassConfusion(CountTable):
    """The counts of each predicted class for each labelled class."""

    levels: tuple[Level, ...]
    counts: tuple[tuple[int, ...], ...]
    # Predictions of None, which the grader could not make; no part of the counts.
    unscored: int = 0
    ordered: bool = False

    def __post_init__(self) -> None:
        size = len(self.levels)
        if len(set(self.levels)) != size:
            raise ScoreError(f"a level occurs twice in {self.levels}")
        if len(self.counts) != size or any(len(row) != size for row in self.counts):
            raise ScoreError(f"counts are not a square of {size} levels", hint="one row for each")
        if any(count < 0 for row in self.counts for count in row) or self.unscored < 0:
            raise ScoreError("negative count in a table of classes")

    @property
    def _rows(self) -> tuple[tuple[int, ...], ...]:
        return self.counts

    @property
    def coverage(self) -> float | None:
        """Share of the labelled items that the grader could judge; None for no items."""
        return ratio(self.n, self.n + self.unscored)

    @property
    def recalls(self) -> dict[Level, float | None]:
        """For each level the share of its labels that were found."""
        return dict(zip(self.levels, self._recalls, strict=True))

    @property
    def f1s(self) -> dict[Level, float | None]:
        """For each level ``2 right / (labelled + predicted)``; None where it never occurs."""
        return dict(zip(self.levels, self._f1s, strict=True))

    def kappa(self, weights: KappaWeights = "none") -> float | None:
        """Cohen's kappa, agreement beyond chance (Cohen 1960; with weights, Cohen 1968).

        ``1 - sum w_ij o_ij / sum w_ij e_ij``, where o are the observed and e the shares that
        independent raters of the same habits would have, and ``w_ij`` is 1 off the diagonal,
        ``|i - j|`` (linear) or ``(i - j)²`` (quadratic): neighbouring levels are one step apart.
        1 is full agreement, 0 that of chance. None where both only ever say the same.
        """
        if weights != "none" and not self.ordered:
            raise ScoreError(
                f"{weights} weights need ordered levels",
                hint="give all levels, from lowest to highest",
            )
        labelled, predicted, n = self.labelled, self.predicted, self.n
        observed = expected = 0
        for i, row in enumerate(self.counts):
            for j, count in enumerate(row):
                weight = _distance(i, j, weights)
                observed += weight * count
                expected += weight * labelled[i] * predicted[j]
        return ratio(expected - n * observed, expected)


def class_confusion(
    predicted: Sequence[Level | None],
    labels: Sequence[Level],
    *,
    levels: Sequence[Level] | None = None,
) -> ClassConfusion:
    """Count a grader's predictions against labels, item by item.

    ``levels``: All classes from lowest to highest, which makes them ordered. Left out, they are
    those that occur, and have no order.
    """
    check_same_length(predictions=predicted, labels=labels)
    known = _known_levels(predicted, labels, levels)
    pairs = Counter(zip(labels, predicted, strict=True))
    counts = tuple(tuple(pairs[label, said] for said in known) for label in known)
    unscored = sum(1 for said in predicted if said is None)
    return ClassConfusion(known, counts, unscored, ordered=levels is not None)


def class_counts_by_cluster(
    predicted: Sequence[Level | None],
    labels: Sequence[Level],
    clusters: Sequence[Hashable],
    *,
    levels: Sequence[Level] | None = None,
) -> list[tuple[int, ...]]:
    """The counts of `class_confusion` cluster by cluster, each row after row: for a bootstrap.

    `ClassConfusion.counts` of any set of clusters is the sum of theirs, cut into rows of as many
    numbers as there are levels.
    """
    check_same_length(predictions=predicted, labels=labels, clusters=clusters)
    known = _known_levels(predicted, labels, levels)
    cells = {pair: i for i, pair in enumerate((t, p) for t in known for p in known)}
    tables: dict[Hashable, list[int]] = {}
    for cluster, label, said in zip(clusters, labels, predicted, strict=True):
        table = tables.setdefault(cluster, [0] * len(cells))
        if said is not None:
            table[cells[label, said]] += 1
    return [tuple(table) for table in tables.values()]


def levels_of(values: Sequence[Level | None]) -> tuple[Level, ...]:
    """The different values other than None, sorted.

    Raises `ScoreError` for values that mix words, numbers and bools (True would pass for 1), or are
    none of these.
    """
    kinds = {type(value) for value in values if value is not None}
    if not kinds <= {str, int, bool} or len(kinds) > 1:
        told = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise ScoreError(
            f"classes are of kind {told}", hint="all words, all whole numbers or bools"
        )
    return tuple(sorted({value for value in values if value is not None}, key=_place))


def _known_levels(
    predicted: Sequence[Level | None], labels: Sequence[Level], levels: Sequence[Level] | None
) -> tuple[Level, ...]:
    found = levels_of([*labels, *predicted])
    if max(len(found), len(levels or ())) > _MOST_LEVELS:
        raise ScoreError(
            f"more than {_MOST_LEVELS} classes",
            hint="compare numbers with assay.statistics.ranking",
        )
    if levels is None:
        return found
    levels_of([*levels, *found])
    if strange := set(found) - set(levels):
        raise ScoreError(
            f"{min(strange, key=_place)!r} is not among the levels {list(levels)}",
            hint="give every level that can occur",
        )
    return tuple(levels)


def _place(level: Level) -> tuple[int, str]:
    return (0, level) if isinstance(level, str) else (level, "")


def _distance(i: int, j: int, weights: KappaWeights) -> int:
    if weights == "none":
        return int(i != j)
    return abs(i - j) if weights == "linear" else (i - j) ** 2


AlphaMetric: TypeAlias = Literal["nominal", "ordinal", "interval"]
"""Which disagreements are worse: all the same, by rank, or by the square of the difference."""


def krippendorff_alpha(
    items: Sequence[Sequence[Level | float | None]],
    *,
    metric: AlphaMetric = "nominal",
    levels: Sequence[Level] | None = None,
) -> Measured:
    """Agreement of any number of raters, some of whose ratings may be missing (Krippendorff 2004).

    ``1 - Do / De``, the mean disagreement of two ratings of one item over that of any two ratings.
    Disagreement is 1 for different classes (nominal), the squared difference of the numbers
    (interval) or that of their mean ranks among all ratings (ordinal).

    ``items``: For each item its ratings; None for a missing one. Items with fewer than two ratings
    compare nothing: they are left out and counted.
    """
    given = [[rating for rating in ratings if rating is not None] for ratings in items]
    units = [ratings for ratings in given if len(ratings) > 1]
    excluded = len(items) - len(units)
    if metric == "nominal":
        value = _nominal_alpha(units)
    else:
        numbers = [_positions(ratings, levels) for ratings in units]
        if metric == "ordinal":
            every = [number for unit in numbers for number in unit]
            places = dict(zip(every, (rank - 0.5 for rank in ranks(every)), strict=True))
            numbers = [[places[number] for number in unit] for unit in numbers]
        value = _interval_alpha(numbers)
    return Measured(Interval(value, None, None, len(units)), excluded)


def _squares(counts: Counter[Hashable]) -> int:
    return sum(count * count for count in counts.values())


def _nominal_alpha(units: Sequence[Sequence[Level | float]]) -> float | None:
    kinds = {type(rating) for unit in units for rating in unit}
    if len(kinds) > 1:
        told = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise ScoreError(f"ratings are of kinds {told}", hint="use one kind for all")
    everything = Counter[Hashable](rating for unit in units for rating in unit)
    n = everything.total()
    differing = fsum(
        (len(unit) ** 2 - _squares(Counter[Hashable](unit))) / (len(unit) - 1) for unit in units
    )
    chance = n * n - _squares(everything)
    return 1 - (n - 1) * differing / chance if chance else None


def _interval_alpha(units: Sequence[Sequence[float]]) -> float | None:
    # The sum of the squared differences of all pairs of m numbers is m times the sum of their
    # squared deviations from their mean, so no pair need be formed.
    numbers = [number for unit in units for number in unit]
    largest = max((abs(number) for number in numbers), default=0.0) or 1.0
    scaled = [[number / largest for number in unit] for unit in units]
    whole = _deviation([number for unit in scaled for number in unit])
    if min(numbers, default=0.0) == max(numbers, default=0.0) or not whole:
        return None
    within = fsum(len(unit) * _deviation(unit) / (len(unit) - 1) for unit in scaled)
    return 1 - (len(numbers) - 1) * within / (len(numbers) * whole)


def _deviation(numbers: Sequence[float]) -> float:
    mean = fsum(numbers) / len(numbers) if numbers else 0.0
    return fsum((number - mean) ** 2 for number in numbers)


def _positions(ratings: Sequence[Level | float], levels: Sequence[Level] | None) -> list[float]:
    if levels is None:
        return [finite_number(rating, what="a rating") for rating in ratings]
    places: dict[tuple[type, Level | float], float] = {
        (type(level), level): float(i) for i, level in enumerate(levels)
    }
    try:
        return [places[type(rating), rating] for rating in ratings]
    except KeyError as error:
        raise ScoreError(
            f"{error.args[0][1]!r} is not among the levels {list(levels)}",
            hint="give every level that can occur",
        ) from None
