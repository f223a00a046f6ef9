"""What came of comparing two runs: the numbers, what they say, and whether that passes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from assay.reports.figures import MINUS, apart, count, score
from assay.reports.review import Change
from assay.reports.summary import Verdict
from assay.reports.totals import Totals
from assay.scoring.intervals import Interval
from assay.scoring.json_safe import Json
from assay.scoring.paired import PairedDifference, mcnemar_exact
from assay.store.records import RunRecord

Finding: TypeAlias = Literal["better", "worse", "no clear difference", "too few cases to tell"]

FEWEST = 6
"""Cases that have to differ before anything is said of chance: five that all differ in the same
direction do so in one of sixteen series of coin tosses."""

_SAME = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One of two that were compared.

    Attributes:
        run: The run.
        agents: Harness and model of each of its agents.
        reward: Mean over the cases that both have of the mean reward of the paired cells.
        totals: What all its cells come to.
        paired: What its cells that have a graded partner come to: for cost, time and passes.
        alone: Graded cells that the other side does not have at all.
        lost: How the partners of graded cells of the *other* side ended here, where they have no
            reward: ``error``, ``skipped``, or ``missing`` in a run that is not finished.
        alone_in: Cases of what is alone, at most 20.
        lost_in: Cases of what is lost, at most 20.
    """

    run: RunRecord
    agents: tuple[tuple[str, str], ...]
    reward: float | None
    totals: Totals
    paired: Totals
    alone: int
    lost: Mapping[str, int]
    alone_in: tuple[str, ...] = ()
    lost_in: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Json]:
        """These numbers as plain JSON."""
        return {
            "run": self.run.id,
            "label": self.run.label,
            "created_at": self.run.created_at,
            "finished": self.run.finished,
            "assay": self.run.assay,
            "agents": [{"harness": harness, "model": model} for harness, model in self.agents],
            "reward": self.reward,
            "alone": self.alone,
            "alone_in": list(self.alone_in),
            "lost": dict(self.lost),
            "lost_in": list(self.lost_in),
            "totals": self.totals.to_dict(),
            "paired": self.paired.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class CaseChange:
    """A case whose mean reward is another one.

    Attributes:
        case: Its id.
        before: Mean reward of the first side's paired cells.
        after: Mean reward of the second side's.
        cells: The pairs that differ, with what is different in their scores.
    """

    case: str
    before: float
    after: float
    cells: tuple[Change, ...]

    @property
    def difference(self) -> float:
        """How much better the second side is."""
        return self.after - self.before

    def to_dict(self) -> dict[str, Json]:
        """As plain JSON."""
        return {
            "case": self.case,
            "before": self.before,
            "after": self.after,
            "cells": [change.to_dict() for change in self.cells],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What came of comparing.

    Attributes:
        before: The first side.
        after: The second side.
        pairs: Cells with a reward on both sides.
        difference: Mean over cases of the second side's mean reward less the first's.
        better: Cases with a higher mean on the second side.
        worse: Cases with a lower one.
        same: Cases with equal ones.
        worsened: The cases that lost most, worst first, at most 200.
        improved: The cases that gained most, best first, at most 200.
        unchanged: The first cases with equal means, at most 200.
        passed_before: Pairs of which only the first side's cell passed.
        passed_after: Pairs of which only the second side's cell passed.
        reasons: What else than the work is different: cases, graders, settings.
        graded_otherwise: Cases of which something was graded by other graders, or another assay.
    """

    before: Compared
    after: Compared
    pairs: int
    difference: PairedDifference
    better: int
    worse: int
    same: int
    worsened: tuple[CaseChange, ...]
    improved: tuple[CaseChange, ...]
    unchanged: tuple[CaseChange, ...]
    passed_before: int
    passed_after: int
    reasons: tuple[str, ...]
    graded_otherwise: int

    @property
    def interval(self) -> Interval:
        """The mean difference with its 95 % interval; ``n`` counts cases."""
        return self.difference.difference.estimate

    @property
    def finding(self) -> Finding:
        """What can be said of the difference, chance allowed for."""
        between, differ = self.interval, self.better + self.worse
        if between.n < FEWEST:
            return "too few cases to tell"
        if between.mean is None or between.low is None or 0.0 in between:
            return "no clear difference"
        if differ < FEWEST:
            return "too few cases to tell"
        return "better" if between.mean > 0 else "worse"

    @property
    def p_value(self) -> float | None:
        """Student's p for no difference of the means; None where too few cases differ for any."""
        return self.difference.p_value if self.better + self.worse >= FEWEST else None

    @property
    def sign_p(self) -> float | None:
        """The exact p of the sign test on cases better and worse; None as for `p_value`."""
        differ = self.better + self.worse
        return mcnemar_exact(self.better, self.worse) if differ >= FEWEST else None

    def to_dict(self) -> dict[str, Json]:
        """As plain JSON."""
        between = self.interval
        return {
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "pairs": self.pairs,
            "cases": between.n,
            "difference": {
                "mean": between.mean,
                "low": between.low,
                "high": between.high,
                "p_value": self.p_value,
                "correlation": self.difference.correlation,
            },
            "finding": self.finding,
            "better": self.better,
            "worse": self.worse,
            "same": self.same,
            "sign_p": self.sign_p,
            "passed": {"only_before": self.passed_before, "only_after": self.passed_after},
            "reasons": list(self.reasons),
            "graded_otherwise": self.graded_otherwise,
            "worsened": [change.to_dict() for change in self.worsened],
            "improved": [change.to_dict() for change in self.improved],
        }


def comparison_verdict(found: Comparison, *, max_drop: float | None = None) -> Verdict:
    """The printed line and the exit code of a comparison.

    The drop is that of the mean reward as it was measured, not an end of its interval: a gate
    that asks for proof passes everything where cases are few. Code 3 where nothing has a
    difference; with ``max_drop`` also where the second side could not grade, skipped or never ran
    what the first side graded: that could hide a drop.
    """
    mean = found.interval.mean
    if mean is None or found.before.reward is None or found.after.reward is None:
        return Verdict(3, "NO VERDICT: no cell has a reward on both sides")
    said = _said(found, found.before.reward, found.after.reward)
    if max_drop is None:
        return Verdict(0, f"{found.finding.upper()}: {said}")
    drop, bar = apart(-mean, max_drop)
    is_dropped = -mean > max_drop + _SAME
    relation = f"a drop of {drop} is more than {bar}"
    if not is_dropped:
        relation = f"a drop of {drop} is allowed, up to {bar}" if mean < -_SAME else "no drop"
    if lost := lost_text(found.after.lost):
        number = sum(found.after.lost.values())
        have = f"{count(number, 'cell')} graded before {'has' if number == 1 else 'have'} no reward"
        return Verdict(3, f"NO VERDICT: {have} now ({lost}); {relation}; {said}")
    return Verdict(int(is_dropped), f"{'FAIL' if is_dropped else 'PASS'}: {relation}; {said}")


def plain_words(found: Comparison) -> str:
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


def _said(found: Comparison, before: float, after: float) -> str:
    means = f"mean reward {score(before)} to {score(after)} over {count(found.interval.n, 'case')}"
    return f"{means}, {found.better:,} better, {found.worse:,} worse"
