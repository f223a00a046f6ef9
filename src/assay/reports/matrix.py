"""The matrix of a run: cases against agents, or one row per case where that does not fit."""

from __future__ import annotations

from assay.reports.figures import count, score, score_interval
from assay.reports.outcome import GLYPHS, Outcome
from assay.reports.page import STYLES, Cell, Page, Part
from assay.reports.plain import one_line
from assay.reports.summary import Row, Summary
from assay.reports.totals import Totals

__all__ = ["agent_of", "by_case", "marks", "matrix", "row_outcome"]

_CASE_WIDTH = 32
_NAME_WIDTH = 24
_STRIP = 10


def matrix(page: Page, summary: Summary, *, rows: int | None = 60) -> None:
    """Write the matrix, cases that need attention first."""
    if not summary.groups:
        return
    columns = list(dict.fromkeys((row.harness, row.model) for row in summary.groups))
    cases = by_case(summary)
    shown = cases[:rows]
    if len(columns) > 1 and _matrix_width(columns, shown) <= page.width:
        _crossed(page, columns, shown)
    else:
        _listed(page, [row for case in shown for row in case.values()], columns)
    if rest := len(cases) - len(shown) + summary.left_out:
        page.line((f"… and {count(rest, 'more case')}", "dim"))
    page.blank()
    if len(columns) > 1:
        _leaderboard(page, summary)


def by_case(summary: Summary) -> list[dict[tuple[str, str], Row]]:
    """The rows of each case by (harness, model), cases that need attention first."""
    cases: dict[str, dict[tuple[str, str], Row]] = {}
    for row in summary.groups:
        cases.setdefault(row.case, {})[row.harness, row.model] = row
    return sorted(cases.values(), key=lambda case: min(map(_urgency, case.values())))


def marks(row: Row) -> str:
    """What is special about a row, in signs: trials without a grade, flaky, mixed graders."""
    said = ""
    if row.totals.errors:
        said += f" {GLYPHS['error']}{row.totals.errors}"
    if row.totals.skipped:
        said += f" {GLYPHS['skipped']}{row.totals.skipped}"
    return said + (" ~" if row.flaky else "") + (" ≠" if row.mixed else "")


def row_outcome(totals: Totals) -> Outcome:
    """One outcome for some cells: that which most needs attention."""
    if totals.failed:
        return "fail"
    if totals.errors:
        return "error"
    return "pass" if totals.passed else "skipped"


def agent_of(row: Row) -> str:
    """Harness and model on one line."""
    names = [one_line(name, _NAME_WIDTH) for name in (row.harness, row.model) if name]
    return " · ".join(names) or "no agent"


def _crossed(
    page: Page, columns: list[tuple[str, str]], cases: list[dict[tuple[str, str], Row]]
) -> None:
    header = [page.text("case"), *(_column_title(page, *column) for column in columns)]
    rows: list[list[Cell]] = []
    for case in cases:
        first = next(iter(case.values()))
        cells = [_brief(page, case.get(column)) for column in columns]
        rows.append([page.text(_case(first)), *cells])
    page.table(header, rows, left=1)
    meanings = ["passed/trials and mean reward of the graded", *_meanings(cases)]
    page.line(("; ".join(meanings), "dim"))


def _listed(page: Page, rows: list[Row], columns: list[tuple[str, str]]) -> None:
    several = len(columns) > 1
    repeated = any(row.totals.total > 1 for row in rows)
    titles = ["case", *(["agent"] if several else []), "passed", "reward"]
    titles += ["95 %", "graded", "trials"] if repeated else []
    lines: list[list[Cell]] = []
    for row in rows:
        totals, state = row.totals, row_outcome(row.totals)
        cells: list[Cell] = [page.text((f"{GLYPHS[state]} {_case(row)}", STYLES[state]))]
        if several:
            cells.append(page.text(agent_of(row)))
        cells.append(page.text(f"{totals.passed}/{totals.total}{marks(row)}"))
        cells.append(page.text(score(totals.reward.mean)))
        if repeated:
            cells.append(page.text((score_interval(totals.reward), "dim")))
            cells.append(page.text(f"{totals.graded}/{totals.total}"))
            cells.append(page.text(*_strip(row)))
        lines.append(cells)
    page.table([page.text(title) for title in titles], lines, left=2 if several else 1)
    if meanings := _meanings([{("", ""): row} for row in rows]):
        page.line(("; ".join(meanings), "dim"))


def _leaderboard(page: Page, summary: Summary) -> None:
    header = [page.text(t) for t in ("agent", "reward", "95 %", "passed", "graded", "errors")]
    rows: list[list[Cell]] = []
    for row in summary.leaderboard:
        totals = row.totals
        errors = (f"{totals.errors:,}", STYLES["error"] if totals.errors else "dim")
        rows.append(
            [
                page.text(agent_of(row)),
                page.text((score(totals.reward.mean), "bold"), " ≠" if row.mixed else ""),
                page.text((score_interval(totals.reward), "dim")),
                page.text(f"{totals.passed:,}/{totals.graded:,}"),
                page.text(f"{totals.graded:,}/{totals.total:,}"),
                page.text(errors),
            ]
        )
    page.table(header, rows, left=1)
    page.blank()


def _brief(page: Page, row: Row | None) -> Cell:
    if row is None:
        return page.text(("·", "dim"))
    return page.text(*_brief_parts(row))


def _brief_parts(row: Row) -> list[Part]:
    totals, state = row.totals, row_outcome(row.totals)
    parts: list[Part] = [(f"{GLYPHS[state]} {totals.passed}/{totals.total}", STYLES[state])]
    if totals.graded:
        parts.append(f" {score(totals.reward.mean)}")
    return [*parts, (marks(row), "dim")]


def _meanings(cases: list[dict[tuple[str, str], Row]]) -> list[str]:
    """What the marks mean that do occur."""
    rows = [row for case in cases for row in case.values()]
    said: list[str] = []
    if any(row.totals.errors for row in rows):
        said.append(f"{GLYPHS['error']}n could not be graded")
    if any(row.totals.skipped for row in rows):
        said.append(f"{GLYPHS['skipped']}n skipped")
    if any(row.flaky for row in rows):
        said.append("~ flaky")
    if any(row.mixed for row in rows):
        said.append("≠ mixed graders")
    return said


def _strip(row: Row) -> list[Part]:
    parts: list[Part] = [(GLYPHS[state], STYLES[state]) for state in row.outcomes[:_STRIP]]
    return [*parts, "…"] if row.totals.total > _STRIP else parts


def _case(row: Row) -> str:
    """The case id, which starts a line and so must not be a command to a build service."""
    return one_line(row.case, _CASE_WIDTH).replace("::", ": :") or "no id"


def _column_title(page: Page, harness: str, model: str) -> Cell:
    names = [one_line(name, _NAME_WIDTH) for name in (harness, model) if name]
    return page.stacked(*names) if names else page.text("no agent")


def _matrix_width(columns: list[tuple[str, str]], cases: list[dict[tuple[str, str], Row]]) -> int:
    width = max(_cells(_case(next(iter(case.values())))) for case in cases)
    for column in columns:
        texts = [sum(map(_length, _brief_parts(case[column]))) for case in cases if column in case]
        names = [_cells(one_line(name, _NAME_WIDTH)) for name in column]
        width += 2 + max([*texts, *names])
    return width


def _length(part: Part) -> int:
    return _cells(part if isinstance(part, str) else part[0])


def _cells(text: str) -> int:
    """Columns that the text takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _urgency(row: Row) -> int:
    order: tuple[Outcome, ...] = ("fail", "error", "pass", "skipped")
    return order.index(row_outcome(row.totals))
