"""What came of the asking, row by row: scores, what could not be compared, the worst rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from assay.eval.calibration.asking import Asked, Target
from assay.eval.calibration.card import Coverage, Disagreement
from assay.eval.calibration.labelled import LabelledItem, LabelledSet, cluster_of
from assay.eval.calibration.plan import Options
from assay.scoring.graded import Graded

__all__ = ["SAME", "Findings", "truth_of"]

SAME = 1e-9
"""Scores closer than this are the same."""

_SHOWN = 20
_MOST_CAUSES = 5
_MOST_REASON = 500
_MOST_ANSWER = 2_000


@dataclass(frozen=True, slots=True)
class Findings:
    """A grader, the rows it was asked about, and what it said.

    Attributes:
        target: The grader.
        labelled: The rows.
        options: What is measured.
        asked: What came of the asking.
    """

    target: Target
    labelled: LabelledSet
    options: Options
    asked: Asked

    @property
    def threshold(self) -> float:
        """The score from which a row passes."""
        own, said = self.target.threshold, self.options.threshold
        return own if said is None else said

    def score(self, one: LabelledItem, variant: str = "plain", repeat: int = 0) -> float | None:
        """A row's score; None where it has none that can be compared."""
        graded = self.asked.of(one.item.digest, variant, repeat)
        if graded is None or graded.score is None:
            return None
        is_verdict = self.labelled.scale.kind == "verdict"
        return graded.score if is_verdict or 0.0 <= graded.score <= 1.0 else None

    def highest(self, one: LabelledItem) -> float | None:
        """The best score of a row's repeats: what chance gives is not an attack's success."""
        return max(self._repeats(one), default=None)

    def lowest(self, one: LabelledItem) -> float | None:
        """The worst score of a row's repeats."""
        return min(self._repeats(one), default=None)

    def _repeats(self, one: LabelledItem) -> list[float]:
        scores = [self.score(one, repeat=repeat) for repeat in range(self.options.repeats)]
        return [score for score in scores if score is not None]

    def scored(self) -> Iterator[tuple[LabelledItem, float]]:
        """The rows that are compared."""
        for one in self.labelled.items:
            score = self.score(one)
            if score is not None and one.truth is not None:
                yield one, score

    def unlabelled(self) -> list[tuple[float, str]]:
        """The scores of rows without a label, each with its cluster."""
        found: list[tuple[float, str]] = []
        for item in self.labelled.unlabelled:
            graded = self.asked.of(item.digest, "unlabelled")
            if graded is not None and graded.score is not None:
                found.append((graded.score, cluster_of(item, self.labelled.cluster)))
        return found

    def compared(self) -> list[LabelledItem]:
        """The rows with one label, scored or not."""
        return [one for one in self.labelled.items if one.truth is not None]

    def place(self, score: float | None) -> int | None:
        """The class of a score; of numbers, whether it passes."""
        if score is None:
            return None
        scale = self.labelled.scale
        if scale.kind == "number":
            return int(score >= self.threshold - SAME)
        return scale.place(score, self.threshold)

    def coverage(self) -> Coverage:
        """What became of the rows."""
        causes: Counter[str] = Counter()
        skipped = errors = 0
        for one in self.compared():
            graded = self.asked.of(one.item.digest)
            if graded is None or self.score(one) is not None:
                continue
            if graded.status == "skipped":
                skipped += 1
                continue
            errors += 1
            causes[graded.error or f"the score {graded.score} is outside of [0, 1]"] += 1
        return Coverage(
            compared=sum(1 for _ in self.scored()),
            skipped=skipped,
            errors=errors,
            unlabelled=len(self.labelled.unlabelled),
            split=self.labelled.split,
            malformed=self.labelled.malformed,
            causes=dict(causes.most_common(_MOST_CAUSES)),
        )

    def worst(self) -> tuple[Disagreement, ...]:
        """The rows on which both differ most, those of another class first."""
        rows = [
            (self.place(score) != self.place(truth_of(one)), abs(score - truth_of(one)), one, score)
            for one, score in self.scored()
        ]
        rows = [row for row in rows if row[0] or row[1] > 0.25]
        rows.sort(key=lambda row: (-row[0], -row[1], row[2].item.id))
        return tuple(self._disagreement(one, score) for _, _, one, score in rows[:_SHOWN])

    def _disagreement(self, one: LabelledItem, score: float) -> Disagreement:
        graded = cast("Graded", self.asked.of(one.item.digest))
        classes = self.labelled.scale.classes or ("no", "yes")
        labels = self.labelled.scale
        truth = truth_of(one)
        place = labels.place(truth, self.threshold)
        said = f"{truth:.4g}" if labels.kind == "number" else classes[place]
        return Disagreement(
            row=one.item.id,
            label=said,
            score=score,
            verdict=classes[self.place(score) or 0],
            reason=_reason(graded)[:_MOST_REASON],
            file=one.item.file,
            answer=(one.item.submission.answer or "")[:_MOST_ANSWER],
            question=(one.item.submission.question or "")[:_MOST_ANSWER],
            item=one.item.digest,
        )


def truth_of(one: LabelledItem) -> float:
    """The one label of a row that has one."""
    return cast("float", one.truth)


def _reason(graded: Graded) -> str:
    """The grader's words; of a combined grade, those of its parts."""
    if graded.reason:
        return graded.reason
    nodes = graded.details.get("subscores")
    said: Sequence[str] = [
        f"{node.get('name')}: {node.get('reason')}"
        for node in (nodes if isinstance(nodes, list) else [])
        if isinstance(node, dict) and node.get("reason")
    ]
    return "; ".join(said)
