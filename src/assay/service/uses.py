"""Operations on what depends on a stored grader, and what it gave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.reports.histogram import Bar, histogram
from assay.service.graders import of_graders
from assay.service.operation import Desk, InProject, ThatGrader
from assay.store.catalog import GraderRecord
from assay.store.jobs import JobRecord, Jobs
from assay.store.pages import Stretch
from assay.store.uses import MOST_COUNTED, GivenScore, GraderUse, Uses

_LATELY = 1_000
_BARS = 20
_NEWEST_JOBS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenScores:
    """What a grader gave lately, whatever its version.

    Attributes:
        n: How many outcomes were looked at: the newest, up to 1,000.
        scored: Those that are a number.
        skipped: Those that did not apply.
        errors: Those that could not be graded; they are no zeros.
        mean: Of the scores; null without any.
        bars: Their histogram.
    """

    n: int = 0
    scored: int = 0
    skipped: int = 0
    errors: int = 0
    mean: float | None = None
    bars: tuple[Bar, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderUsage:
    """What depends on a grader, and what it gave lately.

    Attributes:
        use: What depends on it.
        most_counted: Scores are counted up to this many.
        jobs: Its newest jobs, newest first.
        given: What it gave lately.
        consequences: What deleting it means, sentence by sentence.
    """

    use: GraderUse
    most_counted: int
    jobs: tuple[JobRecord, ...]
    given: GivenScores
    consequences: tuple[str, ...]


@of_graders("GET", "/{key}/use")
def show_use(desk: Desk, grader_key: ThatGrader, *, project: InProject = None) -> GraderUsage:
    """What depends on a grader, what it gave lately, and what deleting it would mean."""
    grader = desk.graders.get(grader_key)
    uses = Uses(desk.database, desk.project)
    use = uses.of([grader_key])[grader_key]
    newest = Jobs(desk.database).page(desk.project, Stretch(_NEWEST_JOBS), grader=grader_key)
    return GraderUsage(
        use=use,
        most_counted=MOST_COUNTED,
        jobs=tuple(newest),
        given=_given(uses.given(grader_key, limit=_LATELY)),
        consequences=tuple(_consequences(grader, use)),
    )


def _given(given: Sequence[GivenScore]) -> GivenScores:
    scores = [one.score for one in given if one.score is not None]
    return GivenScores(
        n=len(given),
        scored=len(scores),
        skipped=sum(one.status == "skipped" for one in given),
        errors=sum(one.status == "error" for one in given),
        mean=sum(score / len(scores) for score in scores) if scores else None,
        bars=histogram(scores, _BARS),
    )


def _consequences(grader: GraderRecord, use: GraderUse) -> Sequence[str]:
    said = [f"The key {grader.key} is free for another grader."]
    if use.active_jobs:
        jobs = "1 job that has" if use.active_jobs == 1 else f"{use.active_jobs} jobs that have"
        said.append(f"{jobs} not ended will be cancelled.")
    if use.scores:
        more = " or more" if use.scores >= MOST_COUNTED else ""
        scores = "1 score" if use.scores == 1 else f"{use.scores:,}{more} scores"
        said.append(f"{scores} that it gave stay, and can still be traced to its versions.")
    else:
        said.append("It gave no scores that are stored.")
    return said
