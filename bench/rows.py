"""What was measured, against which goal, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal, TypeAlias

__all__ = ["MEASURES", "Goal", "Measure", "Row", "as_json", "table"]

Measure: TypeAlias = Literal["CPU", "wall"]
MEASURES: tuple[Measure, ...] = ("CPU", "wall")

_UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6}


@dataclass(frozen=True, slots=True)
class Goal:
    """What is aimed at.

    Attributes:
        kind: ``times_less``: the peer's figure over ours is at least ``bound``; ``at_most``: ours
            over the peer's is at most ``bound``; ``below``: ours is below ``bound`` seconds.
        bound: The number.
    """

    kind: Literal["times_less", "at_most", "below"]
    bound: float

    def __str__(self) -> str:
        if self.kind == "times_less":
            return f">= {self.bound:g}x less"
        if self.kind == "at_most":
            return f"<= {self.bound:g}x"
        return f"< {self.bound:g} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure of ours beside one of a peer.

    Attributes:
        what: What was done.
        measure: What was counted: ``CPU`` or ``wall``.
        unit: What it is shown in: ``s``, ``ms`` or ``us``.
        ours: Seconds, one per round.
        peer: Seconds in the same rounds; empty where there is no peer.
        beside: What the peer is called.
        goal: What is aimed at, if anything.
        over: Whether the ratio is shown as ours over the peer's, rather than how much less.
        note: A remark, such as that the peer was not installed.
    """

    what: str
    measure: Measure
    unit: Literal["s", "ms", "us"]
    ours: Sequence[float]
    peer: Sequence[float] = ()
    beside: str = ""
    goal: Goal | None = None
    over: bool = False
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """The peer's figure over ours: the median of the rounds' own ratios.

        Round by round, because a machine that grows slower meanwhile slows both.
        """
        pairs = [(o, p) for o, p in zip(self.ours, self.peer, strict=False) if o > 0]
        return median(p / o for o, p in pairs) if pairs else None

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None where there is no goal or no peer."""
        if self.goal is None:
            return None
        if self.goal.kind == "below":
            return median(self.ours) < self.goal.bound
        if not self.ratio:
            return None
        if self.goal.kind == "times_less":
            return self.ratio >= self.goal.bound
        return 1 / self.ratio <= self.goal.bound


def table(title: str, rows: Sequence[Row], *, markdown: bool = False) -> str:
    """Rows as text: median and, in brackets, minimum of each side.

    Args:
        title: What was measured.
        rows: The figures.
        markdown: Whether as Markdown, as documents have it.
    """
    head = ("", "measure", "ours", "peer", "ratio", "goal", "met")
    lines = [head, *(_cells(row) for row in rows)]
    if markdown:
        lines = [head, ("---",) * len(head), *lines[1:]]
        text = [f"\n### {title}\n", *(f"| {' | '.join(line)} |" for line in lines), ""]
        return "\n".join([*text, *dict.fromkeys(f"* {r.what}: {r.note}" for r in rows if r.note)])
    widths = [max(len(line[n]) for line in lines) for n in range(len(head))]
    text = [f"\n{title}"]
    for line in lines:
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        text.append("  " + "  ".join(cells).rstrip())
    text += dict.fromkeys(f"  {row.what}: {row.note}" for row in rows if row.note)
    return "\n".join(text)


def _cells(row: Row) -> tuple[str, str, str, str, str, str, str]:
    met = {True: "yes", False: "NO", None: "-"}[row.met]
    return (
        row.what,
        f"{row.measure} {row.unit}",
        _figure(row.ours, row.unit),
        f"{row.beside} {_figure(row.peer, row.unit)}" if row.peer else "-",
        _ratio(row),
        str(row.goal or "-"),
        met,
    )


def _figure(samples: Sequence[float], unit: str) -> str:
    scale = _UNITS[unit]
    if len(samples) == 1:
        return _digits(samples[0] * scale)
    return f"{_digits(median(samples) * scale)} ({_digits(min(samples) * scale)})"


def _digits(number: float) -> str:
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"


def _ratio(row: Row) -> str:
    if not row.ratio:
        return "-"
    if row.over:
        return f"{1 / row.ratio:.2f}x"
    return f"{row.ratio:.1f}x less" if row.ratio >= 1 else f"{1 / row.ratio:.1f}x MORE"


def as_json(row: Row) -> dict[str, object]:
    """A row with every sample, in seconds."""
    return {
        "what": row.what,
        "measure": row.measure,
        "ours": list(row.ours),
        "peer": list(row.peer),
        "beside": row.beside,
        "peer_over_ours": row.ratio,
        "goal": str(row.goal) if row.goal else None,
        "met": row.met,
        "note": row.note,
    }
