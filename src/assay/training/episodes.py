"""Tasks of environments as trainers play them: each step on assay's own loop, from any thread.

If something fails through no fault of the model, the episode has a fault and no reward.
"""

from __future__ import annotations

import asyncio
import atexit
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, cast

from assay.conversation.turns import Tool
from assay.errors import AssayError, InputError, SkippedError, TaskEndedError, nearest, reason_of
from assay.graders.batch import require_seconds
from assay.graders.threads import wait_for
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json, plain
from assay.tasks.task import Session, Task, Work, find_workspace_tools
from assay.types.run import OfferedTool, Offering, Run, Stepping
from assay.types.submission import Submission, Workspace
from assay.types.trace import ToolResult

if TYPE_CHECKING:
    from assay.environment import Environment
    from assay.environment.channel.client import TaskRow

T = TypeVar("T")
_CLOSE_SECONDS = 10.0
_DONE = "[the task takes no more actions]"


@dataclass(frozen=True, slots=True)
class EpisodeTemplate:
    """A template, in this process or served, that mints tasks and is known to offer tools."""

    row: TaskRow
    tools: tuple[Tool, ...]
    make: Callable[..., Task]

    def task_of(self, columns: Mapping[str, Json]) -> Task:
        """A task whose arguments are among columns; None is none where there is a default."""
        properties, needed = self.row.args.get("properties"), self.row.needed
        known = properties if isinstance(properties, dict) else {}
        given = {
            name: value
            for name, value in columns.items()
            if name in known and (value is not None or name in needed)
        }
        return self.make(self.row.id, **given)


async def _find_template(
    source: Environment | str, name: str, token: str, stack: AsyncExitStack
) -> EpisodeTemplate:
    """The template of an environment."""
    from assay.environment.channel.client import TaskRow, connect
    from assay.environment.channel.worker import environment_in

    if isinstance(source, str) and "://" in source:
        client = await stack.enter_async_context(connect(source, token=token))
        rows, listed, env, make = client.tasks, client.tools, client.name, client.task
    else:
        if isinstance(source, str):
            file, _, variable = source.partition(".py:")
            source = environment_in(f"{file}.py" if variable else source, variable)
        stack.push_async_callback(source.stop)
        manifest = source.manifest()
        rows = [TaskRow.of(row) for row in cast("list[Json]", manifest["templates"])]
        listed = cast("list[dict[str, Json]]", manifest.get("tools") or [])
        env, make = source.name, source.task
    names = [row.id for row in rows]
    if not name and len(names) != 1:
        raise InputError(f"{env!r} has {len(names)} templates", hint=f"name one: {names}")
    row = next((row for row in rows if row.id == (name or names[0])), None)
    if row is None:
        raise InputError(f"{env!r} has no template {name!r}", hint=nearest(name, names))
    tools = [_declared(one) for one in listed]
    if row.workspace:
        over = find_workspace_tools()(Workspace(path=""), network=False).values()
        tools += [
            Tool(name=one.name, description=one.description, schema=one.schema) for one in over
        ]
    return EpisodeTemplate(row, tuple(tools), make)


def _declared(row: Mapping[str, Json]) -> Tool:
    schema = row.get("schema")
    return Tool(
        name=str(row.get("name") or ""),
        description=str(row.get("description") or ""),
        schema=schema if isinstance(schema, dict) else {},
    )


class Episode:
    """A task that is played: begun, acted in, graded once, and closed.

    ``deadline``: Seconds that beginning it, each call and its grading may take; None for any.
    """

    def __init__(self, task: Task, deadline: float | None) -> None:
        self.prompt = ""
        self.fault: Exception | None = None
        self.actions = 0
        self._task, self._deadline = task, deadline
        self._stack = AsyncExitStack()
        self._session: Session | None = None
        self._tools: dict[str, OfferedTool] = {}

    async def begin(self) -> None:
        """Begin it, unless that fails: then it has a fault, and no prompt."""
        with suppress(_Fault):
            await self._try(self._begin())

    async def _begin(self) -> None:
        work = cast("Work", self._task.work)
        session = self._session = await self._stack.enter_async_context(work.open())
        self.prompt = Run(prompt=session.prompt).prompt_text
        if hasattr(session, "tools"):
            self._tools.update(cast("Offering", session).tools)
        if session.workspace is not None:
            network = getattr(work, "network", False) is True
            self._tools.update(find_workspace_tools()(session.workspace, network=network))

    async def call(self, name: str, arguments: Mapping[str, Json]) -> ToolResult:
        """Call a tool; after a fault, all that it gives is an error."""
        tool = self._tools.get(name)
        if tool is None or self.fault is not None:
            return ToolResult(content="error: the tool cannot be called", is_error=True)
        try:
            return await self._try(tool(arguments))
        except (_Fault, TaskEndedError) as error:
            return ToolResult(content=f"error: {error}", is_error=True)

    async def act(self, action: str) -> ToolResult:
        """Take one action of a task of several steps."""
        if self._session is None or self.fault is not None:
            return ToolResult(content="error: the task takes no actions", is_error=True)
        self.actions += 1
        try:
            seen = await self._try(cast("Stepping", self._session).step(action))
        except (_Fault, TaskEndedError) as error:
            return ToolResult(content=f"error: {error}", is_error=True)
        shown = Run(prompt=[{"role": "user", "content": seen.content}]).prompt_text
        return ToolResult(content=f"{shown}\n{_DONE}".lstrip() if seen.done else shown)

    async def grade(self, answer: str | None) -> tuple[Graded, float]:
        """Grade it and close it."""
        began, last = time.perf_counter(), None if self.actions else answer
        try:
            if self.fault is None and self._session is not None:
                result = await self._try(self._session.grade(Submission(answer=last)))
                return Graded.of_result("", result), time.perf_counter() - began
        except (_Fault, TaskEndedError) as error:
            self.fault = self.fault or error
        finally:
            await self.close()
        fault = self.fault or AssayError("the task was not begun")
        if isinstance(fault, SkippedError):
            return Graded(id="", status="skipped", outcome="skipped", reason=str(fault)), 0.0
        return Graded.failed("", reason_of(fault)), 0.0

    async def close(self) -> None:
        """End the session, whatever state it is in. What that raises is a fault."""
        self._session, self._tools = None, {}
        try:
            async with asyncio.timeout(self._deadline):
                await self._stack.aclose()
        except Exception as error:  # a boundary: an author's code is closed here
            self.fault = self.fault or error

    async def _try(self, work: Awaitable[T]) -> T:
        """Do something that is not the model's fault if it fails."""
        try:
            async with asyncio.timeout(self._deadline):
                return await work
        except TaskEndedError:
            raise
        except TimeoutError as error:
            late = AssayError(f"it took longer than its deadline of {self._deadline:g} seconds")
            self.fault = late if self._deadline else error
        except Exception as error:  # a boundary: an author's code runs here
            self.fault = error
        raise _Fault(reason_of(self.fault))


class Episodes:
    """Episodes of one template, as many at once as somebody begins.

    ``deadline``: Seconds that beginning a task, each call and its grading may take; None for any.
    """

    def __init__(
        self, source: Environment | str, template: str, *, token: str, deadline: float | None
    ) -> None:
        if deadline is not None:
            require_seconds("deadline", deadline)
        self._deadline, self._stack = deadline, AsyncExitStack()
        self._open: set[Episode] = set()
        self.template = wait_for(_find_template(source, template, token, self._stack))
        atexit.register(self.close)

    async def begin(self, columns: Mapping[str, object], last: Episode | None) -> Episode:
        """Begin one of columns that are its arguments; end the last one, if nobody graded it."""
        if last is not None:
            await self._end(last)
        task = self.template.task_of(cast("dict[str, Json]", plain(dict(columns))))
        episode = Episode(task, self._deadline)
        self._open.add(episode)
        await episode.begin()
        return episode

    async def grade(self, episode: Episode | None, answer: str | None) -> tuple[Graded, float]:
        """Grade one, and end it; see `Episode.grade`."""
        if episode is None:
            return Graded.failed("", "the task was not begun"), 0.0
        self._open.discard(episode)
        return await episode.grade(answer)

    def close(self) -> None:
        """End them all. Done at the end of the process, too, however that comes about."""
        atexit.unregister(self.close)
        wait_for(self._close())

    async def _close(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await asyncio.gather(*map(self._end, tuple(self._open)))
                await self._stack.aclose()

    async def _end(self, episode: Episode) -> None:
        self._open.discard(episode)
        await episode.close()


class _Fault(Exception):  # noqa: N818 - it is caught here, and shown to nobody
    """What fails is none of the model's doing."""
