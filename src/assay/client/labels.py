"""``client.labels`` and ``client.calibrations``: what people say, and how far graders agree."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Mapping
from typing import TYPE_CHECKING, TypedDict, Unpack

from assay.client.asking import M_co, Part, ask, ask_all, by_hand, like, steps_like
from assay.errors import InputError
from assay.service import calibrations, labels
from assay.service.labels import QueueItem

if TYPE_CHECKING:
    from assay.service.calibration_cards import CardDetail
    from assay.service.calibrations import CalibrationWork
    from assay.store.labels import LabelRecord


class LabelOptions(TypedDict, total=False):
    """Where an item is from that is labelled, and by whom.

    Attributes:
        dataset: The dataset that it is from,
        run: or the run.
        field: What the labels are called; ``label`` by default.
        rater: Who labels; whoever asks by default.
        project: The project; the client's by default.
    """

    dataset: str
    run: str
    field: str
    rater: str
    project: str | None


class LabelsPart(Part[M_co]):
    """What people say of answers, without seeing what graders said."""

    called = "labels"

    list = ask_all(labels.list_labels)
    queue = ask(labels.next_to_label)
    items = ask(labels.list_labelled)
    export = ask_all(labels.export_labels, lambda one: one.row)

    @by_hand
    async def add(
        self,
        item: QueueItem,
        label: str,
        *,
        note: str = "",
        criterion: str = "",
        **where: Unpack[LabelOptions],
    ) -> LabelRecord:
        """Keep what a rater says of an item; the last word of each counts.

        Args:
            item: As the queue gave it.
            label: The label.
            note: Why.
            criterion: What the rater was asked.
            **where: ``dataset`` or ``run``, ``field``, ``rater`` and ``project``; see
                `LabelOptions`.

        Raises:
            InputError: The label is empty, or the item is not what stands there any more.
        """
        if not label.strip():
            raise InputError("label must not be empty", hint="labels.take_back takes one back")
        said = {"label": label, "note": note, "criterion": criterion, **where}
        return await self._said(item, said)

    @by_hand
    async def take_back(self, item: QueueItem, **where: Unpack[LabelOptions]) -> LabelRecord:
        """Take back what a rater said of an item, which is then in their queue again.

        Args:
            item: As the queue gave it.
            **where: As for `add`.
        """
        return await self._said(item, {"label": "", **where})

    def _said(self, item: QueueItem, said: Mapping[str, object]) -> Awaitable[LabelRecord]:
        return self.ask(labels.add_label, {"item": item.item, "place": item.place, **said})


class CalibrationsPart(Part[M_co]):
    """How far stored graders agree with people's labels, card by card."""

    called = "calibrations"

    list = ask_all(calibrations.list_calibrations)
    get = ask(calibrations.show_calibration)
    plan = ask(calibrations.plan_calibration)

    @like(calibrations.calibrate_grader)
    async def create(self, **given: object) -> CardDetail:
        """Measure a stored grader on people's labels, and return its card.

        What was judged is kept: interrupted, the next call goes on where this one ended. What could
        not be judged is asked once more, after all else.

        Raises:
            NotFoundError: There is no such grader.
            InputError: There is nothing to measure on, or the grader can judge none of it.
        """
        card = [step.card async for step in self._steps(given)][-1]
        shown = {"card": card, "project": given.get("project")}
        return await self.ask(calibrations.show_calibration, shown)

    @steps_like(calibrations.calibrate_grader)
    def follow(self, **given: object) -> AsyncIterator[CalibrationWork]:
        """`create`, told step by step: how far it is every few seconds, and at last its card."""
        return self._steps(given)

    async def _steps(self, given: Mapping[str, object]) -> AsyncIterator[CalibrationWork]:
        card = ""
        while not card:
            work = await self.ask(calibrations.calibrate_grader, given)
            yield work
            card = work.card
