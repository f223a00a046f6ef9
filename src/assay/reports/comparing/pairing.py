"""Two runs, or two agents of one run, cell by cell.

A cell has a partner where case and trial are the same. Harness and model have to be the same, too,
unless each side has only one: then it is them that are compared. What either side could not grade
or skipped has no difference: it is counted, and never a 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import fsum
from typing import TypeAlias

from assay.errors import InputError
from assay.reports.breakdown import Grouping
from assay.reports.comparing.comparison import (
    FEWEST,
    ComparedCase,
    ComparedCell,
    ComparedPair,
    ComparedSide,
    ComparedSlice,
    Difference,
    Growth,
    LabelledLine,
    RunComparison,
    comparison_verdict,
    finding_of,
    plain_words,
)
from assay.reports.comparing.page import lines
from assay.reports.explain import digest_in, sentence
from assay.reports.figures import count
from assay.reports.outcome import ended, outcome, reward_of
from assay.reports.plain import natural, one_line, shorten
from assay.reports.review import Change, change_between
from assay.reports.run_records import AgentName
from assay.reports.totals import Groups, Totals
from assay.scoring.json_safe import Json
from assay.statistics.paired import mcnemar_exact, paired_difference
from assay.store.records import CellRecord, RunRecord

_SAME = 1e-9
_MAX_NAMES = 5
_MAX_CASES = 20
_LIMIT = 200
_MOST_PAIRS = 5
_MOST_REASONS = 8
_MOST_REASON = 300
_MOST_ANSWER = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of two that are compared.

    Attributes:
        run: The run that the cells are from.
        agents: Harness and model of each agent among the cells.
        cells: The newest results, in the order of `Store.cells`; read once.
        grouping: The field that they are told apart by, if that is asked for.
    """

    run: RunRecord
    agents: Sequence[tuple[str, str]]
    cells: Iterable[CellRecord]
    grouping: Grouping | None = None


def compare(before: Side, after: Side, *, max_drop: float | None = None) -> RunComparison:
    """Compare two sides, reading each once; what is kept of a cell is a few numbers.

    Args:
        before: The first.
        after: The second.
        max_drop: As for `comparison_verdict`.

    Raises:
        InputError: If no cell of one has a partner on the other.
    """
    work = _Work(before, after)
    for case, one, other in _by_case(before.cells, after.cells):
        work.case(case, one, other)
    found = work.comparison()
    if found.pairs and after.grouping is not None:
        after.grouping.require()
    decided = comparison_verdict(found, max_drop=max_drop)
    return replace(
        found,
        sentence=plain_words(found),
        verdict=one_line(decided.line, 400),
        code=decided.code,
        lines=tuple(LabelledLine(*line) for line in lines(found)),
    )


_Key: TypeAlias = tuple[str, str, int]


class _Half:
    """What is counted of one side."""

    def __init__(self, side: Side) -> None:
        self.side = side
        self.all, self.paired = (Groups(apart=side.run.are_apart) for _ in range(2))
        self.means: list[float] = []
        self.alone = 0
        self.lost: Counter[str] = Counter()
        self.alone_in: dict[str, None] = {}
        self.lost_in: dict[str, None] = {}

    def stands_alone(self, case: str) -> None:
        """Count a graded cell that the other side does not have."""
        self.alone += 1
        if len(self.alone_in) < _MAX_CASES:
            self.alone_in[case] = None

    def lacks(self, case: str, partner: CellRecord | None) -> None:
        """Count a graded cell of the other side that has no reward here."""
        if partner is None and self.side.run.finished:
            return  # it was never part of this run: the other side counts it, as alone
        self.lost["missing" if partner is None else outcome(partner)] += 1
        if len(self.lost_in) < _MAX_CASES:
            self.lost_in[case] = None

    def compared(self) -> ComparedSide:
        run, means, paired = self.side.run, self.means, self.paired.totals()
        return ComparedSide(
            run=run.id,
            label=run.label,
            created_at=run.created_at,
            finished=run.finished,
            assay=run.assay,
            agents=tuple(AgentName(*agent) for agent in self.side.agents),
            reward=fsum(means) / len(means) if means else None,
            totals=self.all.totals(),
            paired=paired,
            has_verdicts=paired.has_verdicts,
            alone=self.alone,
            alone_in=tuple(self.alone_in),
            lost=dict(self.lost),
            lost_in=tuple(self.lost_in),
        )


class _Work:
    """A comparison under way."""

    def __init__(self, before: Side, after: Side) -> None:
        self._before, self._after = _Half(before), _Half(after)
        sides = (before, after)
        self._same_harness = any(len({h for h, _ in side.agents}) > 1 for side in sides)
        self._same_model = any(len({m for _, m in side.agents}) > 1 for side in sides)
        self._partners = self._pairs = self._better = self._worse = self._same = 0
        self._shares_a_case = False
        self._passed = [0, 0]
        self._worsened, self._improved = _Most(), _Most()
        self._unchanged: list[ComparedCase] = []
        self._slices: dict[str, tuple[list[float], list[float]]] = {}
        self._declared: list[str] = []
        self._regraded: list[str] = []
        self._graders: Counter[str] = Counter()

    def case(self, case: str, before: list[CellRecord], after: list[CellRecord]) -> None:
        """Compare the cells of a case."""
        self._shares_a_case |= bool(before and after)
        one, other = self._keyed(before, self._before), self._keyed(after, self._after)
        pairs: list[tuple[CellRecord, CellRecord]] = []
        for key in one.keys() | other.keys():
            left, right = one.get(key), other.get(key)
            self._partners += left is not None and right is not None
            old = None if left is None else reward_of(left)
            new = None if right is None else reward_of(right)
            if left is not None and right is not None and old is not None and new is not None:
                pairs.append((left, right))
            elif old is not None:
                self._unpaired(self._before, self._after, case, right)
            elif new is not None:
                self._unpaired(self._after, self._before, case, left)
        if pairs:
            self._paired(case, sorted(pairs, key=lambda pair: pair[1].key))

    @staticmethod
    def _unpaired(has: _Half, other: _Half, case: str, partner: CellRecord | None) -> None:
        if partner is None:
            has.stands_alone(case)
        other.lacks(case, partner)

    def _keyed(self, cells: list[CellRecord], half: _Half) -> dict[_Key, CellRecord]:
        for cell in cells:
            half.all.add(cell)
        return {
            (
                cell.harness if self._same_harness else "",
                cell.model if self._same_model else "",
                cell.trial,
            ): cell
            for cell in cells
        }

    def _paired(self, case: str, pairs: list[tuple[CellRecord, CellRecord]]) -> None:
        self._pairs += len(pairs)
        for old, new in pairs:
            self._before.paired.add(old)
            self._after.paired.add(new)
            passes = outcome(old) == "pass", outcome(new) == "pass"
            self._passed[0] += passes == (True, False)
            self._passed[1] += passes == (False, True)
        before = fsum(old.reward or 0.0 for old, _ in pairs) / len(pairs)
        after = fsum(new.reward or 0.0 for _, new in pairs) / len(pairs)
        self._before.means.append(before)
        self._after.means.append(after)
        if (grouping := self._after.side.grouping) is not None:
            for value in grouping.values(pairs[0][1]):
                was, now = self._slices.setdefault(value, ([], []))
                was.append(before)
                now.append(after)
        if any(old.digest != new.digest for old, new in pairs):
            self._graded_otherwise(case, pairs)
        difference = after - before
        if abs(difference) <= _SAME:
            self._same += 1
            if len(self._unchanged) < _LIMIT:
                changes = [change_between(old, new) for old, new in pairs]
                self._unchanged.append(_case(case, before, after, changes))
            return
        self._better += difference > 0
        self._worse += difference < 0
        (self._improved if difference > 0 else self._worsened).add(case, before, after, pairs)

    def _graded_otherwise(self, case: str, pairs: list[tuple[CellRecord, CellRecord]]) -> None:
        """Note what is different in what graded a case."""
        self._regraded.append(case)
        one, other = self._before.side.run.digests, self._after.side.run.digests
        if case in one and case in other and one[case] != other[case]:
            self._declared.append(case)
        names = (name for old, new in pairs for name in _changed_graders(old, new))
        self._graders.update(dict.fromkeys(names, 1))

    def comparison(self) -> RunComparison:
        """What came of it, but for what follows from the numbers: words and a verdict."""
        before, after = self._before, self._after
        if not self._shares_a_case:
            raise InputError(
                "the two have no cell in common: no case is in both",
                hint="compare runs of the same cases",
            )
        if not self._partners:
            raise InputError(
                "the two have no cell in common: none of the same case"
                + (", harness" if self._same_harness else "")
                + (", model" if self._same_model else "")
                + " and trial",
                hint=f"{_agents(before.side)} against {_agents(after.side)}: --model A --model B "
                "compares one with another, and --harness likewise",
            )
        difference = paired_difference(after.means, before.means)
        between, differ = difference.difference.estimate, self._better + self._worse
        one, other = before.compared(), after.compared()
        return RunComparison(
            sentence="",
            verdict="",
            code=0,
            lines=(),
            before=one,
            after=other,
            pairs=self._pairs,
            cases=between.n,
            difference=Difference(
                mean=between.mean,
                low=between.low,
                high=between.high,
                p_value=difference.p_value if differ >= FEWEST else None,
                correlation=difference.correlation,
            ),
            finding=finding_of(between, differ),
            growth=_growth(one.paired, other.paired),
            better=self._better,
            worse=self._worse,
            same=self._same,
            sign_p=mcnemar_exact(self._better, self._worse) if differ >= FEWEST else None,
            only_before=self._passed[0],
            only_after=self._passed[1],
            reasons=tuple(one_line(reason, _MOST_REASON) for reason in self._reasons()),
            graded_otherwise=len(self._regraded),
            worsened=self._worsened.chosen(),
            improved=self._improved.chosen(),
            unchanged=tuple(self._unchanged),
            by="" if after.side.grouping is None else after.side.grouping.field,
            slices=tuple(sorted(self._compared_slices(), key=_by_difference)[:_LIMIT]),
        )

    def _compared_slices(self) -> Iterator[ComparedSlice]:
        for value, (was, now) in self._slices.items():
            between = paired_difference(now, was).difference.estimate
            yield ComparedSlice(
                value=value,
                cases=len(was),
                before=fsum(was) / len(was),
                after=fsum(now) / len(now),
                low=between.low,
                high=between.high,
            )

    def _reasons(self) -> Iterator[str]:
        before, after = self._before.side, self._after.side
        if len(before.agents) == len(after.agents) == 1 and before.agents != after.agents:
            yield f"agent: {_agents(before)} → {_agents(after)}"
        if self._declared:
            yield f"{count(len(self._declared), 'case')} changed: {_names(self._declared)}"
        if self._graders:
            each = [f"{name} ({count(n, 'case')})" for name, n in self._graders.most_common()]
            yield f"graders changed: {_names(each)}"
        if other := len(self._regraded) - len(self._declared):
            yield f"{count(other, 'case')} graded by other graders or another version of assay"
        for name, digest in before.run.digests.items():
            is_rows = before.run.config.get("kind") == "dataset"
            if is_rows and after.run.digests.get(name, digest) != digest:
                yield f"{name} has changed"
        if before.run.assay and after.run.assay and before.run.assay != after.run.assay:
            yield f"assay: {before.run.assay} → {after.run.assay}"
        old, new = _settings(before.run.config), _settings(after.run.config)
        for name in sorted(old.keys() | new.keys()):
            if (was := old.get(name)) != (now := new.get(name)) and name != "label":
                yield f"{name}: {_shown(was)} → {_shown(now)}"


def _by_difference(one: ComparedSlice) -> tuple[float, list[tuple[int, str]]]:
    return -abs(one.after - one.before), natural(one.value)


def _changed_graders(before: CellRecord, after: CellRecord) -> set[str]:
    """Names of the graders of both cells that are other ones by their digests."""
    old, new = (
        {str(node.get("name")): digest_in(node.get("metadata")) for node in cell.subscores}
        for cell in (before, after)
    )
    return {name for name in old.keys() & new.keys() if old[name] != new[name]}


def _settings(config: Mapping[str, Json]) -> dict[str, Json]:
    """What a run was asked for, one level deep; labels say nothing."""
    request = config.get("request")
    flat = {**config, **(request if isinstance(request, dict) else {})}
    # Digests of graders are told by the cells that they graded, and so are tasks.
    left_out = ("request", "graders", "tasks", "has_trials")
    return {name: value for name, value in flat.items() if name not in left_out}


def _shown(value: Json) -> str:
    if value is None or value == []:
        return "not said"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _agents(side: Side) -> str:
    each = [" · ".join(name for name in agent if name) or "no agent" for agent in side.agents]
    return _names(each)


def _names(names: Sequence[str]) -> str:
    more = len(names) - _MAX_NAMES
    return ", ".join(names[:_MAX_NAMES]) + (f" and {more:,} more" if more > 0 else "")


def _growth(before: Totals, after: Totals) -> Growth:
    both = (before, after)
    return Growth(
        cost_usd=_more(*((one.cost_usd, one.cost_unknown) for one in both)),
        judge_cost_usd=_more(*((one.judge_cost_usd, one.judge_cost_unknown) for one in both)),
        tokens=_more(*((one.tokens, one.tokens_unknown) for one in both)),
        seconds=_more(*((one.seconds, 0) for one in both)),
    )


def _more(before: tuple[float | None, int], after: tuple[float | None, int]) -> float | None:
    """How much more it is; None where some of it is not known."""
    (was, was_unknown), (now, now_unknown) = before, after
    if not was or now is None or was_unknown or now_unknown:
        return None
    return now / was - 1


def _case(case: str, before: float, after: float, changes: Sequence[Change]) -> ComparedCase:
    """A case with the first of its pairs; long texts are shortened."""
    return ComparedCase(
        case=case,
        before=before,
        after=after,
        difference=after - before,
        pairs=tuple(_pair(change) for change in changes[:_MOST_PAIRS]),
        more=max(0, len(changes) - _MOST_PAIRS),
    )


def _pair(pair: Change) -> ComparedPair:
    reasons = tuple(one_line(reason, _MOST_REASON) for reason in pair.reasons[:_MOST_REASONS])
    return ComparedPair(_cell(pair.before), _cell(pair.after), reasons)


def _cell(cell: CellRecord) -> ComparedCell:
    return ComparedCell(
        harness=cell.harness,
        model=cell.model,
        trial=cell.trial,
        state=ended(cell),
        reward=reward_of(cell),
        sentence=sentence(cell),
        answer=shorten(cell.answer, _MOST_ANSWER),
    )


class _Most:
    """The cases with the largest differences, a bounded number of them."""

    def __init__(self) -> None:
        self._kept: list[tuple[float, ComparedCase]] = []

    def add(
        self, case: str, before: float, after: float, pairs: list[tuple[CellRecord, CellRecord]]
    ) -> None:
        if len(self._kept) >= _LIMIT and abs(after - before) <= self._kept[-1][0]:
            return
        changes = [c for c in (change_between(old, new) for old, new in pairs) if c.differs]
        self._kept.append((abs(after - before), _case(case, before, after, changes)))
        self._kept.sort(key=lambda kept: -kept[0])
        del self._kept[_LIMIT:]

    def chosen(self) -> tuple[ComparedCase, ...]:
        return tuple(change for _, change in self._kept)


def _by_case(
    before: Iterable[CellRecord], after: Iterable[CellRecord]
) -> Iterator[tuple[str, list[CellRecord], list[CellRecord]]]:
    """The cells of each case on both sides; both come in the order of their cases."""
    left, right = _grouped(before), _grouped(after)
    one, other = next(left, None), next(right, None)
    while one is not None or other is not None:
        if other is None or (one is not None and one[0] < other[0]):
            assert one is not None
            yield *one, []
            one = next(left, None)
        elif one is None or other[0] < one[0]:
            yield other[0], [], other[1]
            other = next(right, None)
        else:
            yield *one, other[1]
            one, other = next(left, None), next(right, None)


def _grouped(cells: Iterable[CellRecord]) -> Iterator[tuple[str, list[CellRecord]]]:
    for case, members in groupby(cells, key=lambda cell: cell.case):
        yield case, list(members)
