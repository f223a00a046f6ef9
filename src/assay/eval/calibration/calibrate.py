"""Calibrate a grader: ask it what people were asked, and compare."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from assay.eval.calibration.asking import Asked, Keep, Target, ask
from assay.eval.calibration.card import Card, LabelsUsed
from assay.eval.calibration.findings import Findings, truth_of
from assay.eval.calibration.labelled import LabelledSet
from assay.eval.calibration.measures import Pair, compare, compare_people
from assay.eval.calibration.models import cost_of
from assay.eval.calibration.plan import Options, plan
from assay.eval.calibration.robustness import attacks_of, flips_of
from assay.scoring.graded import Graded
from assay.version import __version__

__all__ = ["calibrate", "card_of"]


async def calibrate(
    target: Target,
    labelled: LabelledSet,
    options: Options,
    keep: Keep,
    *,
    again: Callable[[int], AbstractContextManager[object]] = lambda _: nullcontext(),
    on_done: Callable[[Graded], None] = lambda _: None,
) -> Card:
    """Ask a grader about labelled rows and say how far it agrees.

    Raises:
        InputError: For options that do not fit the rows, or a grader that cannot grade them.
    """
    asked = await ask(plan(labelled, options), target, keep, again=again, on_done=on_done)
    return card_of(target, labelled, options, asked)


def card_of(target: Target, labelled: LabelledSet, options: Options, asked: Asked) -> Card:
    """The card that follows from what a grader said."""
    found, scale = Findings(target, labelled, options, asked), labelled.scale
    compared = compare(
        [Pair(score, truth_of(one), one.cluster) for one, score in found.scored()],
        scale,
        threshold=found.threshold,
    )
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
        coverage=found.coverage(),
        threshold=found.threshold,
        measures=compared.measures,
        confusion=compared.confusion,
        baselines=compared.baselines,
        humans=compare_people(
            [(one.labels, found.score(one)) for one in labelled.items],
            scale,
            threshold=found.threshold,
        ),
        flips=flips_of(found),
        attacks=attacks_of(found),
        cost=cost_of(asked.outcomes.values()),
        worst=found.worst(),
        is_named=target.is_named,
    )
