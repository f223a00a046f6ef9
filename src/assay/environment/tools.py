"""What agents may call in an environment: its functions, each call in the session of the agent."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from contextvars import Context, ContextVar

from assay.errors import AssayError, InputError, TaskEndedError
from assay.scoring.json_safe import Json, json_safe
from assay.tasks.tools import FunctionTool
from assay.types.run import OfferedTool
from assay.types.trace import ToolResult

_CALLING: ContextVar[asyncio.Lock | None] = ContextVar("assay_calling", default=None)
"""The turn of the session in one of whose tools this is."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class SessionTool:
    """A tool in a session: it sees the state of that, and no other.

    Every door to a session's tools comes through here. Calls take turns, unless the tool is
    ``parallel``: what one looks at, no other changes before it has acted.

    ``is_over``: Whether the session is being graded, so that no call may change it any more.
    """

    def __init__(
        self,
        tool: FunctionTool,
        context: Context,
        turn: asyncio.Lock,
        is_over: Callable[[], bool],
    ) -> None:
        self.name = tool.name
        self.description = tool.description
        self.schema = tool.schema
        self._tool = tool
        self._context = context
        self._turn = turn
        self._is_over = is_over

    async def __call__(self, arguments: Mapping[str, Json]) -> ToolResult:
        """Call it. What it raises is told to the agent, as arguments that it does not take are."""
        self._require_going()
        context = self._context.copy()
        takes_turns = not self._tool.parallel and _CALLING.get() is not self._turn
        work = self._in_turn(arguments) if takes_turns else self._call(arguments)
        call = asyncio.create_task(work, context=context)
        if not self._tool.in_thread:
            return await call
        # A thread goes on when its call is cancelled, and keeps the turn until it has ended.
        call.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(call)

    def _require_going(self) -> None:
        if self._is_over():
            raise TaskEndedError(f"the task is over, and {self.name!r} cannot be called any more")

    async def _in_turn(self, arguments: Mapping[str, Json]) -> ToolResult:
        async with self._turn:
            self._require_going()  # it may have ended meanwhile
            _CALLING.set(self._turn)
            return await self._call(arguments)

    async def _call(self, arguments: Mapping[str, Json]) -> ToolResult:
        try:
            found = await self._tool.call(arguments)
        except InputError as error:
            return ToolResult(content=f"error: {error}", is_error=True)
        except AssayError:
            raise
        except (Exception, SystemExit) as error:  # a tool fails as it likes: the agent is told
            return ToolResult(content=f"error: {type(error).__name__}: {error}", is_error=True)
        if isinstance(found, ToolResult):
            return found
        return ToolResult(content=found if isinstance(found, str) else json_safe(found))


def told_tool(tool: OfferedTool | FunctionTool) -> dict[str, Json]:
    """What a client is told of a tool."""
    return {"name": tool.name, "description": tool.description, "schema": dict(tool.schema)}


def require_tool_name(name: str) -> None:
    """Refuse a name that some provider would not take."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"a tool cannot be called {name!r}",
            hint="a name has at most 64 letters, digits, _ and -",
        )
