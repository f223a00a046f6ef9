"""The runs of ``assay demo``: a matrix of recorded repairs, files of answers, Python tasks."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from assay.cli.options import worker_count
from assay.errors import SourceError
from assay.scoring.json_safe import Json
from assay.store.records import CellRecord
from assay.store.runs import Store

if TYPE_CHECKING:
    from assay.tasks.rows import Row
    from assay.tasks.task import Agent

__all__ = ["PARTS", "Answers", "Findings", "Part", "run_examples"]

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
        submission = row.submission
        (cell,) = (cell for cell in self.cells if cell.case == row.id)
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
    """Run every example and store what came out.

    Args:
        findings: Added to.
        tell: Called with what is being done.

    Raises:
        InputError: For malformed examples.
    """
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
    from assay.eval.matrix import MatrixRequest, launch
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
    from assay.tasks.grader_files import load_graders
    from assay.tasks.rows import read_rows

    graders = load_graders(str(file.with_suffix(".yaml")))
    with plan_rows(str(file), graders, store, label="correct") as rows:
        await grade_rows(rows, store, on_rows=lambda _: None)
    part = Answers(f"{_ANSWERS}/{file.stem}", rows.run.id, list(store.cells(rows.run.id)))
    for row in read_rows(str(file), graders=(), label="correct"):
        part.compare(row)
    return part


async def _environment(directory: Path, store: Store) -> Part:
    from assay.eval.records import record_of, start_run
    from assay.graders.kinds import load_file
    from assay.tasks.taskset import Taskset

    file = directory / "tasks.py"
    tasks = Taskset.from_file(str(file))
    agent = cast("Agent", getattr(load_file(str(directory / "agent.py")), _AGENT))
    job = await tasks.run(agent, max_concurrent=worker_count(None))
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    record = start_run(
        store,
        config={"kind": "tasks", "file": str(file)},
        digests={file.name: digest},
        planned=len(job),
        label="demo-tasks",
    )
    for run in job:
        cell = record_of(
            run,
            run_id=record.id,
            case=run.slug,
            threshold=tasks[run.slug].pass_threshold,
            digest=digest[:16],
            file=str(file),
        )
        store.add_cell(cell, run.to_dict())
    store.finish_run(record.id)
    return Part(_ENVIRONMENT, record.id, list(store.cells(record.id)))


def _alternatives(expected: Json) -> list[str]:
    """The right answers as texts."""
    return [str(each) for each in (expected if isinstance(expected, list) else [expected])]
