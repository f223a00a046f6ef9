"""`Environment`: where work happens; a named collection of templates."""

from __future__ import annotations

import inspect
import os
from asyncio import AbstractEventLoop, Lock, get_running_loop
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, cast, overload
from weakref import WeakKeyDictionary

from assay.environment.state import Resource, State
from assay.environment.template import (
    Hook,
    Template,
    TemplateFunction,
    require_named_parameters,
)
from assay.environment.tools import require_tool_name, told_tool
from assay.errors import InputError, nearest
from assay.scoring.json_safe import Json
from assay.scoring.results import EvaluationResult
from assay.tasks.task import Session, Task, Taskset, Work
from assay.tasks.tools import FunctionTool, function_tool
from assay.types.run import Prompt
from assay.types.submission import Submission

if TYPE_CHECKING:
    from assay.environment.workspace import SessionWorkspace
    from assay.tasks.blocks import ContainerSpec
    from assay.tasks.mcp_servers import McpServer
    from assay.tasks.origin import Source
    from assay.tasks.permitted import SubmissionSpec

P = ParamSpec("P")
Q = ParamSpec("Q")
T = TypeVar("T")


class Environment:
    """Templates under one name, with hooks that run once around their use.

    Args:
        name: The environment's name.
        version: Its version, shown in the manifest.
        mcp: MCP servers, by name, whose tools a model agent is offered in its tasks.
    """

    def __init__(
        self,
        name: str = "environment",
        *,
        version: str = "0.0.1",
        mcp: Mapping[str, McpServer] | None = None,
    ) -> None:
        self.name = name
        self.version = version
        self.mcp = dict(mcp or {})
        self.tools: dict[str, FunctionTool] = {}
        self._templates: dict[str, Template[...]] = {}
        self._initialize: list[Hook] = []
        self._shutdown: list[Hook] = []
        self._resources: list[Resource[Any]] = []
        self._started = False
        self._starting: WeakKeyDictionary[AbstractEventLoop, Lock] = WeakKeyDictionary()
        self._active_session: _ScenarioSession | None = None

    @overload
    def template(self, function: TemplateFunction[P], /) -> Template[P]: ...
    @overload
    def template(
        self,
        *,
        id: str | None = None,
        description: str = "",
        input: object = None,
        returns: object = None,
        max_steps: int | None = None,
        workspace: SessionWorkspace | None = None,
    ) -> Callable[[TemplateFunction[P]], Template[P]]: ...

    def template(
        self,
        function: TemplateFunction[P] | None = None,
        *,
        id: str | None = None,  # noqa: A002 - the field's name everywhere else
        description: str = "",
        input: object = None,  # noqa: A002 - as above
        returns: object = None,
        max_steps: int | None = None,
        workspace: SessionWorkspace | None = None,
    ) -> Template[P] | Callable[[TemplateFunction[P]], Template[P]]:
        """Declare a template on an async generator function: it yields a prompt, and a reward.

        Args:
            function: What is declared, where nothing else is said: ``@env.template``.
            id: Unique id; the function's name by default.
            description: What the task is; the docstring's first line by default.
            input: Type of the structured input, for the manifest.
            returns: Type that the answer is parsed into, and every other action; it then arrives
                as an `Answer`.
            max_steps: Most actions that the agent may take, for a template that yields
                observations between prompt and reward. The answer is the last of them.
            workspace: Where the agent works, as `workspace` declares it.

        Raises:
            InputError: For a duplicate id, a function that is not an async generator, one with
                parameters that a row cannot name (``*args``, ``**kwargs``, before ``/``), steps
                that are no whole number above 0, or steps in a workspace.
        """

        def declare(function: TemplateFunction[P]) -> Template[P]:
            name = id or getattr(function, "__name__", "")
            if not inspect.isasyncgenfunction(function):
                raise InputError(
                    f"template {name!r} must be an async generator function",
                    hint="write `async def` and yield twice: the prompt, then the reward",
                )
            if name in self._templates:
                raise InputError(f"environment {self.name!r} already has a template {name!r}")
            if max_steps is not None and (type(max_steps) is not int or max_steps < 1):
                raise InputError(f"template {name!r}: max_steps must be at least 1")
            if isinstance(cast("object", workspace), str | os.PathLike):
                raise InputError(
                    f"template {name!r} has the workspace {workspace!r}, which is not declared",
                    hint=f"workspace=env.workspace({workspace!r})",
                )
            if max_steps is not None and workspace is not None:
                raise InputError(
                    f"template {name!r} has a workspace and max_steps, and can have one of them",
                    hint="work in a workspace is graded when the agent has ended",
                )
            require_named_parameters(name, function)
            text = description or (inspect.getdoc(function) or "").partition("\n")[0]
            template: Template[P] = Template(
                id=name,
                description=text,
                function=function,
                env=self.name,
                input=input,
                returns=returns,
                start=self.start,
                max_steps=max_steps,
                mcp=self.mcp,
                stop=self.stop,
                workspace=workspace,
                tools=self.tools,
            )
            self._templates[name] = template
            return template

        return declare if function is None else declare(function)

    def scenario(
        self,
        name: str | None = None,
        description: str | None = None,
        *,
        returns: object = None,
    ) -> Callable[[TemplateFunction[P]], Template[P]]:
        """`template` under its older name."""
        return self.template(id=name, description=description or "", returns=returns)

    async def run_scenario_setup(self, name: str, args: Mapping[str, object]) -> Prompt:
        """Begin a scenario by hand and return its prompt; one at a time.

        Raises:
            InputError: For an unknown scenario, or arguments that it does not take.
        """
        stack = AsyncExitStack()
        work = cast("Work", self.task(name, **args).work)  # a template's task begins itself
        session = await stack.enter_async_context(work.open())
        self._active_session = _ScenarioSession(name, session, stack)
        return session.prompt

    async def run_scenario_evaluate(self, name: str) -> EvaluationResult:
        """End the scenario that `run_scenario_setup` began, with the answer of its session.

        Raises:
            InputError: If it is not the one that was begun.
            TemplateError: If it does not end as a template should.
        """
        active = self._active_session
        if active is None or active.name != name:
            raise InputError(f"scenario {name!r} was not begun", hint="run_scenario_setup first")
        self._active_session = None
        async with active.stack:
            return await active.session.grade(Submission(answer=active.answer))

    @property
    def templates(self) -> dict[str, Template[...]]:
        """The templates by id."""
        return dict(self._templates)

    def task(self, template_id: str, /, **args: object) -> Task:
        """A task of one of the templates.

        Raises:
            InputError: For an unknown template, or arguments that it does not take.
        """
        template = self._templates.get(template_id)
        if template is None:
            hint = nearest(template_id, list(self._templates))
            raise InputError(f"{self.name!r} has no template {template_id!r}", hint=hint)
        return template(**args)

    def default_tasks(self) -> list[Task]:
        """A task of every template that needs no arguments."""
        return [template() for template in self._templates.values() if not template.needs_arguments]

    @property
    def taskset(self) -> Taskset:
        """The default tasks as a set."""
        return Taskset(self.name, self.default_tasks())

    def manifest(self) -> dict[str, Json]:
        """What the environment offers: its name, version and templates with JSON schemas."""
        rows: list[Json] = [template.manifest() for template in self._templates.values()]
        told: dict[str, Json] = {"name": self.name, "version": self.version, "templates": rows}
        if self.tools:
            told["tools"] = list[Json](map(told_tool, self.tools.values()))
        return told

    @overload
    def tool(self, function: Callable[Q, T], /) -> Callable[Q, T]: ...
    @overload
    def tool(
        self, *, name: str = "", description: str = "", parallel: bool = False
    ) -> Callable[[Callable[Q, T]], Callable[Q, T]]: ...

    def tool(
        self,
        function: Callable[Q, T] | None = None,
        *,
        name: str = "",
        description: str = "",
        parallel: bool = False,
    ) -> Callable[Q, T] | Callable[[Callable[Q, T]], Callable[Q, T]]:
        """Declare a function as a tool for the agents of all its tasks: ``@env.tool``.

        It runs in this process, in the session of the agent that calls it, whose states it sees. It
        may be async; if it is not, it runs in a thread. What it raises is told to the agent. Calls
        of one session run one after the other, so that a tool may look, await and then act.

        Args:
            function: It.
            name: What it is called; its own name by default.
            description: What it does; its docstring by default.
            parallel: Whether its calls may run beside others, such as those that only read. A
                session that is served has one call at a time whatever this says.

        Raises:
            InputError: For a second tool of one name, a name that some provider would not take, or
                parameters that cannot be told to a model.
        """

        def declare(function: Callable[Q, T]) -> Callable[Q, T]:
            tool = function_tool(function, name=name, description=description, parallel=parallel)
            require_tool_name(tool.name)
            if tool.name in self.tools:
                raise InputError(f"environment {self.name!r} already has a tool {tool.name!r}")
            self.tools[tool.name] = tool
            return function

        return declare if function is None else declare(function)

    def state(self, make: Callable[[], T]) -> State[T]:
        """Declare what every session has of its own.

        Returns:
            A function that gives the object of the session in which it is called: in a template, or
            in a tool. It is made by ``make`` when it is first asked for, and goes with the session.

        Raises:
            InputError: If ``make`` takes arguments, or is async.
        """
        return State(make)

    def resource(self, function: Callable[[], AsyncGenerator[T, None]]) -> Resource[T]:
        """Declare what all sessions share, such as a database: ``@env.resource``.

        Args:
            function: An async generator function that makes it, yields it once, and closes it. It
                is run once, before the first task begins; `stop` goes on with it. If it fails, no
                task begins, and each has an error.

        Returns:
            A function that gives what was yielded.

        Raises:
            InputError: If it is no async generator function, or takes arguments.
        """
        resource = Resource(function)
        self._resources.append(resource)
        return resource

    def workspace(
        self,
        source: str | os.PathLike[str] | Source | None = None,
        *,
        container: str | ContainerSpec | None = None,
        setup: Sequence[str] = (),
        network: bool = False,
        submission: SubmissionSpec | None = None,
    ) -> SessionWorkspace:
        """Declare a workspace, of which every session of a template that takes it gets its own.

        The agent works in it with its tools in the sandbox. What it leaves is graded as a case's
        work is: in a fresh tree of the source and the changes that are permitted.

        Args:
            source: Directory that it is a copy of, or a `Source` (a git commit, a distribution);
                None for an empty one.
            container: Image whose file system its commands run in; None for this machine's.
            setup: Shell lines that are run in it, in the sandbox, before the template begins.
            network: Whether the agent's commands may use the network.
            submission: Which changes are graded.

        Returns:
            What gives it: to the template's decorator, and in the template to graders and commands.

        Raises:
            InputError: For a source that is not there.
        """
        from assay.environment.workspace import SessionWorkspace, workspace_case

        return SessionWorkspace(
            workspace_case(self.name, source, container, setup, submission, network=network)
        )

    def initialize(self, hook: Callable[[], object]) -> Callable[[], object]:
        """Declare an async function to run once, before the first task begins."""
        self._initialize.append(_hook(hook))
        return hook

    def shutdown(self, hook: Callable[[], object]) -> Callable[[], object]:
        """Declare an async function for `stop` to run."""
        self._shutdown.append(_hook(hook))
        return hook

    async def start(self) -> None:
        """Run the initialize hooks and start the resources, once; who comes meanwhile waits."""
        if self._started and all(resource.is_ready for resource in self._resources):
            return
        async with self._starting.setdefault(get_running_loop(), Lock()):
            if not self._started:
                for hook in self._initialize:
                    await hook()
                self._started = True
            for resource in self._resources:
                await resource.start()

    async def stop(self) -> None:
        """Close the resources and run the shutdown hooks, each in reverse, if it was started."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._shut_down)
            for resource in self._resources:
                stack.push_async_callback(resource.stop)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _shut_down(self) -> None:
        if self._started:
            self._started = False
            for hook in reversed(self._shutdown):
                await hook()


@dataclass(slots=True)
class _ScenarioSession:
    """A scenario that is driven by hand, and what it is answered."""

    name: str
    session: Session
    stack: AsyncExitStack
    answer: str | None = None


def _hook(function: Callable[[], object]) -> Hook:
    if not inspect.iscoroutinefunction(function):
        name = getattr(function, "__name__", "hook")
        raise InputError(f"{name!r} must be an async function to be a hook")
    return cast("Hook", function)
