"""Grades against labels: collects pairs cell by cell and writes the agreement as plain JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from assay.reports.outcome import outcome, reward_of
from assay.scoring.intervals import Interval
from assay.scoring.json_safe import Json
from assay.store.records import CellRecord

if TYPE_CHECKING:
    from assay.scoring.agreement import Agreement, Confusion, Correlation

__all__ = ["Labels", "agreement_dict"]


class Labels:
    """Labels by case, and what the graders said of each labelled cell so far."""

    def __init__(self, labels: Mapping[str, bool | float]) -> None:
        self._labels = labels
        self._predicted: list[bool | float | None] = []
        self._truth: list[bool | float] = []

    def add(self, cell: CellRecord) -> None:
        """Pair the cell with its label, if it has one."""
        label = self._labels.get(cell.case)
        if label is None:
            return
        reward = reward_of(cell)
        verdict = None if reward is None else outcome(cell) == "pass"
        self._predicted.append(verdict if isinstance(label, bool) else reward)
        self._truth.append(label)

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
