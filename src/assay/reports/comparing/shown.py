"""A comparison as what is shown of it: plain records, for the API and for pages made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assay.reports.comparing.found import (
    CaseChange,
    Compared,
    Comparison,
    Finding,
    comparison_verdict,
    plain_words,
)
from assay.reports.comparing.page import lines
from assay.reports.explain import sentence
from assay.reports.outcome import Ended, ended, reward_of
from assay.reports.plain import one_line, shorten
from assay.reports.review import Change
from assay.reports.run_records import AgentName
from assay.reports.totals import Totals
from assay.store.records import CellRecord

__all__ = [
    "ComparedCase",
    "ComparedCell",
    "ComparedPair",
    "ComparedSide",
    "Difference",
    "Growth",
    "LabelledLine",
    "RunComparison",
    "shown",
]

_MOST_PAIRS = 5
_MOST_REASONS = 8
_MOST_REASON = 300
_MOST_ANSWER = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSide:
    """One of two that were compared.

    Attributes:
        run: Id of the run.
        label: Its label.
        created_at: When it began.
        finished: Whether all its cells are there.
        assay: The version of assay that began it.
        agents: Those of its agents that were compared.
        reward: Mean over the cases that both have of the mean reward of the paired cells.
        totals: What all its cells come to.
        paired: What its cells come to that have a graded partner: for cost, time and passes.
        has_verdicts: Whether any of those could have failed.
        alone: Graded cells that the other side does not have at all.
        alone_in: Cases of them, at most 20.
        lost: How partners of the other side's graded cells ended here without a reward.
        lost_in: Cases of them, at most 20.
    """

    run: str
    label: str
    created_at: str
    finished: bool
    assay: str
    agents: tuple[AgentName, ...]
    reward: float | None
    totals: Totals
    paired: Totals
    has_verdicts: bool
    alone: int
    alone_in: tuple[str, ...]
    lost: Mapping[str, int]
    lost_in: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedCell:
    """One cell of a pair.

    Attributes:
        harness: What did the work.
        model: The model.
        trial: The repeat.
        state: How it ended.
        reward: Its reward.
        sentence: How that came about.
        answer: The answer, shortened.
    """

    harness: str
    model: str
    trial: int
    state: Ended
    reward: float | None
    sentence: str
    answer: str


@dataclass(frozen=True, slots=True)
class ComparedPair:
    """A cell of each side.

    Attributes:
        before: The first side's.
        after: The second side's.
        reasons: What is different in their scores.
    """

    before: ComparedCell
    after: ComparedCell
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedCase:
    """A case on both sides.

    Attributes:
        case: Its id.
        before: Mean reward of the first side's paired cells.
        after: Mean reward of the second side's.
        difference: How much better the second side is.
        pairs: Its pairs; of a case that changed, those that differ; at most 5.
        more: Further pairs, which are not shown.
    """

    case: str
    before: float
    after: float
    difference: float
    pairs: tuple[ComparedPair, ...]
    more: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The mean over cases of the second side's mean reward less the first's.

    Attributes:
        mean: As it was measured; None where no cell has a reward on both sides.
        low: Lower end of its 95 % interval.
        high: Upper end.
        p_value: Student's p for no difference; None where too few cases differ for any.
        correlation: Of the two sides over the cases.
    """

    mean: float | None
    low: float | None
    high: float | None
    p_value: float | None
    correlation: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """How much more the second side's paired cells took: 0.1 is a tenth more.

    Attributes:
        cost_usd: Price of the agents; None where that of any cell is not known, or was nothing.
        judge_cost_usd: Price of the judges, likewise.
        tokens: Tokens of the agents, likewise.
        seconds: Time.
    """

    cost_usd: float | None
    judge_cost_usd: float | None
    tokens: float | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class LabelledLine:
    """A line of a report.

    Attributes:
        label: What it is about.
        text: What it says.
    """

    label: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComparison:
    """Two runs, or two agents of one, compared: what `assay compare` says.

    Attributes:
        sentence: What can be said of the difference, chance allowed for.
        verdict: The line that `assay compare` ends with.
        finding: The same in few words.
        before: The first side.
        after: The second side.
        pairs: Cells with a reward on both sides.
        cases: Cases that they are from.
        difference: The difference of the mean rewards.
        growth: How much more the second side took.
        better: Cases with a higher mean on the second side.
        worse: Cases with a lower one.
        same: Cases with equal ones.
        sign_p: The exact p of the sign test on cases better and worse.
        only_before: Pairs of which only the first side's cell passed.
        only_after: Pairs of which only the second side's cell passed.
        lines: The numbers as labelled lines.
        reasons: What else than the work is different: cases, graders, settings.
        graded_otherwise: Cases of which something was graded by other graders, or another assay.
        worsened: The cases that lost most, worst first, at most 200.
        improved: The cases that gained most, best first, at most 200.
        unchanged: The first cases with equal means, at most 200.
    """

    sentence: str
    verdict: str
    finding: Finding
    before: ComparedSide
    after: ComparedSide
    pairs: int
    cases: int
    difference: Difference
    growth: Growth
    better: int
    worse: int
    same: int
    sign_p: float | None
    only_before: int
    only_after: int
    lines: tuple[LabelledLine, ...]
    reasons: tuple[str, ...]
    graded_otherwise: int
    worsened: tuple[ComparedCase, ...]
    improved: tuple[ComparedCase, ...]
    unchanged: tuple[ComparedCase, ...]


def shown(found: Comparison, *, most: int = 200) -> RunComparison:
    """A comparison as records; long texts are shortened.

    Args:
        found: The comparison.
        most: Cases of each sort that are told.
    """
    between = found.interval
    return RunComparison(
        sentence=plain_words(found),
        verdict=one_line(comparison_verdict(found).line, 400),
        finding=found.finding,
        before=_side(found.before),
        after=_side(found.after),
        pairs=found.pairs,
        cases=between.n,
        difference=Difference(
            mean=between.mean,
            low=between.low,
            high=between.high,
            p_value=found.p_value,
            correlation=found.difference.correlation,
        ),
        growth=_growth(found.before.paired, found.after.paired),
        better=found.better,
        worse=found.worse,
        same=found.same,
        sign_p=found.sign_p,
        only_before=found.passed_before,
        only_after=found.passed_after,
        lines=tuple(LabelledLine(*line) for line in lines(found)),
        reasons=tuple(one_line(reason, _MOST_REASON) for reason in found.reasons),
        graded_otherwise=found.graded_otherwise,
        worsened=_cases(found.worsened[:most]),
        improved=_cases(found.improved[:most]),
        unchanged=_cases(found.unchanged[:most]),
    )


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


def _side(side: Compared) -> ComparedSide:
    run = side.run
    return ComparedSide(
        run=run.id,
        label=run.label,
        created_at=run.created_at,
        finished=run.finished,
        assay=run.assay,
        agents=tuple(AgentName(*agent) for agent in side.agents),
        reward=side.reward,
        totals=side.totals,
        paired=side.paired,
        has_verdicts=side.paired.has_verdicts,
        alone=side.alone,
        alone_in=side.alone_in,
        lost=side.lost,
        lost_in=side.lost_in,
    )


def _cases(changes: Sequence[CaseChange]) -> tuple[ComparedCase, ...]:
    return tuple(
        ComparedCase(
            case=change.case,
            before=change.before,
            after=change.after,
            difference=change.difference,
            pairs=tuple(_pair(pair) for pair in change.cells[:_MOST_PAIRS]),
            more=max(0, len(change.cells) - _MOST_PAIRS),
        )
        for change in changes
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
