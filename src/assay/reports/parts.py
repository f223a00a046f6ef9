"""What the parts of a graded dataset come to, as a run is summed up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from assay.eval.grades import Tally
from assay.reports.summary import Cause, NotGraded, Summary, cause_key
from assay.reports.totals import Totals
from assay.scoring.intervals import wilson
from assay.scoring.json_safe import Json
from assay.store.windows import Ends

__all__ = ["summary_of_parts"]


def summary_of_parts(told: Mapping[str, Json]) -> Summary:
    """The summary of parts, of what their ``summary.json`` tells.

    Raises:
        KeyError, ShapeError: If it is none.
    """
    tally = Tally.from_dict(told)
    ends = Ends(
        passed=tally.passed - tally.scored,
        failed=tally.failed,
        errors=tally.errors,
        skipped=tally.skipped,
        scored=tally.scored,
    )
    totals = Totals(
        total=tally.rows,
        graded=tally.graded,
        ends=ends,
        shown=ends.shown,
        has_verdicts=ends.has_verdicts,
        coverage=tally.graded / tally.rows if tally.rows else None,
        flagged=tally.flagged,
        cases=tally.graded,
        reward=tally.mean(),
        pass_rate=wilson(tally.passed, tally.graded),
    )
    partly = NotGraded(cells=tally.partly, share=tally.share, graders=tally.skipped_graders)
    return Summary(
        totals=totals,
        malformed=cast("int", told["left_out"]),
        causes=tuple(
            Cause(times, text, cause_key(text)) for text, times in tally.commonest_causes()
        ),
        not_graded=partly if tally.partly else None,
    )
