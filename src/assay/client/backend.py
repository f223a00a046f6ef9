"""What a client can do, said once: over HTTP (`remote`) or on a store of one's own (`local`)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeAlias, TypeVar

from assay.scoring.json_safe import Json

if TYPE_CHECKING:
    from assay.client.calibration import Calibration, Grades, Results
    from assay.graders.functions import ValidationReport
    from assay.registry import Definition
    from assay.store import (
        DatasetRecord,
        DatasetRow,
        GraderRecord,
        GraderVersion,
        JobRecord,
        ProjectRecord,
        RunRecord,
        ScoreRecord,
    )

__all__ = ["Backend", "Details", "Page", "Rows"]

T = TypeVar("T")

Rows: TypeAlias = "Iterable[Mapping[str, Json]]"


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Part of a list.

    Attributes:
        items: The part, in the list's order.
        next_cursor: Where the next part begins; empty after the last.
    """

    items: Sequence[T]
    next_cursor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """What stands beside a definition when a grader is created.

    Attributes:
        name: For people; the key by default.
        description: What it is for.
        feedback_key: The metric its scores are written to; the key by default.
        note: Why this version was made.
        samples: Rows that the grader must be able to grade before it is stored.
    """

    name: str = ""
    description: str = ""
    feedback_key: str = ""
    note: str = ""
    samples: tuple[Mapping[str, Json], ...] = ()


class Backend(Protocol):
    """The operations; every one may raise `AssayError`, of the same types in both modes."""

    async def create_grader(
        self, project: str, key: str, definition: Definition, details: Details
    ) -> GraderRecord:
        """Store a grader."""
        ...

    async def update_grader(
        self,
        project: str,
        key: str,
        definition: Definition,
        *,
        note: str,
        expected: int | None,
        samples: Sequence[Mapping[str, Json]],
    ) -> GraderRecord:
        """Store a new version."""
        ...

    async def describe_grader(
        self, project: str, key: str, changes: Mapping[str, str]
    ) -> GraderRecord:
        """Change what people read."""
        ...

    async def validate(
        self, project: str, definition: Definition, samples: Sequence[Mapping[str, Json]]
    ) -> ValidationReport:
        """Check a grader and store nothing."""
        ...

    async def grader(self, project: str, key: str) -> GraderRecord:
        """A grader."""
        ...

    async def graders(
        self, project: str, *, limit: int, cursor: str, kind: str | None, query: str
    ) -> Page[GraderRecord]:
        """A part of the graders."""
        ...

    async def version(self, project: str, key: str, number: int) -> GraderVersion:
        """One version of a grader."""
        ...

    async def versions(
        self, project: str, key: str, *, limit: int, cursor: str
    ) -> Page[GraderVersion]:
        """A part of the versions."""
        ...

    async def lock_grader(self, project: str, key: str, *, locked: bool) -> GraderRecord:
        """Lock or unlock."""
        ...

    async def delete_grader(self, project: str, key: str, *, force: bool) -> None:
        """Delete a grader."""
        ...

    async def diff(self, project: str, key: str, older: int | None, newer: int | None) -> str:
        """What changed."""
        ...

    async def export(self, project: str, keys: Sequence[str]) -> dict[str, str]:
        """Graders as files."""
        ...

    async def import_(
        self, project: str, files: Mapping[str, str], *, update: bool
    ) -> Sequence[GraderRecord]:
        """Files as graders."""
        ...

    async def grade(
        self, project: str, key: str, items: Sequence[Mapping[str, Json]], version: int | None
    ) -> Grades:
        """Grade items."""
        ...

    async def calibration(self, project: str, key: str, version: int | None) -> Calibration | None:
        """The card of a version."""
        ...

    async def create_dataset(self, project: str, key: str, name: str, rows: Rows) -> DatasetRecord:
        """Store a dataset: it is spooled here first, so that it can be sent again."""
        ...

    async def dataset(self, project: str, key: str) -> DatasetRecord:
        """A dataset."""
        ...

    async def datasets(self, project: str, *, limit: int, cursor: str) -> Page[DatasetRecord]:
        """A part of the datasets."""
        ...

    async def dataset_rows(
        self, project: str, key: str, *, limit: int, cursor: str
    ) -> Page[DatasetRow]:
        """A part of the rows."""
        ...

    async def delete_dataset(self, project: str, key: str, *, force: bool) -> None:
        """Delete a dataset."""
        ...

    async def create_job(
        self, project: str, grader: str, dataset: str, version: int | None
    ) -> JobRecord:
        """Grade a dataset."""
        ...

    async def job(self, project: str, job: str) -> JobRecord:
        """A job."""
        ...

    async def jobs(self, project: str, *, limit: int, cursor: str) -> Page[JobRecord]:
        """A part of the jobs."""
        ...

    async def cancel_job(self, project: str, job: str) -> JobRecord:
        """Stop a job."""
        ...

    async def results(self, project: str, job: str, *, limit: int, cursor: str) -> Results:
        """A part of a job's scores."""
        ...

    def follow(self, project: str, job: str) -> AsyncIterator[JobRecord]:
        """The job as it gets on; a broken stream is taken up again."""
        ...

    async def add_scores(self, project: str, scores: Sequence[Mapping[str, Json]]) -> int:
        """Write scores."""
        ...

    async def scores(
        self, project: str, *, grader: str | None, item: str | None, limit: int, cursor: str
    ) -> Page[ScoreRecord]:
        """A part of the scores."""
        ...

    async def projects(self) -> Sequence[ProjectRecord]:
        """All projects."""
        ...

    async def create_project(self, key: str, name: str) -> ProjectRecord:
        """Make a project."""
        ...

    async def runs(self, limit: int) -> Sequence[RunRecord]:
        """The newest runs."""
        ...

    async def close(self) -> None:
        """Give the connections back."""
        ...
