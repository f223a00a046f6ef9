"""Templates: async generators that mint tasks.

A template yields first the prompt (text, or chat messages), and last, when the agent has answered,
the reward (a number, an `EvaluationResult`, or a mapping of one)::

    @env.template()
    async def capital(country: str = "France"):
        answer = yield f"What is the capital of {country}?"
        yield exact_match(answer, "Paris")

One that takes several actions yields an `Observation` after each but the last::

    @env.template(returns=int, max_steps=4)
    async def guess(number: int = 7):
        said = yield "Guess a number from 1 to 10."
        while said.content != number:
            said = yield Observation("It is more." if said.ok and said.content < number else "No.")
        yield 1.0
"""

from __future__ import annotations

import copy
import inspect
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, cast

from assay.environment.session import TemplateSession
from assay.errors import InputError, nearest
from assay.scoring.json_safe import Json, json_safe, plain
from assay.tasks.task import Session, Task, Workshop, find_workshop
from assay.types.typed import type_adapter

if TYPE_CHECKING:
    from assay.environment.workspace import SessionWorkspace
    from assay.tasks.mcp_servers import McpServer
    from assay.tasks.tools import FunctionTool

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
        max_steps: Most actions that it takes; None for one that yields no observations.
        mcp: The environment's MCP servers, by name.
        stop: Run when its environment's tasks are done.
        workspace: What declares the workspace of its sessions; None for none.
        tools: The environment's tools, by name.
    """

    id: str
    description: str
    function: TemplateFunction[P]
    env: str
    input: object = None
    returns: object = None
    start: Hook | None = None
    max_steps: int | None = None
    mcp: Mapping[str, McpServer] = field(default_factory=dict[str, "McpServer"])
    stop: Hook | None = None
    workspace: SessionWorkspace | None = None
    tools: Mapping[str, FunctionTool] = field(default_factory=dict[str, "FunctionTool"])

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Task:
        """Bind arguments, each checked against its annotation."""
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
        if self.max_steps is not None:
            row["max_steps"] = self.max_steps
        if self.workspace is not None:
            row["workspace"] = True
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
    def max_steps(self) -> int:
        """Most actions that it takes."""
        return self.template.max_steps or 1

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

    @property
    def network(self) -> bool:
        """Whether the agent's commands may use the network."""
        declared = self.template.workspace
        return declared is not None and declared.case.limits.network

    async def stop(self) -> None:
        """Run the environment's shutdown hooks, if it was started."""
        if self.template.stop is not None:
            await self.template.stop()

    def open(self, *, home: str | None = None) -> AbstractAsyncContextManager[Session]:
        """Begin the task: run the template up to its prompt.

        ``home``: The store's directory, to keep what the agent leaves in its workspace; by default
        it goes with the session.
        """
        return self.open_in(find_workshop(), home=home)

    @asynccontextmanager
    async def open_in(
        self, workshop: Workshop, *, home: str | None = None
    ) -> AsyncGenerator[Session]:
        """Begin the task; its workspace, if it has one, is laid out by the workshop."""
        if self.template.start is not None:
            await self.template.start()
        function = self.template.function
        shared = {**_shared_defaults(function), **self.arguments}
        given = {name: _own(value) for name, value in shared.items()}
        generator: AsyncGenerator[object, object] = function(**given)
        session = TemplateSession(self.template, generator)
        try:
            if (declared := self.template.workspace) is None:
                await session.begin()
                yield session
            else:
                async with workshop(declared.case, session, declared.cache, home) as hosted:
                    yield hosted
        finally:
            await session.close()


@lru_cache(maxsize=1024)
def _shared_defaults(function: TemplateFunction[...]) -> dict[str, object]:
    """The defaults that one session could change for the next."""
    parameters = inspect.signature(function).parameters.values()
    found = {p.name: cast("object", p.default) for p in parameters if p.default is not p.empty}
    return {name: default for name, default in found.items() if _own(default) is not default}


def _own(value: object) -> object:
    """A session's own copy of what a template may change while it plays.

    Whatever a task is made of is there for each of its repeats: what one of them takes off a list
    would be done when the next begins. What is no data, such as a client, stays what it is.
    """
    kind = type(value)
    if kind is dict:
        items = cast("dict[object, object]", value).items()
        return {key: _own(item) for key, item in items}
    if kind in (list, tuple, set):
        return cast("type[list[object]]", kind)(map(_own, cast("list[object]", value)))
    if isinstance(value, dict | list | set | bytearray | deque):
        return copy.copy(cast("object", value))
    if is_dataclass(value) and not isinstance(value, type):
        names = [one.name for one in fields(value)]
    elif hasattr(kind, "model_fields"):  # pydantic's
        names = list(vars(value))
    else:
        return value
    own = copy.copy(value)
    for name in names:
        if hasattr(value, name):
            object.__setattr__(own, name, _own(getattr(value, name)))
    return own


def require_named_parameters(name: str, function: Callable[..., object]) -> None:
    """Refuse parameters that a row's ``args`` could not name."""
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise InputError(
                f"template {name!r} takes {parameter}, which a task's args cannot name",
                hint="give every parameter a name, and no `/` after it",
            )
