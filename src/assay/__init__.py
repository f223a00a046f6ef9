"""assay turns an LLM's answer, or an agent's work, into a reward you can trust.

The public names are loaded when first used, so that importing assay costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.on_demand import names_on_demand
from assay.version import __version__ as __version__

if TYPE_CHECKING:
    from assay.client import AsyncClient, Client
    from assay.environment import Answer, Environment
    from assay.environment.channel import connect
    from assay.errors import AssayError
    from assay.eval import group_relative
    from assay.graders import Grader, combine, combine_all, combine_any
    from assay.scoring import EvaluationResult, Grade, SubScore
    from assay.tasks import Task, Taskset
    from assay.types import Job, Rewarded, Run, StringThread, Submission, Trace

_HOMES = {
    "assay.client": ("AsyncClient", "Client"),
    "assay.environment": ("Answer", "Environment"),
    "assay.environment.channel": ("connect",),
    "assay.errors": ("AssayError",),
    "assay.eval": ("group_relative",),
    "assay.graders": ("Grader", "combine", "combine_all", "combine_any"),
    "assay.scoring": ("EvaluationResult", "Grade", "SubScore"),
    "assay.tasks": ("Task", "Taskset"),
    "assay.types": ("Job", "Rewarded", "Run", "StringThread", "Submission", "Trace"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Answer",
    "AssayError",
    "AsyncClient",
    "Client",
    "Environment",
    "EvaluationResult",
    "Grade",
    "Grader",
    "Job",
    "Rewarded",
    "Run",
    "StringThread",
    "SubScore",
    "Submission",
    "Task",
    "Taskset",
    "Trace",
    "combine",
    "combine_all",
    "combine_any",
    "connect",
    "group_relative",
]

__getattr__ = names_on_demand(__name__, _HOME_OF)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
