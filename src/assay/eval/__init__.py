"""Running tasks: rollouts, groups, matrices, resume; what the results are worth for training.

The runner is loaded when it is first used: much of what lies in this room runs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.on_demand import names_on_demand
from assay.scoring.advantage import dr_grpo, group_relative, rloo
from assay.types.run import Job, Rewarded, Run

if TYPE_CHECKING:
    from assay.eval.runner import run_cells, run_tasks

__all__ = [
    "Job",
    "Rewarded",
    "Run",
    "dr_grpo",
    "group_relative",
    "rloo",
    "run_cells",
    "run_tasks",
]

_HOMES = {"run_cells": ".runner", "run_tasks": ".runner"}

__getattr__ = names_on_demand(__name__, _HOMES)
