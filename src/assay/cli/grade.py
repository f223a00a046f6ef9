"""``assay grade``: recorded answers through graders, or through one function in the sandbox."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from assay.cli.exporting import add_export, exporting, tell_rows
from assay.cli.grade_parts import add_parts, grade_into_parts, in_parts, write_rows
from assay.cli.judging import add_judging
from assay.cli.options import (
    BAD_INPUT,
    EXITS,
    INTERRUPTED,
    Outputs,
    add_engine,
    add_outputs,
    add_workers,
    bounds,
    check_targets,
    engine_given,
    explain,
    file_warnings,
    is_trusted,
    share,
    state_home,
    store_there,
    tell_warnings,
    worker_count,
)
from assay.cli.rows import ROWS, add_reading, require_rows, rows_given
from assay.errors import InputError, StoreError
from assay.scoring.json_safe import Json

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping, Sequence

    from assay.eval.recorded import RowRun
    from assay.eval.span_export import SpanExport
    from assay.graders.spec import GraderSpec
    from assay.scoring.validation import ValidationReport
    from assay.store.records import CellRow
    from assay.store.runs import Store
    from assay.tasks.rows import JsonLines

__all__ = ["add", "run"]

_EXAMPLES = """\
  assay grade answers.jsonl --graders graders.yaml
  assay grade answers.jsonl --graders graders.yaml --label correct --json
  assay grade answers.jsonl --function grade.py
  assay grade answers.csv.gz --graders graders.yaml --map answer=response,expected=target
  assay grade 'data/train-*.parquet' --graders graders.yaml --out graded/
  assay grade traces/ --graders graders.yaml
  assay grade inspect.eval --graders graders.yaml --on-bad-row skip
  assay grade answers.jsonl --graders graders.yaml --engine ray"""
_MORE = f"""\
{ROWS}
A row has `answer` or `messages`, and may have `id`, `question`, `expected` and `metadata`. With
--label the grades are compared with what people said: confusion, accuracy, kappa.
DATA may also be recordings of agents: a file, or a directory of them. Each run in them is a row,
with its trace; the content tells the format, and docs/traces.md lists the formats.
With --function a file with `async def grade(thread: StringThread) -> float` gives the scores; a
row may have `completion` and `metadata` beside its `messages`. Its scores are in [0, 1], or in
--range, which is mapped to that; without --threshold, any score passes.
The results are stored as a run. After an interruption, the same command resumes it.

{EXITS}; rows that --on-bad-row skip leaves out
are reported, and counted in the verdict; they do not change the status, unless no row is left: 2
"""


def add(parser: ArgumentParser) -> None:
    """Say what ``assay grade`` takes."""
    explain(parser, _MORE, _EXAMPLES)
    option = parser.add_argument
    option("data", metavar="DATA", help="rows of recorded answers, or recordings; - for stdin")
    by = parser.add_mutually_exclusive_group(required=True).add_argument
    by("--graders", "-g", metavar="GRADER", help="YAML file, FILE.py, or KEY@N of a stored one")
    by("--function", metavar="FILE.py", help="one function, in the sandbox")
    option(
        "--isolation",
        choices=("call", "batch"),
        help="with --function: a process for each call, or one for many",
    )
    option("--range", metavar="LOW,HIGH", type=bounds, help="with --function: what it may return")
    option("--label", metavar="FIELD", help="compare with this true/false or numeric field")
    option(
        "--threshold",
        type=share,
        metavar="X",
        help="reward that a row needs to pass: a single grader's own pass_threshold, else 1",
    )
    add_parts(parser)
    add_reading(parser, may_skip=True)
    add_workers(parser)
    add_engine(parser)
    add_judging(parser)
    add_export(parser)
    add_outputs(parser)


def run(given: Namespace) -> int:
    """Grade a dataset.

    Raises:
        InputError: For a malformed dataset, grader file or function.
    """
    from assay.tasks.formats import TABLE_FORMS, form_of
    from assay.tasks.tables import load_arrow

    outputs = Outputs.of(given)
    source: str = given.function or given.graders
    if source.endswith(".py"):
        given.function, given.graders = source, None
    out = None if (is_parted := in_parts(given)) else given.out
    check_targets((out, outputs.junit, outputs.html), inputs=(given.data, source))
    if given.function is None:
        _refuse(given, ("isolation", "range"), "--function")
    else:
        _refuse(
            given,
            ("max_cost", "judge_cache"),
            "--graders",
            why="a function runs in the sandbox and asks no model",
        )
    require_rows(given.data)
    if given.out and (given.parts or form_of(given.out)) in TABLE_FORMS:
        load_arrow()  # what cannot be written is not paid for
    graders, notes = ((), {}) if given.function else _declared(given)
    from assay.eval.recorded import check_rows
    from assay.tasks.rows import as_json_lines

    if is_parted:
        with rows_given(given, given.data, may_record=True) as found:
            if given.function is not None:
                made = _function(given)
                if isinstance(made, int):
                    return made
                graders, _ = made
            threshold = _threshold(given, graders)
            return grade_into_parts(given, found, graders, threshold=threshold, outputs=outputs)
    with (
        rows_given(given, given.data, may_record=True) as found,
        as_json_lines(found.path, label=given.label, reading=found.reading) as rows,
    ):
        data = replace(rows, left_out=found.left_out, first_left_out=found.first_left_out)
        if given.function is not None:
            # A malformed row is worse than a function that is not valid.
            check_rows(data, label=given.label)
            made = _function(given)
            if isinstance(made, int):
                return made
            graders, notes = made
        return _grade(given, data, graders, notes, outputs)


def _grade(
    given: Namespace,
    data: JsonLines,
    graders: tuple[GraderSpec, ...],
    notes: Mapping[str, Json],
    outputs: Outputs,
) -> int:
    from assay.cli.report import conclude
    from assay.eval.recorded import plan_rows
    from assay.store.runs import Store

    with (
        exporting(given) as export,
        Store.open(state_home()) as store,
        plan_rows(
            data,
            graders,
            store,
            label=given.label,
            threshold=_threshold(given, graders),
            is_checked=given.function is not None,
            notes=notes,
        ) as rows,
    ):
        planned = rows.run.planned
        if rows.kept:
            kept = f"{rows.kept:,} of {planned:,} rows"
            print(f"resuming run {rows.run.id}, which has {kept}", file=sys.stderr)
        if not _carry_out(given, rows, store, export):
            if kept := store.counts(rows.run.id).total:
                said = f"{kept:,} of {planned:,} rows are kept in run {rows.run.id}"
                said += ": the same command goes on after them"
            else:  # it would be the latest run
                said = "no row was graded"
                store.forget_run(rows.run.id)
            print(f"interrupted; {said}", file=sys.stderr)
            return INTERRUPTED
        if given.out:
            try:
                write_rows(given.out, rows, store)
            except StoreError as error:
                kept = f"every grade is kept: assay runs export {rows.run.id} --into DIR"
                raise StoreError(error.message, hint=kept) from error
        return conclude(store, rows.run.id, outputs)


def _carry_out(given: Namespace, rows: RowRun, store: Store, export: SpanExport | None) -> bool:
    """Grade what is to be graded; whether it came to its end."""
    import asyncio
    from contextlib import redirect_stdout

    from rich.console import Console

    from assay.cli.judging import cost_so_far
    from assay.eval.recorded import grade_rows
    from assay.reports.progress import progress

    shown = progress(
        Console(stderr=True, highlight=False),
        rows.run.planned,
        before=rows.kept,
        note=cost_so_far,
    )

    def on_rows(graded: Sequence[CellRow]) -> None:
        shown.rows(graded)
        if export is not None:
            tell_rows(export, store, rows.run, graded)

    try:
        # What a grader of one's own prints must not end up inside the JSON.
        with redirect_stdout(sys.stderr), engine_given(given) as cluster, shown:
            here = worker_count(given.workers, rows.graders)
            workers = here if cluster is None else given.workers or 0
            asyncio.run(grade_rows(rows, store, on_rows=on_rows, workers=workers, cluster=cluster))
    except KeyboardInterrupt:
        return False
    return True


def _declared(given: Namespace) -> tuple[tuple[GraderSpec, ...], dict[str, Json]]:
    """The graders of a file, or those of a stored grader; and what is kept of which these are."""
    from argparse import Namespace

    from assay.cli.named_grader import names_stored, stored_version
    from assay.tasks.grader_files import load_graders

    if not names_stored(given.graders):
        graders = load_graders(given.graders, alone=True)
        tell_warnings(given.graders, file_warnings(graders))
        return graders, {}
    from assay.registry.definitions import definition_of
    from assay.registry.grading import refusal
    from assay.registry.policy import Permissions
    from assay.store.database import Database

    own = Namespace(grader=given.graders, project="default", db="", trust_authors=False)
    with Database.open(store_there()) as database:
        version = stored_version(own, database)
    definition, trusted = definition_of(version), is_trusted(own)
    named = f"{version.key}@{version.number}"
    if refused := refusal(definition, Permissions(custom_code=trusted, internal=trusted), named):
        raise refused
    if given.threshold is None:
        is_scored = definition.kind == "function" and given.label is None
        given.threshold = 0.0 if is_scored else definition.threshold
    several = definition.graders
    called = (replace(several[0], name=named),) if len(several) == 1 else several
    return called, {"grader": named}


def _function(given: Namespace) -> tuple[tuple[GraderSpec, ...], dict[str, Json]] | int:
    """The function as a grader and what is kept of how it runs; or an exit status."""
    import asyncio
    from dataclasses import asdict
    from pathlib import Path

    from assay.graders.function import validate_function
    from assay.graders.functions import read_source
    from assay.graders.spec import GraderSpec
    from assay.sandbox.functions import FunctionLimits

    isolation = given.isolation or "call"
    text = read_source(given.function)
    report = asyncio.run(validate_function(text, range=given.range, isolation=isolation))
    if not report.valid:
        return _refused(report, given)
    for warning in report.warnings:
        print(f"warning: {given.function}: {warning}", file=sys.stderr)
    options: dict[str, Json] = {"file": str(Path(given.function).resolve()), "isolation": isolation}
    if given.range is not None:
        options["range"] = list[Json](given.range)
    notes: dict[str, Json] = {
        "function": given.function,
        "tier": report.tier,
        "limits": cast("dict[str, Json]", asdict(FunctionLimits())),
        "warnings": list[Json](report.warnings),
    }
    name = Path(given.function).name
    return (GraderSpec(type="function", name=name, options=options),), notes


def _refused(report: ValidationReport, given: Namespace) -> int:
    check = report.failed
    if check is not None:
        print(f"error: {given.function}: {check.name}: {check.message}", file=sys.stderr)
    if given.json:
        print(json.dumps({"cells": [], **report.to_dict()}))
    else:
        for done in report.checks:
            print(f"  {'ok' if done.passed else 'FAILED':6}  {done.name}", file=sys.stderr)
    return BAD_INPUT


def _threshold(given: Namespace, graders: tuple[GraderSpec, ...]) -> float:
    """The reward that a row needs; a function has scores only, unless they are to be compared."""
    if given.threshold is not None:
        return given.threshold
    if given.function is not None and given.label is None:
        return 0.0
    from assay.graders.spec import pass_mark

    return pass_mark(graders)


def _refuse(
    given: Namespace, options: tuple[str, ...], goes_with: str, why: str = "leave it out"
) -> None:
    for option in options:
        if getattr(given, option) is not None:
            raise InputError(f"--{option.replace('_', '-')} goes with {goes_with}", hint=why)
