"""The cards at the top of the HTML report: each number with what it rests on."""

from __future__ import annotations

from assay.reports.figures import cost, count, duration, percent, percent_interval, score
from assay.reports.html_tables import interval_bar, shares_bar
from assay.reports.markup import Html, element
from assay.reports.plain import one_line
from assay.reports.statistics import (
    agreement_text,
    assurance_text,
    basis,
    coverage_text,
    judgements_text,
    pass_k_basis,
    pass_k_text,
)
from assay.reports.summary import Summary

__all__ = ["cards_element"]


def cards_element(summary: Summary) -> Html:
    """The run in numbers."""
    totals = summary.totals
    between = percent_interval(totals.pass_rate)
    cards = [
        _card(
            "Pass rate",
            percent(totals.pass_rate.mean),
            f"{totals.passed:,} of {totals.graded:,} graded cells",
            f"95 % interval {between}" if between else "too few for an interval",
            bar=interval_bar(totals.pass_rate),
        ),
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
            f"{totals.passed:,} passed, {totals.failed:,} failed",
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
        for each in totals.pass_k[1:]
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
