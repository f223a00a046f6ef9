"""What a run's groups could teach a trainer that compares repeats of one task with each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from math import fsum, sqrt
from statistics import median

from assay.frozen import frozen
from assay.reports.explain import nodes
from assay.reports.outcome import reward_of
from assay.scoring.advantage import keep_group
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore
from assay.store.records import CellRecord

__all__ = ["ENDS", "Trainability", "floors_of", "trainability"]

ENDS: Mapping[str, str] = {
    "learnable": "two graded trials differ",
    "all_right": "every graded trial has the full reward",
    "all_wrong": "every graded trial has a reward of 0",
    "all_alike": "every graded trial has the same reward",
    "too_few": "fewer than two trials were graded",
}
"""What a group comes to, and what that means; only the first teaches anything."""

_BINS = 10
_SECONDS = ("wall_seconds", "seconds")


@frozen(kw_only=True)
class Trainability:
    """The groups of a run: trials of one case by one agent.

    Attributes:
        groups: How many there are.
        trials: Trials in a group, to how many groups have so many.
        ends: What groups come to, by the names of `ENDS`; all of them are there.
        cells: Cells in all.
        ungraded: Cells without a reward, which a trainer has to leave out.
        ungraded_groups: Groups with one of them.
        flagged: Cells with signs of tampering: a trainer would learn to tamper.
        spread: Median standard deviation (population) within the groups that teach; None for none.
        bins: Graded cells by reward, in ten equal bins; the last one has its upper end, 1.
        seconds: The 50th and 95th percentile (nearest rank) of a cell's time; None for none.
        graders: The same for each grader that notes its time.
        unbeaten: Groups whose best trial is no better than the floor; None without one.
    """

    groups: int
    trials: Mapping[int, int]
    ends: Mapping[str, int]
    cells: int
    ungraded: int
    ungraded_groups: int
    flagged: int
    spread: float | None
    bins: tuple[int, ...]
    seconds: tuple[float, float] | None
    graders: Mapping[str, tuple[float, float]]
    unbeaten: int | None

    @property
    def share(self) -> float | None:
        """Which part of the groups teaches anything; None for no groups."""
        return self.ends["learnable"] / self.groups if self.groups else None

    def to_dict(self) -> dict[str, Json]:
        """As plain JSON."""
        return {
            "groups": self.groups,
            "trials": {str(size): number for size, number in sorted(self.trials.items())},
            "ends": dict(self.ends),
            "learnable_share": self.share,
            "cells": self.cells,
            "ungraded": self.ungraded,
            "ungraded_groups": self.ungraded_groups,
            "flagged": self.flagged,
            "spread": self.spread,
            "bins": list(self.bins),
            "seconds": None if self.seconds is None else list(self.seconds),
            "graders": {name: list(times) for name, times in self.graders.items()},
            "unbeaten": self.unbeaten,
        }


def floors_of(cells: Iterable[CellRecord]) -> dict[str, float]:
    """The best reward of each case in a run that does nothing: of its no-op, say."""
    floors: dict[str, float] = {}
    for cell in cells:
        if (reward := reward_of(cell)) is not None:
            floors[cell.case] = max(reward, floors.get(cell.case, reward))
    return floors


def trainability(
    cells: Iterable[CellRecord],
    *,
    tolerance: float = 1e-6,
    floors: Mapping[str, float] | None = None,
) -> Trainability:
    """Look at the groups of a run.

    Args:
        cells: In the order of the store: by case, harness, model and trial.
        tolerance: Rewards that differ by no more are equal, as in `keep_group`.
        floors: What doing nothing earns, by case.

    Raises:
        ScoreError: For a tolerance that is not finite.
    """
    ends, trials, bins = Counter[str](), Counter[int](), [0] * _BINS
    spreads: list[float] = []
    seconds: list[float] = []
    graders: dict[str, list[float]] = {}
    total = ungraded = ungraded_groups = flagged = unbeaten = 0
    for (case, _, _), group in groupby(cells, key=lambda cell: cell.key[:3]):
        rewards: list[float | None] = []
        for cell in group:
            rewards.append(reward := reward_of(cell))
            flagged += bool(cell.flags)
            if reward is not None:
                bins[min(_BINS - 1, int(reward * _BINS))] += 1
            seconds.append(cell.seconds)
            for name, second in _times(nodes(cell)):
                graders.setdefault(name, []).append(second)
        known = [reward for reward in rewards if reward is not None]
        missing = len(rewards) - len(known)
        total, ungraded, ungraded_groups = (
            total + len(rewards),
            ungraded + missing,
            ungraded_groups + bool(missing),
        )
        trials[len(rewards)] += 1
        end = _end(known, tolerance)
        ends[end] += 1
        if end == "learnable":
            mean = fsum(known) / len(known)
            spreads.append(sqrt(fsum((r - mean) ** 2 for r in known) / len(known)))
        if floors is not None and case in floors and known:
            unbeaten += max(known) <= floors[case] + tolerance
    return Trainability(
        groups=sum(trials.values()),
        trials=dict(trials),
        ends={name: ends[name] for name in ENDS},
        cells=total,
        ungraded=ungraded,
        ungraded_groups=ungraded_groups,
        flagged=flagged,
        spread=median(spreads) if spreads else None,
        bins=tuple(bins),
        seconds=_percentiles(seconds),
        graders={n: found for n, s in graders.items() if (found := _percentiles(s)) is not None},
        unbeaten=None if floors is None else unbeaten,
    )


def _end(rewards: Sequence[float], tolerance: float) -> str:
    if len(rewards) < 2:
        return "too_few"
    if keep_group(rewards, tolerance=tolerance):
        return "learnable"
    if min(rewards) >= 1.0 - tolerance:
        return "all_right"
    return "all_wrong" if max(rewards) <= tolerance else "all_alike"


def _times(parts: Sequence[SubScore]) -> Iterator[tuple[str, float]]:
    for node in parts:
        found = node.metadata or {}
        for name in _SECONDS:
            second = found.get(name)
            if isinstance(second, int | float) and not isinstance(second, bool):
                yield node.name, float(second)
                break


def _percentiles(values: list[float]) -> tuple[float, float] | None:
    if not values:
        return None
    ranked = sorted(values)
    last = len(ranked) - 1
    return ranked[min(last, len(ranked) // 2)], ranked[min(last, int(0.95 * len(ranked)))]
