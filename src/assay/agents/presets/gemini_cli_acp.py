"""Gemini CLI by the Agent Client Protocol: it asks before it uses a tool that changes anything."""

from __future__ import annotations

from assay.agents.presets.declaration import Preset
from assay.agents.presets.gemini_cli import AROUND, ENV

PRESET = Preset(
    name="gemini-cli-acp",
    program="gemini",
    install="npm install -g @google/gemini-cli",
    licence="Apache-2.0",
    protocol="google",
    tells="what it asked permission for, and the answers",
    around=AROUND,
    arguments=("--acp", "--skip-trust", "--model={model_name}"),
    env=ENV,
    acp=True,
)
