"""Tasks that run elsewhere: begun, worked on and graded over a channel.

Whatever goes wrong is an error; nothing here makes a number of it.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import field, replace
from typing import TYPE_CHECKING

from assay.environment.channel.frames import BUSY, unsendable
from assay.environment.channel.link import PATIENCE_SECONDS, Address, Channel, Channels
from assay.errors import ChannelError, ScoreError, SkippedError, TaskEndedError
from assay.frozen import frozen
from assay.scoring.graded import Grade
from assay.scoring.json_safe import Json
from assay.scoring.results import EvaluationResult, finite_number
from assay.tasks.task import Session
from assay.types.run import Observation, Prompt
from assay.types.submission import Submission, Workspace
from assay.types.trace import ToolResult

if TYPE_CHECKING:
    from assay.tasks.mcp_servers import McpServer


@frozen
class RemoteWork:
    """A template of a served environment with its arguments: what a remote task begins."""

    address: Address
    template: str
    args: Mapping[str, Json]
    runtime: str
    # The work as it would be done in this process, where there is any.
    origin: object = None
    patience: float = PATIENCE_SECONDS
    # Sessions that its tasks share, one after the other; None gives each its own.
    channels: Channels | None = field(default=None, repr=False, compare=False)

    @property
    def returns(self) -> object:
        """Type of the answer, where that is known here; None for text."""
        return getattr(self.origin, "returns", None)

    @property
    def file(self) -> str:
        """The file that defines the template, where that is known here."""
        return getattr(self.origin, "file", "")

    @property
    def mcp(self) -> Mapping[str, McpServer]:
        """The environment's MCP servers, where they are known here."""
        return getattr(self.origin, "mcp", {})

    def open(self) -> AbstractAsyncContextManager[Session]:
        """Begin it in a session that nobody else uses meanwhile."""
        return self._session()

    @asynccontextmanager
    async def _session(self) -> AsyncGenerator[Session]:
        channels = self.channels or Channels(self.address, patience=self.patience)
        channel = await channels.take()
        session: RemoteSession | None = None
        try:
            while session is None:
                try:
                    session = await RemoteSession.begin(channel, self.template, self.args)
                except ChannelError as error:
                    if error.code != BUSY or channel.starts < 2:
                        raise
                    await channel.close()  # its server bears fewer starts
                    channel = await channels.take()
            yield session
        finally:
            is_graded = session is not None and session.end()
            await channels.give(channel, is_graded=is_graded)


class RemoteSession:
    """A task that has begun elsewhere."""

    def __init__(self, channel: Channel, begun: Mapping[str, Json], template: str) -> None:
        most = begun.get("max_steps")
        self.prompt = _prompt_of(begun, template)
        self.max_steps = most if isinstance(most, int) else 1
        self.workspace: Workspace | None = None
        self.notes: dict[str, Json] = {}
        self._channel = channel
        self._moves = 0
        self._moving = asyncio.Lock()
        self._is_grading = self._is_graded = False
        self._is_over = False
        listed = begun.get("tools")
        tools = [RemoteTool.of(row, self) for row in (listed if isinstance(listed, list) else [])]
        self.tools = {tool.name: tool for tool in tools}

    @classmethod
    async def begin(
        cls, channel: Channel, template: str, args: Mapping[str, Json]
    ) -> RemoteSession:
        """Start a task."""
        params: dict[str, Json] = {"id": template, "args": dict(args)}
        if channel.is_native:
            params["key"] = secrets.token_hex(8)
        try:
            said = await channel.call("tasks.start", params)
        except ChannelError as error:
            if error.kind == "SkippedError":
                raise SkippedError(error.message, hint=error.hint) from error
            raise
        return cls(channel, said, template)

    async def step(self, action: str) -> Observation:
        """Act there, and see what comes of it."""
        if not self._channel.is_native:
            raise TaskEndedError("the task takes no actions", hint="its server knows none")
        return _observation_of(await self.move("tasks.step", {"action": action}))

    async def move(self, method: str, said: Mapping[str, Json]) -> dict[str, Json]:
        """Act, or call a tool; one after the other. What was begun goes on if this is cancelled."""
        moving = asyncio.create_task(self._move(method, said))
        moving.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(moving)

    async def _move(self, method: str, said: Mapping[str, Json]) -> dict[str, Json]:
        async with self._moving:
            if self._is_grading:
                raise TaskEndedError("the task is over")
            try:
                seen = await self._ask(method, {**said, "number": self._moves + 1})
            except ChannelError as error:
                if error.kind == "TaskEndedError":
                    raise TaskEndedError(error.message, hint=error.hint) from error
                raise
            self._moves += 1
            return seen

    async def grade(self, submission: Submission) -> EvaluationResult:
        """Have the answer graded there."""
        answer = submission.answer
        # Whoever answers what cannot be sent has not answered; an error would be worth more.
        why = unsendable({"answer": answer})
        async with self._moving:  # what its agent was cut off at is part of the work
            self._is_grading = True
            frame = await self._ask("tasks.grade", {"answer": None if why else answer})
        self._is_graded = True
        result = grade_of(frame).result
        return result if not why else replace(result, info={**result.info, "answer": why})

    def end(self) -> bool:
        """Say no more: the channel may be another task's now. Whether there is a grade."""
        self._is_over = True
        return self._is_graded

    async def _ask(self, method: str, params: Mapping[str, Json]) -> dict[str, Json]:
        if self._is_over:
            raise TaskEndedError("the task is over")
        return await self._channel.call(method, params)


@frozen
class RemoteTool:
    """A tool that the task offers its agent, called where the task is."""

    name: str
    description: str
    schema: Mapping[str, Json]
    session: RemoteSession
    is_of_workspace: bool = False

    @classmethod
    def of(cls, row: Json, session: RemoteSession) -> RemoteTool:
        """Read what ``tasks.start`` says of a tool."""
        said = row if isinstance(row, dict) else {}
        name, schema = said.get("name"), said.get("schema")
        if not isinstance(name, str) or not name:
            raise ChannelError("tasks.start: a tool has no name")
        described = str(said.get("description") or "")
        known = schema if isinstance(schema, dict) else {}
        return cls(name, described, known, session, said.get("workspace") is True)

    async def __call__(self, arguments: Mapping[str, Json]) -> ToolResult:
        """Call it."""
        said: dict[str, Json] = {"name": self.name, "arguments": dict(arguments)}
        if why := unsendable(said):
            return ToolResult(content=f"error: the call cannot be made: {why}", is_error=True)
        found = await self.session.move("tasks.call", said)
        if "content" not in found or not isinstance(found.get("is_error"), bool):
            raise ChannelError(f"what {self.name!r} gave is no result")
        return ToolResult(content=found["content"], is_error=found["is_error"] is True)


def _prompt_of(frame: Mapping[str, Json], template: str) -> Prompt:
    prompt = frame.get("prompt")
    if prompt is None or isinstance(prompt, str):
        return prompt
    if isinstance(prompt, list) and all(isinstance(item, str | dict) for item in prompt):
        return prompt
    raise ChannelError(f"the prompt of {template!r} is neither text nor chat messages")


def _observation_of(frame: Mapping[str, Json]) -> Observation:
    content, reward, info = frame.get("observation"), frame.get("reward"), frame.get("info")
    done = frame.get("done")
    if not isinstance(content, str | list) or not isinstance(done, bool):
        raise ChannelError("what came of an action is no observation")
    try:
        worth = None if reward is None else finite_number(reward, what="the reward of an action")
    except ScoreError as error:
        raise ChannelError(error.message, hint=error.hint) from error
    return Observation(content, worth, done, info if isinstance(info, dict) else {})


def grade_of(frame: Mapping[str, Json]) -> Grade:
    """Read a grade from elsewhere; what is not of its form is no grade."""
    for name, kinds in _GRADE_FIELDS.items():
        if name in frame and not isinstance(frame[name], kinds):
            raise ChannelError(f"a grade's {name!r} is {type(frame[name]).__name__}")
    nodes = frame.get("subscores")
    if isinstance(nodes, list) and not all(isinstance(node, dict) for node in nodes):
        raise ChannelError("a grade's 'subscores' are not all objects")
    if "score" not in frame:
        raise ChannelError("a grade has no 'score'")
    try:
        return Grade.from_dict(frame)
    except ScoreError as error:
        raise ChannelError(f"what came is no grade: {error.message}", hint=error.hint) from error


_GRADE_FIELDS: dict[str, tuple[type, ...]] = {
    "done": (bool,),
    "isError": (bool,),
    "content": (str, type(None)),
    "info": (dict, type(None)),
    "subscores": (list, type(None)),
}
