"""What does the work: any async callable ``agent(run)``, and the harnesses of the matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.on_demand import names_on_demand

if TYPE_CHECKING:
    from assay.agents.agent_judge import AgentJudgeGrader
    from assay.agents.command import CommandAgent
    from assay.agents.echo import EchoAgent
    from assay.agents.mcp import McpServer
    from assay.agents.model import ModelAgent
    from assay.agents.replay import ReplayAgent

__all__ = [
    "AgentJudgeGrader",
    "CommandAgent",
    "EchoAgent",
    "McpServer",
    "ModelAgent",
    "ReplayAgent",
]

_HOMES = {
    "AgentJudgeGrader": ".agent_judge",
    "CommandAgent": ".command",
    "EchoAgent": ".echo",
    "McpServer": ".mcp",
    "ModelAgent": ".model",
    "ReplayAgent": ".replay",
}

__getattr__ = names_on_demand(__name__, _HOMES)
