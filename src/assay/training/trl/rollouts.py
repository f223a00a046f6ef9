"""What TRL has of an environment for a rollout: ``reset``, and a method for each tool."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Mapping
from typing import cast

from assay.conversation.turns import Tool
from assay.errors import InputError
from assay.graders.threads import on_own_loop, wait_for
from assay.scoring.json_safe import Json
from assay.training.episodes import Episode, Episodes, EpisodeTemplate
from assay.training.trl.methods import ToolError, method
from assay.types.trace import ToolResult

_ACT = "Take the next action of the task; gives what comes of it."
_SUBMIT = "Hand in the answer when the work is done. Of several, the last one counts."


class Rollout:
    """What plays one task after the other; subclasses have a method for each tool."""

    def __init__(self, episodes: Episodes) -> None:
        self.episodes = episodes
        self.episode: Episode | None = None
        self.answer: str | None = None

    def reset(self, **row: object) -> str | None:
        """Begin the task whose arguments are in a row of the dataset."""
        self.answer = None
        self.episode = wait_for(self.episodes.begin(row, self.episode))
        prompt, own = self.episode.prompt, row.get("prompt")
        last = cast("list[dict[str, object]]", own)[-1] if isinstance(own, list) and own else {}
        return (f"\n\n{prompt}" if last.get("content") else prompt) or None


async def _call(rollout: Rollout, name: str, given: Mapping[str, Json]) -> str:
    return await _said(rollout, lambda episode: episode.call(name, given))


async def _act(rollout: Rollout, name: str, given: Mapping[str, Json]) -> str:
    del name
    return await _said(rollout, lambda episode: episode.act(str(given["action"])))


async def _submit(rollout: Rollout, name: str, given: Mapping[str, Json]) -> str:
    del name
    rollout.answer = str(given["answer"])
    return "It is handed in."


async def _said(
    rollout: Rollout, ask: Callable[[Episode], Coroutine[object, object, ToolResult]]
) -> str:
    if rollout.episode is None:
        raise ToolError("the task has not begun")
    found = await on_own_loop(ask(rollout.episode))
    text = found.content if isinstance(found.content, str) else json.dumps(found.content)
    if found.is_error:
        raise ToolError(text.removeprefix("error: "))
    return text


async def _get_reward(self: Rollout) -> float | None:
    graded, _ = await on_own_loop(self.episodes.grade(self.episode, self.answer))
    return graded.score


def methods_of(template: EpisodeTemplate, *, submit: bool) -> dict[str, object]:
    """The methods of the rollouts of a template: its tools, and how it is acted in or answered."""
    tools = [(tool, _call) for tool in template.tools]
    if template.row.max_steps > 1:
        tools.append((_taking("act", "action", _ACT), _act))
    elif submit:
        tools.append((_taking("submit", "answer", _SUBMIT), _submit))
    made: dict[str, object] = {}
    for tool, call in tools:
        if tool.name in made:
            raise InputError(f"two tools are called {tool.name!r}", hint="rename yours")
        made[tool.name] = method(tool, call)
    return {**made, "get_reward": _get_reward} if submit else made


def _taking(name: str, argument: str, description: str) -> Tool:
    schema: dict[str, Json] = {"properties": {argument: {"type": "string"}}, "required": [argument]}
    return Tool(name=name, description=description, schema=schema)
