"""How a batch looks where it is printed, and in a notebook; see `assay.scoring.notebook`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from assay.scoring.notebook import mark, state_of, table
from assay.shown import DASH, element, joined, one_line, score

if TYPE_CHECKING:
    from assay.graders.batch import Batch

_MAX_LINES = 20
_MAX_CAUSES = 5
_WHY = 80
_TITLES = ("item", "time", "reward", "why")


def batch_text(batch: Batch) -> str:
    """A batch as a short table: what came of it, why of errors, then the first items."""
    rows = [_TITLES, *islice(_rows(batch), _MAX_LINES)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_TITLES))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    if (left := len(batch) - _MAX_LINES) > 0:
        lines.append(f"... and {left:,} more")
    causes = [f"  {number:,} x {why}" for why, number in _causes(batch)]
    return "\n".join([_summary(batch), *causes, *(lines if len(batch) else ())])


def batch_html(batch: Batch) -> str:
    """A batch: what came of it, why of errors, and a line for each of the first items."""
    summary = element("p", element("b", _summary(batch)))
    causes = [(why, f"{number:,}") for why, number in _causes(batch)]
    shown = (
        (*row[:2], mark(state_of(one.status, passed=None), row[2]), row[3])
        for one, row in zip(batch.graded, _rows(batch), strict=True)
    )
    return joined(
        summary,
        table(("cause", "items"), causes, len(causes), numbers=(1,)) if causes else None,
        table(_TITLES, shown, len(batch), numbers=(1,)) if len(batch) else None,
    )


def _summary(batch: Batch) -> str:
    known = [one for one in batch.rewards if one is not None]
    mean = f"reward {score(sum(known) / len(known))}" if known else "no reward"
    said = f"batch: {mean}; {len(known):,} of {len(batch):,} graded"
    middle, slow = batch.quantile(0.5), batch.quantile(0.99)
    return said if middle is None else f"{said}; p50 {_time(middle)}, p99 {_time(slow)}"


def _causes(batch: Batch) -> list[tuple[str, int]]:
    """The commonest errors; what differs in numbers alone is told apart."""
    errors = Counter(one_line(one.error, _WHY) for one in batch.graded if one.status == "error")
    causes = errors.most_common(_MAX_CAUSES)
    rest = errors.total() - sum(number for _, number in causes)
    return [*causes, ("other errors", rest)] if rest else causes


def _rows(batch: Batch) -> Iterator[tuple[str, ...]]:
    for one, seconds in zip(batch.graded, batch.seconds, strict=True):
        reward = score(one.score) if one.score is not None else one.status
        why = one_line(one.error or one.reason, _WHY)
        yield one_line(one.id, 40), _time(seconds), reward, why


def _time(seconds: float | None) -> str:
    if seconds is None:
        return DASH
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.0f} ms" if seconds < 1 else f"{seconds:,.1f} s"
