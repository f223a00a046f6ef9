"""Tools that MCP servers offer; each server runs in the agent's sandbox."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, cast

from assay.agents.tools import AgentTool, Arguments, ToolOutcome, ToolRefusalError, shortened
from assay.conversation.turns import Image, Text, Tool
from assay.errors import AgentError, MissingExtraError
from assay.frozen import frozen
from assay.sandbox import Limits, Mount, OpenCommand, open_command
from assay.scoring.json_safe import Json
from assay.tasks.blocks import SUITE
from assay.tasks.mcp_servers import McpServer
from assay.types.submission import Workspace

if TYPE_CHECKING:
    import mcp
    import mcp_types
    from mcp.client import Transport

__all__ = ["McpServer", "served_tools"]

_START_SECONDS = 60.0
_LEAVE_SECONDS = 1.0
_WORK_SECONDS = 7 * 86_400.0
"""A server works as long as its agent, which has limits of its own."""

_MOST_TOOLS = 128
_MOST_PARTS = 16
_MOST_IMAGE = 8 << 20
_MOST_DESCRIPTION = 4_000
_STRANGE = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64


@asynccontextmanager
async def served_tools(
    servers: Mapping[str, McpServer],
    workspace: Workspace | None,
    *,
    network: bool,
    seconds: float,
    taken: Sequence[str],
) -> AsyncGenerator[list[AgentTool]]:
    """The tools of servers, which run until the context is left.

    Args:
        servers: By name.
        workspace: Their working directory; None for an empty one.
        network: Whether they may use the network.
        seconds: Time that a call may take.
        taken: Names that tools have already. A tool of such a name gets its server's name in front.

    Raises:
        AgentError: If one does not start.
        MissingExtraError: If the package that speaks with them is not installed.
    """
    try:
        import mcp as _  # noqa: F401 - asked for here, so that it is told how to mend it
    except ImportError as error:
        raise MissingExtraError("an MCP server", extra="mcp") from error
    names = set(taken)
    found: list[AgentTool] = []
    async with AsyncExitStack() as stack:
        for name, server in servers.items():
            talk = _Talk(name, server, workspace, network=network)
            await stack.enter_async_context(talk)
            for offered in talk.tools:
                tool = _tool(talk, offered, names, seconds)
                names.add(tool.name)
                found.append(tool)
        yield found


@frozen
class _Command:
    """A server as the `mcp` package speaks with one: a context of two streams of messages."""

    command: OpenCommand
    streams: AsyncExitStack

    async def __aenter__(self) -> object:
        return await self.streams.enter_async_context(_streams(self.command))

    async def __aexit__(self, *_: object) -> None:
        await self.streams.aclose()


class _Talk:
    """A server at work.

    All of it is done in a task of its own, since the package's contexts have to be left in the
    task that entered them, and turn whatever ends them into a group of errors.
    """

    def __init__(
        self, name: str, server: McpServer, workspace: Workspace | None, *, network: bool
    ) -> None:
        self.name = name
        self.tools: list[mcp_types.Tool] = []
        self._programs = "in the image" if workspace and workspace.image else "under /usr"
        self._command = _opened(name, server, workspace, network=network)
        self._client: mcp.Client | None = None
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._leave = asyncio.Event()

    async def __aenter__(self) -> None:
        self._task = asyncio.create_task(self._live())
        try:
            await asyncio.wait(
                [self._task, self._ready],
                return_when=asyncio.FIRST_COMPLETED,
                timeout=_START_SECONDS,
            )
            if not self._ready.done():
                raise AgentError(  # noqa: TRY301 - one way out
                    f"the MCP server {self.name!r} did not start: {self._why()}",
                    hint=f"its program must be {self._programs}, in the workspace or in its "
                    "`mounts`",
                )
        except BaseException:
            await self.__aexit__()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._leave.set()
        try:
            await asyncio.wait([self._task], timeout=_LEAVE_SECONDS)
        finally:
            self._task.cancel()
        await asyncio.wait([self._task])
        if not self._task.cancelled():
            self._task.exception()  # seen: whatever ended it has been told

    async def call(self, tool: str, given: Arguments) -> ToolOutcome:
        """Call one of its tools.

        Raises:
            ToolError: If it is dead.
        """
        from mcp import MCPError

        assert self._client is not None
        try:
            result = await self._client.call_tool(tool, dict(given))
        except MCPError as error:
            if not self._command.stdout.at_eof():
                raise ToolRefusalError(f"the MCP server {self.name!r}: {error}") from error
            with suppress(TimeoutError):
                await asyncio.wait_for(self._command.wait(), 1.0)
            raise ToolRefusalError(
                f"the MCP server {self.name!r} has ended: {self._why()}"
            ) from error
        return _outcome(result)

    async def _live(self) -> None:
        import mcp

        async with self._command as command:
            transport = cast("Transport", _Command(command, AsyncExitStack()))
            async with mcp.Client(transport) as client:
                self._client = client
                self.tools = await _listed(client)
                self._ready.set_result(None)
                await self._leave.wait()

    def _why(self) -> str:
        said = self._command.stderr.strip().rpartition("\n")[2][-300:]
        if said:
            return said
        if not self._task.done() or self._task.cancelled():
            return f"it said nothing for {_START_SECONDS:g} s"
        return _innermost(self._task.exception()) or "it ended"


def _innermost(error: BaseException | None) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return "" if error is None else f"{type(error).__name__}: {error}"


def _opened(
    name: str, server: McpServer, workspace: Workspace | None, *, network: bool
) -> OpenCommand:
    mounts: list[Mount] = []
    for path in server.mounts:
        source = Path(server.root, path)
        if not source.exists():
            raise AgentError(f"the MCP server {name!r} mounts {path!r}, which does not exist")
        mounts.append(Mount(source=str(source), target=str(PurePosixPath(SUITE, path))))
    return open_command(
        [server.command, *server.args],
        workspace=workspace,
        changes="discard" if workspace is None else "keep",
        env=server.env,
        mounts=mounts,
        network=network,
        limits=Limits(wall_seconds=_WORK_SECONDS),
    )


@asynccontextmanager
async def _streams(command: OpenCommand) -> AsyncGenerator[object]:
    """The messages from a server and those to it; what it prints beside them is left out."""
    import anyio
    import mcp_types
    from mcp.shared.message import SessionMessage

    to_us, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, to_it = anyio.create_memory_object_stream[SessionMessage](0)

    async def read() -> None:
        async with to_us:
            with suppress(ValueError, OSError, anyio.BrokenResourceError):  # too long a line: over
                while line := await command.stdout.readline():
                    try:
                        message = mcp_types.jsonrpc_message_adapter.validate_json(
                            line, by_name=False
                        )
                    except ValueError:
                        continue
                    await to_us.send(SessionMessage(message))

    async def write() -> None:
        async with to_it:
            with suppress(OSError):
                async for sent in to_it:
                    text = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
                    command.stdin.write(text.encode() + b"\n")
                    await command.stdin.drain()

    tasks = [asyncio.create_task(read()), asyncio.create_task(write())]
    try:
        yield incoming, outgoing
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for stream in (incoming, outgoing, to_us, to_it):
            await stream.aclose()


async def _listed(client: mcp.Client) -> list[mcp_types.Tool]:
    """What a server offers; no more of it than a model can be told."""
    tools: list[mcp_types.Tool] = []
    cursor: str | None = None
    while len(tools) < _MOST_TOOLS:
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if not cursor or not page.tools:
            break
    return tools[:_MOST_TOOLS]


def _tool(talk: _Talk, offered: mcp_types.Tool, taken: set[str], seconds: float) -> AgentTool:
    schema = cast("dict[str, Json]", offered.input_schema)
    hints = offered.annotations

    async def use(given: Arguments) -> ToolOutcome:
        return await talk.call(offered.name, given)

    return AgentTool(
        declared=Tool(
            name=_free_name(talk.name, offered.name, taken),
            description=(offered.description or "")[:_MOST_DESCRIPTION],
            schema=schema if schema.get("type") == "object" else {"type": "object"},
        ),
        use=use,
        reads_only=hints is not None and hints.read_only_hint is True,
        seconds=seconds,
        is_checked=False,  # the server looks after its own arguments
    )


def _free_name(server: str, tool: str, taken: set[str]) -> str:
    """A name that every provider takes and that no other tool has."""
    name = _STRANGE.sub("_", tool)[:_LONGEST_NAME] or "tool"
    if name in taken:
        name = _STRANGE.sub("_", f"{server}_{tool}")[:_LONGEST_NAME]
    number = 2
    while name in taken:
        name = f"{name[: _LONGEST_NAME - 4]}_{number}"
        number += 1
    return name


def _outcome(result: mcp_types.CallToolResult) -> ToolOutcome:
    parts = [_part(block) for block in result.content[:_MOST_PARTS]]
    if len(result.content) > _MOST_PARTS:
        parts.append(Text(f"[{len(result.content) - _MOST_PARTS} more parts are left out]"))
    return ToolOutcome(content=tuple(parts) or (Text("(nothing)"),), is_error=result.is_error)


def _part(block: mcp_types.ContentBlock) -> Text | Image:
    if block.type == "text":
        return Text(shortened(block.text))
    if block.type == "image" and len(block.data) <= _MOST_IMAGE:
        return Image(f"data:{block.mime_type};base64,{block.data}")
    if block.type == "resource_link":
        return Text(f"[{block.name}: {block.uri}]")
    if block.type == "resource" and (text := getattr(block.resource, "text", None)) is not None:
        return Text(shortened(str(text)))
    return Text(f"[{block.type}: cannot be shown]")
