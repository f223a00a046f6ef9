"""What a report shows of a run: its numbers, and those cells that are worth opening."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from assay.frozen import frozen
from assay.reports.explain import digest_in, name_of, nodes
from assay.reports.figures import score
from assay.reports.opened import Opened, Opener
from assay.reports.outcome import OUTCOMES, Cells, Outcome, outcome, stream
from assay.reports.plain import natural
from assay.reports.summary import MAX_ROWS, Summary, Tally
from assay.scoring.results import SubScore
from assay.store.decisions import gradings
from assay.store.records import CellRecord, CellStatus, RunRecord
from assay.store.runs import Store

if TYPE_CHECKING:
    from assay.reports.grader_cards import Shelf


@frozen
class Review:
    """A run, ready to be shown.

    Attributes:
        run: The run.
        summary: All its cells in numbers.
        cells: Failed cells, then errors, then skipped and passed ones. Of each kind first one
            cell of every (case, harness, model), then their other trials.
        changes: Cells that were graded more than once, and what that changed.
        shelf: The calibration cards that there are.
        against: The first rows on which the graders' verdict is not that of people.
        open: Opens one of the cells.
        where: What commands need beside its id to find it, such as `` --db DIR``.
    """

    run: RunRecord
    summary: Summary
    cells: tuple[CellRecord, ...]
    changes: tuple[Change, ...] = ()
    shelf: Shelf | None = None
    against: tuple[CellRecord, ...] = ()
    open: Opener = Opened.of
    where: str = ""

    def of(self, state: Outcome) -> tuple[CellRecord, ...]:
        """The kept cells with one outcome."""
        return tuple(cell for cell in self.cells if outcome(cell) == state)


def review(
    run: RunRecord,
    cells: Cells,
    *,
    limit: int | None = 200,
    changes: Sequence[Change] = (),
    shelf: Shelf | None = None,
) -> Review:
    """Read the cells once and keep those that a report opens."""
    tally = Tally(run=run, shelf=shelf)
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
        shown = _in_order(first(status, passed=passed, limit=MAX_ROWS))
        for number, cell in enumerate(shown):
            tally.show(cell)
            if number < limit:
                chosen.append(cell)
    return Review(run, tally.summary(), tuple(chosen), tuple(changes))


def run_summary(
    store: Store,
    run: RunRecord,
    *,
    shelf: Shelf | None = None,
) -> Summary:
    """The numbers of a stored run, without its groups; rows that are alike are counted together."""
    tally = Tally(run=run, shelf=shelf)
    if run.are_apart and not shelf:
        for cell, times in store.alike_cells(run.id):
            tally.count(cell, times)
    else:
        # Cards are found by what stands in the score trees.
        cells = store.cells(run.id) if shelf else store.counted_cells(run.id)
        for cell in cells:
            tally.add(cell)
    return tally.summary(with_groups=False)


class FirstCells(Protocol):
    """Gives the first cells that ended in one way."""

    def __call__(
        self, status: CellStatus, *, passed: bool | None, limit: int
    ) -> Iterable[CellRecord]:
        """At most so many of them."""
        ...


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
        ordered = [*_in_order(self._first), *_in_order(self._repeats)]
        return ordered[: self._limit]


def _in_order(cells: Iterable[CellRecord]) -> list[CellRecord]:
    return sorted(cells, key=lambda cell: natural(cell.case))


_SAME = 1e-9


@frozen
class Change:
    """A cell's newest result beside the one before.

    Attributes:
        before: The earlier result.
        after: The newest one.
        reasons: What is different, one line each; empty where both came out the same.
    """

    before: CellRecord
    after: CellRecord
    reasons: tuple[str, ...]

    @property
    def differs(self) -> bool:
        """Whether the reward, the status or the verdict is another one."""
        old, new = self.before, self.after
        return (old.status, old.passed) != (new.status, new.passed) or _apart(
            old.reward, new.reward
        )


def changes_of(store: Store, run_id: str) -> list[Change]:
    """Every cell that was graded more than once, with what that changed."""
    found: list[Change] = []
    for key in store.regraded(run_id):
        graded = gradings(store, run_id, key)
        if len(graded) > 1:
            found.append(change_between(graded[-2], graded[-1]))
    return found


def change_between(before: CellRecord, after: CellRecord) -> Change:
    """One result beside another, with what is different in their scores."""
    return Change(before, after, tuple(_reasons(before, after)))


def _reasons(before: CellRecord, after: CellRecord) -> list[str]:
    said: list[str] = []
    if before.status == "error" and after.status != "error":
        said.append(f"it could not be graded before: {before.error}")
    if _apart(before.threshold, after.threshold):
        said.append(f"it passes at {score(after.threshold)}, not at {score(before.threshold)}")
    old, new = _by_name(nodes(before)), _by_name(nodes(after))
    for name, node in new.items():
        earlier = old.get(name)
        if earlier is None:
            said.append(f"{name_of(node)} is new: {_value(node)}")
        elif _apart(earlier.value, node.value) or earlier.status != node.status:
            said.append(
                f"{name_of(node)} {_value(earlier)} → {_value(node)}: {_why(earlier, node)}"
            )
        elif earlier.weight != node.weight or earlier.gate != node.gate:
            said.append(f"{name_of(node)} counts for {node.weight:g} instead of {earlier.weight:g}")
    said += [f"{name_of(node)} is gone" for name, node in old.items() if name not in new]
    if not said and before.digest != after.digest:
        said.append("its case or graders changed, and no score did")
    return said


def _why(before: SubScore, after: SubScore) -> str:
    old, new = digest_in(before.metadata), digest_in(after.metadata)
    if not old and not new:
        return "nothing says whether its grader changed"
    if old == new:
        return "the same grader gave another score"
    return f"its grader changed ({old or 'unknown'} → {new or 'unknown'})"


def _by_name(parts: Sequence[SubScore]) -> dict[str, SubScore]:
    return {node.name: node for node in parts}


def _value(node: SubScore) -> str:
    return score(node.value) if node.value is not None else node.status


def _apart(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is not other
    return abs(one - other) > _SAME
