"""``assay demo`` and ``assay init``: the shipped examples."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from assay.cli.options import add_db, explain, state_home, worker_count
from assay.errors import InputError, SourceError
from assay.reports.explain import sentence
from assay.reports.figures import count, duration
from assay.reports.outcome import GLYPHS, Outcome, outcome
from assay.reports.page import STYLES, TextPage, page_on
from assay.reports.plain import one_line
from assay.reports.statistics import statistics
from assay.reports.summary import Summary, summarize
from assay.reports.table import matrix
from assay.store.records import CellRecord
from assay.store.runs import Store

if TYPE_CHECKING:
    from assay.tasks.task import Agent

_REPAIR, _ANSWERS, _ENVIRONMENT = _PARTS = ("repair", "answers", "environment")
"""The directories of the examples."""

_EXPECTED = "expected.json"
_AGENT = "scripted"
_MAX_DIFFERENCES = 10


def add(parser: ArgumentParser) -> None:
    """Say what ``assay demo`` takes."""
    explain(
        parser,
        "It has a real bug of a real package, datasets, an environment and typed answers; and on\n"
        "purpose one failure, one grading error and one gate that disqualifies.",
    )
    own = "examples of your own instead"
    parser.add_argument("directory", nargs="?", metavar="DIR", help=own)
    add_db(parser)


def add_init(parser: ArgumentParser) -> None:
    """Say what ``assay init`` takes."""
    parser.add_argument("directory", nargs="?", default="assay-suite", metavar="DIR")


def run(given: Namespace) -> int:
    """Run the examples, report what came out, and say whether it is what was expected.

    Returns:
        0 if every grade is the expected one, 1 if not, 3 if something could not be run.
    """
    from rich.console import Console

    directory = examples_directory(given.directory)
    expected = _expected(directory)
    started = time.monotonic()
    with Store.open(state_home()) as store:
        with Console(stderr=True, highlight=False).status("starting") as status:
            runs, missing = asyncio.run(_run_all(directory, store, status.update))
        took = duration(time.monotonic() - started)
        _report(store, runs, missing)
        found = {
            f"{name}/{cell.case} {cell.model}".rstrip(): cell
            for name, run_id in runs.items()
            for cell in store.cells(run_id)
        }
    differences = _differences(found, expected, missing)
    _verdict(page_on(sys.stdout), differences, missing, count(len(found), "grade"), took)
    if missing or any(found[key].status == "error" for key in differences if key in found):
        return 3
    return 1 if differences else 0


def examples_directory(directory: str | None = None) -> Path:
    """The examples: those given, those of the installed package, or those of the checkout."""
    import assay

    package = Path(assay.__file__).parent
    shipped = [package / "_examples", package.parents[1] / "examples"]
    candidates = [Path(directory)] if directory else shipped
    for candidate in candidates:
        if all((candidate / part).is_dir() for part in _PARTS):
            return candidate.resolve()
    raise InputError(
        f"no examples in {candidates[-1]}", hint=f"a directory with {', '.join(_PARTS)}"
    )


async def _run_all(
    directory: Path, store: Store, tell: Callable[[str], None]
) -> tuple[dict[str, str], str]:
    """The runs of the examples by their names, and why there is none of the repair."""
    runs, missing = dict[str, str](), ""
    try:
        runs[_REPAIR] = await _repair(directory / _REPAIR, store, tell)
    except SourceError as error:
        missing = str(error)
    tell("grading recorded answers")
    for file in sorted((directory / _ANSWERS).glob("*.jsonl")):
        runs[f"{_ANSWERS}/{file.stem}"] = await _answers(file, store)
    tell("running Python tasks")
    runs[_ENVIRONMENT] = await _environment(directory / _ENVIRONMENT, store)
    return runs, missing


async def _repair(directory: Path, store: Store, tell: Callable[[str], None]) -> str:
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
    return ready.run.id


async def _answers(file: Path, store: Store) -> str:
    from assay.eval.rows.recorded import grade_rows, plan_rows
    from assay.eval.rows.store_sink import RowStore
    from assay.tasks.grader_files import load_graders

    sink = RowStore(store)
    graders = load_graders(str(file.with_suffix(".yaml")))
    with plan_rows(str(file), graders, sink, label="correct") as plan:
        await grade_rows(plan)
    return sink.run.id


async def _environment(directory: Path, store: Store) -> str:
    from assay.graders.kinds import load_file
    from assay.tasks.task import Taskset
    from assay.types.run import Job

    tasks = Taskset.from_file(str(directory / "tasks.py"))
    agent = cast("Agent", getattr(load_file(str(directory / "agent.py")), _AGENT))
    job = Job(name="demo-tasks")
    await tasks.run(agent, max_concurrent=worker_count(None), store=store.home, job=job)
    return job.id


def _report(store: Store, runs: Mapping[str, str], missing: str) -> None:
    """Show every run in short: its matrix, or the sums of recorded answers, and what failed why."""
    page = page_on(sys.stdout)
    page.line(("Recorded work, graded here. No model is asked, so no key is needed.", "bold"))
    if missing:
        page.blank()
        page.line((f"{GLYPHS['error']} {_REPAIR} not run: {missing}", STYLES["error"]), hanging=2)
        page.line(
            "This source is fetched once and then kept. With a network, try again. Without one, "
            "put its source distribution into a directory and set PIP_FIND_LINKS to that "
            "directory.",
            indent=2,
        )
    for name, run_id in runs.items():
        page.blank()
        page.line((name, "bold"), (f"  assay report {run_id}", "dim"))
        cells = list(store.cells(run_id))
        summary = summarize(cells, run=store.run(run_id))
        if name.startswith(_ANSWERS):
            _sums(page, summary)
            continue
        matrix(page, summary)
        for cell in cells:
            if (state := outcome(cell)) in ("fail", "error"):
                page.line((f"{GLYPHS[state]} {cell.case} {cell.model}".rstrip(), STYLES[state]))
                page.line(sentence(cell), indent=2, hanging=2)
                page.quote([one_line(cell.answer, 200)], indent=4)


def _sums(page: TextPage, summary: Summary) -> None:
    """What became of a file of answers, and how far the grades agree with people."""
    for label, parts in statistics(summary):
        if label in ("Cells", "Agreement"):
            page.line((f"{label:<11}", "dim"), *parts, indent=2, hanging=11)
    for cause in summary.causes:
        page.line(("! could not be graded: ", STYLES["error"]), cause.text, indent=2, hanging=2)


def _verdict(
    page: TextPage, differences: Mapping[str, str], missing: str, grades: str, took: str
) -> None:
    page.blank()
    if differences:
        number = count(len(differences), "grade")
        page.line((f"{GLYPHS['fail']} {number} not as expected", STYLES["fail"]), f" ({took})")
        for key, difference in list(differences.items())[:_MAX_DIFFERENCES]:
            page.line(f"{key} {one_line(difference, 400)}", indent=2, hanging=2)
        if len(differences) > _MAX_DIFFERENCES:
            page.line(f"… and {len(differences) - _MAX_DIFFERENCES} more", indent=2)
        page.line("What is missing on this machine, if anything is: assay doctor", indent=2)
    else:
        state: Outcome = "error" if missing else "pass"
        rest = ", but the repair could not be run" if missing else ""
        page.line((f"{GLYPHS[state]} {grades} as expected in {took}{rest}", STYLES[state]))
    program = _program()
    page.line(("Next  ", "dim"), f"{program} view", ("  all of it, in a browser", "dim"))
    page.line(f"      {program} init my-suite", ("  a suite of your own that runs", "dim"))


def _program() -> str:
    """How this program is called: by name where that finds it, else by its path."""
    found, own = shutil.which("assay"), Path(sys.argv[0])
    if own.name != "assay" or (found and os.path.realpath(found) == os.path.realpath(own)):
        return "assay"
    path, here = own.absolute(), Path.cwd()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))


def _expected(directory: Path) -> dict[str, float | None]:
    """The expected reward of each cell, None for one that cannot be graded."""
    file = directory / _EXPECTED
    try:
        return cast("dict[str, float | None]", json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {file}: {error}") from error


def _differences(
    found: Mapping[str, CellRecord], expected: Mapping[str, float | None], missing: str
) -> dict[str, str]:
    """A sentence for each result that is not the expected one; each cause is told once."""
    said: dict[str, str] = {}
    causes: set[str] = set()
    for key, wanted in expected.items():
        cell = found.get(key)
        if cell is None:
            if not (missing and key.startswith(f"{_REPAIR}/")):
                said[key] = "has no result"
        elif not _same(cell.reward, wanted):
            cause = f": {cell.error}" if cell.error and cell.error not in causes else ""
            causes.add(cell.error)
            said[key] = f"should be {_reward(wanted)} and is {_reward(cell.reward)}{cause}"
    return said | {key: "has an unexpected result" for key in found if key not in expected}


def _same(reward: float | None, wanted: float | None) -> bool:
    if reward is None or wanted is None:
        return reward is wanted
    return abs(reward - wanted) < 1e-6


def _reward(reward: float | None) -> str:
    return "an error" if reward is None else f"{reward:.4g}"


def run_init(given: Namespace) -> int:
    """Copy the starter suite and say what to do with it."""
    directory: str = given.directory
    target = Path(directory)
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise InputError(
                f"{directory} is already there", hint="nothing was changed; choose another name"
            )
        written = _copy(examples_directory() / "starter", target)
    except OSError as error:
        raise InputError(f"cannot write {directory}: {error}") from error
    for file in written:
        print(f"  {file}")
    place = shlex.quote(directory)
    answers, graders = shlex.quote(f"{directory}/answers.jsonl"), f"{directory}/graders.yaml"
    print(f"\nA suite that runs; {directory}/README.md explains it. Try:\n")
    print(f"  assay run {place}")
    print(f"  assay grade {answers} {shlex.quote(graders)} --label correct")
    print(f"\n{directory}/harnesses.yaml says how to ask a model of your own.")
    return 0


def _copy(source: Path, target: Path) -> list[Path]:
    """Copy files, with the usual modes: an installed package may be read-only."""
    written: list[Path] = []
    for file in sorted(source.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            copy = target / file.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
            written.append(copy)
    return written
