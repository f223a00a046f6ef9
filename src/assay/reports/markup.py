"""How a report looks, and the parts that it is made of."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256

from assay.reports.figures import DASH, cost, count, duration, score, score_interval
from assay.reports.outcome import GLYPHS, WORDS, Ended
from assay.reports.plain import one_line
from assay.reports.summary import Row, Summary
from assay.reports.table import agent_of, by_case, passed_of
from assay.reports.totals import Totals
from assay.scoring.intervals import Interval
from assay.shown import Html, element, joined

STYLE = """
:root {
  color-scheme: light dark;
  --page: #fafaf8; --card: #ffffff; --ink: #1c1e22; --soft: #5d626b; --line: #e3e3de;
  --well: #f3f3ef; --pass: #17734a; --fail: #b3261e; --error: #8a5a00; --skipped: #5d626b;
  --pass-well: #e6f4ec; --fail-well: #fbeae8; --error-well: #fbf1dc; --skipped-well: #efefec;
  --accent: #2f5fb3;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #121316; --card: #1a1c20; --ink: #e7e8eb; --soft: #a0a5ae; --line: #2d3036;
    --well: #22252a; --pass: #62c995; --fail: #ff8f87; --error: #e5b95c; --skipped: #a0a5ae;
    --pass-well: #17301f; --fail-well: #3a1c1a; --error-well: #33270f; --skipped-well: #26282d;
    --accent: #8fb4f5;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
}
main, header, footer { max-width: 1080px; margin: 0 auto; padding: 0 24px; }
header { padding-top: 36px; }
footer { padding: 32px 24px 48px; color: var(--soft); font-size: 13px; }
h1 { font-size: 24px; line-height: 1.25; margin: 0; font-weight: 650; overflow-wrap: anywhere; }
h2 { font-size: 17px; margin: 40px 0 12px; font-weight: 650; }
h2 .n { color: var(--soft); font-weight: 400; margin-left: 6px; }
h3 { font-size: 13px; margin: 18px 0 6px; color: var(--soft); font-weight: 600; }
p { margin: 6px 0; }
a { color: inherit; text-decoration: none; }
a:hover { text-decoration: underline; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
.soft, .note { color: var(--soft); }
.note { font-size: 13px; overflow-wrap: anywhere; }
.pass { --tone: var(--pass); --tone-well: var(--pass-well); }
.fail { --tone: var(--fail); --tone-well: var(--fail-well); }
.error { --tone: var(--error); --tone-well: var(--error-well); }
.skipped, .scored { --tone: var(--skipped); --tone-well: var(--skipped-well); }
.verdict {
  margin: 18px 0 0; padding: 12px 16px; border-radius: 10px; font-weight: 600;
  color: var(--tone); background: var(--tone-well); overflow-wrap: anywhere;
}
.cards {
  display: grid; gap: 12px; margin: 16px 0 0; padding: 0;
  grid-template-columns: repeat(auto-fit, minmax(185px, 1fr));
}
.card {
  background: var(--card); border: 1px solid var(--line); border-radius: 12px; margin: 0;
  padding: 14px 16px;
}
.card dt { color: var(--soft); font-size: 13px; }
.card dd { margin: 0; }
.card .value { font-size: 26px; line-height: 1.35; font-weight: 650; letter-spacing: -0.01em; }
.card .note { line-height: 1.45; }
svg { display: block; width: 100%; height: 8px; margin: 8px 0; overflow: visible; }
svg .track { fill: var(--well); }
svg .band { fill: var(--accent); opacity: 0.35; }
svg .dot { fill: var(--accent); }
svg .bar { fill: var(--tone); }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 12px; }
.scroll { background: var(--card); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td {
  text-align: left; padding: 8px 14px; border-top: 1px solid var(--line); vertical-align: top;
}
thead th {
  border-top: 0; color: var(--soft); font-size: 13px; font-weight: 500; vertical-align: bottom;
  white-space: nowrap;
}
thead th b { color: var(--ink); font-weight: 600; display: block; }
tbody th { font-weight: 500; min-width: 9em; max-width: 20em; overflow-wrap: anywhere; }
td { white-space: nowrap; }
td.text { white-space: normal; overflow-wrap: anywhere; width: 100%; }
td.bar { min-width: 130px; width: 22%; }
.mark { color: var(--tone); font-weight: 600; }
.strip { letter-spacing: 0.12em; }
.tag {
  display: inline-block; padding: 0 7px; border-radius: 99px; font-size: 12px; line-height: 1.6;
  color: var(--tone, var(--soft)); background: var(--tone-well, var(--well)); font-weight: 500;
}
details.cell {
  background: var(--card); border: 1px solid var(--line); border-radius: 12px; margin: 8px 0;
}
details.cell > summary { padding: 10px 16px; display: flex; gap: 12px; align-items: baseline; }
details.cell[open] > summary { border-bottom: 1px solid var(--line); }
details.cell > .body { padding: 12px 16px 16px; scroll-margin-top: 60px; }
summary { cursor: pointer; list-style: none; border-radius: 10px; }
summary::-webkit-details-marker { display: none; }
summary::before {
  content: "\\203A"; color: var(--soft); width: 8px; flex: none; display: inline-block;
}
details[open] > summary::before { transform: rotate(90deg); }
.name { font-weight: 600; overflow-wrap: anywhere; }
.end { margin-left: auto; white-space: nowrap; font-variant-numeric: tabular-nums; }
.why { margin: 0 0 10px; font-weight: 500; overflow-wrap: anywhere; }
.node { margin: 4px 0; border-left: 2px solid var(--tone); padding-left: 12px; }
.node > summary, div.node > p { display: flex; gap: 10px; align-items: baseline; padding: 3px 0; }
.node .node { margin-left: 8px; }
div.node > p { margin: 0; padding-left: 18px; }
.facts {
  margin: 4px 0 10px 18px; display: grid; grid-template-columns: max-content 1fr; gap: 4px 14px;
}
.facts dt { color: var(--soft); font-size: 13px; }
.facts dd { margin: 0; min-width: 0; overflow-wrap: anywhere; }
.facts .wide { grid-column: 1 / -1; }
pre {
  margin: 2px 0 6px; padding: 10px 12px; background: var(--well); border-radius: 8px;
  font: 12.5px/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  overflow: auto; max-height: 420px; white-space: pre-wrap; overflow-wrap: anywhere;
}
.steps { margin: 4px 0 10px; padding-left: 28px; }
.steps .label { color: var(--soft); font-size: 13px; font-weight: 600; }
.steps .error > .label { color: var(--error); }
.diff .add { color: var(--pass); }
.diff .del { color: var(--fail); }
.diff .at { color: var(--soft); }
.sr { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
@media (max-width: 640px) {
  main, header { padding-left: 14px; padding-right: 14px; }
  details.cell > summary { flex-wrap: wrap; }
}
@media print { pre { max-height: none; } details.cell { break-inside: avoid; } }
"""


def page_head(title: str) -> Html:
    """The head of a page that needs nothing else and may load nothing."""
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy()),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", f"{title} · assay"),
        Html(f"<style>{STYLE}</style>"),
    )


def _policy() -> str:
    """The content security policy: this style sheet, and nothing else from anywhere."""
    digest = b64encode(sha256(STYLE.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


_MAX_ROWS = 100
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
    """The shares of the outcomes, one after another."""
    numbers: dict[Ended, int] = {
        "pass": totals.passed - totals.scored,
        "fail": totals.failed,
        "scored": totals.scored,
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
    if not summary.totals.has_verdicts:
        note = "Mean reward of the graded trials; no score is asked for to pass."
    if cut > 0:
        note += f" {count(cut, 'more case')} not shown here: see the cells below."
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
                element(
                    "td",
                    f"{totals.passed:,} of {totals.graded:,}" if totals.has_verdicts else DASH,
                ),
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
    totals, state = row.totals, row.totals.shown
    glyph = element("span", GLYPHS[state], aria_hidden="true")
    word = element("span", f"{WORDS[state]}, ", class_="sr")
    mark = element("span", glyph, " ", word, passed_of(totals), class_=f"mark {state}")
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
        for state in row.ended[:_STRIP]
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
