"""Templates: async generators that mint tasks.

A template yields exactly twice: first the prompt (text, or chat messages), then, when the agent
has answered, the reward (a number, an `EvaluationResult`, or a mapping of one)::

    @env.template()
    async def capital(country: str = "France"):
        answer = yield f"What is the capital of {country}?"
        yield exact_match(answer, "Paris")
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, cast

from assay.environment.answer import parse_answer
from assay.errors import InputError, ScoreError, TemplateError, nearest
from assay.scoring.graded import Grade
from assay.scoring.json_safe import Json, json_safe, plain
from assay.scoring.results import EvaluationResult, SubScore, finite_number
from assay.tasks.task import Session, Task
from assay.types.codec import to_json
from assay.types.run import Prompt
from assay.types.submission import Submission, Workspace
from assay.types.typed import type_adapter

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from assay.tasks.mcp_servers import McpServer

__all__ = ["Hook", "Template", "TemplateFunction", "require_named_parameters"]

P = ParamSpec("P")
TemplateFunction = Callable[P, AsyncGenerator[Any, Any]]
Hook = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Template(Generic[P]):
    """A declared template; calling it makes a `Task`.

    Attributes:
        id: Unique in its environment.
        description: What the task is, for people and the manifest.
        function: The async generator function.
        env: The environment's name.
        input: Type of the structured input, for the manifest; None if undeclared.
        returns: Type that answers are parsed into; None for plain text.
        start: Run once before the environment's first task begins.
        mcp: The environment's MCP servers, by name.
        stop: Run when its environment's tasks are done.
    """

    id: str
    description: str
    function: TemplateFunction[P]
    env: str
    input: object = None
    returns: object = None
    start: Hook | None = None
    mcp: Mapping[str, McpServer] = field(default_factory=dict[str, "McpServer"])
    stop: Hook | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Task:
        """Bind arguments, each checked against its annotation.

        Raises:
            InputError: For an argument that is unknown, missing, or of the wrong type.
        """
        signature = inspect.signature(self.function)
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            unknown = [name for name in kwargs if name not in signature.parameters]
            hint = nearest(unknown[0], list(signature.parameters)) if unknown else ""
            raise InputError(f"template {self.id!r}: {error}", hint=hint) from error
        checked = {name: self._check(name, item) for name, item in bound.arguments.items()}
        work = TemplateWork(self, checked)
        arguments = {name: self._row_form(name, item) for name, item in checked.items()}
        return Task(id=self.id, env=self.env, args=arguments, work=work)

    @property
    def needs_arguments(self) -> bool:
        """Whether it has a parameter without a default."""
        parameters = inspect.signature(self.function).parameters.values()
        return any(p.default is p.empty for p in parameters)

    def manifest(self) -> dict[str, Json]:
        """The template's row of the manifest: id, description and JSON schemas."""
        properties: dict[str, Json] = {}
        required: list[Json] = []
        for name, parameter in inspect.signature(self.function).parameters.items():
            adapter = type_adapter(self._annotation(name), what=f"{self.id}.{name}")
            described: dict[str, Json] = adapter.json_schema()
            if parameter.default is parameter.empty:
                required.append(name)
            else:
                described["default"] = json_safe(parameter.default)
            properties[name] = described
        arguments: dict[str, Json] = {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }
        row: dict[str, Json] = {
            "id": self.id,
            "description": self.description,
            "args": arguments,
        }
        for key, annotation in (("input", self.input), ("returns", self.returns)):
            if annotation is not None:
                row[key] = type_adapter(annotation, what=f"{self.id} {key}").json_schema()
        return row

    def _annotation(self, name: str) -> object:
        import typing

        try:
            hints = typing.get_type_hints(self.function)
        except NameError:  # a type that only exists for type checkers: anything goes
            return object
        return hints.get(name, object)

    def _row_form(self, name: str, value: object) -> Json:
        """An argument as JSON from which `_check` makes it again."""
        if value is None or isinstance(value, str | int | float | list | dict):
            return plain(cast("object", value))
        import pydantic

        try:
            adapter = type_adapter(self._annotation(name), what=name)
            return cast("Json", adapter.dump_python(value, mode="json"))
        except (InputError, pydantic.PydanticUserError, ValueError):
            return json_safe(value)

    def _check(self, name: str, value: object) -> object:
        annotation = self._annotation(name)
        if annotation is object or (isinstance(annotation, type) and type(value) is annotation):
            return value
        import pydantic

        adapter = type_adapter(annotation, what=f"template {self.id!r}, argument {name!r}")
        try:
            return adapter.validate_python(value)
        except pydantic.ValidationError as error:
            message = error.errors(include_url=False)[0]["msg"]
            raise InputError(
                f"template {self.id!r}: argument {name!r} is {value!r:.60}", hint=message
            ) from error


@dataclass(frozen=True, slots=True)
class TemplateWork:
    """A template with its arguments: what a template's task begins."""

    template: Template[...]
    arguments: Mapping[str, object]

    @property
    def returns(self) -> object:
        """Type of the answer; None for text."""
        return None if self.template.returns is str else self.template.returns

    @property
    def mcp(self) -> Mapping[str, McpServer]:
        """The environment's MCP servers."""
        return self.template.mcp

    @property
    def file(self) -> str:
        """The file that defines the template; empty where it is not known."""
        try:
            return inspect.getsourcefile(inspect.unwrap(self.template.function)) or ""
        except TypeError:  # a callable of another kind
            return ""

    async def stop(self) -> None:
        """Run the environment's shutdown hooks, if it was started."""
        if self.template.stop is not None:
            await self.template.stop()

    def open(self) -> AbstractAsyncContextManager[Session]:
        """Begin the task: run the template up to its prompt."""
        return self._session()

    @asynccontextmanager
    async def _session(self) -> AsyncGenerator[Session]:
        if self.template.start is not None:
            await self.template.start()
        generator = self.template.function(**self.arguments)
        try:
            yield await TemplateSession.begin(self.template, generator)
        finally:
            await generator.aclose()


class TemplateSession:
    """A template's generator, suspended at its prompt."""

    def __init__(
        self, template: Template[...], generator: AsyncGenerator[object, object], prompt: Prompt
    ) -> None:
        self.prompt = prompt
        self.workspace: Workspace | None = None
        self.notes: dict[str, Json] = {}
        self._template = template
        self._generator = generator
        self._adapter: TypeAdapter[object] | None = None
        if template.returns is not None:
            self._adapter = type_adapter(template.returns, what=f"{template.id} returns")

    @classmethod
    async def begin(
        cls, template: Template[...], generator: AsyncGenerator[object, object]
    ) -> TemplateSession:
        """Run a generator to its first yield.

        Raises:
            TemplateError: If it yields nothing, or what is not a prompt.
        """
        try:
            first = await anext(generator)
        except StopAsyncIteration:
            raise TemplateError(
                f"template {template.id!r} ended without yielding a prompt"
            ) from None
        return cls(template, generator, _prompt(first, template.id))

    async def grade(self, submission: Submission) -> EvaluationResult:
        """Send the answer in and take the reward from the second yield.

        Raises:
            TemplateError: If there is no second yield, or a third, or no reward in it.
        """
        name = self._template.id
        try:
            reward = await self._generator.asend(self._answer(submission.answer))
        except StopAsyncIteration:
            raise TemplateError(
                f"template {name!r} ended without a second yield", hint="yield the reward"
            ) from None
        result = _result(reward, name)
        try:
            await anext(self._generator)
        except StopAsyncIteration:
            return result
        raise TemplateError(f"template {name!r} yielded a third time", hint="yield exactly twice")

    def _answer(self, answer: str | None) -> object:
        if self._adapter is None:
            return "" if answer is None else answer
        return parse_answer(answer, self._adapter, plain_text=self._template.returns is str)


def require_named_parameters(name: str, function: Callable[..., object]) -> None:
    """Refuse parameters that a row's ``args`` could not name.

    Raises:
        InputError: Naming the parameter.
    """
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise InputError(
                f"template {name!r} takes {parameter}, which a task's args cannot name",
                hint="give every parameter a name, and no `/` after it",
            )


def _prompt(value: object, name: str) -> Prompt:
    if isinstance(value, Mapping) and "prompt" in value:
        value = cast("Mapping[str, object]", value)["prompt"]
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        messages = [to_json(message) for message in cast("list[object]", value)]
        if all(isinstance(message, str | dict) for message in messages):
            return messages
    raise TemplateError(
        f"template {name!r} yielded {type(cast('object', value)).__name__} as its prompt",
        hint="yield text, or a list of chat messages",
    )


def _result(value: object, name: str) -> EvaluationResult:
    """Turn what a template yields second into a result."""
    where = f"template {name!r}"
    if isinstance(value, EvaluationResult):
        return value
    if isinstance(value, Grade):
        return value.result
    if isinstance(value, SubScore):
        raise TemplateError(
            f"{where} yielded a SubScore", hint="yield its .value, or await combine(subscore)"
        )
    try:
        if isinstance(value, Mapping):
            entries = cast("Mapping[str, object]", value)
            return EvaluationResult.from_dict({k: _plain(v) for k, v in entries.items()})
        reward = finite_number(value, what="its reward")
    except ScoreError as error:
        raise TemplateError(f"{where}: {error.message}", hint=error.hint) from error
    return EvaluationResult(reward=reward)


def _plain(value: object) -> Json:
    if isinstance(value, float):
        return value  # NaN must be refused as a reward, not turned into text
    if isinstance(value, list | tuple):
        items = cast("list[object]", value)
        return [i.to_dict() if isinstance(i, SubScore) else json_safe(i) for i in items]
    return json_safe(value)
