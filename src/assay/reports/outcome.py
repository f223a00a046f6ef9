"""What became of a cell: each outcome has a shape and a word, not only a colour."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import isfinite
from typing import Literal, TypeAlias

from assay.scoring.results import SubScore
from assay.shown import GLYPHS, WORDS, Ended
from assay.store.records import CellRecord

Outcome: TypeAlias = Literal["fail", "error", "skipped", "pass"]

Cells: TypeAlias = "Iterable[CellRecord] | Callable[[], Iterable[CellRecord]]"
"""The cells of a run: any iterable, read once, or a function that starts a new reading."""

OUTCOMES: tuple[Outcome, ...] = ("fail", "error", "skipped", "pass")
"""In the order in which they deserve attention."""


def stream(cells: Cells) -> Iterable[CellRecord]:
    """One reading of the cells."""
    return cells() if callable(cells) else cells


def reward_of(cell: CellRecord) -> float | None:
    """The reward of a graded cell; None where there is none that could be averaged."""
    if cell.status != "graded" or cell.reward is None or isinstance(cell.reward, bool):
        return None
    return cell.reward if isfinite(cell.reward) and 0.0 <= cell.reward <= 1.0 else None


def outcome(cell: CellRecord) -> Outcome:
    """What became of a cell; graded without a usable reward is an error, never a 0."""
    if cell.status == "skipped":
        return "skipped"
    reward = reward_of(cell)
    if reward is None:
        return "error"
    passed = reward >= cell.threshold if cell.passed is None else cell.passed
    return "pass" if passed else "fail"


def has_verdict(cell: CellRecord) -> bool:
    """Whether the cell could have failed; where every score passes, passing says nothing."""
    asks_more = cell.min_assurance is not None or cell.min_coverage is not None
    return cell.threshold > 0.0 or asks_more


def ended(cell: CellRecord) -> Ended:
    """What became of a cell, to be shown: one that could not have failed was only scored."""
    state = outcome(cell)
    return "scored" if state == "pass" and not has_verdict(cell) else state


def counted(state: Ended, number: int) -> str:
    """A number of cells that ended alike, as ``✓ 3 passed``."""
    word = "error" if (state, number) == ("error", 1) else WORDS[state]
    return f"{GLYPHS[state]} {number:,} {word}"


def trouble(cell: CellRecord) -> str:
    """Why a cell could not be graded, or what it says of itself."""
    if cell.error or cell.status == "error":
        return cell.error or cell.content or "no cause was recorded"
    if cell.status == "graded" and reward_of(cell) is None:
        return f"it was graded, but {cell.reward!r} is not a reward in [0, 1]"
    return cell.content


def node_outcome(node: SubScore) -> Outcome:
    """What became of one node of the score tree; a gate passes with its full value only."""
    if node.value is None:
        return "error" if node.status == "error" else "skipped"
    passed = node.value >= 1.0 if node.gate else node.passed
    return "pass" if passed else "fail"
