"""Grade rows of a stored dataset, as jobs do: each row ends as a score, a skip or an error."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from assay.errors import InputError
from assay.scoring.graded import Graded
from assay.store.catalog import GraderVersion
from assay.store.datasets import DatasetRow
from assay.store.scores import ScoreRecord
from assay.tasks.rows import read_row
from assay.types.submission import Submission

__all__ = ["Grade", "grade_rows"]

Grade: TypeAlias = "Callable[[Sequence[tuple[str, Submission]]], Awaitable[list[Graded]]]"


async def grade_rows(
    version: GraderVersion, rows: Sequence[DatasetRow], grade: Grade
) -> list[tuple[int, ScoreRecord]]:
    """Grade some rows.

    Returns:
        Number and outcome of every row, as `Jobs.add_scores` takes them.
    """
    items: list[tuple[str, Submission]] = []
    graded: dict[str, Graded] = {}
    for row in rows:
        try:
            items.append((row.id, read_row(row.data, row.number).submission))
        except InputError as error:
            name = f"{version.key}@{version.number}"
            failed = Graded.failed(row.id, str(error), outcome="bad_item")
            graded[row.id] = failed.by(name, version.digest)
    if items:
        graded |= {one.id: one for one in await grade(items)}
    return [
        (row.number, ScoreRecord(project=version.project, item=row.id, graded=graded[row.id]))
        for row in rows
    ]
