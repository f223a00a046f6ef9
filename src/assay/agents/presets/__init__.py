"""Agents that people install, as harnesses that need no declaration: one file each.

Each asks its model through the cell's gateway: in the sandbox there is no other network, no key
and no login.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from assay.on_demand import names_on_demand

if TYPE_CHECKING:
    from assay.agents.presets.declaration import PATH_VARIABLE, Installed, Preset, started

__all__ = ["PATH_VARIABLE", "PRESETS", "Installed", "Preset", "preset", "started"]

PRESETS = (
    "codex",
    "mini-swe-agent",
    "opencode",
    "opencode-acp",
    "gemini-cli",
    "gemini-cli-acp",
    "claude-code",
    "aider",
)
"""Their names."""


def preset(name: str) -> Preset:
    """The preset of a name, loaded when it is first asked for."""
    module = importlib.import_module(f"assay.agents.presets.{name.replace('-', '_')}")
    found: Preset = module.PRESET
    return found


__getattr__ = names_on_demand(
    __name__, dict.fromkeys(("PATH_VARIABLE", "Installed", "Preset", "started"), ".declaration")
)
