"""``client.labels`` and ``client.calibrations``: what people say, and how far graders agree."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from assay.client.scope import Scope, checked_calls, every
from assay.errors import InputError
from assay.service import calibrations as calibration_operations
from assay.service import labels as operations
from assay.service.labels import QueueItem, Which
from assay.service.pages import Page

if TYPE_CHECKING:
    from assay.scoring.json_safe import Json
    from assay.service.calibration_cards import CardDetail, CardSummary
    from assay.service.calibrations import CalibrationPlan, CalibrationWork
    from assay.service.labels import LabelledRow, LabelQueue, LabelSet
    from assay.store.labels import LabelRecord


@checked_calls("labels")
class AsyncLabels:
    """What people say of answers, without seeing what graders said."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def list(self, *, project: str | None = None) -> list[LabelSet]:
        """The fields that have labels: by whom, and how far people agree."""
        return list((await self._scope.call(operations.list_labels, project)).items)

    async def queue(
        self,
        *,
        dataset: str = "",
        run: str = "",
        field: str = "label",
        classes: str = "PASS,FAIL,NA",
        seed: int = 0,
        rater: str = "",
        limit: int = 3,
        cursor: str = "",
        project: str | None = None,
    ) -> LabelQueue:
        """The next items that a rater has not labelled, in a random order that a seed fixes.

        Args:
            dataset: Take the rows of this dataset,
            run: or the answers of this run.
            field: What the labels are called.
            classes: What an answer can be, with commas between.
            seed: Of the order.
            rater: Who labels; whoever asks by default. On a server it is the name of the key.
            limit: Most items, up to 50.
            cursor: Where it goes on: `next_cursor` of the part before.
            project: The project; the client's by default.

        Raises:
            NotFoundError: There is no such dataset or run.
            InputError: Neither or both are given.
        """
        return await self._scope.call(
            operations.next_to_label,
            project,
            dataset=dataset,
            run=run,
            field=field,
            classes=classes,
            seed=seed,
            rater=rater,
            limit=limit,
            cursor=cursor or None,
        )

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
            operations.add_label,
            project,
            item.item,
            label,
            dataset=dataset,
            run=run,
            place=item.place,
            field=field,
            note=note,
            criterion=criterion,
            rater=rater,
        )

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
            operations.add_label,
            project,
            item.item,
            "",
            dataset=dataset,
            run=run,
            place=item.place,
            field=field,
            rater=rater,
        )

    async def items(
        self,
        *,
        field: str = "label",
        which: Which = "all",
        limit: int = 100,
        cursor: str = "",
        project: str | None = None,
    ) -> Page[LabelledRow]:
        """A part of the labelled items, each with what everybody said of it.

        Args:
            field: What the labels are called.
            which: All, those that several people labelled, or those on which they disagree.
            limit: Most of them, up to 200.
            cursor: Where it goes on: `next_cursor` of the part before.
            project: The project; the client's by default.
        """
        return await self._scope.call(
            operations.list_labelled,
            project,
            field=field,
            which=which,
            limit=limit,
            cursor=cursor or None,
        )

    async def export(
        self, *, field: str = "label", project: str | None = None
    ) -> Sequence[dict[str, Json]]:
        """All labelled rows, as `assay calibrate` reads them."""
        found = await every(
            lambda cursor: self._scope.call(
                operations.export_labels, project, field=field, limit=200, cursor=cursor
            )
        )
        return [one.row for one in found]


@checked_calls("calibrations")
class AsyncCalibrations:
    """How far stored graders agree with people's labels, card by card."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def list(
        self, *, grader: str | None = None, limit: int = 50, project: str | None = None
    ) -> list[CardSummary]:
        """The newest cards, newest first.

        Args:
            grader: Only those of this grader.
            limit: Most of them, up to 200.
            project: The project; the client's by default.
        """
        found = await self._scope.call(
            calibration_operations.list_calibrations, project, grader=grader, limit=limit
        )
        return list(found.items)

    async def get(self, card: str, *, project: str | None = None) -> CardDetail:
        """A card with its measures, its confusion matrix and the disagreements to read.

        Raises:
            NotFoundError: There is none.
        """
        return await self._scope.call(calibration_operations.show_calibration, project, card)

    async def plan(
        self,
        grader: str,
        *,
        field: str = "label",
        repeats: int = 1,
        attacks: bool = False,
        levels: str = "",
        project: str | None = None,
    ) -> CalibrationPlan:
        """What `create` would ask and cost; nothing is asked. The parameters are its own."""
        return await self._scope.call(
            calibration_operations.plan_calibration,
            project,
            grader=grader,
            field=field,
            repeats=repeats,
            attacks=attacks,
            levels=levels,
        )

    async def create(
        self,
        grader: str,
        *,
        field: str = "label",
        repeats: int = 1,
        attacks: bool = False,
        levels: str = "",
        anew: bool = False,
        project: str | None = None,
    ) -> CardDetail:
        """Measure a stored grader on people's labels, and return its card.

        What was judged is kept: interrupted, the next call goes on where this one ended.

        Args:
            grader: The grader.
            field: What the labels are called.
            repeats: How often every row is asked.
            attacks: Also play the built-in attacks on failing answers.
            levels: All levels, lowest first, with commas between, where labels are levels.
            anew: Ask again what could not be judged before.
            project: The project; the client's by default.

        Raises:
            NotFoundError: There is no such grader.
            InputError: There is nothing to measure on, or the grader can judge none of it.
        """
        work = self.follow(
            grader,
            field=field,
            repeats=repeats,
            attacks=attacks,
            levels=levels,
            anew=anew,
            project=project,
        )
        card = [step.card async for step in work][-1]
        return await self.get(card, project=project)

    async def follow(
        self,
        grader: str,
        *,
        field: str = "label",
        repeats: int = 1,
        attacks: bool = False,
        levels: str = "",
        anew: bool = False,
        project: str | None = None,
    ) -> AsyncIterator[CalibrationWork]:
        """`create`, told step by step: how far it is every few seconds, and at last its card."""
        while True:
            work = await self._scope.call(
                calibration_operations.calibrate_grader,
                project,
                grader,
                field,
                repeats,
                attacks=attacks,
                levels=levels,
                anew=anew,
            )
            yield work
            if work.card:
                return
            anew = False  # what could not be judged since is not asked for ever
