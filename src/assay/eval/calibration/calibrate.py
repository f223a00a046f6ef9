"""Calibrate a grader: ask it what people were asked, and compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from assay.eval.calibration.asking import Asked, Keep, Target, ask
from assay.eval.calibration.attacks import dealt
from assay.eval.calibration.card import (
    AttackCount,
    Attacked,
    Card,
    Cost,
    Coverage,
    Disagreement,
    Flipped,
    LabelsUsed,
    Order,
    figure,
)
from assay.eval.calibration.labelled import LabelledItem, LabelledSet
from assay.eval.calibration.measures import Pair, compare, compare_people
from assay.eval.calibration.models import Spending
from assay.eval.calibration.plan import Options, failing, plan, swap_field
from assay.scoring.consistency import (
    OrderedVerdicts,
    Slot,
    attack_success,
    flip_rate,
    position_bias,
)
from assay.scoring.graded import Graded
from assay.version import __version__

__all__ = ["calibrate"]

_SAME = 1e-9
_SHOWN = 20
_MOST_CAUSES = 5
_MOST_REASON = 500
_Winners: TypeAlias = "tuple[Slot | None, Slot | None]"
_OWN_ORDERS = "(the grader asks both itself)"


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

    Args:
        target: The grader.
        labelled: The rows and what people said of them.
        options: What to measure.
        keep: Where judgements are kept, so that an interrupted calibration can be gone on with.
        again: Makes repeats of the same question apart, where something remembers replies.
        on_done: Called with each outcome.

    Raises:
        InputError: For options that do not fit the rows, or a grader that cannot grade them.
    """
    units, spending = plan(labelled, options), Spending()
    asked = await ask(units, target, keep, again=again, on_done=on_done)
    cost = spending.cost(
        judgements=asked.now, seconds=asked.seconds, busy_seconds=asked.busy_seconds
    )
    return _Findings(target, labelled, options, asked).card(cost)


@dataclass(frozen=True, slots=True)
class _Findings:
    """Everything that was asked, and what it comes to."""

    target: Target
    labelled: LabelledSet
    options: Options
    asked: Asked

    @property
    def threshold(self) -> float:
        given = self.options.threshold
        return _threshold(self.target) if given is None else given

    def card(self, cost: Cost) -> Card:
        options, labelled, scale = self.options, self.labelled, self.labelled.scale
        compared = compare(
            [Pair(score, _truth(one), one.cluster) for one, score in self.scored()],
            scale,
            threshold=self.threshold,
            confidence=options.confidence,
            seed=options.seed,
            unlabelled=self.unlabelled(),
        )
        target = self.target
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
            coverage=self.coverage(),
            threshold=self.threshold,
            confidence=options.confidence,
            seed=options.seed,
            measures=compared.measures,
            confusion=compared.confusion,
            baselines=compared.baselines,
            humans=compare_people(
                [(one.labels, self.score(one)) for one in labelled.items],
                scale,
                threshold=self.threshold,
            ),
            flips=self.flips(),
            order=self.order(),
            attacks=self.attacks(),
            cost=cost,
            worst=self.worst(),
        )

    def score(self, one: LabelledItem, variant: str = "plain", repeat: int = 0) -> float | None:
        """A row's score; None where it has none that can be compared."""
        graded = self.asked.of(one.item.digest, variant, repeat)
        if graded is None or graded.score is None:
            return None
        is_verdict = self.labelled.scale.kind == "verdict"
        return graded.score if is_verdict or 0.0 <= graded.score <= 1.0 else None

    def highest(self, one: LabelledItem) -> float | None:
        """The best score of a row's repeats: what chance gives is not an attack's success."""
        scores = [self.score(one, repeat=repeat) for repeat in range(self.options.repeats)]
        return max((score for score in scores if score is not None), default=None)

    def scored(self) -> Iterator[tuple[LabelledItem, float]]:
        """The rows that are compared."""
        for one in self.labelled.items:
            score = self.score(one)
            if score is not None and one.truth is not None:
                yield one, score

    def unlabelled(self) -> list[float]:
        found = [self.asked.of(item.digest, "unlabelled") for item in self.labelled.unlabelled]
        return [one.score for one in found if one is not None and one.score is not None]

    def coverage(self) -> Coverage:
        causes: Counter[str] = Counter()
        skipped = errors = 0
        for one in self.labelled.items:
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
            causes=dict(causes.most_common(_MOST_CAUSES)),
        )

    def flips(self) -> Flipped | None:
        repeats = self.options.repeats
        if repeats < 2:
            return None
        said = [
            [self.place(self.score(one, repeat=repeat)) for repeat in range(repeats)]
            for one in self.compared()
        ]
        found = flip_rate(said, confidence=self.options.confidence)
        return Flipped(
            repeats=repeats,
            rate=figure(found.rate, "student"),
            flipped=found.flipped,
            unscored=found.unscored,
        )

    def place(self, score: float | None) -> int | None:
        """The class of a score; of numbers, whether it passes."""
        if score is None:
            return None
        scale = self.labelled.scale
        if scale.kind == "number":
            return int(score >= self.threshold - _SAME)
        return scale.place(score, self.threshold)

    def order(self) -> Order | None:
        name = _OWN_ORDERS
        compared = self.compared()
        asked: list[_Winners] = [self._own_orders(one) for one in compared]
        if all(slots == (None, None) for slots in asked):
            if not self.options.swap:
                return None
            name = swap_field(self.labelled, self.options.swap)
            asked = [
                (_slot(self.score(one)), _slot(self.score(one, "swapped"))) for one in compared
            ]
        pairs = [
            OrderedVerdicts(forward, swapped, _better(_truth(one)))
            for one, (forward, swapped) in zip(compared, asked, strict=True)
        ]
        found = position_bias(pairs, confidence=self.options.confidence)
        return Order(
            field=name,
            consistency=figure(found.consistency, "wilson"),
            first_slot=figure(found.first_slot, "wilson"),
            both_right=figure(found.both_right, "wilson"),
            ties=found.ties,
            excluded=found.excluded,
        )

    def compared(self) -> list[LabelledItem]:
        """The rows with one label, scored or not."""
        return [one for one in self.labelled.items if one.truth is not None]

    def _own_orders(self, one: LabelledItem) -> _Winners:
        """The winners of both orders, of a grader that asks both itself, by their place."""
        graded = self.asked.of(one.item.digest)
        orders = None if graded is None else graded.details.get("orders")
        values = [
            value
            for order in (orders if isinstance(orders, list) else [])
            if isinstance(order, dict) and isinstance(value := order.get("value"), int | float)
        ]
        if len(values) != 2:
            return None, None
        # A value is for the answer, wherever it stands: in the second order that is second.
        return _slot(float(values[0])), _slot(1.0 - float(values[1]))

    def attacks(self) -> Attacked | None:
        if not self.options.attacks:
            return None
        bad = failing(self.labelled, self.options)
        raised: list[bool | None] = []
        passed: list[bool | None] = []
        families: dict[str, list[int]] = {}
        worst: Counter[str] = Counter()
        for place, attack in dealt(self.options.attacks, len(bad)):
            before = self.highest(bad[place])
            after = self.score(bad[place], f"attack {attack.id}")
            if before is None or after is None:
                raised.append(None)
                continue
            worked = after > before + _SAME
            raised.append(worked)
            if before < self.threshold - _SAME:
                passed.append(after >= self.threshold - _SAME)
            counted = families.setdefault(attack.family, [0, 0])
            counted[0] += worked
            counted[1] += 1
            worst[attack.id] += worked
        rate = attack_success(raised, confidence=self.options.confidence)
        won = attack_success(passed, confidence=self.options.confidence)
        return Attacked(
            source=self.options.attacks_from,
            rows=len(bad),
            raised=figure(rate.success, "wilson"),
            passed=figure(won.success, "wilson"),
            excluded=rate.excluded,
            families={name: AttackCount(*found) for name, found in sorted(families.items())},
            worst=tuple(name for name, times in worst.most_common(_SHOWN) if times),
        )

    def worst(self) -> tuple[Disagreement, ...]:
        """The rows on which both differ most, those of another class first."""
        rows = [
            (self.place(score) != self.place(_truth(one)), abs(score - _truth(one)), one, score)
            for one, score in self.scored()
        ]
        rows = [row for row in rows if row[0] or row[1] > 0.25]
        rows.sort(key=lambda row: (-row[0], -row[1], row[2].item.id))
        return tuple(self._disagreement(one, score) for _, _, one, score in rows[:_SHOWN])

    def _disagreement(self, one: LabelledItem, score: float) -> Disagreement:
        graded = cast("Graded", self.asked.of(one.item.digest))
        classes = self.labelled.scale.classes or ("no", "yes")
        labels = self.labelled.scale
        truth = _truth(one)
        place = labels.place(truth, self.threshold)
        said = f"{truth:.4g}" if labels.kind == "number" else classes[place]
        return Disagreement(
            row=one.item.id,
            label=said,
            score=score,
            verdict=classes[self.place(score) or 0],
            reason=_reason(graded)[:_MOST_REASON],
            file=one.item.file,
        )


def _threshold(target: Target) -> float:
    return 0.5 if target.threshold is None else target.threshold


def _truth(one: LabelledItem) -> float:
    return cast("float", one.truth)


def _slot(score: float | None) -> Slot | None:
    """Which of two answers a score is for: above a half the first."""
    if score is None:
        return None
    if abs(score - 0.5) <= _SAME:
        return "tie"
    return "first" if score > 0.5 else "second"


def _better(truth: float) -> Literal["a", "b"] | None:
    slot = _slot(truth)
    return None if slot == "tie" else "a" if slot == "first" else "b"


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
