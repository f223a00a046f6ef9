"""What a grader is asked in a calibration, and asking it: resumable, with progress."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import Protocol, TypeAlias

from assay.eval.batch import in_batches, run_batches
from assay.eval.calibration.models import counting, with_share
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.types.submission import Submission

__all__ = ["Asked", "Keep", "Score", "Target", "Unit", "ask"]

Score: TypeAlias = "Callable[[Sequence[tuple[str, Submission]]], Awaitable[Sequence[Graded]]]"
"""Grades items, each with an id that is unique among them."""

Again: TypeAlias = "Callable[[int], AbstractContextManager[object]]"
"""Makes what is asked inside of it another asking than those with other numbers."""

_BATCH = 16
_AHEAD = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The grader that is calibrated.

    Attributes:
        name: What people call it: its key, or its file.
        kind: What it is: a type of grader, ``function``, ``combined`` ...
        digest: Of what gives its scores: code, options, judge model, template.
        alias: The digest that it has outside of the registry, or empty.
        made_of: What it was declared with, so that a later difference can be named.
        models: The models that it asks.
        threshold: The score from which an answer passes where nobody says another.
        score: Grades items.
        is_named: Whether its name is its own, rather than that of its file.
    """

    name: str
    kind: str
    digest: str
    score: Score
    alias: str = ""
    made_of: Mapping[str, Json] = field(default_factory=dict[str, Json])
    models: tuple[str, ...] = ()
    threshold: float = 1.0
    is_named: bool = True


@dataclass(frozen=True, slots=True)
class Unit:
    """One thing that a grader is asked.

    Attributes:
        item: Digest of the item.
        variant: ``plain``, ``swapped``, ``unlabelled``, or ``attack`` with its name.
        repeat: Which asking of the same, from 0.
        submission: What is graded.
    """

    item: str
    variant: str
    repeat: int
    submission: Submission

    @property
    def key(self) -> str:
        """Its name among all units of a calibration."""
        return f"{self.item}:{self.variant}:{self.repeat}"


class Keep(Protocol):
    """Where judgements are kept as they come."""

    def earlier(self) -> Iterator[tuple[str, Graded]]:
        """What an interrupted calibration has left, oldest first."""
        ...

    def add(self, judged: Sequence[tuple[str, Graded]]) -> None:
        """Keep judgements."""
        ...


@dataclass(slots=True)
class Asked:
    """What came of the units.

    Attributes:
        outcomes: By the key of the unit, each with what it took; see `models.cost_of`.
    """

    outcomes: dict[str, Graded] = field(default_factory=dict[str, Graded])

    def of(self, item: str, variant: str = "plain", repeat: int = 0) -> Graded | None:
        """The outcome of one asking; None where there is none."""
        return self.outcomes.get(f"{item}:{variant}:{repeat}")


async def ask(
    units: Sequence[Unit],
    target: Target,
    keep: Keep,
    *,
    again: Again,
    on_done: Callable[[Graded], None],
) -> Asked:
    """Ask a grader everything that it was not asked before.

    Judgements are kept batch by batch. What could not be graded by an interrupted calibration is
    asked again.
    """
    asked = Asked()
    wanted = {unit.key for unit in units}
    for key, graded in keep.earlier():
        if key in wanted and graded.status != "error":
            asked.outcomes[key] = graded
    for graded in asked.outcomes.values():
        on_done(graded)
    todo = [unit for unit in units if unit.key not in asked.outcomes]

    async def judge(part: Sequence[Unit]) -> list[tuple[str, Graded]]:
        begun = time.monotonic()
        with counting() as spent, again(part[0].repeat):
            graded = await target.score([(unit.key, unit.submission) for unit in part])
        took = time.monotonic() - begun
        return [
            (unit.key, with_share(one, spent, len(part), took))
            for unit, one in zip(part, graded, strict=True)
        ]

    def done(_part: Sequence[Unit], judged: list[tuple[str, Graded]]) -> None:
        keep.add(judged)
        asked.outcomes.update(judged)
        for _, one in judged:
            on_done(one)

    repeats = groupby(todo, key=lambda unit: unit.repeat)
    parts = chain.from_iterable(in_batches(units, _BATCH) for _, units in repeats)
    await run_batches(parts, judge, done, at_once=_AHEAD)
    return asked
