"""``assay grade --out DIR/``: a dataset into parts, and what the terminal shows of it."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from assay.cli.options import Outputs, positive
from assay.errors import InputError
from assay.scoring.json_safe import Json
from assay.tasks.formats import form_of

if TYPE_CHECKING:
    from assay.eval.rows.recorded import RowPlan
    from assay.models.bill import Bill
    from assay.reports.summary import Summary
    from assay.store.runs import Store

_CAUSES = 5
_NOT_WITH = ("label", "junit", "otel", "by")


def add_parts(parser: ArgumentParser) -> None:
    """Add where rows are written with their grades, and how."""
    option = parser.add_argument
    option(
        "--out",
        metavar="FILE|DIR/",
        help="write every row with its grade: to a .jsonl, .jsonl.gz or .jsonl.zst, once all are "
        "graded; or to a directory, part by part as they are graded, for datasets of any size, and "
        "store no run",
    )
    group = parser.add_argument_group("with --out DIR/").add_argument
    group("--shard-rows", type=positive, metavar="N", help="rows of a part")


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
            f"rows cannot be written as the one file {given.out}",
            hint=f"call it .jsonl, .jsonl.gz or .jsonl.zst; or {Path(given.out).stem}/, "
            "a directory of parts, which are Parquet where the data is",
        )
    if given.shard_rows:
        raise InputError("--shard-rows goes with --out DIR/", hint="with a slash at the end")
    return False


class RowParts:
    """Rows that become parts in a directory."""

    def __init__(self, given: Namespace, outputs: Outputs) -> None:
        from assay.eval.rows.directory_sink import PartDirectory

        self._out, self._outputs = given.out, outputs
        self.sink = PartDirectory(given.out, rows=given.shard_rows)

    def resuming(self, plan: RowPlan) -> str:
        """What is gone on with."""
        del plan
        every = len(self.sink.parts)
        there = every - len(self.sink.missing)
        return f"{self._out}, where {there:,} of {every:,} parts are there"

    def interrupted(self, plan: RowPlan) -> str:
        """What is kept."""
        del plan
        kept = f"{len(self.sink.done):,} of {len(self.sink.parts):,} parts are in {self._out}"
        return f"{kept}: the same command goes on with the rest"

    def conclude(self, plan: RowPlan, bill: Bill | None) -> int:
        """Tell what all parts come to."""
        del plan
        return _conclude(self.sink.summary, self._outputs, is_new=True, bill=bill)


def report_parts(given: Namespace, outputs: Outputs) -> int:
    """Tell what the parts in a directory come to; the exit status is that of the verdict.

    Raises:
        InputError: If not all of them are there, or for reports that only a run has.
    """
    from assay.eval.rows.part_reading import summary_of

    for name in ("html", "junit", "case", "all", "by"):
        if getattr(given, name):
            raise InputError(
                f"--{name} goes with a stored run, and {given.run} is a directory of parts",
                hint=f"a part is a dataset: assay grade {given.run.rstrip('/')}/parts/PART "
                "GRADER stores its rows as a run",
            )
    told = {**summary_of(Path(given.run)), "directory": given.run}
    return _conclude(told, outputs, is_new=False)


_WORK = ("directory", "parts", "graded_now", "seconds", "rows_per_second", "first_left_out")
"""What is told of parts beside their summary."""


def _conclude(
    told: Mapping[str, Json], outputs: Outputs, *, is_new: bool, bill: Bill | None = None
) -> int:
    """Write what all parts come to, and give the exit status of the verdict that is printed.

    Args:
        told: What stands in their ``summary.json``.
        outputs: What was asked for.
        is_new: Whether they were graded now.
        bill: What that was to cost.
    """
    from assay.reports.run_view import overview_of, run_row, sums_of
    from assay.reports.summary import verdict
    from assay.scoring.records import as_json
    from assay.store.records import RunRecord

    summary = _summary_of(told)
    decided = verdict(summary, fail_under=outputs.fail_under, strict=outputs.strict)
    if outputs.json:
        # No run is stored: the overview is of one that has no id.
        directory = str(told["directory"])
        config: dict[str, Json] = {"kind": "dataset", "suite": directory}
        run = RunRecord(id="", created_at="", config=config, planned=summary.totals.total)
        row = run_row(run, "finished", sums_of(summary.totals))
        written = {
            "parts": {name: told.get(name) for name in _WORK},
            **({} if bill is None else {"bill": bill.to_dict()}),
            "overview": as_json(overview_of(row, summary, decided)),
        }
        print(json.dumps(written))
        return decided.code
    _tell(summary, told, is_new=is_new)
    print(decided.line)
    return decided.code


def _summary_of(told: Mapping[str, Json]) -> Summary:
    """The summary of parts, of what their ``summary.json`` tells.

    Raises:
        KeyError, ShapeError: If it is none.
    """
    from assay.eval.rows.grades import RowTally
    from assay.reports.summary import Cause, NotGraded, Summary, cause_key
    from assay.reports.totals import Totals
    from assay.statistics.intervals import wilson
    from assay.store.windows import Ends

    tally = RowTally.from_dict(told)
    ends = Ends(
        passed=tally.passed - tally.scored,
        failed=tally.failed,
        errors=tally.errors,
        skipped=tally.skipped,
        scored=tally.scored,
    )
    totals = Totals(
        total=tally.rows,
        graded=tally.graded,
        ends=ends,
        shown=ends.shown,
        has_verdicts=ends.has_verdicts,
        coverage=tally.graded / tally.rows if tally.rows else None,
        flagged=tally.flagged,
        cases=tally.graded,
        reward=tally.mean(),
        pass_rate=wilson(tally.passed, tally.graded),
    )
    partly = NotGraded(cells=tally.partly, share=tally.share, graders=tally.skipped_graders)
    return Summary(
        totals=totals,
        malformed=cast("int", told["left_out"]),
        causes=tuple(
            Cause(times, text, cause_key(text)) for text, times in tally.commonest_causes()
        ),
        not_graded=partly if tally.partly else None,
        skipped=tally.skipped_why,
    )


def _tell(summary: Summary, told: Mapping[str, Json], *, is_new: bool) -> None:
    from assay.reports.figures import count, score
    from assay.reports.plain import one_line

    totals, reward = summary.totals, summary.totals.reward
    said = [count(totals.total, "row")]
    if totals.has_verdicts:
        said += [f"{totals.passed:,} passed", f"{totals.failed:,} failed"]
    else:  # any score passes, so that passing says nothing
        said.append(f"{totals.scored:,} scored")
    if totals.errors:
        said.append(count(totals.errors, "error"))
    others = (
        (totals.skipped, "skipped"),
        (totals.flagged, "flagged"),
        (summary.malformed, "left out"),
    )
    said += [f"{number:,} {what}" for number, what in others if number]
    print("  ".join(said))
    if reward.mean is not None:
        has_ends = reward.low is not None and reward.high is not None
        ends = f"  (95 %: {score(reward.low)} to {score(reward.high)})" if has_ends else ""
        print(f"mean reward {score(reward.mean)}{ends}")
    for cause in summary.causes[:_CAUSES]:
        print(f"  {cause.count:,} x {one_line(cause.text, 160)}")
    if (more := len(summary.causes) - _CAUSES) > 0:
        print(f"  and {count(more, 'other cause')}, in summary.json")
    if told["first_left_out"]:
        print(f"  left out, the first: {one_line(str(told['first_left_out']), 160)}")
    now, seconds = cast("int", told["graded_now"]), cast("float", told["seconds"])
    rate = f", {told['rows_per_second']:,.0f}/s" if told["rows_per_second"] else ""
    did = f"; {now:,} rows in {seconds:.1f} s{rate}" if now else "; nothing was left to do"
    parts = count(cast("int", told["parts"]), "part")
    print(f"{parts} in {Path(str(told['directory']), 'parts')}{did if is_new else ''}")


def write_rows(out: str, plan: RowPlan, run_id: str, store: Store) -> None:
    """Write the rows of a finished run, in their order, each with its cell for its ``grade``.

    The file is there whole or not at all.
    """
    from assay.eval.rows.parts import commit, packing, temporary, ungraded
    from assay.reports.run_view import whole_row
    from assay.scoring.records import as_json

    target, blocks = Path(out), (plan.work.blocks(shard) for shard in plan.terms.data.shards)
    with temporary(target) as file:
        with packing(file, form_of(out) or "jsonl") as to:
            for rows in (one.rows for some in blocks for one in some):
                cells = store.cells_of(run_id, [row.id for row, _ in rows])
                for row, _ in rows:
                    graded = as_json(whole_row(cells[row.id]))
                    to.write(json.dumps({**ungraded(row.fields), "grade": graded}).encode() + b"\n")
        commit(file, target, replace=True)
