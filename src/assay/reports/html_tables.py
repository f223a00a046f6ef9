"""The tables and the small charts of the HTML report."""

from __future__ import annotations

from collections.abc import Mapping

from assay.reports.figures import cost, count, duration, score, score_interval
from assay.reports.markup import Html, element, joined
from assay.reports.matrix import agent_of, by_case, row_outcome
from assay.reports.outcome import GLYPHS, WORDS, Outcome
from assay.reports.plain import one_line
from assay.reports.summary import Row, Summary
from assay.reports.totals import Totals
from assay.scoring.intervals import Interval

__all__ = [
    "causes_element",
    "interval_bar",
    "leaderboard_element",
    "matrix_element",
    "shares_bar",
]

_MAX_ROWS = 1_000
_MAX_CAUSES = 30
_STRIP = 20


def interval_bar(interval: Interval) -> Html:
    """Where a mean lies between 0 and 1, with its interval as a band; the words stand beside it."""
    shapes = [element("rect", class_="track", width="100%", height="8", rx="4")]
    if interval.low is not None and interval.high is not None:
        width = max(0.0, interval.high - interval.low)
        shapes.append(
            element(
                "rect",
                class_="band",
                x=_share(interval.low),
                width=_share(width),
                height="8",
                rx="4",
            )
        )
    if interval.mean is not None:
        shapes.append(element("circle", class_="dot", cx=_share(interval.mean), cy="4", r="5"))
    return element("svg", *shapes, aria_hidden="true")


def shares_bar(totals: Totals) -> Html:
    """The shares of the four outcomes, one after another."""
    numbers: dict[Outcome, int] = {
        "pass": totals.passed,
        "fail": totals.failed,
        "error": totals.errors,
        "skipped": totals.skipped,
    }
    shapes = [element("rect", class_="track", width="100%", height="8", rx="4")]
    start = 0.0
    for state, number in numbers.items():
        share = number / totals.total if totals.total else 0.0
        if share:
            bar = f"bar {state}"
            shapes.append(
                element("rect", class_=bar, x=_share(start), width=_share(share), height="8")
            )
        start += share
    return element("svg", *shapes, aria_hidden="true")


def matrix_element(summary: Summary, anchors: Mapping[tuple[str, str, str], str]) -> Html:
    """Cases against agents, cases that need attention first."""
    if not summary.groups:
        return Html("")
    columns = list(dict.fromkeys((row.harness, row.model) for row in summary.groups))
    cases = by_case(summary)
    head = [element("th", "Case", scope="col")]
    for harness, model in columns:
        name = element("b", one_line(model or harness or "no agent", 60))
        above = one_line(harness, 60) if model else None
        head.append(element("th", above, name, scope="col"))
    body: list[Html] = []
    for case in cases[:_MAX_ROWS]:
        first = next(iter(case.values()))
        cells = [_matrix_cell(case.get(column), anchors) for column in columns]
        body.append(element("tr", element("th", one_line(first.case, 120), scope="row"), *cells))
    cut = max(0, len(cases) - _MAX_ROWS) + summary.left_out
    note = "Passed of all trials, mean reward of the graded ones."
    if cut > 0:
        note += f" {count(cut, 'more case')} not shown."
    if summary.mixed:
        note += " Mixed graders: graded by different versions, so that a mean is no one measure."
    return joined(_table("Matrix", head, body), element("p", note, class_="note"))


def leaderboard_element(summary: Summary) -> Html:
    """Agents, best mean reward first; nothing for a single one."""
    if len(summary.leaderboard) < 2:
        return Html("")
    titles = ("Agent", "Reward", "95 % interval", "Passed", "Graded", "Errors", "Cost", "Time")
    head = [element("th", title, scope="col") for title in titles]
    body: list[Html] = []
    for row in summary.leaderboard:
        totals = row.totals
        errors = (
            element("span", f"{totals.errors:,}", class_="mark error") if totals.errors else "0"
        )
        body.append(
            element(
                "tr",
                element("th", agent_of(row), scope="row"),
                element("td", element("b", score(totals.reward.mean)), " ≠" if row.mixed else None),
                element(
                    "td",
                    score_interval(totals.reward) or "too few cases",
                    interval_bar(totals.reward),
                    class_="bar",
                ),
                element("td", f"{totals.passed:,} of {totals.graded:,}"),
                element("td", f"{totals.graded:,} of {totals.total:,}"),
                element("td", errors),
                element("td", cost(totals.cost_usd, totals.cost_unknown)),
                element("td", duration(totals.seconds)),
            )
        )
    return _table("Agents", head, body)


def causes_element(summary: Summary) -> Html:
    """Why cells could not be graded, commonest first."""
    if not summary.causes:
        return Html("")
    head = [element("th", title, scope="col") for title in ("Cells", "Why they have no grade")]
    body = [
        element(
            "tr",
            element("td", f"{cause.count:,}"),
            element("td", cause.text, class_="text"),
        )
        for cause in summary.causes[:_MAX_CAUSES]
    ]
    return _table("Errors", head, body)


def _matrix_cell(row: Row | None, anchors: Mapping[tuple[str, str, str], str]) -> Html:
    if row is None:
        return element("td", "not run", class_="soft")
    totals, state = row.totals, row_outcome(row.totals)
    glyph = element("span", GLYPHS[state], aria_hidden="true")
    word = element("span", f"{WORDS[state]}, ", class_="sr")
    mark = element(
        "span", glyph, " ", word, f"{totals.passed}/{totals.total}", class_=f"mark {state}"
    )
    inside = joined(mark, f" {score(totals.reward.mean)}" if totals.graded else None)
    anchor = anchors.get((row.case, row.harness, row.model))
    link = element("a", inside, href=f"#{anchor}") if anchor else inside
    tags = [element("span", "flaky", class_="tag")] if row.flaky else []
    if row.mixed:
        tags.append(element("span", "mixed graders", class_="tag error"))
    extra = element("div", _strip(row), class_="note") if totals.total > 1 else None
    return element("td", link, " ", *tags, extra)


def _strip(row: Row) -> Html:
    dots = [
        element("span", GLYPHS[state], class_=f"mark {state}", aria_hidden="true")
        for state in row.outcomes[:_STRIP]
    ]
    more = "…" if row.totals.total > _STRIP else None
    return element("span", *dots, more, class_="strip")


def _table(title: str, head: list[Html], body: list[Html]) -> Html:
    table = element(
        "table",
        element("caption", title, class_="sr"),
        element("thead", element("tr", *head)),
        element("tbody", *body),
    )
    scroll = element("div", table, class_="scroll", tabindex="0", role="region", aria_label=title)
    return element("section", element("h2", title), scroll)


def _share(part: float) -> str:
    return f"{100 * part:.2f}%"
