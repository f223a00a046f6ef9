"""Grade items with a stored grader's definition."""

from __future__ import annotations

from collections.abc import Sequence

from assay.errors import InputError
from assay.graders.apply import grade_many, grade_submission
from assay.graders.judges.base import JudgeGrader
from assay.graders.spec import GraderSpec
from assay.registry.definition import Definition
from assay.registry.definitions import (
    CustomDefinition,
    DeclaredDefinition,
    FunctionDefinition,
    definition_from,
)
from assay.registry.policy import Permissions
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json, plain
from assay.scoring.results import EvaluationResult
from assay.store.catalog import GraderVersion
from assay.types.submission import Submission

__all__ = ["Items", "Permissions", "grade_items", "grade_version", "refusal"]

Items = Sequence[tuple[str, Submission]]

_AT_ONCE = 32
"""Items that declared graders are busy with at the same time."""


def refusal(definition: Definition, permissions: Permissions) -> InputError | None:
    """Why a definition cannot grade here, or None."""
    if isinstance(definition, CustomDefinition) and not definition.path:
        return InputError(
            "this custom grader grades nothing itself", hint="its scores are written in"
        )
    for refused in permissions.refusals(definition.kind, definition.to_dict()):
        return refused
    for spec in definition.specs():
        grader = spec.kind.grader
        # Judges whose models cannot be asked on this machine are refused before anything is.
        if issubclass(grader, JudgeGrader) and (missing := grader.models_missing(spec.options)):
            return InputError(f"grader {spec.label!r} cannot ask its model: {'; '.join(missing)}")
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
    definition = definition_from(version.kind, version.definition)
    from assay.sandbox.functions import owned_by

    with owned_by(version.project):  # no worker is shared between projects
        graded = await grade_items(definition, items, permissions)
    name = f"{version.key}@{version.number}"
    return [one.by(name, one.digest) for one in graded]


async def grade_items(
    definition: Definition, items: Items, permissions: Permissions
) -> list[Graded]:
    """Grade items.

    Returns:
        What came of each item, in the order of the items, with the digest of what graded.

    Raises:
        InputError: For a grader that cannot grade here.
    """
    if refused := refusal(definition, permissions):
        raise refused
    if isinstance(definition, CustomDefinition):
        return await grade_many(GraderSpec(type=definition.path), items)
    if isinstance(definition, FunctionDefinition):
        from assay.graders.functions import FunctionSource, grade_functions

        source = FunctionSource(
            text=definition.source, isolation=definition.isolation, range=definition.range
        )
        graded = await grade_functions(source, items)
    elif isinstance(definition, DeclaredDefinition):
        graded = await _grade_declared(definition, items)
    else:
        (spec,) = definition.specs()
        graded = await grade_many(spec, items)
    digest = definition.digest()
    return [one.by(one.grader, digest) for one in graded]


async def _grade_declared(definition: DeclaredDefinition, items: Items) -> list[Graded]:
    import asyncio

    specs, turn = definition.specs(), asyncio.Semaphore(_AT_ONCE)

    async def grade(item: str, submission: Submission) -> Graded:
        async with turn:
            result = await grade_submission(specs, submission)
            return _outcome(item, result, definition.threshold)

    return list(await asyncio.gather(*(grade(item, one) for item, one in items)))


def _outcome(item: str, result: EvaluationResult, threshold: float) -> Graded:
    """The outcome that a combined result stands for."""
    details: dict[str, Json] = {}
    if result.info:
        details["info"] = plain(result.info)
    if result.reward is not None:
        details["passed"] = result.reward >= threshold
    return Graded.of_result(item, result, details)
