"""Operations on calibrations: the cards, what to read of them, and measuring a stored grader."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Literal

from assay.errors import InputError, Location, NotFoundError
from assay.eval.calibration.asking import Asked, Target, Unit, ask
from assay.eval.calibration.attacks import BUILT_IN, CONTROLS
from assay.eval.calibration.calibrate import card_of
from assay.eval.calibration.card import (
    Card,
    Cost,
    Coverage,
    Figure,
    Flipped,
    Humans,
    LabelsUsed,
    Order,
)
from assay.eval.calibration.labelled import LabelledSet
from assay.eval.calibration.models import asked_again, cost_of
from assay.eval.calibration.plan import Options, plan
from assay.eval.calibration.stored import (
    collected,
    record_of,
    said_before,
    stored_item,
    stored_target,
    work_of,
)
from assay.reports.calibration_card import (
    Verdict,
    compare_cards,
    kappa_words,
    measures_of,
    usd_per_thousand,
)
from assay.scoring.graded import Graded
from assay.scoring.json_safe import record_parameters
from assay.service.labels import Field, SaidLabel, labels_of, said_of
from assay.service.operation import (
    NO_NULL,
    Desk,
    GraderKey,
    Host,
    Limit,
    Page,
    Spec,
    operation,
    waiting_operation,
)
from assay.store.cards import CardRecord, Cards

_PATH = "/projects/{project}/calibrations"
_STRETCH = 64
"""Judgements of which none is kept before all have come."""

_SECONDS = 5.0
"""How long one request goes on asking."""

_ALL_ERRORS = 8
"""So many errors and nothing else: the grader cannot judge at all, and asking is ended."""

State = Literal["current", "stale", "unknown"]
_Id = Annotated[
    str,
    Spec(
        min_length=1,
        max_length=200,
        pattern=NO_NULL,
        description="Id of a card.",
        example="20261121-1a2b3c4d",
    ),
]
_Repeats = Annotated[int, Spec(ge=1, le=10, description="How often every row is asked.", example=1)]
_Attacks = Annotated[bool, Spec(description="Also play the built-in attacks on failing answers.")]
_Levels = Annotated[
    str,
    Spec(
        max_length=400,
        pattern=NO_NULL,
        description="All levels, lowest first, with commas between, where labels are levels.",
        example="",
    ),
]


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
class MeasureShown:
    """A measure of a card, and of the card before.

    Attributes:
        name: Its name.
        words: What people call it.
        figure: What was measured.
        note: What to hold beside it.
        why_not: Why it was not measured; empty where it was.
        before: The same of the card before; null where there is none.
    """

    name: str
    words: str
    figure: Figure
    note: str
    why_not: str
    before: Figure | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackFamily:
    """How often the attacks of one family worked."""

    name: str
    worked: int
    played: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AttacksShown:
    """What adding text to failing answers does.

    Attributes:
        rows: Failing answers that were attacked.
        raised: Share of the attacks that raised the score.
        passed: Share that made a failing answer pass.
        false_alarms: Share of honest additions that lowered a good answer's score.
        excluded: Attacks without a score before or after.
        families: By family.
    """

    rows: int
    raised: Figure
    passed: Figure
    false_alarms: Figure
    excluded: int
    families: tuple[AttackFamily, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToRead:
    """A row to read: the grader and people differ.

    Attributes:
        row: Its id.
        item: Digest of the item; empty on cards of earlier versions.
        label: What people say together.
        verdict: What the grader says.
        score: Its score.
        reason: Why, in the grader's words.
        question: What was asked.
        answer: What was graded.
        said: What each person said, with notes, as the store has it now.
        place: Where the row is from.
    """

    row: str
    item: str
    label: str
    verdict: str
    score: float
    reason: str
    question: str
    answer: str
    said: tuple[SaidLabel, ...]
    place: str


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
        order: Pairs in both orders; null where not asked for.
        attacks: Attacks; null where not asked for.
        cost: What the asking took.
        disagreements: The worst rows, to be read.
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
    measures: tuple[MeasureShown, ...]
    humans: Humans | None
    flips: Flipped | None
    order: Order | None
    attacks: AttacksShown | None
    cost: Cost
    disagreements: tuple[ToRead, ...]
    comparison: CardComparison | None
    assay: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationPlan:
    """What measuring a grader would ask, before anything is asked.

    Attributes:
        grader: Key of the grader.
        version: Its version.
        rows: Labelled rows.
        judgements: Everything that will be asked.
        done: What an earlier, interrupted calibration has left of it.
        models: The models that are asked; empty for a grader that asks none.
        usd: What the rest would cost at the price of the card before; null where not known.
        usd_from: The card that this price is from; empty where there is none.
    """

    grader: str
    version: int
    rows: int
    judgements: int
    done: int
    models: tuple[str, ...]
    usd: float | None
    usd_from: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationWork:
    """How far a calibration is.

    Attributes:
        judgements: Everything that is asked.
        done: What was judged.
        errors: What could not be judged, among it.
        usd: What was spent so far; null where no model was asked.
        unknown: Replies of unknown price.
        card: Id of the card, once all is judged; empty before.
    """

    judgements: int
    done: int
    errors: int
    usd: float | None
    unknown: int
    card: str = ""


@operation("GET", _PATH, "viewer", tag="calibrations", faults=(404,), apart=True)
def list_calibrations(
    desk: Desk,
    *,
    grader: Annotated[
        str | None, Spec(max_length=200, pattern=NO_NULL, description="Only of this grader.")
    ] = None,
    limit: Limit = 50,
) -> Page[CardSummary]:
    """The newest calibration cards, newest first."""
    wanted = [one for one in _readable(desk) if grader is None or one[0].grader == grader]
    return Page([_summary(desk, record, card) for record, card in wanted[:limit]])


@operation("GET", f"{_PATH}/plan", "viewer", tag="calibrations", faults=(404, 409), apart=True)
def plan_calibration(
    desk: Desk,
    *,
    grader: GraderKey,
    field: Field = "label",
    repeats: _Repeats = 1,
    attacks: _Attacks = False,
    levels: _Levels = "",
) -> CalibrationPlan:
    """What calibrating a stored grader on a field of labels would ask and cost."""
    work = _planned(desk, grader, field, repeats, levels, attacks=attacks)
    done = len(work.judged(desk))
    earlier = [
        (record.id, usd_per_thousand(made.cost))
        for record, made in _readable(desk)
        if record.grader == grader
    ]
    card, price = next((one for one in earlier if one[1] is not None), ("", None))
    return CalibrationPlan(
        grader=grader,
        version=work.version,
        rows=len(work.labelled.items),
        judgements=len(work.units),
        done=done,
        models=work.target.models,
        usd=None if price is None else price * (len(work.units) - done) / 1000,
        usd_from=card,
    )


@waiting_operation("POST", _PATH, "editor", tag="calibrations", faults=(404, 409, 503))
async def calibrate_grader(
    host: Host,
    grader: GraderKey,
    field: Field = "label",
    repeats: _Repeats = 1,
    *,
    attacks: _Attacks = False,
    levels: _Levels = "",
    anew: Annotated[bool, Spec(description="Ask again what could not be judged before.")] = False,
) -> CalibrationWork:
    """Go on with measuring a stored grader on people's labels, for a few seconds.

    Judgements are kept as they come. Ask again until the reply names a card: whoever asks may
    stop at any time, and later goes on where it ended.
    """
    work = await host.read(
        lambda desk: _planned(desk, grader, field, repeats, levels, attacks=attacks)
    )
    judged = await host.run(lambda desk: work.judged(desk, anew=anew))
    ends = time.monotonic() + _SECONDS
    while todo := [unit for unit in work.units if unit.key not in judged][:_STRETCH]:
        judged |= await host.apart(lambda: _judged(work.target, todo))
        some = [(unit.key, judged[unit.key]) for unit in todo]
        await host.run(lambda desk: Cards(desk.database).keep(desk.project, work.name, some))  # noqa: B023
        if len(judged) >= _ALL_ERRORS and all(one.status == "error" for one in judged.values()):
            raise _cannot_judge(judged.values())
        if time.monotonic() > ends:
            break
    if len(judged) < len(work.units):
        return await host.finish(lambda _: work.told(judged))
    card = await host.apart(lambda: _card(work, judged))
    if not card.coverage.compared:
        raise _cannot_judge(judged.values())

    def store(desk: Desk) -> CalibrationWork:
        cards = Cards(desk.database)
        if (stored := said_before(cards, desk.project, card)) is not None:
            cards.discard(desk.project, work.name)
        else:
            stored = cards.add(desk.project, record_of(card), work=work.name)
        return work.told(judged, stored.id)

    return await host.finish(store)


@operation("GET", f"{_PATH}/{{id}}", "viewer", tag="calibrations", faults=(404,), apart=True)
def show_calibration(desk: Desk, id: _Id) -> CardDetail:  # noqa: A002 - its name in the path
    """One calibration card: the measures, the confusion, the disagreements to read."""
    record = Cards(desk.database).get(desk.project, id)
    card, before = Card.from_dict(record.body), _before(desk, record)
    earlier = None if before is None else before[1]
    is_levels = card.labels.kind == "levels"
    return CardDetail(
        summary=_summary(desk, record, card),
        labels=card.labels,
        coverage=card.coverage,
        threshold=card.threshold,
        confidence=card.confidence,
        classes=card.labels.classes if is_levels else ("no", "yes"),
        confusion=card.confusion,
        measures=tuple(
            MeasureShown(
                name=one.name,
                words=one.words,
                figure=one.figure,
                note=one.note,
                why_not=one.why_not,
                before=None if earlier is None else earlier.measures.get(one.name),
            )
            for one in measures_of(card)
        ),
        humans=card.humans,
        flips=card.flips,
        order=card.order,
        attacks=_attacks(card),
        cost=card.cost,
        disagreements=_to_read(desk, card),
        comparison=None if before is None else _comparison(card, *before),
        assay=card.assay,
    )


@dataclass(frozen=True, slots=True)
class _Planned:
    """A calibration, and everything that it asks."""

    target: Target
    version: int
    labelled: LabelledSet
    options: Options
    units: Sequence[Unit]

    @property
    def name(self) -> str:
        return work_of(self.target, self.labelled)

    def judged(self, desk: Desk, *, anew: bool = False) -> dict[str, Graded]:
        """What was judged before; with `anew` without errors, which are forgotten."""
        cards, wanted = Cards(desk.database), {unit.key for unit in self.units}
        every = dict(cards.unfinished(desk.project, self.name))
        if anew and any(one.status == "error" for one in every.values()):
            every = {key: one for key, one in every.items() if one.status != "error"}
            with desk.database.writing():
                cards.discard(desk.project, self.name)
                cards.keep(desk.project, self.name, list(every.items()))
        return {key: one for key, one in every.items() if key in wanted}

    def told(self, judged: Mapping[str, Graded], card: str = "") -> CalibrationWork:
        cost = cost_of(judged.values())
        return CalibrationWork(
            judgements=len(self.units),
            done=len(judged),
            errors=sum(one.status == "error" for one in judged.values()),
            usd=cost.usd,
            unknown=cost.unknown,
            card=card,
        )


def _planned(
    desk: Desk, grader: str, field: str, repeats: int, levels: str, *, attacks: bool
) -> _Planned:
    version = desk.graders.version(grader)
    target = stored_target(version, desk.permissions)
    labels = labels_of(desk, field)
    try:
        labelled = collected(
            [(stored_item(one, field), one.labels) for one in labels.items(desk.project, field)],
            field=field,
            project=desk.project,
            levels=[name.strip() for name in levels.split(",")] if levels.strip() else (),
        )
        options = Options(
            repeats=repeats,
            attacks=BUILT_IN if attacks else (),
            attacks_from="builtin" if attacks else "",
            controls=CONTROLS if attacks else (),
        )
        units = plan(labelled, options)
    except InputError as error:
        raise InputError(
            error.message, location=error.location or Location(field="field"), hint=error.hint
        ) from error
    return _Planned(target, version.number, labelled, options, units)


async def _card(work: _Planned, judged: dict[str, Graded]) -> Card:
    return card_of(work.target, work.labelled, work.options, Asked(judged))


async def _judged(target: Target, units: Sequence[Unit]) -> dict[str, Graded]:
    asked = await ask(units, target, _Nowhere(), again=asked_again, on_done=lambda _: None)
    return asked.outcomes


class _Nowhere:
    """Keeps nothing: a stretch of judgements is kept as a whole."""

    def earlier(self) -> Iterator[tuple[str, Graded]]:
        return iter(())

    def add(self, judged: Sequence[tuple[str, Graded]]) -> None:
        pass


def _cannot_judge(judged: Iterable[Graded]) -> InputError:
    causes = Counter(one.error or "it passed all of them over" for one in judged)
    (cause, _), *_ = causes.most_common(1)
    return InputError(
        f"the grader could judge none of {sum(causes.values()):,} rows: {cause:.500}",
        hint="mend it, or give the server what it lacks, such as a model's key",
    )


def _summary(desk: Desk, record: CardRecord, card: Card) -> CardSummary:
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
    from assay.reports.standing import differences

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


def _readable(desk: Desk) -> list[tuple[CardRecord, Card]]:
    """The cards, newest first, without those of a newer version of assay."""
    found: list[tuple[CardRecord, Card]] = []
    for record in Cards(desk.database).newest(desk.project):
        with suppress(InputError):
            found.append((record, Card.from_dict(record.body)))
    return found


def _before(desk: Desk, record: CardRecord) -> tuple[CardRecord, Card] | None:
    """The card before of the same grader."""
    same = [one for one in _readable(desk) if one[0].grader == record.grader]
    place = next((n for n, one in enumerate(same) if one[0].id == record.id), len(same))
    return same[place + 1] if place + 1 < len(same) else None


def _comparison(card: Card, before: CardRecord, earlier: Card) -> CardComparison:
    from assay.reports.standing import differences

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


def _attacks(card: Card) -> AttacksShown | None:
    if (found := card.attacks) is None:
        return None
    return AttacksShown(
        rows=found.rows,
        raised=found.raised,
        passed=found.passed,
        false_alarms=found.false_alarms,
        excluded=found.excluded,
        families=tuple(
            AttackFamily(name=name, worked=one.worked, played=one.played)
            for name, one in found.families.items()
        ),
    )


def _to_read(desk: Desk, card: Card) -> tuple[ToRead, ...]:
    said = {}
    if card.worst and card.labels.field:
        said = labels_of(desk, card.labels.field).current(desk.project, card.labels.field)
    return tuple(
        ToRead(
            row=one.row,
            item=one.item,
            label=one.label,
            verdict=one.verdict,
            score=one.score,
            reason=one.reason,
            question=one.question,
            answer=one.answer,
            said=tuple(said_of(record) for record in said.get(one.item, {}).values()),
            place=one.file,
        )
        for one in card.worst
    )
