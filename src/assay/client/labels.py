"""``client.labels`` and ``client.calibrations``: what people say, and how far graders agree."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from assay.client.asking import M_co, ManyResults, Part, ask, ask_all, by_hand
from assay.errors import InputError
from assay.service import calibrations, labels
from assay.service.labels import QueueItem

if TYPE_CHECKING:
    from assay.service.calibration_cards import CardDetail
    from assay.service.calibrations import CalibrationWork
    from assay.store.labels import LabelRecord


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
        dataset: str = "",
        run: str = "",
        field: str = "label",
        note: str = "",
        criterion: str = "",
        rater: str = "",
        project: str | None = None,
    ) -> LabelRecord:
        """Keep what a rater says of an item; the last word of each counts.

        Args:
            item: As the queue gave it.
            label: The label.
            dataset: The dataset that it is from,
            run: or the run.
            field: What the labels are called.
            note: Why.
            criterion: What the rater was asked.
            rater: Who labels; whoever asks by default.
            project: The project; the client's by default.

        Raises:
            InputError: The label is empty, or the item is not what stands there any more.
        """
        if not label.strip():
            raise InputError("label must not be empty", hint="labels.take_back takes one back")
        return await self._scope.call(
            labels.add_label,
            item.item,
            label,
            dataset=dataset,
            run=run,
            place=item.place,
            field=field,
            note=note,
            criterion=criterion,
            rater=rater,
            project=project,
        )

    @by_hand
    async def take_back(
        self,
        item: QueueItem,
        *,
        dataset: str = "",
        run: str = "",
        field: str = "label",
        rater: str = "",
        project: str | None = None,
    ) -> LabelRecord:
        """Take back what a rater said of an item, which is then in their queue again.

        Args:
            item: As the queue gave it.
            dataset: The dataset that it is from,
            run: or the run.
            field: What the labels are called.
            rater: Whose label; that of whoever asks by default.
            project: The project; the client's by default.
        """
        return await self._scope.call(
            labels.add_label,
            item.item,
            "",
            dataset=dataset,
            run=run,
            place=item.place,
            field=field,
            rater=rater,
            project=project,
        )


class CalibrationsPart(Part[M_co]):
    """How far stored graders agree with people's labels, card by card."""

    called = "calibrations"

    list = ask_all(calibrations.list_calibrations)
    get = ask(calibrations.show_calibration)
    plan = ask(calibrations.plan_calibration)

    @by_hand
    async def create(
        self,
        grader: str,
        *,
        field: str = "label",
        repeats: int = 1,
        attacks: bool = False,
        levels: str = "",
        project: str | None = None,
    ) -> CardDetail:
        """Measure a stored grader on people's labels, and return its card.

        What was judged is kept: interrupted, the next call goes on where this one ended. What could
        not be judged is asked once more, after all else.

        Args:
            grader: The grader.
            field: What the labels are called.
            repeats: How often every row is asked.
            attacks: Also play the built-in attacks on failing answers.
            levels: All levels, lowest first, with commas between, where labels are levels.
            project: The project; the client's by default.

        Raises:
            NotFoundError: There is no such grader.
            InputError: There is nothing to measure on, or the grader can judge none of it.
        """
        steps = self._follow(
            grader,
            field=field,
            repeats=repeats,
            attacks=attacks,
            levels=levels,
            project=project,
        )
        card = [step.card async for step in steps][-1]
        return await self._scope.call(calibrations.show_calibration, card, project=project)

    async def _follow(
        self,
        grader: str,
        *,
        field: str = "label",
        repeats: int = 1,
        attacks: bool = False,
        levels: str = "",
        project: str | None = None,
    ) -> AsyncIterator[CalibrationWork]:
        """`create`, told step by step: how far it is every few seconds, and at last its card."""
        while True:
            work = await self._scope.call(
                calibrations.calibrate_grader,
                grader,
                field,
                repeats,
                attacks=attacks,
                levels=levels,
                project=project,
            )
            yield work
            if work.card:
                return

    follow = ManyResults(_follow)
