"""The serializable shapes that agents, tasks and graders exchange. Plain data; no I/O."""

from assay.types.run import Job, Observation, Prompt, PromptMessage, Rewarded, Run
from assay.types.submission import Submission, Workspace
from assay.types.thread import StringThread, StringTurn
from assay.types.trace import (
    ActionStep,
    AgentStep,
    AnyStep,
    Citation,
    Step,
    SubagentStep,
    TaskCall,
    TokenSample,
    ToolCall,
    ToolResult,
    ToolStep,
    Trace,
    Usage,
)

MCPToolCall = ToolCall
"""`ToolCall` under its older name."""
MCPToolResult = ToolResult
"""`ToolResult` under its older name."""

__all__ = [
    "ActionStep",
    "AgentStep",
    "AnyStep",
    "Citation",
    "Job",
    "MCPToolCall",
    "MCPToolResult",
    "Observation",
    "Prompt",
    "PromptMessage",
    "Rewarded",
    "Run",
    "Step",
    "StringThread",
    "StringTurn",
    "SubagentStep",
    "Submission",
    "TaskCall",
    "TokenSample",
    "ToolCall",
    "ToolResult",
    "ToolStep",
    "Trace",
    "Usage",
    "Workspace",
]
