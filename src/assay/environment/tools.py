"""What agents may call in an environment: its functions, each call in the session of the agent."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from contextvars import Context
from typing import TYPE_CHECKING

from assay.errors import AssayError, InputError, MissingExtraError, TaskEndedError
from assay.scoring.json_safe import Json, json_safe
from assay.tasks.tools import FunctionTool
from assay.types.trace import ToolResult
from assay.version import __version__

if TYPE_CHECKING:
    from mcp.server import Server

    from assay.types.run import Run

__all__ = ["SessionTool", "mcp_server", "require_tool_name"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class SessionTool:
    """A tool in a session: it sees the state of that, and no other.

    Args:
        tool: What is called.
        context: The session's.
        is_over: Whether the session is being graded, so that no call may change it any more.
    """

    def __init__(self, tool: FunctionTool, context: Context, is_over: Callable[[], bool]) -> None:
        self.name = tool.name
        self.description = tool.description
        self.schema = tool.schema
        self._tool = tool
        self._context = context
        self._is_over = is_over

    async def __call__(self, arguments: Mapping[str, Json]) -> ToolResult:
        """Call it. What it raises is told to the agent, as arguments that it does not take are.

        Raises:
            TaskEndedError: If the task is over.
            AssayError: If what it needs of us failed.
        """
        if self._is_over():
            raise TaskEndedError(f"the task is over, and {self.name!r} cannot be called any more")
        context = self._context.copy()
        call = asyncio.create_task(self._call(arguments), context=context)
        return await call

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


def require_tool_name(name: str) -> None:
    """Refuse a name that some provider would not take.

    Raises:
        InputError: If it is one.
    """
    if not _NAME.fullmatch(name):
        raise InputError(
            f"a tool cannot be called {name!r}",
            hint="a name has at most 64 letters, digits, _ and -",
        )


def mcp_server(run: Run) -> Server[object]:
    """The tools of a run as an MCP server, for agents that speak with one.

    It is the `mcp` package's own server: run it on whatever transport the agent takes. Each call is
    recorded in the run's trace.

    Raises:
        MissingExtraError: If the package is not installed.
    """
    try:
        import mcp_types
        from mcp.server import Server, ServerRequestContext
    except ImportError as error:
        raise MissingExtraError("an MCP server", extra="mcp") from error

    async def listed(
        _: ServerRequestContext[object], __: mcp_types.PaginatedRequestParams | None
    ) -> mcp_types.ListToolsResult:
        tools = [
            mcp_types.Tool(
                name=tool.name, description=tool.description, input_schema=dict(tool.schema)
            )
            for tool in run.tools.values()
        ]
        return mcp_types.ListToolsResult(tools=tools)

    async def called(
        _: ServerRequestContext[object], asked: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult:
        try:
            result = await run.call(asked.name, asked.arguments or {})
        except AssayError as error:
            result = ToolResult(content=f"error: {error}", is_error=True)
        text = result.content if isinstance(result.content, str) else json.dumps(result.content)
        content = mcp_types.TextContent(type="text", text=text)
        return mcp_types.CallToolResult(content=[content], is_error=result.is_error)

    server: Server[object] = Server(
        "assay", version=__version__, on_list_tools=listed, on_call_tool=called
    )
    return server
