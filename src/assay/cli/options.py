"""What several commands share."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Outputs", "state_home", "worker_count"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """Where results go besides the terminal, and what passes.

    Attributes:
        json: One JSON object on standard output, and nothing else there.
        junit: File for JUnit XML.
        html: File for the HTML report.
        fail_under: Mean reward that passes; None asks every graded cell to pass.
    """

    json: bool = False
    junit: str | None = None
    html: str | None = None
    fail_under: float | None = None


def state_home() -> str:
    """Where state lives: ``ASSAY_HOME``, or ``.assay`` in the working directory."""
    return os.environ.get("ASSAY_HOME") or str(Path.cwd() / ".assay")


def worker_count(workers: int | None) -> int:
    """How many cells to work on at once."""
    return workers or len(os.sched_getaffinity(0))
