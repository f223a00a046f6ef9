"""What grading and running will cost, before it is done: what `assay.models.bill` is told of it.

Of rows, the questions of a sample are put together as they will be asked, and looked up in the
cache; nobody is asked. What a cell will ask depends on what its agent does: it is foretold from the
cells of earlier runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from assay.errors import InputError, ModelError
from assay.eval.costs import cost_of_cell, judge_costs
from assay.eval.rows.grading import lacks_answer
from assay.graders.apply import grade_alone
from assay.graders.spec import GraderSpec
from assay.models import current_client, using
from assay.models.bill import Bill, Questions
from assay.models.reference import registered
from assay.tasks.case import Case
from assay.types.submission import Submission

if TYPE_CHECKING:
    from assay.eval.matrix import Launch
    from assay.eval.regrade import Regrade
    from assay.eval.rows.recorded import RowPlan
    from assay.store.runs import Store

_SAMPLE = 100
"""Items whose questions are put together; of more, up to twice as many."""
_EARLIER = 20
"""Runs in which cells like these are looked for."""


def judges(specs: Iterable[GraderSpec]) -> list[GraderSpec]:
    """The graders that ask models."""
    return [spec for spec in specs if spec.kind.grader.models_of(spec.options)]


async def foretell_rows(bill: Bill, plan: RowPlan) -> None:
    """Foretell what the rows of a dataset cost that are still to be graded."""
    if specs := judges(plan.work.graders):
        rows = (
            row.submission
            for shard in plan.sink.todo()
            for block in plan.work.blocks(shard)
            for row, _ in block.rows
        )
        await _foretell(bill, specs, plan.work.graders, rows)


async def foretell_regrade(bill: Bill, ready: Regrade, store: Store) -> None:
    """Foretell what grading again costs: rows as they are kept, cells by what they cost before."""
    only = ready.only
    used = [case.graders for case in _cases(ready.tasks.values())] or [ready.graders]
    chosen = [spec for specs in used for spec in specs if not only or spec.label in only]
    if not (asking := judges(chosen)):
        return
    if not ready.tasks:
        rows = (ready.row(store, cell).submission for cell in ready.cells)
        await _foretell(bill, asking, ready.graders, rows)
        return
    _note_models(bill, asking)
    _note_earlier(
        bill,
        (cost for cell in ready.cells if (cost := judge_costs(cell).usd) is not None),
        before="of these cells before, as far as the cache has not kept the replies",
        may_be_cached=True,
    )


def foretell_cells(bill: Bill, ready: Launch, store: Store) -> None:
    """Foretell what the cells of a matrix cost, agents and judges."""
    asked = {cell.model for cell in ready.todo if cell.asks and cell.model}
    specs = [spec for case in _cases(cell.task for cell in ready.cells) for spec in case.graders]
    asking = judges(specs)
    _note_models(bill, asking, asked)
    if not bill.models:
        return
    wanted = {(cell.task.slug, cell.harness, cell.model) for cell in ready.cells}
    earlier = (
        cell
        for run in islice((one for one in store.runs().items if one.id != ready.run.id), _EARLIER)
        for cell in store.cells(run.id)
        if cell.key[:3] in wanted and cell.status == "graded"
    )
    costs = (cost for cell in earlier if (cost := cost_of_cell(cell)[0]) is not None)
    _note_earlier(bill, costs, before="like them of earlier runs")
    limits = [cell.task.conditions.limits.model_cost_usd for cell in ready.cells]
    known = [one for one in limits if one is not None]
    if not asking and known and len(known) == len(limits):
        bill.at_most(max(known))


def _cases(tasks: Iterable[object]) -> list[Case]:
    works = (getattr(task, "work", None) for task in tasks)
    return list({id(work): work for work in works if isinstance(work, Case)}.values())


def _note_earlier(
    bill: Bill, costs: Iterable[float], *, before: str, may_be_cached: bool = False
) -> None:
    """Of nothing but models of unknown price, earlier cells say nothing."""
    if bill.models - bill.unpriced:
        bill.earlier(costs, before=f"{bill.things} {before}", may_be_cached=may_be_cached)


def _note_models(bill: Bill, specs: Sequence[GraderSpec], asked: Iterable[str] = ()) -> None:
    """Note which models are asked, and of which nobody knows the price."""
    named = {model for spec in specs for model in spec.kind.grader.models_of(spec.options)}
    client = current_client()
    for model in {*named, *asked}:
        if registered(model) is not None:
            continue
        try:
            if client.route(model).missing:
                continue
            is_known = client.knows_price(model)
        except (InputError, ModelError):  # it cannot be asked, and the run says so
            continue
        bill.models.add(model)
        if not is_known:
            bill.unpriced.add(model)


async def _foretell(
    bill: Bill,
    specs: Sequence[GraderSpec],
    graders: Sequence[GraderSpec],
    submissions: Iterable[Submission],
) -> None:
    client = current_client()
    if client.settings.cache == "replay":
        return
    _note_models(bill, specs)
    if not bill.models:
        return
    sample, bill.items = _sample(submissions)
    found = Questions(has_more=any(spec.kind.grader.asks_again for spec in specs))
    costs: list[tuple[float, float]] = []

    def told(model: str, range_: tuple[float, float] | None) -> None:
        if range_ is not None:
            costs.append(range_)
        elif model in bill.models:
            found.unpriced.add(model)

    asking = client.asking_nobody(told)
    with using(asking):
        for submission in sample:
            costs.clear()
            found.sampled += 1
            if lacks_answer(graders, submission):
                continue
            for spec in specs:
                await grade_alone(spec, submission)
            if costs:
                found.asking += 1
                found.low.add(sum(low for low, _ in costs))
                found.high.add(sum(high for _, high in costs))
    found.cached = asking.ledger.summary().total(kind="hit").count
    bill.sampled(found)


def _sample(submissions: Iterable[Submission]) -> tuple[list[Submission], int]:
    """Submissions from all over, evenly spaced, and how many there are."""
    sample: list[Submission] = []
    step, count = 1, 0
    for count, submission in enumerate(submissions, 1):
        if (count - 1) % step == 0:
            sample.append(submission)
            if len(sample) > 2 * _SAMPLE:
                sample, step = sample[::2], 2 * step
    return sample, count
