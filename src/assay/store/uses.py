"""`Uses`: what depends on stored graders, and what they gave lately."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.scoring.results import Status
from assay.store.database import Database
from assay.store.table import Table

MOST_COUNTED = 10_000
"""Scores of a grader that are counted; of more it is known that there are more."""

_ACTIVE = "status IN ('queued', 'running')"


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderUse:
    """How much depends on a grader.

    Attributes:
        jobs: Jobs that grade with it, ended ones too.
        active_jobs: Those that have not ended: without force it cannot be deleted.
        scores: Scores that it gave, counted up to `MOST_COUNTED`.
        datasets: Keys of the datasets that jobs graded with it, at most 20.
        last_used_at: When the newest score was stored; empty for never.
    """

    jobs: int = 0
    active_jobs: int = 0
    scores: int = 0
    datasets: tuple[str, ...] = ()
    last_used_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenScore:
    """A score that a grader gave, without its evidence."""

    version: int | None
    status: Status
    score: float | None
    created_at: str


class Uses:
    """What depends on the graders of a project."""

    def __init__(self, database: Database, project: str) -> None:
        self._database = database
        self._project = project

    def of(self, keys: Sequence[str]) -> dict[str, GraderUse]:
        """The use of each of some graders."""
        if not keys:
            return {}
        marks = ", ".join("?" * len(keys))
        ours = f"project = ? AND grader_key IN ({marks}) AND {_LIVE}"
        jobs = {
            key: (count, active)
            for key, count, active in self._database.rows(
                f"SELECT grader_key, count(*), sum(CASE WHEN {_ACTIVE} THEN 1 ELSE 0 END) "
                f"FROM job WHERE {ours} GROUP BY grader_key",
                *(self._project, *keys),
            )
        }
        datasets: dict[str, list[str]] = {}
        if jobs:
            for key, dataset in self._database.rows(
                f"SELECT DISTINCT grader_key, dataset_key FROM job WHERE {ours} "
                "ORDER BY grader_key, dataset_key",
                *(self._project, *keys),
            ):
                datasets.setdefault(key, []).append(dataset)
        found: dict[str, GraderUse] = {}
        for key in keys:
            many, active = jobs.get(key, (0, 0))
            count, last = self._scores(key)
            found[key] = GraderUse(
                jobs=many,
                active_jobs=active,
                scores=count,
                datasets=tuple(datasets.get(key, [])[:20]),
                last_used_at=last,
            )
        return found

    def _scores(self, key: str) -> tuple[int, str]:
        newest = self.given(key, limit=1)
        if not newest:
            return 0, ""
        count = self._database.value(
            f"SELECT count(*) FROM (SELECT 1 FROM score WHERE {_GIVEN} LIMIT ?) AS found",
            *(self._project, key, self._project, key, MOST_COUNTED),
        )
        return count, newest[0].created_at

    def given(self, key: str, *, limit: int) -> list[GivenScore]:
        """The newest scores of a grader, whatever its version, newest first."""
        where = {_GIVEN: (self._project, key, self._project, key)}
        given = Table(self._database, "score", GivenScore)
        return given.select(where, order="seq DESC", limit=limit)


_GIVEN = (
    "project = ? AND grader_key = ? AND (version IS NULL OR version >= "
    "(SELECT earliest FROM grader WHERE project = ? AND key = ? AND deleted_at = ''))"
)
_LIVE = "grader IN (SELECT seq FROM grader WHERE deleted_at = '')"
"""Not of a deleted grader that had the same key."""
