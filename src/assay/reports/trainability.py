"""What a run's groups could teach a trainer that compares repeats of one task with each other."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from math import fsum, sqrt
from pathlib import Path
from statistics import median

from assay.eval.rows.part_reading import cells_of
from assay.frozen import frozen
from assay.reports.explain import nodes
from assay.reports.figures import count, score
from assay.reports.histogram import Bar
from assay.reports.outcome import reward_of
from assay.reports.plain import one_line
from assay.reports.run_records import RunLine
from assay.scoring.advantage import keep_group
from assay.scoring.results import SubScore
from assay.statistics.quantiles import nearest_rank
from assay.store.records import CellRecord
from assay.store.runs import Store

ENDS: Mapping[str, str] = {
    "learnable": "two graded trials differ",
    "all_right": "every graded trial has the full reward",
    "all_wrong": "every graded trial has a reward of 0",
    "all_alike": "every graded trial has the same reward",
    "too_few": "fewer than two trials were graded",
}
"""What a group comes to, and what that means; only the first teaches anything."""

_BINS = 10
_MOST_SPREAD = 0.5
"""No standard deviation of rewards between 0 and 1 is larger."""
_MOST_GRADERS = 50
_SECONDS = ("wall_seconds", "seconds")


@frozen(kw_only=True)
class GroupEnd:
    """The groups that come to the same.

    Attributes:
        name: ``learnable``, ``all_right``, ``all_wrong``, ``all_alike`` or ``too_few``.
        groups: How many they are.
        share: Of all groups; null where there are none.
        meaning: What that means.
    """

    name: str
    groups: int
    share: float | None
    meaning: str


@frozen(kw_only=True)
class Times:
    """How long something took.

    Attributes:
        name: Of the grader; empty for whole cells.
        p50: Median, in seconds.
        p95: 95th percentile (nearest rank), in seconds.
    """

    name: str
    p50: float
    p95: float


@frozen(kw_only=True)
class Trainability:
    """The groups of a run: trials of one case by one agent, or rows of one ``group``.

    Attributes:
        run: Id of the run.
        floor: Id of the run in which nothing is done; empty without one.
        groups: How many groups there are.
        sizes: The same with how many trials they have, in words.
        ends: What groups come to; each kind of end is there.
        learnable_share: Which part of the groups teaches anything; null for no groups.
        cells: Cells in all.
        ungraded: Cells without a reward, which a trainer has to leave out.
        ungraded_groups: Groups with one of them.
        flagged: Cells with signs of tampering: a trainer would learn to tamper.
        spread: Median standard deviation (population) within the groups that teach; null for none.
        spreads: Groups that teach by that deviation, from 0 to 0.5.
        rewards: Graded cells by reward, from 0 to 1.
        seconds: How long cells took; null for none.
        graders: The same for graders that note their time, slowest first; at most 50.
        unbeaten: Groups whose best trial is no better than the floor; null without one.
        floored: Graded groups whose case has a floor; null without one.
        lines: The numbers in words.
    """

    run: str
    floor: str
    groups: int
    sizes: str
    ends: tuple[GroupEnd, ...]
    learnable_share: float | None
    cells: int
    ungraded: int
    ungraded_groups: int
    flagged: int
    spread: float | None
    spreads: tuple[Bar, ...]
    rewards: tuple[Bar, ...]
    seconds: Times | None
    graders: tuple[Times, ...]
    unbeaten: int | None
    floored: int | None
    lines: tuple[RunLine, ...]


def trainability_of(
    store: Store, run: str, *, floor: str = "", tolerance: float = 1e-6
) -> Trainability:
    """Look at the groups of a stored run.

    Args:
        store: Where it is.
        run: Its id.
        floor: Id of a run of the same cases in which nothing is done; empty for none.
        tolerance: As for `trainability`.
    """
    floors = _floors(store.cells(floor)) if floor else None
    return trainability(store.cells(run), run=run, floor=floor, floors=floors, tolerance=tolerance)


def trainability_of_parts(
    place: Path, *, floor: Path | None = None, tolerance: float = 1e-6
) -> Trainability:
    """Look at the groups of rows that were graded into a directory, which has no times.

    Args:
        place: The directory.
        floor: One of rows of the same groups for which nothing is done; None for none.
        tolerance: As for `trainability`.

    Raises:
        InputError: If some parts are not there, or a directory cannot be read.
        StoreError: If a part is damaged.
    """
    seen = trainability(
        cells_of(place),
        run=str(place),
        floor="" if floor is None else str(floor),
        floors=None if floor is None else _floors(cells_of(floor)),
        tolerance=tolerance,
    )
    return replace(seen, seconds=None)


def _floors(cells: Iterable[CellRecord]) -> dict[str, float]:
    """The best reward of each case or group of rows."""
    floors: dict[str, float] = {}
    for cell in cells:
        if (reward := reward_of(cell)) is not None:
            name = cell.group or cell.case
            floors[name] = max(reward, floors.get(name, reward))
    return floors


def trainability(
    cells: Iterable[CellRecord],
    *,
    run: str = "",
    floor: str = "",
    floors: Mapping[str, float] | None = None,
    tolerance: float = 1e-6,
) -> Trainability:
    """Look at the groups of a run.

    Args:
        cells: In the order of the store: by case, harness, model and trial.
        run: Its id.
        floor: Id of the run that the floors are from.
        floors: What doing nothing earns, by case or by group of rows.
        tolerance: Rewards that differ by no more are equal, as in `keep_group`.

    Raises:
        ScoreError: For a tolerance that is not finite.
    """
    seen, known = _Seen(), floors or {}
    rows: dict[tuple[str, ...], list[float | None]] = {}  # whose ids are in no order of groups
    for (case, *agent), trials in groupby(cells, key=lambda cell: cell.key[:3]):
        alone: list[float | None] = []
        for cell in trials:
            named = rows.setdefault((cell.group, *agent), []) if cell.group else alone
            named.append(seen.reward_of(cell))
        if alone:
            seen.add(alone, known.get(case), tolerance)
    for (group, *_), rewards in rows.items():
        seen.add(rewards, known.get(group), tolerance)
    return seen.told(run, floor, has_floor=floors is not None)


class _Seen:
    """The groups so far."""

    def __init__(self) -> None:
        self._ends, self._sizes = Counter[str](), Counter[int]()
        self._rewards, self._spreads = array("d"), array("d")
        self._seconds = array("d")
        self._graders: dict[str, array[float]] = {}
        self._cells = self._ungraded = self._ungraded_groups = self._flagged = 0
        self._floored = self._unbeaten = 0

    def reward_of(self, cell: CellRecord) -> float | None:
        """Count a cell, whatever its group."""
        self._flagged += bool(cell.flags)
        self._seconds.append(cell.seconds)
        for name, second in _times(nodes(cell)):
            self._graders.setdefault(name, array("d")).append(second)
        return reward_of(cell)

    def add(self, rewards: Sequence[float | None], floor: float | None, tolerance: float) -> None:
        """Count a group."""
        known = [reward for reward in rewards if reward is not None]
        missing = len(rewards) - len(known)
        self._cells += len(rewards)
        self._ungraded += missing
        self._ungraded_groups += bool(missing)
        self._sizes[len(rewards)] += 1
        self._rewards.extend(known)
        end = _end(known, tolerance)
        self._ends[end] += 1
        if end == "learnable":
            mean = fsum(known) / len(known)
            self._spreads.append(sqrt(fsum((r - mean) ** 2 for r in known) / len(known)))
        if floor is not None and known:
            self._floored += 1
            self._unbeaten += max(known) <= floor + tolerance

    def told(self, run: str, floor: str, *, has_floor: bool) -> Trainability:
        groups = self._ends.total()
        graders = [_percentiles(name, times) for name, times in self._graders.items()]
        sizes = ", ".join(
            f"{n:,} of {count(size, 'trial')}" for size, n in sorted(self._sizes.items())
        )
        if len(self._sizes) == 1:
            words = f"{count(groups, 'group')} of {count(next(iter(self._sizes)), 'trial')}"
        else:
            words = f"{count(groups, 'group')} of trials: {sizes or 'none'}"
        return Trainability(
            run=run,
            floor=floor,
            groups=groups,
            sizes=words,
            ends=tuple(
                GroupEnd(
                    name=name,
                    groups=self._ends[name],
                    share=self._ends[name] / groups if groups else None,
                    meaning=meaning,
                )
                for name, meaning in ENDS.items()
            ),
            learnable_share=self._ends["learnable"] / groups if groups else None,
            cells=self._cells,
            ungraded=self._ungraded,
            ungraded_groups=self._ungraded_groups,
            flagged=self._flagged,
            spread=median(self._spreads) if self._spreads else None,
            spreads=_bars(self._spreads, _MOST_SPREAD),
            rewards=_bars(self._rewards, 1.0),
            seconds=_percentiles("", self._seconds) if self._seconds else None,
            graders=tuple(sorted(graders, key=lambda times: -times.p95)[:_MOST_GRADERS]),
            unbeaten=self._unbeaten if has_floor else None,
            floored=self._floored if has_floor else None,
            lines=tuple(self._lines(has_floor=has_floor)),
        )

    def _lines(self, *, has_floor: bool) -> Iterator[RunLine]:
        if self._spreads:
            told = f"median {score(median(self._spreads))} within the groups that teach"
            yield RunLine(label="spread", text=told, warns=False)
        told = f"{self._ungraded:,} of {count(self._cells, 'cell')}"
        told += f", in {count(self._ungraded_groups, 'group')}: left out, never a 0"
        yield RunLine(label="no reward", text=told, warns=self._ungraded > 0)
        if self._flagged:
            told = f"{count(self._flagged, 'cell')}, whose flags say why"
            yield RunLine(label="flagged", text=told, warns=True)
        if has_floor:
            told = f"{self._unbeaten:,} of {count(self._floored, 'group')} never beat it"
            yield RunLine(label="floor", text=told, warns=self._unbeaten > 0)


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
                yield one_line(node.name, 120), float(second)
                break


def _percentiles(name: str, values: Iterable[float]) -> Times:
    ranked = sorted(values)
    return Times(
        name=name,
        p50=nearest_rank(ranked, 0.5),
        p95=nearest_rank(ranked, 0.95),
    )


def _bars(values: Iterable[float], high: float) -> tuple[Bar, ...]:
    """Ten bars from 0; the last one has its upper end too, and 0.3 begins a bar."""
    counts = Counter(min(_BINS - 1, int(value / high * _BINS + 1e-9)) for value in values)
    return tuple(
        Bar(low=high * at / _BINS, high=high * (at + 1) / _BINS, count=counts[at])
        for at in range(_BINS)
    )
