"""A comparison on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from assay.reports.comparing.comparison import (
    ComparedCase,
    ComparedSide,
    RunComparison,
    between_text,
    chance,
    lost_text,
    signed,
)
from assay.reports.figures import cost, count, duration, percent, score
from assay.reports.outcome import GLYPHS, Ended
from assay.reports.page import STYLES, TextPage
from assay.reports.plain import one_line
from assay.statistics.intervals import Interval

_SHOWN = 5
_MAX_CELLS = 4
_MAX_REASONS = 6
_MAX_CAUSES = 12
_MAX_NAMED = 4
_WIDTH = 12


def lines(found: RunComparison) -> list[tuple[str, str]]:
    """The numbers as labelled lines."""
    before, after, between = found.before, found.after, found.interval
    p = found.difference.p_value
    said: list[tuple[str, str]] = []
    if between.mean is not None:
        over = f"over {count(between.n, 'case')}"
        each = (signed(between.mean), between_text(between) or "too few for an interval", over)
        p_value = "" if p is None else f"; {chance(p)}"
        said.append(("Difference", f"{each[0]}; {each[1]} {each[2]}{p_value}"))
        said.append(("Reward", f"{score(before.reward)} → {score(after.reward)}"))
        sign = "" if found.sign_p is None else f"; sign test {chance(found.sign_p)}"
        cases = f"{found.better:,} better, {found.worse:,} worse, {found.same:,} the same"
        said.append(("Cases", cases + sign))
    if before.has_verdicts or after.has_verdicts:
        rates = [percent(side.paired.pass_rate.mean) for side in (before, after)]
        only = f"{found.only_before:,} only before, {found.only_after:,} only after"
        said.append(("Passed", f"{rates[0]} → {rates[1]} of {count(found.pairs, 'pair')}; {only}"))
    said.append(("Cells", _coverage(found)))
    if found.pairs:
        if any(_is_priced(side) for side in (before, after)):
            said.append(("Agent cost", " → ".join(_cost(side) for side in (before, after))))
        if any(side.paired.judgements or side.paired.judgements_cached for side in (before, after)):
            said.append(("Judge cost", " → ".join(_judged(side) for side in (before, after))))
        said.append(("Time", " → ".join(duration(side.paired.seconds) for side in (before, after))))
    return said + _slices(found)


_MOST_SLICES = 20


def _slices(found: RunComparison) -> list[tuple[str, str]]:
    """The cases of each value of a field, those that differ most first."""
    said: list[tuple[str, str]] = []
    for one in found.slices[:_MOST_SLICES]:
        between = Interval(one.after - one.before, one.low, one.high, one.cases)
        interval = between_text(between) or "too few for an interval"
        label = "" if said else f"By {one_line(found.by, 20)}"
        means = f"{score(one.before)} → {score(one.after)}"
        difference = f"{signed(one.after - one.before)}; {interval}"
        is_most = not said and one.before != one.after
        value = ("they differ most in " if is_most else "") + one_line(one.value, 60)
        said.append((label, f"{value}: {means}, {difference} over {count(one.cases, 'case')}"))
    if more := len(found.slices[_MOST_SLICES:]):
        said.append(("", f"and {count(more, 'more value')}"))
    return said


def _coverage(found: RunComparison) -> str:
    parts = [f"{count(found.pairs, 'pair')} graded on both sides"]
    for word, side in (("before", found.before), ("after", found.after)):
        if side.lost:
            parts.append(f"{word}: {lost_text(side.lost)} ({_cases_of(side.lost_in)})")
        if side.alone:
            parts.append(f"{side.alone:,} only {word} ({_cases_of(side.alone_in)})")
    return "; ".join(parts)


def _cases_of(cases: Sequence[str]) -> str:
    shown = [one_line(case, 40) for case in cases[:_MAX_NAMED]]
    return ", ".join(shown) + (", …" if len(cases) > _MAX_NAMED else "")


def _is_priced(side: ComparedSide) -> bool:
    return side.paired.cost_usd is not None or side.paired.tokens is not None


def _cost(side: ComparedSide) -> str:
    totals = side.paired
    tokens = "" if totals.tokens is None else f" ({totals.tokens:,} tokens)"
    return f"{cost(totals.cost_usd, totals.cost_unknown)}{tokens}"


def _judged(side: ComparedSide) -> str:
    return cost(side.paired.judge_cost_usd, side.paired.judge_cost_unknown, "judgement")


def render_comparison(
    page: TextPage, found: RunComparison, *, is_gate: bool = False, shown: int | None = _SHOWN
) -> None:
    """Write a comparison.

    Args:
        page: Where to.
        found: The comparison.
        is_gate: Whether a drop was asked about, which the verdict is on then.
        shown: Cases that are opened of those that lost, and of those that gained; None for all.
    """
    for word, side in (("before", found.before), ("after", found.after)):
        page.line((f"{word:<8}", "dim"), (_name(side), "bold"), (f"  {_agents(side)}", "dim"))
    page.blank()
    lost, gained = found.worsened, found.improved
    _cases(page, "Worse", "fail", number=found.worse, changes=lost, shown=shown)
    _cases(page, "Better", "pass", number=found.better, changes=gained, shown=shown)
    for line in found.lines:
        page.line((f"{line.label:<{_WIDTH}}", "dim"), line.text, hanging=_WIDTH)
    for number, reason in enumerate(found.reasons[:_MAX_CAUSES]):
        label = "" if number else "Changed"
        page.line((f"{label:<{_WIDTH}}", "dim"), (reason, "yellow"), hanging=_WIDTH)
    page.blank()
    state = ending_of(found, is_gate=is_gate)
    page.line((f"{GLYPHS[state]} {found.verdict}", STYLES[state]), hanging=2)


def _cases(
    page: TextPage,
    title: str,
    state: Ended,
    *,
    number: int,
    changes: Sequence[ComparedCase],
    shown: int | None,
) -> None:
    if not number:
        return
    page.line((f"{title}: {count(number, 'case')}", "bold"))
    opened = changes[:shown]
    for change in opened:
        page.line(
            (f"{GLYPHS[state]} {score(change.before)} → {score(change.after)}", STYLES[state]),
            (f"  {one_line(change.case, 60)}", "bold"),
            hanging=2,
        )
        for name, reasons in _opened(change):
            page.line((name, "dim"), indent=2, hanging=2)
            for reason in reasons:
                page.line(reason, indent=4, hanging=2)
    if rest := number - len(opened):
        page.line(f"… and {rest:,} more{': --all' if len(changes) > len(opened) else ''}")
    page.blank()


def _opened(change: ComparedCase) -> list[tuple[str, list[str]]]:
    """The pairs of a case that differ: which cell, and what is different in it."""
    said: list[tuple[str, list[str]]] = []
    for pair in change.pairs[:_MAX_CELLS]:
        cell = pair.after
        agent = [one_line(name, 40) for name in (cell.harness, cell.model) if name]
        values = f"{score(pair.before.reward)} → {score(cell.reward)}"
        name = " · ".join([*agent, f"trial {cell.trial}", values])
        reasons = [one_line(reason, 200) for reason in pair.reasons[:_MAX_REASONS]]
        answers = [one_line(each.answer, 60) for each in (pair.before, cell)]
        if answers[0] != answers[1]:
            reasons.append(f"answer: {answers[0] or 'none'} → {answers[1] or 'none'}")
        said.append((name, [*reasons, f"now: {cell.sentence}"]))
    if rest := len(change.pairs) + change.more - _MAX_CELLS:
        said += [(f"… and {count(rest, 'more pair')}", [])] if rest > 0 else []
    return said


def _name(side: ComparedSide) -> str:
    label = f" ({one_line(side.label, 60)})" if side.label else ""
    return f"{one_line(side.run, 60)}{label}"


def _agents(side: ComparedSide) -> str:
    names = [
        " · ".join(one_line(name, 40) for name in (agent.harness, agent.model) if name)
        for agent in side.agents
    ]
    cells = count(side.totals.total, "cell")
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    return ", ".join(part for part in (", ".join(names[:3]) + more, cells) if part)


def ending_of(found: RunComparison, *, is_gate: bool) -> Ended:
    """How the verdict is coloured: by its gate where there is one, else by what was found."""
    if found.code:
        return "fail" if found.code == 1 else "error"
    if is_gate or found.finding == "better":
        return "pass"
    return "fail" if found.finding == "worse" else "scored"
