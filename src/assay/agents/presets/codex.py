"""Codex, OpenAI's command-line agent."""

from __future__ import annotations

from assay.agents.presets.declaration import Preset

_PROVIDER = "model_providers.assay"
_OPTIONS = (
    "--json",
    "--skip-git-repo-check",
    # Its own sandbox is off: this one is around it, and there is nobody to ask.
    "--dangerously-bypass-approvals-and-sandbox",
    "-c",
    f'{_PROVIDER}.name="assay"',
    "-c",
    f'{_PROVIDER}.base_url="{{gateway}}/v1"',
    "-c",
    f'{_PROVIDER}.env_key="OPENAI_API_KEY"',
    "-c",
    f'{_PROVIDER}.wire_api="responses"',
    "-c",
    'model_provider="assay"',
    "-c",
    "check_for_update_on_startup=false",
    "-c",
    "analytics.enabled=false",
    "-m",
    "{model_name}",
)

PRESET = Preset(
    name="codex",
    program="codex",
    install="npm install -g @openai/codex",
    licence="Apache-2.0",
    protocol="responses",
    tells="exit statuses of commands, changed files",
    arguments=("exec", *_OPTIONS, "--", "{prompt}"),
    resume=("exec", "resume", "--last", *_OPTIONS, "--", "{prompt}"),
    native=(
        "@openai/codex-*/vendor/*/bin/codex",
        "@openai/codex/node_modules/@openai/codex-*/vendor/*/bin/codex",
    ),
    trace="codex",
)
