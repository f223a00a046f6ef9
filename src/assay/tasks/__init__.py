"""Tasks, task sets, YAML cases and dataset rows: work, described."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.on_demand import names_on_demand

if TYPE_CHECKING:
    from assay.documents import DocumentError
    from assay.tasks.case import Case, load_case, load_cases
    from assay.tasks.grader_files import load_graders
    from assay.tasks.origin import Source
    from assay.tasks.permitted import Rules, SubmissionSpec
    from assay.tasks.task import Agent, RunOptions, Session, Task, Taskset, Work

__all__ = [
    "Agent",
    "Case",
    "DocumentError",
    "Rules",
    "RunOptions",
    "Session",
    "Source",
    "SubmissionSpec",
    "Task",
    "Taskset",
    "Work",
    "load_case",
    "load_cases",
    "load_graders",
]

_HOMES = {
    "Agent": ".task",
    "Case": ".case",
    "DocumentError": "assay.documents",
    "Rules": ".permitted",
    "RunOptions": ".task",
    "Session": ".task",
    "Source": ".origin",
    "SubmissionSpec": ".permitted",
    "Task": ".task",
    "Taskset": ".task",
    "Work": ".task",
    "load_case": ".case",
    "load_cases": ".case",
    "load_graders": ".grader_files",
}

__getattr__ = names_on_demand(__name__, _HOMES)
