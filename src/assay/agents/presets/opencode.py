"""OpenCode."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType

from assay.agents.presets.declaration import Preset, server_of_tools
from assay.scoring.json_safe import Json


def environment(
    permission: str, servers: Mapping[str, Json] = MappingProxyType({})
) -> dict[str, str]:
    """The variables that it is started with.

    Args:
        permission: ``allow`` its tools, or ``ask`` for each use.
        servers: MCP servers, by name.
    """
    config: dict[str, Json] = {
        "autoupdate": False,
        "share": "disabled",
        "instructions": ["/workspace/AGENTS.md"],
        "permission": {"*": permission},
        "model": "assay/{env:ASSAY_MODEL}",
        "provider": {
            "assay": {
                "npm": "@ai-sdk/openai-compatible",
                "options": {"baseURL": "{env:OPENAI_BASE_URL}", "apiKey": "{env:OPENAI_API_KEY}"},
                "models": {"{env:ASSAY_MODEL}": {"tool_call": True}},
            }
        },
    }
    if servers:
        config["mcp"] = dict(servers)
    return {
        "OPENCODE_CONFIG_CONTENT": json.dumps(config),
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        # A file of the submission would allow what its case denies, and start servers of tools.
        "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
        "OPENCODE_DISABLE_SHARE": "1",
    }


_SERVERS = server_of_tools("{{env:{}}}".format, type="remote", enabled=True, oauth=False)
_OPTIONS = ("--format", "json", "--model", "assay/{model_name}", "--", "{prompt}")

PRESET = Preset(
    name="opencode",
    program="opencode",
    install="npm install -g opencode-ai",
    licence="MIT",
    protocol="chat",
    tells="titles and times of tool calls, snapshots",
    arguments=("run", *_OPTIONS),
    resume=("run", "--continue", *_OPTIONS),
    env=environment("allow"),
    tools_env=environment("allow", _SERVERS),
    trace="opencode",
)
