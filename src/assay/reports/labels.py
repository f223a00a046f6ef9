"""Grades against labels: collects pairs cell by cell and writes the agreement as plain JSON."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import repeat
from typing import TYPE_CHECKING

from assay.reports.outcome import outcome, reward_of
from assay.scoring.intervals import Interval
from assay.scoring.json_safe import Json
from assay.store.records import CellRecord

if TYPE_CHECKING:
    from assay.scoring.agreement import Agreement, Confusion, Correlation

__all__ = ["Labels", "agreement_dict"]


class Labels:
    """What the graders said of each labelled cell so far, beside its label.

    Args:
        labels: Labels by case, beside those that cells have among their notes.
    """

    def __init__(self, labels: Mapping[str, bool | float] | None = None) -> None:
        self._labels = labels
        self._predicted: list[bool | float | None] = []
        self._truth: list[bool | float] = []

    def add(self, cell: CellRecord, times: int = 1) -> None:
        """Pair the cell with its label, if it has one; or so many cells that are alike."""
        label = cell.notes.get("label") if self._labels is None else self._labels.get(cell.case)
        if not isinstance(label, bool | int | float):
            return
        label = label if isinstance(label, bool) else float(label)
        reward = reward_of(cell)
        verdict = None if reward is None else outcome(cell) == "pass"
        self._predicted.extend(repeat(verdict if isinstance(label, bool) else reward, times))
        self._truth.extend(repeat(label, times))

    def __bool__(self) -> bool:
        return bool(self._truth) or self._labels is not None

    def agreement(self) -> Agreement:
        """The agreement over all pairs so far; cells that could not be graded count as unscored.

        Raises:
            ScoreError: For labels of mixed kinds, or that are not finite.
        """
        from assay.scoring.agreement import agreement

        return agreement(self._predicted, self._truth)


def agreement_dict(found: Agreement) -> dict[str, Json]:
    """An agreement as plain JSON: the measure, its intervals, and how much it rests on."""
    from assay.scoring.agreement import Confusion

    shared: dict[str, Json] = {
        "n": found.measure.n,
        "unscored": found.unscored,
        "coverage": found.coverage,
    }
    if isinstance(found.measure, Confusion):
        return {"kind": "verdict", **shared, **_confusion(found.measure)}
    return {"kind": "score", **shared, **_correlation(found.measure)}


def _confusion(measure: Confusion) -> dict[str, Json]:
    return {
        "tp": measure.tp,
        "fp": measure.fp,
        "tn": measure.tn,
        "fn": measure.fn,
        "accuracy": measure.accuracy,
        "accuracy_interval": _ends(measure.accuracy_interval()),
        "majority_accuracy": measure.majority_accuracy,
        "balanced_accuracy": measure.balanced_accuracy,
        "kappa": measure.kappa,
        "kappa_interval": _ends(measure.kappa_interval()),
        "sensitivity": measure.sensitivity,
        "specificity": measure.specificity,
        "base_rate": measure.base_rate,
        "predicted_rate": measure.predicted_rate,
    }


def _correlation(measure: Correlation) -> dict[str, Json]:
    return {
        "pearson": measure.pearson,
        "pearson_interval": _ends(measure.pearson_interval()),
        "spearman": measure.spearman,
        "mean_absolute_error": measure.mean_absolute_error,
        "baseline_error": measure.baseline_error,
    }


def _ends(interval: Interval) -> list[Json] | None:
    return None if interval.low is None else [interval.low, interval.high]
