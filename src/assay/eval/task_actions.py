"""What an agent does in a task, noted where the task does it, and done again to grade it again.

A trace tells of it, too. But who works in a sandbox may write its own, and what a model called may
not be what its agent did.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Mapping
from typing import TypeVar, cast

from assay.errors import AgentError, InputError, TaskEndedError
from assay.scoring.json_safe import Json, plain
from assay.tasks.task import Session
from assay.types.run import Observation, OfferedTool, Offering, Stepping
from assay.types.trace import ToolResult

T = TypeVar("T", Observation, ToolResult)


class Moves:
    """The moves of one run.

    Attributes:
        made: Each action and each call of a tool of the task, in order, with a digest of what came
            of it; None where nothing did.
    """

    def __init__(self) -> None:
        self.made: list[Json] = []

    def stepping(self, session: Session) -> Stepping | None:
        """The session, for an agent that acts in it."""
        # By its name: asking a protocol costs more than the rest of a quick rollout.
        return _Noted(cast("Stepping", session), self) if hasattr(session, "step") else None

    def tools(self, session: Session) -> dict[str, OfferedTool]:
        """What the session offers its agent."""
        return {name: _NotedTool(tool, self) for name, tool in _offered(session).items()}

    async def note(self, said: dict[str, Json], work: Awaitable[T]) -> T:
        """Note a move, and what comes of it."""
        move: dict[str, Json] = {**said, "shown": None}
        self.made.append(move)
        try:
            shown = await work
        except (AgentError, TaskEndedError):  # it was none
            self.made = [one for one in self.made if one is not move]
            raise
        move["shown"] = _digest(shown)
        return shown


class _Noted:
    def __init__(self, session: Stepping, moves: Moves) -> None:
        self._session = session
        self._moves = moves

    @property
    def max_steps(self) -> int:
        return self._session.max_steps

    async def step(self, action: str) -> Observation:
        return await self._moves.note({"action": str(action)}, self._session.step(action))


class _NotedTool:
    def __init__(self, tool: OfferedTool, moves: Moves) -> None:
        self.name = tool.name
        self.description = tool.description
        self.schema = tool.schema
        self.is_of_workspace = getattr(tool, "is_of_workspace", False) is True
        self._tool = tool
        self._moves = moves

    async def __call__(self, arguments: Mapping[str, Json]) -> ToolResult:
        said: dict[str, Json] = {"call": self.name, "arguments": plain(dict(arguments))}
        return await self._moves.note(said, self._tool(arguments))


async def act_again(session: Session, made: Json, slug: str) -> None:
    """Do what was done in a task that is begun once more.

    Raises:
        InputError: If something else comes of it than the agent saw.
    """
    tools = _offered(session)
    for number, move in enumerate(made if isinstance(made, list) else [], 1):
        assert isinstance(move, dict)
        shown: Observation | ToolResult | None = None
        if "action" not in move:
            if (tool := tools.get(str(move["call"]))) is not None:
                shown = await tool(cast("dict[str, Json]", move["arguments"]))
        elif hasattr(session, "step"):
            shown = await cast("Stepping", session).step(str(move["action"]))
        if shown is None or _digest(shown) != move["shown"]:
            raise InputError(
                f"task {slug!r} shows something else after action {number} than the agent saw",
                hint="what comes of chance has no second grading; run the task again",
            )


def _offered(session: Session) -> Mapping[str, OfferedTool]:
    return cast("Offering", session).tools if hasattr(session, "tools") else {}


def _digest(shown: Observation | ToolResult) -> str:
    more = shown.done if isinstance(shown, Observation) else shown.is_error
    said = json.dumps([plain(shown.content), more], sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()[:16]
