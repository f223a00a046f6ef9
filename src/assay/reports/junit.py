"""A run as JUnit XML, for continuous integration: a suite per agent, a test case per trial.

A reward that is too low is a ``failure``, a cell that could not be graded an ``error``, one to
which nothing applied ``skipped``; the scores are ``properties`` of their test case. One that could
not have failed has the property ``status`` with the value ``scored``. Where a case asks for a pass
rate that its trials reach, one that did not pass is no failure and has it as a property.

All text goes through `assay.reports.plain`, which leaves nothing that XML has no way to write.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import IO, TextIO
from xml.etree.ElementTree import Element, SubElement, tostring

from assay.reports.explain import evidence, heading, name_of, sentence, tree, walk
from assay.reports.figures import score
from assay.reports.files import replacing
from assay.reports.opened import Opened, Opener
from assay.reports.outcome import (
    Cells,
    Outcome,
    ended,
    node_outcome,
    outcome,
    reward_of,
    stream,
    trouble,
)
from assay.reports.plain import first_lines, one_line
from assay.reports.rates import rates_of
from assay.reports.totals import Group
from assay.scoring.results import SubScore
from assay.store.records import CellRecord, RunRecord

_IN_MEMORY = 4_000_000
_MAX_PARTS = 20
_MAX_OPENED = 1_000


def write_junit(
    path: str | os.PathLike[str], run: RunRecord, cells: Cells, *, opener: Opener = Opened.of
) -> None:
    """Write the file; it is there whole or not at all.

    Suites need their counts first, so test cases wait in a temporary file and only their places
    are kept.
    """
    suites: dict[tuple[str, str], _Suite] = {}
    total = opened = 0
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as spool:
        for cell, state in _judged(cells):
            total += 1
            suite = suites.setdefault((cell.harness, cell.model), _Suite(_suite_name(cell)))
            is_opened = state in ("fail", "error") and opened < _MAX_OPENED
            opened += is_opened
            element = _testcase(cell, state, opener if is_opened else Opened.of)
            suite.add(state, cell.seconds, _place(spool, element))
        if run.planned > total:
            suite = suites["", "\0missing"] = _Suite("run")
            suite.add("error", 0.0, _place(spool, _missing(run, total)))
        with replacing(path) as file:
            _write(file, run, list(suites.values()), spool)


def _judged(cells: Cells) -> Iterator[tuple[CellRecord, Outcome]]:
    """Each cell with what it says to who counts failures; what rates judge waits for its trials."""
    waiting: dict[tuple[str, str, str], list[CellRecord]] = {}
    for cell in stream(cells):
        if cell.rates:
            waiting.setdefault((cell.case, cell.harness, cell.model), []).append(cell)
        else:
            yield cell, outcome(cell)
    for key, trials in waiting.items():
        group = Group(*key)
        for cell in trials:
            group.add(cell)
        is_met = all(rate.met for rate in rates_of([group]))
        for cell in trials:
            state = outcome(cell)
            yield cell, "pass" if state == "fail" and is_met else state


@dataclass(slots=True)
class _Suite:
    """Counts of one suite, and where in the spool its test cases are."""

    name: str
    counts: dict[Outcome, int] = field(
        default_factory=lambda: {"fail": 0, "error": 0, "skipped": 0, "pass": 0}
    )
    seconds: float = 0.0
    places: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def add(self, state: Outcome, seconds: float, place: tuple[int, int]) -> None:
        self.counts[state] += 1
        self.seconds += seconds if isfinite(seconds) and seconds > 0 else 0.0
        self.places.append(place)


def _write(file: TextIO, run: RunRecord, suites: Sequence[_Suite], spool: IO[bytes]) -> None:
    file.write('<?xml version="1.0" encoding="UTF-8"?>\n')
    file.write(_opened("testsuites", f"assay {run.label or run.id}", suites, None))
    for suite in suites:
        file.write(_opened("testsuite", suite.name, [suite], run.created_at))
        for start, length in suite.places:
            spool.seek(start)
            file.write(spool.read(length).decode("utf-8"))
        file.write("</testsuite>\n")
    file.write("</testsuites>\n")


def _opened(tag: str, name: str, suites: Sequence[_Suite], timestamp: str | None) -> str:
    def counted(*states: Outcome) -> str:
        return str(sum(suite.counts[state] for suite in suites for state in states))

    attributes = {
        "name": one_line(name, 200),
        "tests": counted("fail", "error", "skipped", "pass"),
        "failures": counted("fail"),
        "errors": counted("error"),
        "skipped": counted("skipped"),
        "time": f"{sum(suite.seconds for suite in suites):.3f}",
    }
    if timestamp:
        attributes["timestamp"] = one_line(timestamp, 40).removesuffix("Z")
    # An empty element, with its end taken off.
    return tostring(Element(tag, attributes), encoding="unicode").removesuffix(" />") + ">\n"


def _place(spool: IO[bytes], element: Element) -> tuple[int, int]:
    written = tostring(element, encoding="utf-8", xml_declaration=False) + b"\n"
    start = spool.tell()
    spool.write(written)
    return start, len(written)


def _suite_name(cell: CellRecord) -> str:
    return " / ".join(name for name in (cell.harness, cell.model) if name) or "assay"


def _testcase(cell: CellRecord, state: Outcome, opener: Opener) -> Element:
    opened = opener(cell)
    seconds = cell.seconds if isfinite(cell.seconds) and cell.seconds > 0 else 0.0
    attributes = {
        "classname": one_line(_suite_name(cell), 200),
        "name": one_line(f"{cell.case} [trial {cell.trial}]", 200),
        "time": f"{seconds:.3f}",
    }
    if cell.file:
        attributes["file"] = one_line(cell.file, 300)
    element = Element("testcase", attributes)
    _properties(element, cell, opened.scores, excused=state != outcome(cell))
    message = one_line(sentence(cell), 1000)
    if state == "fail":
        failure = SubElement(element, "failure", message=message, type="LowScore")
        failure.text = _details(opened)
    elif state == "error":
        cause = one_line(trouble(cell), 1000)
        error = SubElement(element, "error", message=cause, type="NotGraded")
        error.text = _details(opened)
    elif state == "skipped":
        SubElement(element, "skipped", message=message)
    return element


def _properties(
    element: Element, cell: CellRecord, parts: Sequence[SubScore], *, excused: bool
) -> None:
    values = {
        "status": "scored" if ended(cell) == "scored" else None,
        "failed_trial": sentence(cell) if excused else None,
        "reward": score(reward_of(cell)) if outcome(cell) in ("pass", "fail") else None,
        "threshold": score(cell.threshold),
        "assurance": cell.assurance,
        "min_assurance": cell.min_assurance,
        "not_graded": _not_graded(cell),
        "cost_usd": None if cell.cost_usd is None else f"{cell.cost_usd:.6g}",
        "tokens": None if cell.tokens is None else str(cell.tokens),
        "digest": cell.digest or None,
        "flags": ", ".join(cell.flags) or None,
    }
    for node in parts:
        name = name_of(node)
        values[f"score.{name}"] = score(node.value) if node.value is not None else node.status
        values[f"assurance.{name}"] = node.weakest_assurance
    holder = SubElement(element, "properties")
    for name, value in values.items():
        if value is not None:
            SubElement(holder, "property", name=name, value=one_line(value, 500))


def _not_graded(cell: CellRecord) -> str | None:
    """The share of the weight that was skipped, with the graders."""
    share, graders = cell.not_graded
    return f"{share:.4g} of the weight: {', '.join(graders)}" if graders else None


def _details(opened: Opened) -> str:
    """The sentence, the tree and the evidence of what did not pass."""
    parts = opened.scores
    lines = [sentence(opened.cell), "", *tree(parts, limit=100)]
    wrong = [node for _, node in walk(parts) if node_outcome(node) in ("fail", "error")]
    for node in wrong[:_MAX_PARTS]:
        lines += ["", heading(node)]
        for fact in evidence(node, lines=20):
            lines += [f"{fact.label}:", *(f"    {line}" for line in fact.lines)]
    texts = [("prompt", opened.kept.prompt), ("answer", opened.kept.answer)]
    texts += [(moment.label, moment.text) for moment in opened.steps if moment.is_error]
    texts += [(f"{change.how} {change.path}", change.diff) for change in opened.changes]
    for label, text in texts[:_MAX_PARTS]:
        if text:
            lines += ["", f"{label}:", *(f"    {line}" for line in first_lines(text, 20))]
    return "\n".join(lines)


def _missing(run: RunRecord, total: int) -> Element:
    element = Element("testcase", classname="run", name="every planned cell has a result", time="0")
    message = f"{run.planned - total} of {run.planned} planned cells have no result"
    SubElement(element, "error", message=message, type="NotGraded")
    return element
