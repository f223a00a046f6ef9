"""What a grader is asked in a calibration, and asking it: resumable, with progress."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

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
        threshold: The score from which it calls an answer good, where it says so itself.
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
    threshold: float | None = None
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

    Args:
        units: What to ask.
        target: The grader.
        keep: Where judgements are kept.
        again: Makes repeats of the same question apart, where something remembers replies.
        on_done: Called with each outcome, those that are taken over included.
    """
    asked = Asked()
    wanted = {unit.key for unit in units}
    for key, graded in keep.earlier():
        if key in wanted and graded.status != "error":
            asked.outcomes[key] = graded
    for graded in asked.outcomes.values():
        on_done(graded)
    todo = [unit for unit in units if unit.key not in asked.outcomes]
    waiting: set[asyncio.Task[None]] = set()

    async def batch(part: Sequence[Unit]) -> None:
        begun = time.monotonic()
        with counting() as spent, again(part[0].repeat):
            graded = await target.score([(unit.key, unit.submission) for unit in part])
        took = time.monotonic() - begun
        judged = [
            (unit.key, with_share(one, spent, len(part), took))
            for unit, one in zip(part, graded, strict=True)
        ]
        keep.add(judged)
        asked.outcomes.update(judged)
        for one in graded:
            on_done(one)

    try:
        for part in _parts(todo):
            waiting.add(asyncio.create_task(batch(part)))
            if len(waiting) >= _AHEAD:
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
        await asyncio.gather(*waiting)
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    return asked


def _parts(units: Sequence[Unit]) -> Iterator[list[Unit]]:
    """The units in batches, each of one repeat."""
    part: list[Unit] = []
    for unit in units:
        if part and (len(part) >= _BATCH or unit.repeat != part[0].repeat):
            yield part
            part = []
        part.append(unit)
    if part:
        yield part
