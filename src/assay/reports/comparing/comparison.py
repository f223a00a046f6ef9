"""What came of comparing two runs: the numbers, what they say, and whether that passes.

The records are what the API answers, ``--json`` prints and the HTML file holds; the terminal lays
them out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from assay.reports.figures import MINUS, apart, count, score
from assay.reports.outcome import Ended
from assay.reports.run_records import AgentName
from assay.reports.summary import RunVerdict
from assay.reports.totals import Totals
from assay.statistics.intervals import Interval

Finding: TypeAlias = Literal["better", "worse", "no clear difference", "too few cases to tell"]

FEWEST = 6
"""Cases that have to differ before anything is said of chance: five that all differ in the same
direction do so in one of sixteen series of coin tosses."""

_SAME = 1e-9


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
class ComparedSlice:
    """The cases with one value of a field, compared.

    Attributes:
        value: The value, as text.
        cases: Cases with a reward on both sides.
        before: Mean over them of the first side's mean reward.
        after: The same of the second side.
        low: Lower end of the 95 % interval of the difference.
        high: Upper end.
    """

    value: str
    cases: int
    before: float
    after: float
    low: float | None
    high: float | None


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
        code: The exit status that goes with it: 0, 1 or 3.
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
        by: The field that cases are told apart by; empty for none.
        slices: The cases of each of its values, those that differ most first; at most 200.
    """

    sentence: str
    verdict: str
    code: int
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
    by: str = ""
    slices: tuple[ComparedSlice, ...] = ()

    @property
    def interval(self) -> Interval:
        """The mean difference with its 95 % interval; ``n`` counts cases."""
        return Interval(self.difference.mean, self.difference.low, self.difference.high, self.cases)


def finding_of(between: Interval, differ: int) -> Finding:
    """What can be said of a difference over cases of which some differ, chance allowed for."""
    if between.n < FEWEST:
        return "too few cases to tell"
    if between.mean is None or between.low is None or 0.0 in between:
        return "no clear difference"
    if differ < FEWEST:
        return "too few cases to tell"
    return "better" if between.mean > 0 else "worse"


def comparison_verdict(found: RunComparison, *, max_drop: float | None = None) -> RunVerdict:
    """The printed line and the exit code of a comparison.

    The drop is that of the mean reward as it was measured, not an end of its interval: a gate
    that asks for proof passes everything where cases are few. Code 3 where nothing has a
    difference; with ``max_drop`` also where the second side could not grade, skipped or never ran
    what the first side graded: that could hide a drop.
    """
    mean = found.interval.mean
    if mean is None or found.before.reward is None or found.after.reward is None:
        return RunVerdict(3, "NO VERDICT: no cell has a reward on both sides")
    said = _said(found, found.before.reward, found.after.reward)
    if max_drop is None:
        return RunVerdict(0, f"{found.finding.upper()}: {said}")
    drop, bar = apart(-mean, max_drop)
    is_dropped = -mean > max_drop + _SAME
    relation = f"a drop of {drop} is more than {bar}"
    if not is_dropped:
        relation = f"a drop of {drop} is allowed, up to {bar}" if mean < -_SAME else "no drop"
    if lost := lost_text(found.after.lost):
        number = sum(found.after.lost.values())
        have = f"{count(number, 'cell')} graded before {'has' if number == 1 else 'have'} no reward"
        return RunVerdict(3, f"NO VERDICT: {have} now ({lost}); {relation}; {said}")
    return RunVerdict(int(is_dropped), f"{'FAIL' if is_dropped else 'PASS'}: {relation}; {said}")


def plain_words(found: RunComparison) -> str:
    """What can be said of the difference, and why no more can."""
    between, differ = found.interval, found.better + found.worse
    if between.mean is None or found.before.reward is None or found.after.reward is None:
        return "Nothing to compare: no cell has a reward on both sides."
    change = f"{score(found.before.reward)} → {score(found.after.reward)}"
    means = f"mean reward {change} over {count(between.n, 'case')}"
    size = f"difference {signed(between.mean)}"
    if interval := between_text(between):
        size += f", {interval}"
    match found.finding:
        case "too few cases to tell":
            why = f"{count(between.n, 'case')} compared"
            if between.n >= FEWEST:
                why = f"{differ:,} of {between.n:,} cases {'differs' if differ == 1 else 'differ'}"
            return f"Too few cases to tell: {why}, and it takes {FEWEST}; {means} ({size})."
        case "no clear difference":
            return f"No clear difference: chance alone could explain it; {means} ({size})."
        case "better" | "worse" as word:
            return f"{word.capitalize()}, by more than chance would explain: {means} ({size})."


def signed(value: float) -> str:
    """A difference with its sign, with a digit more than scores have: drops are small."""
    if abs(value) <= _SAME:
        return "0"
    size = abs(value)
    return f"{MINUS if value < 0 else '+'}{size:.3f}" if size >= 0.0005 else f"{value:+.0e}"


def chance(p_value: float) -> str:
    """A p value; never 0."""
    return f"p = {p_value:.2g}" if p_value >= 0.0001 else "p < 0.0001"


def between_text(interval: Interval) -> str:
    """The 95 % interval of a difference in words; empty where there is none."""
    if interval.low is None or interval.high is None:
        return ""
    return f"95 % interval {signed(interval.low)} to {signed(interval.high)}"


def lost_text(lost: Mapping[str, int]) -> str:
    """How cells ended that have no reward, in words; empty for none."""
    words = {"error": "could not be graded", "skipped": "skipped", "missing": "not run yet"}
    return ", ".join(f"{lost[state]:,} {word}" for state, word in words.items() if lost.get(state))


def _said(found: RunComparison, before: float, after: float) -> str:
    means = f"mean reward {score(before)} to {score(after)} over {count(found.interval.n, 'case')}"
    return f"{means}, {found.better:,} better, {found.worse:,} worse"
