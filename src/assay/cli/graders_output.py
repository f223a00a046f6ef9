"""How ``assay graders`` shows graders, reports and grades to people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from assay.reports.plain import one_line, plain
from assay.scoring.graded import Graded

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
