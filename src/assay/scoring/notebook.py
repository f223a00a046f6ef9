"""How grades look in a notebook: small tables, escaped, without scripts or styles of their own.

A notebook runs what stands in its outputs as its reader's own page. So there is nothing here but
tables with inline styles, and every text is made safe; colours hold on light and on dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from assay.scoring.results import EvaluationResult, Status, SubScore
from assay.shown import GLYPHS, WORDS, Ended, Html, element, joined, one_line, score

MAX_ROWS = 50
"""Rows of a table; the rest is counted."""

_MOST_STEPS_IN = 12
_REASON = 300
_COLOURS: dict[Ended, str] = {
    "pass": "#2e8b57",
    "fail": "#d1495b",
    "error": "#b7791f",
    "skipped": "#808893",
    "scored": "#4a86c5",
}
_TABLE = "border-collapse:collapse;color:inherit;font-size:inherit;margin:4px 0"
_BORDER = "border-bottom:1px solid rgba(128,128,128,.35)"
_CELL = f"padding:3px 10px;text-align:left;vertical-align:top;{_BORDER}"
_NUMBER = f"padding:3px 10px;text-align:right;vertical-align:top;white-space:nowrap;{_BORDER}"


def mark(state: Ended, text: str) -> Html:
    """A shape and a colour, with a text beside them."""
    style = f"color:{_COLOURS[state]};font-weight:700"
    glyph = element("span", GLYPHS[state], style=style, title=WORDS[state])
    return joined(glyph, " ", text)


def table(
    titles: Sequence[str], rows: Iterable[Sequence[str]], total: int, *, numbers: Sequence[int] = ()
) -> Html:
    """A table of the first rows, which says how many more there are."""
    styles = [_NUMBER if place in numbers else _CELL for place in range(len(titles))]
    head = [element("th", title, style=style) for title, style in zip(titles, styles, strict=True)]
    body = [
        element("tr", *(element("td", cell, style=s) for cell, s in zip(row, styles, strict=True)))
        for row in islice(rows, MAX_ROWS)
    ]
    top = element("tr", *head) if any(titles) else None
    shown = element("table", top, *body, style=_TABLE)
    if total > len(body):
        return joined(shown, element("p", f"… and {total - len(body):,} more", style="opacity:.75"))
    return shown


def state_of(status: Status, *, passed: bool | None) -> Ended:
    """How something ended: an error is never a fail."""
    if status != "scored":
        return status
    return "scored" if passed is None else "pass" if passed else "fail"


def result_html(result: EvaluationResult) -> str:
    """A grade, and its score tree."""
    return joined(head_of(result), tree_html(result.subscores or ()))


def head_of(result: EvaluationResult) -> Html:
    """The reward, what is said of it, and what stands out."""
    # Which reward passes, the task knows; a result alone was scored.
    state = state_of(result.status, passed=None)
    said = f"reward {score(result.reward)}" if result.status == "scored" else result.status
    parts: list[str] = [element("b", mark(state, said))]
    if result.content:
        parts += ["  ", one_line(result.content, _REASON)]
    flags = flags_html(result.flags)
    return joined(element("p", *parts, style="margin:4px 0"), flags)


def flags_html(flags: Sequence[str]) -> Html | None:
    """Signs of tampering, which must not be overlooked."""
    if not flags:
        return None
    style = "color:#a45ee5;font-weight:700"
    named = ", ".join(one_line(flag, 120) for flag in flags[:MAX_ROWS])
    return element("p", element("span", "⚑ flagged:", style=style), f" {named}")


def tree_html(nodes: Sequence[SubScore]) -> str:
    """A score tree as a table, a node on each line."""
    if not nodes:
        return ""
    total = sum(1 for _ in _lines(nodes))
    rows = map(_line, _lines(nodes))
    return table(("grader", "score", "weight", "why"), rows, total, numbers=(2,))


def _lines(nodes: Sequence[SubScore]) -> Iterable[tuple[int, SubScore]]:
    left = [(0, node) for node in reversed(nodes)]
    while left:
        depth, node = left.pop()
        yield depth, node
        left += [(depth + 1, child) for child in reversed(node.children or ())]


def _line(line: tuple[int, SubScore]) -> tuple[str, ...]:
    depth, node = line
    state = state_of(node.status, passed=node.passed)
    value = score(node.value) if node.status == "scored" else node.status
    name = element(
        "span", one_line(node.name, 120), style=f"padding-left:{min(depth, _MOST_STEPS_IN) * 16}px"
    )
    weight = "gate" if node.gate else score(node.weight)
    why = one_line(node.reason, _REASON)
    return name, mark(state, value), weight, joined(why, flags_html(node.flags))
