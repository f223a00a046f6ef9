"""The shapes that agents record, under the path that people know them by."""

from assay.types import MCPToolCall, MCPToolResult
from assay.types.run import Run
from assay.types.trace import (
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
