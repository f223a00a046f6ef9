"""One cell in the HTML report: its verdict, opened down to the evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.reports.evidence import Evidence, evidence, left_out
from assay.reports.explain import MAX_DEPTH, name_of, nodes, sentence
from assay.reports.figures import apart, cost, duration, score
from assay.reports.markup import Html, element, joined
from assay.reports.outcome import GLYPHS, Outcome, node_outcome, outcome, reward_of
from assay.reports.plain import first_lines, one_line
from assay.scoring.results import SubScore
from assay.store.records import CellRecord

if TYPE_CHECKING:
    from assay.reports.standing import Shelf

__all__ = ["cell_element", "status_element"]

_LINES = 60
_WIDTH = 2_000
_MAX_FACTS = 30
_MAX_NODES = 120

_WORDS: dict[Outcome, str] = {
    "pass": "pass",
    "fail": "fail",
    "error": "error",
    "skipped": "skipped",
}


def cell_element(
    cell: CellRecord, *, anchor: str, opened: bool = False, shelf: Shelf | None = None
) -> Html:
    """A cell as a line that opens.

    Args:
        cell: The cell.
        anchor: Id inside of it; a link there opens it.
        opened: Whether it is open from the start.
        shelf: The calibration cards that there are.
    """
    state = outcome(cell)
    reward = reward_of(cell) if state in ("pass", "fail") else None
    agent = " · ".join(one_line(name, 60) for name in (cell.harness, cell.model) if name)
    details = " · ".join(text for text in (agent, f"trial {cell.trial}") if text)
    flags = element("span", "flagged", class_="tag error") if cell.flags else None
    assurance = element("span", cell.assurance, class_="tag") if cell.assurance else None
    summary = element(
        "summary",
        status_element(state),
        element("span", one_line(cell.case, 120), class_="name"),
        element("span", details, class_="note"),
        flags,
        assurance,
        element(
            "span", apart(reward, cell.threshold)[0] if reward is not None else "", class_="end"
        ),
    )
    body = element("div", *_body(cell, shelf), class_="body", id=anchor)
    return element("details", summary, body, class_=f"cell {state}", open=opened)


def status_element(state: Outcome) -> Html:
    """An outcome as a shape and a word."""
    glyph = element("span", GLYPHS[state], aria_hidden="true")
    return element("span", glyph, f" {_WORDS[state]}", class_=f"mark {state}")


def _body(cell: CellRecord, shelf: Shelf | None) -> list[Html]:
    parts = [element("p", sentence(cell), class_="why")]
    if cell.content:
        parts.append(element("p", "\n".join(first_lines(cell.content, 10)), class_="soft"))
    parts.extend(
        element("p", element("span", "flagged", class_="tag error"), f" {one_line(flag, 300)}")
        for flag in cell.flags[:_MAX_FACTS]
    )
    if cell.subscores:
        budget = [_MAX_NODES]
        parts.append(element("h3", "Scores"))
        parts.extend(_node(node, budget, 0) for node in nodes(cell) if budget[0] > 0)
        if budget[0] <= 0:
            parts.append(element("p", f"Only the first {_MAX_NODES} are shown.", class_="note"))
    parts.extend(
        element("p", f"{one_line(each.grader, 60)}: {each.line}", class_="note")
        for each in (shelf.of_cell(cell)[:_MAX_FACTS] if shelf else ())
    )
    if lines := left_out(cell):
        parts.append(element("h3", "Not graded"))
        shown = "\n".join(lines[:_LINES])
        parts.append(element("pre", shown, tabindex="0", dir="auto"))
    if cell.answer:
        text = "\n".join(first_lines(cell.answer, _LINES, width=_WIDTH))
        parts += [element("h3", "Answer"), element("pre", text, tabindex="0", dir="auto")]
    facts = [
        duration(cell.seconds),
        f"cost {cost(cell.cost_usd, 1 if cell.cost_usd is None else 0)}",
        "unknown tokens" if cell.tokens is None else f"{cell.tokens:,} tokens",
        f"graded by {one_line(cell.digest, 80)}" if cell.digest else "",
        one_line(cell.file, 200),
    ]
    parts.append(element("p", " · ".join(fact for fact in facts if fact), class_="note"))
    return parts


def _node(node: SubScore, budget: list[int], depth: int) -> Html:
    """One score, its evidence and the scores below it; the budget is what may still be shown."""
    budget[0] -= 1
    state = node_outcome(node)
    words = [word for word in (node.assurance, "gate" if node.gate else None) if word]
    tags = [element("span", word, class_="tag") for word in words]
    if not node.gate and node.weight != 1.0:
        word = "penalty" if node.weight < 0 else "weight"
        tags.append(element("span", f"{word} {score(abs(node.weight))}", class_="note"))
    title = joined(
        status_element(state),
        element("span", name_of(node), class_="name"),
        *tags,
        element("span", score(node.value) if node.value is not None else "", class_="end"),
    )
    facts = evidence(node, lines=_LINES, width=_WIDTH, parameters=True)
    shown = element("dl", *(_fact(fact) for fact in facts[:_MAX_FACTS]), class_="facts")
    below = [
        _node(child, budget, depth + 1)
        for child in node.children or ()
        if budget[0] > 0 and depth < MAX_DEPTH
    ]
    if not facts and not below:
        return element("div", element("p", title), class_=f"node {state}")
    inside = joined(shown if facts else None, *below)
    opened = state in ("fail", "error")
    return element(
        "details", element("summary", title), inside, class_=f"node {state}", open=opened
    )


def _fact(fact: Evidence) -> Html:
    text = "\n".join(fact.lines)
    if len(fact.lines) == 1 and len(text) <= 400:
        return joined(element("dt", fact.label), element("dd", text, dir="auto"))
    block = element("pre", text, tabindex="0", dir="auto")
    return joined(element("dt", fact.label, class_="wide"), element("dd", block, class_="wide"))
