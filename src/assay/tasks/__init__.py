"""Tasks, task sets, YAML cases and dataset rows: work, described."""

from assay.tasks.task import Agent, RunOptions, Session, Task, Taskset, Work

__all__ = ["Agent", "RunOptions", "Session", "Task", "Taskset", "Work"]
