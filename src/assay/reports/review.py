"""What a report shows of a run: its numbers, and those cells that are worth opening."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from assay.reports.changes import Change
from assay.reports.outcome import OUTCOMES, Cells, Outcome, outcome, stream
from assay.reports.summary import MAX_ROWS, Summary, Tally
from assay.store.records import CellRecord, CellStatus, RunRecord

if TYPE_CHECKING:
    from assay.reports.standing import Shelf

__all__ = ["Review", "review", "review_rows"]


@dataclass(frozen=True, slots=True)
class Review:
    """A run, ready to be shown.

    Attributes:
        run: The run.
        summary: All its cells in numbers.
        cells: Failed cells, then errors, then skipped and passed ones. Of each kind first one
            cell of every (case, harness, model), then their other trials.
        changes: Cells that were graded more than once, and what that changed.
        shelf: The calibration cards that there are.
    """

    run: RunRecord
    summary: Summary
    cells: tuple[CellRecord, ...]
    changes: tuple[Change, ...] = ()
    shelf: Shelf | None = None

    def of(self, state: Outcome) -> tuple[CellRecord, ...]:
        """The kept cells with one outcome."""
        return tuple(cell for cell in self.cells if outcome(cell) == state)


def review(
    run: RunRecord,
    cells: Cells,
    *,
    limit: int | None = 200,
    labels: Mapping[str, bool | float] | None = None,
    changes: Sequence[Change] = (),
    shelf: Shelf | None = None,
) -> Review:
    """Read the cells once and keep those that a report opens."""
    tally = Tally(run=run, labels=labels, shelf=shelf)
    kept = {state: _Kept(limit) for state in OUTCOMES}
    for cell in stream(cells):
        tally.add(cell)
        kept[outcome(cell)].add(cell)
    chosen = tuple(cell for state in OUTCOMES for cell in kept[state].chosen())
    return Review(run, tally.summary(), chosen, tuple(changes), shelf)


def review_rows(
    run: RunRecord,
    alike: Iterable[tuple[CellRecord, int]],
    first: FirstCells,
    *,
    limit: int,
    changes: Sequence[Change] = (),
) -> Review:
    """The same of a dataset's run, without a look at every row."""
    tally = Tally(run=run)
    for cell, times in alike:
        tally.count(cell, times)
    chosen: list[CellRecord] = []
    for status, passed, state in _ENDINGS:
        if not tally.has(state):
            continue  # to find that out in the store takes a look at every row
        for number, cell in enumerate(first(status, passed=passed, limit=MAX_ROWS)):
            tally.show(cell)
            if number < limit:
                chosen.append(cell)
    return Review(run, tally.summary(), tuple(chosen), tuple(changes))


class FirstCells(Protocol):
    """Gives the first cells that ended in one way."""

    def __call__(
        self, status: CellStatus, *, passed: bool | None, limit: int
    ) -> Iterable[CellRecord]: ...


_ENDINGS: tuple[tuple[CellStatus, bool | None, Outcome], ...] = (
    ("graded", False, "fail"),
    ("error", None, "error"),
    ("skipped", None, "skipped"),
    ("graded", True, "pass"),
)


class _Kept:
    """The first cells of as many groups as possible, and repeats as far as there is room."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._groups: set[tuple[str, str, str]] = set()
        self._first: list[CellRecord] = []
        self._repeats: list[CellRecord] = []

    def add(self, cell: CellRecord) -> None:
        group = (cell.case, cell.harness, cell.model)
        repeat = group in self._groups
        room = self._repeats if repeat else self._first
        if self._limit is None or len(room) < self._limit:
            self._groups.add(group)
            room.append(cell)

    def chosen(self) -> list[CellRecord]:
        return [*self._first, *self._repeats][: self._limit]
