"""Operations on calibrations: the cards, what to read of them, and measuring a stored grader."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from assay.errors import InputError, Location
from assay.eval.calibration.asking import Options, Target, Unit, ask, plan
from assay.eval.calibration.calibrate import card_of
from assay.eval.calibration.card import Card
from assay.eval.calibration.labelled import LabelledSet
from assay.eval.calibration.spending import cost_of
from assay.eval.calibration.stored import collected, record_of, said_before, stored_target, work_of
from assay.reports.calibration_card import usd_per_thousand
from assay.scoring.graded import Graded
from assay.service.calibration_cards import (
    CardDetail,
    CardSummary,
    card_detail,
    card_summary,
    readable_cards,
)
from assay.service.labels import Field
from assay.service.operation import (
    After,
    Desk,
    GraderKey,
    Host,
    InProject,
    Limit,
    Offset,
    Section,
    Spec,
)
from assay.store.cards import Cards
from assay.store.labels import Labels
from assay.store.pages import Page, Stretch, page_of

of_calibrations = Section("/projects/{project}/calibrations", tag="calibrations")
_STRETCH = 64
"""Judgements of which none is kept before all have come."""

_SECONDS = 5.0
"""How long one request goes on asking."""

_ASKINGS = 2
"""How often something is asked that cannot be judged."""

_Id = Annotated[
    str, Spec.text(200, "Id of a card.", alias="id", min_length=1, example="20261121-1a2b3c4d")
]
_Repeats = Annotated[int, Spec("How often every row is asked.", ge=1, le=10, example=1)]
_Attacks = Annotated[bool, Spec("Also play the built-in attacks on failing answers.")]
_Levels = Annotated[
    str,
    Spec.text(
        400, "All levels, lowest first, with commas between, where labels are levels.", example=""
    ),
]


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


@of_calibrations("GET", apart=True)
def list_calibrations(
    desk: Desk,
    *,
    grader: Annotated[str | None, Spec.text(200, "Only of this grader.")] = None,
    limit: Limit = 50,
    offset: Offset = 0,
    after: After = None,
    project: InProject = None,
) -> Page[CardSummary]:
    """The calibration cards, newest first."""
    found = [one for one in readable_cards(desk) if grader is None or one[0].grader == grader]
    return page_of(found, Stretch(limit, offset, after)).of(lambda one: card_summary(desk, *one))


@of_calibrations("GET", "/plan", faults=(409,), apart=True)
def plan_calibration(
    desk: Desk,
    grader: GraderKey,
    *,
    field: Field = "label",
    repeats: _Repeats = 1,
    attacks: _Attacks = False,
    levels: _Levels = "",
    project: InProject = None,
) -> CalibrationPlan:
    """What calibrating a stored grader on a field of labels would ask and cost."""
    work = _planned(desk, grader, field, repeats, levels, attacks=attacks)
    done = len(work.judged(desk).outcomes)
    earlier = [
        (record.id, usd_per_thousand(made.cost))
        for record, made in readable_cards(desk)
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


@of_calibrations("POST", faults=(409,))
async def calibrate_grader(
    host: Host,
    grader: GraderKey,
    field: Field = "label",
    repeats: _Repeats = 1,
    *,
    attacks: _Attacks = False,
    levels: _Levels = "",
    project: InProject = None,
) -> CalibrationWork:
    """Go on with measuring a stored grader on people's labels, for a few seconds.

    Judgements are kept as they come. Ask again until the reply names a card: whoever asks may
    stop at any time, and later goes on where it ended. What could not be judged is asked once
    more, after all else.
    """
    work = await host.read(
        lambda desk: _planned(desk, grader, field, repeats, levels, attacks=attacks)
    )
    judged = await host.run(work.judged)
    ends = time.monotonic() + _SECONDS
    todo = judged.left(work.units)
    while todo:
        stretch = todo[:_STRETCH]
        found = await host.apart(lambda: ask(stretch, work.target))  # noqa: B023
        some = list(found.items())
        judged.add(some)
        if judged.is_nothing:  # not kept: once the grader is mended, all of it is asked
            raise _cannot_judge(judged.outcomes.values())
        await host.run(lambda desk: Cards(desk.database).keep(desk.project, work.name, some))  # noqa: B023
        todo = judged.left(work.units)
        if todo and time.monotonic() > ends:
            return await host.finish(lambda _: work.told(judged.outcomes))
    card = await host.apart(lambda: _card(work, judged.outcomes))
    if not card.coverage.compared:
        await host.run(lambda desk: Cards(desk.database).discard(desk.project, work.name))
        raise _cannot_judge(judged.outcomes.values())

    def store(desk: Desk) -> CalibrationWork:
        cards = Cards(desk.database)
        if (stored := said_before(cards, desk.project, card)) is not None:
            cards.discard(desk.project, work.name)
        else:
            stored = cards.add(desk.project, record_of(card), work=work.name)
        return work.told(judged.outcomes, stored.id)

    return await host.finish(store)


@of_calibrations("GET", "/{id}", apart=True)
def show_calibration(desk: Desk, card: _Id, *, project: InProject = None) -> CardDetail:
    """One calibration card: the measures, the confusion, the disagreements to read."""
    return card_detail(desk, Cards(desk.database).get(desk.project, card))


@dataclass(slots=True)
class _Judged:
    """What was judged so far.

    No request knows whether it is the first after an interruption. So what could not be judged is
    asked once more by whichever comes to the end: a model that was away may be back by then, and
    what fails again is not asked for ever.

    Attributes:
        outcomes: The last outcome of every unit that was asked.
        failed: How often each could not be judged.
    """

    outcomes: dict[str, Graded] = field(default_factory=dict[str, Graded])
    failed: Counter[str] = field(default_factory=Counter[str])

    def add(self, judged: Iterable[tuple[str, Graded]]) -> None:
        for key, graded in judged:
            self.outcomes[key] = graded
            self.failed[key] += graded.status == "error"

    def left(self, units: Sequence[Unit]) -> list[Unit]:
        """What is to be asked, first what never was."""
        lost = {key for key, one in self.outcomes.items() if one.status == "error"}
        again = {key for key in lost if self.failed[key] < _ASKINGS}
        never = [unit for unit in units if unit.key not in self.outcomes]
        return never + [unit for unit in units if unit.key in again]

    @property
    def is_nothing(self) -> bool:
        """Whether there is no outcome but errors."""
        return all(one.status == "error" for one in self.outcomes.values())


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

    def judged(self, desk: Desk) -> _Judged:
        """What was judged before."""
        wanted = {unit.key for unit in self.units}
        kept = Cards(desk.database).unfinished(desk.project, self.name)
        found = _Judged()
        found.add((key, one) for key, one in kept if key in wanted)
        return found

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
    try:
        labelled = collected(
            Labels(desk.database),
            desk.project,
            field,
            levels=[name.strip() for name in levels.split(",")] if levels.strip() else (),
        )
        options = Options.of(repeats, "builtin" if attacks else "")
        units = plan(labelled, options)
    except InputError as error:
        raise InputError(
            error.message, location=error.location or Location(field="field"), hint=error.hint
        ) from error
    return _Planned(target, version.number, labelled, options, units)


async def _card(work: _Planned, judged: dict[str, Graded]) -> Card:
    return card_of(work.target, work.labelled, work.options, judged)


def _cannot_judge(judged: Iterable[Graded]) -> InputError:
    causes = Counter(one.error or "it passed all of them over" for one in judged)
    (cause, _), *_ = causes.most_common(1)
    return InputError(
        f"the grader could judge none of {sum(causes.values()):,} rows: {cause:.500}",
        hint="mend it, or give the server what it lacks, such as a model's key",
    )
