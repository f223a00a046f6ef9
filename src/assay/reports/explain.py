"""A verdict as a sentence, and the score tree as lines of text.

The weighted sum is written out, with gates, what was left out and what was needed: "0.62 =
0.50x1.00 tests + 0.30x0.40 judge + 0.20x0.00 format; gate implemented passed; needs 0.70 → fail".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from assay.errors import ScoreError
from assay.reports.figures import MINUS, TIMES, apart, score
from assay.reports.outcome import GLYPHS, node_outcome, outcome, reward_of, trouble
from assay.reports.plain import one_line
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore, reaches
from assay.store.records import CellRecord

__all__ = ["MAX_DEPTH", "heading", "name_of", "nodes", "sentence", "tree", "walk"]

MAX_DEPTH = 24
"""Levels of a score tree that are shown; a deeper one is not read at all."""

_MAX_TERMS = 8
_SAME = 1e-6
_PLAIN_NAME = re.compile(r"[^\W_][\w.:/@-]*(?: [\w.:/@-]+)*")


def nodes(cell: CellRecord) -> tuple[SubScore, ...]:
    """The cell's score tree; a part that cannot be read becomes an error node that says so."""
    return tuple(_read(part) for part in cell.subscores)


def sentence(cell: CellRecord) -> str:
    """Say how the cell's reward came about, what it needed and what follows."""
    state = outcome(cell)
    parts = nodes(cell)
    if state == "skipped":
        return f"skipped: {one_line(trouble(cell) or 'nothing applied', 300)}"
    reward = reward_of(cell)
    if state == "error" or reward is None:
        return "; ".join([f"could not be graded: {one_line(trouble(cell), 300)}", *_judged(parts)])
    number, bar = apart(reward, cell.threshold)
    verdict = "pass" if state == "pass" else "fail"
    if state == "fail" and not reaches(cell.assurance, cell.min_assurance):
        verdict = _unassured(cell, enough=reward >= cell.threshold - _SAME)
    elif (reward >= cell.threshold - _SAME) != (state == "pass"):
        verdict = f"recorded as {verdict}"
    clauses = [_reward(reward, number, parts), *_gates(parts), *_left_out(parts)]
    return f"{'; '.join(clauses)}; needs {bar} → {verdict}"


def _unassured(cell: CellRecord, *, enough: bool) -> str:
    """The verdict on a cell whose assurance is not what its case asks for."""
    below = f"assurance `{cell.assurance}` is below `{cell.min_assurance}`"
    if cell.assurance is None:
        below = f"nothing says its assurance, which must be `{cell.min_assurance}`"
    return f"fail: passed its tests, but {below}" if enough else f"fail; {below}"


def tree(subscores: Sequence[SubScore], *, limit: int = 200) -> list[str]:
    """The score tree as indented lines of plain text, one per node."""
    lines: list[str] = []
    left_out = 0
    for depth, node in walk(subscores):
        if len(lines) >= limit:
            left_out += 1
        else:
            lines.append(f"{'  ' * depth}{heading(node)}")
    return [*lines, f"… {left_out} more"] if left_out else lines


def walk(subscores: Sequence[SubScore], depth: int = 0) -> Iterator[tuple[int, SubScore]]:
    """Every node with its depth, parents before their children."""
    for node in subscores:
        yield depth, node
        if node.children and depth < MAX_DEPTH:
            yield from walk(node.children, depth + 1)


def heading(node: SubScore) -> str:
    """One node on one line: ``✗ 0.40 judge (model, weight 0.30)``."""
    state = node_outcome(node)
    value = score(node.value) if node.value is not None else state
    notes: list[str] = [node.assurance] if node.assurance else []
    if node.gate:
        notes.append("gate")
    if not node.gate and node.weight != 1.0:
        notes.append(f"weight {_weight(node.weight)}")
    suffix = f" ({', '.join(notes)})" if notes else ""
    return f"{GLYPHS[state]} {value} {name_of(node)}{suffix}"


def name_of(node: SubScore) -> str:
    """The node's name; quoted unless it is plain, so that no name can pose as a verdict."""
    name = one_line(node.name, 60)
    return name if _PLAIN_NAME.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _read(part: Mapping[str, Json]) -> SubScore:
    if _deeper_than(part, MAX_DEPTH):
        return SubScore.error("score", f"the score tree has more than {MAX_DEPTH} levels")
    try:
        return SubScore.from_dict(part)
    except ScoreError as error:
        name = part.get("name")
        return SubScore.error(
            name if isinstance(name, str) and name else "score", f"unreadable: {error}"
        )


def _deeper_than(part: Mapping[str, Json], limit: int) -> bool:
    level: list[Mapping[str, Json]] = [part]
    for _ in range(limit):
        below: list[Mapping[str, Json]] = []
        for node in level:
            children = node.get("children")
            if isinstance(children, list):
                below.extend(child for child in children if isinstance(child, dict))
        if not below:
            return False
        level = below
    return True


def _reward(reward: float, number: str, parts: Sequence[SubScore]) -> str:
    """``0.62 = 0.50x1.00 tests + …``, or why the reward is not that sum."""
    total, terms = _weighted(parts)
    if total is None:
        return number
    failed = [name_of(n) for n in parts if n.gate and n.value is not None and n.value < 1.0]
    if failed and abs(reward) <= _SAME:
        word = "gates" if len(failed) > 1 else "gate"
        return f"{number} because {word} {', '.join(failed)} failed, else {score(total)} = {terms}"
    if abs(total - reward) <= _SAME:
        return f"{number} = {terms}"
    if abs(min(1.0, max(0.0, total)) - reward) <= _SAME:
        return f"{number}, the limit of {score(total)} = {terms}"
    return f"{number}, which is not the sum of its parts, {score(total)} = {terms}"


def _weighted(parts: Sequence[SubScore]) -> tuple[float | None, str]:
    """The weighted sum and its terms, as `assay.scoring.combine` forms it."""
    credit = [(n, n.value) for n in parts if n.value is not None and not n.gate and n.weight]
    positive = sum(node.weight for node, _ in credit if node.weight > 0)
    if positive <= 0:
        return None, ""
    total, terms = 0.0, ""
    for place, (node, value) in enumerate(credit):
        share = node.weight / positive if node.weight > 0 else node.weight
        total += share * value
        if place < _MAX_TERMS:
            sign = f" {'+' if share > 0 else MINUS} " if place else MINUS * (share < 0)
            terms += f"{sign}{_weight(abs(share))}{TIMES}{score(value)} {name_of(node)}"
    more = len(credit) - _MAX_TERMS
    return total, f"{terms} + {more} more parts" if more > 0 else terms


def _weight(weight: float) -> str:
    return f"{weight:.2f}" if abs(weight) >= 0.01 else f"{weight:.1g}"


def _gates(parts: Sequence[SubScore]) -> list[str]:
    passed = [name_of(n) for n in parts if n.gate and node_outcome(n) == "pass"]
    return [f"gate{'s' if len(passed) > 1 else ''} {', '.join(passed)} passed"] if passed else []


def _left_out(parts: Sequence[SubScore]) -> list[str]:
    """What is not in the sum: skipped and broken parts, and those that only report."""
    said: list[str] = []
    for node in parts[: 4 * _MAX_TERMS]:
        reason = f" ({one_line(node.reason, 120)})" if node.reason else ""
        if node.status == "skipped":
            said.append(f"{name_of(node)} skipped{reason}")
        elif node.status == "error":
            said.append(f"{name_of(node)} could not be graded{reason}")
        elif not node.gate and node.weight == 0:
            said.append(f"{name_of(node)} {score(node.value)} does not count")
    return said


def _judged(parts: Sequence[SubScore]) -> list[str]:
    """What a cell without a reward did get, so that a broken grader hides no failure."""
    scored = [f"{name_of(n)} {score(n.value)}" for n in parts if n.value is not None]
    if not scored:
        return []
    more = [f"{len(scored) - _MAX_TERMS} more"] if len(scored) > _MAX_TERMS else []
    return [f"graded: {', '.join(scored[:_MAX_TERMS] + more)}"]
