"""A verdict as a sentence, and the score tree as lines of text.

The weighted sum is written out, with gates, what was left out and what was needed: "0.62 =
0.50x1.00 tests + 0.30x0.40 judge + 0.20x0.00 format; gate implemented passed; needs 0.70 → fail".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import cast

from assay.errors import ScoreError
from assay.frozen import frozen
from assay.reports.figures import MINUS, TIMES, apart, score
from assay.reports.outcome import GLYPHS, has_verdict, node_outcome, outcome, reward_of, trouble
from assay.reports.plain import first_lines, last_lines, one_line
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore, reaches
from assay.store.records import UNCLAMPED, CellRecord

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
    elif state == "fail" and not cell.is_covered:
        graded = score(1.0 - cell.not_graded[0])
        verdict = f"fail: {graded} of the weight was graded, and {_least(cell)} is needed"
    elif (reward >= cell.threshold - _SAME) != (state == "pass"):
        verdict = f"recorded as {verdict}"
    if isinstance(given := cell.notes.get(UNCLAMPED), int | float):
        number = f"{score(given)} → {number} clamped"
    clauses = [_reward(reward, number, parts), *_gates(parts), *_left_out(parts)]
    if share := cell.not_graded[0]:
        clauses.append(f"{_weight(share)} of the weight was not graded")
    needed = f"needs {bar} → {verdict}" if has_verdict(cell) else "any score passes"
    return f"{'; '.join(clauses)}; {needed}"


def why_of(cell: CellRecord) -> str:
    """One line: why a cell could not be graded, or what explains its reward.

    Of one that failed, what graders say of the parts below full marks, gates first: they decide.
    """
    said = [trouble(cell)]
    if outcome(cell) == "fail":
        scored = [(n, n.value) for n in nodes(cell) if n.value is not None]
        low = [one for one in scored if one[1] < 1.0 and (one[0].gate or one[0].weight > 0)]
        low.sort(key=lambda one: (not one[0].gate, one[1]))
        if low and low[0][0].gate:
            said = []  # it would say no more than which gates
        elif not reaches(cell.assurance, cell.min_assurance):
            said.append(_unassured(cell, enough=not low).removeprefix("fail; "))
        said = [_said(*one) for one in low[:_MAX_TERMS]] + said
    if isinstance(given := cell.notes.get(UNCLAMPED), int | float):
        said.insert(0, f"{score(given)} was cut to {score(cell.reward)}")
    return one_line("; ".join(filter(None, said)), 300)


def _said(node: SubScore, value: float) -> str:
    """A part of a score, and what its grader says of it."""
    gate = "gate " if node.gate else ""
    return f"{gate}{name_of(node)} {score(value)}{node.reason and f': {node.reason}'}"


def _least(cell: CellRecord) -> str:
    least = cell.min_coverage or 0.0
    return f"{score(least)}, gates included," if least == 1.0 else score(least)


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
    failed = [
        f"{name_of(n)} ({n.value:.2g} of 1)" if n.value else name_of(n)
        for n in parts
        if n.gate and n.value is not None and n.value < 1.0
    ]
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


_MAX_JSON_DEPTH = 64
_MAX_BITS = 1024


def tidy(value: object, *, depth: int = 0) -> Json:  # noqa: PLR0911 - one return per kind
    """Copy a value to plain JSON without shortening it.

    NaN and the infinities become null, lone surrogates ``?``, integers too large for most readers
    and anything that is not JSON a short text that says so.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, int):
        bits = value.bit_length()
        return int(value) if bits <= _MAX_BITS else f"<integer of {bits} bits>"
    if isinstance(value, float):
        return float(value) if isfinite(value) else None
    if depth >= _MAX_JSON_DEPTH:
        return "<too deep>"
    if isinstance(value, Mapping):
        entries = cast("Mapping[object, object]", value)
        return {
            str(key).encode("utf-8", "replace").decode("utf-8"): tidy(item, depth=depth + 1)
            for key, item in entries.items()
        }
    if isinstance(value, list | tuple):
        return [tidy(item, depth=depth + 1) for item in cast("list[object]", value)]
    return f"<{type(value).__name__}>"


_FIRST = (
    "exit_code",
    "returncode",
    "timed_out",
    "passed",
    "failed",
    "total",
    "verdict",
    "reason",
    "reasons",
    "reasoning",
    "explanation",
    "error",
    "counts",
    "tests",
    "read",
    "expected",
    "decided",
    "actual",
    "diff",
)
_OUTPUTS = ("output", "stdout", "stderr", "log", "traceback")
_PARAMETERS = "_parameters"
_DIGEST = "_digest"


def digest_in(metadata: Json | Mapping[str, Json]) -> str:
    """The digest of the grader whose score has these metadata; empty where none is told."""
    digest = metadata.get(_DIGEST) if isinstance(metadata, Mapping) else None
    return digest if isinstance(digest, str) else ""


@frozen
class Evidence:
    """One recorded fact, safe to show.

    Attributes:
        label: What it is, in words.
        lines: Its text; more than one line is shown as a block.
    """

    label: str
    lines: tuple[str, ...]


def evidence(
    node: SubScore, *, lines: int = 8, width: int = 500, parameters: bool = False
) -> list[Evidence]:
    """What is known about why a node has its score: its reason, flags and metadata."""
    found: list[Evidence] = []
    if node.reason:
        found.append(Evidence("reason", tuple(first_lines(node.reason, lines, width=width))))
    if node.flags:
        flags = "\n".join(one_line(flag, width) for flag in node.flags)
        found.append(Evidence("flagged", tuple(first_lines(flags, lines, width=width))))
    metadata = node.metadata or {}
    for key in _ordered(list(metadata), parameters=parameters):
        if key == "subscores" and node.children:
            continue  # only repeats the names of the children
        if key == "reason" and metadata[key] == node.reason:
            continue
        value = _tests(metadata[key]) if key == "tests" else metadata[key]
        shown = _shown_value(value, lines=lines, width=width, tail=key in _OUTPUTS)
        if shown:
            found.append(Evidence(_label_of(key), shown))
    return found


def _tests(value: Json) -> Json:
    """The outcomes of tests, a line each; with its message below it where there is one."""
    if not isinstance(value, list):
        return value
    lines: list[str] = []
    for test in value:
        if not (isinstance(test, dict) and "id" in test and "outcome" in test):
            return value
        lines.append(f"{test['outcome']}: {one_line(str(test['id']), 500)}")
        message = test.get("message")
        lines += [f"    {line}" for line in str(message).split("\n")] if message else []
    return "\n".join(lines)


def left_out(cell: CellRecord) -> list[str]:
    """The changes of a submission that were not graded, one line each: path and reason."""
    lines: list[str] = []
    for name, what in (("dropped", ""), ("restored", "as in the source: ")):
        found = cell.notes.get(name)
        lines += [
            one_line(f"{what}{line}", 200)
            for line in (found if isinstance(found, list) else [])
            if isinstance(line, str)
        ]
    return lines


def _ordered(keys: list[str], *, parameters: bool) -> list[str]:
    first = [key for key in _FIRST if key in keys]
    outputs = [key for key in _OUTPUTS if key in keys]
    known = {*first, *outputs, _PARAMETERS, _DIGEST}
    rest = [key for key in keys if key not in known]
    last = [key for key in (_PARAMETERS, _DIGEST) if parameters and key in keys]
    return [*first, *outputs, *rest, *last]


def _shown_value(value: Json, *, lines: int, width: int, tail: bool) -> tuple[str, ...]:
    if value is None or value in ("", [], {}):
        return ()
    text = value if isinstance(value, str) else "\n".join(in_words(value))
    return tuple((last_lines if tail else first_lines)(text, lines, width=width))


_LINE = 100


def in_words(value: object) -> list[str]:
    """A JSON value as lines for people: ``name: value``, lists with dashes, no brackets."""
    return list(_worded(tidy(value), ""))


def _worded(value: Json, indent: str) -> Iterator[str]:
    if value in ([], {}):
        yield f"{indent}none"
    elif isinstance(value, dict) and all(type(item) in (int, float) for item in value.values()):
        yield indent + ", ".join(f"{one_line(key, 80)} {_scalar(n)}" for key, n in value.items())
    elif isinstance(value, dict):
        for key, item in value.items():
            lines = list(_worded(item, ""))
            start = f"{indent}{one_line(key, 80)}:"
            if len(lines) == 1:
                yield f"{start} {lines[0]}"
            else:
                yield start
                yield from (f"{indent}  {line}" for line in lines)
    elif isinstance(value, list):
        plain = [_scalar(item) for item in value if not isinstance(item, dict | list)]
        joined = ", ".join(plain)
        if len(plain) == len(value) and "\n" not in joined and len(joined) <= _LINE:
            yield f"{indent}{joined}"
        else:
            for item in value:
                for number, line in enumerate(_worded(item, "")):
                    yield f"{indent}{'  ' if number else '- '}{line}"
    else:
        yield from (f"{indent}{line}" for line in _scalar(value).split("\n"))


def _scalar(value: Json) -> str:
    if value is None or value == "":
        return "nothing" if value is None else '""'
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _label_of(key: str) -> str:
    return one_line(key.strip("_").replace("_", " "), 40) or "value"
