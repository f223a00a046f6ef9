"""What tests ask of a transcript that was read."""

from __future__ import annotations

import json
from typing import cast

from assay.agents.transcripts import Transcript
from assay.graders.usage import INCOMPLETE, walk
from assay.scoring.json_safe import Json
from assay.types.trace import AgentStep, ToolStep

__all__ = ["calls", "lines", "missing", "notes", "outline", "turns", "whole"]


def lines(*values: Json) -> str:
    """One to a line."""
    return "".join(f"{json.dumps(value)}\n" for value in values)


def calls(read: Transcript) -> list[ToolStep]:
    """The calls of tools, subagents' included."""
    return [step for _, step in walk(read.trace) if isinstance(step, ToolStep)]


def turns(read: Transcript) -> list[AgentStep]:
    """The turns of the agent itself."""
    return [step for step in read.trace if isinstance(step, AgentStep)]


def outline(read: Transcript) -> list[tuple[str, Json]]:
    """Who did what, in order."""
    found: list[tuple[str, Json]] = []
    for _, step in walk(read.trace):
        if isinstance(step, AgentStep):
            found.append(("agent", step.content or [call.name for call in step.tool_calls]))
        elif isinstance(step, ToolStep):
            found.append((step.call.name, None if step.result is None else step.result.content))
        elif step.messages:
            found.append((step.source, cast("dict[str, Json]", step.messages[0])["content"]))
    return found


def missing(read: Transcript) -> str:
    """Why a part is missing."""
    return str(read.trace.extra.get(INCOMPLETE, ""))


def notes(read: Transcript) -> str:
    """What was not understood."""
    return "; ".join(map(str, cast("list[Json]", read.trace.extra["not_understood"])))


def whole(
    name: str,
    steps: list[dict[str, Json]],
    session: Json,
    used: tuple[float | None, float | None, float | None],
    *not_understood: Json,
    **ended: Json,
) -> Json:
    """A trace as it is stored: what was used are tokens, US dollars and seconds."""
    extra: dict[str, Json] = {
        "importer": {"name": name, "version": 3}, "observed": True, "session": session,
        "usage": dict(zip(("tokens", "cost_usd", "seconds"), used, strict=True)),
        "not_understood": [*not_understood],
    }  # fmt: skip
    listed: list[Json] = [{"step_id": number, **step} for number, step in enumerate(steps, 1)]
    return {"steps": listed, "extra": extra, **ended}
