"""Two graders on the same cells, or one beside what a cell cost: where they agree, and how far."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from math import isfinite, log, sqrt
from random import Random

from assay.errors import InputError, Location
from assay.reports.explain import evidence, sentence
from assay.reports.figures import count, percent, percent_interval, score
from assay.reports.outcome import node_outcome, outcome, reward_of
from assay.reports.plain import one_line, shorten
from assay.reports.scores import BINS, bin_of, scored_nodes
from assay.scoring.agreement import Confusion, agreement
from assay.scoring.bootstrap import bootstrap_all
from assay.scoring.intervals import Interval, are_clustered, cluster_mean, cluster_rate
from assay.scoring.ranking import pearson
from assay.scoring.results import SubScore
from assay.store.records import CellRecord

__all__ = [
    "MEASURES",
    "Agreeing",
    "Axis",
    "Disagreement",
    "HeatBin",
    "ScorePair",
    "score_pair",
]

MEASURES: Mapping[str, str] = {
    "seconds": "Seconds",
    "cost_usd": "Cost in dollars",
    "tokens": "Tokens",
}
"""What a score is shown against besides other scores: keys without a slash are no graders'."""

_MOST_DISAGREEMENTS = 50
_MOST_CHARACTERS = 2_000
_MOST_REASON = 600
_BLOCKS = 200
_RESAMPLES = 1_000
_WIDE = 50.0
"""Measures whose largest value is so many times the smallest are shown on a logarithmic scale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """What is counted along one side.

    Attributes:
        key: Of the grader, or ``seconds``, ``cost_usd`` or ``tokens``.
        name: For people.
        edges: The ends of its 20 bins, from the lowest to the highest: 21 numbers.
        is_log: Whether the bins are as wide as they are large.
        errors: Cells in which it could not grade.
        skipped: Cells to which it did not apply.
        absent: Cells that have no such score, or where the measure is not known.
    """

    key: str
    name: str
    edges: tuple[float, ...]
    is_log: bool
    errors: int
    skipped: int
    absent: int


@dataclass(frozen=True, slots=True)
class HeatBin:
    """How many cells lie in one field.

    Attributes:
        x: The bin along the first axis, from 0.
        y: The bin along the second.
        n: Cells in it; fields without any are left out.
    """

    x: int
    y: int
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreeing:
    """How far two graders agree on the cells that both scored.

    Attributes:
        sentence: The same in words.
        both: Cells that both pass.
        only_x: Cells that only the first one passes.
        only_y: Cells that only the second one passes.
        neither: Cells that neither passes.
        exact: Share of the cells on which the verdicts are the same.
        kappa: Cohen's kappa of the verdicts.
        difference: Mean of the first score less the second; its ``n`` counts cases.
        same_score: Share of the cells with just the same score.
    """

    sentence: str
    both: int
    only_x: int
    only_y: int
    neither: int
    exact: Interval
    kappa: Interval
    difference: Interval
    same_score: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """A cell that two graders score far apart.

    Attributes:
        case: Its case.
        harness: Its harness.
        model: Its model.
        trial: Its trial.
        x: The first score.
        y: The second one.
        x_passed: Whether the first grader calls it a pass.
        y_passed: Whether the second one does.
        x_reason: Why, as far as the first grader said.
        y_reason: Why, as far as the second one did.
        question: What was asked, shortened.
        answer: The answer, shortened.
    """

    case: str
    harness: str
    model: str
    trial: int
    x: float
    y: float
    x_passed: bool
    y_passed: bool
    x_reason: str
    y_reason: str
    question: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorePair:
    """Cells by two of their numbers.

    Attributes:
        run: Id of the run.
        x: The first axis: a grader.
        y: The second: another grader, or a measure.
        n: Cells that have both.
        cases: Cases that they are from.
        fields: How many lie where.
        pearson: Linear correlation.
        spearman: Correlation of the ranks; None where a side is constant.
        agreeing: Of two graders, how far they agree.
        disagreements: Cells that two graders score farthest apart, at most 50.
        apart: Cells whose two scores differ at all.
    """

    run: str
    x: Axis
    y: Axis
    n: int
    cases: int
    fields: tuple[HeatBin, ...]
    pearson: Interval
    spearman: float | None
    agreeing: Agreeing | None
    disagreements: tuple[Disagreement, ...]
    apart: int


def score_pair(
    run: str,
    cells: Iterable[CellRecord],
    x: str,
    y: str,
    *,
    question: Callable[[CellRecord], str],
) -> ScorePair:
    """Read the cells of a run once and compare two of their numbers.

    Args:
        run: Its id.
        cells: Its cells.
        x: Key of a grader; see `assay.reports.scores.GraderScores`.
        y: Key of another one, or one of `MEASURES`.
        question: Gives what was asked in a cell; asked for those that are shown.

    Raises:
        InputError: For a key that no cell has.
    """
    first, second = _Reader(x), _Reader(y)
    xs, ys, passes = array("d"), array("d"), bytearray()
    clusters: list[str] = []
    kept: list[tuple[float, int, CellRecord]] = []
    for cell in cells:
        nodes = {key: node for key, _, node in scored_nodes(cell)}
        one, other = first.read(cell, nodes), second.read(cell, nodes)
        if one is None or other is None:
            continue
        xs.append(one[0])
        ys.append(other[0])
        passes.append(2 * one[1] + other[1])
        clusters.append(cell.case)
        if y not in MEASURES and abs(one[0] - other[0]) > 1e-9:
            kept.append((-abs(one[0] - other[0]), len(xs), cell))
            if len(kept) > 20 * _MOST_DISAGREEMENTS:
                kept = nsmallest(_MOST_DISAGREEMENTS, kept, key=lambda entry: entry[:2])
    for field, reader in (("x", first), ("y", second)):
        reader.check(field)
    first_axis, second_axis = first.axis(xs), second.axis(ys)
    is_graders = y not in MEASURES
    names = first_axis.name, second_axis.name
    found = _Statistics(xs, ys, passes, clusters)
    apart = sum(abs(a - b) > 1e-9 for a, b in zip(xs, ys, strict=True)) if is_graders else 0
    worst = nsmallest(_MOST_DISAGREEMENTS, kept, key=lambda entry: entry[:2])
    return ScorePair(
        run=run,
        x=first_axis,
        y=second_axis,
        n=len(xs),
        cases=len(set(clusters)),
        fields=_fields(xs, ys, first_axis, second_axis),
        pearson=found.pearson,
        spearman=found.spearman,
        agreeing=found.agreeing(*names, apart) if is_graders and len(xs) else None,
        disagreements=tuple(_told(cell, x, y, question) for _, _, cell in worst),
        apart=apart,
    )


class _Reader:
    """Reads one number of cells, and counts those that have none."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._name = MEASURES.get(key, "" if key else "reward")
        self.errors = self.skipped = self.absent = 0
        self._is_known = key in MEASURES or not key

    def read(self, cell: CellRecord, nodes: Mapping[str, SubScore]) -> tuple[float, bool] | None:
        """The number, and whether its grader calls it a pass."""
        if self._key in MEASURES:
            known = {"seconds": cell.seconds, "cost_usd": cell.cost_usd, "tokens": cell.tokens}
            value = known[self._key]
            if value is not None and isfinite(value) and value >= 0 and cell.status != "skipped":
                return float(value), False
            self.absent += 1
            return None
        if not self._key:
            value, state = reward_of(cell), outcome(cell)
        elif (node := nodes.get(self._key)) is None:
            self.absent += 1
            return None
        else:
            self._is_known, self._name = True, one_line(node.name, 120)
            value, state = node.value, node_outcome(node)
        if value is not None:
            return value, state == "pass"
        self.errors += state == "error"
        self.skipped += state == "skipped"
        return None

    def check(self, field: str) -> None:
        if not self._is_known:
            raise InputError(
                f"no cell has the score {self._key!r:.200}",
                location=Location(field=field),
                hint=f"a key of the run's scores, or {', '.join(MEASURES)}",
            )

    def axis(self, values: Sequence[float]) -> Axis:
        edges, is_log = _score_edges(), False
        if self._key in MEASURES:
            edges, is_log = _edges(values)
        return Axis(
            key=self._key,
            name=self._name,
            edges=edges,
            is_log=is_log,
            errors=self.errors,
            skipped=self.skipped,
            absent=self.absent,
        )


def _score_edges() -> tuple[float, ...]:
    return tuple(number / BINS for number in range(BINS + 1))


def _edges(values: Sequence[float]) -> tuple[tuple[float, ...], bool]:
    """The ends of bins for numbers of any size, and whether they grow with them."""
    highest = max(values, default=0.0) or 1.0
    lowest = min((value for value in values if value > 0), default=highest)
    if highest / lowest < _WIDE or min(values, default=0.0) == 0:
        return tuple(highest * number / BINS for number in range(BINS + 1)), False
    step = (highest / lowest) ** (1 / BINS)
    return (*(lowest * step**number for number in range(BINS)), highest), True


def _fields(
    xs: Sequence[float], ys: Sequence[float], first: Axis, second: Axis
) -> tuple[HeatBin, ...]:
    counts: dict[tuple[int, int], int] = {}
    for a, b in zip(xs, ys, strict=True):
        place = _place(a, first), _place(b, second)
        counts[place] = counts.get(place, 0) + 1
    return tuple(HeatBin(a, b, n) for (a, b), n in sorted(counts.items()))


def _place(value: float, axis: Axis) -> int:
    if axis.key not in MEASURES:
        return bin_of(value)
    low, high = axis.edges[0], axis.edges[-1]
    share = log(value / low) / log(high / low) if axis.is_log else value / high
    return max(0, min(BINS - 1, int(share * BINS + 1e-9)))


class _Statistics:
    """What pairs of numbers come to; those of one case are not independent."""

    def __init__(
        self,
        xs: Sequence[float],
        ys: Sequence[float],
        passes: Sequence[int],
        clusters: Sequence[str],
    ) -> None:
        self._xs, self._ys, self._passes, self._clusters = xs, ys, passes, clusters
        self._is_clustered = are_clustered(clusters)
        counts = [passes.count(code) for code in range(4)]
        self._table = Confusion(tp=counts[3], fp=counts[2], tn=counts[0], fn=counts[1])
        linear = agreement(xs, ys).measure
        assert not isinstance(linear, Confusion)
        self.spearman = linear.spearman
        self.pearson = linear.pearson_interval()
        self._kappa = self._table.kappa_interval() if len(xs) else Interval(None, None, None, 0)
        if self._is_clustered:
            self._resample()

    def _resample(self) -> None:
        """Intervals of whole cases, thrown together at random where there are many of them."""
        rows = _by_block(self._xs, self._ys, self._passes, self._clusters)
        drawn = bootstrap_all(
            rows,
            {"pearson": lambda t: _linear(t[4:]), "kappa": lambda t: _kappa(t[:4])},
            resamples=_RESAMPLES,
        )
        n = len(self._xs)
        low, high = drawn["pearson"].estimate.low, drawn["pearson"].estimate.high
        self.pearson = Interval(pearson(self._xs, self._ys), low, high, n)
        found = drawn["kappa"].estimate
        self._kappa = Interval(self._table.kappa, found.low, found.high, n)

    def agreeing(self, x: str, y: str, apart: int) -> Agreeing:
        """Of two graders, how far they agree."""
        table, n = self._table, len(self._xs)
        same = [code in (0, 3) for code in self._passes]
        exact = cluster_rate(same, self._clusters)
        apart_by = [a - b for a, b in zip(self._xs, self._ys, strict=True)]
        difference = cluster_mean(apart_by, self._clusters, bounds=(-1.0, 1.0)).estimate
        return Agreeing(
            sentence=_sentence(x, y, table, exact, self._kappa),
            both=table.tp,
            only_x=table.fp,
            only_y=table.fn,
            neither=table.tn,
            exact=exact,
            kappa=self._kappa,
            difference=difference,
            same_score=1 - apart / n if n else None,
        )


def _by_block(
    xs: Sequence[float], ys: Sequence[float], passes: Sequence[int], clusters: Sequence[str]
) -> list[list[float]]:
    """Sums of each block of cases: four counts of verdicts, then n, x, y, xx, yy, xy."""
    cases = sorted(set(clusters))
    Random(0).shuffle(cases)  # noqa: S311 - an order, no secret
    block = {case: number % _BLOCKS for number, case in enumerate(cases)}
    rows = [[0.0] * 10 for _ in range(min(_BLOCKS, len(cases)))]
    for a, b, code, case in zip(xs, ys, passes, clusters, strict=True):
        row = rows[block[case]]
        row[code] += 1
        for place, value in enumerate((1.0, a, b, a * a, b * b, a * b), 4):
            row[place] += value
    return rows


def _linear(sums: Sequence[float]) -> float | None:
    n, x, y, xx, yy, xy = sums
    spread = (n * xx - x * x) * (n * yy - y * y)
    return max(-1.0, min(1.0, (n * xy - x * y) / sqrt(spread))) if spread > 1e-12 else None


def _kappa(counts: Sequence[float]) -> float | None:
    tn, fn, fp, tp = map(round, counts)
    return Confusion(tp=tp, fp=fp, tn=tn, fn=fn).kappa


def _sentence(x: str, y: str, table: Confusion, exact: Interval, kappa: Interval) -> str:
    said = f"same verdict on {percent(exact.mean)} of {count(table.n, 'cell')}"
    if ends := percent_interval(exact):
        said += f" (95 % interval {ends})"
    if kappa.mean is None:
        said += "; kappa is not defined, since both always say the same"
    else:
        said += f"; kappa {score(kappa.mean)}"
        if kappa.low is not None and kappa.high is not None:
            said += f" ({score(kappa.low)} to {score(kappa.high)})"
    apart = [(x, table.fp), (y, table.fn)]
    only = [f"only {one_line(name, 40)} passes {count(n, 'cell')}" for name, n in apart if n]
    return "; ".join([said[0].upper() + said[1:], *only])


def _told(cell: CellRecord, x: str, y: str, question: Callable[[CellRecord], str]) -> Disagreement:
    nodes = {key: node for key, _, node in scored_nodes(cell)}
    (x_value, x_passed, x_why), (y_value, y_passed, y_why) = (
        _explained(cell, nodes.get(key)) for key in (x, y)
    )
    return Disagreement(
        case=cell.case,
        harness=cell.harness,
        model=cell.model,
        trial=cell.trial,
        x=x_value,
        y=y_value,
        x_passed=x_passed,
        y_passed=y_passed,
        x_reason=x_why,
        y_reason=y_why,
        question=shorten(question(cell), _MOST_CHARACTERS),
        answer=shorten(cell.answer, _MOST_CHARACTERS),
    )


def _explained(cell: CellRecord, node: SubScore | None) -> tuple[float, bool, str]:
    """A score, its verdict, and the first thing that is known about why."""
    if node is None:
        return reward_of(cell) or 0.0, outcome(cell) == "pass", sentence(cell)
    lines = [line for one in evidence(node, lines=4) for line in one.lines]
    why = node.reason or "\n".join(lines[:4])
    return node.value or 0.0, node_outcome(node) == "pass", shorten(why, _MOST_REASON)
