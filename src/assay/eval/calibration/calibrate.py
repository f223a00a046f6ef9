"""Calibrate a grader: ask it what people were asked, and compare."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from assay.eval.calibration.asking import Judged, Options, Target, ask, plan
from assay.eval.calibration.card import Card, LabelsUsed
from assay.eval.calibration.labelled import LabelledSet
from assay.eval.calibration.measures import Comparison, Pair
from assay.eval.calibration.sections import (
    Findings,
    attacks_of,
    coverage_of,
    flips_of,
    humans_of,
    truth_of,
    worst_of,
)
from assay.eval.calibration.spending import cost_of
from assay.scoring.graded import Graded
from assay.version import __version__

__all__ = ["calibrate", "card_of"]


async def calibrate(
    target: Target,
    labelled: LabelledSet,
    options: Options,
    *,
    earlier: Iterable[tuple[str, Graded]] = (),
    keep: Callable[[Judged], None] = lambda _: None,
    on_done: Callable[[Graded], None] = lambda _: None,
) -> Card:
    """Ask a grader about labelled rows and say how far it agrees; see `ask`.

    Raises:
        InputError: For options that do not fit the rows, or a grader that cannot grade them.
    """
    units = plan(labelled, options)
    outcomes = await ask(units, target, earlier=earlier, keep=keep, on_done=on_done)
    return card_of(target, labelled, options, outcomes)


def card_of(
    target: Target, labelled: LabelledSet, options: Options, outcomes: Mapping[str, Graded]
) -> Card:
    """The card that follows from what a grader said, by the key of the unit."""
    found, scale = Findings(target, labelled, options, outcomes), labelled.scale
    pairs = [Pair(score, truth_of(one), one.cluster) for one, score in found.scored()]
    compared = Comparison(pairs, scale, found.threshold)
    return Card(
        grader=target.name,
        kind=target.kind,
        digest=target.digest,
        alias=target.alias,
        made_of=target.made_of,
        models=target.models,
        assay=__version__,
        labels=LabelsUsed(
            name=labelled.name,
            field=labelled.field,
            digest=labelled.digest,
            kind=scale.kind,
            classes=scale.classes or ("no", "yes"),
            rows=labelled.rows,
            raters=labelled.raters,
            cluster=labelled.cluster,
            clusters=compared.clusters,
        ),
        coverage=coverage_of(found),
        threshold=found.threshold,
        measures=compared.measures(),
        confusion=compared.table.counts,
        baselines=compared.baselines(),
        humans=humans_of(found),
        flips=flips_of(found),
        attacks=attacks_of(found),
        cost=cost_of(outcomes.values()),
        worst=worst_of(found),
        is_named=target.is_named,
    )
