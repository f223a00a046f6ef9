"""Begin a task, whatever kind of work it is."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace

from assay.graders.apply import grade_submission
from assay.scoring.json_safe import Json
from assay.scoring.results import EvaluationResult
from assay.tasks.case import Case
from assay.tasks.rows import Row
from assay.tasks.task import Session, Task
from assay.types.run import Prompt
from assay.types.submission import Submission, Workspace

__all__ = ["open_session", "row_session"]


def open_session(task: Task) -> AbstractAsyncContextManager[Session]:
    """The session that begins a task."""
    if isinstance(task.work, Case):
        from assay.eval.case_session import case_session

        return case_session(task.work)
    if isinstance(task.work, Row):
        return row_session(task.work)
    return task.work.open()


@asynccontextmanager
async def row_session(row: Row) -> AsyncGenerator[Session]:
    """A dataset's row that an agent is to answer again."""
    yield RowSession(row)


class RowSession:
    """A recorded answer that waits to be graded."""

    def __init__(self, row: Row) -> None:
        self.prompt: Prompt = row.submission.question
        self.workspace: Workspace | None = None
        self.notes: dict[str, Json] = {}
        self._row = row

    async def grade(self, submission: Submission) -> EvaluationResult:
        """Grade the answer with the row's graders."""
        recorded = replace(self._row.submission, answer=submission.answer)
        return await grade_submission(self._row.graders, recorded)
