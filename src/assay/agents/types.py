"""The shapes that agents record, under the path that people know them by."""

from assay.types import MCPToolCall, MCPToolResult
from assay.types.run import Run
from assay.types.trace import (
    ActionStep,
    AgentStep,
    Citation,
    Step,
    SubagentStep,
    ToolCall,
    ToolResult,
    ToolStep,
    Trace,
)

__all__ = [
    "ActionStep",
    "AgentStep",
    "Citation",
    "MCPToolCall",
    "MCPToolResult",
    "Run",
    "Step",
    "SubagentStep",
    "ToolCall",
    "ToolResult",
    "ToolStep",
    "Trace",
]
