"""Scores that are written in, by people or programs: for custom graders only."""

from __future__ import annotations

from collections.abc import Mapping

from assay.errors import InputError, Location
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.store.catalog_records import GraderVersion, ScoreRecord, ScoreSource

__all__ = ["written_score"]


def written_score(
    version: GraderVersion,
    item: str,
    score: float,
    *,
    place: str,
    source: ScoreSource,
    reason: str = "",
    details: Mapping[str, Json] | None = None,
) -> ScoreRecord:
    """A score that somebody gives in the name of a grader.

    Args:
        version: The grader's newest version.
        item: Id of what was graded.
        score: Any finite number.
        place: Where it stands in what was sent, for messages.
        source: Who gives it.
        reason: Why, in one line.
        details: Evidence.

    Raises:
        InputError: For a grader that gives its scores itself.
        ScoreError: For a score that is not finite.
    """
    if version.kind != "custom":
        raise InputError(
            f"{version.key!r} is a {version.kind} grader: it gives its scores itself",
            location=Location(field=f"{place}.grader"),
            hint="use one of the kind 'custom'",
        )
    graded = Graded(
        id=item,
        status="scored",
        score=score,
        reason=reason,
        details=details or {},
        grader=f"{version.key}@{version.number}",
        digest=version.digest,
    )
    return ScoreRecord(project=version.project, item=item, source=source, graded=graded)
