"""What does the work: any async callable ``agent(run)``, and the harnesses of the matrix."""

from assay.agents.command import CommandAgent
from assay.agents.echo import EchoAgent
from assay.agents.replay import RecordedAgent, ReplayAgent

__all__ = ["CommandAgent", "EchoAgent", "RecordedAgent", "ReplayAgent"]
