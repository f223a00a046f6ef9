"""``assay grade``: recorded answers through graders, or through one function in the sandbox."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

from assay.cli.exporting import add_export, exporting, tell_rows
from assay.cli.grade_parts import RowParts, add_parts, in_parts, write_rows
from assay.cli.judging import add_judging, billed, cost_so_far, say_bill
from assay.cli.named_grader import in_order
from assay.cli.options import (
    EXITS,
    INTERRUPTED,
    Outputs,
    add_db,
    add_engine,
    add_outputs,
    add_trust_authors,
    add_workers,
    check_targets,
    engine_given,
    explain,
    file_warnings,
    is_trusted,
    named_store,
    share,
    store_made,
    store_there,
    tell_warnings,
    worker_count,
)
from assay.cli.rows import ROWS, RowsGiven, add_reading, require_rows, rows_given
from assay.errors import InputError, StoreError
from assay.scoring.json_safe import Json

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections import Counter
    from collections.abc import Generator, Sequence

    from assay.eval.rows.recorded import RowPlan
    from assay.eval.span_export import SpanExport
    from assay.graders.spec import GraderSpec
    from assay.models.bill import Bill
    from assay.scoring.validation import ValidationReport
    from assay.shown import Ended
    from assay.store.records import CellColumns
    from assay.store.runs import Store

_EXAMPLES = """\
  assay grade answers.jsonl graders.yaml
  assay grade answers.jsonl graders.yaml --label correct --json
  assay grade answers.jsonl grade.py
  assay grade answers.jsonl exact@3
  assay grade answers.csv.gz graders.yaml --map answer=response,expected=target
  assay grade 'data/train-*.parquet' graders.yaml --out graded/
  assay grade logs/*.eval graders.yaml
  assay grade traces/ graders.yaml --on-bad-row skip
  assay grade answers.jsonl graders.yaml --engine ray"""
_MORE = f"""\
{ROWS}
A row has `answer` or `messages`, and may have `id`, `question`, `expected` and `metadata`. With
--label the grades are compared with what people said: confusion, accuracy, kappa.
DATA may also be recordings of agents: files, or directories of them. Each run in them is a row,
with its trace; the content tells the format, and docs/traces.md lists the formats.
GRADER is a file of graders; FILE.py, whose `async def grade(thread: StringThread) -> float` gives
scores in [0, 1]; or KEY[@N] of a stored one. Of a function any score passes without --threshold; a
row may have `completion` and `metadata` beside its `messages`. A file of graders says more of it:
[{{type: function, file: grade.py, range: [-1, 1], isolation: batch}}].
The results are stored as a run. After an interruption, the same command resumes it.

{EXITS}; rows that --on-bad-row skip leaves out
are reported, and counted in the verdict; they do not change the status, unless no row is left: 2
"""


def add(parser: ArgumentParser) -> None:
    """Say what ``assay grade`` takes."""
    explain(parser, _MORE, _EXAMPLES)
    option = parser.add_argument
    option(
        "data",
        metavar="DATA",
        nargs="+",
        help="rows of recorded answers, or recordings, of these several; - for stdin",
    )
    option("grader", metavar="GRADER", help="graders.yaml, FILE.py, or KEY[@N] of a stored one")
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
    add_db(parser, "of a stored grader; `default` by default")
    add_trust_authors(parser)


def run(given: Namespace) -> int:
    """Grade a dataset.

    Raises:
        InputError: For a malformed dataset, grader file or function.
    """
    from assay.cli.named_grader import names_stored

    outputs = Outputs.of(given)
    given.grader, given.data[0] = in_order(given.grader, given.data[0])
    if given.grader.endswith(".eval"):
        raise InputError(
            f"{given.grader} is a log of Inspect, and no file of graders",
            hint="name one after the logs: assay grade logs/*.eval graders.yaml",
        )
    function = given.grader if given.grader.endswith(".py") else None
    out = None if (is_parted := in_parts(given)) else given.out
    check_targets((out, outputs.junit), inputs=(*given.data, given.grader))
    for place in given.data:
        require_rows(place)
    noted: dict[str, Json] = {}
    if given.project != "default" and not (function is None and names_stored(given.grader)):
        raise InputError(f"--project is of stored graders, and {given.grader} is a file")
    if function is None:
        graders, noted = _declared(given)
    else:
        graders = (_function(function),)
    with rows_given(given, *given.data, may_record=True) as rows, ExitStack() as opened:
        way = (
            RowParts(given, outputs) if is_parted else opened.enter_context(_stored(given, outputs))
        )
        return _grade(given, rows, graders, noted, way)


def _grade(
    given: Namespace,
    rows: RowsGiven,
    graders: tuple[GraderSpec, ...],
    noted: dict[str, Json],
    way: RowParts | _Stored,
) -> int:
    from assay.eval.rows.recorded import plan_rows

    if given.by:
        _require_by(given.by, rows)
    if any(spec.options.get("images") is True for spec in graders):
        _look_for_pictures(given.grader, rows)
    with plan_rows(
        rows.path,
        graders,
        way.sink,
        reading=rows.reading,
        label=given.label,
        threshold=_threshold(given, graders),
        left_out=(rows.left_out, rows.first_left_out),
        notes=partial(_valid_function, given) if given.grader.endswith(".py") else lambda: noted,
    ) as plan:
        if way.sink.before:
            print(f"resuming {way.resuming(plan)}", file=sys.stderr)
        with billed(plan.rows - way.sink.before, "rows", graders) as bill:
            if not _carry_out(given, plan, bill):
                print(f"interrupted; {way.interrupted(plan)}", file=sys.stderr)
                return INTERRUPTED
        return way.conclude(plan, bill)


def _told_later(error: InputError) -> None:
    """A row that cannot be read is told, or counted, where rows are planned."""


def _require_by(field: str, rows: RowsGiven) -> None:
    """Refuse a field that no row has: most often the first row has it, and is all that is read."""
    from assay.reports.breakdown import require_field
    from assay.tasks.rows import read_rows

    reading = rows.reading
    if reading.on_bad_row is not None:
        reading = replace(reading, on_bad_row=_told_later)
    read = read_rows(rows.path, reading=reading)
    require_field(field, (row.submission.metadata for row in read))


def _look_for_pictures(graders: str, rows: RowsGiven) -> None:
    """Warn where a judge would see no picture, as the rows have theirs in another field."""
    from assay.tasks.rows import read_rows

    reading = replace(rows.reading, on_bad_row=_told_later)
    row = next(iter(read_rows(rows.path, reading=reading)), None)
    if row is None or (row.submission.thread is not None and row.submission.thread.images()):
        return
    for name, value in row.submission.metadata.items():
        if _is_picture(value[0] if isinstance(value, list) and value else value):
            said = f"a judge looks at pictures, and the first row has none but in {name!r:.60}"
            tell_warnings(graders, [f"{said} (--map images={name:.60})"])
            return


def _is_picture(value: Json) -> bool:
    if isinstance(value, dict):
        value = value.get("bytes") or value.get("path")
    if not isinstance(value, str):
        return False
    return value.startswith("data:image/") or value.lower().endswith(
        (".png", ".jpg", ".jpeg", ".webp")
    )


def _carry_out(given: Namespace, plan: RowPlan, bill: Bill | None) -> bool:
    """Grade what is to be graded; whether it came to its end."""
    import asyncio
    from contextlib import redirect_stdout

    from assay.eval.rows.recorded import grade_rows
    from assay.reports.page import page_on
    from assay.reports.progress import Progress

    shown = Progress(
        page_on(sys.stderr),
        plan.rows,
        before=plan.sink.before,
        things="rows",
        note=cost_so_far,
    )

    def on_ended(ended: Counter[Ended]) -> None:
        shown.add(ended.elements())

    try:
        if bill is not None:
            from assay.eval.foretell import foretell_rows

            asyncio.run(foretell_rows(bill, plan))
            say_bill(bill.line)
        # What a grader of one's own prints must not end up inside the JSON.
        with redirect_stdout(sys.stderr), engine_given(given) as cluster, shown:
            here = worker_count(given.workers, plan.work.graders)
            workers = here if cluster is None else given.workers or 0
            asyncio.run(grade_rows(plan, on_ended=on_ended, workers=workers, cluster=cluster))
    except KeyboardInterrupt:
        return False
    return True


class _Stored:
    """Rows that become the cells of a run."""

    def __init__(
        self, given: Namespace, outputs: Outputs, store: Store, export: SpanExport | None
    ) -> None:
        from assay.eval.rows.store_sink import RowStore

        def on_rows(graded: Sequence[CellColumns]) -> None:
            if export is not None:
                tell_rows(export, store, self.sink.run, graded)

        self._given, self._outputs, self._store = given, outputs, store
        self.sink = RowStore(store, on_rows=on_rows)

    def resuming(self, plan: RowPlan) -> str:
        """What is gone on with."""
        return f"run {self.sink.run.id}, which has {self.sink.before:,} of {plan.rows:,} rows"

    def interrupted(self, plan: RowPlan) -> str:
        """What is kept."""
        run = self.sink.run.id
        if self.sink.forget_if_empty():  # it would be the latest run
            return "no row was graded"
        kept = f"{self._store.cell_count(run):,} of {plan.rows:,} rows are kept in run {run}"
        return f"{kept}: the same command goes on after them"

    def conclude(self, plan: RowPlan, bill: Bill | None) -> int:
        """Write what was asked for; the exit status of the verdict."""
        from assay.cli.report import conclude

        run = self.sink.run.id
        if self._given.out:
            try:
                write_rows(self._given.out, plan, run, self._store)
            except StoreError as error:
                kept = f"every grade is kept: assay runs export {run} --out DIR{named_store()}"
                raise StoreError(error.message, hint=kept) from error
        return conclude(self._store, run, self._outputs, bill=bill)


@contextmanager
def _stored(given: Namespace, outputs: Outputs) -> Generator[_Stored]:
    from assay.store.runs import Store

    with exporting(given) as export, Store.open(store_made()) as store:
        yield _Stored(given, outputs, store, export)


def _declared(given: Namespace) -> tuple[tuple[GraderSpec, ...], dict[str, Json]]:
    """The graders of a file, or those of a stored grader; and what is kept of which these are."""
    from assay.cli.named_grader import names_stored, stored_version
    from assay.tasks.grader_files import load_graders

    if not names_stored(given.grader):
        graders = load_graders(given.grader, alone=True)
        tell_warnings(given.grader, file_warnings(graders))
        return graders, {}
    from assay.registry.definitions import definition_of
    from assay.registry.grading import refusal
    from assay.registry.policy import Permissions
    from assay.store.database import Database

    with Database.open(store_there()) as database:
        version = stored_version(given, database)
    definition, trusted = definition_of(version), is_trusted(given)
    named = f"{version.key}@{version.number}"
    if refused := refusal(definition, Permissions(custom_code=trusted, internal=trusted), named):
        raise refused
    if given.threshold is None:
        is_scored = definition.kind == "function" and given.label is None
        given.threshold = 0.0 if is_scored else definition.threshold
    several = definition.graders
    called = (replace(several[0], name=named),) if len(several) == 1 else several
    return called, {"grader": named}


def _function(file: str) -> GraderSpec:
    """The function as a grader."""
    from pathlib import Path

    from assay.graders.spec import GraderSpec

    options: dict[str, Json] = {"file": str(Path(file).resolve()), "isolation": "call"}
    return GraderSpec(type="function", name=Path(file).name, options=options)


def _valid_function(given: Namespace) -> dict[str, Json]:
    """What is kept of how the function runs.

    Raises:
        InputError: If it cannot: its checks are told.
    """
    import asyncio
    from dataclasses import asdict

    from assay.graders.function import validate_function
    from assay.graders.functions import read_source
    from assay.sandbox.functions import FunctionLimits
    from assay.shown import one_line

    report = asyncio.run(validate_function(read_source(given.grader)))
    if not report.valid:
        raise _invalid(report, given)
    for warning in report.warnings:
        print(f"warning: {given.grader}: {one_line(warning, 1_000)}", file=sys.stderr)
    return {
        "function": given.grader,
        "tier": report.tier,
        "limits": cast("dict[str, Json]", asdict(FunctionLimits())),
        "warnings": list[Json](report.warnings),
    }


def _invalid(report: ValidationReport, given: Namespace) -> InputError:
    if given.json:
        print(json.dumps({"cells": [], **report.to_dict()}))
    else:
        for done in report.checks:
            print(f"  {'ok' if done.passed else 'FAILED':6}  {done.name}", file=sys.stderr)
    check = report.failed
    why = "it is not valid" if check is None else f"{check.name}: {check.message}"
    return InputError(f"{given.grader}: {why}")


def _threshold(given: Namespace, graders: tuple[GraderSpec, ...]) -> float:
    """The reward that a row needs; a function has scores only, unless they are to be compared."""
    if given.threshold is not None:
        return given.threshold
    if given.grader.endswith(".py") and given.label is None:
        return 0.0
    from assay.graders.spec import pass_mark

    return pass_mark(graders)
