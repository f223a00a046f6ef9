"""What a set of cells comes to: counts, means with their coverage, cost and time."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from math import fsum, isfinite

from assay.eval.costs import judge_costs
from assay.frozen import frozen
from assay.reports.outcome import Ended, Outcome, has_verdict, outcome, reward_of
from assay.scoring.results import ASSURANCES, Assurance
from assay.statistics.intervals import (
    Interval,
    clustered_interval,
    mean_interval,
    pass_at_k,
    pass_hat_k,
    wilson,
)
from assay.store.decisions import HELD
from assay.store.records import UNCLAMPED, CellRecord
from assay.store.windows import Ends

_MAX_OUTCOMES = 50
_MAX_KNOWN = 10_000


@frozen
class PassK:
    """pass@k and pass^k: the chance that one, or that each, of ``k`` trials passes.

    Attributes:
        k: Number of trials.
        at_k: Mean over groups of the unbiased pass@k; None where no group has k graded trials.
        hat_k: Mean over groups of the unbiased pass^k; None where ``at_k`` is.
        groups: Groups (case, harness, model) with at least k graded trials: the means are theirs.
        of: Groups in all.
    """

    k: int
    at_k: float | None
    hat_k: float | None
    groups: int
    of: int


@frozen(kw_only=True)
class Totals:
    """What a set of cells comes to.

    Attributes:
        total: Cells; always graded + errors + skipped.
        graded: Cells with a reward.
        ends: How the cells ended.
        shown: One outcome for all: that which most needs attention.
        has_verdicts: Whether any of them could have failed.
        coverage: Share of the cells that were graded, what every mean here rests on; None for none.
        flagged: Cells with signs of tampering.
        clamped: Graded cells whose reward was not in [0, 1], and was cut to it.
        assurance: Graded cells by how far they can be trusted, the strongest first.
        held: Skipped cells that wait for a person to decide.
        cases: Cases with at least one graded cell.
        reward: Mean over cases of the mean reward of their graded cells. Its interval takes cases
            as independent, not trials; with one case it is about that case, over its trials.
        pass_rate: ``passed / graded``. Wilson's interval where the cells are independent (one of
            each case, or all of one case), else that of the cases' rates, as for ``reward``.
        pass_k: For one trial, and for as many as the largest group has.
        compared: Groups (case, harness, model) with at least two graded trials.
        unequal: Those of them whose rewards differ: all that group-relative advantages come from.
        cost_usd: Sum of the known prices; None where none is known.
        cost_unknown: Cells that did run at an unknown price.
        tokens: Sum of the known tokens; None where none are known.
        tokens_unknown: Cells that did run with unknown tokens.
        judgements: Judgements that models were asked for, also in vain.
        judgements_cached: Judgements that came from the cache, and cost nothing.
        judge_cost_usd: Sum of the known prices of judgements; None where none is known.
        judge_cost_unknown: Judgements that were asked for at an unknown price.
        seconds: Sum of the cells' own times; with parallel cells more than the wall time.
    """

    total: int = 0
    graded: int = 0
    ends: Ends = field(default_factory=Ends)
    shown: Ended = "skipped"
    has_verdicts: bool = True
    coverage: float | None = None
    flagged: int = 0
    clamped: int = 0
    assurance: Mapping[Assurance, int] = field(default_factory=dict[Assurance, int])
    held: int = 0
    cases: int = 0
    reward: Interval = field(default_factory=lambda: Interval(None, None, None, 0))
    pass_rate: Interval = field(default_factory=lambda: Interval(None, None, None, 0))
    pass_k: tuple[PassK, ...] = ()
    compared: int = 0
    unequal: int = 0
    cost_usd: float | None = None
    cost_unknown: int = 0
    tokens: int | None = None
    tokens_unknown: int = 0
    judgements: int = 0
    judgements_cached: int = 0
    judge_cost_usd: float | None = None
    judge_cost_unknown: int = 0
    seconds: float = 0.0

    @property
    def passed(self) -> int:
        """Graded cells that did not fail, so also those that no threshold was applied to."""
        return self.ends.passed + self.ends.scored

    @property
    def failed(self) -> int:
        """Graded cells that did not pass."""
        return self.ends.failed

    @property
    def scored(self) -> int:
        """Graded cells that no threshold was applied to."""
        return self.ends.scored

    @property
    def errors(self) -> int:
        """Cells that could not be graded."""
        return self.ends.errors

    @property
    def skipped(self) -> int:
        """Cells to which nothing applied."""
        return self.ends.skipped


def _array() -> array[float]:
    return array("d")


@dataclass(slots=True)
class Group:
    """The trials of one (case, harness, model) so far, kept as a few numbers per cell."""

    case: str
    harness: str
    model: str
    counts: dict[Outcome, int] = field(
        default_factory=lambda: {"fail": 0, "error": 0, "skipped": 0, "pass": 0}
    )
    rewards: array[float] = field(default_factory=_array)
    assurances: Counter[Assurance] = field(default_factory=Counter[Assurance])
    outcomes: list[Outcome] = field(default_factory=list[Outcome])
    digests: set[str] = field(default_factory=set[str])
    rates: Mapping[str, float] = field(default_factory=dict[str, float])
    scored: int = 0
    flagged: int = 0
    clamped: int = 0
    held: int = 0
    unknown_costs: int = 0
    unknown_tokens: int = 0
    judgements: int = 0
    judgements_cached: int = 0
    judgements_unknown: int = 0
    costs: array[float] = field(default_factory=_array)
    judge_costs: array[float] = field(default_factory=_array)
    seconds: array[float] = field(default_factory=_array)
    tokens: int | None = None

    def add(self, cell: CellRecord, times: int = 1) -> None:
        """Count one more trial, or so many that are alike; its seconds are those of all."""
        state = outcome(cell)
        self.counts[state] += times
        if len(self.outcomes) < _MAX_OUTCOMES:
            self.outcomes.append(state)
        self.flagged += times * bool(cell.flags)
        self.clamped += times * (UNCLAMPED in cell.notes)
        self.held += times * (cell.status == "skipped" and HELD in cell.notes)
        self.rates = cell.rates or self.rates
        reward = reward_of(cell)
        if reward is not None:
            self.rewards.extend(repeat(reward, times))
            self.digests.add(cell.digest)
            self.scored += times * (not has_verdict(cell))
            if cell.assurance is not None:
                self.assurances[cell.assurance] += times
        if isfinite(cell.seconds) and cell.seconds > 0:
            self.seconds.append(cell.seconds)
        if cell.cost_usd is not None and isfinite(cell.cost_usd) and cell.cost_usd >= 0:
            self.costs.extend(repeat(cell.cost_usd, times))
        elif state != "skipped":
            self.unknown_costs += times
        if cell.tokens is not None and cell.tokens >= 0:
            self.tokens = (self.tokens or 0) + times * cell.tokens
        elif state != "skipped":
            self.unknown_tokens += times
        judged = judge_costs(cell)
        self.judgements += times * judged.asked
        self.judgements_cached += times * judged.cached
        self.judgements_unknown += times * judged.unknown
        if judged.usd is not None:
            self.judge_costs.extend(repeat(judged.usd, times))

    @property
    def graded(self) -> int:
        """Trials with a reward."""
        return self.counts["pass"] + self.counts["fail"]

    @property
    def total(self) -> int:
        """All trials."""
        return sum(self.counts.values())


class Groups:
    """Cells in groups: by case, harness and model; the rows of a dataset all in one.

    Args:
        apart: Whether every cell is a case of its own, as those rows are.
    """

    def __init__(self, *, apart: bool = False) -> None:
        self._apart = apart
        self._groups: dict[tuple[str, str, str], Group] = {}

    def add(self, cell: CellRecord) -> None:
        """Count a cell."""
        key = ("", "", "") if self._apart else (cell.case, cell.harness, cell.model)
        if (group := self._groups.get(key)) is None:
            group = self._groups[key] = Group(*key)
        group.add(cell)

    def __iter__(self) -> Iterator[Group]:
        return iter(self._groups.values())

    def totals(self) -> Totals:
        """What they come to, as the report of the run says it."""
        return totals_of(list(self), apart=self._apart)


def totals_of(groups: Sequence[Group], *, apart: bool = False) -> Totals:
    """What the cells of some groups come to, independent of their order.

    Args:
        groups: The groups.
        apart: Whether every cell is a case of its own, as the rows of a dataset are, although
            they were counted in one group.
    """

    def counted(state: Outcome) -> int:
        return sum(group.counts[state] for group in groups)

    by_case: dict[str, list[Group]] = {}
    for group in groups:
        if group.graded:
            by_case.setdefault(group.case, []).append(group)
    costs = list(chain.from_iterable(group.costs for group in groups))
    judged = list(chain.from_iterable(group.judge_costs for group in groups))
    tokens = [group.tokens for group in groups if group.tokens is not None]
    compared = [] if apart else [group for group in groups if group.graded > 1]
    words: Counter[Assurance] = Counter()
    for group in groups:
        words.update(group.assurances)
    passed, failed = counted("pass"), counted("fail")
    scored = sum(group.scored for group in groups)
    ends = Ends(
        passed=passed - scored,
        failed=failed,
        errors=counted("error"),
        skipped=counted("skipped"),
        scored=scored,
    )
    return Totals(
        total=ends.total,
        graded=ends.graded,
        ends=ends,
        shown=ends.shown,
        has_verdicts=ends.has_verdicts,
        coverage=ends.graded / ends.total if ends.total else None,
        flagged=sum(group.flagged for group in groups),
        clamped=sum(group.clamped for group in groups),
        assurance={word: words[word] for word in ASSURANCES if words[word]},
        held=sum(group.held for group in groups),
        cases=passed + failed if apart else len(by_case),
        reward=mean_interval(_every_reward(groups)) if apart else _reward(list(by_case.values())),
        pass_rate=wilson(passed, passed + failed) if apart else _pass_rate(list(by_case.values())),
        pass_k=_pass_1(groups) if apart else _pass_k(groups),
        compared=len(compared),
        unequal=sum(min(group.rewards) < max(group.rewards) for group in compared),
        cost_usd=fsum(costs) if costs else None,
        cost_unknown=sum(group.unknown_costs for group in groups),
        tokens=sum(tokens) if tokens else None,
        tokens_unknown=sum(group.unknown_tokens for group in groups),
        judgements=sum(group.judgements for group in groups),
        judgements_cached=sum(group.judgements_cached for group in groups),
        judge_cost_usd=fsum(judged) if judged else None,
        judge_cost_unknown=sum(group.judgements_unknown for group in groups),
        seconds=fsum(chain.from_iterable(group.seconds for group in groups)),
    )


def _reward(cases: Sequence[Sequence[Group]]) -> Interval:
    clusters = [list(chain.from_iterable(g.rewards for g in case)) for case in cases]
    return mean_interval(clusters[0]) if len(clusters) == 1 else clustered_interval(clusters)


def _pass_rate(cases: Sequence[Sequence[Group]]) -> Interval:
    counts = [(sum(g.counts["pass"] for g in case), sum(g.graded for g in case)) for case in cases]
    passed, graded = sum(p for p, _ in counts), sum(n for _, n in counts)
    if len(counts) <= 1 or graded == len(counts):
        return wilson(passed, graded)
    cases_mean = mean_interval([p / n for p, n in counts])
    rate = passed / graded
    low, high = cases_mean.low, cases_mean.high
    if low is None or high is None:
        return Interval(rate, None, None, cases_mean.n)
    # Cases with fewer graded trials weigh less in the rate than in the mean over cases.
    return Interval(rate, min(low, rate), max(high, rate), cases_mean.n)


def _pass_k(groups: Sequence[Group]) -> tuple[PassK, ...]:
    most = max((group.total - group.counts["skipped"] for group in groups), default=0)
    return tuple(_pass_k_of(groups, k) for k in sorted({1, most}) if most)


def _every_reward(groups: Sequence[Group]) -> list[float]:
    """All rewards; equal ones are one object where there are few, for there may be millions."""
    known: dict[float, float] = {}
    return [
        known.setdefault(reward, reward) if len(known) < _MAX_KNOWN else reward
        for reward in chain.from_iterable(group.rewards for group in groups)
    ]


def _pass_1(groups: Sequence[Group]) -> tuple[PassK, ...]:
    """The chance that a cell passes, where each is a case of its own."""
    passed, graded = sum(g.counts["pass"] for g in groups), sum(g.graded for g in groups)
    total = sum(group.total for group in groups)
    if total == sum(group.counts["skipped"] for group in groups):
        return ()
    rate = passed / graded if graded else None
    return (PassK(1, rate, rate, graded, total),)


def _pass_k_of(groups: Sequence[Group], k: int) -> PassK:
    tries = [(g.graded, g.counts["pass"]) for g in groups if g.graded >= k]
    at_k = _mean(value for n, c in tries if (value := pass_at_k(n, c, k)) is not None)
    hat_k = _mean(value for n, c in tries if (value := pass_hat_k(n, c, k)) is not None)
    return PassK(k, at_k, hat_k, len(tries), len(groups))


def _mean(values: Iterable[float]) -> float | None:
    numbers = list(values)
    return fsum(numbers) / len(numbers) if numbers else None
