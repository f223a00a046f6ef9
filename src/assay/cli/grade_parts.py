"""``assay grade --out DIR/``: a dataset into parts, and what the terminal shows of it."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from assay.cli.options import (
    BAD_INPUT,
    INTERRUPTED,
    Outputs,
    engine_given,
    positive,
    worker_count,
)
from assay.cli.rows import RowsGiven
from assay.errors import InputError
from assay.scoring.json_safe import Json
from assay.tasks.formats import FORMS, TABLE_FORMS, Form, form_of

if TYPE_CHECKING:
    from assay.eval.grades import Tally
    from assay.eval.recorded import RowRun
    from assay.eval.shard_rows import Shard
    from assay.eval.shards import ShardPlan
    from assay.graders.spec import GraderSpec
    from assay.reports.outcome import Ended
    from assay.store.runs import Store

__all__ = ["add_parts", "grade_into_parts", "in_parts", "report_parts", "write_rows"]

_CAUSES = 5
_OUT_ROWS = 256
_NOT_WITH = ("label", "junit", "html", "otel")


def add_parts(parser: ArgumentParser) -> None:
    """Add where rows are written with their grades, and how."""
    option = parser.add_argument
    option(
        "--out",
        metavar="FILE|DIR/",
        help="write every row with its grade: to a file, once all are graded, as its name says "
        "(.jsonl, .jsonl.gz, .jsonl.zst, .parquet, .arrow); or to a directory, part by part as "
        "they are graded, for datasets of any size, and store no run",
    )
    group = parser.add_argument_group("with --out DIR/").add_argument
    group("--shard-rows", type=positive, metavar="N", help="rows of a part")
    group(
        "--parts",
        choices=FORMS,
        help="the format of parts; by default Parquet for tables of columns, else JSONL",
    )
    group(
        "--retry-errors",
        action="store_true",
        help="also grade again the rows that could not be graded before",
    )


def in_parts(given: Namespace) -> bool:
    """Whether ``--out`` is a directory.

    Raises:
        InputError: For options that go with one only, or with none.
    """
    is_directory = bool(given.out) and (given.out.endswith("/") or Path(given.out).is_dir())
    if is_directory:
        for name in _NOT_WITH:
            if getattr(given, name) is not None:
                raise InputError(
                    f"--{name} goes with a stored run, and --out {given.out} stores none",
                    hint="leave it out, or write to a file",
                )
        return True
    if given.out and form_of(given.out) is None:
        raise InputError(
            f"rows cannot be written as {given.out}",
            hint=f"call it .jsonl, .jsonl.gz, .jsonl.zst, .parquet or .arrow; or {given.out}/, "
            "a directory of parts",
        )
    for name in ("shard_rows", "parts", "retry_errors"):
        if getattr(given, name):
            raise InputError(
                f"--{name.replace('_', '-')} goes with --out DIR/", hint="with a slash at the end"
            )
    return False


def grade_into_parts(
    given: Namespace,
    rows: RowsGiven,
    graders: Sequence[GraderSpec],
    *,
    threshold: float,
    outputs: Outputs,
) -> int:
    """Grade a dataset into a directory; the exit status is that of what all parts come to.

    Raises:
        InputError: For rows, graders or a directory that will not do.
        StoreError: If parts cannot be written.
    """
    from assay.eval.shard_grading import write_summary
    from assay.eval.shards import plan_shards

    with plan_shards(
        rows.path,
        graders,
        given.out,
        form=cast("Form | None", given.parts),
        reading=rows.reading,
        threshold=threshold,
        rows=given.shard_rows,
        retry_errors=given.retry_errors,
    ) as plan:
        there = len(plan.shards) - len(plan.missing)
        if there:
            said = f"{there:,} of {len(plan.shards):,} parts are there"
            print(f"resuming {given.out}, where {said}", file=sys.stderr)
        begun = time.monotonic()
        if not _carry_out(given, plan, threshold):
            said = f"{len(plan.done):,} of {len(plan.shards):,} parts are in {given.out}"
            again = "the same command goes on with the rest"
            print(f"interrupted; {said}: {again}", file=sys.stderr)
            return INTERRUPTED
        summary = write_summary(plan, time.monotonic() - begun)
    now, seconds = int(cast("int", summary["graded_now"])), cast("float", summary["seconds"])
    rate = f", {summary['rows_per_second']:,.0f}/s" if now and summary["rows_per_second"] else ""
    did = f"; {now:,} rows in {seconds:.1f} s{rate}" if now else "; nothing was left to do"
    return _conclude(summary, outputs, did)


def report_parts(given: Namespace, outputs: Outputs) -> int:
    """Tell what the parts in a directory come to; the exit status is that of the verdict.

    Raises:
        InputError: If not all of them are there, or for reports that only a run has.
    """
    from assay.eval.part_directory import summary_of

    for name in ("html", "junit", "case", "full", "all"):
        if getattr(given, name):
            raise InputError(
                f"--{name} goes with a stored run, and {given.run} is a directory of parts",
                hint=f"a part is a dataset: assay grade {given.run.rstrip('/')}/parts/PART "
                "--graders FILE stores its rows as a run",
            )
    return _conclude({**summary_of(Path(given.run)), "directory": given.run}, outputs, "")


def _conclude(summary: dict[str, Json], outputs: Outputs, did: str) -> int:
    code, line = _verdict(summary, outputs)
    if outputs.json:
        print(json.dumps({**summary, "verdict": line, "exit": code}))
    else:
        _tell(summary, did)
        print(line)
    return code


def write_rows(out: str, rows: RowRun, store: Store) -> None:
    """Write the rows of a finished run, in their order, each with its grade; whole or not at all.

    As JSON a row has the whole cell for its ``grade``; as a table it has what a part has.
    """
    from assay.eval.batch import in_batches
    from assay.eval.grades import Grade, score_names
    from assay.eval.parts import PartWriter, column_kinds, columns_of, commit, temporary, ungraded
    from assay.reports.opened import cell_dict

    form, names = cast("Form", form_of(out)), score_names(spec.label for spec in rows.graders)
    known: dict[str, str] = {}
    if form in TABLE_FORMS:
        for row in rows.data.rows():
            column_kinds(row.fields, known)
    target = Path(out)
    with temporary(target) as file:
        with PartWriter(file, form, names, columns_of(known)) as to:
            for batch in in_batches(rows.data.rows(), _OUT_ROWS):
                cells = store.cells_of(rows.run.id, [row.id for row in batch])
                found = [cells[row.id] for row in batch]
                if form in TABLE_FORMS:
                    grades = [Grade.of_cell(cell, graders=len(names)) for cell in found]
                    to.fields([row.fields for row in batch], grades)
                else:
                    to.objects(
                        {**ungraded(row.fields), "grade": cell_dict(cell)}
                        for row, cell in zip(batch, found, strict=True)
                    )
        commit(file, target, replace=True)


def _carry_out(given: Namespace, plan: ShardPlan, threshold: float) -> bool:
    """Grade what is missing; whether it came to its end."""
    from rich.console import Console

    from assay.cli.judging import cost_so_far
    from assay.eval.shard_grading import grade_shards
    from assay.reports.progress import progress

    before = sum(tally.rows for tally in plan.done.values())
    console = Console(stderr=True, highlight=False)
    shown = progress(console, plan.rows, before=before, things="rows", note=cost_so_far)

    def on_shard(_: Shard, tally: Tally) -> None:
        ended: dict[Ended, int] = {
            "scored" if threshold <= 0.0 else "pass": tally.passed,
            "fail": tally.failed,
            "error": tally.errors,
            "skipped": tally.skipped,
        }
        shown.add(Counter(ended).elements())

    workers = worker_count(given.workers, plan.work.graders)
    try:
        # What a grader of one's own prints must not end up inside the JSON.
        with redirect_stdout(sys.stderr), engine_given(given) as cluster, shown:
            if cluster is None:
                work = grade_shards(plan, on_shard=on_shard, workers=workers)
            else:
                from assay.eval.sent_shards import grade_shards_on

                work = grade_shards_on(cluster, plan, on_shard=on_shard, workers=given.workers or 0)
            asyncio.run(work)
    except KeyboardInterrupt:
        return False
    return True


def _tell(summary: dict[str, Json], did: str) -> None:
    from assay.reports.figures import count, score
    from assay.reports.plain import one_line

    figures = cast("dict[str, float]", summary)
    mean = cast("dict[str, float | None]", summary["mean"])
    said = [count(int(figures["rows"]), "row")]
    if figures["scored"]:  # where any score passes, passing says nothing
        said.append(f"{int(figures['scored']):,} scored")
    else:
        said += [f"{int(figures[name]):,} {name}" for name in ("passed", "failed")]
    if figures["errors"]:
        said.append(count(int(figures["errors"]), "error"))
    said += [
        f"{int(figures[name]):,} {name.replace('_', ' ')}"
        for name in ("skipped", "flagged", "left_out")
        if figures[name]
    ]
    print("  ".join(said))
    if mean["mean"] is not None:
        low, high = mean["low"], mean["high"]
        has_ends = low is not None and high is not None
        ends = f"  (95 %: {score(low)} to {score(high)})" if has_ends else ""
        print(f"mean reward {score(mean['mean'])}{ends}")
    causes = cast("list[dict[str, Json]]", summary["causes"])
    for cause in causes[:_CAUSES]:
        print(f"  {cause['count']:,} x {one_line(str(cause['text']), 160)}")
    if len(causes) > _CAUSES:
        print(f"  and {count(len(causes) - _CAUSES, 'other cause')}, in summary.json")
    if summary["first_left_out"]:
        print(f"  left out, the first: {one_line(str(summary['first_left_out']), 160)}")
    parts = count(int(figures["parts"]), "part")
    print(f"{parts} in {Path(str(summary['directory']), 'parts')}{did}")


def _verdict(summary: dict[str, Json], outputs: Outputs) -> tuple[int, str]:
    """As it is decided of a run."""
    from assay.reports.summary import NotGraded, Summary, verdict
    from assay.reports.totals import Totals
    from assay.scoring.intervals import Interval

    figures, partly = cast("dict[str, Any]", summary), cast("Any", summary["not_graded"])
    counts = ("graded", "passed", "failed", "scored", "errors", "skipped", "flagged")
    totals = Totals(
        total=figures["graded"] + figures["errors"] + figures["skipped"],
        reward=Interval(**figures["mean"]),
        **{name: figures[name] for name in counts},
    )
    if not totals.total:
        return BAD_INPUT, "NO VERDICT: every row is malformed"
    whole = Summary(
        totals=totals,
        malformed=figures["left_out"],
        not_graded=NotGraded(**partly) if partly else None,
    )
    decided = verdict(whole, fail_under=outputs.fail_under, strict=outputs.strict)
    return decided.code, decided.line
