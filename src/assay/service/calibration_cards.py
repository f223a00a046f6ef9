"""Calibration cards laid out to be read."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from assay.errors import InputError, NotFoundError
from assay.eval.calibration.card import (
    Attacked,
    Card,
    Cost,
    Coverage,
    Disagreement,
    Figure,
    Flipped,
    Humans,
    LabelsUsed,
)
from assay.reports.calibration_card import (
    Measure,
    Verdict,
    compare_cards,
    kappa_words,
    measures_of,
    usd_per_thousand,
)
from assay.scoring.json_safe import record_parameters
from assay.service.labels import SaidLabel, said_of
from assay.service.operation import Desk
from assay.store.cards import CardRecord, Cards
from assay.store.labels import Labels

State = Literal["current", "stale", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CardSummary:
    """A calibration card in one line.

    Attributes:
        id: Its id.
        created_at: When it was made.
        grader: Key of the grader, or its file.
        kind: What it is.
        digest: Of what gave the scores.
        models: The models that it asks.
        kappa: Agreement beyond chance.
        words: What that means.
        balanced_accuracy: The mean of what it finds of each class; null where not measured.
        n: Rows that were compared.
        errors: Rows that the grader could not judge; they are part of no measure.
        field: The field of the labels.
        labels: Where the labels are from.
        raters: People who labelled.
        state: Whether the stored grader is still the same; ``unknown`` for others.
        changed: What changed since, in words.
        asks_models: Whether models were asked.
        usd_per_thousand: Price of a thousand judgements; null where it is not known.
    """

    id: str
    created_at: str
    grader: str
    kind: str
    digest: str
    models: tuple[str, ...]
    kappa: Figure
    words: str
    balanced_accuracy: Figure | None
    n: int
    errors: int
    field: str
    labels: str
    raters: int
    state: State
    changed: tuple[str, ...]
    asks_models: bool
    usd_per_thousand: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CardComparison:
    """A card beside the one before of the same grader.

    Attributes:
        id: The card before.
        created_at: When it was made.
        verdict: Whether the grader agrees better with people now.
        sentence: The same in words.
        same_labels: Whether both rest on the same labels.
        changed: What of the grader changed between them.
    """

    id: str
    created_at: str
    verdict: Verdict
    sentence: str
    same_labels: bool
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CardDetail:
    """All of a calibration card, laid out to be read.

    Attributes:
        summary: Its line in the list.
        labels: What it was compared with.
        coverage: What became of the rows.
        threshold: The score from which a row passes.
        confidence: Of the intervals.
        classes: The classes of the confusion matrix, lowest first.
        confusion: Row by row of people's classes, the counts of the grader's.
        measures: The measures, the one that says most first.
        humans: People among each other; null where only one labelled.
        flips: Repeats; null where every row was asked once.
        attacks: Attacks; null where not asked for.
        cost: What the asking took.
        disagreements: The worst rows, to be read.
        said: What each person said of them, with notes, as the store has it now; by the digest of
            the item.
        comparison: The card before of the same grader; null for the first.
        assay: Version of assay.
    """

    summary: CardSummary
    labels: LabelsUsed
    coverage: Coverage
    threshold: float
    confidence: float
    classes: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]
    measures: tuple[Measure, ...]
    humans: Humans | None
    flips: Flipped | None
    attacks: Attacked | None
    cost: Cost
    disagreements: tuple[Disagreement, ...]
    said: Mapping[str, tuple[SaidLabel, ...]]
    comparison: CardComparison | None
    assay: str


def card_detail(desk: Desk, record: CardRecord) -> CardDetail:
    """All of a card, beside the one before of the same grader."""
    card, before = Card.from_dict(record.body), _before(desk, record)
    earlier = None if before is None else before[1]
    is_levels = card.labels.kind == "levels"
    return CardDetail(
        summary=card_summary(desk, record, card),
        labels=card.labels,
        coverage=card.coverage,
        threshold=card.threshold,
        confidence=card.confidence,
        classes=card.labels.classes if is_levels else ("no", "yes"),
        confusion=card.confusion,
        measures=tuple(measures_of(card, earlier)),
        humans=card.humans,
        flips=card.flips,
        attacks=card.attacks,
        cost=card.cost,
        disagreements=card.worst,
        said=_said(desk, card),
        comparison=None if before is None else _comparison(card, *before),
        assay=card.assay,
    )


def card_summary(desk: Desk, record: CardRecord, card: Card) -> CardSummary:
    """The line of a card in the list."""
    state, changed = _state(desk, record)
    return CardSummary(
        id=record.id,
        created_at=record.created_at,
        grader=card.grader,
        kind=card.kind,
        digest=card.digest,
        models=card.models,
        kappa=card.kappa,
        words=kappa_words(card.kappa),
        balanced_accuracy=card.measures.get("balanced_accuracy"),
        n=card.coverage.compared,
        errors=card.coverage.errors,
        field=card.labels.field,
        labels=card.labels.name,
        raters=card.labels.raters,
        state=state,
        changed=changed,
        asks_models=bool(card.cost.calls or card.cost.hits),
        usd_per_thousand=usd_per_thousand(card.cost),
    )


def _state(desk: Desk, record: CardRecord) -> tuple[State, tuple[str, ...]]:
    """Whether the stored grader of a card is still what it was made with."""
    from assay.registry.definitions import definition_of
    from assay.reports.grader_cards import differences

    try:
        version = desk.graders.version(record.grader)
    except (InputError, NotFoundError):
        return "unknown", ()
    card, definition = Card.from_dict(record.body), definition_of(version)
    if card.kind != version.kind:
        return "unknown", ()
    if definition.digest() in (record.digest, record.alias):
        return "current", ()
    now = {**record_parameters(definition.to_dict()), "version": version.number}
    return "stale", differences(card.made_of, now, card.assay)


def readable_cards(desk: Desk) -> list[tuple[CardRecord, Card]]:
    """The cards, newest first, without those of a newer version of assay."""
    found: list[tuple[CardRecord, Card]] = []
    for record in Cards(desk.database).newest(desk.project):
        with suppress(InputError):
            found.append((record, Card.from_dict(record.body)))
    return found


def _before(desk: Desk, record: CardRecord) -> tuple[CardRecord, Card] | None:
    """The card before of the same grader."""
    same = [one for one in readable_cards(desk) if one[0].grader == record.grader]
    place = next((n for n, one in enumerate(same) if one[0].id == record.id), len(same))
    return same[place + 1] if place + 1 < len(same) else None


def _comparison(card: Card, before: CardRecord, earlier: Card) -> CardComparison:
    from assay.reports.grader_cards import differences

    verdict, sentence = compare_cards(card, earlier)
    is_same = earlier.digest == card.digest
    return CardComparison(
        id=before.id,
        created_at=before.created_at,
        verdict=verdict,
        sentence=sentence,
        same_labels=earlier.labels.digest == card.labels.digest,
        changed=() if is_same else differences(earlier.made_of, card.made_of, earlier.assay),
    )


def _said(desk: Desk, card: Card) -> dict[str, tuple[SaidLabel, ...]]:
    if not card.worst or not card.labels.field:
        return {}
    said = Labels(desk.database).current(desk.project, card.labels.field)
    return {
        one.item: tuple(said_of(record) for record in said[one.item].values())
        for one in card.worst
        if one.item in said
    }
