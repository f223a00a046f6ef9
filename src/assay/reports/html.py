"""A run as one HTML file that needs nothing else: no script, no request, no outside resource."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping

from assay.reports.figures import count
from assay.reports.files import replacing
from assay.reports.html_cards import cards_element
from assay.reports.html_cell import cell_element
from assay.reports.html_style import STYLE, policy
from assay.reports.html_tables import causes_element, leaderboard_element, matrix_element
from assay.reports.markup import Html, element, joined
from assay.reports.outcome import GLYPHS, OUTCOMES, Outcome
from assay.reports.plain import first_lines, one_line
from assay.reports.review import Review
from assay.reports.summary import Verdict, verdict
from assay.reports.tidy import tidy
from assay.scoring.json_safe import Json
from assay.store.records import CellKey

__all__ = ["write_html"]

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
    max_characters: int = _MAX_CHARACTERS,
) -> Verdict:
    """Write the report; the file is there whole or not at all.

    Args:
        path: Where to.
        review: The run (see `assay.reports.review.review`).
        fail_under: As for `assay.reports.summary.verdict`.
        max_characters: How much is written of cells; the page says what was cut.

    Returns:
        The verdict that the page shows.

    Raises:
        InputError: If nothing can be written there, or for a ``fail_under`` out of range.
    """
    decided = verdict(review.summary, fail_under=fail_under)
    anchors = {cell.key: f"cell-{number}" for number, cell in enumerate(review.cells, 1)}
    with replacing(path) as file:
        file.write(f'<!doctype html>\n<html lang="en">\n{_head(review)}\n<body>\n')
        file.write(f"{_header(review, decided)}\n<main>\n{cards_element(review.summary)}\n")
        first = {cell.key[:3]: anchors[cell.key] for cell in reversed(review.cells)}
        file.write(matrix_element(review.summary, first))
        file.write(leaderboard_element(review.summary))
        file.write(causes_element(review.summary))
        for piece in _cells(review, anchors, max_characters):
            file.write(f"{piece}\n")
        file.write(f"{_configuration(review)}\n</main>\n{_footer()}\n</body>\n</html>\n")
    return decided


def _head(review: Review) -> Html:
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy()),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", f"{_title(review)} · assay"),
        Html(f"<style>{STYLE}</style>"),
    )


def _header(review: Review, decided: Verdict) -> Html:
    state: Outcome = "pass" if decided.code == 0 else "fail" if decided.code == 1 else "error"
    groups = review.summary.groups
    facts = [
        one_line(review.run.id, 80) if review.run.label else "",
        one_line(review.run.created_at, 40),
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
        yield element("h2", _TITLES[state], number)
        shown = 0
        for cell in review.of(state):
            opened = state == "fail" and shown == 0
            piece = cell_element(cell, anchor=anchors[cell.key], opened=opened, shelf=review.shelf)
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
