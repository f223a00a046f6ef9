"""``client.graders.create``: store a grader, by type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias, TypedDict, Unpack, cast

from assay.client.asking import M_co, Part, by_hand, warn_caller
from assay.client.errors import ArgumentError
from assay.client.scope import Item, items_of
from assay.scoring.json_safe import Json
from assay.service.graders import create_grader
from assay.types.codec import ShapeError, to_json

if TYPE_CHECKING:
    from assay.graders.judges.panel import Aggregate, Tie
    from assay.registry import Definition
    from assay.store import GraderRecord

Function: TypeAlias = "Callable[..., object] | str"
"""An ``async def`` with one parameter, or the source of a module that defines ``grade``."""


class PanelOptions(TypedDict, total=False):
    """How often a judge's model is asked, and how its votes are counted."""

    repeats: int
    aggregate: Aggregate | None
    quorum: int
    tie: Tie
    escalate: str
    temperature: float | None
    max_tokens: int
    timeout_seconds: float


class GraderOptions(TypedDict, total=False):
    """What is said of a grader beside its definition.

    Attributes:
        name: For people; the key by default.
        description: What it is for.
        feedback_key: The metric that its scores are written to; the key by default.
        note: Why this version was made.
        project: The project; the client's by default.
    """

    name: str
    description: str
    feedback_key: str
    note: str
    project: str | None


class Sampled(GraderOptions, total=False):
    """What is said of a grader that is tried before it is stored.

    Attributes:
        samples: Real rows that it must be able to grade.
    """

    samples: Sequence[Item]


class FunctionOptions(Sampled, total=False):
    """What may be said of a function.

    Attributes:
        isolation: Whether each call is a process of its own (``call``), or each batch.
        range: Lowest and highest score; a score outside is an error. Any finite one by default.
    """

    isolation: Literal["call", "batch"]
    range: tuple[float, float] | None


class PrebuiltJudgeOptions(GraderOptions, total=False):
    """The options of every judge; one that is None has its default."""

    judge_model: str | None
    panel: PanelOptions | None


class BinaryJudgeOptions(PrebuiltJudgeOptions, Sampled, total=False):
    """The options of `BinaryJudgeGrader`; one that is None has its default."""

    examples: Sequence[Mapping[str, object]] | None
    system_template: str | None
    user_template: str | None
    template_variables: Mapping[str, object] | None
    allow_na: bool | None
    few_shot: int | None
    canary: float | None
    openers: bool | None
    images: bool | None


class EndpointOptions(GraderOptions, total=False):
    """The options of `ExternalEndpointGrader`; one that is None has its default."""

    protocol: Literal["assay", "adaptive", "openrlhf", "nemo_gym"] | None
    auth: Literal["bearer", "hmac", "none"] | None
    secret_env: str | None
    timeout_seconds: float | None
    retries: int | None
    batch: int | None
    parallel: int | None
    allow_internal: bool | None
    range: tuple[float, float] | None


def refuse_call(*_: object, **__: object) -> NoReturn:
    """Answer whoever calls ``client.graders.create`` itself: there is a call for each type.

    Raises:
        ArgumentError: Always.
    """
    raise ArgumentError(
        "graders.create is called by the type of the grader",
        hint="create.function(key=..., fn=...), .binary_judge, .prebuilt_judge, "
        ".external_endpoint, .custom, or .declared(key=..., graders=[{'type': ...}])",
    )


class GraderTypes(Part[M_co]):
    """``client.graders.create``: one call per type of grader.

    Every call is given a ``key``, what the grader is called from now on (lowercase letters, digits,
    ``.``, ``_`` and ``-``), and may be given what `GraderOptions` lists. It is validated before
    anything is stored, and returns the stored grader; what is worth a look comes as Python
    warnings.

    Raises:
        InputError: The definition is wrong; a `ValueError` too. For a function that fails
            validation its ``report`` holds the checks.
        ConflictError: The key is taken.
    """

    called = "graders.create"

    if not TYPE_CHECKING:  # which says it sooner
        __call__ = refuse_call

    @by_hand
    async def function(
        self, *, key: str, fn: Function, **options: Unpack[FunctionOptions]
    ) -> GraderRecord:
        """Store a Python function, after five checks in the sandbox.

        Args:
            key: What it is called.
            fn: The function itself, or the source of a module that defines ``grade``.
            **options: ``samples``, ``isolation``, ``range``, and what every grader may be given.
        """
        return await self._store(key, "function", {"source": _source(fn)}, options)

    @by_hand
    async def binary_judge(
        self, *, key: str, criteria: str, **options: Unpack[BinaryJudgeOptions]
    ) -> GraderRecord:
        """Store a judge that says PASS or FAIL by a criterion in natural language.

        Args:
            key: What it is called.
            criteria: What makes a pass.
            **options: ``judge_model`` (``claude-haiku-4-5`` by default), ``examples``,
                ``system_template``, ``user_template``, ``template_variables``, ``allow_na``,
                ``few_shot``, ``panel`` ...: the options of `BinaryJudgeGrader`; an unknown one is
                refused by name.
        """
        return await self._store(key, "binary_judge", {"criteria": criteria}, options)

    @by_hand
    async def prebuilt_judge(
        self,
        *,
        key: str,
        type: str,  # noqa: A002 - the name that users of this call know
        **options: Unpack[PrebuiltJudgeOptions],
    ) -> GraderRecord:
        """Store a judge for RAG: FAITHFULNESS, CONTEXT_RELEVANCY or ANSWER_RELEVANCY.

        Args:
            key: What it is called.
            type: The procedure.
            **options: ``judge_model`` (``claude-haiku-4-5`` by default) and ``panel``.
        """
        return await self._store(key, "prebuilt_judge", {"type": type}, options)

    @by_hand
    async def external_endpoint(
        self, *, key: str, url: str, **options: Unpack[EndpointOptions]
    ) -> GraderRecord:
        """Store the address of a server that grades.

        Args:
            key: What it is called.
            url: Where it is.
            **options: ``protocol``, ``auth``, ``secret_env``, ``timeout_seconds``, ``batch``,
                ``range`` ...; an unknown one is refused by name.
        """
        return await self._store(key, "external_endpoint", {"url": url}, options)

    @by_hand
    async def custom(
        self, *, key: str, path: str = "", **said: Unpack[GraderOptions]
    ) -> GraderRecord:
        """Store a name for scores that are written in, or for a `Grader` class of the project.

        Args:
            key: What it is called.
            path: ``python:module:Class``; empty where scores are written in.
            **said: What every grader may be given.
        """
        return await self._store(key, "custom", {"path": path or None}, said)

    @by_hand
    async def declared(
        self, *, key: str, graders: Sequence[Mapping[str, Json]], **said: Unpack[GraderOptions]
    ) -> GraderRecord:
        """Store graders as a case or a grader file declares them; their scores are combined."""
        return await self._store(key, "declared", {"graders": [dict(one) for one in graders]}, said)

    async def _store(
        self, key: str, kind: str, fields: Mapping[str, object], options: Mapping[str, object]
    ) -> GraderRecord:
        said: dict[str, Any] = {name: options[name] for name in _SAID if name in options}
        more = {name: value for name, value in options.items() if name not in said}
        if kind in _TRIED:
            samples = cast("Sequence[Item]", more.pop("samples", ()))
            said["samples"] = items_of(samples, "samples")
        definition = _read(kind, {**fields, **more})
        made = await self._scope.call(create_grader, key, kind, definition.to_dict(), **said)
        if kind != "custom":  # whose only one is that it grades nothing, as is meant
            for warning in made.warnings:
                warn_caller(f"grader {key!r}: {warning}", level=3)
        return made.record


_SAID = tuple(GraderOptions.__annotations__)
_TRIED = ("function", "binary_judge")
"""Kinds that are tried on samples when they are stored."""


def _read(kind: str, options: Mapping[str, object]) -> Definition:
    """The definition that some options make; those that are None have their default."""
    from assay.registry import definition_from

    given = {name: to_json(option) for name, option in options.items() if option is not None}
    try:
        return definition_from(kind, given)
    except ShapeError as error:
        for problem in error.problems:
            if problem.at_key and problem.field in given:
                message = f"graders.create.{kind}() takes no parameter {problem.field!r}"
                raise ArgumentError(message, hint=problem.hint) from None
        raise


def _source(fn: Function) -> str:
    from assay.graders.functions import source_of

    return fn if isinstance(fn, str) else source_of(fn)


def function_definition(fn: Function) -> Definition:
    """What is stored of a function: its source, called as usual."""
    return _read("function", {"source": _source(fn)})
