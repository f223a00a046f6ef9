"""Grade items with a stored grader's definition."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from assay.errors import InputError
from assay.graders.apply import grade_batch, grade_many, grade_submission
from assay.graders.batch import Batch, Batches, way_of
from assay.graders.driver import each
from assay.graders.judges.base import JudgeGrader
from assay.graders.spec import GraderSpec
from assay.registry.definitions import Definition, definition_of
from assay.registry.policy import Permissions
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json, plain
from assay.scoring.results import EvaluationResult
from assay.store.catalog import GraderVersion
from assay.store.datasets import DamagedRow, DatasetRow
from assay.store.scores import ScoreRecord
from assay.tasks.rows import read_row
from assay.turns import WorkTurn, current_turn, taking
from assay.types.submission import Submission

__all__ = [
    "Grade",
    "Items",
    "Permissions",
    "grade_items",
    "grade_rows",
    "grade_timed",
    "grade_version",
    "refusal",
]

Grade: TypeAlias = "Callable[[Sequence[tuple[str, Submission]]], Awaitable[list[Graded]]]"


async def grade_rows(
    version: GraderVersion, rows: Sequence[DatasetRow], grade: Grade
) -> list[tuple[int, ScoreRecord]]:
    """Grade some rows.

    Returns:
        Number and outcome of every row, as `Jobs.add_scores` takes them.
    """
    items: list[tuple[str, Submission]] = []
    graded: dict[str, Graded] = {}
    for row in rows:
        try:
            items.append((row.id, _submission(row)))
        except InputError as error:
            name = f"{version.key}@{version.number}"
            failed = Graded.failed(row.id, str(error), outcome="bad_item")
            graded[row.id] = failed.by(name, version.digest)
    if items:
        graded |= {one.id: one for one in await grade(items)}
    return [
        (row.number, ScoreRecord(project=version.project, item=row.id, graded=graded[row.id]))
        for row in rows
    ]


def _submission(row: DatasetRow) -> Submission:
    if isinstance(row.data, DamagedRow):
        raise InputError(f"row {row.number} is damaged in the store")
    return read_row(row.data, row.number).submission


Items = Sequence[tuple[str, Submission]]

_AT_ONCE = 32
"""Items that declared graders are busy with at the same time."""


def refusal(definition: Definition, permissions: Permissions, key: str = "") -> InputError | None:
    """Why a definition, which may be stored under a key, cannot grade here, or None."""
    if not definition.graders:
        return InputError(
            "this custom grader grades nothing itself", hint="its scores are written in"
        )
    for refused in permissions.refusals(definition.kind, definition.to_dict()):
        return refused
    for spec in definition.specs:
        grader = spec.kind.grader
        # Judges whose models cannot be asked on this machine are refused before anything is.
        if issubclass(grader, JudgeGrader) and (missing := grader.models_missing(spec.options)):
            name = spec.label if definition.kind == "declared" else key or spec.label
            return InputError(f"grader {name!r} cannot ask its model: {'; '.join(missing)}")
    return None


async def grade_version(
    version: GraderVersion, items: Items, permissions: Permissions
) -> list[Graded]:
    """Grade items with a stored version; the database is not needed for it.

    Returns:
        What came of each item, in their order, with ``key@version`` and the digest of what
        graded: of the version, and of assay's own code as it is now.

    Raises:
        InputError: If it is of a kind that cannot grade here.
    """
    definition = definition_of(version)
    from assay.sandbox.functions import owned_by

    with owned_by(version.project):  # no worker is shared between projects
        name = f"{version.key}@{version.number}"
        return await grade_items(definition, items, permissions, name)


async def grade_timed(
    version: GraderVersion, items: Items, permissions: Permissions, deadline: float | None = None
) -> Batch:
    """The same, with the seconds that each item took.

    Args:
        version: What grades.
        items: What is graded.
        permissions: What may be done here.
        deadline: Seconds that an item may take once its turn has come; see `Batches`.

    Raises:
        InputError: If it is of a kind that cannot grade here.
    """
    if deadline is None:
        with taking(turn := WorkTurn()):
            graded = await grade_version(version, items, permissions)
        each = turn.each if len(turn.each) == len(items) else [turn.spent] * len(items)
        return Batch(graded=tuple(graded), seconds=tuple(each))

    async def score(some: Items) -> list[Graded]:
        return await grade_version(version, some, permissions)

    name, way = f"{version.key}@{version.number}", way_of(definition_of(version).graders)
    way = replace(way, score=score, name=name)
    batch = await Batches(way, deadline=deadline).grade_here([one for _, one in items])
    graded = [
        replace(one, id=item, grader=name, digest=one.digest or version.digest)
        for (item, _), one in zip(items, batch.graded, strict=True)
    ]
    return replace(batch, graded=tuple(graded))


async def grade_items(
    definition: Definition, items: Items, permissions: Permissions, name: str = ""
) -> list[Graded]:
    """Grade items.

    Args:
        definition: What grades.
        items: What is graded.
        permissions: What may be done here.
        name: What the grader is called in the outcomes; by default as it calls itself.

    Returns:
        What came of each item, in the order of the items, with the digest of what graded.

    Raises:
        InputError: For a grader that cannot grade here.
    """
    if refused := refusal(definition, permissions):
        raise refused
    if definition.threshold is not None:
        graded = await _grade_declared(definition.specs, definition.threshold, items)
    else:
        (spec,) = definition.graders
        if definition.path:
            graded = await grade_many([spec], items)
            return [one.by(name or one.grader, one.digest) for one in graded]
        if definition.kind == "function":  # its score on its own scale
            from assay.graders.function import FunctionGrader, grade_functions

            graded = await grade_functions(FunctionGrader.of(spec.options).function(), items)
        else:
            graded = await grade_many([spec], items)
    digest = definition.digest()
    return [one.by(name or one.grader, digest) for one in graded]


async def _grade_declared(
    specs: Sequence[GraderSpec], threshold: float, items: Items
) -> list[Graded]:
    turn = current_turn() or WorkTurn()
    if all(spec.kind.grader.is_pure for spec in specs):  # nothing waits, so none is ahead
        results = await grade_batch(specs, [one for _, one in items], explained=True)
        return [
            _outcome(item, result, threshold)
            for (item, _), result in zip(items, results, strict=True)
        ]

    async def grade(one: tuple[str, Submission]) -> tuple[Graded, float]:
        item, submission = one
        # An item with a limit is alone in its turn.
        own = WorkTurn() if turn.limit is None else turn
        with taking(own):
            result = await grade_submission(specs, submission)
        return _outcome(item, result, threshold), own.spent

    done = await each(items, grade, at_once=_AT_ONCE)
    turn.each = [took for _, took in done]
    return [one for one, _ in done]


def _outcome(item: str, result: EvaluationResult, threshold: float) -> Graded:
    """The outcome that a combined result stands for."""
    details: dict[str, Json] = {}
    if result.info:
        details["info"] = plain(result.info)
    if result.reward is not None:
        details["passed"] = result.reward >= threshold
    return Graded.of_result(item, result, details)
