"""A run on a terminal: matrix, failing cells with their reasons, numbers, verdict, what next."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator
from typing import TypeAlias

from assay.frozen import frozen
from assay.reports.explain import evidence, heading, left_out, sentence, walk
from assay.reports.figures import DASH, TIMES, count, duration, score, score_interval
from assay.reports.opened import Opened
from assay.reports.outcome import GLYPHS, WORDS, Ended, Outcome, counted, ended, node_outcome
from assay.reports.page import STYLES, Cell, Part, TextPage, columns_of
from assay.reports.plain import first_lines, natural, one_line
from assay.reports.review import Review
from assay.reports.statistics import statistics
from assay.reports.summary import AgentRow, RunVerdict, Summary, verdict
from assay.reports.totals import Totals
from assay.scoring.results import SubScore
from assay.store.records import CellRecord, RunRecord
from assay.version import __version__

_LINES = 6
_MAX_CAUSES = 5
_MAX_PARTS = 6
_MAX_CHANGES = 12
_MAX_STEPS = 400
_MAX_ROWS = 20
_FIRST_ROWS = 10
"""Of more cases than fit; who has hundreds looks at numbers, and at some that failed."""
_MAX_CROSSED = 60
_Cases: TypeAlias = list[dict[tuple[str, str], AgentRow]]
_UNOPENED: tuple[Outcome, ...] = ("pass", "skipped")
_URGENT: tuple[Outcome, ...] = ("fail", "error", "pass", "skipped")


def render(
    page: TextPage,
    review: Review,
    *,
    fail_under: float | None = None,
    strict: bool = False,
    shown: int | None = 5,
) -> RunVerdict:
    """Write the report of a run.

    Args:
        page: Where to; one that was begun goes on.
        review: The run (see `assay.reports.review.review`).
        fail_under: As for `assay.reports.summary.verdict`.
        strict: Likewise.
        shown: Failing cells that are opened; the matrix then has at most 20 cases (the first 10
            of more), or 60 of several agents. None for all that the review kept, and all cases.

    Returns:
        The verdict that was printed; its ``code`` is the exit code.
    """
    decided = verdict(review.summary, fail_under=fail_under, strict=strict)
    _header(page, review.run, review.summary)
    hint = f": assay report {_quoted(review.run.id)} --all{review.where}"
    matrix(page, review.summary, whole=shown is None, hint=hint)
    _failures(page, review, shown)
    _errors(page, review)
    _flagged(page, review, shown)
    _changes(page, review)
    _against(page, review, shown)
    for label, parts in statistics(review.summary):
        page.line((f"{label:<11}", "dim"), *parts, hanging=11)
    page.blank()
    _verdict(page, decided, review)
    _next_steps(page, review)
    return decided


def _against(page: TextPage, review: Review, shown: int | None) -> None:
    """The rows on which people and the graders differ, with what they read."""
    if not review.against:
        return
    page.line(("Read these: people and the graders differ", "bold"))
    for cell in review.against[:shown]:
        reward = DASH if cell.reward is None else score(cell.reward)
        people, graders = (
            "pass" if said else "fail" for said in (cell.notes["label"], cell.passed)
        )
        page.line(
            (one_line(cell.case, 60), "bold"),
            f"  people {people}, graders {graders} ({reward})",
            (f"  {one_line(cell.file, 80)}" if cell.file else "", "dim"),
            indent=2,
            hanging=2,
        )
        words = {"answer: ": one_line(cell.answer, 400), "graders: ": one_line(cell.content, 300)}
        page.quote([f"{who}{text}" for who, text in words.items() if text], indent=4)
    found = review.summary.agreement or {}
    rows = sum(n for n in (found.get("fp"), found.get("fn")) if isinstance(n, int))
    if rest := rows - len(review.against[:shown]):
        page.line((f"… and {rest:,} more; --json has them all", "dim"), indent=2)
    page.blank()


def render_opened(
    page: TextPage,
    review: Review,
    *,
    fail_under: float | None = None,
    strict: bool = False,
    shown: int | None = None,
) -> RunVerdict:
    """Write the cells of a review one after the other, each with all that is kept of it.

    Args:
        page: As for `render`.
        review: The cells.
        fail_under: As for `render`.
        strict: Likewise.
        shown: How many are opened, failing ones first; None for all.
    """
    decided = verdict(review.summary, fail_under=fail_under, strict=strict)
    _header(page, review.run, review.summary)
    for cell in review.cells[:shown]:
        _cell(page, review.open(cell), _WHOLE)
        _standings(page, review, cell)
        page.blank()
    if rest := 0 if shown is None else len(review.cells[shown:]):
        page.line(f"… and {rest:,} more: say which by --model, --harness or --trial, or --all")
        page.blank()
    _verdict(page, decided, review)
    return decided


def _verdict(page: TextPage, decided: RunVerdict, review: Review) -> None:
    state: Outcome = "pass" if decided.code == 0 else "fail" if decided.code == 1 else "error"
    style = STYLES["error" if review.summary.not_graded and state == "pass" else state]
    page.line((f"{GLYPHS[state]} {one_line(decided.line, 400)}", style), hanging=2)


def _header(page: TextPage, run: RunRecord, summary: Summary) -> None:
    label = f"  {one_line(run.label, 60)}" if run.label else ""
    extent = (
        count(len({row.case for row in summary.groups}) + summary.left_out, "case"),
        count(len(summary.leaderboard), "agent"),
        count(summary.totals.total, "cell"),
        duration(summary.totals.seconds),
        # This one is what whoever looks takes for granted.
        *([f"assay {one_line(run.assay, 40)}"] if run.assay not in ("", __version__) else []),
    )
    page.line(
        (f"Run {one_line(run.id, 60)}", "bold"),
        label,
        (f"  {' · '.join(extent)}", "dim"),
        hanging=2,
    )
    page.blank()


def _failures(page: TextPage, review: Review, shown: int | None) -> None:
    failed = review.of("fail")
    if not failed:
        return
    page.line((f"Failed: {review.summary.totals.failed:,}", "bold"))
    opened = failed[:shown]
    for cell in opened:
        page.blank()
        _cell(page, review.open(cell), _BRIEF)
        _standings(page, review, cell)
    if rest := review.summary.totals.failed - len(opened):
        page.blank()
        page.line(f"… and {rest:,} more: assay report {_quoted(review.run.id)} --all")
    page.blank()


def _cell(page: TextPage, opened: Opened, size: _Size) -> None:
    """A cell with its reasons, and as much of the rest as the size allows."""
    cell = opened.cell
    state = ended(cell)
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
    for flag in cell.flags[: size.parts]:
        page.line((f"flagged: {one_line(flag, 200)}", "yellow"), indent=2, hanging=2)
    for line in left_out(cell)[: size.parts]:
        page.line((f"not graded: {line}", "dim"), indent=2, hanging=2)
    told = [(depth, node) for depth, node in walk(opened.scores) if size.whole or _is_wrong(node)]
    for depth, node in told[: size.parts]:
        _node(page, node, size, indent=2 + 2 * depth)
    if len(told) > size.parts:
        page.line(f"… and {len(told) - size.parts} more parts", indent=2)
    for label, text, lines in _texts(opened, size):
        page.line((label, "dim"), indent=2)
        page.quote(first_lines(text, lines, width=size.width), indent=4)
    notes = list(opened.notes)
    if more := len(opened.steps[_MAX_STEPS:]):
        notes.append(f"{more:,} more steps are not shown: --html has them")
    for note in notes if size.whole else ():
        page.line((note, "dim"), indent=2, hanging=2)


@frozen
class _Size:
    """How much of a cell is shown.

    Attributes:
        whole: Whether what passed, the prompt, the work and its files are shown, too.
        parts: Scores, flags and the like.
        facts: Facts about one score.
        lines: Lines of one fact, or of one text.
        width: Characters of one line.
    """

    whole: bool
    parts: int
    facts: int
    lines: int
    width: int


_BRIEF = _Size(whole=False, parts=_MAX_PARTS, facts=_MAX_PARTS, lines=_LINES, width=240)
_WHOLE = _Size(whole=True, parts=200, facts=30, lines=60, width=1_000)


def _texts(opened: Opened, size: _Size) -> Iterator[tuple[str, str, int]]:
    """What was asked, done, left and answered: labels, texts, and how many lines of each."""
    if size.whole:
        if opened.kept.prompt:
            yield "prompt", opened.kept.prompt, size.lines
        for number, moment in enumerate(opened.steps[:_MAX_STEPS], 1):
            yield f"{number:>3}  {one_line(moment.label, 120)}", moment.text, size.lines // 3
        for change in opened.changes:
            yield f"{change.how} {change.path}", change.diff, size.lines
    else:
        errors = [moment.text for moment in opened.steps if moment.label == "traceback"]
        yield from (("traceback", text, 8) for text in errors[-1:])
    if opened.kept.answer:
        yield "answer", opened.kept.answer, size.lines if size.whole else 3


def _standings(page: TextPage, review: Review, cell: CellRecord) -> None:
    """How far the cell's graders agree with people, where that was measured."""
    for each in review.shelf.of_cell(cell)[:_MAX_PARTS] if review.shelf else ():
        said = f"{one_line(each.grader, 60)}: {each.line}"
        page.line((said, "yellow" if each.is_stale else "dim"), indent=2, hanging=2)


def _is_wrong(node: SubScore) -> bool:
    return node_outcome(node) in ("fail", "error")


def _node(page: TextPage, node: SubScore, size: _Size, *, indent: int) -> None:
    page.line((heading(node), STYLES[node_outcome(node)]), indent=indent, hanging=2)
    for fact in evidence(node, lines=size.lines, width=size.width)[: size.facts]:
        if len(fact.lines) == 1 and len(fact.lines[0]) <= 60:
            page.line((f"{fact.label}: ", "dim"), fact.lines[0], indent=indent + 2, hanging=2)
        else:
            page.line((fact.label, "dim"), indent=indent + 2)
            page.quote(fact.lines, indent=indent + 4)


def _flagged(page: TextPage, review: Review, shown: int | None) -> None:
    """Cells that are flagged although they passed, or that are held for it."""
    cells = [cell for state in _UNOPENED for cell in review.of(state) if cell.flags]
    if not cells:
        return
    page.line((f"Flagged, and not failed: {len(cells):,}", "bold"))
    for cell in cells[:shown]:
        state = ended(cell)
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


def _errors(page: TextPage, review: Review) -> None:
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


def _changes(page: TextPage, review: Review) -> None:
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


def _next_steps(page: TextPage, review: Review) -> None:
    run, totals = _quoted(review.run.id), review.summary.totals
    steps: list[tuple[str, str]] = []
    resumable = review.run.config.get("kind", "matrix") == "matrix"
    if resumable and (review.summary.missing or totals.errors):
        steps.append((f"assay run --resume {run}", "finish, and retry errors"))
    if resumable and review.summary.mixed:
        steps.append((f"assay regrade {run}", "grade all cells alike"))
    if any(flag.startswith("audit: ") for cell in review.cells for flag in cell.flags):
        steps.append((f"assay runs review {run}", "decide about what was flagged or held"))
    if totals.total:
        worst = next((c.case for state in _URGENT for c in review.of(state)), "ID")
        one = f"assay report {run} --case {shlex.quote(one_line(worst, 80))}"
        steps.append((one, "one case: prompt, work, files, every score"))
        steps.append((f"assay view {run}", "the same of all, in a browser"))
        steps.append((f"assay report {run} --html report.html", "in one file, for others"))
    for number, (command, purpose) in enumerate(steps):
        start = "Next  " if number == 0 else "      "
        page.line(
            (start, "dim"), command + review.where, (f"  {purpose}", "dim"), hanging=len(start)
        )


def _quoted(run_id: str) -> str:
    return shlex.quote(one_line(run_id, 80))


_CASE_WIDTH = 32
_CASE_END = 12
_NAME_WIDTH = 24
_STRIP = 10


def matrix(page: TextPage, summary: Summary, *, whole: bool = False, hint: str = "") -> None:
    """Write the matrix, cases that need attention first.

    Args:
        page: Where to.
        summary: What is in it.
        whole: Whether all cases are shown, however many there are.
        hint: How to see those that are left out.
    """
    if not summary.groups:
        return
    columns = list(dict.fromkeys((row.harness, row.model) for row in summary.groups))
    cases = by_case(summary)
    most = _MAX_CROSSED if len(columns) > 1 else _MAX_ROWS
    first = most if len(columns) > 1 or len(cases) <= most else _FIRST_ROWS
    shown = cases if whole else cases[:first]
    if len(columns) > 1 and _matrix_width(columns, shown) <= page.width:
        _crossed(page, columns, shown)
    else:
        _listed(page, [row for case in shown for row in case.values()], columns)
    if rest := len(cases) - len(shown) + summary.left_out:
        said = _left_out(shown, cases[len(shown) :], summary)
        page.line((f"… and {count(rest, 'more case')} ({said}){hint}", "dim"), hanging=2)
    page.blank()
    if len(columns) > 1:
        _leaderboard(page, summary)


def _left_out(shown: _Cases, others: _Cases, summary: Summary) -> str:
    """What became of the cases that are not shown."""
    worst = _worst(others)
    if summary.left_out:  # of rows, which are a cell each: only some have a group, all are counted
        worst = Counter[Ended](summary.totals.ends.by_state) - _worst(shown)
    return ", ".join(counted(state, worst[state]) for state in WORDS if worst[state])


def _worst(cases: _Cases) -> Counter[Ended]:
    return Counter(min(case.values(), key=_urgency).totals.shown for case in cases)


def by_case(summary: Summary) -> list[dict[tuple[str, str], AgentRow]]:
    """The rows of each case by (harness, model), cases that need attention first."""
    cases: dict[str, dict[tuple[str, str], AgentRow]] = {}
    for row in summary.groups:
        cases.setdefault(row.case, {})[row.harness, row.model] = row
    names = sorted(cases, key=natural)
    return sorted(map(cases.__getitem__, names), key=lambda case: min(map(_urgency, case.values())))


def marks(row: AgentRow) -> str:
    """What is special about a row, in signs: trials without a grade, flaky, mixed graders."""
    said = ""
    if row.totals.errors:
        said += f" {GLYPHS['error']}{row.totals.errors}"
    if row.totals.skipped:
        said += f" {GLYPHS['skipped']}{row.totals.skipped}"
    return said + (" ~" if row.flaky else "") + (" ≠" if row.mixed else "")


def passed_of(totals: Totals) -> str:
    """Passed of all trials; nothing where none could have failed."""
    return f"{totals.passed}/{totals.total}" if totals.has_verdicts else ""


def agent_of(row: AgentRow) -> str:
    """Harness and model on one line."""
    names = [one_line(name, _NAME_WIDTH) for name in (row.harness, row.model) if name]
    return " · ".join(names) or "no agent"


def _crossed(
    page: TextPage, columns: list[tuple[str, str]], cases: list[dict[tuple[str, str], AgentRow]]
) -> None:
    header = [page.text("case"), *(_column_title(page, *column) for column in columns)]
    rows: list[list[Cell]] = []
    for case in cases:
        first = next(iter(case.values()))
        cells = [_brief(page, case.get(column)) for column in columns]
        rows.append([page.text(_case(first)), *cells])
    page.table(header, rows, left=1)
    has_verdicts = any(row.totals.has_verdicts for case in cases for row in case.values())
    first = f"{'passed/trials and ' if has_verdicts else ''}mean reward of the graded"
    meanings = [first, *_meanings(cases)]
    page.line(("; ".join(meanings), "dim"))


def _listed(page: TextPage, rows: list[AgentRow], columns: list[tuple[str, str]]) -> None:
    several = len(columns) > 1
    repeated = any(row.totals.total > 1 for row in rows)
    titles = ["case", *(["agent"] if several else []), "passed", "reward"]
    titles += ["95 %", "graded", "trials"] if repeated else []
    lines: list[list[Cell]] = []
    for row in rows:
        totals, state = row.totals, row.totals.shown
        cells: list[Cell] = [page.text((f"{GLYPHS[state]} {_case(row)}", STYLES[state]))]
        if several:
            cells.append(page.text(agent_of(row)))
        cells.append(page.text(f"{passed_of(totals) or DASH}{marks(row)}"))
        cells.append(page.text(score(totals.reward.mean)))
        if repeated:
            cells.append(page.text((score_interval(totals.reward), "dim")))
            cells.append(page.text(f"{totals.graded}/{totals.total}"))
            cells.append(page.text(*_strip(row)))
        lines.append(cells)
    page.table(titles, lines, left=2 if several else 1)
    if meanings := _meanings([{("", ""): row} for row in rows]):
        page.line(("; ".join(meanings), "dim"))


def _leaderboard(page: TextPage, summary: Summary) -> None:
    header = ("agent", "reward", "95 %", "passed", "graded", "errors")
    rows: list[list[Cell]] = []
    for row in summary.leaderboard:
        totals = row.totals
        errors = (f"{totals.errors:,}", STYLES["error"] if totals.errors else "dim")
        rows.append(
            [
                page.text(agent_of(row)),
                page.text((score(totals.reward.mean), "bold"), " ≠" if row.mixed else ""),
                page.text((score_interval(totals.reward), "dim")),
                page.text(f"{totals.passed:,}/{totals.graded:,}" if totals.has_verdicts else DASH),
                page.text(f"{totals.graded:,}/{totals.total:,}"),
                page.text(errors),
            ]
        )
    page.table(header, rows, left=1)
    page.blank()


def _brief(page: TextPage, row: AgentRow | None) -> Cell:
    if row is None:
        return page.text(("·", "dim"))
    return page.text(*_brief_parts(row))


def _brief_parts(row: AgentRow) -> list[Part]:
    totals, state = row.totals, row.totals.shown
    parts: list[Part] = [(f"{GLYPHS[state]} {passed_of(totals)}".rstrip(), STYLES[state])]
    if totals.graded:
        parts.append(f" {score(totals.reward.mean)}")
    return [*parts, (marks(row), "dim")]


def _meanings(cases: list[dict[tuple[str, str], AgentRow]]) -> list[str]:
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


def _strip(row: AgentRow) -> list[Part]:
    parts: list[Part] = [(GLYPHS[state], STYLES[state]) for state in row.ended[:_STRIP]]
    return [*parts, "…"] if row.totals.total > _STRIP else parts


def _case(row: AgentRow) -> str:
    """The case id, which starts a line and so must not be a command to a build service."""
    name = one_line(row.case, 1_000)
    if len(name) > _CASE_WIDTH:  # rows of one file differ in what they end with
        name = f"{name[: _CASE_WIDTH - _CASE_END - 1]}…{name[-_CASE_END:]}"
    return re.sub("^::", ": :", name) or "no id"


def _column_title(page: TextPage, harness: str, model: str) -> Cell:
    names = [one_line(name, _NAME_WIDTH) for name in (harness, model) if name]
    return page.stacked(*names) if names else page.text("no agent")


def _matrix_width(
    columns: list[tuple[str, str]], cases: list[dict[tuple[str, str], AgentRow]]
) -> int:
    width = max(columns_of(_case(next(iter(case.values())))) for case in cases)
    for column in columns:
        texts = [sum(map(_length, _brief_parts(case[column]))) for case in cases if column in case]
        names = [columns_of(one_line(name, _NAME_WIDTH)) for name in column]
        width += 2 + max([*texts, *names])
    return width


def _length(part: Part) -> int:
    return columns_of(part if isinstance(part, str) else part[0])


def _urgency(row: AgentRow) -> int:
    order: tuple[Ended, ...] = ("fail", "error", "pass", "scored", "skipped")
    return order.index(row.totals.shown)
