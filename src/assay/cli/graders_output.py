"""How ``assay graders`` shows graders, reports and grades to people."""

from __future__ import annotations

import asyncio
import json
import math
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict
from typing import TYPE_CHECKING, cast

from rich.console import Console
from rich.table import Table
from rich.text import Text

from assay.cli.graders_definition import key_and_version, opened, standing_of
from assay.cli.judging import cost_so_far
from assay.cli.options import NOT_GRADED, is_trusted, tell_warnings
from assay.cli.rows import rows_given
from assay.errors import InputError
from assay.eval.batch import in_batches, run_batches
from assay.registry import Registry
from assay.registry.validation import version_warnings
from assay.reports.figures import count
from assay.reports.plain import one_line, plain
from assay.reports.progress import progress
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.scoring.records import as_json
from assay.store.catalog import GraderVersion
from assay.tasks.rows import read_rows
from assay.types.submission import Submission

if TYPE_CHECKING:
    from assay.registry import Imported
    from assay.scoring.validation import ValidationReport


_MOST_ROWS = 200


def _console() -> Console:
    return Console(highlight=False, markup=False, emoji=False, soft_wrap=False)


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def print_report(report: ValidationReport, *, what: str, file: str | None = None) -> None:
    """Every check, every warning and every sample."""
    console = _console()
    for check in report.checks:
        mark = Text("ok    ", "green") if check.passed else Text("failed", "red")
        said = f"  {check.at(file or '')}" if check.message else ""
        console.print(mark.append(f" {check.name}").append(Text(plain(said))), soft_wrap=True)
    print_warnings(report.warnings)
    if report.samples:
        console.print()
        console.print(_grades(report.samples))
    console.print(Text(f"\n{what} is {'valid' if report.valid else 'not valid'}"), soft_wrap=True)


def print_warnings(warnings: Sequence[str]) -> None:
    """What is not wrong, but worth a look."""
    console = _console()
    for warning in warnings:
        console.print(Text("warning ", "yellow").append(plain(warning)), soft_wrap=True)


def print_preview(system: str, user: str) -> None:
    """What a judge's model is sent about a sample."""
    console = _console()
    for title, text in (("system", system), ("user", user)):
        console.print(Text(f"--- {title} ---", "bold"))
        console.print(Text(plain(text)), soft_wrap=True)
    console.print()


def print_grades(
    graded: Sequence[Graded], summary: Mapping[str, Json], *, grader: str, card: str | None = None
) -> None:
    """The grade of every row, what they come to, and how far the grader agrees with people."""
    console = _console()
    console.print(_grades(graded))
    if len(graded) > _MOST_ROWS:
        more = count(len(graded) - _MOST_ROWS, "more row")
        have = "has it" if len(graded) == _MOST_ROWS + 1 else "has all of them"
        console.print(f"... {more}; --json {have}")
    mean = summary["mean"]
    said = "no score" if mean is None else f"mean {cast('float', mean):.4g}"
    coverage = (
        f"{summary['scored']} scored, {count(cast('int', summary['errors']), 'error')}, "
        f"{summary['skipped']} skipped"
    )
    if malformed := cast("int", summary.get("malformed", 0)):
        coverage += f", {count(malformed, 'malformed row')} left out"
    console.print(f"\n{grader}: {said}  ({coverage})")
    if card is not None:
        console.print(Text(card), soft_wrap=True)


def _grades(graded: Sequence[Graded]) -> Table:
    table = _table("id", "status", "score", "why")
    for one in graded[:_MOST_ROWS]:
        score = "" if one.score is None else f"{one.score:.4g}"
        why = " ".join((*(f"[{flag}]" for flag in one.flags), one.error or one.reason))
        table.add_row(Text(one_line(one.id, 60)), one.status, score, Text(one_line(why, 300)))
    return table


def print_imported(done: Sequence[Imported]) -> None:
    """What importing did, grader by grader."""
    table = _table("key", "version", "")
    for one in done:
        table.add_row(one.record.key, str(one.record.latest.number), one.change)
    _console().print(table)


_NOT_PASSED = 1
_AT_ONCE = 2_000
"""Rows that are graded together: workers are warmed once, and endpoints get whole batches."""
_JUDGES = ("binary_judge", "prebuilt_judge", "declared")
_JUDGED = (32, 2)
"""Rows that a judge is asked about together, and how many such parts at once: to show progress."""


def try_grader(given: Namespace) -> int:
    """Grade rows."""
    key, number = key_and_version(given)
    started = time.monotonic()
    with opened(given, trusted=is_trusted(given)) as registry:
        registry.get(key)  # first: a version outlives its grader
        version = registry.version(key, number)
        rows, malformed = _rows_of(given)
        items = [(item, submission) for item, submission, _ in rows]
        name = f"{version.key}@{version.number}"
        tell_warnings(name, version_warnings(version))
        console = Console(stderr=True, highlight=False)
        bar = progress(console, len(items), things="rows", note=cost_so_far)
        with redirect_stdout(sys.stderr), bar as shown:
            graded = asyncio.run(_in_parts(registry, version, items, shown.graded))
    summary = {**_summary(graded), "malformed": malformed}
    standing = standing_of(given, version)
    if given.json:
        written: list[Json] = [
            {**one.to_dict(), "file": file} for one, (_, _, file) in zip(graded, rows, strict=True)
        ]
        found: dict[str, Json] = {
            "rows": written,
            "summary": summary,
            "grader": name,
            "digest": graded[0].digest,
            "calibration": None if standing is None else as_json(standing.shown),
            **_sandbox(version),
            "seconds": round(time.monotonic() - started, 3),
        }
        print(json.dumps(found))
    else:
        card = None if standing is None else standing.line
        print_grades(graded, summary, grader=name, card=card)
    return _verdict(summary, given.fail_under)


def _rows_of(given: Namespace) -> tuple[list[tuple[str, Submission, str]], int]:
    """The rows, and how many malformed ones were left out."""
    with rows_given(given, given.data) as found:
        read = read_rows(found.path, graders=(), reading=found.reading)
        rows = [(row.id, row.submission, row.file) for row in read]
    if not rows:
        what = "no well-formed rows" if found.left_out else "no rows"
        raise InputError(f"{given.data} has {what}")
    return rows, found.left_out


async def _in_parts(
    registry: Registry,
    version: GraderVersion,
    items: Sequence[tuple[str, Submission]],
    on_done: Callable[[Graded], None],
) -> list[Graded]:
    size, at_once = _JUDGED if version.kind in _JUDGES else (_AT_ONCE, 1)
    found: dict[int, list[Graded]] = {}

    def keep(numbered: tuple[int, object], graded: list[Graded]) -> None:
        found[numbered[0]] = graded
        for one in graded:
            on_done(one)

    await run_batches(
        enumerate(in_batches(items, size)),
        lambda numbered: registry.grade_with(version, numbered[1]),
        keep,
        at_once=at_once,
    )
    return [one for _, graded in sorted(found.items()) for one in graded]


def _sandbox(version: GraderVersion) -> dict[str, Json]:
    """What isolated a function, and what a call of it might use."""
    if version.kind != "function":
        return {}
    from assay.sandbox.functions import FunctionLimits
    from assay.sandbox.functions.tiers import function_tier

    return {"tier": function_tier(), "limits": asdict(FunctionLimits())}


def _summary(graded: Sequence[Graded]) -> dict[str, Json]:
    scores = [one.score for one in graded if one.score is not None]
    return {
        "rows": len(graded),
        "scored": len(scores),
        "errors": sum(one.status == "error" for one in graded),
        "skipped": sum(one.status == "skipped" for one in graded),
        "flagged": sum(bool(one.flags) for one in graded),
        "mean": math.fsum(scores) / len(scores) if scores else None,
    }


def _verdict(summary: Mapping[str, Json], fail_under: float | None) -> int:
    mean = summary["mean"]
    if summary["errors"]:
        return NOT_GRADED
    is_under = fail_under is not None and (mean is None or cast("float", mean) < fail_under)
    return _NOT_PASSED if is_under else 0
