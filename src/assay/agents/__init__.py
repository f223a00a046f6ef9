"""What does the work: any async callable ``agent(run)``, and the harnesses of the matrix."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.agents.command import CommandAgent
    from assay.agents.echo import EchoAgent
    from assay.agents.replay import RecordedAgent, ReplayAgent

__all__ = ["CommandAgent", "EchoAgent", "RecordedAgent", "ReplayAgent"]

_HOMES = {
    "CommandAgent": "command",
    "EchoAgent": "echo",
    "RecordedAgent": "replay",
    "ReplayAgent": "replay",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'assay.agents' has no attribute {name!r}")
    value: object = getattr(import_module(f"assay.agents.{home}"), name)
    globals()[name] = value
    return value
