"""How ``assay graders`` shows graders, reports and grades to people."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from assay.reports.page import TextPage, page_on
from assay.reports.plain import one_line, plain
from assay.scoring.graded import Graded

if TYPE_CHECKING:
    from assay.registry import Imported
    from assay.scoring.validation import ValidationReport


_MOST_ROWS = 200


def print_report(report: ValidationReport, *, what: str, file: str | None = None) -> None:
    """Every check, every warning and every sample."""
    page = page_on(sys.stdout)
    for check in report.checks:
        mark = ("ok    ", "green") if check.passed else ("failed", "red")
        said = f"  {check.at(file or '')}" if check.message else ""
        page.line(mark, f" {check.name}{said}", hanging=7)
    print_warnings(report.warnings)
    if report.samples:
        page.blank()
        _grades(page, report.samples)
    page.blank()
    page.line(f"{what} is {'valid' if report.valid else 'not valid'}")


def print_warnings(warnings: Sequence[str]) -> None:
    """What is not wrong, but worth a look: a line each, for who looks for one."""
    for warning in warnings:
        print(f"warning {plain(warning)}")


def print_preview(system: str, user: str) -> None:
    """What a judge's model is sent about a sample, as it is."""
    for title, text in (("system", system), ("user", user)):
        print(f"--- {title} ---\n{plain(text)}")
    print()


def _grades(page: TextPage, graded: Sequence[Graded]) -> None:
    rows: list[list[str]] = []
    for one in graded[:_MOST_ROWS]:
        score = "" if one.score is None else f"{one.score:.4g}"
        why = " ".join((*(f"[{flag}]" for flag in one.flags), one.error or one.reason))
        rows.append([one_line(one.id, 60), one.status, score, one_line(why, 300)])
    page.table(["id", "status", "score", "why"], rows, left=4)


def print_imported(done: Sequence[Imported]) -> None:
    """What importing did, grader by grader."""
    rows = [[one.record.key, str(one.record.latest.number), one.change] for one in done]
    page_on(sys.stdout).table(["key", "version", ""], rows, left=1)
