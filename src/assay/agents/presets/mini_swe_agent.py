"""mini-SWE-agent: an agent of a hundred lines whose one tool is a shell."""

from __future__ import annotations

from assay.agents.presets.declaration import Preset

PRESET = Preset(
    name="mini-swe-agent",
    program="mini",
    install="uv tool install --compile-bytecode mini-swe-agent --with mcp",
    setup="pip install mini-swe-agent mcp",
    licence="MIT",
    protocol="chat",
    tells="nothing: what it says of itself it writes to a file, where its commands can write, too",
    arguments=(
        "--yolo",
        "--exit-immediately",
        "--cost-limit=0",  # the case's limits hold at the gateway
        "--output=/tmp/trajectory.json",
        "--model=openai/{model_name}",
        "--task={prompt}",
    ),
    env={
        "MSWEA_CONFIGURED": "true",
        "MSWEA_SILENT_STARTUP": "1",
        "MSWEA_COST_TRACKING": "ignore_errors",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "COLUMNS": "200",
    },
)
