"""``client.graders.create``: store a grader, by type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from assay.client.scope import Item, Scope, checked_calls, rows_of, warn_caller
from assay.scoring.json_safe import Json
from assay.service.graders import create_grader

if TYPE_CHECKING:
    from assay.registry import Definition, FunctionDefinition
    from assay.store import GraderRecord

__all__ = ["AsyncGraderTypes", "Function", "function_definition"]

Function: TypeAlias = "Callable[..., object] | str"
"""An ``async def`` with one parameter, or the source of a module that defines ``grade``."""


@checked_calls("graders.create")
class AsyncGraderTypes:
    """``client.graders.create``: one call per type of grader.

    Every call is validated before anything is stored, and returns the stored grader.

    Raises:
        InputError: The definition is wrong; a `ValueError` too. For a function that fails
            validation its ``report`` holds the checks.
        ConflictError: The key is taken.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def function(
        self,
        *,
        key: str,
        fn: Function,
        name: str = "",
        description: str = "",
        feedback_key: str = "",
        note: str = "",
        isolation: Literal["call", "batch"] = "call",
        range: tuple[float, float] | None = None,  # noqa: A002 - the field's name everywhere
        samples: Sequence[Item] = (),
        project: str | None = None,
    ) -> GraderRecord:
        """Store a Python function, after five checks in the sandbox.

        Args:
            key: What it is called from now on: lowercase letters, digits, ``.``, ``_`` and ``-``.
            fn: The function itself, or the source of a module that defines ``grade``.
            name: For people; the key by default.
            description: What it is for.
            feedback_key: The metric that its scores are written to; the key by default.
            note: Why this version was made.
            isolation: Whether each call is a process of its own, or each batch.
            range: Lowest and highest score; a score outside is an error. Any finite one by default.
            samples: Real rows that it must be able to grade.
            project: The project; the client's by default.
        """
        definition = function_definition(fn, isolation=isolation, bounds=range)
        return await self._store(
            project,
            key,
            definition,
            samples,
            name=name,
            description=description,
            feedback_key=feedback_key,
            note=note,
        )

    async def binary_judge(
        self,
        *,
        key: str,
        criteria: str,
        judge_model: str | None = None,
        feedback_key: str = "",
        examples: Sequence[Mapping[str, Json]] = (),
        system_template: str = "",
        user_template: str = "",
        template_variables: Mapping[str, Json] | None = None,
        allow_na: bool = False,
        few_shot: int = 8,
        panel: Mapping[str, Json] | None = None,
        name: str = "",
        description: str = "",
        note: str = "",
        samples: Sequence[Item] = (),
        project: str | None = None,
    ) -> GraderRecord:
        """Store a judge that says PASS or FAIL by a criterion in natural language.

        What is worth a look in its templates comes as Python warnings.

        Args:
            key: What it is called from now on: lowercase letters, digits, ``.``, ``_`` and ``-``.
            criteria: What makes a pass.
            judge_model: The model that judges, ``claude-haiku-4-5`` by default; see the page on
                models.
            feedback_key: The metric that its scores are written to; the key by default.
            examples: ``{"input", "output", "pass", "reasoning"}`` each.
            system_template: Handlebars template; assay's own by default.
            user_template: The same for the user's turn.
            template_variables: Variables of one's own for the templates.
            allow_na: Whether the judge may say that the criterion does not apply: a skip.
            few_shot: How many of the examples it is shown, at most; 0 to 8.
            panel: ``repeats``, ``aggregate``, ``temperature`` ...: see the page on judges.
            name: For people; the key by default.
            description: What it is for.
            note: Why this version was made.
            samples: Real rows that it must be able to grade.
            project: The project; the client's by default.
        """
        data: dict[str, Json] = {
            "criteria": criteria,
            **_model(judge_model),
            "examples": [dict(example) for example in examples],
            "system_template": system_template,
            "user_template": user_template,
            "template_variables": dict(template_variables or {}),
            "allow_na": allow_na,
            "few_shot": few_shot,
            "panel": dict(panel or {}),
        }
        return await self._store(
            project,
            key,
            _read("binary_judge", data),
            samples,
            name=name,
            description=description,
            feedback_key=feedback_key,
            note=note,
        )

    async def prebuilt_judge(
        self,
        *,
        key: str,
        type: str,  # noqa: A002 - the name that users of this call know
        judge_model: str | None = None,
        panel: Mapping[str, Json] | None = None,
        name: str = "",
        description: str = "",
        feedback_key: str = "",
        note: str = "",
        project: str | None = None,
    ) -> GraderRecord:
        """Store a judge for RAG: FAITHFULNESS, CONTEXT_RELEVANCY or ANSWER_RELEVANCY.

        The model that judges is ``claude-haiku-4-5`` by default.
        """
        data: dict[str, Json] = {
            "type": type,
            **_model(judge_model),
            "panel": dict(panel or {}),
        }
        return await self._store(
            project,
            key,
            _read("prebuilt_judge", data),
            name=name,
            description=description,
            feedback_key=feedback_key,
            note=note,
        )

    async def external_endpoint(
        self,
        *,
        key: str,
        url: str,
        name: str = "",
        description: str = "",
        feedback_key: str = "",
        note: str = "",
        project: str | None = None,
        **options: Json,
    ) -> GraderRecord:
        """Store the address of a server that grades.

        Args:
            key: What it is called from now on: lowercase letters, digits, ``.``, ``_`` and ``-``.
            url: Where it is.
            name: For people; the key by default.
            description: What it is for.
            feedback_key: The metric that its scores are written to; the key by default.
            note: Why this version was made.
            project: The project; the client's by default.
            **options: ``protocol``, ``auth``, ``secret_env``, ``timeout_seconds``, ``batch``,
                ``range`` ...; an unknown one is refused by name.
        """
        return await self._store(
            project,
            key,
            _read("external_endpoint", {"url": url, **options}),
            name=name,
            description=description,
            feedback_key=feedback_key,
            note=note,
        )

    async def custom(
        self,
        *,
        key: str,
        path: str = "",
        name: str = "",
        description: str = "",
        feedback_key: str = "",
        note: str = "",
        project: str | None = None,
    ) -> GraderRecord:
        """Store a name for scores that are written in, or for a `Grader` class of the project.

        Args:
            key: What it is called from now on: lowercase letters, digits, ``.``, ``_`` and ``-``.
            path: ``python:module:Class``; empty where scores are written in.
            name: For people; the key by default.
            description: What it is for.
            feedback_key: The metric that its scores are written to; the key by default.
            note: Why this version was made.
            project: The project; the client's by default.
        """
        return await self._store(
            project,
            key,
            _read("custom", {"path": path} if path else {}),
            name=name,
            description=description,
            feedback_key=feedback_key,
            note=note,
        )

    async def declared(
        self,
        *,
        key: str,
        graders: Sequence[Mapping[str, Json]],
        name: str = "",
        description: str = "",
        feedback_key: str = "",
        note: str = "",
        project: str | None = None,
    ) -> GraderRecord:
        """Store graders as a case or a grader file declares them; their scores are combined."""
        return await self._store(
            project,
            key,
            _read("declared", {"graders": [dict(one) for one in graders]}),
            name=name,
            description=description,
            feedback_key=feedback_key,
            note=note,
        )

    async def _store(
        self,
        project: str | None,
        key: str,
        definition: Definition,
        samples: Sequence[Item] = (),
        **said: str,
    ) -> GraderRecord:
        from assay.registry import FunctionDefinition
        from assay.registry.validation import definition_warnings

        rows = rows_of(samples)
        made = await self._scope.call(
            create_grader,
            project,
            key,
            definition.kind,
            definition.to_dict(),
            samples=rows,
            **said,
        )
        if not isinstance(definition, FunctionDefinition):
            for warning in definition_warnings(definition):
                warn_caller(f"grader {key!r}: {warning}")
        return made.record


def _read(kind: str, data: Mapping[str, Json]) -> Definition:
    from assay.registry import definition_from

    return definition_from(kind, data)


def _model(given: str | None) -> dict[str, Json]:
    """The model of a judge; where none is given, the definition has a default."""
    return {} if given is None else {"judge_model": given}


def function_definition(
    fn: Function,
    *,
    isolation: Literal["call", "batch"] = "call",
    bounds: tuple[float, float] | None = None,
) -> FunctionDefinition:
    """What is stored of a function: its source, and how it is called."""
    from assay.graders.functions import source_of
    from assay.registry import FunctionDefinition

    source = fn if isinstance(fn, str) else source_of(fn)
    return FunctionDefinition(source=source, isolation=isolation, range=bounds)
