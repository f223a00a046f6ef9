"""How far people agree with each other, and a grader with single people: on the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from math import fsum

from assay.eval.calibration.card import Humans
from assay.eval.calibration.scale import VERDICTS, Label, Scale
from assay.scoring.classes import AlphaMetric, KappaWeights, class_confusion, krippendorff_alpha

__all__ = ["compare_people"]

_FEWEST = 5
"""Two raters with fewer rows in common are passed over: agreement on one row has no kappa, and
disagreement has one of 0, so that the mean of many such pairs would only know the bad ones."""

_METRICS: Mapping[str, AlphaMetric] = {"verdict": "nominal", "levels": "ordinal"}


def compare_people(
    rows: Sequence[tuple[Mapping[str, Label], float | None]], scale: Scale, *, threshold: float
) -> Humans | None:
    """Compare people with each other, and the grader with every one of them.

    Cohen's kappa of two people on the rows that both labelled, averaged over the pairs of people
    (Light 1971), and of the grader and one person on the rows of this person, averaged over people;
    both weighted by the number of rows. Each is of two raters who may have habits of their own, so
    the grader reaches the ceiling if it agrees with people as they do with each other. Only rows
    with two labels and a score are used, for both.
    """
    several = [(said, score) for said, score in rows if len(said) > 1]
    if not several:
        return None
    binary = scale if scale.kind == "levels" else VERDICTS
    among: dict[tuple[str, str], list[tuple[int, int]]] = {}
    with_grader: dict[str, list[tuple[int, int]]] = {}
    rated: list[list[float]] = []
    for said, score in several:
        if score is None:
            continue
        values = {who: scale.value(label) for who, label in said.items()}
        places = {who: binary.place(value, threshold) for who, value in values.items()}
        rated.append(list(values.values()))
        for first, second in combinations(sorted(places), 2):
            among.setdefault((first, second), []).append((places[first], places[second]))
        graded = binary.place(score, threshold)
        for who, place in places.items():
            with_grader.setdefault(who, []).append((graded, place))
    alpha = krippendorff_alpha(rated, metric=_METRICS.get(scale.kind, "interval"))
    return Humans(
        items=len(rated),
        kappa=_mean_kappa(among.values(), binary),
        alpha=alpha.value,
        grader=_mean_kappa(with_grader.values(), binary),
        excluded=len(several) - len(rated),
    )


def _mean_kappa(tables: Iterable[Sequence[tuple[int, int]]], scale: Scale) -> float | None:
    """Cohen's kappa of each two raters, and the mean by their rows; None where none is defined."""
    weights: KappaWeights = "quadratic" if scale.kind == "levels" else "none"
    levels = range(len(scale.classes))
    found: list[tuple[float, int]] = []
    for pairs in tables:
        if len(pairs) < _FEWEST:
            continue
        table = class_confusion([a for a, _ in pairs], [b for _, b in pairs], levels=levels)
        if (kappa := table.kappa(weights)) is not None:
            found.append((kappa, len(pairs)))
    rows = sum(n for _, n in found)
    return fsum(kappa * n for kappa, n in found) / rows if rows else None
