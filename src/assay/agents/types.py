"""The shapes that agents record, under the path that people know them by."""

from assay.types.run import Run
from assay.types.trace import AgentStep, Citation, Step, SubagentStep, ToolStep, Trace

__all__ = ["AgentStep", "Citation", "Run", "Step", "SubagentStep", "ToolStep", "Trace"]
