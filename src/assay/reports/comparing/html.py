"""A comparison as one HTML file."""

from __future__ import annotations

import os
from dataclasses import replace
from io import StringIO

from assay.reports.comparing.found import Comparison, comparison_verdict
from assay.reports.comparing.page import ending_of, render_comparison
from assay.reports.comparing.shown import shown
from assay.reports.files import replacing
from assay.reports.one_file import as_json, write_document
from assay.reports.page import PlainPage
from assay.reports.plain import one_line
from assay.reports.summary import Verdict

__all__ = ["write_comparison_html"]

_WIDTH = 120


def write_comparison_html(
    path: str | os.PathLike[str], found: Comparison, *, max_drop: float | None = None
) -> Verdict:
    """Write a comparison; the file is there whole or not at all."""
    decided = comparison_verdict(found, max_drop=max_drop)
    told = StringIO()
    render_comparison(PlainPage(told, width=_WIDTH), found, max_drop=max_drop, shown=None)
    names = [one_line(side.run.label or side.run.id, 60) for side in (found.before, found.after)]
    data = {
        "comparison": as_json(replace(shown(found), verdict=one_line(decided.line, 400))),
        "ending": ending_of(found, decided, max_drop),
    }
    title = f"{' → '.join(dict.fromkeys(names))} · assay"
    with replacing(path) as file:
        write_document(file, title=title, told=told.getvalue(), data=data)
    return decided
