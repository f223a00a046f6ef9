"""Running tasks: rollouts, groups, matrices, resume; what the results are worth for training.

Here are cells: planned by `planning`, run and graded by `runner` and `rollout`, kept by `matrix` as
`records` says. Rows of datasets are in `rows`: graded by `grading`, kept by one of its two sinks.
PASS is decided in `assay.reports.summary`. A case is worked in and graded in `workspaces`; the same
work on Ray is `cluster`; `proofs`, `cheats` and `calibration` prove cases and graders before use.

The names are loaded when they are first used: much of what lies in this room runs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.on_demand import names_on_demand

if TYPE_CHECKING:
    from assay.eval.runner import run_tasks
    from assay.eval.span_export import SpanExport
    from assay.scoring.advantage import dr_grpo, group_relative, rloo
    from assay.types.run import Job, Rewarded, Run

__all__ = [
    "Job",
    "Rewarded",
    "Run",
    "SpanExport",
    "dr_grpo",
    "group_relative",
    "rloo",
    "run_tasks",
]

_HOMES = {
    "Job": "assay.types.run",
    "Rewarded": "assay.types.run",
    "Run": "assay.types.run",
    "SpanExport": ".span_export",
    "dr_grpo": "assay.scoring.advantage",
    "group_relative": "assay.scoring.advantage",
    "rloo": "assay.scoring.advantage",
    "run_tasks": ".runner",
}

__getattr__ = names_on_demand(__name__, _HOMES)
