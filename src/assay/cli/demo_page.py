"""What ``assay demo`` prints: three tables, three results that are worth opening, what to try."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from assay.cli.demo_runs import Answers, Findings, Part
from assay.reports.evidence import evidence
from assay.reports.explain import heading, name_of, nodes, sentence
from assay.reports.figures import count, duration, score
from assay.reports.outcome import GLYPHS, WORDS, Outcome, node_outcome, outcome, reward_of
from assay.reports.page import STYLES, Page
from assay.reports.page import Part as Shown
from assay.reports.plain import one_line
from assay.scoring.results import SubScore
from assay.store.records import CellRecord

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["show"]

_STATES: tuple[Outcome, ...] = ("pass", "fail", "error")
_EVIDENCE = ("wrong", "stdout", "stderr", "reason")
_MAX_DIFFERENCES = 10
_WIDE = 72
"""Columns that the tables take."""


def show(console: Console, findings: Findings, *, html: str | None) -> None:
    """Print everything.

    Args:
        console: Where to.
        findings: What the demo found.
        html: The report that was written, if one was.
    """
    page = Page(console)
    page.line(("Recorded work, graded here. No model is asked, so no key is needed.", "bold"))
    page.line((f"The examples are in {_short(findings.directory)}", "dim"))
    _title(page, "repair", "one bug of a real package, four recorded attempts")
    if findings.missing:
        _not_run(page, findings.missing)
    for part in findings.repairs:
        _score_table(page, part.cells)
    _title(page, "answers", "recorded answers, judged by graders and by people")
    _answer_table(page, findings.answers)
    _title(page, "environment", "tasks written in Python, answered by a script")
    for part in findings.tasks:
        _task_table(page, part.cells)
    _worth_opening(page, findings)
    _verdict(page, findings)
    _next(page, findings, html)


def _title(page: Page, name: str, what: str) -> None:
    page.blank()
    page.line((name, "bold"), (f"  {what}", "dim"))


def _not_run(page: Page, why: str) -> None:
    page.line((f"{GLYPHS['error']} not run: {why}", STYLES["error"]), hanging=2)
    page.line(
        "This source is fetched once and then kept. With a network, try again. Without one, put "
        "its source distribution into a directory and set PIP_FIND_LINKS to that directory.",
        indent=2,
    )


# --- Tables --------------------------------------------------------------------------------------


def _score_table(page: Page, cells: Sequence[CellRecord]) -> None:
    """Every score of every attempt: one row each, one column per grader."""
    graded = next((nodes(cell) for cell in cells if cell.subscores), ())
    rows: list[list[Shown]] = []
    for cell in cells:
        scores = {node.name: node for node in nodes(cell)}
        found = [scores.get(node.name) for node in graded]
        values: list[Shown] = ["" if node is None else _value(node) for node in found]
        rows.append([_named(cell, cell.model), (score(reward_of(cell)), "bold"), *values])
    _table(page, ["", "reward", *(_column(node) for node in graded)], rows, left=1)


def _column(node: SubScore) -> str:
    return f"{name_of(node)} (gate)" if node.gate else f"{name_of(node)} ({node.weight:g})"


def _value(node: SubScore) -> str:
    return score(node.value) if node.value is not None else node_outcome(node)


def _answer_table(page: Page, parts: Iterable[Answers]) -> None:
    titles = ["", "rows", *(WORDS[state] for state in _STATES), "agree with people", "plain =="]
    rows: list[list[Shown]] = []
    for part in parts:
        states = [outcome(cell) for cell in part.cells]
        numbers: list[Shown] = []
        for state in _STATES:
            number = states.count(state)
            numbers.append((f"{number}", STYLES[state] if number else "dim"))
        agreed = (f"{part.agreed} of {part.labelled}", "bold")
        equal = (f"{part.equal_agreed} of {part.labelled}", "dim")
        rows.append([part.name.rpartition("/")[2], f"{len(states)}", *numbers, agreed, equal])
    _table(page, titles, rows, left=1)


def _task_table(page: Page, cells: Sequence[CellRecord]) -> None:
    rows: list[list[Shown]] = []
    for cell in cells:
        parts = ", ".join(f"{name_of(node)} {_value(node)}" for node in nodes(cell))
        told = cell.content or cell.error or f"answer: {cell.answer}"
        made_of = parts or one_line(told, 200)
        rows.append([_named(cell, cell.case), (score(reward_of(cell)), "bold"), made_of])
    _table(page, ["", "reward", "made of"], rows, left=3)


def _named(cell: CellRecord, name: str) -> Shown:
    state = outcome(cell)
    return f"{GLYPHS[state]} {one_line(name, 60)}", STYLES[state]


def _table(
    page: Page, titles: Sequence[str], rows: Sequence[Sequence[Shown]], *, left: int
) -> None:
    """Write a table; on a narrow terminal one line per row, which wraps."""
    if page.width >= _WIDE:
        cells = ([page.text(cell) for cell in row] for row in rows)
        page.table([page.text(title) for title in titles], cells, left=left)
        return
    for row in rows:
        line: list[Shown] = []
        for title, cell in zip(titles, row, strict=True):
            line += [(f"  {title} ", "dim"), cell] if title else [cell]
        page.line(*line, hanging=4)


# --- Opened --------------------------------------------------------------------------------------


def _worth_opening(page: Page, findings: Findings) -> None:
    """One failure, one gate and one error, each with a sentence on what it means."""
    everything = [(part, cell) for part in findings.parts for cell in part.cells]
    cells = [each for each in everything if each[0].key(each[1]) not in findings.differences]
    failures = [each for each in cells if outcome(each[1]) == "fail"]
    gated = [each for each in failures if _failed(each[1], gates=True)]
    partly = [each for each in failures if each[1].reward and each not in gated]
    errors = [each for each in cells if outcome(each[1]) == "error"]
    _title(page, "Three to open", "each of them is there on purpose")
    for found, gates, meaning in (
        (partly or failures, False, "A failure was graded, and is not good enough."),
        (gated, True, "A gate earns nothing, and where it fails nothing else counts."),
        (errors, False, "An error has no reward: nobody can say how good it is. It is not a 0."),
    ):
        page.blank()
        page.line((meaning, "italic"))
        if found:
            _open(page, *found[0], gates=gates)
        else:
            page.line("(There is none here.)", indent=2)


def _failed(cell: CellRecord, *, gates: bool) -> list[SubScore]:
    return [node for node in nodes(cell) if node.gate is gates and node_outcome(node) == "fail"]


def _open(page: Page, part: Part, cell: CellRecord, *, gates: bool) -> None:
    page.line(_named(cell, part.key(cell)))
    page.line(sentence(cell), indent=2, hanging=2)
    for node in _failed(cell, gates=gates):
        page.line((heading(node), STYLES["fail"]), indent=2)
        for fact in evidence(node, lines=4, width=200):
            if fact.label in _EVIDENCE:
                page.quote(fact.lines, indent=4)
    if cell.answer:
        page.line(("what it answered", "dim"), indent=2)
        page.quote([one_line(cell.answer, 200)], indent=4)


# --- The end -------------------------------------------------------------------------------------


def _verdict(page: Page, findings: Findings) -> None:
    page.blank()
    took = duration(findings.seconds)
    if not findings.differences:
        state: Outcome = "error" if findings.missing else "pass"
        rest = ", but the repair could not be run" if findings.missing else ""
        grades = count(findings.total, "grade")
        page.line((f"{GLYPHS[state]} {grades} as expected in {took}{rest}", STYLES[state]))
        return
    number = count(len(findings.differences), "grade")
    page.line((f"{GLYPHS['fail']} {number} not as expected", STYLES["fail"]), f" ({took})")
    for key, difference in list(findings.differences.items())[:_MAX_DIFFERENCES]:
        page.line(f"{key} {one_line(difference, 400)}", indent=2, hanging=2)
    if len(findings.differences) > _MAX_DIFFERENCES:
        page.line(f"… and {len(findings.differences) - _MAX_DIFFERENCES} more", indent=2)
    page.line("What is missing on this machine, if anything is: assay doctor", indent=2)


def _next(page: Page, findings: Findings, html: str | None) -> None:
    program = _program()
    run = "latest" if findings.missing else "demo-repair"
    steps = [
        ("every score, opened", f"{program} report {run} --all"),
        ("a suite of your own", f"{program} init my-suite"),
        ("and run it", f"{program} run my-suite"),
    ]
    page.blank()
    if html:
        page.line(("One file with every score: ", "dim"), html)
    page.line(("What next", "bold"))
    for purpose, command in steps:
        page.line((f"{purpose:<21}", "dim"), command, indent=2, hanging=4)


def _program() -> str:
    """How this program is called: by name where that finds it, else by its path."""
    found, own = shutil.which("assay"), Path(sys.argv[0])
    if own.name != "assay" or (found and os.path.realpath(found) == os.path.realpath(own)):
        return "assay"
    return shlex.quote(_short(own.absolute()))


def _short(path: Path) -> str:
    """A path as people write it: relative where it is below the working directory."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
