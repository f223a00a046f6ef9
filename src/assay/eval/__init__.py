"""Running tasks: rollouts, groups, matrices, resume; what the results are worth for training."""

from assay.eval.runner import run_cells, run_tasks
from assay.scoring.advantage import dr_grpo, group_relative, rloo
from assay.types.job import Job
from assay.types.run import Rewarded, Run

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
