"""Strengths of many answers or agents from pairwise wins and ties (Bradley and Terry 1952).

Whoever was compared with stronger opponents is not punished for it, as a share of wins would.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, fsum, log

from assay.errors import ScoreError
from assay.scoring.results import finite_number

__all__ = ["Comparison", "Strengths", "bradley_terry"]

_STEPS = 10_000
_SAME = 1e-10
"""Once no log strength moves more than this in a step, the strengths have been found."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One comparison of two.

    Attributes:
        a: The first one's name.
        b: The second one's.
        a_won: 1.0 where the first won, 0.0 where the second did, 0.5 for a tie: half a win for
            both (also for a judge whose verdict depends on the order).
    """

    a: str
    b: str
    a_won: float


@dataclass(frozen=True, slots=True)
class Strengths:
    """How strong each is, on a scale on which differences are what counts.

    Attributes:
        log_strengths: By name, from the strongest to the weakest; their mean is 0. A difference of
            1 is a chance to win of 0.73; ``400 / ln 10`` times that are Elo points.
        wins: By name how many comparisons it won, a tie counting half.
        comparisons: By name how many it took part in.
        prior: How many ties with an imagined opponent of mean strength each was given.
    """

    log_strengths: Mapping[str, float]
    wins: Mapping[str, float]
    comparisons: Mapping[str, int]
    prior: float

    def chance(self, a: str, b: str) -> float:
        """The chance that ``a`` wins against ``b``: ``1 / (1 + exp(s_b - s_a))``.

        Raises:
            ScoreError: For a name that was never compared.
        """
        for name in (a, b):
            if name not in self.log_strengths:
                raise ScoreError(f"{name!r} was never compared", hint="give comparisons with it")
        gap = self.log_strengths[a] - self.log_strengths[b]
        return 1 / (1 + exp(-gap)) if gap >= 0 else exp(gap) / (1 + exp(gap))


def bradley_terry(comparisons: Sequence[Comparison], *, prior: float = 1.0) -> Strengths:
    """The most likely strengths, by the minorise-maximise steps of Hunter (2004).

    The chance that i beats j is ``p_i / (p_i + p_j)``. Each step sets
    ``p_i = W_i / sum_j n_ij / (p_i + p_j)``, with W_i wins and n_ij comparisons of i and j.

    Args:
        comparisons: All that were made, in any order. Leave out those without a verdict, and
            report how many that were.
        prior: How many ties each has with an imagined opponent of strength 1. It keeps finite who
            never lost, and comparable who was never compared even indirectly. With 0 there is no
            such help, and such data are refused.

    Returns:
        The strengths; empty for no comparisons.

    Raises:
        ScoreError: For a comparison of one with itself, a result other than 0, 0.5 or 1, a
            negative prior, or, without a prior, where not everyone has beaten everyone, directly
            or through others. Also where the steps
            do not settle: long chains of lopsided comparisons with a small prior.
    """
    if finite_number(prior, what="prior") < 0:
        raise ScoreError(f"prior is {prior}", hint="0 or more ties")
    wins: dict[str, float] = {}
    met: dict[str, dict[str, int]] = {}
    beaten: dict[str, set[str]] = {}
    for each in comparisons:
        a_won = _result(each)
        for name, other, won in ((each.a, each.b, a_won), (each.b, each.a, 1 - a_won)):
            wins[name] = wins.get(name, 0.0) + won
            row = met.setdefault(name, {})
            row[other] = row.get(other, 0) + 1
            beaten.setdefault(name, set()).update([other] if won else [])
    if not prior and not _all_reach_all(beaten):
        raise ScoreError(
            "without a prior these comparisons have no finite strengths",
            hint="someone never lost to, or never met, some of the others: use a prior of 1",
        )
    logs = _steps(wins, met, prior)
    middle = fsum(logs.values()) / len(logs) if logs else 0.0
    order = sorted(logs, key=lambda name: (-logs[name], name))
    return Strengths(
        log_strengths={name: logs[name] - middle for name in order},
        wins={name: wins[name] for name in order},
        comparisons={name: sum(met[name].values()) for name in order},
        prior=prior,
    )


def _steps(
    wins: Mapping[str, float], met: Mapping[str, Mapping[str, int]], prior: float
) -> dict[str, float]:
    """The log strengths after as many steps as it takes."""
    strengths = dict.fromkeys(wins, 1.0)
    for _ in range(_STEPS):
        moved = 0.0
        for name, row in met.items():
            own = strengths[name]
            faced = fsum(n / (own + strengths[other]) for other, n in row.items())
            new = (wins[name] + prior / 2) / (faced + prior / (own + 1))
            moved = max(moved, abs(log(new / own)))
            strengths[name] = new
        # The games fix ratios only: left to the steps above, the common scale would creep.
        scale = exp(_shift([log(value) for value in strengths.values()], prior))
        strengths = {name: value * scale for name, value in strengths.items()}
        if moved <= _SAME:
            return {name: log(value) for name, value in strengths.items()}
    raise ScoreError(
        f"no strengths after {_STEPS} steps",
        hint="use a larger prior, or compare those far apart directly",
    )


def _shift(logs: Sequence[float], prior: float) -> float:
    """What to add to all log strengths.

    With a prior a step of Newton's method towards winning half of the games with its opponent, as
    ties are; without one what makes their mean 0.
    """
    if not prior or not logs:
        return -fsum(logs) / max(1, len(logs))
    chances = [1 / (1 + exp(-each)) for each in logs]
    slope = fsum(chance * (1 - chance) for chance in chances)
    wanted = fsum(0.5 - chance for chance in chances)
    return max(-1.0, min(1.0, wanted / slope)) if slope else 0.0


def _all_reach_all(beaten: Mapping[str, set[str]]) -> bool:
    """Whether wins lead from everyone to everyone (Ford 1957)."""
    lost: dict[str, set[str]] = {name: set() for name in beaten}
    for winner, losers in beaten.items():
        for loser in losers:
            lost[loser].add(winner)
    return _reaches_all(beaten) and _reaches_all(lost)


def _reaches_all(edges: Mapping[str, set[str]]) -> bool:
    seen = set(list(edges)[:1])
    frontier = list(seen)
    while frontier:
        for name in edges[frontier.pop()]:
            if name not in seen:
                seen.add(name)
                frontier.append(name)
    return len(seen) == len(edges)


def _result(comparison: Comparison) -> float:
    won = finite_number(comparison.a_won, what="a_won")
    if won not in (0.0, 0.5, 1.0):
        raise ScoreError(f"a_won is {won}", hint="1 for a win, 0 for a loss, 0.5 for a tie")
    if comparison.a == comparison.b:
        raise ScoreError(f"{comparison.a!r} is compared with itself", hint="give two names")
    return won
