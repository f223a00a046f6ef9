"""What is known of the graders behind scores: their calibration cards."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from assay.client.backend import Page
from assay.scoring.graded import Graded
from assay.store import ScoreRecord

__all__ = ["Calibration", "Grades", "Results"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """How far a grader agrees with people, as `assay calibrate` measured it.

    Attributes:
        grader: Key of the grader.
        digest: Of what gave the scores.
        card: Id of the card, for ``assay calibrate --show``.
        kappa: Agreement beyond chance, in [-1, 1]; None where it is undefined.
        kappa_interval: Its lower and upper end; None where there is none.
        n: Rows that were compared.
        errors: Rows that the grader could not judge.
        stale: Whether the grader has changed since: the numbers are another grader's then.
        changed: What changed, in words; empty unless it is stale.
        line: All of it in one line, as it stands in reports.
    """

    grader: str
    digest: str
    card: str
    kappa: float | None
    kappa_interval: tuple[float, ...] | None
    n: int
    errors: int
    stale: bool
    changed: tuple[str, ...]
    line: str


class Grades(list[Graded]):
    """Outcomes in the order of the items, and the card of the grader that gave them.

    Attributes:
        calibration: The card, also one that is stale; None where the grader has none.
    """

    def __init__(
        self, graded: Iterable[Graded] = (), calibration: Calibration | None = None
    ) -> None:
        super().__init__(graded)
        self.calibration = calibration


@dataclass(frozen=True, slots=True)
class Results(Page[ScoreRecord]):
    """Part of a job's scores, and the card of the grader that gave them.

    Attributes:
        calibration: The card, also one that is stale; None where the grader has none.
    """

    calibration: Calibration | None = None
