"""Grade items with a stored grader's definition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.errors import InputError
from assay.graders.apply import grade_many, grade_submission
from assay.graders.judges.base import JudgeGrader
from assay.graders.spec import GraderSpec
from assay.registry.definition import Definition
from assay.registry.definitions import (
    CustomDefinition,
    DeclaredDefinition,
    EndpointDefinition,
    FunctionDefinition,
)
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json, plain
from assay.scoring.results import EvaluationResult
from assay.types.submission import Submission

__all__ = ["Items", "Permissions", "grade_items", "model_refusal", "refusal"]

Items = Sequence[tuple[str, Submission]]

_PERMITS = "--trust-authors, or of a server --allow-internal-endpoints"
_AT_ONCE = 32
"""Items that declared graders are busy with at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """What stored graders may do where they run; whoever starts the process decides.

    Attributes:
        custom_code: Import and run Python classes that graders name.
        internal: Call endpoints on this machine and on private networks, and models at addresses
            that graders name.
    """

    custom_code: bool = False
    internal: bool = False


def refusal(definition: Definition, permissions: Permissions) -> InputError | None:
    """Why a definition cannot grade here, or None."""
    if isinstance(definition, CustomDefinition):
        return _custom_refusal(definition, permissions)
    if not permissions.internal and (refused := model_refusal(definition)):
        return refused
    for spec in definition.specs():
        is_internal = spec.options.get("allow_internal") is True
        if spec.type == EndpointDefinition.kind and is_internal and not permissions.internal:
            return InputError(
                "allow_internal: endpoints on internal addresses are not called here",
                hint=f"whoever runs assay here must permit it: {_PERMITS}",
            )
    try:
        _require_models(definition.specs())
    except InputError as error:
        return error
    return None


def _require_models(specs: Sequence[GraderSpec]) -> None:
    """Refuse judges whose models cannot be asked on this machine, before anything is."""
    for spec in specs:
        grader = spec.kind.grader
        if not issubclass(grader, JudgeGrader):
            continue
        if missing := grader.models_missing(spec.options):
            raise InputError(f"grader {spec.label!r} cannot ask its model: {'; '.join(missing)}")


_MODELS = ("model", "models", "escalate")


def model_refusal(definition: Definition) -> InputError | None:
    """Why a stored judge's model may be asked only where its author is trusted, or None.

    Whoever stores a grader would else choose what address this machine sends requests to.
    """
    waiting: list[Json] = [dict(spec.options) for spec in definition.specs()]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            for name in _MODELS:
                named = value.get(name)
                for model in named if isinstance(named, list) else [named]:
                    if isinstance(model, str) and "://" in model:
                        return InputError(
                            f"{name}: a stored judge may not name the address of a model here",
                            hint="give the model a name in the settings file of this machine "
                            "(ASSAY_MODELS); or whoever runs assay here must permit it: "
                            f"{_PERMITS}",
                        )
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    return None


def _custom_refusal(definition: CustomDefinition, permissions: Permissions) -> InputError | None:
    if not definition.path:
        return InputError(
            "this custom grader grades nothing itself", hint="its scores are written in"
        )
    if not permissions.custom_code:
        return InputError(
            f"{definition.path!r} is Python code of its author and is not imported here",
            hint="grade with it where its author works, or write its scores in",
        )
    return None


async def grade_items(
    definition: Definition, items: Items, permissions: Permissions
) -> list[Graded]:
    """Grade items.

    Args:
        definition: The grader.
        items: Ids and submissions.
        permissions: What it may do here.

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
