"""The numbers of a run as labelled lines: every rate with its denominator and its interval."""

from __future__ import annotations

from assay.reports.figures import (
    cost,
    count,
    duration,
    percent,
    percent_interval,
    score,
    score_interval,
)
from assay.reports.outcome import counted
from assay.reports.page import STYLES, Part
from assay.reports.plain import one_line
from assay.reports.summary import Summary
from assay.reports.totals import PassK, Totals

_MOST_RATES = 20


def statistics(summary: Summary) -> list[tuple[str, list[Part]]]:
    """The lines, each a label and styled text."""
    totals = summary.totals
    lines: list[tuple[str, list[Part]]] = [("Cells", _counts(summary))]
    if totals.graded:
        lines.append(
            (
                "Reward",
                [
                    (score(totals.reward.mean), "bold"),
                    f"  {basis(totals)}; {totals.graded:,} of {count(totals.total, 'cell')} graded",
                ],
            )
        )
        lines += _passing(totals) if totals.has_verdicts else []
    for rate in sorted(summary.rates, key=lambda one: one.met)[:_MOST_RATES]:
        lines.append(("Asked for", [(rate.line, "" if rate.met else "yellow")]))
    lines += _broken_down(summary)
    if totals.clamped:
        clamped = f"{count(totals.clamped, 'reward')} outside 0 to 1 cut to that"
        lines.append(("Clamped", [(clamped, "yellow")]))
    if totals.compared:
        # One of equal rewards has no advantages.
        unequal = f"{totals.unequal:,} of {count(totals.compared, 'group')}"
        lines.append(("Groups", [f"rewards differ in {unequal}"]))
    lines.append(("Agent cost", [_cost(totals)]))
    if totals.judgements or totals.judgements_cached:
        judged = cost(totals.judge_cost_usd, totals.judge_cost_unknown, "judgement")
        asked = f"{count(totals.judgements, 'judgement')} asked"
        cached = totals.judgements_cached
        told = f"{asked}, {cached:,} from the cache" if cached else asked
        lines.append(("Judge cost", [f"{judged}; {told}"]))
    lines.append(("Time", [f"{duration(totals.seconds)}, all cells added up"]))
    if summary.mixed:
        lines.append(("Mixed", [(_mixed(summary), "yellow")]))
    if totals.assurance:
        words = (f"{number:,} {word}" for word, number in totals.assurance.items())
        lines.append(("Assurance", [" · ".join(words)]))
    if totals.flagged:
        flagged = f"{count(totals.flagged, 'cell')}, whose flags say why"
        lines.append(("Flagged", [(flagged, "yellow")]))
    if summary.agreement is not None:
        lines.append(("Agreement", [agreement_text(summary)]))
    for each in summary.standings:
        style = "yellow" if each.is_stale else ""
        lines.append(("Calibrated", [f"{one_line(each.grader, 60)}: ", (each.line, style)]))
    return lines


_MOST_SLICES = 20


def _broken_down(summary: Summary) -> list[tuple[str, list[Part]]]:
    """The cells of each value of a field, the lowest mean reward first."""
    found = summary.broken_down
    if found is None:
        return []
    lines: list[tuple[str, list[Part]]] = []
    for one in found.slices[:_MOST_SLICES]:
        totals, label = one.totals, "" if lines else f"By {one_line(found.by, 20)}"
        if totals.graded:
            said = f"  {basis(totals)}; {totals.passed:,} of {totals.graded:,} passed"
        else:
            said = "  nothing was graded"
        if left := totals.errors + totals.skipped:
            said += f"; {left:,} more not graded"
        value = one_line(one.value, 60)
        lines.append((label, [f"{value}: ", (score(totals.reward.mean), "bold"), said]))
    if more := len(found.slices[_MOST_SLICES:]) + found.more:
        lines.append(("", [(f"and {count(more, 'more value')}", "dim")]))
    return lines


def _passing(totals: Totals) -> list[tuple[str, list[Part]]]:
    rate = f"  {totals.passed:,} of {totals.graded:,} graded"
    if between := percent_interval(totals.pass_rate):
        rate += f"; 95 % interval {between}"
    if totals.scored:
        counts = "counts" if totals.scored == 1 else "count"
        rate += f"; {totals.scored:,} scored without a threshold {counts} as passed"
    lines: list[tuple[str, list[Part]]] = [
        ("Pass rate", [(percent(totals.pass_rate.mean), "bold"), rate])
    ]
    for each in totals.pass_k[1:]:
        over = f"over {each.groups:,} of {count(each.of, 'case-agent pair')}"
        lines.append((f"{each.k:,} trials", [f"{pass_k_text(each)}  {over}"]))
    return lines


def basis(totals: Totals) -> str:
    """What a mean reward rests on: its interval and what it was taken over."""
    over = f"over {count(totals.cases, 'case')}"
    if totals.cases == 1:
        over = f"over {count(totals.graded, 'trial')} of one case"
    between = score_interval(totals.reward)
    return f"95 % interval {between} {over}" if between else f"{over}, too few for an interval"


def pass_k_text(each: PassK) -> str:
    """Both pass@k and pass^k, in words."""
    if each.at_k is None or each.hat_k is None:
        return f"no case has {each.k} graded trials"
    return (
        f"{percent(each.at_k)} pass at least once (pass@{each.k}), "
        f"{percent(each.hat_k)} every time (pass^{each.k})"
    )


def agreement_text(summary: Summary) -> str:
    """How well the grades agree with labels, beside what agreement by chance would be."""
    found = summary.agreement or {}
    n = f"{found.get('n')} labelled"
    if unscored := found.get("unscored"):
        n += f", {unscored} more without a grade"
    if found.get("kind") == "verdict":
        return (
            f"kappa {_number(found.get('kappa'))}, accuracy {_number(found.get('accuracy'))} "
            f"(always the commoner label: {_number(found.get('majority_accuracy'))})  {n}"
        )
    return (
        f"correlation {_number(found.get('pearson'))}, mean error "
        f"{_number(found.get('mean_absolute_error'))} "
        f"(always the median label: {_number(found.get('baseline_error'))})  {n}"
    )


def _counts(summary: Summary) -> list[Part]:
    totals = summary.totals
    numbers = totals.ends.by_state
    parts: list[Part] = [f"{totals.total:,}"]
    if not totals.has_verdicts:
        del numbers["pass"], numbers["fail"]
    elif not totals.scored:
        del numbers["scored"]
    for state, number in numbers.items():
        parts += ["   ", (counted(state, number), STYLES[state] if number else "dim")]
    if summary.missing:
        parts.append((f"   {summary.missing:,} without a result", STYLES["error"]))
    return parts


def _cost(totals: Totals) -> str:
    tokens = "unknown tokens" if totals.tokens is None else f"{totals.tokens:,} tokens"
    if totals.tokens is not None and totals.tokens_unknown:
        tokens += f" + {count(totals.tokens_unknown, 'cell')} unknown"
    return f"{cost(totals.cost_usd, totals.cost_unknown)}; {tokens}"


def _mixed(summary: Summary) -> str:
    names = ", ".join(one_line(case, 40) for case in summary.mixed[:4])
    more = f" and {len(summary.mixed) - 4} more" if len(summary.mixed) > 4 else ""
    return f"≠ graded by different versions of the graders: {names}{more}; means are no one measure"


def _number(value: object) -> str:
    return score(value) if isinstance(value, float | int) else "undefined"
