"""What a model can call: a declaration, and what is done when it is called.

Whatever a call says, and whatever its tool comes to, is told to the model; only what our own
machinery cannot do ends the work.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from assay.conversation.schemas import validator
from assay.conversation.turns import Call, Image, Text, Tool
from assay.errors import AssayError
from assay.frozen import frozen
from assay.scoring.json_safe import Json, json_safe
from assay.tasks import tools as tasks_tools
from assay.tasks.tools import Arguments, ArgumentsError
from assay.types.run import OfferedTool
from assay.types.trace import ToolResult

__all__ = [
    "AgentTool",
    "Arguments",
    "ToolOutcome",
    "ToolRefusalError",
    "answer_call",
    "function_tool",
    "offered_tool",
    "shortened",
]

_MOST_CHARACTERS = 32_000


@frozen(kw_only=True)
class ToolOutcome:
    """What a tool came to.

    Attributes:
        content: What the model is told.
        is_error: Whether the tool failed.
        was_called: Whether it could be called at all: there is such a tool, which takes such
            arguments.
    """

    content: tuple[Text | Image, ...]
    is_error: bool = False
    was_called: bool = True

    @staticmethod
    def said(text: str, *, is_error: bool = False) -> ToolOutcome:
        """An outcome that is one text."""
        return ToolOutcome(content=(Text(text),), is_error=is_error)

    def to_json(self) -> Json:
        """As a trace keeps it: a text, or blocks where there are pictures."""
        if all(isinstance(part, Text) for part in self.content):
            return "\n".join(part.text for part in self.content if isinstance(part, Text))
        return [
            {"type": "text", "text": part.text}
            if isinstance(part, Text)
            else {"type": "image_url", "image_url": {"url": part.url}}
            for part in self.content
        ]


@frozen(kw_only=True)
class AgentTool:
    """A tool that an agent offers its model, or a task its agent: an `OfferedTool`.

    Attributes:
        declared: What the model is told of it.
        use: What it does. It gets arguments that have the declared schema.
        reads_only: Whether it changes nothing, so that several may be at work at once.
        seconds: Time that it may take; None where it looks after that itself.
        is_checked: Whether its arguments are held against the declared schema before.
    """

    declared: Tool
    use: Callable[[Arguments], Awaitable[ToolOutcome]]
    reads_only: bool = False
    seconds: float | None = None
    is_checked: bool = True

    @property
    def name(self) -> str:
        """What the model calls it."""
        return self.declared.name

    @property
    def description(self) -> str:
        """What it does."""
        return self.declared.description

    @property
    def schema(self) -> Mapping[str, Json]:
        """JSON schema of its arguments."""
        return self.declared.schema

    async def __call__(self, arguments: Mapping[str, Json]) -> ToolResult:
        """Call it, for an agent that is elsewhere.

        Raises:
            AssayError: If what it needs of us failed.
        """
        call = Call(id="", name=self.name, arguments=json.dumps(dict(arguments)))
        outcome = await answer_call(call, {self.name: self})
        return ToolResult(content=outcome.to_json(), is_error=outcome.is_error)


class ToolRefusalError(Exception):
    """What a tool was asked for and cannot do; the model is told."""


async def answer_call(call: Call, tools: Mapping[str, AgentTool]) -> ToolOutcome:
    """Do what a call wants.

    Raises:
        AssayError: If what it needs of us failed.
    """
    tool = tools.get(call.name)
    if tool is None:
        return _refused(f"there is no tool {call.name!r}; there are: {', '.join(tools) or 'none'}")
    given = call.given
    if complaint := _complaint(given, tool):
        return _refused(complaint)
    assert given is not None
    left_out = list((call.given or {}).keys() - given.keys())
    limit = asyncio.timeout(tool.seconds)
    try:
        async with limit:
            outcome = await tool.use(given)
        if not left_out:
            return outcome
        note = Text(f"[{call.name} takes no such argument: {', '.join(sorted(left_out))}]")
        return replace(outcome, content=(*outcome.content, note))
    except AssayError:
        raise
    except ToolRefusalError as error:
        return ToolOutcome.said(f"error: {error}", is_error=True)
    except Exception as error:  # a tool of the user's own fails as it likes: the model is told
        late = isinstance(error, TimeoutError) and limit.expired()
        why = (
            f"it took longer than {tool.seconds} s" if late else f"{type(error).__name__}: {error}"
        )
        return ToolOutcome.said(shortened(f"error: {why}"), is_error=True)


def _complaint(given: dict[str, Json] | None, tool: AgentTool) -> str:
    """What is wrong with the arguments of a call; empty if nothing is."""
    if given is None:
        return "the arguments are not a JSON object"
    try:
        json.dumps(given, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        return "the arguments hold what no text can hold"
    if not tool.is_checked:
        return ""
    complaint = validator(tool.declared.schema)(given)
    return complaint and f"the arguments do not fit: {complaint}"


def _refused(why: str) -> ToolOutcome:
    return ToolOutcome(content=(Text(f"error: {why}"),), is_error=True, was_called=False)


def function_tool(function: Callable[..., object], *, seconds: float) -> AgentTool:
    """A Python function as a tool: its name, its docstring, its parameters.

    It runs in this process and is trusted; one that is not a coroutine function gets a thread.

    Args:
        function: The function.
        seconds: Time that it may take. A thread cannot be stopped: it is left behind.

    Raises:
        InputError: If its parameters cannot be told to a model.
    """
    tool = tasks_tools.function_tool(function)

    async def use(given: Arguments) -> ToolOutcome:
        try:
            return _told(await tool.call(given))
        except ArgumentsError as error:
            return _refused(error.message)

    declared = Tool(name=tool.name, description=tool.description, schema=tool.schema)
    return AgentTool(declared=declared, use=use, seconds=seconds)


def offered_tool(tool: OfferedTool, *, seconds: float) -> AgentTool:
    """A tool of the task's own.

    Args:
        tool: It.
        seconds: Time that a call may take.
    """

    async def use(given: Arguments) -> ToolOutcome:
        result = await tool(given)
        return replace(_told(result.content), is_error=result.is_error)

    declared = Tool(name=tool.name, description=tool.description, schema=tool.schema)
    return AgentTool(declared=declared, use=use, seconds=seconds)


def _told(found: object) -> ToolOutcome:
    if isinstance(found, ToolOutcome):
        return found
    if isinstance(found, Text | Image):
        return ToolOutcome(content=(found,))
    if isinstance(found, str):
        return ToolOutcome.said(shortened(found) or "(nothing)")
    return ToolOutcome.said(shortened(json.dumps(json_safe(found), ensure_ascii=False)))


def shortened(text: str) -> str:
    """What can be told of a text: its head and its tail, where it is too long."""
    text = text.encode("utf-8", "replace").decode()
    if len(text) <= _MOST_CHARACTERS:
        return text
    half = _MOST_CHARACTERS // 2
    return f"{text[:half]}\n... [{len(text) - 2 * half} characters cut] ...\n{text[-half:]}"
