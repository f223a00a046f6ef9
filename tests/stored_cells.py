"""Cells of runs as records, for tests of what reads them."""

from __future__ import annotations

from typing import Any

from assay.store.records import CellRecord

__all__ = ["graded_cell"]


def graded_cell(run: str, case: str = "c", reward: float = 1.0, **more: Any) -> CellRecord:
    """One that was graded, and has passed with the whole reward."""
    told: dict[str, Any] = {"passed": reward >= 1.0, **more}
    return CellRecord(run_id=run, case=case, status="graded", reward=reward, **told)
