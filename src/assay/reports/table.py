"""A run on a terminal: matrix, failing cells with their reasons, numbers, verdict, what next."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import TYPE_CHECKING

from assay.reports.evidence import evidence, left_out
from assay.reports.explain import heading, nodes, sentence, walk
from assay.reports.figures import TIMES, count, duration, score
from assay.reports.matrix import matrix
from assay.reports.outcome import GLYPHS, Outcome, node_outcome, outcome
from assay.reports.page import STYLES, Page
from assay.reports.plain import first_lines, one_line
from assay.reports.review import Review
from assay.reports.statistics import statistics
from assay.reports.summary import Summary, Verdict, verdict
from assay.scoring.results import SubScore
from assay.store.records import CellRecord, RunRecord

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["render"]

_LINES = 6
_MAX_CAUSES = 5
_MAX_PARTS = 6
_MAX_CHANGES = 12
_MAX_ROWS = 60
_UNOPENED: tuple[Outcome, ...] = ("pass", "skipped")


def render(
    console: Console | Page,
    review: Review,
    *,
    fail_under: float | None = None,
    shown: int | None = 5,
) -> Verdict:
    """Write the report of a run.

    Args:
        console: Where to; colours and width are its own business. A page that was begun goes on.
        review: The run (see `assay.reports.review.review`).
        fail_under: As for `assay.reports.summary.verdict`.
        shown: Failing cells that are opened; the matrix then has at most 60 cases. None for all
            that the review kept, and all cases.

    Returns:
        The verdict that was printed; its ``code`` is the exit code.

    Raises:
        InputError: For a ``fail_under`` outside of [0, 1].
    """
    decided = verdict(review.summary, fail_under=fail_under)
    page = Page.on(console)
    _header(page, review.run, review.summary)
    matrix(page, review.summary, rows=None if shown is None else _MAX_ROWS)
    _failures(page, review, shown)
    _errors(page, review)
    _flagged(page, review, shown)
    _changes(page, review)
    for label, parts in statistics(review.summary):
        page.line((f"{label:<11}", "dim"), *parts, hanging=11)
    page.blank()
    state: Outcome = "pass" if decided.code == 0 else "fail" if decided.code == 1 else "error"
    page.line((f"{GLYPHS[state]} {one_line(decided.line, 400)}", STYLES[state]), hanging=2)
    _next_steps(page, review)
    return decided


def _header(page: Page, run: RunRecord, summary: Summary) -> None:
    label = f"  {one_line(run.label, 60)}" if run.label else ""
    extent = (
        count(len({row.case for row in summary.groups}) + summary.left_out, "case"),
        count(len(summary.leaderboard), "agent"),
        count(summary.totals.total, "cell"),
        duration(summary.totals.seconds),
    )
    page.line(
        (f"Run {one_line(run.id, 60)}", "bold"),
        label,
        (f"  {' · '.join(extent)}", "dim"),
        hanging=2,
    )
    page.blank()


def _failures(page: Page, review: Review, shown: int | None) -> None:
    failed = review.of("fail")
    if not failed:
        return
    page.line((f"Failed: {review.summary.totals.failed:,}", "bold"))
    opened = failed[:shown]
    for cell in opened:
        page.blank()
        _cell(page, cell)
        _standings(page, review, cell)
    if rest := review.summary.totals.failed - len(opened):
        page.blank()
        page.line(f"… and {rest:,} more: assay report {_quoted(review.run.id)} --all")
    page.blank()


def _cell(page: Page, cell: CellRecord) -> None:
    state = outcome(cell)
    repeat = f" · trial {cell.trial}" if cell.trial != 1 else ""
    agent = " · ".join(one_line(name, 40) for name in (cell.harness, cell.model) if name)
    page.line(
        (f"{GLYPHS[state]} {one_line(cell.case, 60)}", STYLES[state]),
        (f"  {agent}{repeat}" + (f"  {one_line(cell.file, 60)}" if cell.file else ""), "dim"),
        hanging=2,
    )
    page.line(sentence(cell), indent=2, hanging=2)
    if cell.content and not cell.content.startswith("gate "):  # the sentence has said that
        page.quote([one_line(cell.content, 300)], indent=2)
    for flag in cell.flags[:_MAX_PARTS]:
        page.line((f"flagged: {one_line(flag, 200)}", "yellow"), indent=2, hanging=2)
    for line in left_out(cell)[:_MAX_PARTS]:
        page.line((f"not graded: {line}", "dim"), indent=2, hanging=2)
    wrong = [(depth, node) for depth, node in walk(nodes(cell)) if _worth_opening(node)]
    for depth, node in wrong[:_MAX_PARTS]:
        _node(page, node, indent=2 + 2 * depth)
    if len(wrong) > _MAX_PARTS:
        page.line(f"… and {len(wrong) - _MAX_PARTS} more parts", indent=2)
    if cell.answer:
        page.line(("answer", "dim"), indent=2)
        page.quote(first_lines(cell.answer, 3, width=240), indent=4)


def _standings(page: Page, review: Review, cell: CellRecord) -> None:
    """How far the cell's graders agree with people, where that was measured."""
    for each in review.shelf.of_cell(cell)[:_MAX_PARTS] if review.shelf else ():
        said = f"{one_line(each.grader, 60)}: {each.line}"
        page.line((said, "yellow" if each.is_stale else "dim"), indent=2, hanging=2)


def _worth_opening(node: SubScore) -> bool:
    return node_outcome(node) in ("fail", "error")


def _node(page: Page, node: SubScore, *, indent: int) -> None:
    page.line((heading(node), STYLES[node_outcome(node)]), indent=indent, hanging=2)
    for fact in evidence(node, lines=_LINES, width=240)[:_MAX_PARTS]:
        if len(fact.lines) == 1 and len(fact.lines[0]) <= 60:
            page.line((f"{fact.label}: ", "dim"), fact.lines[0], indent=indent + 2, hanging=2)
        else:
            page.line((fact.label, "dim"), indent=indent + 2)
            page.quote(fact.lines, indent=indent + 4)


def _flagged(page: Page, review: Review, shown: int | None) -> None:
    """Cells that are flagged although they passed, or that are held for it."""
    cells = [cell for state in _UNOPENED for cell in review.of(state) if cell.flags]
    if not cells:
        return
    page.line((f"Flagged, and not failed: {len(cells):,}", "bold"))
    for cell in cells[:shown]:
        state = outcome(cell)
        agent = " · ".join(one_line(name, 40) for name in (cell.harness, cell.model) if name)
        page.line(
            (f"{GLYPHS[state]} {one_line(cell.case, 60)}", STYLES[state]), (f"  {agent}", "dim")
        )
        if cell.content:
            page.quote([one_line(cell.content, 300)], indent=2)
        for flag in cell.flags[:_MAX_PARTS]:
            page.line((one_line(flag, 240), "yellow"), indent=2, hanging=2)
    if shown is not None and len(cells) > shown:
        page.line(f"… and {len(cells) - shown:,} more: assay report {_quoted(review.run.id)} --all")
    page.blank()


def _errors(page: Page, review: Review) -> None:
    causes = review.summary.causes
    if not causes:
        return
    page.line((f"Could not be graded: {review.summary.totals.errors:,}", "bold"))
    examples = Counter(one_line(cell.case, 40) for cell in review.of("error"))
    for cause in causes[:_MAX_CAUSES]:
        page.line((f"! {cause.count:,}{TIMES} ", STYLES["error"]), cause.text, indent=0, hanging=2)
    if len(causes) > _MAX_CAUSES:
        page.line(f"… and {len(causes) - _MAX_CAUSES} more causes")
    page.line(("in " + ", ".join(list(examples)[:4]) + (" …" if len(examples) > 4 else ""), "dim"))
    page.blank()


def _changes(page: Page, review: Review) -> None:
    """What grading again changed."""
    if not review.changes:
        return
    changed = [change for change in review.changes if change.differs]
    page.line(
        (f"Graded again: {len(review.changes):,}", "bold"), (f"  {len(changed):,} changed", "dim")
    )
    for change in changed[:_MAX_CHANGES]:
        old, new = change.before, change.after
        agent = " · ".join(one_line(name, 40) for name in (new.harness, new.model) if name)
        page.line(
            f"{_result(old)} → {_result(new)}  {one_line(new.case, 60)}",
            (f"  {agent}", "dim"),
            hanging=2,
        )
        for reason in change.reasons[:_MAX_PARTS]:
            page.line((one_line(reason, 300), "dim"), indent=2, hanging=2)
    if len(changed) > _MAX_CHANGES:
        page.line(f"… and {len(changed) - _MAX_CHANGES:,} more")
    page.blank()


def _result(cell: CellRecord) -> str:
    return score(cell.reward) if cell.reward is not None else cell.status


def _next_steps(page: Page, review: Review) -> None:
    run, totals = _quoted(review.run.id), review.summary.totals
    steps: list[tuple[str, str]] = []
    resumable = review.run.config.get("kind", "matrix") == "matrix"
    if resumable and (review.summary.missing or totals.errors):
        steps.append((f"assay run --resume {run}", "finish, and retry errors"))
    if resumable and review.summary.mixed:
        steps.append((f"assay regrade {run}", "grade all cells alike"))
    if any(flag.startswith("audit: ") for cell in review.cells for flag in cell.flags):
        steps.append((f"assay review {run}", "decide about what was flagged or held"))
    if totals.total:
        steps.append((f"assay report {run} --html report.html", "every score, opened"))
    for number, (command, purpose) in enumerate(steps):
        page.line(("Next  " if number == 0 else "      ", "dim"), command, (f"  {purpose}", "dim"))


def _quoted(run_id: str) -> str:
    return shlex.quote(one_line(run_id, 80))
