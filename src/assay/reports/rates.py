"""Pass rates that cases ask for: over the trials of each agent, instead of every one of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from assay.frozen import frozen
from assay.reports.figures import apart, score_interval
from assay.reports.plain import one_line
from assay.statistics.intervals import Interval, pass_at_k, pass_hat_k, wilson

if TYPE_CHECKING:
    from assay.reports.totals import Group

_ROUNDING = 1e-9


@frozen(kw_only=True)
class Rate:
    """A rate that a case asks of an agent, and what its trials say.

    Attributes:
        case: The case.
        harness: The agent.
        model: The model that it was asked to use.
        what: ``pass rate``, ``pass@5`` or ``pass^5``.
        needed: The least that is asked for.
        passed: Trials that passed.
        graded: Trials that were graded.
        found: What they come to, with its interval (Wilson's, of the share that passed); the mean
            is None where there are too few trials.
        met: Whether they reach it: by what they come to, not by an end of the interval.
    """

    case: str
    harness: str
    model: str
    what: str
    needed: float
    passed: int
    graded: int
    found: Interval
    met: bool

    @property
    def line(self) -> str:
        """It in words."""
        names = (one_line(name, 60) for name in (self.case, self.harness, self.model) if name)
        who = " · ".join(names)
        if self.found.mean is None:
            are = "trial is" if self.graded == 1 else "trials are"
            few = f"{self.graded} graded {are} too few"
            return f"{who}: {few} for {self.what}"
        mean, bar = apart(self.found.mean, self.needed)
        relation = "reaches" if self.met else "is below"
        return (
            f"{who}: {self.passed} of {self.graded} trials passed, {self.what} {mean} "
            f"(95 % interval {score_interval(self.found)}) {relation} {bar}"
        )


def rates_of(groups: Iterable[Group]) -> Iterator[Rate]:
    """What the cases of some groups ask for."""
    for group in groups:
        passed, graded = group.counts["pass"], group.graded
        share = wilson(passed, graded)
        for what, needed in group.rates.items() if graded else ():
            found = _found(what, passed, graded, share)
            yield Rate(
                case=group.case,
                harness=group.harness,
                model=group.model,
                what=what,
                needed=needed,
                passed=passed,
                graded=graded,
                found=found,
                # A rate may be smaller than rounding, and what is 0 reaches none.
                met=bool(found.mean) and found.mean >= needed - _ROUNDING,
            )


def _found(what: str, passed: int, graded: int, share: Interval) -> Interval:
    """What trials come to; the ends are what the ends of the share would give."""
    sign, k = what[4:5], int(what[5:]) if what[5:].isdecimal() else 0
    if sign not in ("@", "^") or k < 1:
        return share if graded > 1 else Interval(None, None, None, graded)
    mean = (pass_at_k if sign == "@" else pass_hat_k)(graded, passed, k)
    if mean is None or share.low is None or share.high is None:
        return Interval(None, None, None, graded)
    low, high = (1 - (1 - p) ** k if sign == "@" else p**k for p in (share.low, share.high))
    return Interval(mean, min(low, mean), max(high, mean), graded)
