"""A run as one HTML file that needs nothing else: no script, no request, no outside resource."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from assay.reports.explain import (
    MAX_DEPTH,
    Evidence,
    evidence,
    left_out,
    name_of,
    sentence,
    tidy,
)
from assay.reports.figures import apart, cost, count, duration, percent, percent_interval, score
from assay.reports.files import replacing
from assay.reports.markup import (
    Html,
    causes_element,
    element,
    interval_bar,
    joined,
    leaderboard_element,
    matrix_element,
    page_head,
    shares_bar,
)
from assay.reports.opened import FileChange, Opened
from assay.reports.outcome import (
    GLYPHS,
    OUTCOMES,
    Ended,
    Outcome,
    ended,
    node_outcome,
    reward_of,
)
from assay.reports.plain import first_lines, one_line
from assay.reports.review import Review
from assay.reports.statistics import (
    agreement_text,
    assurance_text,
    basis,
    coverage_text,
    judgements_text,
    pass_k_basis,
    pass_k_text,
    scored_text,
)
from assay.reports.summary import Summary, Verdict, verdict
from assay.reports.trajectory import Moment
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore
from assay.store.records import CellKey

if TYPE_CHECKING:
    from assay.reports.standing import Shelf


def cards_element(summary: Summary) -> Html:
    """The run in numbers."""
    totals = summary.totals
    between = percent_interval(totals.pass_rate)
    cells = f"{totals.passed - totals.scored:,} passed, {totals.failed:,} failed"
    if totals.scored:
        scored = f"{totals.scored:,} scored"
        cells = f"{cells}, {scored}" if totals.has_verdicts else scored
    passing = _card(
        "Pass rate",
        percent(totals.pass_rate.mean),
        f"{totals.passed:,} of {totals.graded:,} graded cells",
        f"95 % interval {between}" if between else "too few for an interval",
        scored_text(totals) if totals.scored else None,
        bar=interval_bar(totals.pass_rate),
    )
    cards = [
        *([passing] if totals.has_verdicts else []),
        _card(
            "Mean reward",
            score(totals.reward.mean),
            basis(totals) if totals.graded else "nothing was graded",
            coverage_text(totals),
            f"assurance: {assurance_text(totals)}" if totals.assurance else None,
            bar=interval_bar(totals.reward),
        ),
        _card(
            "Cells",
            f"{totals.total:,}",
            cells,
            f"{totals.errors:,} could not be graded, {totals.skipped:,} skipped",
            f"{summary.missing:,} planned without a result" if summary.missing else None,
            f"{totals.flagged:,} with signs of tampering" if totals.flagged else None,
            bar=shares_bar(totals),
        ),
        _cost(summary),
    ]
    if totals.judgements or totals.judgements_cached:
        cards.append(_judge_cost(summary))
    cards.extend(
        _card(
            f"Passed {each.k} of {each.k} trials",
            percent(each.hat_k),
            pass_k_text(each),
            pass_k_basis(each),
        )
        for each in (totals.pass_k[1:] if totals.has_verdicts else ())
    )
    if summary.agreement is not None:
        measure = summary.agreement.get("kappa", summary.agreement.get("pearson"))
        shown = score(measure) if isinstance(measure, float | int) else "undefined"
        cards.append(_card("Agreement with labels", shown, agreement_text(summary)))
    for each in summary.standings:
        kappa = each.card.kappa.value
        shown = "undefined" if kappa is None else score(kappa)
        title = f"Kappa of {one_line(each.grader, 40)}"
        cards.append(_card(title, f"{shown} (stale)" if each.is_stale else shown, each.line))
    return element("section", *cards, class_="cards", aria_label="Summary")


def _cost(summary: Summary) -> Html:
    totals = summary.totals
    tokens = "unknown tokens" if totals.tokens is None else f"{totals.tokens:,} tokens"
    if totals.tokens is not None and totals.tokens_unknown:
        tokens += f" + {count(totals.tokens_unknown, 'cell')} unknown"
    partly = totals.cost_usd is not None and totals.cost_unknown > 0
    return _card(
        "Known agent cost" if partly else "Agent cost",
        cost(totals.cost_usd, 0 if partly else totals.cost_unknown),
        f"+ {count(totals.cost_unknown, 'cell')} of unknown cost" if partly else None,
        tokens,
        f"{duration(totals.seconds)}, all cells added up",
    )


def _judge_cost(summary: Summary) -> Html:
    totals = summary.totals
    unknown = totals.judge_cost_unknown
    partly = totals.judge_cost_usd is not None and unknown > 0
    return _card(
        "Known judge cost" if partly else "Judge cost",
        cost(totals.judge_cost_usd, 0 if partly else unknown),
        f"+ {count(unknown, 'judgement')} of unknown cost" if partly else None,
        judgements_text(totals),
    )


def _card(title: str, value: str, *notes: str | None, bar: Html | None = None) -> Html:
    return element(
        "dl",
        element("dt", title),
        element("dd", value, class_="value"),
        element("dd", bar) if bar else None,
        *(element("dd", note, class_="note") for note in notes if note),
        class_="card",
    )


_LINES = 60
_WIDTH = 2_000
_MAX_FACTS = 30
_MAX_NODES = 120

_WORDS: dict[Ended, str] = {
    "pass": "pass",
    "scored": "scored",
    "fail": "fail",
    "error": "error",
    "skipped": "skipped",
}


def cell_element(
    opened: Opened, *, anchor: str, unfolded: bool = False, shelf: Shelf | None = None
) -> Html:
    """A cell as a line that opens."""
    cell = opened.cell
    state = ended(cell)
    reward = reward_of(cell) if state not in ("error", "skipped") else None
    agent = " · ".join(one_line(name, 60) for name in (cell.harness, cell.model) if name)
    details = " · ".join(text for text in (agent, f"trial {cell.trial}") if text)
    flags = element("span", "flagged", class_="tag error") if cell.flags else None
    assurance = element("span", cell.assurance, class_="tag") if cell.assurance else None
    summary = element(
        "summary",
        status_element(state),
        element("span", one_line(cell.case, 120), class_="name"),
        element("span", details, class_="note"),
        flags,
        assurance,
        element(
            "span", apart(reward, cell.threshold)[0] if reward is not None else "", class_="end"
        ),
    )
    body = element("div", *_body(opened, shelf), class_="body", id=anchor)
    return element("details", summary, body, class_=f"cell {state}", open=unfolded)


def status_element(state: Ended) -> Html:
    """An outcome as a shape and a word."""
    glyph = element("span", GLYPHS[state], aria_hidden="true")
    return element("span", glyph, f" {_WORDS[state]}", class_=f"mark {state}")


def _body(opened: Opened, shelf: Shelf | None) -> list[Html]:
    cell = opened.cell
    parts = [element("p", sentence(cell), class_="why")]
    if cell.content:
        parts.append(element("p", "\n".join(first_lines(cell.content, 10)), class_="soft"))
    parts.extend(
        element("p", element("span", "flagged", class_="tag error"), f" {one_line(flag, 300)}")
        for flag in cell.flags[:_MAX_FACTS]
    )
    if opened.scores:
        budget = [_MAX_NODES]
        parts.append(element("h3", "Scores"))
        parts.extend(_node(node, budget, 0) for node in opened.scores if budget[0] > 0)
        if budget[0] <= 0:
            parts.append(element("p", f"Only the first {_MAX_NODES} are shown.", class_="note"))
    parts.extend(
        element("p", f"{one_line(each.grader, 60)}: {each.line}", class_="note")
        for each in (shelf.of_cell(cell)[:_MAX_FACTS] if shelf else ())
    )
    if lines := left_out(cell):
        parts.append(element("h3", "Not graded"))
        shown = "\n".join(lines[:_LINES])
        parts.append(element("pre", shown, tabindex="0", dir="auto"))
    parts += _work(opened)
    facts = [
        duration(cell.seconds),
        f"cost {cost(cell.cost_usd, 1 if cell.cost_usd is None else 0)}",
        "unknown tokens" if cell.tokens is None else f"{cell.tokens:,} tokens",
        f"graded by {one_line(cell.digest, 80)}" if cell.digest else "",
        one_line(cell.file, 200),
    ]
    parts.append(element("p", " · ".join(fact for fact in facts if fact), class_="note"))
    return parts


def _work(opened: Opened) -> list[Html]:
    """What was asked, done, left and answered."""
    parts: list[Html] = []
    if opened.prompt:
        parts += [element("h3", "Prompt"), _block(opened.prompt)]
    if opened.steps:
        parts.append(element("h3", f"What was done: {count(len(opened.steps), 'step')}"))
        parts.append(element("ol", *map(_moment, opened.steps), class_="steps"))
    if opened.changes:
        parts.append(element("h3", f"What it left: {count(len(opened.changes), 'file')} changed"))
        parts += map(_change, opened.changes)
    if opened.answer:
        parts += [element("h3", "Answer"), _block(opened.answer)]
    return parts + [element("p", note, class_="note") for note in opened.notes]


def _block(text: str) -> Html:
    shown = "\n".join(first_lines(text, _LINES, width=_WIDTH))
    return element("pre", shown, tabindex="0", dir="auto")


def _moment(moment: Moment) -> Html:
    label = element("span", one_line(moment.label, 120), class_="label")
    text = _block(moment.text) if moment.text.strip() else None
    return element("li", label, text, class_="error" if moment.is_error else None)


_TONES = {"+": "add", "-": "del", "@": "at"}


def _change(change: FileChange) -> Html:
    lines = [
        element("span", f"{line}\n", class_=_TONES.get(line[:1]))
        for line in first_lines(change.diff, 10 * _LINES, width=_WIDTH)
    ]
    title = joined(
        element("span", change.how, class_="tag"), element("span", change.path, class_="name")
    )
    shown = element("pre", *lines, tabindex="0", class_="diff")
    return element(
        "details", element("summary", title), shown, class_="node skipped", open=len(lines) < 80
    )


def _node(node: SubScore, budget: list[int], depth: int) -> Html:
    """One score, its evidence and the scores below it; the budget is what may still be shown."""
    budget[0] -= 1
    state = node_outcome(node)
    words = [word for word in (node.assurance, "gate" if node.gate else None) if word]
    tags = [element("span", word, class_="tag") for word in words]
    if not node.gate and node.weight != 1.0:
        word = "penalty" if node.weight < 0 else "weight"
        tags.append(element("span", f"{word} {score(abs(node.weight))}", class_="note"))
    title = joined(
        status_element(state),
        element("span", name_of(node), class_="name"),
        *tags,
        element("span", score(node.value) if node.value is not None else "", class_="end"),
    )
    facts = evidence(node, lines=_LINES, width=_WIDTH, parameters=True)
    shown = element("dl", *(_fact(fact) for fact in facts[:_MAX_FACTS]), class_="facts")
    below = [
        _node(child, budget, depth + 1)
        for child in node.children or ()
        if budget[0] > 0 and depth < MAX_DEPTH
    ]
    if not facts and not below:
        return element("div", element("p", title), class_=f"node {state}")
    inside = joined(shown if facts else None, *below)
    opened = state in ("fail", "error")
    return element(
        "details", element("summary", title), inside, class_=f"node {state}", open=opened
    )


def _fact(fact: Evidence) -> Html:
    text = "\n".join(fact.lines)
    if len(fact.lines) == 1 and len(text) <= 400:
        return joined(element("dt", fact.label), element("dd", text, dir="auto"))
    block = element("pre", text, tabindex="0", dir="auto")
    if fact.label == "parameters":  # what the author wrote anyway
        folded = element("details", element("summary", fact.label, class_="note"), block)
        return element("dd", folded, class_="wide")
    return joined(element("dt", fact.label, class_="wide"), element("dd", block, class_="wide"))


_MAX_CHARACTERS = 20_000_000
"""Characters of cells in one file: browsers open that without trouble."""

_TITLES: dict[Outcome, str] = {
    "fail": "Failed",
    "error": "Could not be graded",
    "skipped": "Skipped",
    "pass": "Passed",
}


def write_html(
    path: str | os.PathLike[str],
    review: Review,
    *,
    fail_under: float | None = None,
    strict: bool = False,
    max_characters: int = _MAX_CHARACTERS,
) -> Verdict:
    """Write the report; the file is there whole or not at all."""
    decided = verdict(review.summary, fail_under=fail_under, strict=strict)
    anchors = {cell.key: f"cell-{number}" for number, cell in enumerate(review.cells, 1)}
    with replacing(path) as file:
        file.write(f'<!doctype html>\n<html lang="en">\n{page_head(_title(review))}\n<body>\n')
        file.write(f"{_header(review, decided)}\n<main>\n{cards_element(review.summary)}\n")
        first = {cell.key[:3]: anchors[cell.key] for cell in reversed(review.cells)}
        file.write(matrix_element(review.summary, first))
        file.write(leaderboard_element(review.summary))
        file.write(causes_element(review.summary))
        for piece in _cells(review, anchors, max_characters):
            file.write(f"{piece}\n")
        file.write(f"{_configuration(review)}\n</main>\n{_footer()}\n</body>\n</html>\n")
    return decided


def _header(review: Review, decided: Verdict) -> Html:
    state: Outcome = "pass" if decided.code == 0 else "fail" if decided.code == 1 else "error"
    groups = review.summary.groups
    facts = [
        one_line(review.run.id, 80) if review.run.label else "",
        one_line(review.run.created_at, 40),
        f"assay {one_line(review.run.assay, 40)}" if review.run.assay else "",
        count(len({row.case for row in groups}), "case"),
        count(len(review.summary.leaderboard), "agent"),
        count(review.summary.totals.total, "cell"),
    ]
    glyph = element("span", GLYPHS[state], aria_hidden="true")
    return element(
        "header",
        element("h1", _title(review)),
        element("p", " · ".join(fact for fact in facts if fact), class_="soft"),
        element("p", glyph, f" {decided.line}", class_=f"verdict {state}"),
    )


def _title(review: Review) -> str:
    return one_line(review.run.label, 120) or f"Run {one_line(review.run.id, 80)}"


def _cells(review: Review, anchors: Mapping[CellKey, str], room: int) -> Iterator[Html]:
    """The cells by outcome, each section with a note of how many it leaves out."""
    totals = review.summary.totals
    numbers: dict[Outcome, int] = {
        "fail": totals.failed,
        "error": totals.errors,
        "skipped": totals.skipped,
        "pass": totals.passed,
    }
    for state in OUTCOMES:
        if not numbers[state]:
            continue
        number = element("span", f"{numbers[state]:,}", class_="n")
        title = _TITLES[state]
        if state == "pass" and totals.scored:
            title = "Passed or scored" if totals.scored < totals.passed else "Scored"
        yield element("h2", title, number)
        shown = 0
        for cell in review.of(state):
            unfolded = len(review.cells) == 1 or (state == "fail" and shown == 0)
            piece = cell_element(
                review.open(cell),
                anchor=anchors[cell.key],
                unfolded=unfolded,
                shelf=review.shelf,
            )
            room -= len(piece)
            if room < 0:
                break
            shown += 1
            yield piece
        if cut := numbers[state] - shown:
            run = one_line(review.run.id, 80)
            more = f"… and {cut:,} more, left out of this page: assay report {run} --all"
            yield element("p", more, class_="note")


def _configuration(review: Review) -> Html:
    """Everything that it takes to run this again."""
    config: dict[str, Json] = {
        "run": review.run.id,
        "created_at": review.run.created_at,
        "config": tidy(review.run.config),
        "digests": tidy(review.run.digests),
    }
    lines = first_lines(json.dumps(config, ensure_ascii=False, indent=2), 2_000)
    summary = element("summary", element("span", "Everything that decided what was run"))
    text = element("pre", "\n".join(lines), tabindex="0")
    body = element("div", text, class_="body")
    return joined(element("h2", "Configuration"), element("details", summary, body, class_="cell"))


def _footer() -> Html:
    return element(
        "footer",
        "Written by assay. Intervals are 95 %; means are over graded cells, and say of how many. "
        "This page runs no script and asks nothing of any network.",
    )
