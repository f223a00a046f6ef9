"""Gemini CLI, Google's command-line agent."""

from __future__ import annotations

import json

from assay.agents.presets.declaration import Preset, server_of_tools

_SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    "privacy": {"usageStatisticsEnabled": False},
    # The tree is other when work is gone on with, and the conversation would seem to be another.
    "context": {"includeDirectoryTree": False},
}
# Model's providers would search the web, where the case has no network.
_POLICY = """\
[[rule]]
toolName = ["google_web_search", "web_fetch"]
decision = "deny"
priority = 999
"""
# It reads both from files alone.
AROUND = """\
mkdir -p "$HOME/.gemini/policies"
printf %s "$GEMINI_CLI_SETTINGS" > "$HOME/.gemini/settings.json"
printf %s "$GEMINI_CLI_POLICY" > "$HOME/.gemini/policies/assay.toml"
exec "$@\""""

ENV = {
    "GEMINI_CLI_SETTINGS": json.dumps(_SETTINGS),
    "GEMINI_CLI_POLICY": _POLICY,
    "GEMINI_CLI_NO_RELAUNCH": "true",
    "GEMINI_SANDBOX": "false",
    "GEMINI_TELEMETRY_ENABLED": "false",
}

_SERVERS = server_of_tools("${{{}}}".format, address="httpUrl", trust=True)

_OPTIONS = (
    # Nobody is there to ask, and the sandbox is around it.
    "--approval-mode=yolo",
    "--skip-trust",
    "--output-format=stream-json",
    "--model={model_name}",
    "--prompt={prompt}",
)

PRESET = Preset(
    name="gemini-cli",
    program="gemini",
    install="npm install -g @google/gemini-cli",
    licence="Apache-2.0",
    protocol="google",
    tells="which calls failed, and why",
    around=AROUND,
    arguments=_OPTIONS,
    resume=("--resume=latest", *_OPTIONS),
    env=ENV,
    tools_env={"GEMINI_CLI_SETTINGS": json.dumps({**_SETTINGS, "mcpServers": _SERVERS})},
    trace="gemini-cli",
)
