"""What ``assay demo`` runs: recorded repairs, files of answers, Python tasks; what it prints."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from assay.cli.options import worker_count
from assay.errors import SourceError
from assay.reports.explain import evidence, heading, name_of, nodes, sentence
from assay.reports.figures import count, duration, score
from assay.reports.outcome import GLYPHS, WORDS, Outcome, node_outcome, outcome, reward_of
from assay.reports.page import STYLES, Page
from assay.reports.page import Part as Shown
from assay.reports.plain import one_line
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore
from assay.store.records import CellRecord
from assay.store.runs import Store

if TYPE_CHECKING:
    from rich.console import Console

    from assay.tasks.rows import Row
    from assay.tasks.task import Agent


_REPAIR, _ANSWERS, _ENVIRONMENT = PARTS = ("repair", "answers", "environment")
"""The directories of the examples."""

_AGENT = "scripted"

Tell = Callable[[str], None]


@dataclass(slots=True)
class Part:
    """One run of the demo.

    Attributes:
        name: Directory of the examples, with the file's name for answers.
        run_id: The run in the store.
        cells: Its results.
    """

    name: str
    run_id: str
    cells: list[CellRecord] = field(default_factory=list[CellRecord])

    def key(self, cell: CellRecord) -> str:
        """What a cell is called in the list of expected rewards."""
        return " ".join(word for word in (f"{self.name}/{cell.case}", cell.model) if word)


@dataclass(slots=True)
class Answers(Part):
    """A graded file of recorded answers.

    Attributes:
        labelled: Rows that a person judged.
        agreed: Of these, rows where the graders came to the same verdict.
        equal_agreed: Of these, rows where plain equality with the expected answer does.
    """

    labelled: int = 0
    agreed: int = 0
    equal_agreed: int = 0

    def compare(self, row: Row) -> None:
        """Count a row whose label is known."""
        if not isinstance(row.label, bool):
            return
        (cell,) = (cell for cell in self.cells if cell.case == row.id)
        submission = row.submission
        self.labelled += 1
        self.agreed += cell.passed is row.label
        self.equal_agreed += (submission.answer in _alternatives(submission.expected)) is row.label


@dataclass(slots=True)
class Findings:
    """What the demo found.

    Attributes:
        directory: The examples.
        home: Where the runs are stored.
        parts: Its runs.
        missing: Why the repair could not be run, or empty.
        differences: What did not come out as expected: a sentence for each result.
        seconds: How long it took.
    """

    directory: Path
    home: str
    parts: list[Part] = field(default_factory=list[Part])
    missing: str = ""
    differences: dict[str, str] = field(default_factory=dict[str, str])
    seconds: float = 0.0

    def by_key(self) -> dict[str, CellRecord]:
        """Every result by what it is called in the list of expected rewards."""
        return {part.key(cell): cell for part in self.parts for cell in part.cells}

    @property
    def repairs(self) -> list[Part]:
        """The run of the repair, if it could be run."""
        return [part for part in self.parts if part.name == _REPAIR]

    @property
    def answers(self) -> list[Answers]:
        """The runs of recorded answers, one per file."""
        return [part for part in self.parts if isinstance(part, Answers)]

    @property
    def tasks(self) -> list[Part]:
        """The run of the Python tasks."""
        return [part for part in self.parts if part.name == _ENVIRONMENT]

    @property
    def total(self) -> int:
        """Results in all."""
        return sum(len(part.cells) for part in self.parts)


async def run_examples(findings: Findings, tell: Tell) -> None:
    """Run every example and store what came out."""
    with Store.open(findings.home) as store:
        try:
            findings.parts.append(await _repair(findings.directory / _REPAIR, store, tell))
        except SourceError as error:
            findings.missing = str(error)
        tell("grading recorded answers")
        for file in sorted((findings.directory / _ANSWERS).glob("*.jsonl")):
            findings.parts.append(await _answers(file, store))
        tell("running Python tasks")
        findings.parts.append(await _environment(findings.directory / _ENVIRONMENT, store))


async def _repair(directory: Path, store: Store, tell: Tell) -> Part:
    from assay.eval.matrix import launch
    from assay.eval.planning import MatrixRequest
    from assay.tasks.case import load_cases
    from assay.tasks.packages import fetch_sdist

    for case in load_cases([str(directory)]):
        if case.source is not None and case.source.pypi is not None:
            tell(f"fetching the source of {case.source.pypi}, which is then kept")
            cache = str(Path(store.home, "cache"))
            try:
                await asyncio.to_thread(fetch_sdist, case.source.pypi, case.source.sha256, cache)
            except SourceError as error:
                raise SourceError(
                    f"{case.source.pypi}: {error.message}", hint=error.hint
                ) from error
    tell("replaying and grading repairs of a package")
    ready = launch(MatrixRequest(paths=(str(directory),), label="demo-repair"), store)
    await ready.go(store, workers=worker_count(None), on_cell=lambda _: None)
    return Part(_REPAIR, ready.run.id, list(store.cells(ready.run.id)))


async def _answers(file: Path, store: Store) -> Answers:
    from assay.eval.recorded import grade_rows, plan_rows
    from assay.eval.row_store import RowStore
    from assay.tasks.grader_files import load_graders
    from assay.tasks.rows import read_rows

    graders = load_graders(str(file.with_suffix(".yaml")))
    sink = RowStore(store)
    with plan_rows(str(file), graders, sink, label="correct") as plan:
        await grade_rows(plan)
    part = Answers(f"{_ANSWERS}/{file.stem}", sink.run.id, list(store.cells(sink.run.id)))
    for row in read_rows(str(file), graders=(), label="correct"):
        part.compare(row)
    return part


async def _environment(directory: Path, store: Store) -> Part:
    from assay.graders.kinds import load_file
    from assay.tasks.task import Taskset
    from assay.types.run import Job

    tasks = Taskset.from_file(str(directory / "tasks.py"))
    agent = cast("Agent", getattr(load_file(str(directory / "agent.py")), _AGENT))
    job = Job(name="demo-tasks")
    await tasks.run(agent, max_concurrent=worker_count(None), store=store.home, job=job)
    return Part(_ENVIRONMENT, job.id, list(store.cells(job.id)))


def _alternatives(expected: Json) -> list[str]:
    """The right answers as texts."""
    return [str(each) for each in (expected if isinstance(expected, list) else [expected])]


_STATES: tuple[Outcome, ...] = ("pass", "fail", "error")
_EVIDENCE = ("wrong", "stdout", "stderr", "reason")
_MAX_DIFFERENCES = 10
_WIDE = 72
"""Columns that the tables take."""


def show(console: Console, findings: Findings) -> None:
    """Print everything."""
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
    _next(page, findings)


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


def _next(page: Page, findings: Findings) -> None:
    program = _program()
    run = "latest" if findings.missing else "demo-repair"
    steps = [
        ("what failed, opened", f"{program} report {run} --all"),
        ("all of it, to click", f"{program} view {run}"),
        ("a suite of your own", f"{program} init my-suite"),
        ("and run it", f"{program} run my-suite"),
    ]
    page.blank()
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
