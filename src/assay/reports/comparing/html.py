"""A comparison as one HTML file."""

from __future__ import annotations

import os
from io import StringIO

from assay.reports.comparing.comparison import RunComparison
from assay.reports.comparing.page import ending_of, render_comparison
from assay.reports.files import replacing
from assay.reports.one_file import safe_json, write_document
from assay.reports.page import TextPage
from assay.reports.plain import one_line

_WIDTH = 120


def write_comparison_html(
    path: str | os.PathLike[str], found: RunComparison, *, is_gate: bool
) -> None:
    """Write a comparison; the file is there whole or not at all."""
    told = StringIO()
    render_comparison(TextPage(told, width=_WIDTH), found, is_gate=is_gate, shown=None)
    names = [one_line(side.label or side.run, 60) for side in (found.before, found.after)]
    data = {"comparison": safe_json(found), "ending": ending_of(found, is_gate=is_gate)}
    title = f"{' → '.join(dict.fromkeys(names))} · assay"
    with replacing(path) as file:
        write_document(file, title=title, told=told.getvalue(), data=data)
