"""How the scores of a run lie: a histogram for its rewards and for each node of its score trees.

Cells are read once. What could not be graded or was skipped is counted beside a histogram, and
never in its bins: a 0 there was graded, and bad.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from assay.reports.explain import MAX_DEPTH, nodes
from assay.reports.outcome import Outcome, node_outcome, outcome, reward_of
from assay.reports.plain import one_line
from assay.scoring.results import SubScore
from assay.statistics.intervals import Interval, mean_interval
from assay.store.records import CellRecord

BINS = 20
"""Bins of a histogram, all of one width; the last one has its upper end, 1, too."""

_MOST_NODES = 2_000
_MOST_SHOWN = 100
_DIGITS = 9
_MOST_OF_A_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderScores:
    """The scores that one node of the score trees has.

    Attributes:
        key: Which node: the names above it and its own as a JSON pointer (RFC 6901); empty for the
            reward itself.
        name: Its name, for people.
        depth: How many nodes it stands below; 0 for the reward.
        gate: Whether it is a gate.
        bins: Scores by size, in 20 bins of equal width from 0 to 1.
        n: Scores in them.
        passed: Those that its grader calls a pass.
        errors: Cells in which it could not grade.
        skipped: Cells to which it did not apply.
        mean: Mean over cases of the mean score; its ``n`` counts cases. With one case it is about
            that case, over its trials.
        commonest: The score that occurs most.
        constant: Share of the scores that are just that one.
    """

    key: str
    name: str
    depth: int
    gate: bool
    bins: tuple[int, ...]
    n: int
    passed: int
    errors: int
    skipped: int
    mean: Interval
    commonest: float | None
    constant: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreTable:
    """How the scores of a run lie.

    Attributes:
        run: Id of the run.
        cells: Cells that have a result.
        graders: The reward first, then the nodes of the score trees, parents before their children.
        left_out: Nodes that are not shown: at most 100 are, those with the most scores.
    """

    run: str
    cells: int
    graders: tuple[GraderScores, ...]
    left_out: int


def score_table(run: str, cells: Iterable[CellRecord]) -> ScoreTable:
    """Read the cells of a run once and count their scores."""
    tallies: dict[str, _Tally] = {}
    left_out: set[str] = set()
    number = 0
    for cell in cells:
        number += 1
        for key, depth, node, state, value in _scores(cell):
            if (tally := tallies.get(key)) is None:
                if len(tallies) >= _MOST_NODES:
                    left_out.add(key)
                    continue
                tally = tallies[key] = _Tally(key, depth, node)
            tally.add(cell.case, state, value)
    most = sorted(tallies.values(), key=lambda tally: (tally.depth > 0, -tally.total))[:_MOST_SHOWN]
    shown = {tally.key for tally in most}
    return ScoreTable(
        run=run,
        cells=number,
        graders=tuple(one.scores() for key, one in _in_order(tallies) if key in shown),
        left_out=len(left_out) + len(tallies) - len(shown),
    )


def _below(
    above: str, depth: int, parts: Sequence[SubScore]
) -> Iterator[tuple[str, int, SubScore]]:
    """The nodes of a score tree, each with its key and depth; names are told apart."""
    seen: Counter[str] = Counter()
    for node in parts:
        name = node.name[:_MOST_OF_A_NAME]
        seen[name] += 1
        again = f"-{seen[name]}" if seen[name] > 1 else ""
        key = f"{above}/{_escaped(name)}{again}"
        yield key, depth, node
        if node.children and depth < MAX_DEPTH:
            yield from _below(key, depth + 1, node.children)


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _scores(
    cell: CellRecord,
) -> Iterator[tuple[str, int, SubScore | None, Outcome, float | None]]:
    yield "", 0, None, outcome(cell), reward_of(cell)
    for key, depth, node in _below("", 1, nodes(cell)):
        yield key, depth, node, node_outcome(node), node.value


def _in_order(tallies: dict[str, _Tally]) -> list[tuple[str, _Tally]]:
    """Parents before their children, otherwise as they were first met."""
    below: dict[str, list[str]] = {}
    for key in tallies:
        below.setdefault(key.rpartition("/")[0] if key else "/", []).append(key)
    found: list[tuple[str, _Tally]] = []
    waiting = ["", *below.get("", [])][::-1]
    while waiting:
        key = waiting.pop()
        if key in tallies:
            found.append((key, tallies[key]))
        if key:
            waiting += below.get(key, [])[::-1]
    return found


class _Tally:
    """The scores of one node so far."""

    def __init__(self, key: str, depth: int, node: SubScore | None) -> None:
        self.key, self.depth = key, depth
        self._name = "reward" if node is None else one_line(node.name, 120)
        self._gate = node is not None and node.gate
        self._states: Counter[Outcome] = Counter()
        self._bins = [0] * BINS
        self._values: Counter[float] = Counter()
        self._cases: dict[str, tuple[float, int]] = {}
        self._scores: list[float] = []

    @property
    def total(self) -> int:
        return self._states.total()

    def add(self, case: str, state: Outcome, value: float | None) -> None:
        self._states[state] += 1
        if value is None:
            return
        # 0.15 is in the bin that begins there, whatever its float.
        self._bins[min(BINS - 1, int(value * BINS + 1e-9))] += 1
        self._values[round(value, _DIGITS)] += 1
        self._scores.append(value)
        sum_, number = self._cases.get(case, (0.0, 0))
        self._cases[case] = (sum_ + value, number + 1)

    def scores(self) -> GraderScores:
        (commonest, times), *_ = self._values.most_common(1) or [(None, 0)]
        n = len(self._scores)
        one_case = len(self._cases) == 1
        means = [sum_ / number for sum_, number in self._cases.values()]
        return GraderScores(
            key=self.key,
            name=self._name,
            depth=self.depth,
            gate=self._gate,
            bins=tuple(self._bins),
            n=n,
            passed=self._states["pass"],
            errors=self._states["error"],
            skipped=self._states["skipped"],
            mean=mean_interval(self._scores if one_case else [min(1.0, mean) for mean in means]),
            commonest=commonest,
            constant=times / n if n else None,
        )
